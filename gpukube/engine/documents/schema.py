"""The published JSON Schemas of the documents, as shipped, and the shapes that they are generated from.

`python -m tools.document_schemas` generates them.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import Final

SCHEMA_NAMES: Final = {
    "Plan": "plan",
    "Diff": "diff",
    "PoolList": "list",
    "Pool": "pool",
    "Create": "report",
    "Apply": "report",
    "Scale": "report",
    "Delete": "report",
    "Release": "report",
    "ReleaseRemoval": "report",
    "Drain": "report",
    "Wait": "report",
    "Verify": "report",
    "Validation": "validation",
    "Lint": "lint",
    "Event": "event",
    "Doctor": "doctor",
    "Permissions": "permissions",
    "CatalogList": "catalog-list",
    "CatalogFind": "catalog-find",
    "CatalogSlices": "catalog-slices",
    "CatalogType": "catalog-type",
    "CatalogMig": "catalog-mig",
    "CatalogRefresh": "catalog-refresh",
    "OwnerExplanation": "owner",
    "FieldExplanation": "field",
    "Fit": "fit",
    "Capacity": "capacity",
    "Map": "map",
    "Usage": "usage",
}
"""Kind of a document -> name of its schema."""

_SHAPES: Final = {
    "plan": "plan:PlanDocument",
    "diff": "plan:PlanDocument",
    "list": "listing:ListDocument",
    "pool": "listing:PoolDocument",
    "report": "report:ReportDocument",
    "validation": "report:ValidationDocument",
    "lint": "report:LintDocument",
    "event": "report:EventDocument",
    "doctor": "doctor:DoctorDocument",
    "permissions": "permissions:PermissionsDocument",
    "catalog-list": "catalog:CatalogListDocument",
    "catalog-find": "catalog:CatalogFindDocument",
    "catalog-slices": "catalog:CatalogSlicesDocument",
    "catalog-type": "catalog:CatalogTypeDocument",
    "catalog-mig": "mig:CatalogMigDocument",
    "catalog-refresh": "catalog:CatalogRefreshDocument",
    "owner": "explanation:OwnerDocument",
    "field": "explanation:FieldDocument",
    "fit": "fit:FitDocument",
    "capacity": "capacity:CapacityDocument",
    "map": "map:MapDocument",
    "usage": "usage:UsageDocument",
}
"""Name of a schema -> its shape: module of `shapes`, and type."""


def document_shape(kind: str) -> type:
    """Import the shape of a kind of document, one of SCHEMA_NAMES."""
    module, _, name = _SHAPES[SCHEMA_NAMES[kind]].partition(":")
    shape: type = getattr(import_module(f"{__package__}.shapes.{module}"), name)
    return shape


def document_schema(name: str) -> dict[str, object]:
    """Return the JSON Schema (2020-12) of a document.

    Args:
        name: A value of SCHEMA_NAMES.
    """
    text = (files(__package__) / "schemas" / f"{name}.schema.json").read_text("utf-8")
    schema: dict[str, object] = json.loads(text)
    return schema
