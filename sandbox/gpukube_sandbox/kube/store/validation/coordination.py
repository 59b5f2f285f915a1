"""Leases.

Source: kubernetes pkg/apis/coordination/validation; apimachinery pkg/apis/meta/v1/micro_time.go (exactly six digits).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.problems import bad_request
from gpukube_sandbox.kube.store.validation.fields import forbidden, invalid, one_of, positive, qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def check_lease(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a Lease with impossible numbers or an unknown strategy.

    Raises:
        ApiProblem: 400 for a time without exactly six digits of a second's fraction, which cannot be decoded.
    """
    del old
    spec = new.get("spec") or {}
    for key in ("acquireTime", "renewTime"):
        moment = spec.get(key)
        if moment is not None and not _MICRO_TIME.fullmatch(str(moment)):
            found = f'parsing time "{moment}" as "{_LAYOUT}": cannot parse "{moment}" as "{_LAYOUT}"'
            raise bad_request(f'Lease in version "v1" cannot be handled as a Lease: {found}')
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from positive("spec.leaseTransitions", spec.get("leaseTransitions"))
    strategy = spec.get("strategy")
    if strategy and "/" in strategy:
        yield from qualified_name("spec.strategy.strategy", strategy)
    else:
        yield from one_of("spec.strategy.strategy", strategy, ("OldestEmulationVersion",))
    if spec.get("preferredHolder") and not strategy:
        yield forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")
