"""Ways to buy and place machines: GKE's rules for them, and reservations that can be used up.

In scope: those rules, for a pool with its defaults. Out of scope: the other rules (`rules`), when machines come up
(`lifecycle`).

Sources: hashicorp/terraform-provider-google#18341 (the message about queued provisioning),
GoogleCloudPlatform/gsutil#1000 and GoogleCloudPlatform/cluster-toolkit#5043 (those about reservations),
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool (requirements of flex-start and compact placement).
Other messages are the sandbox's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.pools import count_per_zone
from gpukube_sandbox.gke.references import reservation_of
from gpukube_sandbox.gke.versions import FLOORS, is_at_least
from gpukube_sandbox.gke.wire.answers import GoogleError, bad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_AFFINITY = wire.ReservationAffinity.Type
_STRATEGY = wire.NodePoolUpdateStrategy
_KEY = "compute.googleapis.com/reservation-name"
_COMPACT = wire.NodePool.PlacementPolicy.Type.COMPACT
_MAX_COMPACT = {"a2": 150, "a3": 96, "a4": 1500, "g4": 1500}
"""Family -> maximum nodes (GKE cluster autoscaler)."""
_NEVER_COMPACT = frozenset({"e2", "n1"})
"""Families without compact placement; docs: kubernetes-engine/how-to/compact-placement (e2); dstackai/dstack#2591 (n1,
and the message, which is Compute Engine's)."""
_MAX_RUN_S = 7 * 86400
"""Maximum of max_run_duration; docs: kubernetes-engine/concepts/dws."""


def check_provisioning(pool: wire.NodePool, version: str) -> None:
    """Check how machines are bought and placed.

    Args:
        pool: The pool after the operation.
        version: Version of the control plane.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    _check_affinity(pool.config)
    if is_queued(pool):
        _check_queued(pool)
        _require(version, "queued", "Queued_provisioning")
    if pool.config.flex_start:
        _check_flex(pool)
        _require(version, "flex-start", "Flex start")
    if pool.placement_policy.type_ == _COMPACT:
        _check_compact(pool)
    if pool.upgrade_settings.strategy == _STRATEGY.SHORT_LIVED and not _is_short_lived(pool):
        raise bad("Upgrade strategy SHORT_LIVED is for queued provisioning and flex start only.")


def _require(version: str, feature: str, name: str) -> None:
    if not is_at_least(version, feature):
        major, minor, patch, build = FLOORS[feature]
        raise bad(f"{name} requires GKE version {major}.{minor}.{patch}-gke.{build} or later.")


def is_queued(pool: wire.NodePool) -> bool:
    """Return whether nodes are created only for a ProvisioningRequest."""
    return bool(pool.queued_provisioning.enabled)


def _is_short_lived(pool: wire.NodePool) -> bool:
    return is_queued(pool) or bool(pool.config.flex_start)


def _check_affinity(config: wire.NodeConfig) -> None:
    affinity = config.reservation_affinity
    kind = affinity.consume_reservation_type
    if kind == _AFFINITY.SPECIFIC_RESERVATION and (affinity.key != _KEY or not affinity.values):
        raise bad("Reservation affinity SPECIFIC_RESERVATION requires key and values.")
    if kind != _AFFINITY.SPECIFIC_RESERVATION and (affinity.key or affinity.values):
        raise bad("Reservation affinity key and values are for SPECIFIC_RESERVATION only.")
    if (config.spot or config.preemptible) and kind not in (_AFFINITY.UNSPECIFIED, _AFFINITY.NO_RESERVATION):
        raise bad("Spot VMs cannot consume reservations.")


def _check_queued(pool: wire.NodePool) -> None:
    if pool.config.reservation_affinity.consume_reservation_type != _AFFINITY.NO_RESERVATION:
        raise bad("Queued_provisioning requires reservation affinity to be set to none")
    if pool.config.spot:
        raise bad("Queued_provisioning does not work with Spot VMs.")
    scaling = pool.autoscaling
    if not scaling.enabled or scaling.min_node_count or scaling.total_min_node_count or pool.initial_node_count:
        raise bad("Queued_provisioning requires autoscaling from zero nodes.")
    _check_run(pool)


def _check_flex(pool: wire.NodePool) -> None:
    config = pool.config
    if config.spot or not pool.autoscaling.enabled:
        raise bad("Flex start requires autoscaling and does not work with Spot VMs.")
    if config.reservation_affinity.consume_reservation_type != _AFFINITY.NO_RESERVATION:
        raise bad("Flex start requires reservation affinity to be set to none.")
    check_repair(pool, pool.management)
    _check_run(pool)


def check_repair(pool: wire.NodePool, management: wire.NodeManagement) -> None:
    """Check a pool's management before it is set.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    if pool.config.flex_start and management.auto_repair:
        raise bad("Flex start requires auto_repair to be false.")


