"""Instance types by name, and the names that are rejected.

In scope: finding a machine by name, why a name is rejected or warned about. Out of scope: choosing a machine for a
model (selection.py), names that one cloud rejects (its provider's `machines`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from gpukube.gpu.attached import ATTACHED, MOST_VCPUS, find_host, usual_host
from gpukube.gpu.cloud_machines import NO_GPU, cloud_machines, own_machines
from gpukube.gpu.machine import Machine, Status
from gpukube.gpu.models import Arch, GpuModel, model_named
from gpukube.gpu.refusal import CatalogError, nearest, one_of
from gpukube.gpu.tables import instance_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.gpu.attached import Host
    from gpukube.gpu.cloud_machines import Unsourced
    from gpukube.gpu.tables import MachineRow

__all__ = [
    "Machine",
    "Status",
    "attach_gpus",
    "catalog_date",
    "find_machine",
    "lack_reason",
    "learn",
    "machines",
    "refuse_reason",
    "require_machine",
    "unsourced_error",
    "unsourced_type",
    "warn_reason",
]

_WARNED: Final[dict[Status, str]] = {
    "legacy": "is of an older generation; the cloud may have few of them",
    "preview": "is in preview",
    "unknown": "may be retired: no page of the cloud lists it as current",
}


_LEARNED: Final[dict[tuple[str, str], Machine]] = {}
"""Machines that a catalog refresh added to the embedded table; written only by `learn`."""


def catalog_date() -> str:
    """Return the date of the embedded table, YYYY-MM-DD; messages name it next to prices and rejections."""
    return instance_table()["asOf"]


def machines(provider: str | None = None) -> tuple[Machine, ...]:
    """Return all machines of the catalog, or one cloud's, ordered by provider and name."""
    return _all() if provider is None else _by_provider().get(provider, ())


def find_machine(provider: str, name: str) -> Machine | None:
    """Find a machine by the cloud's exact spelling; None if unknown or if several rows match."""
    found = _by_name().get((provider, name), ())
    if not found:
        return _LEARNED.get((provider, name))
    return found[0] if len(found) == 1 else None


def learn(found: Iterable[Machine]) -> None:
    """Add machines that the embedded table lacks, by name, replacing those added before.

    Model and count always resolve through the embedded table, so that a spec means the same on every computer. A spec
    that names an added type is rejected where it was not added; it never resolves to another machine.
    """
    _LEARNED.clear()
    _LEARNED.update({(m.provider, m.name): m for m in found if (m.provider, m.name) not in _by_name()})


def require_machine(provider: str, name: str, gpu: tuple[GpuModel, float] | None = None) -> Machine:
    """Find a machine by name, or explain why it is not available.

    Args:
        provider: Cloud of the machine.
        name: The cloud's exact spelling; any case if the cloud ignores it.
        gpu: Model and count from the spec; used only for machines with attached GPUs.

    Raises:
        CatalogError: instance-type-refused (retired, AMD, FPGA), or instance-type (unknown: the canonical
            spelling if only the case differs, else the nearest names; GPUs that cannot be attached to this machine).
    """
    parts = _by_name().get((provider, ATTACHED))
    if parts and (host := find_host(name)):
        return attach_gpus(host, parts, gpu)
    found = find_machine(provider, name)
    if found is None and cloud_machines(provider).ignores_case:
        found = find_machine(provider, _own_spelling(provider, name))
    if found and found.status != "retired":
        return found
    if reason := refuse_reason(provider, name) or lack_reason(provider, name):
        raise _refusal(provider, name, reason, gpu)
    raise _unknown(provider, name)


