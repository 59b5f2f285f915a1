"""What a provider's package knows of its cloud's faults, found by the provider.

Lives here: the look-up of the module `diagnose` beside a provider. Must not live here: what is in it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpukube.core.cloud_check import Diagnosis

if TYPE_CHECKING:
    from gpukube.provider import Provider

__all__ = ["diagnosis_of"]


def diagnosis_of(provider: Provider) -> Diagnosis | None:
    """Give what the provider's package knows; None where it has no module `diagnose`."""
    return _load(type(provider).__module__.partition(".")[0])


@cache
def _load(package: str) -> Diagnosis | None:
    if find_spec(f"{package}.diagnose") is None:
        return None
    found: object = getattr(import_module(f"{package}.diagnose"), "DIAGNOSIS", None)
    return found if isinstance(found, Diagnosis) else None
