"""Native fields that do not go with each other, or with the rest of the pool.

Lives here: a table of combinations. Must not live here: single fields (`native`).

Sources: GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool (queued provisioning, flex-start, COMPACT);
google.container.v1 UpgradeSettings and GPUDriverInstallationConfig; docs: kubernetes-engine/how-to/gpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Diagnostic
from gpukube_gke.native import DRIVER_VERSION, flatten_native
from gpukube_gke.translate import runs_own_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.core.values import Target

    Clash = Callable[[Target, Mapping[str, object]], bool]

__all__ = ["check_combinations"]

_QUEUED: Final = "queuedProvisioning.enabled"
_FLEX: Final = "config.flexStart"
_COMPACT: Final = "placementPolicy.type"
_RESERVATION: Final = "config.reservationAffinity.consumeReservationType"
_POLICY: Final = "autoscaling.locationPolicy"
_SURGE: Final = "upgradeSettings.maxSurge"

_TABLE: Final[tuple[tuple[str, Clash, str, str], ...]] = (
    (
        DRIVER_VERSION,
        lambda target, _: target.driver_owner == "none" or runs_own_plugin(target),
        "asks GKE for a driver, which driver.owner or devicePlugin.owner refuses",
        "take it away, or write owner: auto",
    ),
    (
        DRIVER_VERSION,
        lambda target, fields: fields[DRIVER_VERSION] == "LATEST" and target.image == "UBUNTU_CONTAINERD",
        "is LATEST, which Ubuntu nodes do not have",
        "write DEFAULT, or image: COS_CONTAINERD",
    ),
    (
        "config.fastSocket.enabled",
        lambda _, fields: bool(fields["config.fastSocket.enabled"]) and not fields.get("config.gvnic.enabled"),
        "needs gVNIC",
        "write config.gvnic.enabled: true beside it",
    ),
    (
        _QUEUED,
        lambda target, fields: bool(fields[_QUEUED]) and _is_bought_otherwise(target, fields),
        "goes neither with Spot nor with reservations",
        "drop capacity.type: spot, and write config.reservationAffinity.consumeReservationType: NO_RESERVATION",
    ),
    (
        _QUEUED,
        lambda target, fields: bool(fields[_QUEUED]) and not _is_from_zero(target),
        "needs a pool that is scaled from zero",
        "write nodes.autoscaling with min: 0",
    ),
    (
        _FLEX,
        lambda target, fields: bool(fields[_FLEX]) and _is_bought_otherwise(target, fields),
        "goes neither with Spot nor with reservations",
        "drop capacity.type: spot, and write config.reservationAffinity.consumeReservationType: NO_RESERVATION",
    ),
    (
        _FLEX,
        lambda target, fields: bool(fields[_FLEX]) and not target.nodes.autoscaled,
        "needs an autoscaled pool",
        "write nodes.autoscaling in place of nodes.count",
    ),
    (
        _FLEX,
        lambda _, fields: bool(fields[_FLEX]) and fields.get("management.autoRepair") is not False,
        "does not go with the repair of nodes",
        "write management.autoRepair: false",
    ),
    (_COMPACT, lambda target, _: len(target.zones) > 1, "is COMPACT, which is for one zone", "write one zone"),
    (
        _COMPACT,
        lambda _, fields: fields.get("upgradeSettings.strategy") == "BLUE_GREEN",
        "is COMPACT, which does not go with upgrades of strategy BLUE_GREEN",
        "write upgradeSettings.strategy: SURGE",
    ),
    (
        _SURGE,
        lambda _, fields: fields[_SURGE] == 0 and not fields.get("upgradeSettings.maxUnavailable"),
        "is 0, and so is maxUnavailable: no upgrade could begin",
        "write maxUnavailable: 1 beside it",
    ),
    (
        _POLICY,
        lambda target, _: not target.nodes.autoscaled,
        "is for autoscaled pools",
        "take it away, or write nodes.autoscaling",
    ),
)
"""Field, when it clashes, what is said of it, what to write instead."""


def check_combinations(target: Target) -> Iterator[Diagnostic]:
    """Find native fields that GKE refuses for the sake of another one."""
    fields = {name.removeprefix("gke."): value for name, value in flatten_native(target.native).items()}
    for path, clashes, says, fix in _TABLE:
        if path in fields and clashes(target, fields):
            where = target.locator.at(f"gke.{path}")
            yield Diagnostic("gke-native-conflict", where, f"gke.{path} {says}", fix=fix)


def _is_bought_otherwise(target: Target, fields: Mapping[str, object]) -> bool:
    return target.capacity.type == "spot" or fields.get(_RESERVATION) != "NO_RESERVATION"


def _is_from_zero(target: Target) -> bool:
    return target.nodes.autoscaled and target.nodes.minimum == 0
