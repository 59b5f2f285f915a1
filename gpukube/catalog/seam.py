"""The clouds' part in the catalogue: finding what their packages contribute.

Lives here: that search, and what follows of it for a machine. Must not live here: the shape of a contribution
(gpukube.core.cloud_catalogue), any cloud.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpukube.core.cloud_catalogue import CloudCatalogue
from gpukube.gpu.slices import Cuts
from gpukube.provider import load_provider, provider_names

if TYPE_CHECKING:
    from gpukube.gpu.machines import Machine

__all__ = ["catalogue_of", "catalogues", "cuts_of"]


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
