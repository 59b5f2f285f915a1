"""Data that a refresh read from a cloud's API, and the catalog merged from it.

In scope: the values of one refresh, and merging them over the embedded table. Out of scope: calls, the file that stores
them (gpukube.catalog), and choosing a machine (selection.py).

Live data wins: shape, price, and generation of a type come from the newest response that has them, each with its date
and region. What an API does not return (MIG, how a share of a GPU is counted) keeps the embedded value. A type that the
embedded table lacks is added if its GPU is known.

Stocks are serialized to a file and parsed back into these types (gpukube.catalog), so annotations exist at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.machines import Machine, Status, catalog_date, machines
from gpukube.gpu.mig import is_mig_model
from gpukube.gpu.models import Arch, parse_model
from gpukube.gpu.refusal import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.gpu.models import GpuModel

_NEW: Final = "known from the cloud's API only, not in the embedded table"


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance type as a cloud describes it; missing values are None or "".

    Attributes:
        name: The cloud's own spelling; "n1-*" for attachable GPUs.
        model: Name or alias of its GPU.
        gpus: GPUs per node; below 1 for a share.
        vcpus: See `Machine`.
        memory_gib: Main memory.
        arch: CPU architecture.
        accelerator: GKE's accelerator type.
        status: Whether the cloud lists the type as current, previous generation, or gone.
        price_usd_h: On-demand price, Linux, one node, in the region of the stock.
        spot_usd_h: Spot price, same terms.
        price_date: Date the prices were read, YYYY-MM-DD; "" without prices.
        restricted: Why this account cannot use it in the region; "" if it can.
        efa_cards: EKS's network cards with EFA.
    """

    name: str
    model: str = ""
    gpus: float | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    arch: Arch | Literal[""] = ""
    accelerator: str = ""
    status: Status | Literal[""] = ""
    price_usd_h: float | None = None
    spot_usd_h: float | None = None
    price_date: str = ""
    restricted: str = ""
    efa_cards: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str, float]:
        """Unique key: the name, plus model and number for attachable GPUs."""
        return _key(self.name, self.model, self.gpus or 0)


@dataclass(frozen=True, slots=True)
class Stock:
    """All GPU types that a cloud offers in one region.

    Attributes:
        provider: Cloud.
        region: The cloud's own region name.
        fetched: Time of the read, ISO 8601 in UTC.
        offers: Ordered by name.
        notes: What could not be read, and what replaces it.
        table: Date of the embedded table at the time of the refresh; "" if unknown.
    """

    provider: str
    region: str
    fetched: str
    offers: tuple[Offer, ...]
    notes: tuple[str, ...] = ()
    table: str = ""

    @property
    def day(self) -> str:
        """The date it was read, YYYY-MM-DD."""
        return self.fetched[:10]

    @property
    def is_outdated(self) -> bool:
        """Whether the embedded table is newer: gpukube was upgraded since the refresh.

        The date alone does not decide, since a clock may be wrong.
        """
        return self.day < catalog_date() and self.table < catalog_date()


@dataclass(frozen=True, slots=True)
class Entry:
    """One machine of the current catalog, and the source of its data.

    Attributes:
        machine: The machine with all merged data.
        source: Whether a refresh found it.
        as_of: Date of that refresh, else of the embedded table.
        regions: Refreshed regions that offer it.
        missing: Refreshed regions of its cloud that do not.
        restricted: Why this account cannot use it in the selected region; "" if it can.
    """

    machine: Machine
    source: Literal["embedded", "refreshed"]
    as_of: str
    regions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    restricted: str = ""


def lay_over(stocks: Iterable[Stock], region: str = "") -> tuple[Entry, ...]:
    """Return the current catalog, ordered by provider and name.

    Args:
        stocks: Stored refreshes; at most one per provider and region.
        region: Region whose prices and restrictions apply; "" for the region of the embedded price if it was refreshed,
            else the one refreshed last.
    """
    by_provider: dict[str, list[Stock]] = {}
    for stock in sorted(stocks, key=lambda s: (s.fetched, s.region), reverse=True):
        by_provider.setdefault(stock.provider, []).append(stock)
    offers = {(s.provider, s.region): {offer.key: offer for offer in s.offers} for s in _all(by_provider)}
    entries = [_entry(machine, by_provider.get(machine.provider, []), offers, region) for machine in machines()]
    known = {(m.provider, _key_of(m)) for m in machines()}
    for stock in _all(by_provider):
        for offer in stock.offers:
            found = None if (stock.provider, offer.key) in known else _unknown(stock.provider, offer)
            if found is not None:
                known.add((stock.provider, offer.key))
                entries.append(_entry(found, by_provider[stock.provider], offers, region))
    return tuple(sorted(entries, key=lambda e: (e.machine.provider, e.machine.name)))


