"""The lock and the durable record of a family: one run at a time gets its nodes, and the next goes on from the record.

Both are in one Lease of the cluster, as a record on the cloud would die with a deleted attempt. In scope: holding,
renewing, taking over, and changing the record. Out of scope: the record itself (`family_record`), what a run does.

Expiry is judged as in client-go (tools/leaderelection): a waiting run counts for how long it has seen the lock without
renewal, and the holder stops itself before that. The clocks of two machines are never compared.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

from gpukube.cluster.kube.api_types import LEASES
from gpukube.cluster.names import NAMESPACE, NAMESPACE_LABELS
from gpukube.core.jsontree import integer, text
from gpukube.core.values import FAMILY_LABEL, OWNER_LABEL
from gpukube.engine.change.family_record import ATTEMPTS, Record, lease_name, read_record, record_text
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.identity import has_ended, new_identity
from gpukube.errors import AccessError, ClusterError, Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.engine.change.family_record import Outcome, Trial, Win
    from gpukube.engine.run.context import Run

_TRIES: Final = 20
"""Most attempts at one write; each conflict means that another write of this Lease succeeded."""
_JOIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds between the events of a lock.

    Attributes:
        duration_s: How long others wait without a renewal before they take the lock.
        deadline_s: Age of the last renewal at which the holder stops to rely on it; the rest is for a call in flight.
        renew_s: Interval of renewals.
        retry_s: Interval after a failed one, and maximum interval at which a waiting run looks.
    """

    duration_s: int = 30
    deadline_s: float = 20.0
    renew_s: float = 10.0
    retry_s: float = 2.0


