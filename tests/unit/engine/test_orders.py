"""Where the order of autoscaled families is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.scaling_order import GroupOrder
from gpukube.core.values import ClusterRef
from gpukube.engine.plan.orders import map_namespace
from gpukube.provider import load_provider
from tests.unit.doctor.live_pools import SCALER

EKS = ClusterRef("train", "eks", "train", {"account": "111122223333", "region": "us-east-1"})
AKS = ClusterRef("train", "aks", "train", {"subscription": "s", "resourceGroup": "ml"})


def order_of(provider: str) -> GroupOrder:
    how = load_provider(provider).extras.order
    assert isinstance(how, GroupOrder)
    return how


@pytest.mark.parametrize(
    ("flags", "namespace"),
    [
        ((), "kube-system"),
        (("--namespace=scaling",), "scaling"),
        (("--namespace", "scaling", "--v=4"), "scaling"),
        (("--namespace=$(POD_NAMESPACE)",), "tools"),
    ],
)
def test_map_is_in_the_namespace_of_the_autoscalers_flag_wherever_it_runs(
    flags: tuple[str, ...], namespace: str
) -> None:
    (container,) = SCALER.containers
    command = ("./cluster-autoscaler", *flags)
    scaler = replace(SCALER, namespace="tools", containers=(replace(container, command=command),))
    assert map_namespace(EKS, Snapshot(deployments=(scaler,)), order_of("eks")) == namespace


def test_map_of_a_managed_autoscaler_needs_no_cluster_and_without_an_autoscaler_there_is_none() -> None:
    assert map_namespace(AKS, None, order_of("aks")) == "kube-system"
    assert map_namespace(EKS, None, order_of("eks")) == ""
    assert map_namespace(EKS, Snapshot(), order_of("eks")) == ""
