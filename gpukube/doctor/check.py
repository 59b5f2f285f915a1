"""The value that describes a check, the decorator that declares one, and running checks on evidence.

Out of scope: the checks themselves (the families), I/O.
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
"""Fix for everything that a gpukube run restores."""
MOST_NAMED: Final = 5
"""Maximum number of nodes or pods that a finding names as evidence."""

Finder: TypeAlias = "Callable[[Evidence], Iterable[Fault]]"


@dataclass(frozen=True, slots=True)
class Check:
    """A known problem and how to detect it.

    Attributes:
        id: Stable, documented, kebab-case.
        title: What it looks for, in a few words.
        consequence: What happens if the problem is not fixed.
        link: Documentation of the problem: an issue or a page.
        find: Pure function that yields one finding per place; it leaves the code empty.
        needs: Readings that it requires; without them the check is skipped.
        severity: Severity of its findings; an error check may also yield warnings.
        rule: Code of the `workload lint` rule that finds the same mistake in manifests; "" if there is none.
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
    """The checks of one module, in the order of their finders.

    Args:
        needs: Readings required by each check that does not list its own.
    """

    def __init__(self, needs: tuple[Reading, ...] = ("nodes", "daemonsets", "pods")) -> None:
        super().__init__()
        self.needs = needs

    def add(  # noqa: PLR0913 - the fields of a check other than its finder
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
        """Declare the decorated function as the finder of a check; the arguments are the fields of `Check`."""

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
    """A finding and the check that reported it."""

    check: Check
    finding: Fault


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped check and the reading that it lacks."""

    check: Check
    reading: Reading


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of examining one cluster.

    Attributes:
        cluster: The cluster.
        found: Errors first, then in the order of the checks.
        skipped: Checks that lack a reading.
        made: Number of checks that ran.
        troubles: Errors of readings that failed, each once.
        unreadable: The error that prevented all reading of the cloud or of the inside of the cluster.
        fixed: Fixes that were applied, one line each.
        fix_error: The error that stopped further fixes.
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
        """Whether any finding is an error."""
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
    """Complete a finding from its check: the id, a missing consequence, and the lower severity of the two."""
    severity = max(item.severity, check.severity, key=SEVERITIES.index)
    return replace(item, code=check.id, why=item.why or check.consequence, severity=severity)
