"""The objects of one cluster, in memory.

In scope: versions, uids, generations, writes with their checks, cascading deletion, and the log for watches.
Out of scope: HTTP, controllers. A stored object never changes in place: every write stores a new one.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections import defaultdict, deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.store import apply, defaults, gates, kinds, problems, rbac
from gpukube_sandbox.kube.store.admission import admit_device_claim, admit_pod
from gpukube_sandbox.kube.store.apply import Write
from gpukube_sandbox.kube.store.kinds import BUILT_IN, Kind
from gpukube_sandbox.kube.store.objects import copied, meta, name_of, namespace_of, owner_uids
from gpukube_sandbox.kube.store.structure import structure_of, without_omitted
from gpukube_sandbox.kube.store.validation.custom import schema_of, shape
from gpukube_sandbox.kube.store.validation.validate import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objects import JsonObject

_REMEMBERED = 4000
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that cannot be deleted (plugin/pkg/admission/namespace/lifecycle)."""
_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_WITHOUT_GENERATION = frozenset(
    {"Lease", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "ResourceClaim"}
    | {"ResourceClaimTemplate", "ResourceQuota", "Service"}
)
"""Types with a spec but without a generation."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"

Verb = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Change:
    """One write, as watches see it; `old` is the previous object."""

    version: int
    verb: Verb
    obj: JsonObject
    old: JsonObject | None


class Subscription:
    """A wakeup for writes to objects of the given types."""

    def __init__(self, keys: frozenset[tuple[str, str]]) -> None:
        self.keys = keys
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next write; one since the last wait counts."""
        await self._event.wait()
        self._event.clear()


