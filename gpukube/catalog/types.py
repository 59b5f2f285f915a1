"""Lookup of one instance type by name, on any cloud.

Out of scope: choosing a machine for a GPU (gpukube.gpu.selection).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.gpu.attached import ATTACHED, MOST_VCPUS, find_host
from gpukube.gpu.machines import catalog_date, lack_reason, refuse_reason, unsourced_error, unsourced_type
from gpukube.gpu.models import find_models
from gpukube.gpu.refusal import CatalogError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.gpu.attached import Host
    from gpukube.gpu.refreshed import Entry

_SUGGESTED = 4


def find_type(entries: Sequence[Entry], name: str) -> tuple[Entry, ...]:
    """Return the rows of a type, even if it is retired.

    Returns:
        One; several for GPUs that can be attached to the machine of this name.

    Raises:
        CatalogError: instance-type (unknown; suggests the nearest), or instance-type-refused (with the reason).
    """
    if found := tuple(e for e in entries if e.machine.name == name):
        return found
    if (host := find_host(name)) and (fitting := _with_host(entries, host)):
        return fitting
    for provider in sorted({e.machine.provider for e in entries}):
        if reason := refuse_reason(provider, name) or lack_reason(provider, name):
            raise CatalogError(
                f'"{name}" is not in the catalog',
                why=reason,
                fix=_fix([e for e in entries if e.machine.provider == provider], name),
                code="instance-type-refused",
            )
        if missing := unsourced_type(provider, name):
            raise unsourced_error(missing, provider, name)
    raise CatalogError(
        f'no GPU instance type "{name}" in the catalog of {catalog_date()}',
        fix=_fix(entries, name),
        code="instance-type",
    )


def _with_host(entries: Sequence[Entry], host: Host) -> tuple[Entry, ...]:
    """Return the GPUs that can be attached to a machine that has none."""
    parts = [e for e in entries if e.machine.name == ATTACHED]
    fitting = [e for e in parts if host.vcpus <= MOST_VCPUS.get(str(e.machine.model), {}).get(e.machine.devices, 0)]
    return tuple(
        replace(e, machine=replace(e.machine, name=host.name, vcpus=host.vcpus, memory_gib=host.memory_gib))
        for e in fitting
    )


def _fix(entries: Sequence[Entry], name: str) -> str:
    if _is_gpu(name):
        return f"give an instance type; to list those with this GPU: gpukube catalog list --model {name}"
    names = nearest(name, {e.machine.name for e in entries if e.machine.status != "retired"})
    return f"did you mean {names[0]}? Similar types: {', '.join(names[1:_SUGGESTED])}"


def _is_gpu(name: str) -> bool:
    try:
        find_models(name)
    except CatalogError:
        return False
    return True
