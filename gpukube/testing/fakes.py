"""An in-memory cloud: the smallest provider that satisfies the contract.

It shows that nothing in the core needs a real cloud, and serves tests of the engine. Faults are queued with
`FakeWorld.fail_next`; every request is recorded.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from gpukube.core.fields import COUNT, DISK_SIZE, DISK_TYPE, INSTANCE_TYPE, LEAST, MIG_PROFILE, MOST, TAINTS, label, tag
from gpukube.core.in_cluster import InClusterFacts
from gpukube.core.launches import Launches
from gpukube.core.managers import Manager
from gpukube.core.node_facts import GIB, NodeFacts, Reserved, Room, common_labels, room_left
from gpukube.core.provider_parts import Extras, PoolRequests
from gpukube.core.values import (
    MARKS,
    OWNER_LABEL,
    POOL_LABEL,
    PROTECT_LABEL,
    RELEASED_LABEL,
    ClusterFacts,
    Desired,
    KubeAccess,
    MarksCopy,
    NodeStack,
    Observed,
    Operation,
    Progress,
    Request,
    UpdateRow,
)
from gpukube.errors import CloudError, Conflict, Finding, Moved
from gpukube.gpu.cloud_machines import CloudMachines
from gpukube.provider import FEATURES, Ability, CloudExtras

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.fields import FieldPath
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import Change, ClusterRef, Nodes, Ownership, Promise, Settings, Target
    from gpukube.errors import GpukubeError
    from gpukube.provider import Cloud, Provider
    from gpukube.spec.cloud import CloudSpec

__all__ = ["FakeCloud", "FakeExtras", "FakeProvider", "FakeWorld"]

NAME_LENGTH = 40
SERVER_DEFAULTS = {tag("created-by"): "fake-cloud", DISK_TYPE: "fake-ssd"}
"""Fields that this cloud fills in: they must not count as drift."""


@dataclass(slots=True)
class FakeWorld:
    """The state behind one fake cluster.

    Attributes:
        pools: Live pools by cloud name.
        requests: Every request that was sent, in order.
        ready: Whether the cluster exists.
        launches: What the cloud reports about a pool's launches, by cloud name.
        reserved: The reservations of pools, by the pools' cloud names.
        polls_to_finish: Polls until an operation is done.
    """

    pools: dict[str, Observed] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    ready: bool = True
    launches: dict[str, Launches] = field(default_factory=dict)
    reserved: dict[str, LiveReservation] = field(default_factory=dict)
    polls_to_finish: int = 1
    _faults: list[tuple[Exception, bool]] = field(default_factory=list)
    _fate: dict[str, GpukubeError] = field(default_factory=dict)
    _looks: dict[str, int] = field(default_factory=dict)

    def fail_next(self, error: Exception, *, after: bool = False) -> None:
        """Make the next send fail, before it has an effect or (`after`) afterwards, like a lost response.

        The error may also be one that ends a call abandoned by a stopped run.
        """
        self._faults.append((error, after))

    def fail_operation(self, name: str, error: GpukubeError) -> None:
        """Make the next creation of this pool fail; the pool stays, as on the clouds."""
        self._fate[name] = error

    def take_fault(self) -> tuple[Exception | None, bool]:
        """Return and remove the next queued fault, or (None, False)."""
        return self._faults.pop(0) if self._faults else (None, False)

    def look(self, name: str) -> bool:
        """Count a poll of a pool's operation; return True if the operation is done."""
        self._looks[name] = self._looks.get(name, 0) + 1
        return self._looks[name] > self.polls_to_finish

    def fate(self, name: str) -> GpukubeError | None:
        """Return and remove the failure queued for this pool, if any."""
        return self._fate.pop(name, None)


def _copy(target: Target) -> tuple[MarksCopy, tuple[FieldPath, ...]]:
    """Return the copy of the marks, and the tags of the spec."""
    written = tuple(tag(key) for key in sorted(target.tags))
    return MarksCopy(target.owner, target.pool, target.protect), written


def _read_copy(given: object) -> MarksCopy | None:
    return MarksCopy(**given) if isinstance(given, dict) and given else None


