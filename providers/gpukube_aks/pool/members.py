"""Every member of an agent pool in the API: what gpukube does with it, and what AKS fills in.

In scope: the table, and the members of a live pool that a person chose. Out of scope: checks of the spec's `aks:`
fields (`native`), the effect of a change (`updates`).

Names and shapes are from API version 2026-08-01 (azure-mgmt-containerservice 41.8.0, models of AgentPool); a test
compares them with the installed SDK, so that it reports new members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpukube.core.binding import managed_members
from gpukube.core.diff import diff_fields
from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import strings, text, texts, tree
from gpukube.core.live import live_machine
from gpukube.core.members import ANY_KEY, Member, chosen_members, lost_members
from gpukube.core.values import MARKS, RELEASED_LABEL
from gpukube_aks.pool.fields import BINDINGS, is_system
from gpukube_aks.pool.marks import FORM
from gpukube_aks.pool.settings import SYSCTLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.members import Chosen, Members
    from gpukube.core.provider_parts import PoolMembers
    from gpukube.core.values import Desired, Observed


@dataclass(frozen=True, slots=True)
class ListOf:
    """Shape of a list of objects."""

    item: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class MapOf:
    """Shape of a map from any key to objects."""

    item: Mapping[str, Shape]


Shape: TypeAlias = "Literal['bool', 'int', 'str', 'strings'] | tuple[str, ...] | ListOf | MapOf | Mapping[str, Shape]"
"""Shape of a member: a JSON type, its allowed words, or its own members."""

_DNS: Final[Mapping[str, Shape]] = {
    "queryLogging": ("Error", "Log"),
    "protocol": ("PreferUDP", "ForceTCP"),
    "forwardDestination": ("ClusterCoreDNS", "VnetDNS"),
    "forwardPolicy": ("Sequential", "RoundRobin", "Random"),
    "maxConcurrent": "int",
    "cacheDurationInSeconds": "int",
    "serveStaleDurationInSeconds": "int",
    "serveStale": ("Verify", "Immediate", "Disable"),
}
NATIVE: Final[Mapping[str, Shape]] = {
    "kubeletDiskType": ("OS", "Temporary"),
    "messageOfTheDay": "str",
    "vnetSubnetID": "str",
    "podSubnetID": "str",
    "podIPAllocationMode": ("DynamicIndividual", "StaticBlock"),
    "scaleDownMode": ("Delete", "Deallocate"),
    "upgradeSettings": {
        "drainTimeoutInMinutes": "int",
        "nodeSoakDurationInMinutes": "int",
        "undrainableNodeBehavior": ("Cordon", "Schedule"),
    },
    "enableNodePublicIP": "bool",
    "nodePublicIPPrefixID": "str",
    "scaleSetEvictionPolicy": ("Delete", "Deallocate"),
    "kubeletConfig": {"failSwapOn": "bool"},
    "linuxOSConfig": {
        "transparentHugePageEnabled": ("always", "madvise", "never"),
        "transparentHugePageDefrag": ("always", "defer", "defer+madvise", "madvise", "never"),
        "swapFileSizeMB": "int",
    },
    "enableEncryptionAtHost": "bool",
    "enableUltraSSD": "bool",
    "enableFIPS": "bool",
    "creationData": {"sourceResourceId": "str"},
    "hostGroupID": "str",
    "networkProfile": {
        "nodePublicIPTags": ListOf({"ipTagType": "str", "tag": "str"}),
        "allowedHostPorts": ListOf({"portStart": "int", "portEnd": "int", "protocol": ("TCP", "UDP")}),
        "applicationSecurityGroups": "strings",
        "dranet": {"mode": ("Unmanaged", "Managed")},
    },
    "securityProfile": {
        "enableVTPM": "bool",
        "enableSecureBoot": "bool",
        "sshAccess": ("LocalUser", "Disabled", "EntraId"),
    },
    "artifactStreamingProfile": {"enabled": "bool"},
    "localDNSProfile": {
        "mode": ("Preferred", "Required", "Disabled"),
        "vnetDNSOverrides": MapOf(_DNS),
        "kubeDNSOverrides": MapOf(_DNS),
    },
}
"""Members of `aks:`. Each has a row in `updates.NATIVE_ROWS`; ranges and formats of values are in `limits.LIMITS`."""

_FILLED_IN: Final[Mapping[str, tuple[object, ...]]] = {
    "osDiskSizeGB": (128,),
    "kubeletDiskType": ("OS",),
    "workloadRuntime": ("OCIContainer",),
    "podIPAllocationMode": ("DynamicIndividual",),
    "maxPods": (30, 110, 250),
    "osType": ("Linux",),
    "osSKU": ("Ubuntu",),
    "enableAutoScaling": (False,),
    "scaleDownMode": ("Delete",),
    "type": ("VirtualMachineScaleSets",),
    "mode": ("User",),
    "upgradeSettings.maxSurge": ("10%", "1"),
    "upgradeSettings.maxUnavailable": ("0",),
    "upgradeSettings.drainTimeoutInMinutes": (30,),
    "upgradeSettings.nodeSoakDurationInMinutes": (0,),
    "upgradeSettings.undrainableNodeBehavior": ("Schedule",),
    "powerState": ({"code": "Running"},),
    "enableNodePublicIP": (False,),
    "scaleSetPriority": ("Regular",),
    "scaleSetEvictionPolicy": ("Delete",),
    "spotMaxPrice": (-1,),
    "kubeletConfig.podMaxPids": (-1,),
    "enableEncryptionAtHost": (False,),
    "enableUltraSSD": (False,),
    "enableFIPS": (False,),
    "networkProfile.dranet.mode": ("Unmanaged",),
    "securityProfile.enableVTPM": (False,),
    "securityProfile.enableSecureBoot": (False,),
    "securityProfile.sshAccess": ("LocalUser",),
    "gpuProfile.driver": ("Install",),
    "gpuProfile.nvidia.managementMode": ("Unmanaged",),
    "artifactStreamingProfile.enabled": (False,),
}
"""Member -> what AKS fills in for a pool made without it.

