"""Text that must fit: what is left out is the least important, and counted. Pure.

A text is made of blocks, which are shown whole or not at all, so that no table, fence or folded part is broken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_SHARES: Final[Mapping[str, int]] = {"loss": 4, "replacement": 4, "pool": 2, "finding": 3}
"""Noun -> the part of the room, as 1/n, beyond which others come first: 3,000 pools hide no error, nor the reverse."""
TIER: Final = 10
"""Ranks from one multiple of this to the next are a tier: nothing of it is kept before all of the one below it is."""
_HUGE: Final = 8
"""A block of more than this part of the room, as 1/n, is passed over: it would take the place of many."""
_PLURALS: Final = {"loss": "losses"}


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Lines around blocks that follow one another: the head of a table, the blank line behind a list."""

    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are shown together.

    Attributes:
        lines: Of the text.
        what: What it is, as it is counted when it is left out; "" for what is always shown.
        rank: The lowest are kept first.
        frame: Around it, and around its neighbors with the same one.
    """

    lines: tuple[str, ...]
    what: str = ""
    rank: int = 0
    frame: Frame | None = None


def fitted(blocks: Iterable[Block], room: int, size: Callable[[str], int], elsewhere: str) -> Iterator[str]:
    """Lay out blocks; where they are too long, those of the lowest ranks, and what is left out.

    Args:
        blocks: In the order of the text.
        room: The most that all lines may take.
        size: What a line takes, with its end.
        elsewhere: Where all of it is.
    """
    made = list(blocks)
    lines = list(_laid_out(made))
    if sum(map(size, lines)) <= room:
        yield from lines
        return
    kept, left_out = _chosen(made, room, size, elsewhere)
    first = next(index for index, block in enumerate(kept) if block.what) if any(b.what for b in kept) else len(kept)
    notice = Block((_notice(left_out, elsewhere), ""))
    yield from _laid_out([*kept[:first], notice, *_worst_first(kept[first:])])


def _chosen(
    blocks: Sequence[Block], room: int, size: Callable[[str], int], elsewhere: str
) -> tuple[list[Block], Counter[str]]:
    """Choose the blocks that fit, and count the others."""

    def cost(lines: Iterable[str]) -> int:
        return sum(map(size, lines))

    left_out = Counter(block.what for block in blocks if block.what)
    room -= cost([_notice(left_out, elsewhere), ""]) + sum(cost(block.lines) for block in blocks if not block.what)
    whole, used, framed = max(room, 0), Counter[str](), set[Frame]()
    chosen = {index for index, block in enumerate(blocks) if not block.what}
    by_rank = sorted(range(len(blocks)), key=lambda index: blocks[index].rank)
    # In each tier what the others leave of their shares is for everybody.
    for tier, shares in product(sorted({block.rank // TIER for block in blocks}), (_SHARES, {})):
        full = set[str]()
        for index in (index for index in by_rank if blocks[index].rank // TIER == tier):
            block = blocks[index]
            needed = cost(block.lines)
            if index in chosen or block.what in full or needed * _HUGE > whole:
                continue
            if block.frame and block.frame not in framed:
                needed += cost((*block.frame.head, *block.frame.foot))
            # What comes behind something that was left out is left out too, however small: the worst are shown.
            if needed > room or (used[block.what] + needed) * shares.get(block.what, 1) > whole:
                full.add(block.what)
                continue
            room -= needed
            used[block.what] += needed
            left_out[block.what] -= 1
            chosen.add(index)
            if block.frame:
                framed.add(block.frame)
    return [block for index, block in enumerate(blocks) if index in chosen], +left_out


def _worst_first(blocks: Sequence[Block]) -> Iterator[Block]:
    """Order neighbors in one frame by their ranks."""
    run: list[Block] = []
    for block in blocks:
        if run and (block.frame is None or block.frame is not run[0].frame):
            yield from sorted(run, key=lambda one: one.rank)
            run = []
        run.append(block)
    yield from sorted(run, key=lambda one: one.rank)


def _laid_out(blocks: Iterable[Block]) -> Iterator[str]:
    frame: Frame | None = None
    for block in blocks:
        if block.frame is not frame:
            yield from frame.foot if frame else ()
            yield from block.frame.head if block.frame else ()
            frame = block.frame
        yield from block.lines
    yield from frame.foot if frame else ()


def _notice(left_out: Mapping[str, int], elsewhere: str) -> str:
    counts = (f"{count:,} {what if count == 1 else _PLURALS.get(what, f'{what}s')}" for what, count in left_out.items())
    return f"**Cut to fit, the worst first.** Left out: {', '.join(counts)}. {elsewhere}"
