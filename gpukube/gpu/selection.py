"""Chooses the instance type for a model and a count, by small filters that keep and reject.

In scope: the selection rules, and the error if nothing fits. Out of scope: what a region offers now, quotas, and the
rules of one cloud.

A filter rejects with a reason, which answers "why not this type". Hard filters may leave nothing; a soft one is a
preference, and is skipped if it would leave nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, Final

from gpukube.gpu.attached import ATTACHED, usual_host
from gpukube.gpu.cloud_machines import cloud_machines
from gpukube.gpu.machines import Machine, Status, attach_gpus, catalog_date, machines
from gpukube.gpu.refusal import CatalogError, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.gpu.models import GpuModel

Rejected = tuple[Machine, str]
Split = tuple[list[Machine], list[Rejected]]

_PREFERENCE: Final[dict[Status, int]] = {
    "current": 0,
    "legacy": 1,
    "unknown": 2,
    "preview": 3,
    "no-image": 4,
    "retired": 5,
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The chosen machine, and the reason for each other one of that model and count."""

    machine: Machine
    rejected: tuple[Rejected, ...]


def resolve_machine(provider: str, model: GpuModel, count: float, among: Sequence[Machine] | None = None) -> Resolution:
    """Choose the instance type of a cloud with exactly `count` GPUs of a model per node.

    Retired and preview types are never chosen (they can be named); special-purpose variants only if there is no
    ordinary type; current before legacy; then the lowest on-demand price, unknown prices last; then the name.
    A100-40GB x 8 resolves to p4d.24xlarge, Standard_ND96asr_v4, and a2-highgpu-8g.

    Args:
        provider: Cloud.
        model: GPU model.
        count: GPUs per node; below 1 for a share.
        among: Machines of the cloud to choose from, from a catalog refresh; defaults to the embedded ones, so that a
            spec means the same machine on every computer.

    Raises:
        CatalogError: no-machine; lists the available counts, or the nearest model that the cloud has.
    """
    if among is None:
        return _choose_embedded(provider, model, count)
    return _choose(_Wish(provider, model, count), among)


@lru_cache(maxsize=256)  # pools of one spec ask for few models and counts
def _choose_embedded(provider: str, model: GpuModel, count: float) -> Resolution:
    return _choose(_Wish(provider, model, count), machines(provider))


def _choose(wish: _Wish, among: Sequence[Machine]) -> Resolution:
    kept = [m for m in among if m.model == wish.model and m.has_gpus(wish.count)]
    rejected: list[Rejected] = []
    for rule, is_hard in _RULES:
        passed, refused = rule(kept)
        if passed or is_hard:
            kept = passed
            rejected += refused
    if not kept:
        raise _none_fits(wish, among, rejected)
    return Resolution(_whole(kept[0]), tuple(rejected))


def _whole(machine: Machine) -> Machine:
    """Add the default machine if the catalog has only the GPU to attach."""
    if machine.name != ATTACHED:
        return machine
    return attach_gpus(usual_host(machine.gpus), [machine], (machine.model, machine.gpus))


def keep_deployable(candidates: Sequence[Machine]) -> Split:
    """Reject retired types."""
    return _split(candidates, lambda m: "is retired" if m.status == "retired" else "")


def keep_released(candidates: Sequence[Machine]) -> Split:
    """Reject preview types, which must be requested by name."""
    return _split(candidates, lambda m: "is in preview; name it to use it" if m.status == "preview" else "")


def prefer_ordinary(candidates: Sequence[Machine]) -> Split:
    """Reject special-purpose variants."""
    return _split(candidates, variant_reason)


def prefer_newest(candidates: Sequence[Machine]) -> Split:
    """Reject types with a worse status than the best candidate."""
    best = min((_PREFERENCE[m.status] for m in candidates), default=0)
    return _split(candidates, lambda m: f"is {m.status}" if _PREFERENCE[m.status] > best else "")


def prefer_cheapest(candidates: Sequence[Machine]) -> Split:
    """Keep the lowest on-demand price (unknown last), then the first name."""
    if not candidates:
        return [], []
    first, *others = sorted(candidates, key=_price_and_name)
    return [first], [(m, _dearer(m, first)) for m in others]


_RULES: Final[tuple[tuple[Callable[[Sequence[Machine]], Split], bool], ...]] = (
    (keep_deployable, True),
    (keep_released, True),
    (prefer_ordinary, False),
    (prefer_newest, False),
    (prefer_cheapest, False),
)


def variant_reason(machine: Machine) -> str:
    """Return why a machine is a special-purpose variant; "" for an ordinary one."""
    variants = cloud_machines(machine.provider).variants
    return next((why for pattern, why in variants if re.fullmatch(pattern, machine.name)), "")


