"""Rules of EKS beyond the folders of tests/messages: their edges, and pools that break none."""

from __future__ import annotations

import pytest

from gpukube.core.values import Capacity, Disk, Nodes, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from tests.unit.gpukube_eks.samples import eks_target

GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
BOTTLEROCKET_MIG: dict[str, object] = {"image": "bottlerocket", "sharing": Sharing(MigCut("1g.10gb", "single"))}

FINE: dict[str, tuple[str, dict[str, object]]] = {
    "a plain pool": ("g4dn.xlarge", {}),
    "a name of 63 characters": ("g4dn.xlarge", {"name": "a" * 63}),
    "capitals and underscores": ("g4dn.xlarge", {"name": "T4_Shared-1"}),
    "450 nodes": ("g4dn.xlarge", {"nodes": Nodes(1, 1, 450, autoscaled=True)}),
    "from zero": ("g4dn.xlarge", {"nodes": Nodes(0, 0, 5, autoscaled=True)}),
    "a local zone": ("g4dn.xlarge", {"zones": ("us-east-1-bos-1a",)}),
    "subnets alone": ("g4dn.xlarge", {"native": {"subnets": ["subnet-0123456789abcdef0"]}}),
    "a disk of 20 GiB": ("g4dn.xlarge", {"disk": Disk(20, "gp3")}),
    "MIG mixed on AL2023": ("p4d.24xlarge", {"sharing": Sharing(MigCut("1g.5gb", "mixed"))}),
    "MIG with media engines on AL2023": ("p4d.24xlarge", {"sharing": Sharing(MigCut("1g.5gb+me", "single"))}),
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
    "46 tags": ("g4dn.xlarge", {"tags": {f"t{number}": "" for number in range(46)}}),
    "all native members": (
        "g4dn.xlarge",
        {
            "native": {
                "nodeRole": "arn:aws-us-gov:iam::111122223333:role/path/node",
                "releaseVersion": "1.34.2-20260714",
                "updateConfig": {"maxUnavailablePercentage": 100, "updateStrategy": "DEFAULT"},
                "nodeRepairConfig": {
                    "enabled": True,
                    "maxUnhealthyNodeThresholdCount": 3,
                    "nodeRepairConfigOverrides": [
                        {"nodeMonitoringCondition": "AcceleratedHardwareReady", "repairAction": "Reboot"}
                    ],
                },
            }
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_check_when_nothing_is_wrong_finds_nothing(name: str) -> None:
    machine, changes = FINE[name]

    assert EksProvider().check(eks_target(machine, **changes)) == []


BROKEN: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a name of 64 characters": ("eks-name", "names.eks", "g4dn.xlarge", {"name": "a" * 64}),
    "the region as zone": ("eks-zone", "zones[0]", "g4dn.xlarge", {"zones": ("us-east-1",)}),
    "GB200 on Bottlerocket": ("eks-image-machine", "image", "p6e-gb200.36xlarge", {"image": "bottlerocket"}),
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
