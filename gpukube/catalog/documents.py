"""The documents of `gpukube catalog`.

In scope: one function per document. Out of scope: rendering (cli).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gpukube.catalog.seam import catalog_of, cuts_of
from gpukube.engine.documents.parts import gpu_part
from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.machines import catalog_date
from gpukube.gpu.mig import maximal_mixes, profiles, resource_name
from gpukube.gpu.refusal import CatalogError
from gpukube.gpu.selection import near_machines, resolve_machine
from gpukube.gpu.sharing import max_mps_replicas
from gpukube.gpu.slices import find_slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.catalog.filters import Shown
    from gpukube.engine.documents.shapes.catalog import (
        CatalogFindDocument,
        CatalogListDocument,
        CatalogSlicesDocument,
        CatalogTypeDocument,
        DisksPart,
        FactPart,
        FoundPart,
        MachinePart,
        NetworkPart,
        OtherPart,
        PricePart,
        ProfilePart,
        SlicePart,
        StockPart,
    )
    from gpukube.gpu.machines import Machine
    from gpukube.gpu.mig import MigProfile
    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.refreshed import Entry, Stock
    from gpukube.gpu.slices import Slice


def list_document(shown: Shown, stocks: Iterable[Stock], region: str) -> CatalogListDocument:
    """Return the document of the types to show."""
    return {
        "schemaVersion": 1,
        "kind": "CatalogList",
        "embedded": catalog_date(),
        "refreshed": _stocks(stocks),
        "region": region,
        "machines": [_machine(entry) for entry in shown.entries],
        "leftOut": shown.left_out,
    }


def find_document(
    entries: Sequence[Entry],
    stocks: Iterable[Stock],
    requested: tuple[GpuModel, float],
    providers: Sequence[str],
    region: str = "",
) -> CatalogFindDocument:
    """Return the document with the machine of each cloud.

    Args:
        entries: The catalog in use.
        stocks: Refreshed data in it.
        requested: Model and GPUs per node.
        providers: Clouds, in output order.
        region: A refreshed region; types that it does not offer are skipped.
    """
    model, count = requested
    return {
        "schemaVersion": 1,
        "kind": "CatalogFind",
        "embedded": catalog_date(),
        "refreshed": _stocks(stocks),
        "asked": {"model": str(model), "count": count},
        "clouds": [_found([e for e in entries if e.machine.provider == p], p, requested, region) for p in providers],
    }


def slices_document(
    entries: Sequence[Entry], stocks: Iterable[Stock], at_least_gb: float, region: str = ""
) -> CatalogSlicesDocument:
    """Return the document of the devices with enough memory."""
    offered = [entry for entry in entries if not region or region not in entry.missing]
    return {
        "schemaVersion": 1,
        "kind": "CatalogSlices",
        "embedded": catalog_date(),
        "refreshed": _stocks(stocks),
        "atLeastGB": at_least_gb,
        "slices": [_slice(found) for found in find_slices(offered, at_least_gb, cuts_of)],
    }


def type_document(entries: Sequence[Entry], stocks: Iterable[Stock]) -> CatalogTypeDocument:
    """Return the full document of one type.

    Args:
        entries: The type; several of one name if GPUs are attached to a machine. At least one.
        stocks: Refreshed data in the catalog.
    """
    first = entries[0].machine
    one = first if len(entries) == 1 else None
    return {
        "schemaVersion": 1,
        "kind": "CatalogType",
        "embedded": catalog_date(),
        "refreshed": _stocks(stocks),
        "machines": [_machine(entry) for entry in entries],
        "computeCapability": ".".join(map(str, first.model.compute_capability)) if one else "",
        "resources": {GPU_RESOURCE: one.devices} if one else {},
        "profiles": [_profile(one, profile) for profile in profiles(one.model)] if one else [],
        "mixes": [list(mix) for mix in maximal_mixes(one.model)] if one else [],
        "facts": _facts(first, shared=one is not None),
        "network": _network(first),
        "disks": _disks(first),
    }


def _found(entries: Sequence[Entry], provider: str, requested: tuple[GpuModel, float], region: str) -> FoundPart:
    """Choose among the available machines; list the unavailable ones with those not chosen."""
    model, count = requested
    barred = {e.machine: why for e in entries if (why := _bar(e, region))}
    among = [e.machine for e in entries if e.machine not in barred]
    others = [(m, why) for m, why in barred.items() if m.model == model and m.has_gpus(count) and m.status != "retired"]
    try:
        resolution = resolve_machine(provider, model, count, among)
    except CatalogError as error:
        why = f"none with {count:g} x {model} available here" if others else error.why or error.message
        near = [_machine(_entry_of(m, entries)) for m in near_machines(model, count, among)]
        return {"provider": provider, "machine": None, "why": why, "rejected": _others(others), "candidates": near}
    rejected = [*resolution.rejected, *others]
    chosen = resolution.machine
    return {
        "provider": provider,
        "machine": _machine(_entry_of(chosen, entries), chosen),
        "why": _why(requested, [why for _, why in rejected]),
        "rejected": _others(rejected),
        "candidates": [],
    }


def _entry_of(machine: Machine, entries: Sequence[Entry]) -> Entry:
    """Return the entry of a machine; if GPUs are attached to it, the entry of the GPUs."""
    same = [e for e in entries if e.machine.model == machine.model and e.machine.gpus == machine.gpus]
    return next((e for e in same if e.machine.name == machine.name), same[0])


def _others(rejected: Sequence[tuple[Machine, str]]) -> list[OtherPart]:
    return [{"instanceType": machine.name, "why": why} for machine, why in rejected]


def _bar(entry: Entry, region: str) -> str:
    """Return why this account, this region, or the cloud's images rule a machine out; "" if it can."""
    if region and region in entry.missing:
        return f"is not offered in {region}"
    if entry.machine.status == "no-image":
        return "has no image with its driver yet"
    return f"not available to this account ({entry.restricted})" if entry.restricted else ""


