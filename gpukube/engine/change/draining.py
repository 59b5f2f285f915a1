"""Empties a pool's nodes: cordons all of them, evicts the pods that must leave, and waits until they are gone.

In scope: the rounds of a drain, and the last check before a pool is deleted. Out of scope: the decision for each pod
(cluster.drain.judge), and which pools are drained.

All state is in the cluster (cordons, their annotations, pods), so a drain may be stopped or killed at any moment, and
repeating it continues with the rest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube.cluster.drain.cordon import cordon, cordoned_at, is_cordoned, pool_nodes, staying_nodes, uncordon
from gpukube.cluster.drain.judge import blocked_gangs
from gpukube.cluster.drain.reading import Controllers, Occupants, read_occupants
from gpukube.cluster.kube.evictions import EvictionAnswer
from gpukube.core.jsontree import text
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.lasting import Lasting
from gpukube.errors import AccessError, ClusterError, Conflict, DrainTimeout, Finding, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.drain.pods import NodePod
    from gpukube.cluster.drain.reading import ControllerKey
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed, PoolPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.engine.run.wait import Wait

_T = TypeVar("_T")
_AT_ONCE: Final = 10
"""Parallel evictions; fewer once the API server throttles them."""
_QUIET_S: Final = 10.0
"""Minimum time between the two reads that find nodes empty, by the cluster's clock: a pod that may go there is bound by
then (the scheduler retries after 10 s at most; kubernetes pkg/scheduler/backend/queue, podMaxBackoffDuration)."""
_REPLACED_S: Final = 60.0
"""Time for controllers to create replacements of evicted pods."""
SHOWN: Final = 10
"""Maximum number of pods and nodes named in a message; the rest are counted."""


@dataclass(frozen=True, slots=True)
class DrainConsent:
    """What a drain may do.

    Attributes:
        allow_disruption: Also evict pods that no controller recreates, that lose data, or that opt out of disruption.
        timeout_s: Maximum duration.
    """

    allow_disruption: bool = False
    timeout_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Drained:
    """What remains after a drain.

    Attributes:
        nodes: Number of nodes of the pool; all of them are cordoned.
        ending: Workloads whose pods are back because they ignore the cordon, and the number of these pods.
        short: Controllers that have not recreated all pods.
    """

    nodes: int = 0
    ending: tuple[tuple[str, int], ...] = ()
    short: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Summarize the drain in one line, which contains "empty" only if the nodes are."""
        words = [f"{counted(self.nodes, 'node')} cordoned{'' if self.ending else ' and empty'}", *self.notes]
        return "; ".join(words)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the summary adds: pods that stay, and pods that are missing."""
        ending = [
            f"{counted(pods, 'pod')} of {workload} "
            + ("ignores the cordon and ends with the node" if pods == 1 else "ignore the cordon and end with the node")
            for workload, pods in self.ending
        ]
        return (*ending, *([f"not all pods were recreated: {listed(self.short)}"] if self.short else []))


def drain_pool(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent, *, successor: str = "") -> Drained:
    """Drain the nodes of a plan's live pool; safe to repeat.

    Args:
        plan: Its `observed` pool is drained.
        session: The pool's cluster.
        run: The run.
        consent: What the drain may do.
        successor: The running pool that replaces it; "" if there is none.

    Returns:
        What remains on its nodes; all of them are cordoned.

    Raises:
        DrainTimeout: Pods are left; names them, what blocks them, and the cordoned nodes.
        Conflict: A pod leaves only with --allow-disruption. If that is found at the start, nothing was changed.
        AccessError: A required permission in the cluster is missing.
        ClusterError: The API did not answer for longer than a brief outage.
        Stopped: The run was stopped; the nodes stay cordoned. `run.standing` describes the state.
    """
    if plan.observed is None:
        return Drained()
    drain = _Drain(plan, plan.observed, session, run, consent, successor)
    try:
        return drain.work()
    except (Stopped, WaitTimeout):
        run.standing[plan.cluster.key, plan.name] = drain.describe_stop()
        raise


def require_drainable(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> None:
    """Check that the pods of a pool may be evicted, before anything changes or costs money.

    Raises:
        Conflict: A pod leaves only with --allow-disruption.
        AccessError, ClusterError: The pods cannot be read.
    """
    if plan.observed is not None:
        _Drain(plan, plan.observed, session, run, consent).check()


def require_drained(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> None:
    """Check that a pool is drained, right before it is deleted.

    Raises:
        Conflict: Its nodes run a pod that is not a DaemonSet's or a static pod, has not ended, and does not ignore the
            cordon with consent.
        AccessError, ClusterError: The pods cannot be read; the pool must not be deleted then either.
    """
    if plan.observed is None:
        return
    kube, label = session.kube(), session.provider.extras.in_cluster.pool_label
    nodes = [text(node, "metadata", "name") for node in pool_nodes(kube, plan.observed, label)]
    found = read_occupants(kube, nodes, run.clock.now(), allow_disruption=True, controllers=Controllers())
    pods = [verdict.pod for verdict in found.left]
    left = [f"{pod} on {pod.node}" for pod in pods if not (pod.ignores and consent.allow_disruption)]
    if left:
        raise Conflict(
            f"the pool still has {counted(len(left), 'running pod')}: {listed(left)}",
            where=plan.where,
            fix="run it again: it drains the pool first",
            why="a pool that is replaced is deleted only once its nodes are empty",
            code="not-drained",
        )


def undo_drain(plan: PoolPlan, session: Session, run: Run) -> int:
    """Uncordon the nodes of a plan's live pool that gpukube has cordoned, and return their number.

    Raises:
        AccessError, ClusterError: See cordon.
    """
    if plan.observed is None:
        return 0
    kube, pool = session.kube(), plan.observed
    nodes = pool_nodes(kube, pool, session.provider.extras.in_cluster.pool_label)
    done = [text(node, "metadata", "name") for node in nodes if uncordon(kube, node, pool)]
    if done:
        run.report("drain", f"uncordoned {listed(done)}", plan.cluster.key, plan.pool)
    return len(done)


@dataclass(slots=True)
class _Drain:
    """One drain of one pool, round by round.

    Attributes:
        empty: Nodes on which a round found nothing to evict; only checks of the whole pool read them again.
        first: Per node the UIDs of the pods in the first read after its cordon; all others came later.
        since: When nodes were cordoned, if the cluster records it.
        evicted: UIDs of pods whose eviction was accepted.
        makers: Controllers that must recreate them.
    """

    plan: PoolPlan
    pool: Observed
    session: Session
    run: Run
    consent: DrainConsent
    successor: str = ""
    at_once: int = _AT_ONCE
    cordoned: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    first: dict[str, frozenset[str]] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    makers: set[ControllerKey] = field(default_factory=set)
    controllers: Controllers = field(default_factory=Controllers)
    retry_at: dict[str, float] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    waiting_since: dict[tuple[str, str], float] = field(default_factory=dict)
    reported: dict[str, str] = field(default_factory=dict)
    left: tuple[Verdict, ...] = ()

    def check(self) -> None:
        """Check consent for all pods; change nothing."""
        wait = self.run.wait(self.run.resume, self._notify)
        nodes = self._nodes(wait)
        names = [text(node, "metadata", "name") for node in nodes]
        self._require_consent(self._patiently(wait, lambda kube: self._occupants(kube, names, staying_nodes(nodes))))

    def work(self) -> Drained:
        """Run all rounds."""
        self.check()
        wait = self.run.wait(self.run.resume, self._notify, self.consent.timeout_s)
        while True:
            self._evict_all(wait)
            if (done := self._proven_empty(wait)) is not None:
                return done

    def _evict_all(self, wait: Wait) -> None:
        """Repeat rounds until one finds nothing to evict.

        An autoscaler may add a node, and a pod may be bound at the moment of the cordon, so each round first lists and
        cordons nodes, then reads pods.
        """
        while True:
            nodes = self._nodes(wait, thorough=not self.first)
            self._cordon(wait, nodes)
            occupants = self._read(wait, nodes)
            self._require_consent(occupants)
            if not self.left:
                return
            self._evict()
            self._report()
            self._pause(wait, wait.poll_s)

    def _proven_empty(self, wait: Wait) -> Drained | None:
        """Read the whole pool until two reads far enough apart find nothing to evict; return None if one finds a pod.

        A single read may fall between the pod that has left and its replacement.
        """
        begun: float | None = None
        since: float | None = None
        seen: set[str] = set()
        while True:
            before = self._time(wait)
            begun = before if begun is None else begun
            short = self._patiently(wait, lambda kube: self.controllers.short(kube, self.makers))
            self.empty.clear()
            nodes = self._nodes(wait)
            fresh = self._cordon(wait, nodes)
            occupants = self._read(wait, nodes)
            self._require_consent(occupants)
            if self.left:
                return None
            if fresh or not seen.issuperset(self.cordoned):
                since = None
            if not nodes or (since is not None and before - since > _QUIET_S):
                return self._drained(len(nodes), occupants, short)
            if since is None and (not short or before - begun > _REPLACED_S):
                since, seen = self._time(wait), set(self.cordoned)
            self._notify_once("nothing is left to evict" if since else f"waiting for {listed(short)} to recreate pods")
            rest = wait.poll_s if since is None else since + _QUIET_S + 1 - before
            self._pause(wait, min(wait.poll_s, max(0.0, rest)))

    def _drained(self, nodes: int, occupants: Occupants, short: tuple[str, ...]) -> Drained:
        pods = [verdict.pod for verdict in occupants.left]
        ending = Counter(pod.workload for pod in pods)
        return Drained(nodes, tuple(sorted(ending.items())), short)

    def _time(self, wait: Wait) -> float:
        """Return the cluster's time, so that its timestamps are compared with its own clock."""
        time = self._patiently(wait, lambda kube: kube.time())
        return self.run.clock.now() if time is None else time

    def _nodes(self, wait: Wait, *, thorough: bool = True) -> tuple[Tree, ...]:
        label = self.session.provider.extras.in_cluster.pool_label
        return self._patiently(wait, lambda kube: pool_nodes(kube, self.pool, label, thorough=thorough))

    def _cordon(self, wait: Wait, nodes: Sequence[Tree]) -> int:
        """Cordon the nodes that are not cordoned, and return their number."""
        fresh = [node for node in nodes if not is_cordoned(node)]
        for node in fresh:
            self._patiently(wait, partial(cordon, node=node, pool=self.pool))
            self.cordoned.append(text(node, "metadata", "name"))
            self.run.sent.confirm_effect(self.plan.cluster.key, self.plan.name)
            name = text(node, "metadata", "name")
            self.empty.discard(name)
            self.first.pop(name, None)  # pods may have come before the cordon
            self.since.pop(name, None)
        if fresh:
            self._notify(f"cordoned {counted(len(fresh), 'node')}")
        for node in nodes:
            if is_cordoned(node) and (moment := cordoned_at(node)) is not None:
                self.since[text(node, "metadata", "name")] = moment
        self.cordoned = sorted(text(node, "metadata", "name") for node in nodes)
        return len(fresh)

    def _read(self, wait: Wait, nodes: Sequence[Tree]) -> Occupants:
        names = [name for node in nodes if (name := text(node, "metadata", "name")) not in self.empty]
        found = self._patiently(wait, lambda kube: self._occupants(kube, names, staying_nodes(nodes)))
        for name in names:
            self.first.setdefault(name, frozenset(v.pod.uid for v in found.verdicts if v.pod.node == name))
        self.left = tuple(verdict for verdict in found.left if not self._ends_with_node(verdict.pod))
        self.empty |= set(names) - {verdict.pod.node for verdict in self.left}
        return found

    def _ends_with_node(self, pod: NodePod) -> bool:
        """Return whether a pod arrived in spite of the cordon: once evicted, the next one would replace it."""
        since = self.since.get(pod.node)
        late = pod.uid not in self.first[pod.node] or (
            since is not None and pod.bound is not None and pod.bound > since
        )
        return bool(pod.ignores) and late

    def _occupants(self, kube: Kube, names: Collection[str], staying: Collection[str]) -> Occupants:
        allowed = self.consent.allow_disruption
        return read_occupants(
            kube,
            names,
            self.run.clock.now(),
            staying=staying,
            allow_disruption=allowed,
            controllers=self.controllers,
        )

    def _require_consent(self, occupants: Occupants) -> None:
        needing = [verdict for verdict in occupants.left if verdict.needs]
        if needing:
            undo = f"; to give up the drain: {undo_command(self.plan, self.run)}" if self.cordoned else ""
            raise Conflict.of(
                consent_finding(self.plan, str(v.pod), v.pod.node, "; ".join(v.needs), undo=undo) for v in needing
            )

    def _due(self, now: float) -> list[Verdict]:
        """Return the pods to evict now: no gang that one of its pods blocks, and a gang's head after its workers."""
        held = blocked_gangs(self.left)
        busy = {v.pod.gang for v in self.left if v.pod.gang is not None and not v.pod.head}
        return [
            verdict
            for verdict in self.left
            if verdict.way != "leaving"
            and verdict.pod.uid not in self.evicted
            and self.retry_at.get(verdict.pod.uid, 0.0) <= now
            and verdict.pod.gang not in held
            and not (verdict.pod.head and verdict.pod.gang in busy)
            and not verdict.held
        ]

    def _evict(self) -> None:
        now, kube = self.run.clock.now(), self.session.kube()
        due = {v.pod.uid: v for v in sorted(self._due(now), key=lambda v: (str(v.pod.gang or ""), str(v.pod)))}
        tasks = {uid: partial(kube.evict, v.pod.namespace, v.pod.name, uid) for uid, v in due.items()}
        for uid, answer in run_all(tasks, self.at_once).items():
            if isinstance(answer, EvictionAnswer):
                self._note(due[uid], answer, now)
            elif isinstance(answer, WaitTimeout) or (isinstance(answer, AccessError) and uid in self.denied):
                raise answer
            else:
                self.answers[uid] = str(answer)
                if isinstance(answer, AccessError):  # the token may have expired: retry once with a new one
                    self.denied.add(uid)
                    self.session.renew(kube)

    def _note(self, verdict: Verdict, answer: EvictionAnswer, now: float) -> None:
        uid, budgets = verdict.pod.uid, " and ".join(verdict.budgets)
        self.answers[uid] = f"budget {budgets}: exhausted for now" if answer.refusal == "budget" else answer.message
        if answer.retry_after_s is not None:
            self.retry_at[uid] = now + answer.retry_after_s
        if answer.refusal == "throttled":
            self.at_once = max(1, self.at_once // 2)
        if not answer.refusal:
            self.evicted.add(uid)
            self.makers.add((verdict.pod.owner.kind, verdict.pod.namespace, verdict.pod.owner.name))

    def _why(self, verdict: Verdict) -> str:
        """Return what blocks a pod: a rule, or else the last answer to its eviction."""
        return verdict.why or self.answers.get(verdict.pod.uid, "")

    def _report(self) -> None:
        """Report each node whose state changed."""
        now, left = self.run.clock.now(), self.left
        current = {(v.pod.node, self._why(v)) for v in left if v.way != "leaving" and self._why(v)}
        self.waiting_since = {key: self.waiting_since.get(key, now) for key in current}
        for node in sorted({v.pod.node for v in left}):
            here = [v for v in left if v.pod.node == node]
            line = f"node {node}: {counted(len(here), 'pod')} left"
            for why in sorted(why for where, why in current if where == node):
                minutes = int(now - self.waiting_since[node, why]) // 60
                line += f"; waiting for {why}" + (f" (since {minutes} min)" if minutes else "")
            self._notify_once(line, node)

    def _notify_once(self, line: str, about: str = "") -> None:
        if self.reported.get(about) != line:
            self.reported[about] = line
            self._notify(line)

    def _pause(self, wait: Wait, seconds: float) -> None:
        try:
            wait.pause(seconds, "pods are left")
        except WaitTimeout as error:
            raise self._timeout_error() from error

    def _timeout_error(self) -> DrainTimeout:
        if not self.left:
            seen = "the timeout expired before a second check had found the nodes empty"
        else:
            seen = f"{counted(len(self.left), 'pod')} did not leave in time: {listed(self._blocked_pods())}"
        return DrainTimeout(
            f"{seen}; {self._remaining_state()}",
            where=self.plan.where,
            fix=f"to resume: {self.run.resume}; to give up: {undo_command(self.plan, self.run)}",
        )

    def _blocked_pods(self) -> list[str]:
        return [f"{v.pod} on {v.pod.node}{f' ({why})' if (why := self._why(v)) else ''}" for v in self.left]

    def _remaining_state(self) -> str:
        """Describe what an unfinished drain leaves behind."""
        both = f"; {self.plan.name} and {self.successor} both run, and cost" if self.successor else ""
        return f"cordoned: {listed(self.cordoned)}{both}"

    def describe_stop(self) -> str:
        """Describe the state after the run was stopped, and how to undo it."""
        if not self.cordoned:
            return "stopped before a node was cordoned"
        left = f"; {counted(len(self.left), 'pod')} left: {listed(self._blocked_pods())}" if self.left else ""
        return (
            f"stopped: {self.plan.name} is not drained any further; {self._remaining_state()}{left}; "
            f"to give up: {undo_command(self.plan, self.run)}"
        )

    def _patiently(self, wait: Wait, call: Callable[[Kube], _T]) -> _T:
        """Call the cluster; survive an expired token and a restarting API server."""
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
                bad.note(self.run.clock.now(), holds=True)
                if bad.seconds >= self.run.pace.settle_s:
                    raise
                self._notify(f"waiting: {error}")
                self._pause(wait, wait.poll_s)

    def _notify(self, message: str) -> None:
        self.run.report("drain", message, self.plan.cluster.key, self.plan.pool)


def consent_finding(plan: PoolPlan, pod: str, node: str, why: str, *, undo: str = "") -> Finding:
    """Return the finding on a pod that is evicted only with --allow-disruption."""
    return Finding(
        "drain-consent",
        plan.where,
        f"pod {pod} on {node} is not evicted without consent: {why}",
        fix=f"add --allow-disruption, or move the pod away{undo}",
    )


def undo_command(plan: PoolPlan, run: Run) -> str:
    """Return the command that uncordons the nodes that a drain of a pool has cordoned."""
    return f"gpukube pool drain {plan.name} --undo {run.spec_options}".strip()


def listed(names: Collection[str]) -> str:
    """List the first few names and count the rest."""
    more = len(names) - SHOWN
    return ", ".join(sorted(names)[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the singular or plural."""
    return f"{number} {what}{'' if number == 1 else 's'}"
