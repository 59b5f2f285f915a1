"""One agent pool: stored and displayed properties, and the result of a PUT.

In scope: defaults, merging, the wire form. Out of scope: rules (`rules`), timing (`lifecycle`).
"""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gpukube_sandbox.aks.answers import Json, bad_parameter
from gpukube_sandbox.aks.keys import add_spot_marks
from gpukube_sandbox.aks.machines import IMAGE_DATE, image_version, is_managed
from gpukube_sandbox.aks.schema import FIELDS, GONE_WHEN_OMITTED, READ_ONLY
from gpukube_sandbox.aks.sizes import find_size
from gpukube_sandbox.aks.upgrades import is_upgraded, running_version

if TYPE_CHECKING:
    from gpukube_sandbox.aks.rules import ClusterFacts

_DEFAULTS: dict[str, object] = {
    # What `az aks nodepool show` prints for a pool created with count and vmSize only (sample outputs in the docs).
    "osDiskSizeGB": 128,
    "kubeletDiskType": "OS",
    "maxPods": 250,
    "type": "VirtualMachineScaleSets",
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "enableAutoScaling": False,
    "scaleDownMode": "Delete",
    "scaleSetPriority": "Regular",
    "enableNodePublicIP": False,
    "enableEncryptionAtHost": False,
    "enableUltraSSD": False,
    "enableFIPS": False,
    "workloadRuntime": "OCIContainer",
}
_UPGRADE_DEFAULTS = {"maxSurge": "10%", "maxUnavailable": "0"}  # as on real pools (Azure/ARO-HCP#6447)
_SECURITY_DEFAULTS = {"enableVTPM": False, "enableSecureBoot": False}
_SIZE_WHEN_OMITTED = (
    "Standard_D4s_v5"  # AKS chooses one since May 2025 (docs: aks/quotas-skus-regions); which one is unconfirmed
)


@dataclass(frozen=True, slots=True)
class Lot:
    """Where a machine came from.

    Attributes:
        zone: Logical zone; "" for none.
        kind: Kind of stock; "reserved" if it is a reserved machine of a capacity reservation group.
    """

    zone: str
    kind: str


@dataclass(slots=True)
class Pool:
    """One agent pool.

    Attributes:
        name: Pool name.
        properties: Stored wire properties; currentOrchestratorVersion is the only read-only one.
        state: provisioningState.
        error: Last failure, shown as status.provisioningError.
        nodes: Names of its machines, oldest first.
        lots: Name of a machine -> where it came from.
        outdated: Machines that an upgrade has yet to replace; a failed or canceled upgrade leaves some.
        next_index: Index of the next scale-set member.
        listed_from: Time from which lists contain it.
    """

    name: str
    properties: Json
    state: str = "Creating"
    error: Json | None = None
    nodes: list[str] = field(default_factory=list)
    lots: dict[str, Lot] = field(default_factory=dict)
    outdated: set[str] = field(default_factory=set)
    next_index: int = 0
    listed_from: float = 0.0
    etag: str = field(default_factory=lambda: str(uuid.uuid4()))

    def touch(self) -> None:
        """Record a change to the stored resource: it gets a new eTag."""
        self.etag = str(uuid.uuid4())

    @property
    def is_stopped(self) -> bool:
        """Return whether the machines should be off."""
        power = self.properties.get("powerState")
        return isinstance(power, dict) and power.get("code") == "Stopped"

    def shown(self) -> Json:
        """Return `properties` as GET returns them."""
        shown = copy.deepcopy(self.properties)
        shown["eTag"] = self.etag
        shown["provisioningState"] = self.state
        if self.error is not None:
            shown["status"] = {"provisioningError": self.error}
        return shown

    def wire(self, cluster_id: str) -> Json:
        """Return the resource as GET returns it."""
        return {
            "id": f"{cluster_id}/agentPools/{self.name}",
            "name": self.name,
            "type": "Microsoft.ContainerService/managedClusters/agentPools",
            "properties": self.shown(),
        }


class Source(Protocol):
    """Where machines come from."""

    def take(self, location: str, pool: Pool) -> Lot | None:
        """Take a machine; None if there is none."""
        ...

    def add(self, location: str, pool: Pool) -> Lot:
        """Count a machine that exists whatever the stock is."""
        ...

    def give_back(self, location: str, pool: Pool, lot: Lot) -> None:
        """Return a machine that is gone."""
        ...

    def shortage(self, location: str, pool: Pool) -> Json:
        """Return the error of an operation whose machines are not available."""
        ...