class FamilyLease:
    """The lock of one family, held by this run; made by `held`. Safe to share between threads.

    Args:
        kube: Cluster of the Lease.
        owner: Owner of the family's pools.
        family: Name of the family.
        run: The run that holds it.
    """

    timing: ClassVar[Timing] = Timing()

    def __init__(self, kube: Kube, owner: str, family: str, run: Run) -> None:
        self._kube = kube
        self._marks = {OWNER_LABEL: owner, FAMILY_LABEL: family}
        self._family = family
        self._name = lease_name(owner, family)
        self._run = run
        self._identity = new_identity()
        self._record = Record()
        self._renewed = (0.0, 0.0)
        self._lost = ""
        self._over = threading.Event()
        self._recording = threading.Lock()
        self._renewing = threading.Lock()

    @classmethod
    @contextmanager
    def held(
        cls, kube: Kube, owner: str, family: str, run: Run, notify: Callable[[str], None]
    ) -> Iterator[FamilyLease]:
        """Hold the lock in the body; wait while another live run has it.

        Args:
            kube: Cluster of the Lease.
            owner: Owner of the family's pools.
            family: Name of the family.
            run: The run; its clock waits, and its timeout ends the wait.
            notify: Called once with the holder, if there is one to wait for.

        Raises:
            Conflict: The Lease with this name is not this family's; nothing was written.
            AccessError: The identity may not read or write Leases.
            ClusterError: The Kubernetes API did not answer.
            WaitTimeout: Another run had the lock until the run's timeout.
            Stopped: The run was stopped.
        """
        lease = cls(kube, owner, family, run)
        lease._acquire(notify)
        renewals = threading.Thread(target=lease._renew_until_released, name="gpukube-lease", daemon=True)
        renewals.start()
        try:
            yield lease
        finally:
            lease._over.set()
            renewals.join(_JOIN_S)  # a renewal that is still in flight then is refused: the lock has no holder
            with suppress(GpukubeError):  # if this fails, the lock expires
                lease._change(lambda record: record, holder="", kube=kube.cleaning())

    @classmethod
    def forget_deleted(cls, kube: Kube, owner: str, family: str, run: Run) -> str:
        """Empty the record of a family that was deleted; one that a run holds is left to that run.

        Args:
            kube: Cluster of the Lease.
            owner: Owner of the family's pools.
            family: Name of the family.
            run: The run that deleted it.

        Returns:
            The run that holds the lock, and may create a pool after all; "" if none is known to.

        Raises:
            Conflict: The Lease with this name is not this family's; nothing was written.
            AccessError: The identity may not read or write Leases.
            ClusterError: The Kubernetes API did not answer.
        """
        lease = cls(kube, owner, family, run)
        live = lease._read(kube)
        holder = "" if live is None else text(live, "spec", "holderIdentity")
        if holder and not has_ended(holder):
            return holder
        if live is not None:
            lease._write(kube, live, "", Record())
        return ""

    @property
    def trial(self) -> Trial | None:
        """The member that is tried, or that a killed run was trying."""
        return self._record.trial

    @property
    def won(self) -> Win | None:
        """The member that has the nodes."""
        return self._record.won

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Why members did not get their nodes: the latest outcome of each, oldest first."""
        return self._record.outcomes

    def begin(self, cluster: str, member: str) -> None:
        """Record that a member is tried, before it is created; a trial that goes on keeps its beginning.

        Raises:
            ClusterError: The lock is lost, or the Kubernetes API did not answer.
        """
        self._note(lambda record: record.begin(cluster, member, self._run.clock.now()))

    def end(self, outcome: Outcome) -> None:
        """Record why a member did not get its nodes, after it is gone; see `begin`."""
        self._note(lambda record: record.end(outcome))

    def win(self, cluster: str, member: str) -> None:
        """Record which member has the nodes; see `begin`."""
        self._note(lambda record: record.win(cluster, member, self._run.clock.now()))

    def check(self) -> None:
        """Require that the lock is held; call it right before each call that changes something.

        Raises:
            ClusterError: It is lost: another run may be getting nodes for the family.
            Stopped: The run was stopped.
            WaitTimeout: The run's time is up.
        """
        if self._lost:
            raise self._lost_error(self._lost)
        if self._age() < self.timing.deadline_s:
            return
        # The machine slept, or the API did not answer the last renewals.
        try:
            self._change(lambda record: record)
        except (AccessError, ClusterError, Conflict) as error:
            if self._lost:
                raise
            raise self._lost_error(f"it could not be renewed: {error}") from error
        if self._age() >= self.timing.deadline_s:
            raise self._lost_error("the Kubernetes API answers too slowly to renew it")

    def _acquire(self, notify: Callable[[str], None]) -> None:
        wait = self._run.wait(self._run.resume, notify)
        look_s = min(self.timing.retry_s, self._run.pace.poll_s)
        seen, unchanged_s, told = ("", ""), 0.0, False
        while True:
            live = self._read(self._kube) or self._create()
            holder = text(live, "spec", "holderIdentity")
            state = holder, text(live, "spec", "renewTime")
            unchanged_s, seen = (unchanged_s if state == seen else 0.0), state
            if not holder or unchanged_s >= self.timing.duration_s or has_ended(holder):
                record = read_record(text(live, "metadata", "annotations", ATTEMPTS))
                if self._write(self._kube, live, self._identity, record):
                    self._record = record
                    return
            elif not told:
                notify(f"another run ({holder}) is getting nodes for family {self._family}; waiting")
                told = True
            wait.pause(look_s, f"another run is still getting nodes for family {self._family}")
            unchanged_s += look_s

    def _create(self) -> Tree:
        """Create the Lease without a holder, and its namespace if that is missing."""
        metadata = {"name": self._name, "namespace": NAMESPACE, "annotations": dict(self._marks)}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
        if self._kube.namespace_labels(NAMESPACE) is None:
            self._kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
        try:
            return self._kube.create_object(LEASES, lease)
        except ClusterError:
            found = self._read(self._kube)  # another run has just created it
            if found is None:
                raise
            return found

    def _renew_until_released(self) -> None:
        pause_s = self.timing.renew_s
        while not self._over.wait(pause_s) and not self._lost:
            pause_s = self.timing.renew_s
            try:
                self._change(lambda record: record)
            except Stopped:
                return
            except GpukubeError:  # `check` reports it once it matters
                pause_s = self.timing.retry_s

    def _note(self, edit: Callable[[Record], Record]) -> None:
        with self._recording:
            self._record = self._change(edit)

    def _change(self, edit: Callable[[Record], Record], holder: str | None = None, kube: Kube | None = None) -> Record:
        """Write the record as edited, which renews the lock too; read it again whenever somebody else wrote first."""
        kube = kube or self._kube
        for _ in range(_TRIES):
            live = self._read(kube)
            found = "" if live is None else text(live, "spec", "holderIdentity")
            if live is None or found != self._identity:
                self._lost = f"another run ({found}) has taken it over" if found else "somebody released it"
                raise self._lost_error(self._lost)
            record = edit(read_record(text(live, "metadata", "annotations", ATTEMPTS)))
            if self._write(kube, live, self._identity if holder is None else holder, record):
                return record
        raise ClusterError(
            f"Lease {NAMESPACE}/{self._name} changed before each of {_TRIES} attempts to write it",
            where=self._kube.server,
            fix=f"find out what else writes it, then run again: {self._run.resume}",
        )

    def _read(self, kube: Kube) -> Tree | None:
        live = kube.find_object(LEASES, self._name, NAMESPACE)
        if live and any(text(live, "metadata", "annotations", key) != value for key, value in self._marks.items()):
            raise Conflict(
                f"Lease {NAMESPACE}/{self._name} lacks the annotations of family {self._family}; it was not changed",
                where=self._kube.server,
                why="gpukube keeps the lock and the record of a pool with alternatives in a Lease of this name",
                fix=f"if nothing uses it: kubectl delete lease {self._name} --namespace {NAMESPACE}",
                code="lease-foreign",
            )
        return live

    def _write(self, kube: Kube, live: Tree, holder: str, record: Record) -> bool:
        """Write holder and record unless the Lease has changed since it was read; return whether it was written."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        is_same = text(live, "spec", "holderIdentity") in (holder, self._identity)
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": self.timing.duration_s,
            "acquireTime": (is_same and text(live, "spec", "acquireTime")) or now,
            "renewTime": now,
            "leaseTransitions": (integer(live, "spec", "leaseTransitions") or 0) + (not is_same),
        }
        operations: list[Tree] = [
            {"op": "add", "path": "/spec", "value": spec},
            {
                "op": "add",
                "path": f"/metadata/annotations/{ATTEMPTS.replace('/', '~1')}",
                "value": record_text(record),
            },
        ]
        begun = time.monotonic(), time.time()
        if not kube.change_object(LEASES, live, operations):
            return False
        with self._renewing:
            self._renewed = max(self._renewed, begun)
        return True

    def _age(self) -> float:
        """Return seconds since the last renewal was sent, by the clock that shows more: one stops in suspend."""
        with self._renewing:
            renewed, renewed_at = self._renewed
        return max(time.monotonic() - renewed, time.time() - renewed_at)

    def _lost_error(self, why: str) -> ClusterError:
        return ClusterError(
            f"the lock of family {self._family} is lost: {why}",
            where=self._kube.server,
            why="only one run at a time may get nodes for a family, so this one has stopped",
            fix=f"run the same command again: {self._run.resume}",
            code="lease-lost",
        )
