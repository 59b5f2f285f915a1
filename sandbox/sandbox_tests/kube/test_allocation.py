"""Searching devices for claims: what ends soon although there is no solution.

What is found is compared with a real scheduler in tests/wire/cluster/test_real_claims.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.kube.scheduler.allocation import AllocationError, allocate
from gpukube_sandbox.kube.scheduler.devices import take_devices

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

NODE: JsonObject = {"metadata": {"name": "n1"}}


def found(devices: int, *counts: int) -> list[JsonObject] | None:
    """Allocate several requests of one claim from so many devices."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    bodies = [{"name": f"d{number}"} for number in range(devices)]
    published = {"metadata": {"name": "s"}, "spec": {"driver": "a", "nodeName": "n1", "pool": pool, "devices": bodies}}
    requests = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "any", "count": count}}
        for number, count in enumerate(counts)
    ]
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": {"requests": requests}}}
    state = take_devices([published], [{"metadata": {"name": "any"}, "spec": {}}], [])
    return allocate(NODE, [claim], state)


def test_claim_when_it_needs_one_device_too_many_then_not_all_choices_are_tried() -> None:
    assert found(31, 32) is None
    assert found(32, 32) is not None


def test_claim_when_its_requests_have_too_many_choices_then_the_search_is_given_up() -> None:
    with pytest.raises(AllocationError, match="node n1: timed out trying to allocate devices"):
        found(31, 15, 17)
