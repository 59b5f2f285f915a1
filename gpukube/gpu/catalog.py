"""Public names of the catalog, re-exported from models.py, machines.py, and selection.py; no code of its own."""

from __future__ import annotations

from gpukube.gpu.machines import (
    Machine,
    catalog_date,
    find_machine,
    machines,
    refuse_reason,
    require_machine,
    warn_reason,
)
from gpukube.gpu.models import GpuModel, parse_model
from gpukube.gpu.refusal import CatalogError
from gpukube.gpu.selection import Resolution, resolve_machine

__all__ = [
    "CatalogError",
    "GpuModel",
    "Machine",
    "Resolution",
    "catalog_date",
    "find_machine",
    "machines",
    "parse_model",
    "refuse_reason",
    "require_machine",
    "resolve_machine",
    "warn_reason",
]
