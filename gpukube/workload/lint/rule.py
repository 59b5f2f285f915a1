"""The value of a rule, and the decorator that declares it.

In scope: the value, its decorator, the hits of a rule. Out of scope: any rule (the families).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gpukube.errors import SEVERITIES, Finding
from gpukube.rule_ids import rule_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpukube.errors import Severity, Where
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.lint.world import World

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place where a rule is broken.

    Attributes:
        where: Position of the key or value.
        seen: The problem, including the value.
        fix: What to write; the rule's if empty.
        why: Consequence; the rule's if empty.
        severity: Severity if lower than the rule's.
        edits: Edits of --fix; empty if the user must decide.
    """

    where: Where
    seen: str
    fix: str = ""
    why: str = ""
    severity: Severity | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Item]):
    """One known mistake and how to find it.

    Attributes:
        code: Stable, documented, kebab-case; its number and title are in `gpukube.codes`.
        severity: Severity of its findings; an error's findings may be less severe.
        why: Consequence.
        fix: What to write instead.
        source: Reference: code at a version, a page, an issue.
        find: Pure function that yields one hit per place.
    """

    code: str
    severity: Severity
    why: str
    fix: str
    source: str
    find: Callable[[Item, World], Iterable[Hit]]

    @property
    def title(self) -> str:
        """Title, in a sentence."""
        return rule_title(self.code)

    def finding(self, hit: Hit) -> Finding:
        """Return the finding for a hit, with the rule's defaults."""
        severity = max(hit.severity or self.severity, self.severity, key=SEVERITIES.index)
        return Finding(
            code=self.code,
            where=hit.where,
            seen=hit.seen,
            fix=hit.fix or self.fix,
            why=hit.why or self.why,
            severity=severity,
        )


class Rules(list[Rule[Item]]):
    """The rules of one module for one kind of item, in declaration order."""

    def rule(
        self, code: str, *, severity: Severity = "error", why: str, fix: str, source: str
    ) -> Callable[[Callable[[Item, World], Iterable[Hit]]], Callable[[Item, World], Iterable[Hit]]]:
        """Declare the decorated finder as a rule; the arguments are those of `Rule`."""

        def added(find: Callable[[Item, World], Iterable[Hit]]) -> Callable[[Item, World], Iterable[Hit]]:
            self.append(Rule(code=code, severity=severity, why=why, fix=fix, source=source, find=find))
            return find

        return added
