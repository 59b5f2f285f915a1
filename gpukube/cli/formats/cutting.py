"""Fitting text into a limit: the least important blocks are omitted and counted. Pure functions.

Text consists of blocks that are shown whole or not at all, so that no table, fence, or folded part breaks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_SHARES: Final[Mapping[str, int]] = {"loss": 4, "replacement": 4, "pool": 2, "finding": 3}
"""Noun -> share of the space, as 1/n, after which others come first: 3,000 pools hide no error, or vice versa."""
TIER: Final = 10
"""Size of a tier of ranks: every block of a lower tier is kept before any block of the next."""
_HUGE: Final = 8
"""Maximum share of the space for one block, as 1/n; a larger one is skipped, because it would displace many."""
_PLURALS: Final = {"loss": "losses"}


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Lines around consecutive blocks: the head of a table, the blank line after a list."""

    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are shown together.

    Attributes:
        lines: Lines of text.
        what: Noun that counts it if it is omitted; "" for a block that is always shown.
        rank: Blocks with the lowest rank are kept first.
        frame: Lines around it and its neighbors with the same frame.
    """

    lines: tuple[str, ...]
    what: str = ""
    rank: int = 0
    frame: Frame | None = None


def fitted(blocks: Iterable[Block], room: int, size: Callable[[str], int], elsewhere: str) -> Iterator[str]:
    """Lay out blocks; if they are too long, those with the lowest ranks and a notice of what is omitted.

    Args:
        blocks: Blocks in text order.
        room: Maximum total size of all lines.
        size: Function that returns the size of a line with its line end.
        elsewhere: Sentence that names where the full text is.
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
    """Choose the blocks that fit, and count the omitted ones."""

    def cost(lines: Iterable[str]) -> int:
        return sum(map(size, lines))

    left_out = Counter(block.what for block in blocks if block.what)
    room -= cost([_notice(left_out, elsewhere), ""]) + sum(cost(block.lines) for block in blocks if not block.what)
    whole, used, framed = max(room, 0), Counter[str](), set[Frame]()
    chosen = {index for index, block in enumerate(blocks) if not block.what}
    by_rank = sorted(range(len(blocks)), key=lambda index: blocks[index].rank)
    # Within each tier, unused shares are available to all.
    for tier, shares in product(sorted({block.rank // TIER for block in blocks}), (_SHARES, {})):
        full = set[str]()
        for index in (index for index in by_rank if blocks[index].rank // TIER == tier):
            block = blocks[index]
            needed = cost(block.lines)
            if index in chosen or block.what in full or needed * _HUGE > whole:
                continue
            if block.frame and block.frame not in framed:
                needed += cost((*block.frame.head, *block.frame.foot))
            # After an omitted block, omit the rest too, however small: the most severe ones are shown.
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
    """Order neighbors with the same frame by rank."""
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
    return f"**Truncated, most severe first.** Omitted: {', '.join(counts)}. {elsewhere}"
