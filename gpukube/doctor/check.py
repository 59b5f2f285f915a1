"""What a check is, how a module declares its checks, and how checks are put to evidence.

In scope: the value, its decorator and the examination. Out of scope: any check (the families), I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.errors import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpukube.core.faults import Fault
    from gpukube.core.values import ClusterRef
    from gpukube.doctor.evidence import Evidence, Reading
    from gpukube.errors import GpukubeError, Severity

APPLY: Final = "gpukube pool apply -f SPEC"
"""The fix of what a run of gpukube brings back."""
MOST_NAMED: Final = 5
"""Nodes or pods that a finding names as its evidence."""

Finder: TypeAlias = "Callable[[Evidence], Iterable[Fault]]"


@dataclass(frozen=True, slots=True)
class Check:
    """One known problem and how it is detected.

    Attributes:
        id: Stable, documented, kebab-case.
        title: What it looks for, in a few words.
        consequence: What it leads to.
        link: Where this is documented: an issue thread or a page.
        find: Pure; yields one finding per place, whose code it leaves open.
        needs: What must have been read; without it the check is skipped.
        severity: Of its findings; of those of an error, some may be warnings.
        rule: Code of the rule of `workload lint` that finds the same mistake in manifests; "" where there is none.
    """

    id: str
    title: str
    consequence: str
    link: str
    find: Finder
    needs: tuple[Reading, ...] = ()
    severity: Severity = "error"
    rule: str = ""


class Checks(list[Check]):
    """The checks of one module, in the order in which their finders stand there.

    Args:
        needs: What each of them needs that does not name its own.
    """

    def __init__(self, needs: tuple[Reading, ...] = ("nodes", "daemonsets", "pods")) -> None:
        super().__init__()
        self.needs = needs

    def add(  # noqa: PLR0913 - the parts of a check, beside its finder
        self,
        check_id: str,
        *,
        title: str,
        consequence: str,
        link: str,
        severity: Severity = "error",
        needs: tuple[Reading, ...] | None = None,
        rule: str = "",
    ) -> Callable[[Finder], Finder]:
        """Declare the decorated finder as a check; the arguments are those of `Check`."""

        def added(find: Finder) -> Finder:
            self.append(
                Check(
                    id=check_id,
                    title=title,
                    consequence=consequence,
                    link=link,
                    find=find,
                    needs=self.needs if needs is None else needs,
                    severity=severity,
                    rule=rule,
                )
            )
            return find

        return added


@dataclass(frozen=True, slots=True)
class Found:
    """A finding and the check that made it."""

    check: Check
    finding: Fault


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that was skipped, and the reading that it lacks."""

    check: Check
    reading: Reading


@dataclass(frozen=True, slots=True)
class Examination:
    """What the doctor found in one cluster.

    Attributes:
        cluster: Which.
        found: Errors first, then in the order of the checks.
        skipped: Checks that lack a reading.
        made: How many checks were done.
        troubles: What could not be read, each error once.
        unreadable: The error for which the cloud or the inside of the cluster could not be examined at all.
        fixed: What was done about it, one line each.
        fix_error: Why no more could be done.
    """

    cluster: ClusterRef
    found: tuple[Found, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    made: int = 0
    troubles: tuple[GpukubeError, ...] = ()
    unreadable: GpukubeError | None = None
    fixed: tuple[str, ...] = ()
    fix_error: GpukubeError | None = None

    @property
    def has_errors(self) -> bool:
        """Whether there are errors among the findings."""
        return any(item.finding.severity == "error" for item in self.found)


def examine(evidence: Evidence, checks: Sequence[Check]) -> Examination:
    """Run the checks on the evidence."""
    skipped = [
        Skipped(check, missing[0])
        for check in checks
        if (missing := [reading for reading in check.needs if reading in evidence.troubles])
    ]
    left_out = {item.check.id for item in skipped}
    made = [check for check in checks if check.id not in left_out]
    found = [Found(check, _of_check(item, check)) for check in made for item in check.find(evidence)]
    return Examination(
        cluster=evidence.cluster,
        found=tuple(sorted(found, key=lambda item: SEVERITIES.index(item.finding.severity))),
        skipped=tuple(skipped),
        made=len(made),
        troubles=tuple({str(error): error for error in evidence.troubles.values()}.values()),
        unreadable=next((error for name in ("cloud", "nodes") if (error := evidence.troubles.get(name))), None),
    )


def _of_check(item: Fault, check: Check) -> Fault:
    """Complete a finding with what its check declares: the id, the consequence if it has none, the lower severity."""
    severity = max(item.severity, check.severity, key=SEVERITIES.index)
    return replace(item, code=check.id, why=item.why or check.consequence, severity=severity)
