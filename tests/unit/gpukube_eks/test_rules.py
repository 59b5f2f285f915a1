"""Rules of EKS beyond the folders of tests/messages: their edges, and pools that break none."""

from __future__ import annotations

import botocore.session
import pytest

from gpukube.core.values import Capacity, ClusterRef, Disk, Nodes, Reservation, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from gpukube_eks.facts.regions import REGIONS
from tests.unit.gpukube_eks.samples import eks_target

GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
BLOCK = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-0123456789abcdef0"))
GROUP_ELSEWHERE = Capacity(
    "reserved",
    reservation=Reservation("capacityReservation", "arn:aws:resource-groups:eu-west-1:111122223333:group/gpus"),
)
ODCR = Capacity("reserved", reservation=Reservation("capacityReservation", "cr-0123456789abcdef0"))
GROUPED = Capacity(
    "reserved", reservation=Reservation("capacityReservation", "arn:aws:resource-groups:us-east-1:1:group/y")
)
FROM_ZERO = Nodes(0, 0, 64, autoscaled=True)
AB = ("us-east-1a", "us-east-1b")
GPU_TAG = "k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"
BOTTLEROCKET_MIG: dict[str, object] = {"image": "bottlerocket", "sharing": Sharing(MigCut("1g.10gb", "single"))}

