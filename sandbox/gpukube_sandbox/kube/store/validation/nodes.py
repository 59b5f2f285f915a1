"""Validation of nodes.

Source: kubernetes pkg/apis/core/validation/validation.go (ValidateNode, ValidateNodeUpdate, validateNodeTaints).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import forbidden, invalid
from gpukube_sandbox.kube.store.validation.resources import check_count
from gpukube_sandbox.kube.store.validation.scheduling import check_taints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause


def check_node(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject invalid taints, and changes of immutable fields."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    yield from check_taints(spec.get("taints") or [], "metadata.taints")
    for at, block in enumerate(spec.get("podCIDRs") or filter(None, [spec.get("podCIDR")])):
        try:
            ipaddress.ip_network(block)
        except ValueError:
            text = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"spec.podCIDRs[{at}]", block, text)
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        yield forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
    status = new.get("status") or {}
    for part in ("capacity", "allocatable"):
        for name, value in (status.get(part) or {}).items():
            yield from check_count(name, value, f"status.{part}[{name}]")
