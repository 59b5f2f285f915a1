"""Checks of pool ownership: gpukube's labels, names, protection.

In scope: pure checks of these labels on live pools and, if there is one, against the spec. Out of scope: fields of
pools (`pool plan diff` compares those).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.faults import fault
from gpukube.core.marks import has_lost_marks, names_another
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL
from gpukube.doctor.check import Checks
from gpukube.doctor.cloud_view import apply_command
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.core.values import Desired, Observed
    from gpukube.doctor.evidence import Evidence

CHECKS: Final = Checks(needs=("pools",))


@CHECKS.add(
    "marks-twice",
    title="two live pools with the same gpukube.io labels",
    consequence="a replacement is unfinished: both pools cost money",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
    severity="warning",
)
def _duplicates(evidence: Evidence) -> Iterator[Fault]:
    by_mark: dict[tuple[str, str], list[Observed]] = {}
    for pool in evidence.live:
        if pool.owner and pool.pool and pool.state != "deleting":
            by_mark.setdefault((pool.owner, pool.pool), []).append(pool)
    for (owner, name), pools in by_mark.items():
        if len(pools) > 1:
            extra = next((pool.name for pool in pools if pool.name != name), pools[-1].name)
            yield fault(
                where=f"pool {evidence.cluster.key}/{name}",
                seen=f"{len(pools)} live pools have its gpukube.io labels: {', '.join(pool.name for pool in pools)}",
                fix=f"delete the extra pool by its cloud name: gpukube pool delete {extra} -f SPEC",
                evidence=tuple(f"{pool.name}: {OWNER_LABEL}={owner}, {pool.status}" for pool in pools),
            )


@CHECKS.add(
    "marks-half",
    title="pools with only one of gpukube's two labels",
    consequence="gpukube treats the pool as another owner's and never changes it",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
    severity="warning",
)
def _one_label_missing(evidence: Evidence) -> Iterator[Fault]:
    for pool in evidence.live:
        if bool(pool.owner) == bool(pool.pool) or any(has_lost_marks(expected, pool) for expected in evidence.desired):
            continue
        there, gone = (OWNER_LABEL, POOL_LABEL) if pool.owner else (POOL_LABEL, OWNER_LABEL)
        yield fault(
            where=f"pool {evidence.cluster.key}/{pool.name}",
            seen=f"it has the label {there}={pool.owner or pool.pool} but no {gone}",
            fix=f"add the label {gone} to the pool in the cloud, or remove {there}",
        )


@CHECKS.add(
    "marks-lost",
    title="pools that lost gpukube's labels",
    consequence="gpukube does not scale, replace, or delete the pool until it has them again",
    link="https://learn.microsoft.com/cli/azure/aks/nodepool#az-aks-nodepool-update",
    severity="warning",
)
def _lost(evidence: Evidence) -> Iterator[Fault]:
    for expected in evidence.desired:
        for pool in evidence.live:
            if has_lost_marks(expected, pool):
                yield fault(
                    where=f"pool {expected.target.where}",
                    seen=f'"{pool.name}" lost its gpukube.io labels; the copy in its tags still has them',
                    fix=f"gpukube pool apply -f SPEC --pool {expected.target.pool}"
                    + (" --adopt" if expected.copy_is_fixed else ""),
                    evidence=(f"{pool.name}: {pool.instance_type}, {pool.status}",),
                )


@CHECKS.add(
    "protection-mark",
    title="protection labels without effect",
    consequence="the pool can be deleted and replaced even though somebody tried to protect it",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
)
def _protection(evidence: Evidence) -> Iterator[Fault]:
    for pool in evidence.live:
        value = pool.labels.get(PROTECT_LABEL, "true")
        if value in ("true", "false"):
            continue
        yield fault(
            where=f"pool {evidence.cluster.key}/{pool.pool or pool.name}",
            seen=f'the label {PROTECT_LABEL} is "{value}", which has no effect',
            fix=f"set deletionProtection: true in the spec, then {apply_command(pool)}"
            if pool.pool
            else f"set the label {PROTECT_LABEL}=true on the pool in the cloud",
        )


@CHECKS.add(
    "protection-off",
    title="pools that are protected in the spec but not in the cloud",
    consequence="the pool can be deleted and replaced: only the live pool's label counts",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
    severity="warning",
)
def _unprotected(evidence: Evidence) -> Iterator[Fault]:
    live = {(pool.owner, pool.pool): pool for pool in evidence.live}
    for expected in evidence.desired:
        pool = live.get((expected.target.owner, expected.target.pool))
        if pool is None or not expected.target.protect or PROTECT_LABEL in pool.labels:
            continue
        yield fault(
            where=f"pool {expected.target.where}",
            seen="the spec protects it from deletion, but the live pool has no protection label",
            fix=apply_command(pool),
            evidence=(f"no label {PROTECT_LABEL}",),
        )


@CHECKS.add(
    "name-taken",
    title="declared pools whose name is taken by another pool",
    consequence="the pool cannot be created",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
)
def _name_taken(evidence: Evidence) -> Iterator[Fault]:
    ours = {(pool.owner, pool.pool) for pool in evidence.live}
    by_name = {pool.name: pool for pool in evidence.live}
    for expected in evidence.desired:
        target = expected.target
        other = by_name.get(target.name)
        if other is None or (target.owner, target.pool) in ours:
            continue
        if any(has_lost_marks(expected, pool) for pool in evidence.live):
            continue
        adopt = _adopting(expected, other)
        yield fault(
            where=f"pool {target.where}",
            seen=f'its name "{target.name}" is taken by a pool '
            + (f'of "{other.owner}"' if other.owner else "without gpukube.io labels"),
            fix=adopt + f"set names: {{{evidence.cluster.provider}: NEW_NAME}} for this pool in the spec",
            evidence=(f"{other.name}: {other.instance_type}, {other.status}",),
        )


def _adopting(desired: Desired, other: Observed) -> str:
    """Return how to adopt the pool that has the declared name; "" if that is impossible."""
    option = "--adopt"
    if names_another(desired, other) and other.copy:
        option = f"--adopt-from {other.copy.owner}"
    if other.owner:
        return ""
    option += " --adopt-managed" if load_provider(desired.target.cluster.provider).extras.managers(other) else ""
    return f"to adopt it: gpukube pool create -f SPEC --pool {desired.target.pool} {option}; or "


@CHECKS.add(
    "pool-undeclared",
    title="pools of the spec's owner that it does not declare",
    consequence="the pool runs and costs money, but no plan changes it; apply --prune would delete it",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
    severity="warning",
)
def _undeclared(evidence: Evidence) -> Iterator[Fault]:
    owners = {expected.target.owner for expected in evidence.desired}
    declared = {(expected.target.owner, expected.target.pool) for expected in evidence.desired}
    for pool in evidence.live:
        if pool.owner not in owners or not pool.pool or (pool.owner, pool.pool) in declared:
            continue
        first = "remove its protection (deletionProtection: false), then " if pool.protected else ""
        yield fault(
            where=f"pool {evidence.cluster.key}/{pool.pool}",
            seen=f'its owner is "{pool.owner}", but the spec does not declare it',
            fix=f"declare it in the spec; or {first}gpukube pool delete {pool.pool} -f SPEC",
            evidence=(f"{pool.name}: {pool.instance_type}, {pool.status}",),
        )
