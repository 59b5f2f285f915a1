"""Numbers, titles and pages of rules: what `gpukube validate` and `workload lint` find, each with a stable number.

In scope: looking them up. Out of scope: the tables. gpukube's own are in `gpukube.codes`, a provider brings its
own as `Provider.codes`; a row is code, number and title. A code that only a live run reports has no number: messages
show its name alone.

To add a rule: write its row with the next free number of its table; add its page under tests/messages, for workloads
under tests/workloads (bad.yaml, an empty `said` and good.yaml; `pytest --update` writes the message); run
`pytest --update tests/unit/test_rule_ids.py` and `python -m tools.codes_docs`.
gpukube's numbers are GPK1xx (the spec), GPK2xx (GPUs and machines), GPK3xx (pools on their clusters) and GPK7xx
(workloads). People write numbers into specs (`silence`) and search for them, so a number never gets another code, nor a
code another number.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ALIASES: Final[dict[str, str]] = {
    "pods-ask-gpu-under-mixed": "gpu-name-unknown",
    "pods-ask-absent-profile": "gpu-name-unknown",
    "pods-ask-other-name": "gpu-name-unknown",
    "pods-ask-misspelt-name": "gpu-name-unknown",
    "pods-too-large": "gpu-too-large",
    "shared-request-above-one": "shared-request-many",
}
"""Names of checks of the doctor -> the code of the rule that finds the same mistake in manifests."""

PAGES: Final = "docs/diagnostics"
_OUR_NUMBERS: Final = "GPK"
"""How the numbers begin that have a page here; another package documents its own."""


def rule_id(code: str) -> str:
    """Return the number of a code; "" where it has none."""
    return _row(code)[1]


def rule_label(code: str) -> str:
    """Name a code as messages do: "GPK103 unknown-key", or the code alone where it has no number."""
    return f"{rule_id(code)} {code}".lstrip()


def rule_title(code: str) -> str:
    """Return what a code is about, in a sentence; the words of the code where no table has it."""
    return _row(code)[2] or f"{code.replace('-', ' ').capitalize()}."


def rule_page(code: str) -> str:
    """Return the page of a code in the repository, with its anchor; the index for a code that has no page."""
    family, number, _ = _row(code)
    return f"{PAGES}/{family}.md#{number.lower()}" if number.startswith(_OUR_NUMBERS) else f"{PAGES}/README.md"


def code_of(rule: str) -> str | None:
    """Return the code that a number, a code or an alias names; None when none is known."""
    return rule if rule in rule_numbers() else _by_number().get(rule) or ALIASES.get(rule)


@cache
def rule_numbers() -> Mapping[str, str]:
    """Return the number of every code that has one: gpukube's own and those of all installed providers."""
    from gpukube.codes import FAMILIES
    from gpukube.entry_points import provider_names

    tables = [*FAMILIES.values(), *map(_codes_of, provider_names())]
    return {code: number for table in tables for code, (number, _) in table.items()}


@cache
def _by_number() -> Mapping[str, str]:
    return {number: code for code, number in rule_numbers().items()}


def _row(code: str) -> tuple[str, str, str]:
    """Return family, number and title of a code; number and title are "" where no table has it."""
    from gpukube.codes import FAMILIES  # --help reports no finding, and loads no table

    for family, table in FAMILIES.items():
        if code in table:
            return family, *table[code]
    provider = code.partition("-")[0]
    return provider, *_codes_of(provider).get(code, ("", ""))


@cache
def _codes_of(provider: str) -> Mapping[str, tuple[str, str]]:
    """Return a provider's table; empty where it is not installed or fails to load: `gpukube.installed` reports it."""
    from gpukube.entry_points import make_provider, provider_names

    if provider not in provider_names():
        return {}
    try:
        codes: Mapping[str, tuple[str, str]] = make_provider(provider).codes
    except (ImportError, AttributeError, TypeError):
        return {}
    return codes
