"""What one cloud's own answers show: a healthy pool has nothing, an ill one exactly its ailment."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.doctor.check import examine
from gpukube.doctor.checks.clouds import CHECKS, cloud_checks
from gpukube.provider import load_provider
from gpukube.testing.fakes import FakeProvider
from gpukube_eks.pool.observe import observe_leftover
from gpukube_gke.diagnose import parse_version
from tests.unit.doctor.live_pools import LABELS, aks_pool, eks_pool, evidence_of, gke_pool

if TYPE_CHECKING:
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

OPT_OUT = {**LABELS, "gke-no-default-nvidia-gpu-device-plugin": "true"}
MANAGED = {"driver": "Install", "nvidia": {"managementMode": "Managed"}}
SPOT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
NO_DRIVER = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}
FIXED = {"minSize": 2, "maxSize": 2, "desiredSize": 2}
A10 = {"vmSize": "Standard_NV36ads_A10_v5"}
LEFTOVER = {
    "LaunchTemplateName": "gpukube/train/t4",
    "Tags": [
        {"Key": "gpukube.io/owner", "Value": "ml-platform"},
        {"Key": "gpukube.io/pool", "Value": "t4"},
        {"Key": "gpukube.io/nodegroup", "Value": "t4"},
    ],
}


def found_by_cloud(evidence: Evidence) -> list[str]:
    """Return the ids of the cloud's own checks that found something."""
    found = examine(evidence, cloud_checks(evidence.provider)).found
    return [item.check.id for item in found]


HEALTHY: dict[str, tuple[str, Observed]] = {
    "eks": ("eks", eks_pool()),
    "eks, a CPU group": ("eks", eks_pool(instanceTypes=["m5.large"], amiType="AL2023_x86_64_STANDARD", diskSize=20)),
    "eks, an image of one's own": ("eks", eks_pool(amiType="CUSTOM", instanceTypes=["g7.2xlarge"])),
    "eks, Bottlerocket": ("eks", eks_pool(amiType="BOTTLEROCKET_x86_64_NVIDIA")),
    "eks, a fixed size without the autoscaler's label": ("eks", eks_pool(labels=LABELS, scalingConfig=FIXED)),
    "eks, two types of one GPU": ("eks", eks_pool(instanceTypes=["g4dn.xlarge", "g4dn.2xlarge"])),
    "eks, eight GPUs, updated one by one": ("eks", eks_pool(instanceTypes=["p4d.24xlarge"])),
    "eks, a small machine with surge": ("eks", eks_pool(updateConfig={"updateStrategy": "DEFAULT"})),
    "eks, a disk that is just large enough": ("eks", eks_pool(diskSize=50)),
    "eks, four GPUs with surge": (
        "eks",
        eks_pool(instanceTypes=["g4dn.12xlarge"], updateConfig={"updateStrategy": "DEFAULT"}),
    ),
    "eks, a taint without a value on a group that is never empty": (
        "eks",
        eks_pool(
            taints=[{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}],
            scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 1},
        ),
    ),
    "aks": ("aks", aks_pool()),
    "aks, A10 with the first good image": ("aks", aks_pool(**A10, nodeImageVersion="AKSUbuntu-202606.08.1")),
    "aks, Container Linux on amd64": ("aks", aks_pool(osSKU="AzureContainerLinux")),
    "aks, not cut, with a label for a MIG manager": (
        "aks",
        aks_pool(vmSize="Standard_ND96asr_v4", nodeLabels={"nvidia.com/mig.config": "all-1g.5gb"}),
    ),
    "aks, no driver, and not managed": ("aks", aks_pool(gpuProfile={"driver": "None"})),
    "gke, MPS on the first nodes that know it": (
        "gke",
        gke_pool({"gpuSharingConfig": {"gpuSharingStrategy": "MPS"}, "pool": {"version": "1.27.7-gke.1088000"}}),
    ),
    "gke, time-sharing on old nodes": (
        "gke",
        gke_pool({"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING"}, "pool": {"version": "1.26.1-gke.1"}}),
    ),
    "aks, managed": ("aks", aks_pool(gpuProfile=MANAGED)),
    "aks, cut": ("aks", aks_pool(vmSize="Standard_ND96asr_v4", gpuInstanceProfile="MIG1g")),
    "aks, Spot": ("aks", aks_pool(scaleSetPriority="Spot", spotMaxPrice=-1.0, nodeTaints=[SPOT])),
    "aks, Spot at any price": ("aks", aks_pool(scaleSetPriority="Spot", spotMaxPrice=99.0, nodeTaints=[SPOT])),
    "aks, A10 with a good image": ("aks", aks_pool(**A10)),
    "aks, a T4 with the image that A10 cannot bear": ("aks", aks_pool(nodeImageVersion="AKSUbuntu-202607.02.0")),
    "aks, an image of no known form": ("aks", aks_pool(**A10, nodeImageVersion="custom")),
    "aks, a CPU pool of mode System": ("aks", aks_pool(vmSize="Standard_D4s_v5", mode="System", osSKU="Flatcar")),
    "gke": ("gke", gke_pool()),
    "gke, a CPU pool": ("gke", gke_pool(accelerators=None, oauthScopes=None, taints=None)),
    "gke, shared": ("gke", gke_pool({"gpuSharingConfig": {"gpuSharingStrategy": "MPS"}})),
    "gke, a plugin of one's own": ("gke", gke_pool(NO_DRIVER, labels=OPT_OUT)),
    "gke, driver unset on a new version": ("gke", gke_pool({"gpuDriverInstallationConfig": None})),
    "gke, another taint": (
        "gke",
        gke_pool(taints=[{"key": "dedicated", "value": "x", "effect": "NO_SCHEDULE"}]),
    ),
    "gke, still being made": ("gke", gke_pool({"pool": {"status": "PROVISIONING"}}, taints=None)),
    "gke, a driver of one's own, which needs no storage": ("gke", gke_pool(NO_DRIVER, oauthScopes=[])),
    "gke, an autoprovisioned pool of nobody": (
        "gke",
        gke_pool({"pool": {"autoscaling": {"enabled": True, "autoprovisioned": True}}}, labels={}),
    ),
}