FINE: dict[str, tuple[str, dict[str, object]]] = {
    "a plain pool": ("g4dn.xlarge", {}),
    "a name of 63 characters": ("g4dn.xlarge", {"name": "a" * 63}),
    "capitals and underscores": ("g4dn.xlarge", {"name": "T4_Shared-1"}),
    "450 nodes": ("g4dn.xlarge", {"nodes": Nodes(1, 1, 450, autoscaled=True)}),
    "from zero": ("g4dn.xlarge", {"nodes": Nodes(0, 0, 5, autoscaled=True)}),
    "a local zone": ("g4dn.xlarge", {"zones": ("us-east-1-bos-1a",)}),
    "subnets alone": ("g4dn.xlarge", {"native": {"subnets": ["subnet-0123456789abcdef0"]}}),
    "a disk of 50 GiB": ("g4dn.xlarge", {"disk": Disk(50, "gp3")}),
    "MIG mixed on AL2023": ("p5.48xlarge", {"sharing": Sharing(MigCut("1g.10gb", "mixed"))}),
    "MIG with media engines on AL2023": ("p5.48xlarge", {"sharing": Sharing(MigCut("1g.10gb+me", "single"))}),
    "a block of 64 from zero": (
        "p5.48xlarge",
        {"capacity": BLOCK, "nodes": FROM_ZERO, "zones": AB[:1], "high_speed": True},
    ),
    "a block in a zone that AWS tells": ("p5.48xlarge", {"capacity": BLOCK, "nodes": FROM_ZERO, "high_speed": True}),
    "a reservation of any type": ("g4dn.xlarge", {"capacity": ODCR, "upgrade": Upgrade("0", "100%")}),
    "reservations of several zones": ("g4dn.xlarge", {"capacity": GROUPED, "zones": AB}),
    "a surge of machines that are not scarce": ("g4dn.xlarge", {"upgrade": Upgrade("33%", "100")}),
    "Spot of a small machine": ("g4dn.xlarge", {"capacity": Capacity("spot"), "upgrade": Upgrade("1", "1%")}),
    "110 pods on 16 vCPUs": ("g4dn.4xlarge", {"max_pods": 110}),
    "250 pods on 32 vCPUs": ("g4dn.8xlarge", {"max_pods": 250}),
    "a minor version with its release": (
        "g4dn.xlarge",
        {"kubernetes_version": "1.34", "native": {"releaseVersion": "1.34.2-20260714"}},
    ),
    "MPS on the first Bottlerocket with it": (
        "g6.xlarge",
        {
            "image": "bottlerocket",
            "sharing": Sharing(None, Slicing("mps", 8)),
            "native": {"releaseVersion": "1.54.0-ab12cd34"},
        },
    ),
    "MIG on the first Bottlerocket with it": (
        "p4de.24xlarge",
        {**BOTTLEROCKET_MIG, "native": {"releaseVersion": "1.34.0-ab12cd34"}},
    ),
    "time-slicing on the first Bottlerocket with it": (
        "g4dn.xlarge",
        {
            "image": "bottlerocket",
            "sharing": Sharing(None, Slicing("time-slicing", 4)),
            "native": {"releaseVersion": "1.25.0-ab12cd34"},
        },
    ),
    "an old release for whole GPUs": (
        "g4dn.xlarge",
        {"image": "bottlerocket", "native": {"releaseVersion": "1.20.0-ab12cd34"}},
    ),
    "an old Bottlerocket for old GPUs": ("g4dn.xlarge", {"image": "bottlerocket", "kubernetes_version": "1.33"}),
    "four GPUs with a surge": ("g6.12xlarge", {"upgrade": Upgrade("1")}),
    "four GPUs on Spot": ("g6.12xlarge", {"capacity": Capacity("spot")}),
    "a role of the account": ("g4dn.xlarge", {"native": {"nodeRole": "arn:aws:iam::111122223333:role/x"}}),
    "RTX PRO 6000 on Bottlerocket with driver 580": (
        "g7e.2xlarge",
        {"image": "bottlerocket", "kubernetes_version": "1.34"},
    ),
    "a tag of what the nodes show": (
        "g4dn.xlarge",
        {"tags": {GPU_TAG: "4"}, "sharing": Sharing(None, Slicing("time-slicing", 4))},
    ),
    "a tag for the autoscaler of no NVIDIA device": (
        "g4dn.xlarge",
        {"tags": {"k8s.io/cluster-autoscaler/node-template/resources/vpc.amazonaws.com/efa": "4"}},
    ),
    "shared GPUs from zero on 1.28": (
        "g4dn.xlarge",
        {"kubernetes_version": "1.28", "nodes": FROM_ZERO, "sharing": Sharing(None, Slicing("time-slicing", 4))},
    ),
    "whole GPUs from zero on 1.27": ("g4dn.xlarge", {"kubernetes_version": "1.27", "nodes": FROM_ZERO}),
    "shared GPUs on 1.27 that are always there": (
        "g4dn.xlarge",
        {
            "kubernetes_version": "1.27",
            "nodes": Nodes(1, 1, 3, autoscaled=True),
            "sharing": Sharing(None, Slicing("time-slicing", 4)),
        },
    ),
    "MIG on Bottlerocket, A100-80GB": ("p4de.24xlarge", BOTTLEROCKET_MIG),
    "MIG on Bottlerocket, H100": ("p5.48xlarge", BOTTLEROCKET_MIG),
    "MPS on Bottlerocket": ("g6.xlarge", {"image": "bottlerocket", "sharing": Sharing(None, Slicing("mps", 8))}),
    "MIG on g7e": ("g7e.48xlarge", {"sharing": Sharing(MigCut("1g.24gb", "single"))}),
    "Spot": ("g4dn.xlarge", {"capacity": Capacity("spot")}),
    "a label of NVIDIA's": ("g4dn.xlarge", {"labels": {"nvidia.com/mine": "x"}}),
    "labels that only look reserved": (
        "g4dn.xlarge",
        {"labels": {"mykubernetes.io/x": "y", "k8s.amazonaws.com/z": "y"}},
    ),
    "one key with two effects": (
        "g4dn.xlarge",
        {"taints": (GPU_TAINT, Taint("nvidia.com/gpu", "present", "NoExecute"))},
    ),
    "a tag at its limits": ("g4dn.xlarge", {"tags": {"k" * 128: "v" * 256, "Cost Centre": "a+b-c=d.e_f:g/h@i"}}),
    "45 tags": ("g4dn.xlarge", {"tags": {f"t{number}": "" for number in range(45)}}),
    "all native members": (
        "g4dn.xlarge",
        {
            "native": {
                "nodeRole": "arn:aws-us-gov:iam::111122223333:role/path/node",
                "releaseVersion": "1.34.2-20260714",
                "updateConfig": {"maxUnavailablePercentage": 100, "updateStrategy": "DEFAULT"},
                "nodeRepairConfig": {
                    "enabled": False,
                    "maxUnhealthyNodeThresholdCount": 3,
                    "nodeRepairConfigOverrides": [
                        {"nodeMonitoringCondition": "AcceleratedHardwareReady", "repairAction": "Reboot"}
                    ],
                },
            }
        },
    ),
}  # fmt: skip


