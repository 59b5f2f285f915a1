"""A table of figures: printed beside their goals, written to a file, and compared with such a file.

Lives here: rows of (what, figure, goal), and the one rule of what is slower. Must not live here: measuring what is in
them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = tuple[str, str, str]
"""What was measured; the figure with its unit, "0.78 x", or why there is none, "no az"; the goal."""
YARDSTICK: Final = "yardstick: the same loop in Python"
_MOST: Final = 1.1
_SHORTEST_S: Final = 0.1
"""Seconds below which two figures differ by rounding alone, and are not compared."""
_LOOPS: Final = 7
_TURNS: Final = 1_000_000


def yardstick() -> Row:
    """Time a loop that never changes: seconds of other machines, or of a busy one, are compared in units of it."""
    return YARDSTICK, f"{min(_loop() for _ in range(_LOOPS)):.3f} s", ""


def _loop() -> float:
    begin = time.process_time()
    seen: dict[str, int] = {}
    for turn in range(_TURNS):
        key = str(turn % 1000)
        seen[key] = seen.get(key, 0) + turn
    return time.process_time() - begin


def show(rows: Iterable[Row]) -> dict[str, str]:
    """Print rows as they come; return their figures."""
    figures = {}
    for what, figure, goal in rows:
        print(f"{what:<60} {figure:>10}" + (f"   goal {goal}" if goal else ""), flush=True)
        figures[what] = figure
    return figures


def save(figures: dict[str, str], file: str) -> None:
    """Write figures for later comparisons."""
    Path(file).write_text(json.dumps(figures, indent=2) + "\n")


def compare(figures: dict[str, str], file: str) -> int:
    """Print what is slower or larger than in a file by more than a tenth; return how many rows are.

    Ratios and megabytes are compared as they are, seconds in units of the yardstick of their own run. Rows that only
    one of the two has are skipped, and so are seconds too short to compare.
    """
    before: dict[str, str] = json.loads(Path(file).read_text())
    scale = _number(figures[YARDSTICK]) / _number(before[YARDSTICK])
    slower = 0
    for what, figure in figures.items():
        if what == YARDSTICK or not (_is_figure(figure) and _is_figure(before.get(what, ""))):
            continue
        is_time = figure.endswith(" s")
        if is_time and max(_number(figure), _number(before[what])) < _SHORTEST_S:
            continue
        least = _SHORTEST_S if is_time else 0.01
        times = _number(figure) / max(_number(before[what]), least) / (scale if is_time else 1)
        if times > _MOST:
            print(f"slower: {what}: {figure}, was {before[what]}, {times:.2f} times as much", file=sys.stderr)
            slower += 1
    return slower


def _is_figure(figure: str) -> bool:
    return figure[:1].isdecimal()


def _number(figure: str) -> float:
    return float(figure.split(maxsplit=1)[0])