ILL: dict[str, tuple[Observed, str]] = {
    "the standard image on a GPU machine": (
        eks_pool(amiType="AL2023_x86_64_STANDARD"),
        "eks-image-without-driver",
    ),
    "Bottlerocket without NVIDIA": (eks_pool(amiType="BOTTLEROCKET_x86_64"), "eks-image-without-driver"),
    "Amazon Linux 2 without a driver": (eks_pool(amiType="AL2_x86_64"), "eks-image-without-driver"),
    "Amazon Linux 2 with a driver": (eks_pool(amiType="AL2_x86_64_GPU"), "eks-image-retired"),
    "G7 on a stock image": (eks_pool(instanceTypes=["g7.2xlarge"]), "eks-g7-driver"),
    "our plugin's label on Bottlerocket": (
        eks_pool(
            amiType="BOTTLEROCKET_x86_64_NVIDIA",
            labels={"gpukube.io/advertiser": "chart", "k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"},
        ),
        "eks-bottlerocket-labels",
    ),
    "a config label on Bottlerocket": (
        eks_pool(
            amiType="BOTTLEROCKET_x86_64_NVIDIA",
            labels={"nvidia.com/device-plugin.config": "ts4", "k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"},
        ),
        "eks-bottlerocket-labels",
    ),
    "no accelerator label": (eks_pool(labels=LABELS), "eks-accelerator-label"),
    "a taint without a value": (
        eks_pool(taints=[{"key": "nvidia.com/gpu", "effect": "NO_EXECUTE"}]),
        "eks-autoscaler-taint",
    ),
    "types with different GPUs": (eks_pool(instanceTypes=["g4dn.xlarge", "g4dn.12xlarge"]), "eks-unlike-types"),
    "a template without its group": (observe_leftover(LEFTOVER), "eks-template-leftover"),
    "a disk of 20 GiB": (eks_pool(diskSize=20), "eks-small-disk"),
    "surge of machines with eight GPUs": (
        eks_pool(instanceTypes=["p5.48xlarge"], updateConfig={"updateStrategy": "DEFAULT"}),
        "eks-surge",
    ),
    "our plugin's label on a managed pool": (
        aks_pool(gpuProfile=MANAGED, nodeLabels={**LABELS, "gpukube.io/advertiser": "chart", "team": "x"}),
        "aks-managed-plugin",
    ),
    "a config label on a managed pool": (
        aks_pool(gpuProfile=MANAGED, nodeLabels={"nvidia.com/device-plugin.config": "ts4"}),
        "aks-managed-plugin",
    ),
    "a managed pool that is autoscaled": (
        aks_pool(gpuProfile=MANAGED, enableAutoScaling=True, minCount=1, maxCount=2),
        "aks-managed-autoscaling",
    ),
    "a managed pool without a driver": (aks_pool(gpuProfile={**MANAGED, "driver": "None"}), "aks-managed-driver"),
    "T4 to be cut": (aks_pool(gpuInstanceProfile="MIG1g"), "aks-mig-size"),
    "two that cut": (
        aks_pool(
            vmSize="Standard_ND96asr_v4", gpuInstanceProfile="MIG1g", nodeLabels={"nvidia.com/mig.config": "all-1g.5gb"}
        ),
        "aks-two-cutters",
    ),
    "Spot without its taint": (aks_pool(scaleSetPriority="Spot"), "aks-spot-taint"),
    "Spot for a cent": (aks_pool(scaleSetPriority="Spot", spotMaxPrice=0.01, nodeTaints=[SPOT]), "aks-spot-price"),
    "machines that are kept": (aks_pool(scaleDownMode="Deallocate"), "aks-deallocate"),
    "the retired tag": (aks_pool(tags={"SkipGPUDriverInstall": "true"}), "aks-retired-tag"),
    "A10 with an old image": (
        aks_pool(**A10, nodeImageVersion="AKSUbuntu-2204gen2containerd-202605.20.0"),
        "aks-a10-image",
    ),
    "A10 with the image of two halves": (
        aks_pool(**A10, nodeImageVersion="AKSUbuntu-2204gen2containerd-202607.02.0"),
        "aks-a10-image",
    ),
    "Flatcar": (aks_pool(osSKU="Flatcar"), "aks-system-without-driver"),
    "a GPU pool of mode System": (aks_pool(mode="System"), "aks-system-mode"),
    "a stopped pool": (aks_pool(powerState={"code": "Stopped"}), "aks-stopped"),
    "sharing without GKE's plugin": (
        gke_pool({"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING"}, **NO_DRIVER}, labels=OPT_OUT),
        "gke-sharing-without-plugin",
    ),
    "a driver that nobody finishes": (gke_pool(labels=OPT_OUT), "gke-driverless"),
    "a driver that nobody finishes, unset": (
        gke_pool({"gpuDriverInstallationConfig": None}, labels=OPT_OUT),
        "gke-driverless",
    ),
    "no taint": (gke_pool(taints=None), "gke-taint"),
    "no storage scope": (
        gke_pool(oauthScopes=["https://www.googleapis.com/auth/logging.write"]),
        "gke-scopes",
    ),
    "a cut that GKE's plugin does not know": (
        gke_pool({"acceleratorType": "nvidia-tesla-a100", "gpuPartitionSize": "4g.20gb"}, machineType="a2-highgpu-1g"),
        "gke-partition",
    ),
    "MPS on old nodes": (
        gke_pool(
            {"gpuSharingConfig": {"gpuSharingStrategy": "MPS"}, "pool": {"version": "1.27.7-gke.1056000"}},
        ),
        "gke-mps-version",
    ),
    "a pool of ours that GKE owns": (
        gke_pool({"pool": {"autoscaling": {"enabled": True, "autoprovisioned": True}}}),
        "gke-autoprovisioned",
    ),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_pool_when_healthy_then_nothing_is_found(case: str) -> None:
    provider, pool = HEALTHY[case]
    assert found_by_cloud(evidence_of(provider, pool)) == []


