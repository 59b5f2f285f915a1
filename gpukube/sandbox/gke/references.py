"""What a node pool names and somebody else has made: service accounts and reservations. Only what was declared exists.

Lives here: what exists in a project, and the refusal of accounts that do not. Must not live here: whether a reservation
has room (`provisioning`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube.sandbox.gke.wire.answers import bad

if TYPE_CHECKING:
    from gpukube.sandbox.gke.wire.answers import Json

_SPECIFIC = wire.ReservationAffinity.Type.SPECIFIC_RESERVATION
_OWNER = re.compile(r"projects/([^/]+)/reservations/.+")
DEFAULT_ACCOUNT = "default"
"""The Compute Engine default service account, which every project here has."""


@dataclass(slots=True)
class Known:
    """What exists in a project.

    Attributes:
        accounts: Emails of its service accounts.
        reservations: Name -> its zone, machineType and count; what is not said is as it is asked for.
    """

    accounts: set[str] = field(default_factory=set)
    reservations: dict[str, dict[str, object]] = field(default_factory=dict)


def check_account(config: wire.NodeConfig, accounts: set[str]) -> None:
    """Refuse a service account that no project here has.

    Raises:
        Refusal: 400 INVALID_ARGUMENT (midl-dev/tezos-on-gke#45).
    """
    name = config.service_account
    if name != DEFAULT_ACCOUNT and name not in accounts:
        raise bad(f'Service account "{name}" does not exist.')


def things_of(pool: wire.NodePool, project: str) -> list[Json]:
    """What a pool of a project's cluster needs, a project at a time, as `steering.declare` reads it."""
    accounts = [pool.config.service_account] if pool.config.service_account not in ("", DEFAULT_ACCOUNT) else []
    found: list[Json] = [{"project": project, "serviceAccounts": accounts}]
    if name := reservation_of(pool):
        found.append({"project": owner_of(pool, project), "reservations": [{"name": name}]})
    return found


def reservation_of(pool: wire.NodePool) -> str:
    """The bare name of the reservation that a pool takes from; "" for none."""
    affinity = pool.config.reservation_affinity
    if affinity.consume_reservation_type != _SPECIFIC or not affinity.values:
        return ""
    whole = re.fullmatch(r"projects/[^/]+/reservations/([^/]+)(?:/reservationBlocks/[^/]+)?", affinity.values[0])
    return whole[1] if whole else affinity.values[0]


def owner_of(pool: wire.NodePool, project: str) -> str:
    """The project whose reservation a pool names: its own unless the name says another."""
    values = pool.config.reservation_affinity.values
    found = _OWNER.fullmatch(values[0]) if values else None
    return found[1] if found else project
