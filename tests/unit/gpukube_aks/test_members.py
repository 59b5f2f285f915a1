"""Members of live pools: which a person chose, what an import writes of them, and what a new pool would not have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.fields import CONFIDENTIAL, PLACEMENT, FieldPath
from gpukube.core.jsontree import at
from gpukube.core.members import is_declared
from gpukube.core.values import Capacity, Nodes, Ownership, Promise
from gpukube_aks import AksProvider
from gpukube_aks.pool.importing import chosen_fields
from gpukube_aks.pool.members import MEMBERS, POOL_MEMBERS, ListOf, MapOf, native_leaves
from gpukube_aks.pool.observe import observe_pool
from gpukube_aks.pool.settings import KUBELET, SYSCTLS
from tests.builders import make_target
from tests.golden.aks.test_requests import AZ_ALWAYS, AZ_AUTOSCALED, AZ_MIG, AZ_OPTIONS, AZ_SPOT
from tests.unit.gpukube_aks.shapes import leaves
from tests.unit.gpukube_aks.test_observe import SERVER_DEFAULTS

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed, Target
    from gpukube_aks.pool.members import Shape

T4 = "Standard_NC4as_T4_v3"
POOL_ID = "/subscriptions/s/resourceGroups/ml/providers/Microsoft.ContainerService/managedClusters/train/agentPools/p"
ALWAYS_SENT = ("count", "vmSize")
ALWAYS = {"nodes.count": 1, "instanceType": T4}

# What az and Microsoft's pages show of pools that were made without any of it.
SHOWN: tuple[dict[str, object], ...] = (
    SERVER_DEFAULTS,
    {
        "currentOrchestratorVersion": "1.35.6",
        "kubeletDiskType": "OS",
        "maxPods": 250,
        "networkProfile": None,
        "orchestratorVersion": "1.35",
        "osDiskSizeGB": 128,
        "osDiskType": "Managed",
        "osSKU": "Ubuntu",
        "osType": "Linux",
        "powerState": {"code": "Running"},
        "scaleDownMode": "Delete",
        "scaleSetPriority": None,
        "securityProfile": {"enableSecureBoot": False, "enableVTPM": False, "sshAccess": "LocalUser"},
        "type": "VirtualMachineScaleSets",
        "upgradeSettings": {"maxSurge": "10%", "maxUnavailable": "0", "drainTimeoutInMinutes": None},
    },
    {"networkProfile": {"allowedHostPorts": None, "applicationSecurityGroups": None, "nodePublicIPTags": None}},
    {
        "enableNodePublicIP": False,
        "scaleSetPriority": "Regular",
        "nodeTaints": [],
        "upgradeSettings": {"undrainableNodeBehavior": "Schedule"},
        "mode": "User",
    },
)


def live(size: str = T4, /, **properties: object) -> Observed:
    found = {"count": 1, "vmSize": size, **properties}
    return observe_pool({"id": POOL_ID, "name": "p", "properties": found})


def chosen(observed: Observed) -> dict[str, object]:
    return {one.path: one.value for one in POOL_MEMBERS.chosen(observed)}


def desire(target: Target) -> Desired:
    return AksProvider().desired(target, Ownership("cloud", "none", "", {}, ""), Promise({}, target.nodes))


def lost(observed: Observed, target: Target) -> list[str]:
    return [one.path for one in POOL_MEMBERS.lost(observed, desire(target))]


@pytest.mark.parametrize("properties", SHOWN)
def test_pool_when_nobody_chose_anything_then_nothing_is_chosen(properties: dict[str, object]) -> None:
    size = "Standard_NC8ads_A10_v4"  # a size whose local disk is unknown: a managed disk may be AKS's choice
    assert chosen(live(size, **properties)) == {**ALWAYS, "instanceType": size}


CHOSEN: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    # trial of gpukube: pools made by az whose profiles an import dropped without a word
    "host ports": (
        {
            "enableNodePublicIP": True,
            "networkProfile": {
                "allowedHostPorts": [{"portStart": 80, "portEnd": 80, "protocol": "TCP"}],
                "nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
            },
        },
        {
            "enableNodePublicIP": True,
            "networkProfile": {
                "allowedHostPorts": [{"portStart": 80, "portEnd": 80, "protocol": "TCP"}],
                "nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
            },
        },
    ),
    "message of the day": ({"messageOfTheDay": "aGVsbG8="}, {"messageOfTheDay": "aGVsbG8="}),
    "local DNS": (
        {
            "localDNSProfile": {
                "mode": "Required",
                "state": "Enabled",
                "vnetDNSOverrides": {"cluster.local": {"protocol": "ForceTCP"}},
            }
        },
        {
            "localDNSProfile": {
                "mode": "Required",
                "vnetDNSOverrides": {"cluster.local": {"protocol": "ForceTCP"}},
            }
        },
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_profile_when_imported_is_in_the_spec_and_a_replacement_keeps_it(name: str) -> None:
    properties, native = CHOSEN[name]
    observed = live(**properties)

    fields = {path: value for path, value in chosen_fields(observed).items() if path[0] == "aks"}
    assert nested(fields) == native
    assert lost(observed, make_target(T4, native=native)) == []
    gone = lost(observed, make_target(T4))
    assert gone
    assert all(path.startswith("aks.") for path in gone)


def nested(fields: dict[FieldPath, object]) -> dict[str, object]:
    found: dict[str, Any] = {}
    for path, value in fields.items():
        node = found
        for step in path[1:-1]:
            node = node.setdefault(step, {})
        node[path[-1]] = list(value) if isinstance(value, tuple) else value
    return found


@pytest.mark.parametrize(
    ("properties", "path", "value"),
    [
        ({"kubeletConfig": {"cpuCfsQuota": False}}, "kubelet.cpuCFSQuota", False),
        ({"kubeletConfig": {"failSwapOn": False}}, "aks.kubeletConfig.failSwapOn", False),
        ({"kubeletConfig": {"containerLogMaxSizeMB": 1024}}, "kubelet.containerLogMaxSize", 1024),
        ({"linuxOSConfig": {"sysctls": {"netIpv4TcpTwReuse": False}}}, "sysctls[net.ipv4.tcp_tw_reuse]", False),
        ({"osDiskSizeGB": 100, "osDiskType": "Managed"}, "disk.type", "Managed"),
        ({"upgradeSettings": {"drainTimeoutInMinutes": 60}}, "aks.upgradeSettings.drainTimeoutInMinutes", 60),
        ({"proximityPlacementGroupID": "/subscriptions/S"}, "placement", "/subscriptions/S"),
        ({"nodeLabels": {"team": ""}}, "labels[team]", ""),
        ({"tags": {"a.b": "c"}}, "tags[a.b]", "c"),
        ({"mode": "System"}, "aks.mode", "System"),
        ({"powerState": {"code": "Stopped"}}, "aks.powerState", {"code": "Stopped"}),
        ({"gpuProfile": {"nvidia": {"migStrategy": "Mixed"}}}, "aks.gpuProfile.nvidia.migStrategy", "Mixed"),
    ],
)
def test_member_when_it_differs_from_what_aks_fills_in_is_chosen(
    properties: dict[str, object], path: str, value: object
) -> None:
    assert chosen(live(**properties)).items() >= {path: value}.items()


@pytest.mark.parametrize(
    "properties",
    [
        {"nodeLabels": {"kubernetes.azure.com/scalesetpriority": "spot", "agentpool": "p", "gpukube.io/owner": "o"}},
        {"nodeTaints": ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]},
        {"tags": {"gpukube_owner": "o", "gpukube_pool": "p"}},
        {"osDiskType": "Ephemeral", "osDiskSizeGB": 176},  # all of the machine's room
        {"osDiskType": "Managed", "osDiskSizeGB": 256},  # no room for an ephemeral one
        {"orchestratorVersion": "1.34.2"},
        {"gpuProfile": {"driverType": ""}},
    ],
)
def test_member_when_aks_or_gpukube_made_it_is_not_chosen(properties: dict[str, object]) -> None:
    found = chosen(live(**properties))
    assert {path: one for path, one in found.items() if path != "disk.sizeGiB"} == ALWAYS


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ({"kubeletConfig": {"cpuCfsQuotaPeriod": "1500ns"}}, "kubelet.cpuCFSQuotaPeriod"),
        ({"kubeletConfig": {"cpuCfsQuotaPeriod": "10000000s"}}, "kubelet.cpuCFSQuotaPeriod"),
        ({"kubeletConfig": {"containerLogMaxSizeMB": 0}}, "kubelet.containerLogMaxSize"),
        ({"kubeletConfig": {"containerLogMaxSizeMB": 1000000}}, "kubelet.containerLogMaxSize"),
        ({"kubeletConfig": {"podMaxPids": -2}}, "kubelet.podPidsLimit"),
        ({"windowsProfile": {"disableOutboundNat": True}}, "aks.windowsProfile"),
    ],
)
def test_member_when_no_spec_can_have_its_value_says_why(properties: dict[str, object], path: str) -> None:
    (found,) = (one for one in POOL_MEMBERS.chosen(live(**properties)) if one.path == path)
    assert (found.kind, bool(found.reason)) == ("unsupported", True)
    assert FieldPath.parse(path) not in chosen_fields(live(**properties))


def test_period_when_live_in_another_form_is_the_one_of_a_spec() -> None:
    fields = chosen_fields(live(kubeletConfig={"cpuCfsQuotaPeriod": "0.1s", "podMaxPids": -1}))
    assert {str(path): one for path, one in fields.items() if path[0] == "kubelet"} == {
        "kubelet.cpuCFSQuotaPeriod": "100ms"
    }


@pytest.mark.parametrize(
    ("properties", "changes", "expected"),
    [
        ({"osDiskSizeGB": 512}, {}, ["disk.sizeGiB"]),
        ({"tags": {"cost": "1"}}, {}, ["tags[cost]"]),
        ({"tags": {"cost": "1"}}, {"tags": {"cost": "2"}}, []),
        ({"nodeLabels": {"team": "a"}, "nodeTaints": ["a=b:NoSchedule"]}, {}, []),  # the diff shows both
        ({"enableAutoScaling": True, "minCount": 1, "maxCount": 2}, {"nodes": Nodes(1, 1, 1, autoscaled=False)}, []),
        ({"scaleSetPriority": "Spot", "spotMaxPrice": 2.5}, {"capacity": Capacity("on-demand")}, []),
        ({"proximityPlacementGroupID": "/subscriptions/s"}, {}, ["placement"]),
        ({"proximityPlacementGroupID": "/subscriptions/s"}, {"placement": "none"}, []),
        (
            {"kubeletConfig": {"cpuManagerPolicy": "static"}},
            {"kubelet": {"cpuCFSQuota": False}},
            ["kubelet.cpuManagerPolicy"],
        ),
        ({"linuxOSConfig": {"sysctls": {"vmSwappiness": 1}}}, {}, ["sysctls[vm.swappiness]"]),
        ({"mode": "System"}, {}, ["aks.mode"]),
        ({"workloadRuntime": "KataVmIsolation"}, {}, ["aks.workloadRuntime"]),
    ],
)
def test_replacement_when_it_would_lack_a_chosen_member_names_it(
    properties: dict[str, object], changes: dict[str, object], expected: list[str]
) -> None:
    assert lost(live(**properties), make_target(T4, **changes)) == expected


WORDS: dict[Shape, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "int": st.integers(1, 99),
    "str": st.text("abc", min_size=1, max_size=5),
    "strings": st.lists(st.text("abc", min_size=1), min_size=1, max_size=2),
}


def values(shape: Shape) -> st.SearchStrategy[object]:
    if isinstance(shape, ListOf):
        return st.lists(st.fixed_dictionaries({name: values(one) for name, one in shape.item.items()}), max_size=2)
    if isinstance(shape, MapOf):
        item = st.fixed_dictionaries({}, optional={name: values(one) for name, one in shape.item.items()})
        return st.dictionaries(st.sampled_from([".", "cluster.local", "a.b"]), item, max_size=2)
    return st.sampled_from(shape) if isinstance(shape, tuple) else WORDS[shape]


SETTINGS: dict[str, st.SearchStrategy[object]] = {
    **{path: values(shape) for path, shape in native_leaves()},
    **{f"linuxOSConfig.sysctls.{name}": st.integers(1, 5000) for name in SYSCTLS.values()},
    **{
        f"kubeletConfig.{one.wire}": st.integers(-1, 99) | st.booleans() | st.text("nsmu1.") for one in KUBELET.values()
    },
    "proximityPlacementGroupID": st.just("/subscriptions/S/near"),
    "osDiskSizeGB": st.integers(30, 300),
    "osDiskType": st.sampled_from(["Managed", "Ephemeral"]),
    "maxPods": st.integers(10, 250),
    "availabilityZones": st.lists(st.sampled_from(["1", "2"]), unique=True),
    "osSKU": st.sampled_from(["Ubuntu", "Ubuntu2204", "AzureLinux"]),
    "upgradeSettings.maxSurge": st.sampled_from(["1", "33%"]),
    "mode": st.sampled_from(["User", "System"]),
    "workloadRuntime": st.sampled_from(["OCIContainer", "KataVmIsolation"]),
    "gatewayProfile": st.just({"publicIPPrefixSize": 31}),
    "windowsProfile": st.just({"disableOutboundNat": True}),
    "surprise.inside": st.booleans(),
    "nodeLabels": st.dictionaries(st.sampled_from(["team", "a.b/c"]), st.text("ab", max_size=2), min_size=1),
    "tags": st.dictionaries(st.sampled_from(["cost", "a b"]), st.text("ab", max_size=2), min_size=1),
    "nodeTaints": st.just(["a=b:NoSchedule"]),
}
IDLE = {"enableAutoScaling", "minCount", "maxCount", "spotMaxPrice"}
"""Mean nothing without each other; test_observe has them together."""
LEFT = {
    path: st.just("x")
    for path in leaves()
    if path not in IDLE and not any(f"{path}.".startswith(f"{drawn}.") for drawn in (*SETTINGS, *ALWAYS_SENT))
}
"""Every other member of the SDK's model."""