def with_defaults(sent: Json, cluster: ClusterFacts) -> Json:
    """Fill in the service's defaults at creation."""
    pool: Json = {key: copy.deepcopy(value) for key, value in sent.items() if key not in READ_ONLY}
    pool.setdefault("vmSize", _SIZE_WHEN_OMITTED)
    for key, value in _DEFAULTS.items():
        pool.setdefault(key, value)
    if pool["osDiskSizeGB"] == 0:
        pool["osDiskSizeGB"] = _DEFAULTS["osDiskSizeGB"]
    _fill(pool, "upgradeSettings", {} if pool["scaleSetPriority"] == "Spot" else _UPGRADE_DEFAULTS)
    _fill(pool, "securityProfile", _SECURITY_DEFAULTS)
    pool["powerState"] = {"code": "Running"}
    pool.setdefault("osDiskType", _disk_type(pool))
    running = running_version(str(pool.get("orchestratorVersion", "")), cluster.kubernetes_version)
    pool.setdefault("orchestratorVersion", running)
    pool["currentOrchestratorVersion"] = running
    if pool["scaleSetPriority"] == "Spot":
        pool.setdefault("scaleSetEvictionPolicy", "Delete")
        pool.setdefault("spotMaxPrice", -1.0)
        add_spot_marks(pool)
    if is_managed(pool):
        _fill(pool, "gpuProfile", {"driver": "Install"})
    pool.pop("nodeImageVersion", None)
    return pool


def _disk_type(pool: Json) -> str:
    """Return Ephemeral if the machine has room (docstring of AgentPool.osDiskType, azure-mgmt-containerservice)."""
    size = find_size(str(pool["vmSize"]))
    room = (size.local_gib if size else None) or 0
    requested = pool["osDiskSizeGB"]
    return "Ephemeral" if isinstance(requested, int) and room > requested else "Managed"


def finish_defaults(pool: Json, image_date: str = IMAGE_DATE) -> Json:
    """Fill in defaults that depend on properties that were checked first."""
    if pool["scaleSetPriority"] != "Spot":
        _drop_idle_spot_fields(pool)
    pool.setdefault("nodeImageVersion", image_version(pool, image_date))
    return pool


def merge(stored: Json, sent: Json, cluster: ClusterFacts) -> Json:
    """Return the pool that results from a PUT on an existing one.

    Maps, lists, and the autoscaler's bounds are replaced as a whole; other properties that the body omits stay.

    Raises:
        ArmError: 400 if nodeImageVersion names another image: only a rollback may, which is not emulated.
    """
    requested: Json = {key: copy.deepcopy(value) for key, value in sent.items() if key not in READ_ONLY}
    merged = {key: copy.deepcopy(value) for key, value in stored.items() if key not in GONE_WHEN_OMITTED}
    if stored["scaleSetPriority"] != "Spot":
        _drop_idle_spot_fields(requested)
    if "count" not in requested:
        merged.pop("count", None)  # required in every PUT
    if requested.get("osDiskSizeGB") == 0:  # the size's default, which the pool already has
        requested["osDiskSizeGB"] = stored["osDiskSizeGB"]
    for key, value in requested.items():
        below = merged.get(key)
        nested = key in FIELDS and FIELDS[key].fields and isinstance(value, dict) and isinstance(below, dict)
        merged[key] = {**below, **value} if nested and isinstance(value, dict) and isinstance(below, dict) else value
    if merged.get("nodeImageVersion") != stored.get("nodeImageVersion"):
        image = merged.get("nodeImageVersion")
        message = f"nodeImageVersion '{image}' is not one of the recently used versions of this pool."
        raise bad_parameter(message, "agentPoolProfile.nodeImageVersion")
    present = str(stored["currentOrchestratorVersion"])
    version = str(merged["orchestratorVersion"])
    merged["currentOrchestratorVersion"] = running_version(version, cluster.kubernetes_version, present)
    other_image = any(stored.get(key) != merged.get(key) for key in ("osSKU", "enableFIPS"))
    if other_image or is_upgraded(stored, merged):
        merged["nodeImageVersion"] = image_version(merged, cluster.image_date)
    return merged


def _drop_idle_spot_fields(pool: Json) -> None:
    """Remove two fields that SDKs before 41 send for every pool; they have no meaning on a regular pool."""
    if pool.get("spotMaxPrice") == -1:
        del pool["spotMaxPrice"]
    if pool.get("scaleSetEvictionPolicy") == "Delete":
        del pool["scaleSetEvictionPolicy"]


def _fill(pool: Json, key: str, defaults: dict[str, object] | dict[str, str] | dict[str, bool]) -> None:
    given = pool.get(key)
    pool[key] = {**defaults, **(given if isinstance(given, dict) else {})}
