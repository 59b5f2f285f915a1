"""Specs mangled in every way that a seed can think of: as bytes, and as trees of values.

In scope: `mangled`, which makes the same spec of the same number every time, and the tables of what is done to it.
Out of scope: running anything.

Bytes are what editors, merges and copying spoil; most of these end in the YAML reader. Trees keep the YAML whole and
put wrong things in the right places, so that models, rules, providers and translations see them.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from gpukube.spec.model import Pool
from gpukube.spec.reference.fields import keys_of
from gpukube_aks.spec import AksCluster
from gpukube_eks.spec import EksCluster
from gpukube_gke.spec import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = tuple(
    file.read_bytes()
    for folder in ("examples", "tests/specs/valid", "tests/specs/invalid")
    for file in sorted((ROOT / folder).glob("*.yaml"))
)

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"
Case: TypeAlias = "tuple[bytes, list[str]]"
"""A spec, and words for the command line besides its name."""

KEYS: Final = (
    *keys_of(Pool), *keys_of(EksCluster), *keys_of(AksCluster), *keys_of(GkeCluster),
    "count", "min", "max", "initial", "scope", "profile", "strategy", "layout", "replicas", "key", "value", "effect",
    "model", "sizeGiB", "type", "owner", "version", "reserved", "pools", "defaults", "metadata", "kind", "<<", "",
    "a.b", "labels[0]", "config", "accelerators", "amiType", "osSKU", "upgradeSettings", "autoscaling", "\u202e",
    "x" * 300,
)  # fmt: skip
ODD: Final[tuple[Tree, ...]] = (
    None, True, False, 0, 1, -1, 2, 7, 48, 64, 1001, 10**9, 10**40, 0.5, -0.0, 1e300, float("inf"), float("nan"), "",
    " ", "0", "no", "1.30", "012", "~", "null", "${HOME}", "${X:-y}", "${", "$${", "*x", "&x", "!!binary",
    "mixed", "single", "1g.5gb", "1g.10gb+me", "3g.40gb", "MIG1g", "spot", "eks", "aks", "gke", "zone", "helm",
    "operator", "bottlerocket", "p4d.24xlarge", "Standard_ND96asr_v4", "a2-highgpu-8g", "n1-standard-8",
    "g4-standard-6", "T4", "nvidia.com/gpu", "kubernetes.io/x", "kubernetes.azure.com/x", "us-east-1a", "us-central1-a",
    "x" * 5000, "ü", "\U0001f984", "\u202edesrever", "a\nb", "a: b", "'", '"', "\\", "%", "{}", "[]", "NoSchedule",
    "2026-01-01", "1:30", "0x1F", [], {}, [[]], [{}], {"": ""}, {"a": {"b": {"c": []}}}, [None], ["a", "a"],
    {"eks": "x"}, {"type": "spot"}, {"replicas": 2}, {"profile": "1g.5gb"}, {"min": 3, "max": 1}, {"count": 0},
    {"config": {"labels": {"a": 1}}},
)  # fmt: skip
CUTS: Final = ("1g.5gb", "2g.9gb", "2g.10gb", "3g.40gb", "1g.10gb+me", "7g.141gb", "", "9g.1gb", "MIG1g", "1c.3g.20gb")
MODELS: Final = ("A100", "A100-40GB", "A100-80GB", "H100", "T4", "V100", "A1O0-40GB", "MI300X", "")
BITS: Final = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\t", b"\r", b"\r\n", b"\n", b"\n---\n", b"\n...\n", b"{", b"}", b"[",
    b"]", b": ", b"- ", b"? ", b"| ", b">\n", b"&a ", b"*a", b"!x ", b"!!int ", b"%YAML 1.1\n", b"#", b" #", b"'", b'"',
    b"\\", b"<<: *a\n", b"${X}", b"${", "\u2028".encode(), "\u202e".encode(), "\U0001f984".encode(), b"9" * 400,
    b"-" * 1000, b"[" * 200, b"{a: " * 200, b"&b [*b]", b"0777", b"1_0", b".inf", b"1e999", b"~", b"\xc3",
    b"\xed\xa0\x80",
)  # fmt: skip
_MOST_CHANGES: Final = 4
_MOST_ALIASES: Final = 5
"""Of a source that is changed as a tree: what its aliases stand for would have to be written out."""


def mangled(number: int) -> Case:
    """Make the spec of a number, and the further words of its command line."""
    dice = random.Random(number)  # noqa: S311 - repeatable, which is the point
    source = dice.choice(SOURCES)
    if dice.random() < 0.6 and source.count(b"*") <= _MOST_ALIASES:  # trees reach deeper than bytes
        return _mangled_tree(source, dice), _words(dice)
    for _ in range(dice.randint(1, _MOST_CHANGES)):
        source = dice.choice(_BYTE_CHANGES)(source, dice)
    return source, _words(dice)


def _words(dice: random.Random) -> list[str]:
    """Make none, or one --set of something to something."""
    if dice.random() < 0.8:
        return []
    path = dice.choice(("pools[0]", "pools.t4", "defaults", "clusters.train", "metadata", "", "pools[9]"))
    value = dice.choice(ODD)
    return ["--set", f"{path}.{dice.choice(KEYS)}={value if isinstance(value, str) else json.dumps(value)}"]


def _flip(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) or 1)
    return text[:at] + bytes([dice.randrange(256)]) + text[at + 1 :]


def _insert(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(BITS) + text[at:]


def _cut(text: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(text) + 1)
    return text[:begin] + text[begin + dice.randrange(1, 40) :]


def _truncate(text: bytes, dice: random.Random) -> bytes:
    return text[: dice.randrange(len(text) + 1)]


def _on_lines(
    change: Callable[[list[bytes], int, random.Random], list[bytes]],
) -> Callable[[bytes, random.Random], bytes]:
    """Make a change of bytes of one that is told the lines and a place among them."""

    def changed(text: bytes, dice: random.Random) -> bytes:
        lines = text.split(b"\n")
        return b"\n".join(change(lines, dice.randrange(len(lines)), dice))

    return changed


def _indent(lines: list[bytes], at: int, dice: random.Random) -> list[bytes]:
    moved = b" " * dice.randrange(8) + lines[at].lstrip(b" ")
    return [*lines[:at], moved, *lines[at + 1 :]]


def _drop(lines: list[bytes], at: int, dice: random.Random) -> list[bytes]:
    return lines[:at] + lines[at + dice.randrange(1, 4) :]


def _double(lines: list[bytes], at: int, dice: random.Random) -> list[bytes]:
    return lines[:at] + lines[at : at + dice.randrange(1, 6)] * dice.randrange(2, 40) + lines[at:]


def _swap(lines: list[bytes], at: int, dice: random.Random) -> list[bytes]:
    other = dice.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return lines


def _swallow(lines: list[bytes], at: int, dice: random.Random) -> list[bytes]:
    """Put the lines of another spec in between, as a bad merge does."""
    return [*lines[:at], *dice.choice(SOURCES).split(b"\n")[: dice.randrange(1, 20)], *lines[at:]]


def _deepen(text: bytes, dice: random.Random) -> bytes:
    depth = dice.choice((10, 63, 64, 65, 500, 5000))
    return text + b"\ndeep: " + b"[" * depth + b"]" * depth


def _laugh(text: bytes, dice: random.Random) -> bytes:
    """Let aliases grow: each line stands for so many of the line before."""
    width, height = dice.choice(((10, 9), (2, 30), (1000, 2), (1001, 1)))
    lines = [b"l0: &l0 [x]"]
    lines += [b"l%d: &l%d [%s]" % (n, n, b", ".join([b"*l%d" % (n - 1)] * width)) for n in range(1, height)]
    return b"\n".join(lines) + b"\n" + text


_BYTE_CHANGES: Final = (
    *[_flip] * 3, *[_insert] * 6, *[_cut] * 3, _truncate, *[_on_lines(_indent)] * 3, *[_on_lines(_drop)] * 3,
    _on_lines(_double), _on_lines(_swap), _on_lines(_swallow), _deepen, _laugh,
)  # fmt: skip


def _mangled_tree(source: bytes, dice: random.Random) -> bytes:
    try:
        tree: Tree = yaml.load(source, yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError):
        return _insert(source, dice)
    for _ in range(dice.randint(1, _MOST_CHANGES)):
        holders = [node for node in _nodes(tree) if isinstance(node, dict | list) and node]
        if not holders:
            break
        dice.choice(_TREE_CHANGES)(holders, dice)
    text: str = yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=dice.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def _nodes(tree: Tree) -> list[Tree]:
    """List a tree and everything under it."""
    below = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [tree, *(node for part in below for node in _nodes(part))]


Holder: TypeAlias = "dict[str, Tree] | list[Tree]"


def _place(holder: Holder, dice: random.Random) -> str | int:
    return dice.choice(list(holder)) if isinstance(holder, dict) else dice.randrange(len(holder))


def _get(holder: Holder, place: str | int) -> Tree:
    return holder[place]  # type: ignore[index]  # the place is one of the holder's own


def _put(holder: Holder, place: str | int, value: Tree) -> None:
    holder[place] = value  # type: ignore[index]  # as above


def _odd_value(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    _put(holder, _place(holder, dice), deepcopy(dice.choice(ODD)))


def _values_swapped(holders: list[Holder], dice: random.Random) -> None:
    """Let two values change places; copies, for a tree must not come to hold itself."""
    one, other = dice.choice(holders), dice.choice(holders)
    here, there = _place(one, dice), _place(other, dice)
    value = deepcopy(_get(one, here))
    _put(one, here, deepcopy(_get(other, there)))
    _put(other, there, value)


def _key_added(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    if isinstance(holder, dict):
        holder[dice.choice(KEYS)] = deepcopy(dice.choice(ODD))
    else:
        holder.append(deepcopy(dice.choice(ODD)))


def _key_renamed(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    if isinstance(holder, dict):
        holder[dice.choice(KEYS)] = holder.pop(dice.choice(list(holder)))


def _dropped(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    del holder[_place(holder, dice)]  # type: ignore[arg-type]  # a place of it


def _many(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    if isinstance(holder, list):
        holder.extend([deepcopy(holder[0]) for _ in range(dice.choice((1, 3, 20)))])


def _wrapped(holders: list[Holder], dice: random.Random) -> None:
    holder = dice.choice(holders)
    place = _place(holder, dice)
    value = deepcopy(_get(holder, place))
    _put(holder, place, [value] if dice.random() < 0.5 else {dice.choice(KEYS): value})


def _cut_of_unknown(holders: list[Holder], dice: random.Random) -> None:
    """Cut the GPUs of a pool while their model is left open: two mistakes, or one, that only together mislead."""
    pools = [holder for holder in holders if isinstance(holder, dict) and {"gpu", "instanceType"} & holder.keys()]
    if not pools:
        return _odd_value(holders, dice)
    pool = dice.choice(pools)
    names = dice.choices(CUTS, k=dice.randint(1, 3))
    mig: Tree = {"layout": [*names], "strategy": "mixed"} if len(names) > 1 else {"profile": names[0]}
    pool["sharing"] = {"mig": mig}
    if dice.random() < 0.8:
        pool.pop("instanceType", None)
        pool["gpu"] = {"count": 8} if dice.random() < 0.5 else {"model": dice.choice(MODELS), "count": 8}
    return None


_TREE_CHANGES: Final = (
    *[_cut_of_unknown] * 2,
    *[_odd_value] * 6, *[_values_swapped] * 3, *[_key_added] * 4, *[_key_renamed] * 2, _dropped, _many, _wrapped,
)  # fmt: skip
