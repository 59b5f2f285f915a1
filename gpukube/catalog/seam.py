"""What the installed providers contribute to the catalog.

In scope: finding the contributions, and applying them to a machine. Out of scope: the shape of a contribution
(gpukube.core.cloud_catalog), any cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.gpu.slices import Cuts
from gpukube.provider import load_provider, provider_names

if TYPE_CHECKING:
    from gpukube.core.cloud_catalog import CloudCatalog
    from gpukube.gpu.machines import Machine


def catalog_of(provider: str) -> CloudCatalog | None:
    """Return a provider's catalog; None if it has none, or is not installed."""
    return load_provider(provider).extras.catalog if provider in provider_names() else None


def catalogs() -> dict[str, CloudCatalog]:
    """Return the catalogs of all installed providers, by name."""
    found = {name: catalog_of(name) for name in provider_names()}
    return {name: catalog for name, catalog in found.items() if catalog is not None}


def cuts_of(machine: Machine) -> Cuts:
    """Return how a machine's cloud can partition its GPUs; empty if no package covers the cloud."""
    catalog = catalog_of(machine.provider)
    if catalog is None:
        return Cuts()
    mixed = load_provider(machine.provider).abilities().get("sharing.mig.mixed")
    return Cuts(catalog.profiles(machine), mixed=mixed is not None and mixed.fidelity != "missing")