def attach_gpus(host: Host, parts: Sequence[Machine], gpu: tuple[GpuModel, float] | None) -> Machine:
    """Attach GPUs to a machine.

    Args:
        host: The machine.
        parts: The catalog's attachable GPUs, one row per model and count.
        gpu: Model and count from the spec.

    Raises:
        CatalogError: instance-type; no GPU is given, it cannot be attached, or the machine has too many vCPUs for it.
    """
    if gpu is None:
        raise CatalogError(
            f'"{host.name}" has no GPU of its own',
            fix="add gpu: {model: T4, count: 1}",
            why="GPUs are attached to N1 machines, in different counts",
            code="instance-type",
        )
    model, count = gpu
    part = next((part for part in parts if part.model == model and part.has_gpus(count)), None)
    if part is None:
        raise _not_attachable(host, parts, model, count)
    most = MOST_VCPUS[model.name][part.devices]
    if host.vcpus > most:
        raise CatalogError(
            f'"{host.name}" has {host.vcpus} vCPUs, too many for {count:g} x {model}',
            fix=f"use a machine with at most {most} vCPUs, or more GPUs",
            code="instance-type",
        )
    return replace(part, name=host.name, vcpus=host.vcpus, memory_gib=host.memory_gib)


def _not_attachable(host: Host, parts: Sequence[Machine], model: GpuModel, count: float) -> CatalogError:
    counts = sorted({part.devices for part in parts if part.model == model})
    if counts:
        fix = f"write count {one_of(str(number) for number in counts)}"
        return CatalogError(f'"{host.name}" cannot have {count:g} x {model}', fix=fix, code="instance-type")
    models = sorted({part.model.name for part in parts if part.status == "current"})
    return CatalogError(
        f'{model} cannot be attached to "{host.name}"',
        fix=f"remove instanceType, or write model {one_of(models)}",
        code="instance-type",
    )


def _own_spelling(provider: str, name: str) -> str:
    """Return the cloud's own spelling of a name; the text unchanged if there is none."""
    known = (known for cloud, known in (*_by_name(), *_LEARNED) if cloud == provider)
    return next((spelling for spelling in known if spelling.casefold() == name.casefold()), name)


def refuse_reason(provider: str, instance_type: str) -> str | None:
    """Explain why a type must not be used: retired, no NVIDIA GPU, uncataloged; None if it is usable."""
    for pattern, reason in cloud_machines(provider).refused:
        if re.fullmatch(pattern, instance_type, re.IGNORECASE):
            return reason
    for machine in machines(provider):
        if machine.status == "retired" and machine.name.casefold() == instance_type.casefold():
            return machine.notes
    return None


def lack_reason(provider: str, instance_type: str) -> str | None:
    """Return the reason why a machine family has no NVIDIA GPU; None for GPU machines and unknown names."""
    rows = cloud_machines(provider).without_gpu
    return next((reason for pattern, reason in rows if re.fullmatch(pattern, instance_type, re.IGNORECASE)), None)


def unsourced_type(provider: str, instance_type: str) -> Unsourced | None:
    """Return a type that the cloud sells and the catalog lacks, for want of a source; None for other names."""
    rows = cloud_machines(provider).unsourced
    return next((row for row in rows if re.fullmatch(row.pattern, instance_type, re.IGNORECASE)), None)


def unsourced_error(found: Unsourced, provider: str, instance_type: str) -> CatalogError:
    """Return the error for such a type."""
    return CatalogError(
        f'"{instance_type}" is not in the catalog of {catalog_date()}: no source for it',
        why=f"{provider} names it ({found.source}), but publishes no number of GPUs that gpukube could read",
        fix=f"run gpukube catalog refresh --provider {provider} in a region that has it, and name it with instanceType",
        code="instance-type",
    )


def warn_reason(machine: Machine) -> str | None:
    """Return a warning about a legacy, preview, or unknown status; None for a current type."""
    reason = _WARNED.get(machine.status)
    if reason is None:
        return None
    reported = f"{machine.name} {reason}"
    return f"{reported} ({machine.notes})" if machine.notes else reported