def priced_machine(machine: Machine, stocks: Iterable[Stock], region: str) -> Machine | None:
    """Return the machine with its price from a refresh; None if no refresh has a usable price.

    Args:
        machine: Machine of the embedded table, or added by a refresh.
        stocks: Stored refreshes; at most one per provider and region.
        region: Region of the price. If it was not refreshed, the refreshed price of the machine's own region replaces
            the embedded price of that region.
    """
    own = {stock.region: stock for stock in stocks if stock.provider == machine.provider}
    for stock in filter(None, map(own.get, dict.fromkeys((region, machine.price_region)))):
        offer = next((offer for offer in stock.offers if offer.key == _key_of(machine)), None)
        if offer is not None and offer.price_usd_h is not None:
            return _merged(machine, offer, stock)
    return None


def _all(by_provider: dict[str, list[Stock]]) -> list[Stock]:
    return [stock for stocks in by_provider.values() for stock in stocks]


def _entry(
    machine: Machine,
    stocks: Sequence[Stock],
    offers: dict[tuple[str, str], dict[tuple[str, str, float], Offer]],
    region: str,
) -> Entry:
    key = _key_of(machine)
    has = {s.region: offers[s.provider, s.region].get(key) for s in stocks}
    seen = [s for s in stocks if has[s.region] is not None]
    regions = tuple(sorted(s.region for s in seen))
    missing = tuple(sorted(s.region for s in stocks if has[s.region] is None))
    requested = region or machine.price_region
    chosen = next((s for s in seen if s.region == requested), seen[0] if seen else None)
    offer = has[chosen.region] if chosen else None
    if chosen is None or offer is None:
        return Entry(machine=machine, source="embedded", as_of=catalog_date(), regions=regions, missing=missing)
    return Entry(
        machine=_merged(machine, offer, chosen),
        source="refreshed",
        as_of=chosen.day,
        regions=regions,
        missing=missing,
        restricted=offer.restricted,
    )


def _merged(machine: Machine, offer: Offer, stock: Stock) -> Machine:
    shaped = replace(
        machine,
        vcpus=offer.vcpus if offer.vcpus is not None else machine.vcpus,
        memory_gib=offer.memory_gib if offer.memory_gib is not None else machine.memory_gib,
        arch=offer.arch or machine.arch,
        status=_status(machine, offer),
    )
    if offer.price_usd_h is None:
        return shaped
    return replace(
        shaped,
        price_usd_h=offer.price_usd_h,
        spot_usd_h=offer.spot_usd_h,
        price_region=stock.region,
        price_date=offer.price_date or stock.day,
    )


def _status(machine: Machine, offer: Offer) -> Status:
    """Return the status from the API; what the API does not know stays: retired, preview, no image."""
    if machine.status in ("retired", "preview", "no-image") or not offer.status:
        return machine.status
    return offer.status


def _unknown(provider: str, offer: Offer) -> Machine | None:
    """Return the machine of a type that the embedded table lacks; None if its GPU is unknown too."""
    model = _model(offer.model)
    if model is None or not offer.gpus:
        return None
    is_whole = offer.gpus >= 1
    return Machine(
        provider=provider,
        name=offer.name,
        model=model,
        gpus=offer.gpus,
        gpu_memory_gib=round(model.memory_gb * min(offer.gpus, 1), 1),
        vcpus=offer.vcpus,
        memory_gib=offer.memory_gib,
        arch=offer.arch or "amd64",
        mig_capable=None if is_whole and is_mig_model(model) else False,
        accelerator=offer.accelerator,
        local_ssd_gib=None,
        price_usd_h=None,
        spot_usd_h=None,
        price_region="",
        status=offer.status or "current",
        notes=_NEW,
        efa_cards=offer.efa_cards,
    )


def _model(text: str) -> GpuModel | None:
    try:
        return parse_model(text)
    except CatalogError:
        return None


def _key_of(machine: Machine) -> tuple[str, str, float]:
    return _key(machine.name, str(machine.model), machine.gpus)


def _key(name: str, model: str, gpus: float) -> tuple[str, str, float]:
    if name != ATTACHED:
        return name, "", 0.0
    found = _model(model)
    return name, str(found) if found else model, gpus
