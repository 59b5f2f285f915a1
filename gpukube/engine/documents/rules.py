"""The sentences and documentation pages of rules by their codes, for documents that describe the rules they cite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.codes import GPUS, POOLS, WORKLOADS
from gpukube.provider import load_provider, provider_names
from gpukube.rule_ids import rule_id
from gpukube.spec.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGES: Final = "docs/diagnostics"
_FAMILIES: Final[Mapping[str, Mapping[str, str]]] = {
    "spec": CODES,
    "gpus": GPUS,
    "pools": POOLS,
    "workloads": WORKLOADS,
}
"""Tables of codes by the name of their page; a provider's page has the provider's name."""


def rule_sentence(code: str) -> str:
    """Return what a code is about; its words where no table has it."""
    _, table = _family(code)
    return table.get(code) or f"{code.replace('-', ' ').capitalize()}."


def rule_page(code: str) -> str:
    """Return the page of a code in the repository, with its anchor; the index for a code that has no number."""
    family, _ = _family(code)
    number = rule_id(code)
    return f"{PAGES}/{family}.md#{number.lower()}" if number else f"{PAGES}/README.md"


def _family(code: str) -> tuple[str, Mapping[str, str]]:
    for name, table in _FAMILIES.items():
        if code in table:
            return name, table
    name = code.partition("-")[0]
    return name, load_provider(name).codes if name in provider_names() else {}