def test_regions_when_compared_with_the_installed_botocore_then_are_its_own() -> None:
    session = botocore.session.get_session()
    partitions = ("aws", "aws-cn", "aws-us-gov")
    known = {name for one in partitions for name in session.get_available_regions("eks", partition_name=one)}
    assert known >= REGIONS


@pytest.mark.parametrize("name", FINE)
def test_check_when_nothing_is_wrong_finds_nothing(name: str) -> None:
    machine, changes = FINE[name]

    assert EksProvider().check(eks_target(machine, **changes)) == []


BROKEN: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a name of 64 characters": ("eks-name", "names.eks", "g4dn.xlarge", {"name": "a" * 64}),
    "the region as zone": ("eks-zone", "zones[0]", "g4dn.xlarge", {"zones": ("us-east-1",)}),
    "a zone of two letters": ("eks-zone", "zones[0]", "g4dn.xlarge", {"zones": ("us-east-1ab",)}),
    "a zone that no region has": ("eks-zone", "zones[0]", "g4dn.xlarge", {"zones": ("us-east-1z",)}),
    "a group of reservations elsewhere": (
        "eks-reserved-region",
        "capacity.reserved.eks.capacityReservation",
        "g4dn.xlarge",
        {"capacity": GROUP_ELSEWHERE},
    ),
    "GB200 on Bottlerocket": (
        "eks-image-machine",
        "image",
        "p6e-gb200.36xlarge",
        {"image": "bottlerocket", "capacity": BLOCK, "nodes": FROM_ZERO, "high_speed": True},
    ),
    "a disk of 19 GiB": ("eks-disk-size", "disk.sizeGiB", "g4dn.xlarge", {"disk": Disk(19, None)}),
    "MIG on Bottlerocket, RTX PRO": (
        "eks-bottlerocket-mig",
        "sharing.mig.profile",
        "g7e.48xlarge",
        {"image": "bottlerocket", "sharing": Sharing(MigCut("1g.24gb", "single"))},
    ),
    "a sub-domain of k8s.io": ("eks-label", 'labels["a.k8s.io/b"]', "g4dn.xlarge", {"labels": {"a.k8s.io/b": "x"}}),
    "a taint key of 64 characters": (
        "eks-taint",
        "taints[0]",
        "g4dn.xlarge",
        {"taints": (GPU_TAINT, Taint("t" * 64, "x", "NoSchedule"))},
    ),
    "a tag value of 257 characters": ("eks-tag", 'tags["a"]', "g4dn.xlarge", {"tags": {"a": "v" * 257}}),
    "two zones of one reservation": (
        "eks-reserved-zones",
        "zones",
        "g4dn.xlarge",
        {"capacity": ODCR, "zones": AB},
    ),
    "a block of a machine with one L40S": (
        "eks-block-type",
        "capacity.reserved.eks.capacityBlock",
        "g6e.xlarge",
        {"capacity": BLOCK, "nodes": FROM_ZERO},
    ),
    "a block with a machine at least": (
        "eks-block-time",
        "nodes.autoscaling.min",
        "p5.48xlarge",
        {"capacity": BLOCK, "nodes": Nodes(1, 1, 4, autoscaled=True), "high_speed": True},
    ),
    "65 machines of a block": (
        "eks-block-size",
        "nodes.autoscaling.max",
        "p5.48xlarge",
        {"capacity": BLOCK, "nodes": Nodes(0, 0, 65, autoscaled=True), "high_speed": True},
    ),
    "a block of p5 without its network": (
        "eks-efa-unused",
        "network",
        "p5.48xlarge",
        {"capacity": BLOCK, "nodes": FROM_ZERO},
    ),
    "a surge in a block": (
        "eks-surge",
        "upgrade.maxSurge",
        "p5.48xlarge",
        {"capacity": BLOCK, "nodes": FROM_ZERO, "upgrade": Upgrade("1"), "high_speed": True},
    ),
    "a surge of eight GPUs": ("eks-surge", "upgrade.maxSurge", "g6.48xlarge", {"upgrade": Upgrade("20%")}),
    "0% at a time": ("eks-max-unavailable", "upgrade.maxUnavailable", "g4dn.xlarge", {"upgrade": Upgrade("0", "0%")}),
    "111 pods on 16 vCPUs": ("eks-max-pods", "maxPodsPerNode", "g4dn.4xlarge", {"max_pods": 111}),
    "251 pods on 32 vCPUs": ("eks-max-pods", "maxPodsPerNode", "g4dn.8xlarge", {"max_pods": 251}),
    "a release of Bottlerocket for AL2023": (
        "eks-release",
        "eks.releaseVersion",
        "g4dn.xlarge",
        {"native": {"releaseVersion": "1.57.0-ab12cd34"}},
    ),
    "a release of AL2023 for Bottlerocket": (
        "eks-release",
        "eks.releaseVersion",
        "g4dn.xlarge",
        {"image": "bottlerocket", "native": {"releaseVersion": "1.34.2-20260714"}},
    ),
    "time-slicing on a Bottlerocket without it": (
        "eks-bottlerocket-release",
        "eks.releaseVersion",
        "g4dn.xlarge",
        {
            "image": "bottlerocket",
            "sharing": Sharing(None, Slicing("time-slicing", 4)),
            "native": {"releaseVersion": "1.24.1-ab12cd34"},
        },
    ),
    "a version with a patch": ("eks-version", "kubernetesVersion", "g4dn.xlarge", {"kubernetes_version": "1.34.1"}),
    "a type of disk alone": ("eks-disk-size", "disk", "g4dn.xlarge", {"disk": Disk(None, "gp3")}),
    "a label of the kubelet's": (
        "eks-label",
        'labels["node.kubernetes.io/lifecycle"]',
        "g4dn.xlarge",
        {"labels": {"node.kubernetes.io/lifecycle": "spot"}},
    ),
    "a disk of 19 GiB for Bottlerocket's data": (
        "eks-disk-small",
        "disk.sizeGiB",
        "g4dn.xlarge",
        {"image": "bottlerocket", "disk": Disk(19, None)},
    ),
    "a disk of 49 GiB": ("eks-disk-small", "disk.sizeGiB", "g4dn.xlarge", {"disk": Disk(49, None)}),
    "another number than the nodes show": (
        "eks-resource-tag",
        f'tags["{GPU_TAG}"]',
        "g4dn.xlarge",
        {"tags": {GPU_TAG: "2"}},
    ),
    "MIG on p4de": (
        "eks-mig-reboot",
        "sharing.mig",
        "p4de.24xlarge",
        {"sharing": Sharing(MigCut("1g.10gb", "single"))},
    ),
    "a percentage of 101": (
        "eks-native-value",
        "eks.updateConfig.maxUnavailablePercentage",
        "g4dn.xlarge",
        {"native": {"updateConfig": {"maxUnavailablePercentage": 101}}},
    ),
    "count and percentage": (
        "eks-native-value",
        "eks.updateConfig.maxUnavailablePercentage",
        "g4dn.xlarge",
        {"native": {"updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 10}}},
    ),
    "no subnets": ("eks-native-value", "eks.subnets", "g4dn.xlarge", {"native": {"subnets": []}}),
    "an unknown repair": (
        "eks-native-value",
        "eks.nodeRepairConfig.nodeRepairConfigOverrides[0].repairAction",
        "g4dn.xlarge",
        {"native": {"nodeRepairConfig": {"nodeRepairConfigOverrides": [{"repairAction": "Pray"}]}}},
    ),
    "a member of a repair that there is none of": (
        "eks-native-unknown",
        "eks.nodeRepairConfig.nodeRepairConfigOverrides[0].repairActions",
        "g4dn.xlarge",
        {"native": {"nodeRepairConfig": {"nodeRepairConfigOverrides": [{"repairActions": "Reboot"}]}}},
    ),
    "repairs that are no mappings": (
        "eks-native-value",
        "eks.nodeRepairConfig.nodeRepairConfigOverrides",
        "g4dn.xlarge",
        {"native": {"nodeRepairConfig": {"nodeRepairConfigOverrides": ["Reboot"]}}},
    ),
    "101 nodes at a time": (
        "eks-native-value",
        "eks.updateConfig.maxUnavailable",
        "g4dn.xlarge",
        {"native": {"updateConfig": {"maxUnavailable": 101}}},
    ),
    "upgrade beside updateConfig": (
        "eks-native-managed",
        "eks.updateConfig",
        "g4dn.xlarge",
        {"native": {"updateConfig": {"maxUnavailable": 1}}, "upgrade": Upgrade("0")},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_check_when_a_limit_is_passed_says_where(name: str) -> None:
    code, path, machine, changes = BROKEN[name]

    (found,) = EksProvider().check(eks_target(machine, **changes))

    assert (found.code, found.where.source) == (code, f"spec.{path}")
    assert found.fix


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [(Nodes(0, 0, 128, autoscaled=True), "warning"), (Nodes(65, 65, 65, autoscaled=False), "error")],
)
def test_block_when_larger_than_a_block_then_a_bound_warns_and_a_count_fails(nodes: Nodes, severity: str) -> None:
    findings = EksProvider().check(eks_target("p5.48xlarge", capacity=BLOCK, nodes=nodes))
    assert [found.severity for found in findings if found.code == "eks-block-size"] == [severity]


CLUSTERS: dict[str, tuple[dict[str, str], str, int]] = {
    "all is well": ({"region": "us-gov-west-1", "roleArn": "arn:aws-us-gov:iam::111122223333:role/x"}, "t_1-x", 0),
    "a zone": ({"region": "eu-west-1b"}, "train", 1),
    "no region": ({"region": "Frankfurt"}, "train", 1),
    "no role": ({"region": "eu-west-1", "roleArn": "arn:aws:iam::111122223333:user/x"}, "train", 1),
    "a long name": ({"region": "eu-west-1"}, "t" * 101, 1),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_cluster_when_its_coordinates_cannot_be_is_refused_once_for_all_pools(name: str) -> None:
    identity, called, count = CLUSTERS[name]
    cluster = ClusterRef("here", "eks", called, {"account": "111122223333", **identity})

    found = [EksProvider().check(eks_target("g4dn.xlarge", cluster=cluster, name=pool)) for pool in ("one", "two")]

    assert [finding.code for finding in found[0]] == ["eks-cluster"] * count
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("cut", "offered"),
    [
        (MigCut("1g.10gb", "single"), True),
        (MigCut("1g.10gb", "mixed"), False),
        (MigCut("", "mixed", ("3g.40gb", "4g.40gb")), False),
    ],
    ids=["single", "mixed", "layout"],
)
def test_reboot_when_told_offers_bottlerocket_only_where_it_can_cut_so(cut: MigCut, offered: bool) -> None:  # noqa: FBT001 - a row
    found = {f.code: f for f in EksProvider().check(eks_target("p4de.24xlarge", sharing=Sharing(cut)))}

    assert ("bottlerocket" in found["eks-mig-reboot"].fix) == offered
