"""Who else manages a pool: each sign that a pool's API shows, and pools that nobody else has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.managers import describe_managers
from gpukube.provider import load_provider
from gpukube.testing.fakes import FakeProvider
from tests.builders import make_observed
from tests.unit.core.test_plan import WANTED

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNS: tuple[tuple[str, Mapping[str, object], str], ...] = (
    ("eks", {"tags": {"alpha.eksctl.io/nodegroup-name": "a", "alpha.eksctl.io/nodegroup-type": "managed"}}, "eksctl"),
    ("eks", {"tags": {"aws:cloudformation:stack-name": "eksctl-train-nodegroup-a"}}, "CloudFormation"),
    ("eks", {"tags": {"services.k8s.aws/controller-version": "eks-1.5.0"}}, "ACK"),
    ("eks", {"tags": {"kubernetes.io/cluster/train": "owned"}}, "Cluster API"),
    ("eks", {"tags": {"kubernetes.io/cluster/train": "shared"}}, ""),
    ("eks", {"tags": {"crossplane-kind": "nodegroup.eks.aws.upbound.io", "crossplane-name": "a"}}, "Crossplane"),
    ("eks", {"tags": {"GithubRepo": "github.com/aws-ia/terraform-aws-eks-blueprints"}}, "Terraform (EKS Blueprints)"),
    ("eks", {"tags": {"Name": "a", "team": "ml"}, "labels": {"node": "a"}}, ""),
    ("aks", {"properties": {"mode": "Machines"}}, "node auto-provisioning"),
    ("aks", {"properties": {"mode": "ManagedSystem"}}, "AKS itself"),
    ("aks", {"properties": {"tags": {"avm_yor_trace": "e82d0232"}}}, "Terraform or CloudFormation (traced by yor)"),
    ("aks", {"properties": {"mode": "User", "tags": {"team": "ml"}}}, ""),
    ("gke", {"autoscaling": {"enabled": True, "autoprovisioned": True}}, "node auto-provisioning"),
    ("gke", {"config": {"resourceLabels": {"managed-by-cnrm": "true"}}}, "Config Connector"),
    ("gke", {"config": {"resourceLabels": {"capg-cluster-train": "owned"}}}, "Cluster API"),
    ("gke", {"config": {"resourceLabels": {"ghpc_module": "gke-node-pool"}}}, "Terraform (Cluster Toolkit)"),
    (
        "gke",
        {"config": {"metadata": {"cluster_name": "train", "node_pool": "a", "disable-legacy-endpoints": "true"}}},
        "Terraform (terraform-google-modules/kubernetes-engine)",
    ),
    ("gke", {"config": {"resourceLabels": {"goog-gke-node": ""}, "metadata": {"node_pool": "a"}}}, ""),
)


@pytest.mark.parametrize(("cloud", "native", "name"), SIGNS)
def test_managers_when_a_tool_left_its_sign_then_named_with_it(
    cloud: str, native: Mapping[str, object], name: str
) -> None:
    found = load_provider(cloud).extras.managers(replace(make_observed(WANTED), native=native))
    assert [one.name for one in found] == ([name] if name else [])


def test_managers_when_a_stack_of_eksctl_made_it_then_both_are_named_once() -> None:
    tags = {"alpha.eksctl.io/nodegroup-name": "a", "aws:cloudformation:stack-name": "s"}
    found = load_provider("eks").extras.managers(replace(make_observed(WANTED), native={"tags": tags}))
    assert describe_managers(found) == (
        "eksctl (tag alpha.eksctl.io/nodegroup-name=a) and CloudFormation (tag aws:cloudformation:stack-name=s)"
    )


def test_managers_when_gpukube_made_it_then_none() -> None:
    assert FakeProvider().extras.managers(make_observed(WANTED)) == ()
