"""Output formats by kind of document: one table for commands, their help, completion, and the documentation.

Command modules import this for their help texts, so it imports nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DATA: Final = ("table", "json", "yaml")
_WIDE: Final = ("table", "wide", "json", "yaml")
_MARKDOWN: Final = ("markdown", "comment")
_CI: Final = (*_MARKDOWN, "github", "junit")
_REPORTED: Final = (*_DATA, *_CI)
_PLANNED: Final = (*_REPORTED, "codequality", "gitlab-terraform")
_FOUND: Final = ("table", "text", "json", "yaml", *_CI, "codequality", "sarif")
REPORTS: Final = (
    *("Create", "Apply", "Scale", "Delete", "Release", "ReleaseRemoval"),
    *("Drain", "Wait", "Verify"),
)
"""Kinds of reports on pools and clusters, which share one shape."""
FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "Plan": (*_PLANNED, "terraform-json", "html"),
    "Diff": _PLANNED,
    "PoolList": (*_WIDE, "name", *_MARKDOWN),
    "Pool": (*_WIDE, "name"),
    **dict.fromkeys(REPORTS, _REPORTED),
    "Doctor": _REPORTED,
    "Permissions": _DATA,
    "Validation": _FOUND,
    "Lint": _FOUND,
    "OwnerExplanation": _DATA,
    "FieldExplanation": _DATA,
    "Sandbox": _DATA,
    "SandboxFaults": _DATA,
    "CatalogList": _WIDE,
    "CatalogFind": _WIDE,
    "CatalogSlices": _WIDE,
    "CatalogType": _WIDE,
    "CatalogMig": _WIDE,
    "CatalogRefresh": _DATA,
    "Fit": (*_WIDE, *_CI, "codequality"),
    "Capacity": (*_DATA, *_MARKDOWN),
    "Usage": (*_DATA, "csv", *_MARKDOWN, "openmetrics"),
    "Map": (*_DATA, "html"),
}
"""Kind of document -> its formats, the default first."""

KINDS: Final[Mapping[str, str]] = {
    "doctor": "Doctor",
    "validate": "Validation",
    "pool plan": "Plan",
    "pool plan diff": "Diff",
    "pool create": "Create",
    "pool apply": "Apply",
    "pool scale": "Scale",
    "pool wait": "Wait",
    "pool list": "PoolList",
    "pool get": "Pool",
    "pool delete": "Delete",
    "pool release": "Release",
    "pool drain": "Drain",
    "pool verify": "Verify",
    "release remove": "ReleaseRemoval",
    "workload lint": "Lint",
    "workload fit": "Fit",
    "pool map": "Map",
    "pool usage": "Usage",
    "capacity find": "Capacity",
    "catalog list": "CatalogList",
    "catalog find": "CatalogFind",
    "catalog show": "CatalogType",
    "catalog mig": "CatalogMig",
    "catalog refresh": "CatalogRefresh",
    "sandbox status": "Sandbox",
    "sandbox fault list": "SandboxFaults",
    "explain field": "FieldExplanation",
    "explain owner": "OwnerExplanation",
}
"""Command with -o -> kind of document that it shows; a test checks this against the formats the commands reject."""
