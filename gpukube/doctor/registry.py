"""All checks, in the order in which they are told.

A new family is a module with a tuple CHECKS and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.doctor import nodes

if TYPE_CHECKING:
    from gpukube.doctor.check import Check

__all__ = ["CHECKS"]

CHECKS: Final[tuple[Check, ...]] = (*nodes.CHECKS,)
"""Every id once; a test holds them to docs/doctor.md."""
