"""Instance types of the three clouds as values, and the names that are refused.

Lives here: `Machine`, finding one by name, why a name is refused or warned about. Must not live here:
choosing a machine for a model (selection.py) and what one cloud's API wants to hear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import isclose
from typing import TYPE_CHECKING, Final, Literal, cast

from gpukube.gpu.attached import ATTACHED, MOST_VCPUS, find_host, usual_host
from gpukube.gpu.models import Arch, GpuModel, model_named
from gpukube.gpu.refusal import CatalogueError, nearest, one_of
from gpukube.gpu.tables import instance_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.gpu.attached import Host
    from gpukube.gpu.tables import MachineRow

__all__ = [
    "Machine",
    "Status",
    "attach_gpus",
    "catalogue_date",
    "find_machine",
    "lack_reason",
    "learn",
    "machines",
    "refuse_reason",
    "require_machine",
    "warn_reason",
]

COUNT_TOLERANCE: Final = 0.001

Status = Literal["current", "legacy", "preview", "retired", "unknown"]


@dataclass(frozen=True, slots=True)
class Machine:
    """One instance type of one cloud.

    Attributes:
        provider: "aks", "eks" or "gke".
        name: The cloud's own spelling; "n1-*" is a GPU attached to any n1 machine of GCE.
        model: Its GPU.
        gpus: GPUs of one node; below 1 for a share of a GPU.
        gpu_memory_gib: Memory of each GPU, of the share for a fractional one.
        vcpus: None when unknown, as every other optional number.
        memory_gib: Main memory.
        arch: CPU architecture.
        mig_capable: The node's owner can cut the GPU on this cloud; None when unconfirmed.
        accelerator: GKE's accelerator type, "" elsewhere.
        local_ssd_gib: Disks that come with the machine.
        price_usd_h: On demand, Linux, one node, in price_region at the catalogue's date.
        spot_usd_h: Spot price likewise.
        price_region: "" when no price is known.
        price_date: Day of the prices, YYYY-MM-DD; "" when none is known.
        status: retired is refused; legacy, preview and unknown are warned about.
        notes: For people, "" when there is nothing to say.
        successor: What to use in place of a retired type, "" when not known.
    """

    provider: str
    name: str
    model: GpuModel
    gpus: float
    gpu_memory_gib: float
    vcpus: int | None
    memory_gib: float | None
    arch: Arch
    mig_capable: bool | None
    accelerator: str
    local_ssd_gib: float | None
    price_usd_h: float | None
    spot_usd_h: float | None
    price_region: str
    status: Status
    notes: str = ""
    successor: str = ""
    price_date: str = ""

    @property
    def devices(self) -> int:
        """Whole GPUs a node shows as nvidia.com/gpu; a share of a GPU shows as one."""
        return max(1, round(self.gpus))

    def has_gpus(self, count: float) -> bool:
        """Tell whether the node holds this many GPUs; shares such as 1/6 are rounded in the clouds' own tables."""
        return isclose(self.gpus, count, abs_tol=COUNT_TOLERANCE)

    @property
    def is_fractional(self) -> bool:
        """Whether the node holds a share of a GPU."""
        return self.gpus < 1


_NO_GPU: Final = "a machine of this family has no GPU"

# Names that cannot work, with the reason. Sources: docs: aks/use-nvidia-gpu (AMD), Azure retired VM sizes
# as listed by dstackai/gpuhunt 3584151, EC2 instance type pages (p2 K80, g2 K520, g3 M60).
_REFUSED: Final[tuple[tuple[str, str, str], ...]] = (
    ("eks", r"g4ad\..+", "its GPUs are from AMD; gpukube drives NVIDIA GPUs"),
    ("eks", r"(p2|g2|g3s?)\..+", "an old EC2 generation (K80, K520 or M60 GPUs) that is not in the catalogue"),
    ("aks", r"Standard_ND96is\w*_MI300X_v5", "its GPUs are from AMD; gpukube drives NVIDIA GPUs"),
    ("aks", r"Standard_NV\d+\w*_V710_v5", "its GPUs are from AMD; gpukube drives NVIDIA GPUs"),
    ("aks", r"Standard_NG\d+\w*_V620\w*", "its GPUs are from AMD; gpukube drives NVIDIA GPUs"),
    ("aks", r"Standard_NV\d+as_v4", "its GPUs are from AMD; gpukube drives NVIDIA GPUs"),
    ("aks", r"Standard_NP\d+s", "it carries FPGAs, no GPU"),
    ("aks", r"Standard_NC(6|12|24r?)", "Azure retired this size"),
    ("aks", r"Standard_NC\d+r?s_v2", "Azure retired this size"),
    ("aks", r"Standard_ND(6|12|24r?)s", "Azure retired this size"),
    ("aks", r"Standard_NV(6|12|24)", "Azure retired this size"),
    ("aks", r"Standard_NV\d+s_v2", "Azure retired this size"),
    ("aks", r"Standard_NV\d+s_v3", "its M60 GPU is not in the catalogue"),
)

