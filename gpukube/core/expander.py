"""The ConfigMap of the Cluster Autoscaler's priority expander: node groups by priority, for all families of a cluster.

Pure. In scope: its name and form, which of its lines are gpukube's, merging. Out of scope: reading and writing it
(engine.plan.orders, engine.change.ordering).

Source: kubernetes-sigs/cluster-autoscaler pkg/expander/priority (priority.go, readme.md): `priorities` is one YAML
mapping of numbers to patterns that are searched in the names of groups; the highest number wins, and a group that
matches none is not used as soon as another one matches.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from gpukube.core.jsontree import items, strings, text, tree
from gpukube.core.scaling_order import FamilyOrder
from gpukube.core.yamltext import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.core.jsontree import Tree

NAME: Final = "cluster-autoscaler-priority-expander"
KEY: Final = "priorities"
EXPANDER: Final = "priority"
EXPANDER_FLAG: Final = "expander"
RECORD: Final = "gpukube.io/autoscaler-order"
"""Annotation of a ConfigMap that gpukube created: the families in it, as JSON. One map serves all owners."""
_HIGHEST, _STEP, _LOWEST = 1000, 10, 1
_ANY: Final = ".*"
_MATCH_ALL: Final = frozenset({_ANY, ".+", "", "^.*$", "^.+$", "^.*", ".*$"})
_GO_ONLY: Final = re.compile(r"\\[pPQEzC]|\[\[:|\(\?[a-zA-Z-]*[:)]")
"""Syntax of Go's patterns that Python has not (golang.org/s/re2syntax)."""
_FLAG: Final = re.compile(r"--?([\w-]+)(?:=(.*))?", re.DOTALL)

Priorities: TypeAlias = "dict[int, tuple[str, ...]]"


class OrderError(ValueError):
    """The priorities are not what the expander understands."""


def parse_priorities(written: str) -> Priorities:
    """Read the text of `priorities`: number -> patterns.

    Raises:
        OrderError: It is empty, or not a mapping of numbers to lists of patterns.
    """
    try:
        found = parse_yaml(written)
    except yaml.YAMLError as error:
        message = f"it is not YAML: {' '.join(str(error).split())}"
        raise OrderError(message) from None
    if not isinstance(found, dict) or not found:
        message = "it is not a mapping of numbers to patterns"
        raise OrderError(message)
    for number, patterns in found.items():
        if not isinstance(number, int) or isinstance(number, bool):
            message = f"{number!r} is not a number"
            raise OrderError(message)
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            message = f"{number} has no list of patterns"
            raise OrderError(message)
    return {number: tuple(patterns) for number, patterns in found.items()}


def broken_patterns(priorities: Mapping[int, Sequence[str]]) -> list[str]:
    """Return the patterns that neither Go nor Python compiles; one of them makes the whole map invalid."""
    return [one for patterns in priorities.values() for one in patterns if not _GO_ONLY.search(one) and _is_broken(one)]


def _is_broken(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return True
    return False


def lines_of(orders: Iterable[FamilyOrder], group: Callable[[str], str]) -> Priorities:
    """Return the lines of families: a number per rank, which their pools of that rank share."""
    found: dict[int, list[str]] = {}
    for order in orders:
        for rank, names in enumerate(order.ranks):
            found.setdefault(_HIGHEST - _STEP * rank, []).extend(map(group, names))
    return {
        number: tuple(dict.fromkeys(patterns)) for number, patterns in sorted(found.items(), reverse=True) if patterns
    }


def merge(
    live: Mapping[int, Sequence[str]],
    recorded: Iterable[FamilyOrder],
    orders: Iterable[FamilyOrder],
    group: Callable[[str], str],
) -> Priorities:
    """Return priorities with the lines of families instead of those that gpukube wrote before; other lines stay.

    A line for all other groups is added unless there is one: without it the pools of others would no longer grow.
    """
    ours = {pattern for patterns in lines_of(recorded, group).values() for pattern in patterns}
    merged = {number: [one for one in patterns if one not in ours] for number, patterns in live.items()}
    if not any(one in _MATCH_ALL for patterns in merged.values() for one in patterns):
        merged.setdefault(_LOWEST, []).append(_ANY)
    for number, patterns in lines_of(orders, group).items():
        merged[number] = [*patterns, *(one for one in merged.get(number, ()) if one not in patterns)]
    return {number: tuple(merged[number]) for number in sorted(merged, reverse=True) if merged[number]}


def missing_lines(live: Mapping[int, Sequence[str]], wanted: Mapping[int, Sequence[str]]) -> Priorities:
    """Return the lines that a map of somebody else lacks: patterns that are in it under no number."""
    there = {one for patterns in live.values() for one in patterns}
    lacking = {number: tuple(one for one in patterns if one not in there) for number, patterns in wanted.items()}
    return {number: patterns for number, patterns in lacking.items() if patterns}


def out_of_order(
    live: Mapping[int, Sequence[str]], orders: Iterable[FamilyOrder], group: Callable[[str], str]
) -> list[str]:
    """Return the families that a map of somebody else has in another order, by whatever numbers."""
    highest = {one: number for number in sorted(live) for one in live[number]}  # a group has its highest number
    found = []
    for order in orders:
        ranks = [[highest[one] for one in map(group, names) if one in highest] for names in order.ranks]
        there = [numbers for numbers in ranks if numbers]
        if any(min(there[at]) <= max(there[at + 1]) for at in range(len(there) - 1)):
            found.append(order.family)
    return found


def render(priorities: Mapping[int, Sequence[str]]) -> str:
    """Return the text of `priorities`, the highest number first."""
    lines = []
    for number in sorted(priorities, reverse=True):
        lines += [f"{number}:", *(f"  - '{one.replace(chr(39), chr(39) * 2)}'" for one in priorities[number])]
    return "".join(f"{line}\n" for line in lines)


def record(orders: Iterable[FamilyOrder]) -> str:
    """Return the annotation that names what gpukube wrote."""
    rows = [{"owner": one.owner, "family": one.family, "ranks": [list(names) for names in one.ranks]} for one in orders]
    return json.dumps(sorted(rows, key=lambda row: (str(row["owner"]), str(row["family"]))), separators=(",", ":"))


def recorded(config_map: Tree) -> tuple[FamilyOrder, ...] | None:
    """Return the families that gpukube wrote into a map; None if the map is not gpukube's."""
    written = tree(config_map, "metadata", "annotations").get(RECORD)
    if not isinstance(written, str):
        return None
    try:
        rows = json.loads(written)
    except ValueError:
        rows = []
    return tuple(
        FamilyOrder(
            text(row, "owner"),
            text(row, "family"),
            tuple(strings(names) for names in items(row, "ranks")),
        )
        for row in items(rows)
    )


def without_gone(orders: Iterable[FamilyOrder], live: Iterable[str]) -> tuple[FamilyOrder, ...]:
    """Return orders without pools that no longer exist, and without families that have none left."""
    there = frozenset(live)
    kept = (
        FamilyOrder(one.owner, one.family, tuple(tuple(n for n in names if n in there) for names in one.ranks))
        for one in orders
    )
    return tuple(one for one in kept if any(one.ranks))


def flag_of(words: Sequence[str], name: str) -> str:
    """Return the value of a flag in the autoscaler's command line; "" if it has none."""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        if (found := _FLAG.fullmatch(word)) and found[1] == name:
            return following if found[2] is None else found[2]
    return ""


def uses_priorities(expander: str) -> bool:
    """Return whether a choice of expanders, "priority,least-waste", begins with the priorities."""
    return expander.partition(",")[0].strip() == EXPANDER
