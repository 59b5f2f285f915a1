"""Who else manages a live pool: found by the signs that a tool leaves in the pool's own API.

Pure. In scope: signs and how they are looked for. Out of scope: the signs of one cloud (its provider), what a
plan makes of them (plan).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Manager:
    """Something else that makes, changes or deletes a pool.

    Attributes:
        name: As people know it.
        sign: What of the pool shows it, "tag alpha.eksctl.io/nodegroup-name".
    """

    name: str
    sign: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A tag or label that a tool writes.

    Attributes:
        manager: Its name.
        key: Of the entry; a * at one of its ends stands for anything.
        source: Where the tool writes it: repository and file, or page.
        value: The same of its value.
    """

    manager: str
    key: str
    source: str
    value: str = "*"


def find_managers(kind: str, entries: Mapping[str, str], signs: Iterable[Sign]) -> tuple[Manager, ...]:
    """Find the tools whose signs are among some tags or labels; one sign of each tool.

    Args:
        kind: What the entries are, "tag".
        entries: Tags or labels.
        signs: Those that are known.
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
    """Name them with their signs: "eksctl (tag alpha.eksctl.io/nodegroup-name=a100)"."""
    return " and ".join(f"{one.name} ({one.sign})" for one in managers)


CROSSPLANE = Sign("Crossplane", "crossplane-kind", "crossplane/crossplane-runtime pkg/resource/resource.go")
"""Written to whatever it manages that has tags."""
YOR = Sign("Terraform or CloudFormation (traced by yor)", "*yor_trace", "bridgecrewio/yor README.md")