# Families without NVIDIA GPUs, wrong in a GPU pool and right beside it. Sources: docs: ec2/instancetypes, compute/docs/
# machine-resource, kubernetes-engine/docs/concepts/plan-tpus; Azure's sizes with accelerators begin with N.
_WITHOUT_NVIDIA: Final[tuple[tuple[str, str, str], ...]] = (
    ("eks", r"trn\d\w*\..+", "it carries AWS Trainium chips, no NVIDIA GPU"),
    ("eks", r"inf\d\w*\..+", "it carries AWS Inferentia chips, no NVIDIA GPU"),
    ("eks", r"dl\d\w*\..+", "its accelerators are not from NVIDIA"),
    ("eks", r"(a1|[cmrt]\d|x[128]|u-?\w|i[2-8]|is4|im4|d[23]|h1|z1|hpc|mac)[\w-]*\..+", _NO_GPU),
    ("gke", r"(ct\d\w*|tpu\d\w*)-.+", "it carries Google TPUs, no NVIDIA GPU"),
    ("gke", r"(e2|[cn]2d?|n4[ad]?|c3d?|c4[ad]?|t2[ad]|m[1-4]|h[34]d?|x4|z3)-.+", _NO_GPU),
    ("aks", r"Standard_([A-FHLM]|G[1-5]|GS)[A-Z]*\d\w*", _NO_GPU),
)

_WARNED: Final[dict[Status, str]] = {
    "legacy": "is of a former generation; the cloud may have few of them",
    "preview": "is in preview",
    "unknown": "may be retired: no page of the cloud says whether it is current",
}


_LEARNT: Final[dict[tuple[str, str], Machine]] = {}
"""Machines that a refresh of the catalogue has found beyond the embedded table; written by `learn` alone."""


def catalogue_date() -> str:
    """Give the date of the embedded table, YYYY-MM-DD; to be named with prices and refusals."""
    return instance_table()["asOf"]


def machines(provider: str | None = None) -> tuple[Machine, ...]:
    """Give all machines of the catalogue, or one cloud's, ordered by provider and name."""
    return tuple(m for m in _all() if provider in (None, m.provider))


def find_machine(provider: str, name: str) -> Machine | None:
    """Find a machine by the cloud's exact spelling; None when unknown or when the name fits several rows."""
    found = _by_name().get((provider, name), ())
    if not found:
        return _LEARNT.get((provider, name))
    return found[0] if len(found) == 1 else None


def learn(found: Iterable[Machine]) -> None:
    """Make machines known by name that the embedded table lacks, in place of those that were learnt before.

    By name only: what a model and a count mean rests on the embedded table, so that a spec means the same wherever it
    is read. A spec that names a learnt type is refused where it was not learnt, and never means another machine.
    """
    _LEARNT.clear()
    _LEARNT.update({(m.provider, m.name): m for m in found if (m.provider, m.name) not in _by_name()})


def require_machine(provider: str, name: str, gpu: tuple[GpuModel, float] | None = None) -> Machine:
    """Find a machine by name, or say why it cannot be had.

    Args:
        provider: Of the machine.
        name: The cloud's exact spelling; on Azure, which compares without case, any.
        gpu: Model and count that are asked for beside the name; read only where GPUs are attached to the machine.

    Raises:
        CatalogueError: instance-type-refused (retired, AMD, FPGA), or instance-type (unknown: the canonical
            spelling if only the case differs, else the nearest names; GPUs that this machine cannot have).
    """
    if host := find_host(provider, name):
        return attach_gpus(host, [m for m in machines(provider) if m.name == ATTACHED], gpu)
    found = find_machine(provider, _without_case(name) if provider == "aks" else name)
    if found and found.status != "retired":
        return found
    if reason := refuse_reason(provider, name) or lack_reason(provider, name):
        raise _refusal(provider, name, reason, gpu)
    raise _unknown(provider, name)


def attach_gpus(host: Host, parts: Sequence[Machine], gpu: tuple[GpuModel, float] | None) -> Machine:
    """Put GPUs on a machine.

    Args:
        host: The machine.
        parts: The catalogue's attachable GPUs, one row per model and count.
        gpu: Model and count that are asked for.

    Raises:
        CatalogueError: instance-type; no GPU is named, it cannot be attached, or the machine is too large for it.
    """
    if gpu is None:
        raise CatalogueError(
            f'"{host.name}" has no GPU of its own',
            fix="write gpu: {model: T4, count: 1} beside it",
            why="GPUs are attached to N1 machines, in any of several numbers",
            code="instance-type",
        )
    model, count = gpu
    part = next((part for part in parts if part.model == model and part.has_gpus(count)), None)
    if part is None:
        raise _not_attachable(host, parts, model, count)
    most = MOST_VCPUS[model.name][part.devices]
    if host.vcpus > most:
        raise CatalogueError(
            f'"{host.name}" has {host.vcpus} vCPUs, too many for {count:g} x {model}',
            fix=f"write a machine with at most {most} vCPUs, or more GPUs",
            code="instance-type",
        )
    return replace(part, name=host.name, vcpus=host.vcpus, memory_gib=host.memory_gib)


