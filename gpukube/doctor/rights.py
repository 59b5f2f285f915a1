"""What we would have to be allowed inside a cluster, and asking for it without changing anything.

Lives here: the asking. Must not live here: conclusions (checks.access).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import NAMESPACE, kind_of
from gpukube.engine.change.release import NEEDED, NEEDED_BESIDES
from gpukube.engine.run.fanout import run_all
from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.values import Desired

_AT_ONCE = 4


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One thing to be allowed to do; `str()` is as kubectl auth can-i takes it.

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
    """List what create and apply need for these pools; nothing without pools: looking shows by itself what it lacks."""
    found = [Right("patch", "nodes", "", "", "labels that nodes have lost are put back")] if desired else []
    kinds = [kind for name in {d.ownership.advertiser for d in desired} if (kind := kind_of(name))]
    for kind in sorted(kinds, key=lambda kind: kind.chart):
        found += [
            Right(verb, resource, group, NAMESPACE, f"{kind.title} is installed into namespace {NAMESPACE}")
            for verb, resource, group in (*NEEDED, *NEEDED_BESIDES.get(kind.chart, ()))
        ]
    return tuple(dict.fromkeys(found))


def ask_rights(kube: Kube, rights: Iterable[Right]) -> tuple[Right, ...]:
    """Ask for each right (SelfSubjectAccessReview), and give those that we do not have.

    Raises:
        AccessError, ClusterError: Even asking is refused, or the API did not answer.
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
