"""What a rule is, and how a module declares its rules.

In scope: the value, its decorator, what a rule finds. Out of scope: any rule (the families).
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
        where: The key or the value that is meant.
        seen: What is wrong, with the value seen.
        fix: What to write; that of the rule when empty.
        why: What comes of it; that of the rule when empty.
        severity: Where it is less than the rule's.
        edits: What --fix writes; none where it needs a decision.
    """

    where: Where
    seen: str
    fix: str = ""
    why: str = ""
    severity: Severity | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Item]):
    """One known mistake and how it is found.

    Attributes:
        code: Stable, documented, kebab-case; its number and title are in `gpukube.codes`.
        severity: Of its findings; of those of an error, some may be less.
        why: What comes of it.
        fix: What to write instead.
        source: Where this is documented: code at a version, a page, an issue.
        find: Pure; yields one hit per place.
    """

    code: str
    severity: Severity
    why: str
    fix: str
    source: str
    find: Callable[[Item, World], Iterable[Hit]]

    @property
    def title(self) -> str:
        """What it is about, in a sentence."""
        return rule_title(self.code)

    def finding(self, hit: Hit) -> Finding:
        """Complete a hit with what the rule declares."""
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
    """The rules of one module about one kind of item, in the order in which they stand there."""

    def rule(
        self, code: str, *, severity: Severity = "error", why: str, fix: str, source: str
    ) -> Callable[[Callable[[Item, World], Iterable[Hit]]], Callable[[Item, World], Iterable[Hit]]]:
        """Declare the decorated finder as a rule; the arguments are those of `Rule`."""

        def added(find: Callable[[Item, World], Iterable[Hit]]) -> Callable[[Item, World], Iterable[Hit]]:
            self.append(Rule(code=code, severity=severity, why=why, fix=fix, source=source, find=find))
            return find

        return added
