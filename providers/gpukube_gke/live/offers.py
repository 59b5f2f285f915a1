"""Finds the zones where Google Cloud offers a GPU, which GKE's own API does not list.

In scope: the call of Compute Engine, and parsing its response. Out of scope: the choice (`pool.placement`).

Source: compute.acceleratorTypes.aggregatedList (docs: compute/docs/reference/rest/v1/acceleratorTypes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from google.auth.transport.requests import AuthorizedSession

from gpukube.core.jsontree import at, tree
from gpukube_gke.live.access import named
from gpukube_gke.live.failures import PASSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_gke.live.access import GoogleIdentity

_URL: Final = "https://compute.googleapis.com/compute/v1/projects/{project}/aggregated/acceleratorTypes"


class _Answer(Protocol):
    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""

    def json(self) -> object:
        """The body."""


class Session(Protocol):
    """The part of an HTTP session that gpukube uses."""

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> _Answer:
        """GET."""


def offered_zones(identity: GoogleIdentity, project: str, accelerator: str, timeout_s: float) -> frozenset[str]:
    """Read the zones that have an accelerator type from Compute Engine.

    Returns:
        The zones; empty if the call fails: the identity lacks the permission, or the API is not enabled. GKE rejects a
        zone without the GPU, so the zones are helpful but not required.
    """
    try:
        with named(AuthorizedSession(identity.credentials())) as session:  # type: ignore[no-untyped-call]  # google-auth has no types
            return read_zones(session, project, accelerator, timeout_s)
    except (*PASSING, ValueError):
        return frozenset()


def read_zones(session: Session, project: str, accelerator: str, timeout_s: float) -> frozenset[str]:
    """Read zones over an authorized session; raise a ValueError if the response is not JSON."""
    params = {"filter": f"name = {accelerator}", "returnPartialSuccess": "true"}
    answer = session.get(_URL.format(project=project), params=params, timeout=timeout_s)
    scopes = tree(answer.json() if answer.ok else None, "items")
    return frozenset(scope.removeprefix("zones/") for scope, found in scopes.items() if at(found, "acceleratorTypes"))
