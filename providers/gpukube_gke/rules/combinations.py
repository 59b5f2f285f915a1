"""Native fields that conflict with each other, or with the rest of the pool.

In scope: a table of combinations. Out of scope: single fields (`pool.native`), portable fields (`capacity`,
`upgrades`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.errors import Finding
from gpukube_gke.facts.local_ssd import explain_local_ssd
from gpukube_gke.pool.fields import runs_own_plugin
from gpukube_gke.pool.members import RIVALS
from gpukube_gke.pool.native import NATIVE, flatten_native
from gpukube_gke.pool.purchase import AFFINITY, is_flex_start, is_short_lived, reservation_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

    Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Clash:
    """A native field that conflicts with something.

    Attributes:
        path: The field.
        when: Whether it conflicts; called only if the field is set.
        message: Message after the field's path.
        fix: What to change.
        source: Documentation of the conflict.
        severity: error if GKE rejects it, warning if it probably does not work.
    """

    path: str
    when: Callable[[Target, Fields], bool]
    message: str
    fix: str
    source: str
    severity: Literal["error", "warning"] = "error"


_TOOLKIT: Final = "GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool"
_STRATEGY: Final = "upgradeSettings.strategy"
_BLUE_GREEN: Final = "upgradeSettings.blueGreenSettings"
_SCOPES: Final = "config.oauthScopes"
_EPHEMERAL: Final = "config.ephemeralStorageLocalSsdConfig.localSsdCount"
_BLOCK: Final = "config.localNvmeSsdBlockConfig.localSsdCount"
_FETCHING: Final = ("devstorage.read_only", "devstorage.read_write", "devstorage.full_control", "cloud-platform")
"""Scopes that let a node read Cloud Storage, which has the driver (docs: kubernetes-engine/how-to/gpus)."""


def _is_driverless(target: Target) -> bool:
    return target.driver_owner == "none" or runs_own_plugin(target)


def _cannot_fetch(target: Target, fields: Fields) -> bool:
    scopes = fields[_SCOPES]
    names = {str(scope).rpartition("/")[2] for scope in scopes} if isinstance(scopes, tuple) else set()
    return not _is_driverless(target) and not names & set(_FETCHING)


_TABLE: Final = (
    _Clash(
        path="config.fastSocket.enabled",
        when=lambda _, fields: fields["config.fastSocket.enabled"] is True and not fields.get("config.gvnic.enabled"),
        message="needs gVNIC",
        fix="add config.gvnic.enabled: true",
        source="google.container.v1 FastSocket",
    ),
    _Clash(
        path="config.secondaryBootDisks",
        when=lambda _, fields: (
            bool(fields["config.secondaryBootDisks"]) and not fields.get("config.gcfsConfig.enabled")
        ),
        message="needs image streaming",
        fix="add config.gcfsConfig.enabled: true",
        source="hashicorp/terraform-provider-google website/docs/r/container_cluster (secondary_boot_disks)",
    ),
    _Clash(
        path="management.autoRepair",
        when=lambda target, fields: fields["management.autoRepair"] is True and is_flex_start(target),
        message="is true, but flex-start nodes are not repaired",
        fix="remove it",
        source=_TOOLKIT,
    ),
    _Clash(
        path="management.autoUpgrade",
        when=lambda _, fields: fields["management.autoUpgrade"] is False,
        message="is false, which a cluster on a release channel does not accept",
        fix="remove it, or check that the cluster is not on a release channel",
        source="GKE: Auto_upgrade and auto_repair cannot be false when release_channel REGULAR is set "
        "(as Terraform shows it)",
        severity="warning",
    ),
    _Clash(
        path=AFFINITY,
        when=lambda target, _: bool(reservation_form(target)),
        message="follows from capacity.reserved",
        fix="remove it",
        source=_TOOLKIT,
    ),
    _Clash(
        path=AFFINITY,
        when=lambda target, fields: fields[AFFINITY] == "SPECIFIC_RESERVATION" and not reservation_form(target),
        message="selects a reservation, which belongs in capacity.reserved",
        fix="write capacity: {type: reserved, reserved: {gke: {reservation: NAME}}}",
        source="google.container.v1 ReservationAffinity",
    ),
    _Clash(
        path=AFFINITY,
        when=lambda target, fields: (
            target.capacity.type == "spot" and fields[AFFINITY] not in ("NO_RESERVATION", "SPECIFIC_RESERVATION")
        ),
        message="lets Spot machines use a reservation, which is not possible",
        fix="write NO_RESERVATION, or remove it",
        source="GoogleCloudPlatform/cluster-toolkit#4531",
    ),
    _Clash(
        path="config.maxRunDuration",
        when=lambda target, _: is_short_lived(target),
        message="belongs in capacity.reserved here",
        fix="write maxRunDuration under capacity.reserved.gke",
        source="docs: kubernetes-engine/concepts/dws",
    ),
    _Clash(
        path=_STRATEGY,
        when=lambda target, fields: fields[_STRATEGY] != "SHORT_LIVED" and is_short_lived(target),
        message="is not for flex-start and queued nodes, which are upgraded when they end",
        fix="remove it",
        source="google.container.v1 NodePoolUpdateStrategy.SHORT_LIVED",
        severity="warning",
    ),
    _Clash(
        path=_STRATEGY,
        when=lambda target, fields: fields[_STRATEGY] == "SHORT_LIVED" and not is_short_lived(target),
        message="is SHORT_LIVED, which is only for flex-start and queued nodes",
        fix="write SURGE",
        source="google.container.v1 NodePoolUpdateStrategy.SHORT_LIVED",
        severity="warning",
    ),
    _Clash(
        path=f"{_BLUE_GREEN}.autoscaledRolloutPolicy.waitForDrainDuration",
        when=lambda target, _: not target.nodes.autoscaled,
        message="is only for autoscaled pools",
        fix="write standardRolloutPolicy instead, or nodes.autoscaling",
        source="google.container.v1 BlueGreenSettings.autoscaled_rollout_policy",
    ),
    *(
        _Clash(
            path=path,
            when=lambda _, fields: fields.get(_STRATEGY) != "BLUE_GREEN",
            message="has no effect without the strategy BLUE_GREEN",
            fix="write upgradeSettings.strategy: BLUE_GREEN too",
            source="google.container.v1 UpgradeSettings.blue_green_settings",
            severity="warning",
        )
        for path in NATIVE
        if path.startswith(_BLUE_GREEN)
    ),
    *(
        _Clash(
            path=path,
            when=lambda target, _: not target.nodes.autoscaled,
            message="is only for autoscaled pools",
            fix="remove it, or write nodes.autoscaling",
            source=source,
            severity="warning",
        )
        for path, source in (
            ("autoscaling.locationPolicy", "google.container.v1 NodePoolAutoscaling.location_policy"),
            ("config.consolidationDelay", "google.container.v1 NodeConfig.consolidation_delay"),
        )
    ),
    _Clash(
        path="networkConfig.podIpv4CidrBlock",
        when=lambda _, fields: (
            bool(fields["networkConfig.podIpv4CidrBlock"]) and not fields.get("networkConfig.createPodRange")
        ),
        message="is only for a range that is created with the pool",
        fix="add networkConfig.createPodRange: true",
        source="google.container.v1 NodeNetworkConfig.pod_ipv4_cidr_block",
        severity="warning",
    ),
    _Clash(
        path="bestEffortProvisioning.minProvisionNodes",
        when=lambda _, fields: not fields.get("bestEffortProvisioning.enabled"),
        message="is only for best-effort provisioning",
        fix="add bestEffortProvisioning.enabled: true",
        source="google.container.v1 BestEffortProvisioning",
        severity="warning",
    ),
    _Clash(
        path=_SCOPES,
        when=_cannot_fetch,
        message="does not let the nodes read Cloud Storage, from which GKE downloads the driver",
        fix="add the scope devstorage.read_only",
        source="docs: kubernetes-engine/how-to/gpus",
    ),
    _Clash(
        path="config.gpuDirectConfig.gpuDirectStrategy",
        when=lambda target, _: not re.match(r"a3-ultragpu-|a4x?-", target.machine.name),
        message="is only for a3-ultragpu and a4 machines",
        fix="remove it",
        source="google.container.v1 GPUDirectConfig.GPUDirectStrategy",
        severity="warning",
    ),
    _Clash(
        path="config.shieldedInstanceConfig.enableSecureBoot",
        when=lambda target, fields: (
            fields["config.shieldedInstanceConfig.enableSecureBoot"] is True and _is_driverless(target)
        ),
        message="is true, so the node does not load a driver that Google has not signed",
        fix="write false, or leave the driver to GKE",
        source=f"{_TOOLKIT}, README",
        severity="warning",
    ),
    _Clash(
        path=_BLOCK,
        when=lambda _, fields: bool(fields[_BLOCK]) and bool(fields.get(_EPHEMERAL)),
        message="uses the same disks as config.ephemeralStorageLocalSsdConfig",
        fix="keep one of them",
        source=_TOOLKIT,
    ),
)


def check_combinations(target: Target) -> Iterator[Finding]:
    """Report native fields that GKE rejects because of another one, or that have no effect with it."""
    fields = {".".join(path[1:]): value for path, value in flatten_native(target.native).items()}
    for row in _TABLE:
        if row.path in fields and row.when(target, fields):
            yield _found(target, row.path, row.message, row.fix, row.severity)
    for path in (_EPHEMERAL, _BLOCK):
        if path in fields and (fix := explain_local_ssd(target.machine.name, fields[path])):
            yield _found(target, path, f"is {fields[path]}, which {target.machine.name} does not have", fix, "error")
    for path, names in _rivals(target.native):
        yield _found(target, path, f"is set together with {names}: GKE accepts only one", "keep one of them", "error")


def _rivals(message: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the first of several members that exclude each other, by its path, and the others."""
    for group in RIVALS:
        first, *others = [name for name in group if name in message] or [""]
        if others:
            yield f"{above}{first}", " and ".join(others)
    for name, value in message.items():
        if isinstance(value, Mapping):
            yield from _rivals(value, f"{above}{name}.")


def _found(target: Target, path: str, message: str, fix: str, severity: Literal["error", "warning"]) -> Finding:
    where = target.locator.at(f"gke.{path}")
    return Finding("gke-native-conflict", where, f"gke.{path} {message}", fix=fix, severity=severity)
