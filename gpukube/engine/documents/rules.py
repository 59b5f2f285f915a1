"""The sentences of rules by their codes, for documents that describe the rules they cite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.codes import GPUS, POOLS
from gpukube.provider import load_provider, provider_names
from gpukube.spec.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLES: Final[tuple[Mapping[str, str], ...]] = (CODES, GPUS, POOLS)


def rule_sentence(code: str) -> str:
    """Say what a code is about; its words where no table has it."""
    name = code.partition("-")[0]
    clouds = [load_provider(name).codes] if name in provider_names() else []
    found = (table[code] for table in (*_TABLES, *clouds) if code in table)
    return next(found, f"{code.replace('-', ' ').capitalize()}.")