@pytest.mark.parametrize("case", ILL)
def test_pool_when_ill_then_exactly_that_is_found(case: str) -> None:
    pool, check = ILL[case]
    assert found_by_cloud(evidence_of(check.partition("-")[0], pool)) == [check]


VERSIONS = {
    ("1.29.9", "1.29.9-gke.1"): ["gke-default-driver"],
    ("1.30.1", "1.30.1-gke.1100000"): ["gke-default-driver"],
    ("1.30.1", "1.29.9-gke.1"): [],
    ("1.30.1", "1.30.1-gke.1156000"): [],
    ("1.30.2", "1.29.9-gke.1"): [],
    ("", ""): [],
}
"""(control plane, nodes) -> what is found; the control plane's build number is not known, and at least the nodes'."""


@pytest.mark.parametrize("versions", VERSIONS)
def test_driver_when_unset_then_the_control_planes_version_decides(versions: tuple[str, str]) -> None:
    pool = gke_pool({"gpuDriverInstallationConfig": None, "pool": {"version": versions[1]}})
    evidence = evidence_of("gke", pool)
    assert evidence.facts is not None
    evidence = replace(evidence, facts=replace(evidence.facts, kubernetes_version=versions[0]))
    assert found_by_cloud(evidence) == VERSIONS[versions]


