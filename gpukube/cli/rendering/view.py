"""How a document is displayed: verbose, wide, and in how many columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """Display settings of a document.

    Attributes:
        verbose: Also show causes and exact requests.
        width: Columns of the terminal; 0 in a pipe, where each line is a record of any length.
        wide: Show more columns, as requested by -o wide.
        signs: Whether the stream can write signs beyond ASCII.
    """

    verbose: bool = False
    width: int = 0
    wide: bool = False
    signs: bool = True
