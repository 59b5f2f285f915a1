"""Where Google Cloud offers a GPU: the one question that GKE's own API does not answer.

In scope: the call of Compute Engine, and reading its answer. Out of scope: the choice (`pool.placement`).

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
    """As much of an HTTP session as is used."""

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> _Answer:
        """GET."""


def offered_zones(identity: GoogleIdentity, project: str, accelerator: str, timeout_s: float) -> frozenset[str]:
    """Ask Compute Engine for the zones that have an accelerator type.

    Returns:
        The zones; empty when the question is not answered: the identity may not ask, or the API is not enabled. GKE
        itself refuses a zone without the GPU, so an answer is a help and never needed.
    """
    try:
        with named(AuthorizedSession(identity.credentials())) as session:  # type: ignore[no-untyped-call]  # google-auth has no types
            return read_zones(session, project, accelerator, timeout_s)
    except (*PASSING, ValueError):
        return frozenset()


def read_zones(session: Session, project: str, accelerator: str, timeout_s: float) -> frozenset[str]:
    """Ask over a session that is signed in; ValueError when the answer is no JSON."""
    params = {"filter": f"name = {accelerator}", "returnPartialSuccess": "true"}
    answer = session.get(_URL.format(project=project), params=params, timeout=timeout_s)
    scopes = tree(answer.json() if answer.ok else None, "items")
    return frozenset(scope.removeprefix("zones/") for scope, found in scopes.items() if at(found, "acceleratorTypes"))