def test_driver_when_the_pool_has_no_gpus_then_no_version_is_too_old_for_it() -> None:
    pool = gke_pool({"pool": {"version": "1.29.9-gke.1"}}, accelerators=None, taints=None)
    evidence = evidence_of("gke", pool)
    assert evidence.facts is not None
    assert found_by_cloud(replace(evidence, facts=replace(evidence.facts, kubernetes_version="1.29.9"))) == []


def test_checks_when_listed_then_each_of_a_cloud_has_a_case() -> None:
    checks = {check.id for name in ("aks", "eks", "gke") for check in cloud_checks(load_provider(name))}
    assert checks == {check for _, check in ILL.values()} | {"gke-default-driver"}


def test_ailments_when_told_then_with_place_evidence_command_and_link() -> None:
    told = re.compile(r"az aks |aws (eks|ec2) |gcloud container |make a |gpukube pool |for a driver ")
    for pool, check in ILL.values():
        (found,) = examine(evidence_of(check.partition("-")[0], pool), cloud_checks(load_provider(check[:3]))).found
        ailment = found.finding
        assert str(ailment.where).startswith("pool train-")
        assert ailment.evidence
        assert told.search(ailment.fix), ailment.fix
        assert not ailment.seen.endswith(".")
        assert found.finding.why
        assert found.check.link.startswith("https://")


COMMANDS = {
    "our plugin's label on Bottlerocket": "aws eks update-nodegroup-config --cluster-name train --nodegroup-name t4 "
    "--region us-east-1 --labels removeLabels=gpukube.io/advertiser",
    "our plugin's label on a managed pool": "--labels gpukube.io/owner=ml-platform gpukube.io/pool=t4 team=x",
    "Spot without its taint": f"--node-taints nvidia.com/gpu=present:NoSchedule,{SPOT}",
    "a driver that nobody finishes": "--node-labels gpukube.io/owner=ml-platform,gpukube.io/pool=t4;",
    "two that cut": '--subscription 11111111-2222-3333-4444-555555555555 --labels ""',
    "no taint": "gcloud container node-pools update t4 --cluster train --location us-central1-a --project ml-prod "
    "--node-taints nvidia.com/gpu=present:NoSchedule",
    "a stopped pool": "az aks nodepool start --resource-group ml --cluster-name train --name t4 --subscription 1111",
}
"""Updates of labels and taints replace all of them, so the command names those that stay."""


@pytest.mark.parametrize("case", COMMANDS)
def test_remedy_when_told_then_the_command_keeps_what_is_not_meant(case: str) -> None:
    pool, check = ILL[case]
    (found,) = examine(evidence_of(check.partition("-")[0], pool), cloud_checks(load_provider(check[:3]))).found
    assert COMMANDS[case] in found.finding.fix


def test_severity_when_a_label_only_does_nothing_then_a_warning() -> None:
    severities = {}
    for case in (
        "our plugin's label on Bottlerocket",
        "a config label on Bottlerocket",
        "our plugin's label on a managed pool",
        "a config label on a managed pool",
    ):
        pool, check = ILL[case]
        (found,) = examine(evidence_of(check[:3], pool), cloud_checks(load_provider(check[:3]))).found
        severities[case] = found.finding.severity
    assert list(severities.values()) == ["error", "warning", "error", "warning"]


def test_cloud_when_it_brings_no_diagnosis_then_its_checks_are_none_and_the_common_ones_find_nothing() -> None:
    evidence = replace(evidence_of("aks", aks_pool(provisioningState="Failed")), provider=FakeProvider())
    assert cloud_checks(FakeProvider()) == ()
    assert examine(evidence, CHECKS).found == ()


def test_cloud_when_it_could_not_be_asked_then_its_checks_find_nothing() -> None:
    evidence = evidence_of("eks", eks_pool(amiType="AL2_x86_64"), facts=None)
    assert found_by_cloud(evidence) == []


def test_version_when_read_then_as_many_numbers_as_there_are() -> None:
    assert parse_version("1.30.1-gke.1156000") == (1, 30, 1, 1156000)
    assert parse_version("1.30.1") == (1, 30, 1)
    assert parse_version("latest") == ()
