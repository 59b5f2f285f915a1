"""What a change does, field by field, and that no field of a pool is without a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import IMAGE, FieldPath
from gpukube.core.values import Capacity, Change, Disk, Nodes, Ownership, Promise, Reservation, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_aks import AksProvider
from gpukube_aks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.builders import make_observed, make_target

if TYPE_CHECKING:
    from gpukube.core.values import UpdateRow

CASES = [
    ("instanceType", "a", "b", "replace"),
    ("nodes.count", 1, 2, "in-place"),
    ("nodes.count", 2, 1, "disruptive"),
    ("nodes.count", 2, None, "in-place"),
    ("nodes.count", None, 2, "disruptive"),
    ("nodes.autoscaling.min", None, 1, "in-place"),
    ("nodes.autoscaling.max", 3, 5, "in-place"),
    ("capacity.type", "on-demand", "spot", "replace"),
    ("capacity.maxPrice", None, 1.5, "replace"),
    ("zones", ("1",), ("2",), "replace"),
    ("disk.sizeGiB", 128, 256, "replace"),
    ("disk.type", "Managed", "Ephemeral", "replace"),
    ("sharing.mig.profile", "1g.5gb", "2g.10gb", "replace"),
    ("labels[team]", "a", "b", "in-place"),
    ("labels[nvidia.com/device-plugin.config]", "c-1", "c-2", "disruptive"),
    ("labels[nvidia.com/mig.config]", None, "all-1g.5gb", "disruptive"),
    ("labels[gpukube.io/advertiser]", None, "chart", "in-place"),
    ("labels[gpukube.io/advertiser]", "chart", None, "disruptive"),
    ("labels[gpukube.io/advertiser]", "chart", "operator", "disruptive"),
    ("labels[gpukube.io/advertiser]", "chart", "dra", "replace"),
    ("labels[gpukube.io/advertiser]", "dra", None, "replace"),
    ("labels[gpukube.io/owner]", None, "me", "in-place"),
    ("taints", (), ("a=b:NoSchedule",), "in-place"),
    ("taints", (), ("a=b:NoExecute",), "disruptive"),
    ("taints", ("a=b:NoExecute",), (), "in-place"),
    ("tags[cost]", None, "x", "in-place"),
    ("deletionProtection", True, False, "in-place"),
    ("driver", "cloud", "none", "replace"),
    ("devicePlugin", None, "cloud", "replace"),
    ("image", "Ubuntu", "Ubuntu2404", "disruptive"),
    ("image", "AzureLinux", "AzureLinux3", "disruptive"),
    ("image", "Ubuntu", "AzureLinux", "disruptive"),
    ("image", "AzureLinux3", "Ubuntu2404", "disruptive"),
    ("image", "Ubuntu", "AzureContainerLinux", "disruptive"),
    ("image", "CBLMariner", "AzureLinux", "disruptive"),
    ("image", "Windows2022", "Ubuntu", "replace"),
    ("image", None, "Ubuntu", "replace"),
    ("maxPodsPerNode", 30, 60, "replace"),
    ("upgrade.maxSurge", "1", "2", "in-place"),
    ("upgrade.maxUnavailable", "0", "1", "in-place"),
    ("aks.upgradeSettings.drainTimeoutInMinutes", None, 60, "in-place"),
    ("capacity.type", "on-demand", "reserved", "replace"),
    ("capacity.reserved.aks.capacityReservationGroup", "/a", "/b", "replace"),
    ("kubernetesVersion", "1.33", "1.34", "disruptive"),
    ("kubernetesVersion", "1.9.3", "1.34", "disruptive"),
    ("kubernetesVersion", "1.34.2", "1.34", "disruptive"),
    ("kubernetesVersion", "1.34", "1.34.2", "disruptive"),
    ("kubernetesVersion", "1.34", "1.33.5", "replace"),
    ("kubernetesVersion", "1.34.2", "1.34.1", "replace"),
    ("aks.enableFIPS", None, True, "disruptive"),
    ("aks.securityProfile.sshAccess", None, "Disabled", "disruptive"),
    ("aks.localDNSProfile.mode", None, "Required", "disruptive"),
    ("aks.artifactStreamingProfile.enabled", None, True, "disruptive"),
    ("aks.networkProfile.allowedHostPorts", None, (), "in-place"),
    ("aks.networkProfile.applicationSecurityGroups", None, (), "in-place"),
    ("aks.networkProfile.dranet.mode", None, "Managed", "disruptive"),
    ("aks.networkProfile.nodePublicIPTags", None, (), "replace"),
    ("aks.messageOfTheDay", None, "x", "replace"),
    ("aks.podIPAllocationMode", None, "x", "replace"),
    ("kubelet.cpuManagerPolicy", None, "static", "replace"),
    ("sysctls[vm.swappiness]", "1", "2", "replace"),
    ("placement", "none", "/subscriptions/s", "replace"),
    ("surprise", 1, 2, "refused"),
]


@pytest.mark.parametrize(
    ("read", "new", "kind"),
    [
        ({"nodeImageVersion": "AKSUbuntu-2404gen2containerd-202608.07.0"}, "AzureLinux", "disruptive"),
        ({"nodeImageVersion": "AKSUbuntu-1804gen2gpucontainerd-202501.05.0"}, "AzureLinux", "replace"),
        ({"nodeImageVersion": "AKSUbuntu-2004gen2cvmcontainerd-202501.05.0"}, "AzureLinux", "replace"),
        ({"nodeImageVersion": "AKSUbuntu-2004gen2cvmcontainerd-202501.05.0"}, "Ubuntu2404", "disruptive"),
        ({"workloadRuntime": "KataVmIsolation"}, "AzureLinux", "replace"),
        ({"workloadRuntime": "OCIContainer"}, "AzureLinux", "disruptive"),
    ],
)
def test_image_when_the_live_pool_cannot_migrate_needs_another_pool(
    read: dict[str, object], new: str, kind: str
) -> None:
    target = make_target()
    desired = AksProvider().desired(target, Ownership("cloud", "none", "", {}, ""), Promise({}, target.nodes))
    live = make_observed(desired, native={"properties": read})
    row = AksProvider().update_row(Change(IMAGE, "Ubuntu", new), (), live)

    assert row.kind == kind
    assert bool(row.call) == (kind == "disruptive")


@pytest.mark.parametrize(("field", "old", "new", "kind"), CASES)
def test_row_when_asked_says_what_the_change_does(field: str, old: object, new: object, kind: str) -> None:
    row = find_row(Change(FieldPath.parse(field), old, new))

    assert (str(row.field), row.kind) == (field, kind)
    assert row.sentence
    assert bool(row.call) == (kind in ("in-place", "disruptive"))


@pytest.mark.parametrize("row", [*INTENT_ROWS.values(), *NATIVE_ROWS.values()], ids=lambda row: row.field)
def test_row_when_read_has_a_source_and_a_sentence_in_house_style(row: UpdateRow) -> None:
    assert row.source
    assert row.sentence
    assert not row.sentence.endswith(".")


KUBELET = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "restricted",
    "podPidsLimit": 4096,
    "cpuCFSQuota": False,
    "cpuCFSQuotaPeriod": "50ms",
    "imageGCHighThresholdPercent": 90,
    "imageGCLowThresholdPercent": 70,
    "containerLogMaxSize": "1Gi",
    "containerLogMaxFiles": 3,
    "allowedUnsafeSysctls": ("net.core.somaxconn",),
}


def test_rows_when_compared_with_every_field_of_a_full_pool_cover_all() -> None:
    target = make_target(
        nodes=Nodes(1, 1, 3, autoscaled=True),
        capacity=Capacity("spot", 2.5),
        zones=("1",),
        disk=Disk(256, "Ephemeral"),
        sharing=Sharing(MigCut("1g.5gb", "single")),
        labels={"team": "vision"},
        tags={"cost": "1"},
        plugin_owner="cloud",
        image="Ubuntu2404",
        kubernetes_version="1.34",
        max_pods=60,
        upgrade=Upgrade("1", "0"),
        placement="none",
        kubelet=KUBELET,
        sysctls={"vm.swappiness": "1"},
        native={"scaleDownMode": "Delete", "upgradeSettings": {"drainTimeoutInMinutes": 60}},
    )
    desired = AksProvider().desired(target, Ownership("cloud", "cloud", "", {}, ""), Promise({}, target.nodes))
    reserved = make_target(capacity=Capacity("reserved", reservation=Reservation("capacityReservationGroup", "/s")))
    fixed = AksProvider().desired(reserved, Ownership("cloud", "chart", "c", {}, ""), Promise({}, target.nodes))

    kinds = {field: AksProvider().update_row(Change(field, None, 1)).kind for field in [*desired.fields, *fixed.fields]}

    assert "refused" not in kinds.values()
    covered = {group(field) for field in kinds if not field.is_below("aks")}
    missing = {group(field) for field in INTENT_ROWS} - covered
    assert missing == set(), f"give these fields a value in the target of this test: {missing}"
    unlisted = covered - {group(field) for field in INTENT_ROWS}
    assert unlisted == set(), f"add rows for these fields to BINDINGS in gpukube_aks/pool/fields.py: {unlisted}"


def group(field: FieldPath) -> tuple[str, ...]:
    return field[:1] if field[0] in ("labels", "tags", "sysctls") else field
