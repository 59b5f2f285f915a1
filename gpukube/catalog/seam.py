"""The clouds' part in the catalogue: what the installed providers contribute.

Lives here: asking them, and what follows of it for a machine. Must not live here: the shape of a contribution
(gpukube.core.cloud_catalogue), any cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.gpu.slices import Cuts
from gpukube.provider import load_provider, provider_names

if TYPE_CHECKING:
    from gpukube.core.cloud_catalogue import CloudCatalogue
    from gpukube.gpu.machines import Machine


def catalogue_of(provider: str) -> CloudCatalogue | None:
    """Give what a provider knows; None where it has no catalogue, or is not installed."""
    return load_provider(provider).catalogue if provider in provider_names() else None


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
