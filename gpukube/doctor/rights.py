"""Rights that gpukube needs in a cluster, and whether it has them, checked without changing anything.

In scope: the requests. Out of scope: conclusions (checks.access).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import ALL_KINDS, NAMESPACE
from gpukube.engine.change.release import NEEDED
from gpukube.engine.run.fanout import run_all
from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.values import Desired

_AT_ONCE = 4


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One permission; `str()` is the arguments of kubectl auth can-i.

    Attributes:
        purpose: What it is needed for.
    """

    verb: str
    resource: str
    group: str
    namespace: str
    purpose: str

    def __str__(self) -> str:
        """Render as the words after `kubectl auth can-i`."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind}" + (f" --namespace {self.namespace}" if self.namespace else "")


def rights_for(desired: Sequence[Desired]) -> tuple[Right, ...]:
    """Return what create and apply need for these pools; empty without pools: failed readings show what they lack."""
    found = [Right("patch", "nodes", "", "", "to restore labels that nodes have lost")] if desired else []
    kinds = [kind for kind in ALL_KINDS if any(kind.serves(expected.ownership) for expected in desired)]
    for kind in sorted(kinds, key=lambda kind: kind.chart):
        found += [
            Right("create", resource, group, NAMESPACE, f"to install {kind.title} into namespace {NAMESPACE}")
            for resource, group in NEEDED[kind]
        ]
    return tuple(dict.fromkeys(found))


def check_rights(kube: Kube, rights: Iterable[Right]) -> tuple[Right, ...]:
    """Check each right (SelfSubjectAccessReview), and return those that gpukube lacks.

    Raises:
        AccessError, ClusterError: Even the check is denied, or the API did not answer.
    """
    tasks = {
        right: partial(kube.may, right.verb, right.resource, group=right.group, namespace=right.namespace)
        for right in rights
    }
    answers = run_all(tasks, _AT_ONCE)
    for answer in answers.values():
        if isinstance(answer, GpukubeError):
            raise answer
    return tuple(right for right, answer in answers.items() if answer is False)