def _not_attachable(host: Host, parts: Sequence[Machine], model: GpuModel, count: float) -> CatalogueError:
    counts = sorted({part.devices for part in parts if part.model == model})
    if counts:
        fix = f"write count {one_of(str(number) for number in counts)}"
        return CatalogueError(f'"{host.name}" cannot have {count:g} x {model}', fix=fix, code="instance-type")
    models = sorted({part.model.name for part in parts if part.status == "current"})
    return CatalogueError(
        f'{model} cannot be attached to "{host.name}"',
        fix=f"drop instanceType, or write model {one_of(models)}",
        code="instance-type",
    )


def _without_case(size: str) -> str:
    """Give Azure's own spelling of a size; the text as it is when there is none."""
    wanted = size.casefold()
    names = (name for provider, name in (*_by_name(), *_LEARNT) if provider == "aks")
    return next((name for name in names if name.casefold() == wanted), size)


def refuse_reason(provider: str, instance_type: str) -> str | None:
    """Say why a type must not be used: retired, no NVIDIA GPU, uncatalogued; None when nothing speaks against it."""
    for cloud, pattern, reason in _REFUSED:
        if cloud == provider and re.fullmatch(pattern, instance_type, re.IGNORECASE):
            return reason
    for machine in machines(provider):
        if machine.status == "retired" and machine.name.casefold() == instance_type.casefold():
            return machine.notes
    return None


def lack_reason(provider: str, instance_type: str) -> str | None:
    """Say that a family of machines has no NVIDIA GPU; None for GPU machines and for what is unknown."""
    for cloud, pattern, reason in _WITHOUT_NVIDIA:
        if cloud == provider and re.fullmatch(pattern, instance_type, re.IGNORECASE):
            return reason
    return None


def warn_reason(machine: Machine) -> str | None:
    """Say what to know before buying: legacy, preview and unknown status; None for a current type."""
    reason = _WARNED.get(machine.status)
    if reason is None:
        return None
    told = f"{machine.name} {reason}"
    return f"{told} ({machine.notes})" if machine.notes else told


def _refusal(provider: str, name: str, reason: str, gpu: tuple[GpuModel, float] | None) -> CatalogueError:
    same = (m for m in machines(provider) if m.name.casefold() == name.casefold())
    successor = next((m.successor for m in same), "")
    fix = "drop instanceType and write gpu.model and gpu.count"
    if successor:
        fix = f"write {successor}"
    elif gpu:
        attached = (
            provider == "gke" and reason == _NO_GPU and any(m.name == ATTACHED for m in _that_have(provider, gpu))
        )
        fix = (
            f"write {usual_host(gpu[1]).name}, or drop instanceType" if attached else "drop instanceType: gpu is enough"
        )
        reason += f"; {gpu[0]} is attached to N1 machines alone" if attached else ""
    return CatalogueError(f'"{name}" cannot be used', why=reason, fix=fix, code="instance-type-refused")


def _that_have(provider: str, gpu: tuple[GpuModel, float]) -> list[Machine]:
    return [m for m in machines(provider) if m.model == gpu[0] and m.has_gpus(gpu[1])]


def _unknown(provider: str, name: str) -> CatalogueError:
    choices = _usable_names(provider, name)
    same = [choice for choice in choices if choice.casefold() == name.casefold()]
    if same:
        return CatalogueError(
            f'"{name}" is not how {provider} spells this instance type', fix=f"write {same[0]}", code="instance-type"
        )
    if elsewhere := [m for m in machines() if m.name.casefold() == name.casefold() and m.provider != provider]:
        return _of_another_cloud(elsewhere[0], provider, name)
    return CatalogueError(
        f'"{name}" is no GPU instance type of {provider} in the catalogue of {catalogue_date()}',
        fix=f"write {choices[0]}, or a near one: {', '.join(choices[1:4])}",
        why="a type that is newer than that is known after gpukube catalog refresh",
        code="instance-type",
    )


def _of_another_cloud(machine: Machine, provider: str, name: str) -> CatalogueError:
    gpu = f"gpu: {{model: {machine.model}, count: {machine.devices}}}"
    return CatalogueError(
        f'"{name}" is an instance type of {machine.provider}, not of {provider}',
        fix=f"write {gpu} instead, or instanceType: {{{machine.provider}: {machine.name}, {provider}: TYPE}}",
        code="instance-type",
    )


def _usable_names(provider: str, name: str) -> list[str]:
    names = {m.name for m in machines(provider) if m.status != "retired" and "*" not in m.name}
    return nearest(name, names)


@cache
def _all() -> tuple[Machine, ...]:
    return tuple(_machine(row) for row in instance_table()["machines"])


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
    """Give the day of a row's prices: that of the one source among its own that has any."""
    if "priceUsdH" not in row:
        return ""
    days = instance_table()["priceDates"]
    return next(days[tag] for tag in row["source"].split("+") if tag in days)