def _check_run(pool: wire.NodePool) -> None:
    if pool.config.max_run_duration.total_seconds() > _MAX_RUN_S:
        raise bad("Max_run_duration must not be longer than 7 days.")
    if pool.config.machine_type.startswith("a3-edgegpu-"):
        raise bad(f"Machine type {pool.config.machine_type} is not available with Dynamic Workload Scheduler.")


def _check_compact(pool: wire.NodePool) -> None:
    machine = pool.config.machine_type
    family = machine.partition("-")[0]
    if len(pool.locations) != 1:
        raise bad("Compact placement is only available for node pools in a single zone.")
    if pool.upgrade_settings.strategy == _STRATEGY.BLUE_GREEN:
        raise bad("Compact placement is not supported with blue-green upgrades.")
    if is_queued(pool):
        raise bad("Compact placement is not supported with queued provisioning.")
    if pool.config.flex_start and not machine.startswith(("a3-ultragpu-", "a4-")):
        raise bad(f"Compact placement with flex start is not supported for {machine}.")
    if family in _NEVER_COMPACT:
        raise bad(f"Placement policy is not applicable to machine type {machine}.")
    maximum = _MAX_COMPACT.get(family)
    scaling = pool.autoscaling
    count = max(scaling.max_node_count, scaling.total_max_node_count) if scaling.enabled else pool.initial_node_count
    if maximum is not None and count > maximum:
        raise bad(f"Compact placement of {machine} supports at most {maximum} nodes.")


def check_reservation(
    pool: wire.NodePool,
    others: Iterable[wire.NodePool],
    reservations: dict[str, dict[str, object]],
    room: Callable[[str], int | None] = lambda _: None,
) -> None:
    """Check that a pool's reservation is in its zones, and has enough machines left.

    Args:
        pool: The pool after the operation.
        others: The other pools of the cluster.
        reservations: Name -> zone, machineType, and count of existing reservations; a missing value matches any
            request.
        room: Zone -> machines that the pool can have there by the stock; None without limit.

    Raises:
        GoogleError: 404 or 429, as seen at creation.
    """
    name = reservation_of(pool)
    if not name:
        return
    found = reservations.get(name)
    taken = sum(sum(count_per_zone(other)) for other in others if reservation_of(other) == name)
    for zone, count in zip(pool.locations, count_per_zone(pool), strict=True):
        if found is None or found.get("zone", zone) != zone:
            given = pool.config.reservation_affinity.values[0]
            raise GoogleError(
                "NOT_FOUND",
                f'Google Compute Engine: reservation "{given}" not found for node pool "{pool.name}" at zone "{zone}".',
            )
        is_like = found.get("machineType", pool.config.machine_type) == pool.config.machine_type
        taken += int(str(found.get("inUseByOthers", 0)))
        size = int(str(found.get("count", taken + count)))
        free, limit = max(0, size - taken) if is_like else 0, room(zone)
        short = count - (free if limit is None else min(free, limit))
        if short > 0:
            raise GoogleError(
                "RESOURCE_EXHAUSTED",
                "Reservation does not have enough resources for the request: specific reservation "
                f'"{name}" is insufficient for node pool "{pool.name}" at zone "{zone}": required {count} and short of '
                f"{short} VM count of machine type {pool.config.machine_type}.",
            )
