"""The published JSON Schemas of the documents, as shipped. They are made by `python -m tools.document_schemas`."""

from __future__ import annotations

import json
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
    "Drain": "report",
    "Wait": "report",
    "Verify": "report",
    "Validation": "validation",
    "Lint": "lint",
    "Event": "event",
    "Doctor": "doctor",
    "CatalogList": "catalog-list",
    "CatalogFind": "catalog-find",
    "CatalogSlices": "catalog-slices",
    "CatalogType": "catalog-type",
    "CatalogMig": "catalog-mig",
    "CatalogRefresh": "catalog-refresh",
    "OwnerExplanation": "owner",
    "FieldExplanation": "field",
    "Fit": "fit",
}
"""Kind of a document -> name of its schema."""


def document_schema(name: str) -> dict[str, object]:
    """Give the JSON Schema (2020-12) of a document.

    Args:
        name: A value of SCHEMA_NAMES.
    """
    text = (files(__package__) / "schemas" / f"{name}.schema.json").read_text("utf-8")
    schema: dict[str, object] = json.loads(text)
    return schema
