"""Existing resources that a node pool names. Only declared resources exist.

In scope: existing resources of a project, and rejecting others. Out of scope: whether a reservation has
capacity (`provisioning`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.wire.answers import GoogleError, bad
from gpukube_sandbox.gke.wire.names import region_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.gke.wire.answers import Json
    from gpukube_sandbox.gke.wire.names import Place

_SPECIFIC = wire.ReservationAffinity.Type.SPECIFIC_RESERVATION
_OWNER = re.compile(r"projects/([^/]+)/reservations/.+")
_WHOLE = re.compile(r"projects/([^/]+)/(.+)")
DEFAULT_ACCOUNT = "default"
"""The Compute Engine default service account, which every project here has."""


@dataclass(slots=True)
class Known:
    """Existing resources of a project.

    Attributes:
        accounts: Emails of its service accounts.
        resources: Its networks, subnetworks, placement policies, and sole-tenant node groups, such as
            "global/networks/gpu-net".
        reservations: Name -> its zone, machineType, and count; a missing value matches any request.
    """

    accounts: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    reservations: dict[str, dict[str, object]] = field(default_factory=dict)


def check_account(config: wire.NodeConfig, accounts: set[str]) -> None:
    """Reject a service account that no project here has.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT (midl-dev/tezos-on-gke#45).
    """
    name = config.service_account
    if name != DEFAULT_ACCOUNT and name not in accounts:
        raise bad(f'Service account "{name}" does not exist.')


def check_resources(pool: wire.NodePool, place: Place, known: Callable[[str], Known]) -> None:
    """Reject a placement policy, network, subnetwork, or node group that its project does not have.

    Raises:
        GoogleError: 404 NOT_FOUND, with Compute Engine's message; that GKE passes it on unchanged is unconfirmed.
    """
    for project, name in _resources_of(pool, place.project, place.location):
        if name not in known(project).resources:
            raise GoogleError("NOT_FOUND", f"The resource 'projects/{project}/{name}' was not found")


def _resources_of(pool: wire.NodePool, project: str, location: str) -> Iterator[tuple[str, str]]:
    """Yield project and name, relative to the project, of the Compute Engine resources that a pool names."""
    region = f"regions/{region_of(location)}"
    given = [(f"{region}/resourcePolicies", pool.placement_policy.policy_name)]
    for card in pool.network_config.additional_node_network_configs:
        given += [("global/networks", card.network), (f"{region}/subnetworks", card.subnetwork)]
    given += [(f"zones/{zone}/nodeGroups", pool.config.node_group) for zone in pool.locations]
    for kind, name in given:
        whole = _WHOLE.fullmatch(name)
        if name:
            yield (whole[1], whole[2]) if whole else (project, f"{kind}/{name}")


def things_of(pool: wire.NodePool, parent: Place) -> list[Json]:
    """Return what a cluster's pool needs, per project, in the form of `steering.declare`."""
    accounts = [pool.config.service_account] if pool.config.service_account not in ("", DEFAULT_ACCOUNT) else []
    found: list[Json] = [{"project": parent.project, "serviceAccounts": accounts}]
    if name := reservation_of(pool):
        found.append({"project": owner_of(pool, parent.project), "reservations": [{"name": name}]})
    named = _resources_of(pool, parent.project, parent.location)
    return found + [{"project": project, "resources": [name]} for project, name in named]


def reservation_of(pool: wire.NodePool) -> str:
    """Return the short name of the reservation that a pool uses; "" for none."""
    affinity = pool.config.reservation_affinity
    if affinity.consume_reservation_type != _SPECIFIC or not affinity.values:
        return ""
    whole = re.fullmatch(r"projects/[^/]+/reservations/([^/]+)(?:/reservationBlocks/[^/]+)?", affinity.values[0])
    return whole[1] if whole else affinity.values[0]


def owner_of(pool: wire.NodePool, project: str) -> str:
    """Return the project of a pool's reservation: the pool's own unless the name contains another."""
    values = pool.config.reservation_affinity.values
    found = _OWNER.fullmatch(values[0]) if values else None
    return found[1] if found else project
