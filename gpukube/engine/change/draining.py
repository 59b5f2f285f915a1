"""Empties the nodes of a pool: cordons all of them, evicts what must leave, waits until it has gone.

Lives here: the rounds of a drain, and the last look before a pool is deleted. Must not live here: what becomes of a pod
(cluster.drain.judge), and which pools are drained.

The state is in the cluster alone (cordon, marks of it, pods), so a drain may be stopped or killed at any moment, and
the same drain goes on with what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube.cluster.drain.cordon import cordon, is_cordoned, pool_nodes, staying_nodes
from gpukube.cluster.drain.judge import blocked_gangs
from gpukube.cluster.drain.reading import Occupants, read_occupants
from gpukube.cluster.kube.evictions import EvictionAnswer
from gpukube.core.jsontree import text
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.lasting import Lasting
from gpukube.errors import AccessError, ClusterError, Conflict, DrainTimeout, Finding, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.engine.run.wait import Wait

_T = TypeVar("_T")
_AT_ONCE: Final = 10
"""Evictions side by side; fewer once the API server throttles them."""
SHOWN: Final = 10
"""Pods and nodes named in a message; the rest is counted."""


@dataclass(frozen=True, slots=True)
class DrainConsent:
    """What a drain may do.

    Attributes:
        allow_disruption: Evict pods too that nothing makes again, that lose data, or that ask not to be disturbed.
        timeout_s: How long it may take.
    """

    allow_disruption: bool = False
    timeout_s: float = 3600.0


def drain_pool(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> int:
    """Empty the nodes of the live pool of a plan; safe to repeat.

    Args:
        plan: Its `observed` pool is drained.
        session: The pool's cluster.
        run: The run.
        consent: What may be done.

    Returns:
        How many nodes it has; all of them are cordoned.

    Raises:
        DrainTimeout: Pods are left; names them, what keeps them, and the cordoned nodes.
        Conflict: A pod leaves only with --allow-disruption. Where that is seen at first, nothing was changed.
        AccessError: Something of it is not allowed in the cluster.
        ClusterError: The API did not answer for longer than a blip.
        Stopped: The run was stopped; the nodes stay cordoned.
    """
    return _Drain(plan, plan.observed, session, run, consent).work() if plan.observed is not None else 0


def require_drainable(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> None:
    """Look whether the pods of a pool may be evicted, before anything is changed or paid for.

    Raises:
        Conflict: A pod leaves only with --allow-disruption.
        AccessError, ClusterError: It cannot be told.
    """
    if plan.observed is not None:
        _Drain(plan, plan.observed, session, run, consent).check()


def require_drained(plan: PoolPlan, session: Session) -> None:
    """Look once more before a pool is deleted.

    Raises:
        Conflict: A pod is on its nodes that is not of a DaemonSet, not the kubelet's own, and has not ended.
        AccessError, ClusterError: It cannot be told; the pool must not be deleted then either.
    """
    if plan.observed is None:
        return
    kube, label = session.kube(), session.provider.in_cluster.pool_label
    nodes = [text(node, "metadata", "name") for node in pool_nodes(kube, plan.observed, label)]
    left = sorted(f"{pod} on {node}" for node, pod in kube.pods_on(nodes)) if nodes else []
    if left:
        raise Conflict(
            f"the pool still has {counted(len(left), 'running pod')}: {listed(left)}",
            where=plan.where,
            fix="run it again: it drains the pool first",
            why="a pool that is replaced is only deleted once its nodes are empty",
            code="not-drained",
        )


@dataclass(slots=True)
class _Drain:
    """One drain of one pool, round by round."""

    plan: PoolPlan
    pool: Observed
    session: Session
    run: Run
    consent: DrainConsent
    at_once: int = _AT_ONCE
    cordoned: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    retry_at: dict[str, float] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    waiting_since: dict[tuple[str, str], float] = field(default_factory=dict)
    reported: dict[str, str] = field(default_factory=dict)
    left: tuple[Verdict, ...] = ()

    def check(self) -> None:
        """Look, and change nothing."""
        wait = self.run.wait(self.run.resume, self._notify)
        self._require_consent(self._read(wait, self._nodes(wait)))

    def work(self) -> int:
        """Do all rounds; return the number of nodes."""
        self.check()
        wait = self.run.wait(self.run.resume, self._notify, self.consent.timeout_s)
        thorough = True
        # An autoscaler may add a node, and a pod may be bound at the moment of the cordon: so nodes are listed and
        # cordoned first in every round, and pods are read after it. Pods of nodes that were found empty are read again
        # at the end only, which no new node may follow.
        while True:
            nodes = self._nodes(wait, thorough=thorough)
            fresh = self._cordon(wait, nodes)
            occupants = self._read(wait, nodes)
            self._require_consent(occupants)
            self.left = occupants.left
            if not self.left and thorough and not fresh:
                return len(nodes)
            thorough = not self.left
            if thorough:
                self.empty.clear()
                continue
            self._evict(occupants)
            self._report(occupants)
            self._pause(wait)

    def _nodes(self, wait: Wait, *, thorough: bool = True) -> tuple[Tree, ...]:
        label = self.session.provider.in_cluster.pool_label
        return self._steadily(wait, lambda kube: pool_nodes(kube, self.pool, label, thorough=thorough))

    def _cordon(self, wait: Wait, nodes: Sequence[Tree]) -> int:
        """Cordon the nodes that are not, and count them."""
        fresh = [node for node in nodes if not is_cordoned(node)]
        for node in fresh:
            self._steadily(wait, partial(cordon, node=node, pool=self.pool))
            self.run.sent.found_taken(self.plan.cluster.key, self.plan.name)
            self.empty.discard(text(node, "metadata", "name"))
        if fresh:
            self._notify(f"cordoned {counted(len(fresh), 'node')}")
        self.cordoned = sorted(text(node, "metadata", "name") for node in nodes)
        return len(fresh)

    def _read(self, wait: Wait, nodes: Sequence[Tree]) -> Occupants:
        names = [name for node in nodes if (name := text(node, "metadata", "name")) not in self.empty]
        found = self._steadily(wait, lambda kube: self._occupants(kube, names, staying_nodes(nodes)))
        self.empty |= set(names) - {verdict.pod.node for verdict in found.left}
        return found

    def _occupants(self, kube: Kube, names: Collection[str], staying: Collection[str]) -> Occupants:
        allowed = self.consent.allow_disruption
        return read_occupants(kube, names, self.run.clock.now(), staying=staying, allow_disruption=allowed)

    def _require_consent(self, occupants: Occupants) -> None:
        needing = [verdict for verdict in occupants.left if verdict.needs]
        if needing:
            undo = f"; to give up the drain: {undo_command(self.plan, self.run)}" if self.cordoned else ""
            raise Conflict.of(
                consent_finding(self.plan, str(v.pod), v.pod.node, "; ".join(v.needs), undo=undo) for v in needing
            )

    def _evict(self, occupants: Occupants) -> None:
        now, left = self.run.clock.now(), occupants.left
        held = blocked_gangs(left)
        busy = {v.pod.gang for v in left if v.pod.gang is not None and not v.pod.head}
        due = [
            verdict
            for verdict in left
            if verdict.way != "leaving"
            and self.retry_at.get(verdict.pod.uid, 0.0) <= now
            and verdict.pod.gang not in held
            and not (verdict.pod.head and verdict.pod.gang in busy)
            and not verdict.held
        ]
        kube = self.session.kube()
        asked = {v.pod.uid: v for v in sorted(due, key=lambda v: (str(v.pod.gang or ""), str(v.pod)))}
        tasks = {uid: partial(kube.evict, v.pod.namespace, v.pod.name, uid) for uid, v in asked.items()}
        for uid, answer in run_all(tasks, self.at_once).items():
            if isinstance(answer, EvictionAnswer):
                self._note(asked[uid], answer, now)
            elif isinstance(answer, WaitTimeout) or (isinstance(answer, AccessError) and uid in self.denied):
                raise answer
            else:
                self.answers[uid] = str(answer)
                if isinstance(answer, AccessError):  # the token may have run out: once more with a new one
                    self.denied.add(uid)
                    self.session.renew(kube)

    def _note(self, verdict: Verdict, answer: EvictionAnswer, now: float) -> None:
        uid, budgets = verdict.pod.uid, " and ".join(verdict.budgets)
        self.answers[uid] = f"budget {budgets}: used up for now" if answer.refusal == "budget" else answer.message
        if answer.retry_after_s is not None:
            self.retry_at[uid] = now + answer.retry_after_s
        if answer.refusal == "throttled":
            self.at_once = max(1, self.at_once // 2)

    def _why(self, verdict: Verdict) -> str:
        """Return what keeps a pod: by the rules, else by the last answer to its eviction."""
        return verdict.why or self.answers.get(verdict.pod.uid, "")

    def _report(self, occupants: Occupants) -> None:
        """Report each node whose state has changed."""
        now, left = self.run.clock.now(), occupants.left
        current = {(v.pod.node, self._why(v)) for v in left if v.way != "leaving" and self._why(v)}
        self.waiting_since = {key: self.waiting_since.get(key, now) for key in current}
        for node in sorted({v.pod.node for v in left}):
            here = [v for v in left if v.pod.node == node]
            line = f"node {node}: {counted(len(here), 'pod')} left"
            for why in sorted(why for where, why in current if where == node):
                minutes = int(now - self.waiting_since[node, why]) // 60
                line += f"; waiting for {why}" + (f" (since {minutes} min)" if minutes else "")
            if self.reported.get(node) != line:
                self.reported[node] = line
                self._notify(line)

    def _pause(self, wait: Wait) -> None:
        try:
            wait.pause(wait.poll_s, "pods are left")
        except WaitTimeout as error:
            raise self._late() from error

    def _late(self) -> DrainTimeout:
        named = [f"{v.pod} on {v.pod.node}{f' ({why})' if (why := self._why(v)) else ''}" for v in self.left]
        return DrainTimeout(
            f"{counted(len(self.left), 'pod')} did not leave in time: {listed(named)}; "
            f"cordoned: {listed(self.cordoned)}",
            where=self.plan.where,
            fix=f"to resume: {self.run.resume}; to give it up: {undo_command(self.plan, self.run)}",
        )

    def _steadily(self, wait: Wait, call: Callable[[Kube], _T]) -> _T:
        """Make calls of the cluster; a token that ran out and an API server that restarts do not end a drain."""
        bad, renewed = Lasting(wait.poll_s), False
        while True:
            kube = self.session.kube()
            try:
                return call(kube)
            except AccessError:
                if renewed:
                    raise
                self.session.renew(kube)
                renewed = True
            except ClusterError as error:
                bad.note(self.run.clock.now(), so=True)
                if bad.seconds >= self.run.pace.settle_s:
                    raise
                self._notify(f"waiting: {error}")
                self._pause(wait)

    def _notify(self, message: str) -> None:
        self.run.report("drain", message, self.plan.cluster.key, self.plan.pool)


def consent_finding(plan: PoolPlan, pod: str, node: str, why: str, *, undo: str = "") -> Finding:
    """Describe a pod that is only evicted with --allow-disruption."""
    return Finding(
        "drain-consent",
        plan.where,
        f"pod {pod} on {node} is not evicted without consent: {why}",
        fix=f"add --allow-disruption, or move the pod away{undo}",
    )


def undo_command(plan: PoolPlan, run: Run) -> str:
    """Write the command that uncordons what a drain of a pool has cordoned."""
    return f"gpukube pool drain {plan.name} --undo {run.spec_options}".strip()


def listed(names: Collection[str]) -> str:
    """List a few names and count the others."""
    more = len(names) - SHOWN
    return ", ".join(sorted(names)[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, what: str) -> str:
    """Write a number of things."""
    return f"{number} {what}{'' if number == 1 else 's'}"
