"""The sentences of rules by their codes, for documents that describe the rules they cite.

A provider's sentences are in the module `codes` of its package (its table CODES): found there whoever wrote it, and not
missed where there is none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpukube.codes import GPUS, POOLS
from gpukube.provider import load_provider, provider_names
from gpukube.spec.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["rule_sentence"]

_TABLES: Final[tuple[Mapping[str, str], ...]] = (CODES, GPUS, POOLS)


def rule_sentence(code: str) -> str:
    """Say what a code is about; its words where no table has it."""
    for table in _TABLES:
        if code in table:
            return table[code]
    name = code.partition("-")[0]
    return _provider_table(name).get(code, f"{code.replace('-', ' ').capitalize()}.")


def _provider_table(name: str) -> Mapping[str, str]:
    if name not in provider_names():
        return {}
    package = type(load_provider(name)).__module__.partition(".")[0]
    try:
        table: Mapping[str, str] = import_module(f"{package}.codes").CODES
    except (ImportError, AttributeError):
        return {}
    return table
