"""Finds other tools that manage a live pool, by the signs they leave in the pool's API.

Pure. In scope: signs, and how they match. Out of scope: the signs of one cloud (its provider), and consequences for a
plan (plan).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Manager:
    """Another tool that creates, changes, or deletes a pool.

    Attributes:
        name: Common name.
        sign: Where it appears in the pool, "tag alpha.eksctl.io/nodegroup-name".
    """

    name: str
    sign: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A tag or label that a tool writes.

    Attributes:
        manager: Name of the tool.
        key: Key of the entry; a * at one end matches anything.
        source: Source that the tool writes it: repository and file, or page.
        value: Value of the entry, with the same wildcard.
    """

    manager: str
    key: str
    source: str
    value: str = "*"


def find_managers(kind: str, entries: Mapping[str, str], signs: Iterable[Sign]) -> tuple[Manager, ...]:
    """Return the tools whose signs are among the tags or labels, with one sign per tool.

    Args:
        kind: Kind of the entries, "tag".
        entries: Tags or labels.
        signs: Known signs.
    """
    found: dict[str, Manager] = {}
    for sign in signs:
        for key, value in sorted(entries.items()):
            if _fits(key, sign.key) and _fits(value, sign.value):
                found.setdefault(sign.manager, Manager(sign.manager, f"{kind} {key}={value}"))
    return tuple(found.values())


def _fits(text: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return text.startswith(pattern.removesuffix("*"))
    return text.endswith(pattern.removeprefix("*")) if pattern.startswith("*") else text == pattern


def describe_managers(managers: Iterable[Manager]) -> str:
    """Return their names and signs: "eksctl (tag alpha.eksctl.io/nodegroup-name=a100)"."""
    return " and ".join(f"{one.name} ({one.sign})" for one in managers)


CROSSPLANE = Sign("Crossplane", "crossplane-kind", "crossplane/crossplane-runtime pkg/resource/resource.go")
"""Tag on every managed resource that supports tags."""
YOR = Sign("Terraform or CloudFormation (traced by yor)", "*yor_trace", "bridgecrewio/yor README.md")