def _refusal(provider: str, name: str, reason: str, gpu: tuple[GpuModel, float] | None) -> CatalogError:
    same = (m for m in machines(provider) if m.name.casefold() == name.casefold())
    successor = next((m.successor for m in same), "")
    fix = "remove instanceType and write gpu.model and gpu.count"
    if successor:
        fix = f"write {successor}"
    elif gpu:
        attached = reason == NO_GPU and any(
            m.name == ATTACHED and m.model == gpu[0] and m.has_gpus(gpu[1]) for m in machines(provider)
        )
        fix = (
            f"write {usual_host(gpu[1]).name}, or remove instanceType"
            if attached
            else "remove instanceType; gpu is sufficient"
        )
        reason += f"; {gpu[0]} is attached to N1 machines only" if attached else ""
    return CatalogError(f'"{name}" cannot be used', why=reason, fix=fix, code="instance-type-refused")


def _unknown(provider: str, name: str) -> CatalogError:
    choices = nearest(name, {m.name for m in machines(provider) if m.status != "retired" and "*" not in m.name})
    same = [choice for choice in choices if choice.casefold() == name.casefold()]
    if same:
        return CatalogError(
            f'"{name}" is not the spelling of {provider}', fix=f"did you mean {same[0]}?", code="instance-type"
        )
    if elsewhere := [m for m in machines() if m.name.casefold() == name.casefold() and m.provider != provider]:
        return _of_another_cloud(elsewhere[0], provider, name)
    if found := unsourced_type(provider, name):
        return unsourced_error(found, provider, name)
    return CatalogError(
        f'"{name}" is not a GPU instance type of {provider} in the catalog of {catalog_date()}',
        fix=f"did you mean {choices[0]}? Similar: {', '.join(choices[1:4])}",
        why="for a newer type run gpukube catalog refresh",
        code="instance-type",
    )


def _of_another_cloud(machine: Machine, provider: str, name: str) -> CatalogError:
    gpu = f"gpu: {{model: {machine.model}, count: {machine.devices}}}"
    return CatalogError(
        f'"{name}" is an instance type of {machine.provider}, not of {provider}',
        fix=f"write {gpu} instead, or instanceType: {{{machine.provider}: {machine.name}, {provider}: TYPE}}",
        code="instance-type",
    )


@cache
def _all() -> tuple[Machine, ...]:
    embedded = (_machine(row) for row in instance_table()["machines"])
    return tuple(sorted((*embedded, *own_machines()), key=lambda machine: (machine.provider, machine.name)))


@cache
def _by_provider() -> dict[str, tuple[Machine, ...]]:
    clouds = dict.fromkeys(machine.provider for machine in _all())
    return {cloud: tuple(machine for machine in _all() if machine.provider == cloud) for cloud in clouds}


@cache
def _by_name() -> dict[tuple[str, str], list[Machine]]:
    found: dict[tuple[str, str], list[Machine]] = {}
    for machine in _all():
        found.setdefault((machine.provider, machine.name), []).append(machine)
    return found


def _machine(row: MachineRow) -> Machine:
    return Machine(
        provider=row["provider"],
        name=row["name"],
        model=model_named(row["model"]),
        gpus=row["gpus"],
        gpu_memory_gib=row["gpuMemoryGiB"],
        vcpus=row.get("vcpus"),
        memory_gib=row.get("memoryGiB"),
        arch=cast("Arch", row["arch"]),
        mig_capable=row.get("mig"),
        accelerator=row.get("accelerator", ""),
        local_ssd_gib=row.get("localSsdGiB"),
        price_usd_h=row.get("priceUsdH"),
        spot_usd_h=row.get("spotUsdH"),
        price_region=row.get("priceRegion", ""),
        status=cast("Status", row["status"]),
        notes=row.get("notes", ""),
        successor=row.get("successor", ""),
        price_date=_price_date(row),
    )


def _price_date(row: MachineRow) -> str:
    """Return the date of a row's prices: that of its source that has prices."""
    if "priceUsdH" not in row:
        return ""
    days = instance_table()["priceDates"]
    return next(days[tag] for tag in row["source"].split("+") if tag in days)
