"""Cells of the picture: one per device, with the sign of its state, which needs no color; and their legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cli.formats.html.page import Markup, tag
from gpukube.cli.rendering.map import SIGNS, STATE_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_CELLS: Final = 128
"""Cells of one kind on one node beyond which a number stands for them."""


@dataclass(frozen=True, slots=True)
class State:
    """How a state is drawn.

    Attributes:
        key: Its class in the style.
        sign: Its sign, the same as on the terminal.
        words: What it means.
    """

    key: str
    sign: str
    words: str


HELD, FREE, UNUSABLE, UNHEALTHY, ABSENT, STARTING = map(State, "hfuxas", SIGNS, STATE_WORDS)


def cells(state: State, count: int) -> Markup:
    """Return cells of one state."""
    cell = Markup(f'<i class="{state.key}">{state.sign}</i>')
    if count > MOST_CELLS:
        return Markup(f'{cell}<b class="times">\u00d7{count:,}</b>')
    return Markup(cell * max(0, count))


def strip(*parts: Markup) -> Markup:
    """Return a row of cells. Readers skip it: the words beside it say the same."""
    return tag("span", *parts, class_="cells", aria_hidden="true")


def legend(states: Iterable[State]) -> Markup:
    """Return what the cells mean."""
    items = (tag("li", strip(cells(state, 1)), tag("span", state.words)) for state in states)
    return tag("ul", *items, class_="legend", aria_label="States")
