"""What a cloud package contributes to the catalog, as a value.

A provider gives one `CloudCatalog` as its member `catalog`. It is pure and needs no SDK; `fetch` imports what it
needs. In scope: its shape, what it is asked and what it answers. Out of scope: any
cloud, and what becomes of the answers (gpukube.catalog).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Settings
    from gpukube.gpu.machines import Machine
    from gpukube.gpu.refreshed import Offer


@dataclass(frozen=True, slots=True)
class Account:
    """In whose name the clouds are asked; what is "" is left to the cloud's own chain of credentials.

    Attributes:
        subscription: Azure's, which has no default of its own.
        project: Google Cloud's.
    """

    subscription: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question to one cloud: which GPU types does this region offer, and at what prices.

    Attributes:
        provider: Cloud.
        region: The cloud's own name.
        account: In whose name.
        settings: Of the run.
    """

    provider: str
    region: str
    account: Account
    settings: Settings

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.provider}/{self.region}"


@dataclass(frozen=True, slots=True)
class Findings:
    """The answer.

    Attributes:
        offers: GPU types of NVIDIA that the region offers.
        priced: Whether prices were read; when not, those of the refresh before stay.
        notes: What could not be read, and what stands in for it.
    """

    offers: tuple[Offer, ...]
    priced: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceInquiry:
    """A question for the prices of the machines of a plan.

    Attributes:
        inquiry: Cloud, region, settings.
        on_demand: Machines whose price on demand is asked for.
        spot: Machines whose spot price is.
    """

    inquiry: Inquiry
    on_demand: tuple[Machine, ...] = ()
    spot: tuple[Machine, ...] = ()


@dataclass(frozen=True, slots=True)
class LivePrice:
    """One price as a cloud reports it now.

    Attributes:
        machine: Name of the instance type.
        usd: US dollars per hour of one Linux node.
        spot: Whether it is the spot price.
        zone: Where it holds; "" for the whole region.
    """

    machine: str
    usd: float
    spot: bool = False
    zone: str = ""


@dataclass(frozen=True, slots=True)
class LivePrices:
    """The answer. What it lacks keeps the catalog's price.

    Attributes:
        prices: What could be read.
        notes: What could not, and why.
    """

    prices: tuple[LivePrice, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to know of a machine on its cloud, with where it is documented."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class CloudCatalog:
    """What a cloud's package contributes.

    Attributes:
        home: Region that is refreshed when none is named.
        region_form: Regular expression of the names of its regions.
        region_example: For messages.
        profiles: MIG profiles that the owner of a machine can have there.
        facts: Drivers, images, limits.
        fetch: Asks the cloud. Raises our errors only.
        prices: Asks for the prices of some machines in one region. Raises our errors only; None where nothing can be
            asked.
        location: Field of a cluster in the spec that says where it is; "" where only the cloud knows.
    """

    home: str
    region_form: str
    region_example: str
    profiles: Callable[[Machine], tuple[str, ...]]
    facts: Callable[[Machine], tuple[Fact, ...]]
    fetch: Callable[[Inquiry], Findings]
    prices: Callable[[PriceInquiry], LivePrices] | None = None
    location: str = ""

    def has_region(self, name: str) -> bool:
        """Return whether a name has the form of this cloud's regions; whether there is such a region it alone knows."""
        return re.fullmatch(self.region_form, name) is not None

    def region_of(self, location: str) -> str:
        """Return the region of a location, which may be a zone: prices are per region."""
        found = re.match(self.region_form, location)
        return found[0] if found else location