def _why(requested: tuple[GpuModel, float], reasons: Sequence[str]) -> str:
    model, count = requested
    if not reasons:
        return f"the only one with {count:g} x {model}"
    if any(reason.startswith(("costs", "has no known price")) for reason in reasons):
        return "the lowest known price among ordinary, current types"
    return "the only ordinary, current type"


def _machine(entry: Entry, machine: Machine | None = None) -> MachinePart:
    """Describe a machine; with `machine`, one that its GPUs are attached to."""
    shown = machine or entry.machine
    return {
        "provider": shown.provider,
        "instanceType": shown.name,
        "gpu": gpu_part(shown) or {"model": str(shown.model), "count": shown.gpus},
        "gpuMemoryGiB": shown.gpu_memory_gib,
        "vcpus": shown.vcpus,
        "memoryGiB": shown.memory_gib,
        "arch": shown.arch,
        "mig": shown.mig_capable,
        "accelerator": shown.accelerator,
        "localSsdGiB": shown.local_ssd_gib,
        "status": shown.status,
        "notes": shown.notes,
        "successor": shown.successor,
        "price": _price(shown, shown.price_usd_h),
        "spot": _price(shown, shown.spot_usd_h),
        "source": entry.source,
        "date": entry.as_of,
        "regions": list(entry.regions),
        "missing": list(entry.missing),
        "restricted": entry.restricted,
    }


def _price(machine: Machine, usd: float | None) -> PricePart | None:
    if usd is None:
        return None
    return {"usdPerHour": round(usd, 4), "region": machine.price_region, "date": machine.price_date}


def _slice(found: Slice) -> SlicePart:
    machine = found.entry.machine
    return {
        "kind": found.kind,
        "profile": found.profile,
        "memoryGB": found.memory_gb,
        "perNode": found.per_node,
        "resources": {"single": found.single, **({"mixed": found.mixed} if found.mixed else {})},
        "confidence": found.confidence,
        "price": _price(machine, found.price_usd_h),
        "machine": _machine(found.entry),
    }


def _profile(machine: Machine, profile: MigProfile) -> ProfilePart:
    cuts = cuts_of(machine)
    available = profile.name in cuts.profiles
    resources: dict[Literal["single", "mixed"], str] = {"single": GPU_RESOURCE} if available else {}
    if available and cuts.mixed:
        resources["mixed"] = resource_name(profile)
    return {
        "name": profile.name,
        "memoryGB": profile.memory_gb,
        "perGpu": profile.max_instances,
        "perNode": profile.max_instances * machine.devices,
        "available": available,
        "resources": resources,
        "confidence": profile.confidence,
    }


def _facts(machine: Machine, *, shared: bool) -> list[FactPart]:
    catalog = catalog_of(machine.provider)
    found: list[FactPart] = [
        {"text": fact.text, "source": fact.source} for fact in (catalog.facts(machine) if catalog else ())
    ]
    if shared and not machine.is_fractional:
        text = f"MPS shares a GPU among at most {max_mps_replicas(machine.model)} clients"
        found.append({"text": text, "source": "NVIDIA/k8s-device-plugin v0.20.0 README"})
    return found


def _network(machine: Machine) -> NetworkPart | None:
    catalog = catalog_of(machine.provider)
    found = catalog.network(machine) if catalog and catalog.network else None
    return {"kind": found.kind, "interfaces": found.interfaces, "cards": found.cards} if found else None


def _disks(machine: Machine) -> DisksPart | None:
    catalog = catalog_of(machine.provider)
    found = catalog.disks(machine) if catalog and catalog.disks else None
    return {"count": found.count, "sizeGB": found.size_gb} if found else None


def _stocks(stocks: Iterable[Stock]) -> list[StockPart]:
    return [
        {"provider": s.provider, "region": s.region, "date": s.day, "types": len(s.offers)}
        for s in sorted(stocks, key=lambda s: (s.provider, s.region))
    ]
