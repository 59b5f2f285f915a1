"""How a reader sees a document: verbose, wide, and in how many columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """How somebody looks at a document.

    Attributes:
        verbose: Causes and exact requests too.
        width: Columns of the terminal; 0 in a pipe, where a line is a record and as long as it is.
        wide: More columns, as -o wide asks for.
    """

    verbose: bool = False
    width: int = 0
    wide: bool = False