@given(st.fixed_dictionaries({}, optional={**LEFT, **SETTINGS}))
@settings(max_examples=80, deadline=None)
def test_live_pool_when_of_any_members_then_each_is_imported_or_named(members: dict[str, object]) -> None:
    """Nothing vanishes unnamed: a chosen member is a field of the import, or has the reason that a comment shows."""
    properties: dict[str, Any] = {}
    for path, value in members.items():
        *above, leaf = path.split(".")
        node = properties
        for step in above:
            node = node.setdefault(step, {})
        node[leaf] = value
    observed = live(**properties)

    imported = {str(path) for path in chosen_fields(observed)}
    named = {one.path for one in POOL_MEMBERS.chosen(observed) if one.reason}
    for path, value in members.items():
        if value in (None, "", [], {}) or is_filled_in(path, value):
            continue
        found = [one for name, one in MEMBERS.items() if f"{path}.".startswith(f"{name.removesuffix('.*')}.")]
        words = [*(one.spec for one in found), f"aks.{path}"]
        is_local = path in ("osDiskType", "osDiskSizeGB")  # AKS's own choice for some sizes; tested above
        assert is_local or any(is_among(word, imported | named) for word in words if word), (path, json.dumps(value))


def is_among(spec: str, found: set[str]) -> bool:
    head, star, _ = spec.partition("*")
    return any(one.startswith(head) for one in found) if star else is_declared(spec, found)


