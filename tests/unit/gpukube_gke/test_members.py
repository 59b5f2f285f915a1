"""Members of live pools: which of them a person chose, and that none vanishes unnamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict, ParseDict  # type: ignore[import-untyped]  # ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.diff import diff_fields
from gpukube.core.fields import FieldPath
from gpukube.core.values import Disk
from gpukube_gke.pool.effects import UPDATE
from gpukube_gke.pool.fields import BINDINGS
from gpukube_gke.pool.importing import chosen_fields
from gpukube_gke.pool.members import MEMBERS, POOL_MEMBERS
from gpukube_gke.pool.observe import observe_pool
from tests.unit.gpukube_gke.edits import live_of, nested
from tests.unit.gpukube_gke.targets import desire, gke_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target

AUTH = "https://www.googleapis.com/auth/"
RANGE = "gke-train-pods-331fc160"
SUBNETWORK = "projects/ml-prod/regions/us-central1/subnetworks/train"
SENT: dict[str, Any] = {
    "name": "plain",
    "initialNodeCount": 2,
    "locations": ["us-central1-a"],
    "config": {
        "machineType": "g2-standard-8",
        "accelerators": [{"acceleratorCount": "1", "acceleratorType": "nvidia-l4"}],
    },
}
"""What somebody asked for."""
RECORDED: dict[str, Any] = {
    "name": "plain",
    "etag": "d9c380dd-9dd4-4d32-8d99-abfb1c62ba68",
    "initialNodeCount": 2,
    "instanceGroupUrls": ["https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroupManagers/g"],
    "locations": ["us-central1-a"],
    "management": {"autoRepair": True, "autoUpgrade": True},
    "maxPodsConstraint": {"maxPodsPerNode": "110"},
    "networkConfig": {
        "networkTierConfig": {"networkTier": "NETWORK_TIER_DEFAULT"},
        "podIpv4CidrBlock": "10.8.0.0/14",
        "podIpv4RangeUtilization": 0.002,
        "podRange": RANGE,
        "subnetwork": SUBNETWORK,
    },
    "podIpv4CidrSize": 24,
    "selfLink": "https://container.googleapis.com/v1/projects/p/zones/z/clusters/train/nodePools/plain",
    "status": "RUNNING",
    "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"},
    "version": "1.33.12-gke.1000000",
    "config": {
        "bootDisk": {"diskType": "pd-balanced", "sizeGb": "100"},
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "effectiveCgroupMode": "EFFECTIVE_CGROUP_MODE_V2",
        "imageType": "COS_CONTAINERD",
        "kubeletConfig": {"maxParallelImagePulls": 2},
        "machineType": "g2-standard-8",
        "metadata": {"disable-legacy-endpoints": "true"},
        "oauthScopes": [
            f"{AUTH}{scope}"
            for scope in (
                "devstorage.read_only",
                "logging.write",
                "monitoring",
                "service.management.readonly",
                "servicecontrol",
                "trace.append",
            )
        ],
        "resourceLabels": {"goog-gke-node-pool-provisioning-model": "on-demand"},
        "serviceAccount": "default",
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
        "windowsNodeConfig": {},
        "accelerators": [
            {
                "acceleratorCount": "1",
                "acceleratorType": "nvidia-l4",
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
            }
        ],
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    },
}
"""What GKE 1.33 shows of it (recorded by cloud-barista in August 2026); the GPU's part is from magic-modules#12027."""
CLUSTER: dict[str, Any] = {
    "ipAllocationPolicy": {"clusterIpv4CidrBlock": "10.8.0.0/14", "clusterSecondaryRangeName": RANGE},
    "networkConfig": {"subnetwork": SUBNETWORK},
    "nodePoolDefaults": {"nodeConfigDefaults": {"loggingConfig": {"variantConfig": {"variant": "DEFAULT"}}}},
}


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of values, as members are named: the one accelerator is a message."""
    inner = value[0] if path[-1:] == ("accelerators",) and isinstance(value, list) else value
    if isinstance(inner, dict) and inner:
        for name, below in inner.items():
            yield from leaves(below, (*path, name))
    else:
        yield path


def chosen(pool: Mapping[str, object], cluster: Mapping[str, object] | None = None) -> dict[str, object]:
    return {one.path: one.value for one in POOL_MEMBERS.chosen(observe_pool(pool, None, cluster or {}))}


def with_config(**config: object) -> dict[str, Any]:
    return {**RECORDED, "config": {**RECORDED["config"], **config}}


def test_pool_when_made_with_a_type_and_a_size_then_only_these_are_chosen() -> None:
    found = POOL_MEMBERS.chosen(observe_pool(RECORDED, None, CLUSTER))
    assert {one.wire for one in found} == {path for path in leaves(SENT) if path != ("name",)}


NO_RESERVATION = {"consumeReservationType": "NO_RESERVATION"}
CHOSEN: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "no repair": ({**RECORDED, "management": {"autoUpgrade": True}}, {"gke.management.autoRepair": False}),
    "no integrity monitoring": (
        with_config(shieldedInstanceConfig={"enableSecureBoot": True}),
        {
            "gke.config.shieldedInstanceConfig.enableSecureBoot": True,
            "gke.config.shieldedInstanceConfig.enableIntegrityMonitoring": False,
        },
    ),
    "no surge": (
        {**RECORDED, "upgradeSettings": {"maxUnavailable": 1, "strategy": "SURGE"}},
        {"upgrade.maxSurge": 0, "upgrade.maxUnavailable": 1},
    ),
    "blue-green": (
        {**RECORDED, "upgradeSettings": {"strategy": "BLUE_GREEN"}},
        {"gke.upgradeSettings.strategy": "BLUE_GREEN"},
    ),
    "bounds of an autoscaler that is off": ({**RECORDED, "autoscaling": {"maxNodeCount": 3}}, {}),
    "labels": (
        with_config(labels={"team": "a", "empty": "", "gpukube.io/owner": "o", "cloud.google.com/gke-spot": "true"}),
        {"labels[team]": "a", "labels[empty]": ""},
    ),
    "resource labels": (
        with_config(resourceLabels={"cost": "1", "goog-gke-accelerator-type": "l4", "gpukube_owner": "o"}),
        {"tags[cost]": "1"},
    ),
    "metadata": (
        with_config(metadata={"disable-legacy-endpoints": "false", "owner": "me"}),
        {"gke.config.metadata.disable-legacy-endpoints": "false", "gke.config.metadata.owner": "me"},
    ),
    "a taint": (
        with_config(taints=[{"key": "a", "effect": "NO_SCHEDULE"}, *RECORDED["config"]["taints"]]),
        {"taints": [{"key": "a", "effect": "NO_SCHEDULE"}]},
    ),
    "kernel": (
        with_config(linuxNodeConfig={"sysctls": {"net.core.somaxconn": "4096"}, "hugepages": {"hugepageSize2m": 8}}),
        {"sysctls[net.core.somaxconn]": "4096", "hugepages.2Mi": 8},
    ),
    "quotas off": (with_config(kubeletConfig={"cpuCfsQuota": False}), {"kubelet.cpuCFSQuota": False}),
    "the only disk of a machine": (with_config(machineType="a4-highgpu-8g", diskType="hyperdisk-balanced"), {}),
    "a better disk": (with_config(diskType="hyperdisk-balanced"), {"disk.type": "hyperdisk-balanced"}),
    "a sandbox": (
        with_config(sandboxConfig={"type": "GVISOR"}), {"gke.config.sandboxConfig": {"type": "GVISOR"}},
    ),
    "tomorrow's member": (with_config(timeMachine={"year": 1985}), {"gke.config.timeMachine.year": 1985}),
    "flex-start": (
        {
            **with_config(flexStart=True, maxRunDuration="3600s", reservationAffinity=NO_RESERVATION),
            "management": {"autoUpgrade": True},
            "upgradeSettings": {"strategy": "SHORT_LIVED"},
            "autoscaling": {"enabled": True, "totalMaxNodeCount": 3, "locationPolicy": "ANY"},
        },
        {"capacity.reserved.gke.flexStart": True, "nodes.autoscaling": True, "nodes.autoscaling.max": 3},
    ),
    "flex-start as Cluster Toolkit makes it": (
        {
            **with_config(flexStart=True, reservationAffinity=NO_RESERVATION),
            "management": {"autoUpgrade": True},
            "upgradeSettings": {"strategy": "SURGE", "maxUnavailable": 1},
            "autoscaling": {"enabled": True, "totalMaxNodeCount": 3, "locationPolicy": "ANY"},
        },
        {"capacity.reserved.gke.flexStart": True, "nodes.autoscaling": True, "nodes.autoscaling.max": 3},
    ),
}  # fmt: skip
"""Pool as read -> what is chosen besides what every pool has."""
EVERY = {"nodes.count", "zones", "instanceType", "gpu.model", "gpu.count"}


@pytest.mark.parametrize("name", CHOSEN)
def test_member_when_a_person_set_it_then_it_is_chosen(name: str) -> None:
    pool, expected = CHOSEN[name]
    assert {path: value for path, value in chosen(pool, CLUSTER).items() if path not in EVERY} == expected


def test_member_when_the_cluster_gives_it_to_every_pool_then_nobody_chose_it() -> None:
    pool = {**with_config(workloadMetadataConfig={"mode": "GKE_METADATA"}, gcfsConfig={"enabled": True})}
    pool["networkConfig"] = {**pool["networkConfig"], "enablePrivateNodes": True}
    given = {
        **CLUSTER,
        "networkConfig": {"subnetwork": SUBNETWORK, "defaultEnablePrivateNodes": True},
        "workloadIdentityConfig": {"workloadPool": "ml-prod.svc.id.goog"},
        "nodePoolDefaults": {"nodeConfigDefaults": {"gcfsConfig": {"enabled": True}}},
    }
    own = {
        "gke.config.workloadMetadataConfig.mode": "GKE_METADATA",
        "gke.config.gcfsConfig.enabled": True,
        "gke.networkConfig.enablePrivateNodes": True,
    }
    assert {path for path in chosen(pool, given) if path not in EVERY} == set()
    assert {path: value for path, value in chosen(pool, CLUSTER).items() if path not in EVERY} == own


def test_settings_when_the_cluster_has_them_for_the_kubelet_then_nobody_chose_them() -> None:
    pool = with_config(kubeletConfig={"insecureKubeletReadonlyPortEnabled": False})
    given = {"nodePoolDefaults": {"nodeConfigDefaults": {"nodeKubeletConfig": pool["config"]["kubeletConfig"]}}}
    name = "gke.config.kubeletConfig.insecureKubeletReadonlyPortEnabled"
    assert (name in chosen(pool, CLUSTER), name in chosen(pool, {**CLUSTER, **given})) == (True, False)


LOST: dict[str, tuple[Target, Target, list[str]]] = {
    "nothing": (gke_target(), gke_target(max_pods=64), []),
    "what the spec says otherwise": (gke_target(disk=Disk(200, None)), gke_target(disk=Disk(300, None)), []),
    "what the spec says no more": (gke_target(disk=Disk(200, "pd-ssd")), gke_target(), ["disk.sizeGiB", "disk.type"]),
    "a label that goes, as the plan shows": (gke_target(labels={"a": "1"}), gke_target(), []),
    "a tag of others": (gke_target(tags={"a": "1"}), gke_target(), ["tags[a]"]),
    "confidential": (gke_target("a3-highgpu-1g", confidential=True), gke_target("a3-highgpu-1g"), ["confidential"]),
    "kubelet and kernel": (
        gke_target(kubelet={"cpuManagerPolicy": "static"}, sysctls={"fs.nr_open": "9"}, hugepages={"1Gi": 1}),
        gke_target(kubelet={"podPidsLimit": 4096}),
        ["sysctls[fs.nr_open]", "hugepages.1Gi", "kubelet.cpuManagerPolicy"],
    ),
    "metadata": (
        gke_target(native=nested("config.metadata", {"owner": "me", "x": "y"})),
        gke_target(native=nested("config.metadata", {"x": "z"})),
        ["gke.config.metadata.owner"],
    ),
    "no integrity monitoring, there as here": (
        gke_target(native=nested("config.shieldedInstanceConfig.enableSecureBoot", value=True)),
        gke_target(native=nested("config.shieldedInstanceConfig.enableSecureBoot", value=False)),
        [],
    ),
    "no repair": (
        gke_target(native=nested("management.autoRepair", value=False)), gke_target(), ["gke.management.autoRepair"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_member_when_a_new_pool_would_not_have_it_then_it_is_lost(name: str) -> None:
    base, target, expected = LOST[name]
    lost = POOL_MEMBERS.lost(live_of(base), desire(target))
    assert sorted(one.path for one in lost) == sorted(expected)


def test_fields_when_compared_with_the_table_are_members_of_the_spec() -> None:
    written = {".".join(step for step in row.wire if isinstance(step, str)) for row in BINDINGS if row.wire}
    fields = {path.removesuffix(".*") for path, member in MEMBERS.items() if member.kind == "field" or member.write}
    assert {path for path in written if not any(f"{name}.".startswith(f"{path}.") for name in fields)} == set()


def test_native_rows_when_they_change_in_place_then_by_a_call() -> None:
    natives = {path: member for path, member in MEMBERS.items() if member.kind == "native" and member.leaf}
    assert all(member.effect and member.spec == f"gke.{path}" for path, member in natives.items())
    assert {member.effect.call for member in natives.values() if member.effect} >= {UPDATE, ""}


def samples(field: Any) -> st.SearchStrategy[object]:  # noqa: ANN401 - protobuf ships no types
    """Values of a field that is no message."""
    if field.enum_type:
        return st.sampled_from([value.name for value in field.enum_type.values][1:])
    if field.type == field.TYPE_BOOL:
        return st.booleans()
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        return st.sampled_from(["a", "b1"])
    return st.integers(1, 9)


WELL_KNOWN: dict[str, st.SearchStrategy[object]] = {
    "google.protobuf.Duration": st.sampled_from(["1s", "60s"]),
    "google.protobuf.BoolValue": st.booleans(),
    "google.protobuf.Timestamp": st.just("2026-11-28T00:00:00Z"),
}


@st.composite
def messages(draw: st.DrawFn, of: Any, depth: int = 0) -> dict[str, object]:  # noqa: ANN401 - as above
    """Draw a message with some of its members; of a oneof at most one."""
    fields = [field for field in of.fields if draw(st.integers(0, 9)) < (2 if depth else 5)]
    taken: set[str] = set()
    found: dict[str, object] = {}
    for field in fields:
        group = field.containing_oneof.name if field.containing_oneof else field.json_name
        if group in taken:
            continue
        taken.add(group)
        kind = field.message_type
        if kind and kind.GetOptions().map_entry:
            found[field.json_name] = draw(st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "x"])))
            continue
        if kind is None:
            one = samples(field)
        elif kind.full_name in WELL_KNOWN:
            one = WELL_KNOWN[kind.full_name]
        else:
            one = messages(kind, depth + 1)
        found[field.json_name] = [draw(one)] if field.is_repeated else draw(one)
    return found


NODE_POOL = wire.NodePool.pb(wire.NodePool()).DESCRIPTOR
PLAIN = desire(gke_target("g2-standard-8", zones=("us-central1-a",)))


OURS = {*leaves(PLAIN.create.params["nodePool"])}


@settings(max_examples=60)
@given(messages(NODE_POOL), st.booleans())
def test_live_pool_when_it_has_any_members_then_none_vanishes_unnamed(
    drawn: dict[str, object],
    gpu: bool,  # noqa: FBT001 - drawn
) -> None:
    base = RECORDED if gpu else {}
    pool = MessageToDict(ParseDict(drawn, wire.NodePool.pb(wire.NodePool.from_json("{}"))))
    live = {**base, **pool, "config": {**base.get("config", {}), **pool.get("config", {})}}
    observed = observe_pool(live, None, CLUSTER)
    changed = {change.field for change in diff_fields(PLAIN.fields, observed.fields)}
    told = {*chosen_fields(observed), *changed}
    lost = {one.path for one in POOL_MEMBERS.lost(observed, PLAIN)}
    for one in POOL_MEMBERS.chosen(observed):
        path = FieldPath.parse(one.path)
        named = any(path.is_below(*other) or other.is_below(*path) for other in told)
        assert named or one.path in lost or one.wire in OURS, one.path
