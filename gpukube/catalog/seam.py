"""What a cloud's package contributes to the catalogue, as a value.

A provider package may have a module `catalogue` with one `CloudCatalogue` named CATALOGUE. It is pure and needs no SDK;
`fetch` imports what it needs. Lives here: its shape, and finding it. Must not live here: any cloud.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpukube.gpu.slices import Cuts
from gpukube.provider import load_provider, provider_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Settings
    from gpukube.gpu.machines import Machine
    from gpukube.gpu.refreshed import Offer

__all__ = ["Account", "CloudCatalogue", "Fact", "Findings", "Inquiry", "catalogue_of", "catalogues", "cuts_of"]


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
class Fact:
    """Something to know of a machine on its cloud, with where it is documented."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class CloudCatalogue:
    """What a cloud's package contributes.

    Attributes:
        home: Region that is refreshed when none is named.
        region_form: Regular expression of the names of its regions.
        region_example: For messages.
        profiles: MIG profiles that the owner of a machine can have there.
        facts: Drivers, images, limits.
        fetch: Asks the cloud. Raises our errors only.
    """

    home: str
    region_form: str
    region_example: str
    profiles: Callable[[Machine], tuple[str, ...]]
    facts: Callable[[Machine], tuple[Fact, ...]]
    fetch: Callable[[Inquiry], Findings]

    def has_region(self, name: str) -> bool:
        """Tell whether a name has the form of this cloud's regions; whether there is such a region it alone knows."""
        return re.fullmatch(self.region_form, name) is not None


def catalogue_of(provider: str) -> CloudCatalogue | None:
    """Give what a provider's package knows; None where it has no module `catalogue`, or is not installed."""
    if provider not in provider_names():
        return None
    return _load(type(load_provider(provider)).__module__.partition(".")[0])


def catalogues() -> dict[str, CloudCatalogue]:
    """Give those of all installed providers that have one, by name."""
    found = {name: catalogue_of(name) for name in provider_names()}
    return {name: catalogue for name, catalogue in found.items() if catalogue is not None}


def cuts_of(machine: Machine) -> Cuts:
    """Say what a machine's cloud makes of its GPUs; nothing where no package speaks for the cloud."""
    catalogue = catalogue_of(machine.provider)
    if catalogue is None:
        return Cuts()
    mixed = load_provider(machine.provider).abilities().get("sharing.mig.mixed")
    return Cuts(catalogue.profiles(machine), mixed=mixed is not None and mixed.fidelity != "missing")


@cache
def _load(package: str) -> CloudCatalogue | None:
    if find_spec(f"{package}.catalogue") is None:
        return None
    found: object = getattr(import_module(f"{package}.catalogue"), "CATALOGUE", None)
    return found if isinstance(found, CloudCatalogue) else None
