"""If-Match and If-None-Match, as AKS handles them.

In scope: parsing and checking the two headers. Out of scope: creating eTags (`pools`).

Source: docs: aks/use-etags. Quotes around the tag are optional: the SDK adds them, the eTag property has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpukube_sandbox.aks.answers import aks_error


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The two headers; None if absent."""

    if_match: str | None = None
    if_none_match: str | None = None


def check_preconditions(given: Preconditions, etag: str | None) -> None:
    """Reject a request whose condition is not met.

    Args:
        given: The headers.
        etag: eTag of the stored resource; None if it does not exist.

    Raises:
        ArmError: 400 for both headers or an If-None-Match other than *, 412 PreConditionFailed otherwise (messages
            unconfirmed).
    """
    if given.if_match is not None and given.if_none_match is not None:
        raise aks_error("BadRequest", "If-Match and If-None-Match headers cannot both be set.")
    if given.if_none_match is not None:
        if given.if_none_match.strip('"') != "*":
            raise aks_error("BadRequest", "If-None-Match header only takes the value *.")
        if etag is not None:
            message = "The resource already exists: the condition of If-None-Match is not met."
            raise aks_error("PreConditionFailed", message, status=412)
    if given.if_match is not None and (etag is None or given.if_match.strip('"') not in {"*", etag}):
        message = f"The eTag in If-Match, {given.if_match}, does not match the resource's current eTag."
        raise aks_error("PreConditionFailed", message, status=412)