class Store:
    """All objects of a cluster.

    Args:
        clock: Source of timestamps.
        seed: Makes generated names reproducible.
    """

    def __init__(self, clock: Clock, seed: int = 1) -> None:
        self._clock = clock
        self._versions = itertools.count(1)
        self._random = random.Random(seed)  # noqa: S311 -- names of pods, no secret
        self._objects: dict[tuple[str, str], dict[tuple[str, str], JsonObject]] = defaultdict(dict)
        self._log: dict[tuple[str, str], deque[Change]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._subscriptions: set[Subscription] = set()
        self.kinds: dict[tuple[str, str], Kind] = {kind.key: kind for kind in BUILT_IN}
        self._minor = gates.NEWEST
        self.version = 0
        self.tolerates_extended_resources = False
        self.limits_critical_pods = False
        self.tolerates_compute_classes = False
        for name in _NAMESPACES:
            self.create(kinds.CORE["namespaces"], {"metadata": {"name": name}})
        for name, value in _PRIORITIES.items():
            self.create(kinds.CORE["priorityclasses"], {"metadata": {"name": name}, "value": value})
        rbac.seed_roles(self)

    def copied(self) -> Store:
        """Return a store with the same objects and no watches; they are shared because they never change in place."""
        twin = Store(self._clock)
        twin._objects.clear()
        twin._objects.update({key: dict(held) for key, held in self._objects.items()})
        twin._log.clear()
        twin._log.update({key: deque(log, maxlen=_REMEMBERED) for key, log in self._log.items()})
        twin.kinds, twin._minor = dict(self.kinds), self._minor
        twin.version, twin._versions = self.version, itertools.count(self.version + 1)
        twin._random.setstate(self._random.getstate())
        twin.tolerates_extended_resources = self.tolerates_extended_resources
        twin.limits_critical_pods = self.limits_critical_pods
        twin.tolerates_compute_classes = self.tolerates_compute_classes
        return twin

    def serve_version(self, minor: tuple[int, int]) -> None:
        """Serve the types and fields of a Kubernetes version."""
        self._minor = minor
        for kind in BUILT_IN:
            if not gates.serves(kind, minor):
                self.kinds.pop(kind.key, None)
            else:
                self.kinds.setdefault(kind.key, kind)

    # reads

    def now(self) -> str:
        """Return the current timestamp."""
        return timestamp(self._clock.now())

    def find(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Return an object, if it exists."""
        return self._objects[kind.key].get((namespace if kind.namespaced else "", name))

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        """Return an object.

        Raises:
            ApiProblem: 404.
        """
        found = self.find(kind, namespace, name)
        if found is None:
            raise problems.not_found(kind.plural, name, kind.group)
        return found

    def all_of(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a type in a namespace ("" for all), sorted by namespace and name."""
        held = self._objects[kind.key]
        return [obj for key, obj in sorted(held.items()) if not namespace or key[0] == namespace]

    def changes_since(self, kind: Kind, version: int) -> list[Change]:
        """Return the writes of a type after a version.

        Raises:
            ApiProblem: 410 if some of them are no longer in the log.
        """
        log = self._log[kind.key]
        if len(log) == _REMEMBERED and log[0].version > version + 1:
            raise problems.expired(str(version))
        return [change for change in log if change.version > version]

    @contextmanager
    def subscribed(self, *expected: Kind) -> Iterator[Subscription]:
        """Yield a subscription to these types."""
        subscription = Subscription(frozenset(kind.key for kind in expected))
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    # writes

    def create(self, kind: Kind, obj: JsonObject, *, manager: str = "", dry_run: bool = False) -> JsonObject:
        """Store a new object.

        Raises:
            ApiProblem: 404 if its namespace is missing, 409 if the name exists, 422 or 403 if it is rejected.
        """
        write = self._write(kind, manager) if manager else None
        new: JsonObject = without_omitted(obj, write.structure) if write else copied(obj)
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        details = new.setdefault("metadata", {})
        self._set_name(kind, details)
        namespace, name = namespace_of(new), name_of(new)
        if (namespace, name) in self._objects[kind.key]:
            raise problems.already_exists(kind.plural, name, kind.group)
        details["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        details["creationTimestamp"] = self.now()
        for key in ("resourceVersion", "deletionTimestamp", "selfLink"):
            details.pop(key, None)
        if kind.custom or ("spec" in new and kind.kind not in _WITHOUT_GENERATION):
            details["generation"] = 1
        if kind.kind not in {"Node", "Pod"} and "status" in kind.subresources and not kind.custom:
            new.pop("status", None)
        gates.drop_gated(kind, new, None, self._minor)
        defaults.fill_defaults(kind, new, self.now())
        definition = self._shaped(kind, new)
        defaults.count_template(kind, None, new)
        admit_device_claim(self, kind, new)
        if kind.kind == "Pod":
            admit_pod(self, new)
            if self.tolerates_extended_resources:
                defaults.tolerate_extended_resources(new)
        validate(kind, new, definition=definition)
        if write:
            apply.record_update(None, new, write)
        defaults.set_address(kind, new)
        return new if dry_run else self._commit(kind, "ADDED", new, None)

    def _set_name(self, kind: Kind, details: JsonObject) -> None:
        if not details.get("name") and details.get("generateName"):
            details["name"] = details["generateName"] + self.suffix()
        if not kind.namespaced:
            details.pop("namespace", None)
            return
        place = kinds.CORE["namespaces"]
        found = self.find(place, "", str(details.setdefault("namespace", "default")))
        if found is None:
            raise problems.not_found("namespaces", details["namespace"])

    def suffix(self, length: int = 5) -> str:
        """Return a random suffix for a generated name."""
        return "".join(self._random.choices(_SUFFIX, k=length))

    def update(
        self, kind: Kind, obj: JsonObject, *, part: str = "", manager: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Replace an object: with `part` "status" only its status, else everything except its status.

        If the object has a resourceVersion, it must be the current one.

        Raises:
            ApiProblem: 404, 409, 422.
        """
        old = self.get(kind, namespace_of(obj), name_of(obj))
        _check_version(kind, obj, old)
        write = self._write(kind, manager, part) if manager else None
        obj = without_omitted(obj, write.structure) if write else obj
        new = self._status_of(kind, old, obj) if part == "status" else self._rest_of(kind, old, obj)
        if write:
            apply.record_update(old, new, write)
        return self._put(kind, old, new, dry_run=dry_run)

    def bind(self, namespace: str, name: str, node: str) -> None:
        """Bind a pod to a node, which an update cannot do.

        Raises:
            ApiProblem: 404.
        """
        kind = kinds.CORE["pods"]
        old = self.get(kind, namespace, name)
        new = {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], "nodeName": node}}
        new["metadata"]["generation"] = int(old["metadata"].get("generation", 1)) + 1
        self._put(kind, old, new, dry_run=False)

    def _status_of(self, kind: Kind, old: JsonObject, obj: JsonObject) -> JsonObject:
        new = {**old, "metadata": dict(old["metadata"]), "status": copied(obj.get("status") or {})}
        resized = kind.kind == "Node" and new["status"].get("capacity") != old.get("status", {}).get("capacity")
        if resized or kind.kind == "ResourceClaim":
            validate(kind, new, old)
        return new

    def _rest_of(self, kind: Kind, old: JsonObject, obj: JsonObject) -> JsonObject:
        new = copied(obj)
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        for key in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
            new["metadata"].pop(key, None)
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]
        if "managedFields" not in new["metadata"] and "managedFields" in old["metadata"]:
            new["metadata"]["managedFields"] = old["metadata"]["managedFields"]
        if "status" in kind.subresources:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        gates.drop_gated(kind, new, old, self._minor)
        defaults.fill_defaults(kind, new, self.now())
        if kind.kind == "Pod" and self.tolerates_extended_resources:
            defaults.tolerate_extended_resources(new)
        defaults.set_address(kind, new)
        definition = self._shaped(kind, new)
        validate(kind, new, old, definition)
        defaults.count_template(kind, old, new)
        if "generation" in old["metadata"] and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = int(old["metadata"]["generation"]) + 1
        return new

    def apply(  # noqa: PLR0913 -- the options of the API's apply, by name
        self,
        kind: Kind,
        config: JsonObject,
        *,
        manager: str,
        part: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> tuple[JsonObject, bool]:
        """Apply (server-side) to an object or its status; return the object and whether it was created.

        If the configuration has a resourceVersion, it must be the object's current one.

        Raises:
            ApiProblem: 409 for fields of other managers, 404, 422.
        """
        live = self.find(kind, namespace_of(config), name_of(config))
        if live is not None:
            _check_version(kind, config, live)
        merged = apply.apply_config(live, config, self._write(kind, manager, part), force=force)
        if live is None:
            return self.create(kind, merged, dry_run=dry_run), True
        new = self._status_of(kind, live, merged) if part == "status" else self._rest_of(kind, live, merged)
        new["metadata"].pop("managedFields", None)
        new["metadata"] |= {key: value for key, value in meta(merged).items() if key == "managedFields"}
        return self._put(kind, live, new, dry_run=dry_run), False

    def _write(self, kind: Kind, manager: str, part: str = "") -> Write:
        structure = structure_of(kind, self.definition_of(kind))
        return Write(manager, structure, self.now(), part, has_status="status" in kind.subresources)

    def definition_of(self, kind: Kind) -> JsonObject | None:
        """Return the CustomResourceDefinition of a type; None for a built-in one."""
        definitions = kinds.CORE["customresourcedefinitions"]
        return self.find(definitions, "", f"{kind.plural}.{kind.group}") if kind.custom else None

    def _shaped(self, kind: Kind, new: JsonObject) -> JsonObject | None:
        """Prune a custom resource and set its defaults; return the definition."""
        definition = self.definition_of(kind)
        if definition is not None:
            shape(new, schema_of(definition, kind.version))
        return definition

    def _put(self, kind: Kind, old: JsonObject, new: JsonObject, *, dry_run: bool) -> JsonObject:
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return old
        if dry_run:
            return new
        stored = self._commit(kind, "MODIFIED", new, old)
        if meta(stored).get("deletionTimestamp") and not meta(stored).get("finalizers") and kind.kind != "Pod":
            self._remove(kind, stored)
        return stored

    def delete(  # noqa: PLR0913 -- the options of the API's delete, by name
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        grace_s: int | None = None,
        orphan: bool = False,
        dry_run: bool = False,
        preconditions: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """Delete an object and, unless `orphan`, the objects that it owns.

        A pod on a node is only marked until its kubelet has terminated it (grace 0 removes it immediately); an object
        with finalizers is only marked until they are removed.

        Raises:
            ApiProblem: 404; 403 for protected namespaces.
        """
        old = self.get(kind, namespace, name)
        if kind.kind == "Namespace" and name in _IMMORTAL:
            message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            raise problems.ApiProblem(403, "Forbidden", message, {"name": name, "kind": "namespaces"})
        for key, expected in (preconditions or {}).items():
            if expected and expected != old["metadata"].get(key):
                raise problems.precondition_failed(kind.kind, name, key, expected, str(old["metadata"].get(key)))
        if dry_run:
            return old
        grace = self._grace(kind, old, grace_s)
        if not meta(old).get("finalizers") and not grace:
            self._remove(kind, old, orphan=orphan)
            return old
        if meta(old).get("deletionTimestamp"):
            return old
        details = {**old["metadata"], "deletionTimestamp": self.now(), "deletionGracePeriodSeconds": grace}
        return self._commit(kind, "MODIFIED", {**old, "metadata": details}, old)

    def _grace(self, kind: Kind, pod: JsonObject, requested_s: int | None) -> int:
        node = (pod.get("spec") or {}).get("nodeName")
        if kind.kind != "Pod" or not node or self.find(kinds.CORE["nodes"], "", node) is None:
            return 0
        if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            return 0
        return int(pod["spec"].get("terminationGracePeriodSeconds", 30)) if requested_s is None else requested_s

    def _remove(self, kind: Kind, old: JsonObject, *, orphan: bool = False) -> None:
        del self._objects[kind.key][namespace_of(old), name_of(old)]
        self._commit(kind, "DELETED", {**old, "metadata": dict(old["metadata"])}, old)
        if kind.kind == "Namespace":
            self._empty(name_of(old))
        if kind.kind == "CustomResourceDefinition":
            self._drop_custom(old)
        for owned_kind, owned in self._owned_by(old["metadata"]["uid"]):
            self._lose_owner(owned_kind, owned, old["metadata"]["uid"], orphan=orphan)

    def _owned_by(self, uid: str) -> list[tuple[Kind, JsonObject]]:
        return [
            (self.kinds[key], obj)
            for key, held in self._objects.items()
            for obj in held.values()
            if "ownerReferences" in obj["metadata"] and uid in owner_uids(obj)
        ]

    def _lose_owner(self, kind: Kind, obj: JsonObject, uid: str, *, orphan: bool) -> None:
        left = [ref for ref in obj["metadata"]["ownerReferences"] if ref.get("uid") != uid]
        if orphan or left:
            changed = {**obj, "metadata": {**obj["metadata"], "ownerReferences": left}}
            self._commit(kind, "MODIFIED", changed, obj)
        elif self.find(kind, namespace_of(obj), name_of(obj)) is not None:
            self.delete(kind, namespace_of(obj), name_of(obj))

    def _empty(self, namespace: str) -> None:
        for kind in list(self.kinds.values()):
            for obj in self.all_of(kind, namespace) if kind.namespaced else ():
                if self.find(kind, namespace, name_of(obj)) is not None:
                    self._remove(kind, obj)

    def _commit(self, kind: Kind, verb: Verb, obj: JsonObject, old: JsonObject | None) -> JsonObject:
        self.version = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(self.version)
        if verb != "DELETED":
            self._objects[kind.key][namespace_of(obj), name_of(obj)] = obj
        self._log[kind.key].append(Change(self.version, verb, obj, old))
        for subscription in self._subscriptions:
            if kind.key in subscription.keys:
                subscription.wake()
        if verb == "ADDED":
            self._after_create(kind, obj)
        return obj

    # side effects of types

    def _after_create(self, kind: Kind, obj: JsonObject) -> None:
        if kind.kind == "Namespace":
            account = {"metadata": {"name": "default", "namespace": name_of(obj)}}
            self.create(kinds.CORE["serviceaccounts"], account)
        elif kind.kind == "CustomResourceDefinition":
            self._add_custom(obj)

    def _add_custom(self, definition: JsonObject) -> None:
        spec = definition["spec"]
        names = spec["names"]
        version = next((item for item in spec["versions"] if item.get("storage")), spec["versions"][0])
        subresources = tuple(version.get("subresources") or ())
        kind = Kind(
            spec["group"],
            version["name"],
            names["kind"],
            names["plural"],
            namespaced=spec.get("scope") == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            subresources=subresources,
            custom=True,
        )
        self.kinds[kind.key] = kind
        conditions = [
            {"type": name, "status": "True", "reason": reason, "message": "", "lastTransitionTime": self.now()}
            for name, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted"))
        ]
        established = {
            **definition,
            "status": {"acceptedNames": names, "conditions": conditions, "storedVersions": [version["name"]]},
        }
        self.update(kinds.CORE["customresourcedefinitions"], established, part="status")

    def _drop_custom(self, definition: JsonObject) -> None:
        key = (definition["spec"]["group"], definition["spec"]["names"]["plural"])
        kind = self.kinds.get(key)
        if kind:
            for obj in self.all_of(kind):
                self._remove(kind, obj)
            del self.kinds[key]
            self._objects.pop(key, None)


def _check_version(kind: Kind, sent: JsonObject, old: JsonObject) -> None:
    """Refuse a write that names another version of an object, or another object of its name."""
    for key in ("resourceVersion", "uid"):
        expected = meta(sent).get(key)
        if expected and expected != old["metadata"][key]:
            raise problems.version_conflict(kind.plural, name_of(sent), kind.group)
