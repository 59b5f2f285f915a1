"""What a cloud package contributes to the catalog.

A provider has one `CloudCatalog` as its member `catalog`. It is pure and needs no SDK; `fetch` imports what it needs.
In scope: its shape, its queries, and their results. Out of scope: any cloud, and what is done with the results
(gpukube.catalog).
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
    """The account for queries; "" leaves a field to the cloud's own credential chain.

    Attributes:
        subscription: Azure subscription; it has no default.
        project: Google Cloud project.
    """

    subscription: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A query to one cloud: the GPU types and prices of a region.

    Attributes:
        provider: Cloud.
        region: The cloud's own name of the region.
        account: Account to use.
        settings: Settings of the run.
    """

    provider: str
    region: str
    account: Account
    settings: Settings

    @property
    def where(self) -> str:
        """Provider and region, for messages."""
        return f"{self.provider}/{self.region}"


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of an `Inquiry`.

    Attributes:
        offers: NVIDIA GPU types that the region offers.
        priced: Whether prices were read; if not, those of the previous refresh stay.
        notes: What could not be read, and what replaces it.
    """

    offers: tuple[Offer, ...]
    priced: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceInquiry:
    """A query for the prices of the machines of a plan.

    Attributes:
        inquiry: Cloud, region, settings.
        on_demand: Machines whose on-demand price is requested.
        spot: Machines whose spot price is requested.
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
        zone: Zone to which it applies; "" for the whole region.
    """

    machine: str
    usd: float
    spot: bool = False
    zone: str = ""


@dataclass(frozen=True, slots=True)
class LivePrices:
    """The result of a `PriceInquiry`. Machines that it lacks keep the catalog's price.

    Attributes:
        prices: Prices that could be read.
        notes: What could not be read, and why.
    """

    prices: tuple[LivePrice, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a machine on its cloud, with its source."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Network:
    """The network between the GPUs of several nodes.

    Attributes:
        kind: What the cloud calls it: "EFA", "InfiniBand", "GPUDirect-TCPXO".
        interfaces: Interfaces of one node for it.
        cards: Network cards of the node; 0 if the cloud does not list any.
    """

    kind: str
    interfaces: int
    cards: int = 0


@dataclass(frozen=True, slots=True)
class Disks:
    """The local disks that a machine includes.

    Attributes:
        count: Number of disks.
        size_gb: Size of each in GB, 10^9 bytes.
    """

    count: int
    size_gb: int


@dataclass(frozen=True, slots=True)
class CloudCatalog:
    """What a cloud package contributes.

    Attributes:
        home: Region to refresh by default.
        region_form: Regular expression of the names of its regions.
        region_example: Example of a region, for messages.
        profiles: Returns the MIG profiles that a machine supports there.
        facts: Returns facts on drivers, images, and limits.
        fetch: Queries the cloud. Raises only GpukubeError.
        prices: Queries the prices of some machines in one region. Raises only GpukubeError; None if the cloud has no
            such query.
        location: Field of a cluster in the spec that contains its location; "" if only the cloud knows it.
        network: Returns a machine's network for jobs of several nodes; None if it has none.
        disks: Returns a machine's local disks; None if it has none, or if their number is a choice or unknown.
    """

    home: str
    region_form: str
    region_example: str
    profiles: Callable[[Machine], tuple[str, ...]]
    facts: Callable[[Machine], tuple[Fact, ...]]
    fetch: Callable[[Inquiry], Findings]
    prices: Callable[[PriceInquiry], LivePrices] | None = None
    location: str = ""
    network: Callable[[Machine], Network | None] | None = None
    disks: Callable[[Machine], Disks | None] | None = None

    def has_region(self, name: str) -> bool:
        """Return whether a name has the form of this cloud's regions; only the cloud knows which exist."""
        return re.fullmatch(self.region_form, name) is not None

    def region_of(self, location: str) -> str:
        """Return the region of a location, which may be a zone; prices are per region."""
        found = re.match(self.region_form, location)
        return found[0] if found else location
