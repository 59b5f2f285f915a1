"""Finding one instance type by its name, whatever its cloud.

In scope: that search and its refusals. Out of scope: choosing a machine for a GPU (gpukube.gpu.selection).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.gpu.attached import ATTACHED, MOST_VCPUS, find_host
from gpukube.gpu.machines import catalog_date, lack_reason, refuse_reason
from gpukube.gpu.models import find_models
from gpukube.gpu.refusal import CatalogError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.gpu.attached import Host
    from gpukube.gpu.refreshed import Entry

_SUGGESTED = 4


def find_type(entries: Sequence[Entry], name: str) -> tuple[Entry, ...]:
    """Find the rows of a type; a retired one too.

    Returns:
        One; several for GPUs that can be attached to the machine of this name.

    Raises:
        CatalogError: instance-type (unknown; names the nearest), or instance-type-refused (says why).
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
    raise CatalogError(
        f'no cloud has a GPU instance type "{name}" in the catalog of {catalog_date()}',
        fix=_fix(entries, name),
        code="instance-type",
    )


def _with_host(entries: Sequence[Entry], host: Host) -> tuple[Entry, ...]:
    """Return the GPUs that fit on a machine which has none of its own."""
    parts = [e for e in entries if e.machine.name == ATTACHED]
    fitting = [e for e in parts if host.vcpus <= MOST_VCPUS.get(str(e.machine.model), {}).get(e.machine.devices, 0)]
    return tuple(
        replace(e, machine=replace(e.machine, name=host.name, vcpus=host.vcpus, memory_gib=host.memory_gib))
        for e in fitting
    )


def _fix(entries: Sequence[Entry], name: str) -> str:
    if _is_gpu(name):
        return f"write an instance type; those with this GPU: gpukube catalog list --model {name}"
    names = nearest(name, {e.machine.name for e in entries if e.machine.status != "retired"})
    return f"write {names[0]}, or a similar one: {', '.join(names[1:_SUGGESTED])}"


def _is_gpu(name: str) -> bool:
    try:
        find_models(name)
    except CatalogError:
        return False
    return True