Sources: docstrings of the SDK's models; outputs of `az aks nodepool show` and `az aks create` in Microsoft's docs;
maximum pods by network plugin: docs: aks/configure-azure-cni; sshAccess: docs: aks/manage-ssh-node-access.
"""

_OF_SERVICE: Final = Member("server", reason="the service writes it")
_OTHERS: Final[Mapping[str, Member]] = {
    "osType": Member(
        "unsupported", reason="GPU pools of gpukube are Linux: on Windows there is no MIG and no device-plugin chart"
    ),
    "type": Member(
        "unsupported", reason="GPU pools are scale sets: zones, Spot and autoscaling need VirtualMachineScaleSets"
    ),
    "mode": Member(
        "unsupported", reason="GPU pools are User pools: a System pool cannot scale to zero and restricts taints"
    ),
    "powerState": Member("unsupported", reason="gpukube neither stops nor starts pools"),
    "virtualMachinesProfile": Member("unsupported", reason="it applies to pools of type VirtualMachines only"),
    "windowsProfile": Member("unsupported", reason="it applies to Windows pools only"),
    "gatewayProfile": Member("unsupported", reason="it applies to gateway pools only"),
    "workloadRuntime": Member("unsupported", reason="GPU pools run OCI containers, the default"),
    "nodeImageVersion": Member("server", reason="writing another node image than the live one starts a rollback"),
    "virtualMachineNodesStatus": Member("server", reason="it applies to pools of type VirtualMachines only"),
    "localDNSProfile.state": _OF_SERVICE,
    "eTag": _OF_SERVICE,
    "currentOrchestratorVersion": _OF_SERVICE,
    "provisioningState": _OF_SERVICE,
    "status": _OF_SERVICE,
}
_MAPS: Final = ("nodeLabels", "tags")


def _table() -> Iterator[tuple[str, Member]]:
    yield "enableAutoScaling", Member("field", "nodes.autoscaling")
    for wire, field in managed_members(BINDINGS).items():
        if wire in _MAPS:
            yield f"{wire}.{ANY_KEY}", Member("field", f"{field}[{ANY_KEY}]")
        elif wire != "linuxOSConfig.sysctls":
            yield wire, Member("field", field)
    for sysctl, name in SYSCTLS.items():
        yield f"linuxOSConfig.sysctls.{name}", Member("field", f"sysctls[{sysctl}]")
    for path, _ in native_leaves():
        yield path, Member("native", f"aks.{path}")
    yield from _OTHERS.items()


def native_leaves(shapes: Mapping[str, Shape] = NATIVE, above: str = "") -> Iterator[tuple[str, Shape]]:
    """Yield the path and shape of each native member that a spec sets as a whole."""
    for name, shape in shapes.items():
        if isinstance(shape, Mapping):
            yield from native_leaves(shape, f"{above}{name}.")
        else:
            yield above + name, shape


MEMBERS: Final[Members] = {path: replace(one, defaults=_FILLED_IN.get(path, ())) for path, one in _table()}
"""Path of each member in the API -> how gpukube treats it. Members of lists and maps belong to their list or map."""

FIELDS: Final[Mapping[str, str]] = {
    path.removesuffix(f".{ANY_KEY}"): one.spec.partition("[")[0] for path, one in MEMBERS.items() if one.kind == "field"
}
"""Members that gpukube sets itself -> field of the spec to use instead."""
REFUSED: Final[Mapping[str, str]] = {
    path: one.reason for path, one in MEMBERS.items() if one.kind in ("server", "unsupported")
}
"""Members that a GPU pool of gpukube cannot have -> why."""
_OWN_LABELS: Final = (*MARKS, RELEASED_LABEL)
_INEXPRESSIBLE: Final = "the spec has no such value"


class AksMembers:
    """Implementation of `gpukube.core.provider_parts.PoolMembers`."""

    def chosen(self, observed: Observed) -> tuple[Chosen, ...]:
        """Return the members that a person chose, without AKS's own labels and taints and gpukube's marks."""
        live = _without_marks(tree(observed.native, "properties"))
        found = chosen_members(live, MEMBERS, "aks")
        return tuple(_judged(one, observed) for one in found if not _is_filled_in(one, observed))

    def lost(self, observed: Observed, desired: Desired) -> tuple[Chosen, ...]:
        """Return the chosen members that a new pool would not have, except fields whose change the diff shows."""
        changes = diff_fields(desired.fields, observed.fields, observed.written)
        create = tree(desired.create.params, "body", "properties")
        return lost_members(self.chosen(observed), create, [*desired.fields, *(one.field for one in changes)])


def _without_marks(properties: dict[str, object]) -> dict[str, object]:
    labels, tags = texts(properties, "nodeLabels"), tree(properties, "tags")
    taints = [taint for taint in strings(properties, "nodeTaints") if not is_system(taint)]
    return {
        **properties,
        "nodeLabels": {key: one for key, one in labels.items() if not is_system(key) and key not in _OWN_LABELS},
        "nodeTaints": taints,
        "tags": {key: one for key, one in tags.items() if not FORM.is_own(key)},
    }


def _is_filled_in(one: Chosen, observed: Observed) -> bool:
    """Return whether AKS filled in a value that depends on the pool.

    AKS chooses an ephemeral disk if the machine has room for it, and without a size uses all of that room (docs:
    aks/concepts-storage). It fills in the cluster's version.
    """
    properties = tree(observed.native, "properties")
    machine = live_machine("aks", observed)
    room = (machine.local_ssd_gib if machine else None) or 0
    size, is_ephemeral = properties.get("osDiskSizeGB"), text(properties, "osDiskType") == "Ephemeral"
    match ".".join(one.wire):
        case "osDiskType":
            return is_ephemeral or not (isinstance(size, int) and size < room)
        case "osDiskSizeGB":
            return is_ephemeral and size == int(room)
        case "orchestratorVersion":
            return True
    return False


def _judged(one: Chosen, observed: Observed) -> Chosen:
    """Return the member as unsupported if a spec can set it, but not to this value."""
    path = FieldPath.parse(one.path)
    if one.kind == "field" and path[0] in ("kubelet", "sysctls") and path not in observed.fields:
        return replace(one, kind="unsupported", reason=_INEXPRESSIBLE)
    return one


POOL_MEMBERS: Final[PoolMembers] = AksMembers()