def is_filled_in(path: str, value: object) -> bool:
    members = [one for name, one in MEMBERS.items() if f"{path}.".startswith(f"{name}.")]
    return any(one.kind == "server" or value in one.defaults for one in members)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (AZ_ALWAYS, set()),
        (AZ_MIG, {"sharing.mig.profile"}),
        (
            AZ_AUTOSCALED,
            {"nodes.autoscaling", "nodes.autoscaling.min", "nodes.autoscaling.max", "labels[workload]", "taints"},
        ),
        (AZ_SPOT, {"capacity.type"}),
        (
            AZ_OPTIONS,
            {
                "image",
                "tags[cost]",
                "disk.sizeGiB",
                "zones",
                "maxPodsPerNode",
                "capacity.reserved.aks.capacityReservationGroup",
            },
        ),
    ],
)
def test_members_when_az_sent_the_body_are_those_that_its_options_say(
    body: dict[str, object], expected: set[str]
) -> None:
    """Bodies that az 2.91.0 sent: most of their members are defaults."""
    properties = {**body, "vmSize": body.get("vmSize", T4)}
    assert chosen(observe_pool({"name": "p", "properties": properties})).keys() - ALWAYS.keys() == expected


def test_machine_when_confidential_is_imported_as_such() -> None:
    assert chosen_fields(live("Standard_NCC40ads_H100_v5"))[CONFIDENTIAL] is True
    assert CONFIDENTIAL not in chosen_fields(live())


def test_placement_when_imported_is_left_out_if_there_is_none() -> None:
    assert PLACEMENT not in chosen_fields(live())
    assert chosen_fields(live(proximityPlacementGroupID="/subscriptions/S"))[PLACEMENT] == "/subscriptions/s"


def test_disk_when_aks_would_have_chosen_another_type_is_imported() -> None:
    fields = chosen_fields(live(osDiskSizeGB=128, osDiskType="Managed"))
    assert fields[FieldPath("disk", "type")] == "Managed"
    assert at(desire(replace(make_target(T4))).create.params, "body", "properties", "osDiskType") is None