def _split(candidates: Sequence[Machine], reason: Callable[[Machine], str]) -> Split:
    judged = [(m, reason(m)) for m in candidates]
    return [m for m, why in judged if not why], [(m, why) for m, why in judged if why]


def _price_and_name(machine: Machine) -> tuple[bool, float, str]:
    return machine.price_usd_h is None, machine.price_usd_h or 0, machine.name


def _dearer(machine: Machine, first: Machine) -> str:
    if machine.price_usd_h is None:
        return "has no known price"
    if machine.price_usd_h == first.price_usd_h:
        return f"costs the same as {first.name}, which comes first by name"
    return f"costs {machine.price_usd_h:g} USD/h, {first.name} {first.price_usd_h:g}"


@dataclass(frozen=True, slots=True)
class _Wish:
    provider: str
    model: GpuModel
    count: float


def near_machines(model: GpuModel, count: float, among: Sequence[Machine]) -> tuple[Machine, ...]:
    """Return the machines to suggest if none has exactly `count` GPUs of the model.

    Args:
        model: Requested model.
        count: Requested number.
        among: Machines of one cloud.

    Returns:
        The machine with `count` GPUs of the most similar model, then those with other numbers of the model, nearest
        number first and the cheapest of each; if the cloud lacks the model, the most similar machine; () if it has
        none.
    """
    usable = _usable(among)
    same = [m for m in usable if m.model == model]
    if not same:
        return (_substitute(usable, model, count),) if usable else ()
    best: dict[float, Machine] = {}
    for machine in sorted(same, key=_rank):
        best.setdefault(machine.gpus, machine)
    like = _substitute(usable, model, count)
    others = sorted(best.values(), key=lambda m: (abs(m.gpus - count), m.gpus))
    return (like, *others) if like.has_gpus(count) else tuple(others)


def _rank(machine: Machine) -> tuple[int, str, tuple[bool, float, str]]:
    return _PREFERENCE[machine.status], variant_reason(machine), _price_and_name(machine)


def _usable(among: Sequence[Machine]) -> list[Machine]:
    return keep_released(keep_deployable(among)[0])[0]


def _none_fits(wish: _Wish, among: Sequence[Machine], rejected: Sequence[Rejected]) -> CatalogError:
    usable, model = _usable(among), wish.model
    same = [m for m in usable if m.model == model]
    previews = [m for m, _ in rejected if m.status == "preview"]
    why = "; ".join(f"{m.name} {reason}" for m, reason in rejected)
    if previews:
        fix = f"write instanceType: {previews[0].name} to use the preview"
    elif same:
        fix = f"write count {one_of(f'{n:g}' for n in sorted({m.gpus for m in same}))}"
        like = _substitute(usable, model, wish.count)
        if like.has_gpus(wish.count):
            fix += f"; or model {like.model}, count {like.gpus:g} ({like.name})"
    elif usable:
        near = _substitute(usable, model, wish.count)
        fix = f"the nearest machine is {near.name}: write model {near.model}, count {near.gpus:g}"
        why = why or _lacking(wish)
    else:
        fix = f"choose a provider: {one_of(sorted({m.provider for m in machines()}))}"
    return CatalogError(
        f"{wish.provider} has no instance type with {wish.count:g} x {model} in the catalog of {catalog_date()}",
        why=why,
        fix=fix,
        code="no-machine",
    )


def _lacking(wish: _Wish) -> str:
    """Explain that the catalog has no type with the model, which is less than that the cloud has none."""
    missing = next((row for row in cloud_machines(wish.provider).unsourced if row.model == str(wish.model)), None)
    if missing is None:
        return f"the catalog has no {wish.provider} type with {wish.model}"
    return f"{wish.provider} names {missing.example}, which is not in the catalog: no source for its number of GPUs"


def _substitute(usable: Sequence[Machine], model: GpuModel, count: float) -> Machine:
    arm = any(m.arch == "arm64" for m in machines() if m.model == model)

    def distance(machine: Machine) -> tuple[float, float, tuple[int, str, tuple[bool, float, str]]]:
        major, minor = machine.model.compute_capability
        step = abs(major + minor / 10 - model.compute_capability[0] - model.compute_capability[1] / 10)
        size = abs(log2(machine.model.memory_gb / model.memory_gb))
        other_arch = (machine.arch == "arm64") != arm
        # the number of GPUs comes first: eight instead of one cost eight times as much
        return abs(machine.gpus - count), size + step / 2 + other_arch, _rank(machine)

    return min(usable, key=distance)
