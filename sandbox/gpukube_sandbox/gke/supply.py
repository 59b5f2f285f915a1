"""Where the machines of node pools come from: the stock of a zone, or a reservation.

In scope: taking a machine, giving it back, and why there is none. Out of scope: when machines are created
(`lifecycle`, `autoscaling`), how many there are (`stock`, `reservations`).

Source: kubernetes/autoscaler cluster-autoscaler/cloudprovider/gce/autoscaling_gce_client.go (errors of reservations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.failures import Failure, no_instances, stockout
from gpukube_sandbox.gke.pools import Lot
from gpukube_sandbox.gke.references import owner_of, reservation_of
from gpukube_sandbox.gke.reservations import declared, in_use

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.references import Known
    from gpukube_sandbox.gke.wire.names import Place
    from gpukube_sandbox.stock import Stock

RESERVED = "reserved"


@dataclass(slots=True)
class Supply:
    """The source of all machines; implements `sources.Source`.

    Attributes:
        things: Declared resources by project.
    """

    stock: Stock
    clusters: dict[str, Cluster]
    things: dict[str, Known]

    def take(self, place: Place, pool: Pool, zone: str) -> Lot | None:
        """Take a machine for a pool; None if there is none."""
        machine, kind = pool.wire.config.machine_type, kind_of(pool.wire)
        if kind == RESERVED and self._refusal(place, pool.wire, zone):
            return None
        return Lot(machine, kind) if self.stock.take("gke", zone, machine, kind, 1) else None

    def add(self, pool: Pool, zone: str) -> Lot:
        """Count a machine that exists whatever the stock is."""
        lot = Lot(pool.wire.config.machine_type, kind_of(pool.wire))
        self.stock.add("gke", zone, lot.machine, lot.kind, 1)
        return lot

    def give_back(self, zone: str, lot: Lot) -> None:
        """Return a machine that is gone; its reservation has it back as soon as the pool does not have it."""
        self.stock.give_back("gke", zone, lot.machine, lot.kind)

    def shortage(self, place: Place, pool: Pool, zone: str) -> Failure:
        """Return the failure of an operation whose machines are not available."""
        running = len(pool.all_nodes())
        if reservation_of(pool.wire):
            reason = self._refusal(place, pool.wire, zone) or _full(reservation_of(pool.wire))
            return Failure("CONDITION_NOT_MET", no_instances(place, pool.wire, running, "CONDITION_NOT_MET", reason))
        return Failure("GCE_STOCKOUT", stockout(place, pool.wire, running, zone))

    def _refusal(self, place: Place, pool: wire.NodePool, zone: str) -> str:
        """Return why a pool's reservation gives no machine; "" if it does."""
        name, owner = reservation_of(pool), owner_of(pool, place.project)
        given = declared(owner, self.things, self.clusters).get(name, {})
        status = str(given.get("status", "READY"))
        if status != "READY":
            return (
                f'Cannot insert instance to a reservation with status: "{status}", as it requires reservation to be in '
                "READY state."
            )
        used = in_use(owner, name, zone, given, self.clusters)
        if used >= int(str(given.get("count", used + 1))):
            return _full(name)
        return ""


def _full(name: str) -> str:
    return f"Specified reservation '{name}' does not have available resources for the request."


def kind_of(pool: wire.NodePool) -> str:
    """Return the kind of stock that a pool's machines come from."""
    if reservation_of(pool):
        return RESERVED
    if pool.config.spot or pool.config.preemptible:
        return "spot"
    return "flex" if pool.config.flex_start or pool.queued_provisioning.enabled else "on-demand"