def _update(cluster: ClusterRef, observed: Observed, fields: Mapping[FieldPath, object]) -> Request:
    params = {"cluster": cluster.key, "name": observed.name, "fields": dict(fields), "etag": observed.etag}
    return Request("fake", "update", params)


def _delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Return the call that deletes a pool by cloud name."""
    return Request("fake", "delete", {"cluster": cluster.key, "name": observed.name})


def _recreate(desired: Desired, observed: Observed) -> Request | None:
    """Return the call that repeats the creation over a failed pool."""
    return Request("fake", "repair", {**desired.create.params, "etag": observed.etag})


def _update_pool(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Return one call for labels and taints, and one per other field, each guarded by the etag."""
    groups: dict[str | FieldPath, dict[FieldPath, object]] = {}
    for change in changes:
        group = "marks" if change.field[0] in ("labels", "taints") else change.field
        groups.setdefault(group, {})[change.field] = change.new
    made = [_update(desired.target.cluster, observed, fields) for fields in groups.values()]
    copy, written = _copy(desired.target)
    more = {"copy": asdict(copy), "written": written}
    return tuple(replace(request, params={**request.params, **more}) for request in made)


def _scale(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    """Return the call that sets the size."""
    if nodes.autoscaled:
        return _update(cluster, observed, {LEAST: nodes.minimum, MOST: nodes.maximum})
    return _update(cluster, observed, {COUNT: nodes.count})


def _release(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """Return the calls that remove the copy, then the labels: two, so that tests see the state in between."""
    marks: dict[FieldPath, object] = {label(key): None for key in MARKS if key in observed.labels}
    marks |= {label(RELEASED_LABEL): observed.pool} if observed.pool else {}
    copy = _update(cluster, observed, {})
    made = [replace(copy, params={**copy.params, "copy": {}, "written": ()})] if observed.copy else []
    return (*made, _update(cluster, observed, marks)) if marks else tuple(made)


def _copy_marks(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that writes the copy."""
    copy = {"owner": observed.owner, "pool": observed.pool, "protected": observed.protected}
    if not observed.owner or observed.copied or (observed.copy and asdict(observed.copy) == copy):
        return None
    request = _update(cluster, observed, {})
    return replace(request, params={**request.params, "copy": copy, "written": ()})


def _freeze(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that fixes the current size, without bounds."""
    if MOST not in observed.fields:
        return None
    return _update(cluster, observed, {LEAST: None, MOST: None, COUNT: observed.nodes})


REQUESTS: Final = PoolRequests(
    delete=_delete,
    update=_update_pool,
    scale=_scale,
    release=_release,
    recreate=_recreate,
    copy=_copy_marks,
    freeze=_freeze,
)


class FakeExtras(Extras):
    """Extras of the fake cloud."""

    pools_at_once = 2
    starts_empty = True
    tolerates_resources = True
    in_cluster = InClusterFacts(pool_label="fake.example/pool")

    @staticmethod
    def chosen_fields(observed: Observed) -> Mapping[FieldPath, object]:
        """Return the fields without those that this cloud fills in."""
        return {path: value for path, value in observed.fields.items() if SERVER_DEFAULTS.get(path) != value}

    @staticmethod
    def managers(observed: Observed) -> tuple[Manager, ...]:
        """Return the one tool that this cloud knows, by its tag."""
        found = observed.fields.get(tag("made-by"))
        return (Manager(str(found), "tag made-by"),) if found else ()


class FakeProvider:
    """The provider's part without calls. Instances share the given worlds, by cluster key."""

    name = "fake"
    codes: Mapping[str, tuple[str, str]] = MappingProxyType(
        {
            "fake-name": ("FAKE101", "A name is too long."),
            "fake-spot": ("FAKE102", "The fake cloud has no spot machines."),
        }
    )
    machines = CloudMachines()
    nodes = NodeFacts(
        room=lambda target: room_left(
            target.machine, target.max_pods or 110, Reserved(cpu=100, memory=GIB, kernel=0, pods=Room(0, 0, 0))
        ),
        labels=lambda desired: {
            **common_labels(desired.target.machine), **desired.labels, "fake.example/pool": desired.target.name
        },
        selector=lambda desired: {"fake.example/pool": desired.target.name},
    )  # fmt: skip
    requests: PoolRequests = REQUESTS

    def __init__(self, worlds: Mapping[str, FakeWorld] | None = None) -> None:
        self._worlds = dict(worlds or {})
        self.extras: Extras = FakeExtras()

    @property
    def spec(self) -> CloudSpec:
        """A cluster identified by its place; no reserved capacity."""
        from gpukube.testing.fake_spec import SPEC  # noqa: PLC0415 - models are slow to load, and few tests read a spec

        return SPEC

    def abilities(self) -> Mapping[str, Ability]:
        """Everything is exact in a fake, except spot machines, which it does not have."""
        missing = Ability("missing", reason="the fake cloud has no spot machines")
        return {feature: missing if feature == "capacity.spot" else Ability("exact") for feature in FEATURES}

    def check(self, target: Target) -> list[Finding]:
        """Reject names that are too long, and spot."""
        found = []
        if len(target.name) > NAME_LENGTH:
            where = target.locator.at("name")
            found.append(Finding("fake-name", where, f'"{target.name}" is too long', fix="write a shorter name"))
        if target.capacity.type == "spot":
            where = target.locator.at("capacity.type")
            found.append(Finding("fake-spot", where, "no spot machines here", fix="write on-demand"))
        return found

    def stack(self, target: Target) -> NodeStack:
        """Provide the driver, and a plugin if requested."""
        brings_plugin = target.plugin_owner == "cloud"
        return NodeStack("cloud", "cloud" if brings_plugin else "none", "cloud", "this module")

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate to a flat body."""
        labels = {
            **target.labels,
            **ownership.labels,
            **target.marks,
            **({PROTECT_LABEL: "true"} if target.protect else {}),
        }
        fields: dict[FieldPath, object] = {INSTANCE_TYPE: target.machine.name}
        fields |= {label(key): value for key, value in labels.items()}
        fields |= {tag(key): value for key, value in target.tags.items()}
        fields[TAINTS] = tuple(sorted(str(t) for t in target.taints))
        if target.nodes.autoscaled:
            fields |= {LEAST: target.nodes.minimum, MOST: target.nodes.maximum}
        else:
            fields[COUNT] = target.nodes.count
        if target.sharing.mig:
            fields[MIG_PROFILE] = str(target.sharing.mig)
        copy, written = _copy(target)
        body = {"name": target.name, "count": target.nodes.count, "fields": fields, "labels": labels}
        body |= {"copy": asdict(copy), "written": written}
        create = Request(self.name, "create", {"cluster": target.cluster.key, "body": body})
        return Desired(
            target=target,
            ownership=ownership,
            promise=promise,
            fields=fields,
            labels=labels,
            effective_taints=target.taints,
            create=create,
            copy=copy,
        )

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return the row: labels, tags, taints, zones, and sizes change in place; the rest by replacement."""
        del beside, live
        if change.field[0] in ("labels", "tags", "nodes", "taints", "zones"):
            return UpdateRow(change.field, "in-place", "changes at once", "update", "this module")
        if change.field == DISK_SIZE:
            return UpdateRow(change.field, "disruptive", "recreates every node", "update", "this module")
        return UpdateRow(change.field, "replace", "is set at creation only", "", "this module")

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Open the world of this cluster."""
        del settings
        return FakeCloud(self._worlds.setdefault(cluster.key, FakeWorld()))


class FakeCloud(CloudExtras):
    """The provider's part that makes calls, over one FakeWorld."""

    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    def identify(self) -> ClusterFacts:
        """Return the cluster's facts, or raise CloudError."""
        if not self._world.ready:
            raise CloudError("no such cluster", fix="check its name")
        return ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")

    def pools(self) -> tuple[Observed, ...]:
        """List all pools."""
        return tuple(self._world.pools.values())

    def pool(self, name: str) -> Observed | None:
        """Read one pool."""
        return self._world.pools.get(name)

    def send(self, request: Request) -> Operation:
        """Start a change; queued faults come first."""
        self._world.requests.append(request)
        fault, after = self._world.take_fault()
        if fault is not None and not after:
            raise fault
        operation = self._start(request)
        if fault is not None:
            raise fault
        return operation

    def poll(self, operation: Operation) -> Progress:
        """Poll once."""
        pool = self._world.pools.get(operation.pool)
        if operation.verb == "delete":
            self._world.pools.pop(operation.pool, None)
            return Progress(done=True, status="gone")
        if pool is None:
            return Progress(
                done=False, status="gone", error=CloudError(f"{operation.pool} is gone", fix="run it again")
            )
        if pool.state == "busy" and self._world.look(operation.pool):
            error = self._world.fate(operation.pool)
            state, word = ("failed", "Failed") if error else ("ready", "Succeeded")
            pool = replace(pool, state=state, status=word, failure=str(error or ""))  # type: ignore[arg-type]  # literals
            self._world.pools[operation.pool] = pool
            self._world.launches[operation.pool] = Launches(error)
            return Progress(done=error is None, status=word, error=error)
        return Progress(done=pool.state == "ready", status=pool.status, retry_after_s=0.0)

    def launches(self, observed: Observed) -> Launches:
        """Return what the world has for the pool."""
        return self._world.launches.get(observed.name, Launches())

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """Return what the world has for the pool."""
        return self._world.reserved.get(pool.name if isinstance(pool, Observed) else pool.target.name)

    def kube_access(self) -> KubeAccess:
        """Raise: this fake has no Kubernetes."""
        raise CloudError("the fake cloud has no Kubernetes API", fix="write kubeconfig: in the cluster")

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _start(self, request: Request) -> Operation:
        if request.operation == "delete":
            return self._delete(request)
        return self._update(request) if request.operation == "update" else self._create(request)

    def _update(self, request: Request) -> Operation:
        name, changed = str(request.params["name"]), request.params["fields"]
        assert isinstance(changed, dict)  # noqa: S101 - our own request, made above
        live = self._world.pools.get(name)
        if live is None:
            raise CloudError(f"{name} does not exist", fix="run it again")
        if live.etag != request.params["etag"]:
            raise Moved(f"{name} changed since it was read", fix="run it again")
        fields = {key: value for key, value in {**live.fields, **changed}.items() if value is not None}
        labels = {path.key: str(value) for path, value in fields.items() if path.is_below("labels")}
        self._world.pools[name] = replace(
            live,
            owner=labels.get(OWNER_LABEL, ""),
            pool=labels.get(POOL_LABEL, ""),
            protected=labels.get(PROTECT_LABEL) == "true",
            fields=fields,
            labels=labels,
            etag=str(int(live.etag) + 1),
            copy=_read_copy(request.params["copy"]) if "copy" in request.params else live.copy,
            written=frozenset(cast("Sequence[FieldPath]", request.params.get("written", live.written))) & fields.keys(),
        )
        return Operation(name, "update", f"operation/{name}")

    def _create(self, request: Request) -> Operation:
        body = request.params["body"]
        assert isinstance(body, dict)  # noqa: S101 - our own request, made above
        name, fields, labels = body["name"], body["fields"], body["labels"]
        live = self._world.pools.get(name)
        if live is not None and request.operation == "create":
            raise Conflict(f"{name} exists", code="exists", fix="observe, then decide")
        self._world.pools[name] = Observed(
            name=name,
            owner=labels.get(OWNER_LABEL, ""),
            pool=labels.get(POOL_LABEL, ""),
            protected=labels.get(PROTECT_LABEL) == "true",
            state="busy",
            status="Creating",
            failure="",
            fields={**SERVER_DEFAULTS, **fields},
            nodes=body["count"],
            labels=labels,
            effective_taints=(),
            instance_type=fields[INSTANCE_TYPE],
            etag="1",
            native=body,
            copy=_read_copy(body.get("copy")),
            written=frozenset(body.get("written", ())),
        )
        return Operation(name, "create", f"operation/{name}")

    def _delete(self, request: Request) -> Operation:
        name = str(request.params["name"])
        if name in self._world.pools:
            self._world.pools[name] = replace(self._world.pools[name], state="deleting", status="Deleting")
        return Operation(name, "delete")


if TYPE_CHECKING:
    _provider: Provider = FakeProvider()
    _cloud: Cloud = FakeCloud(FakeWorld())
