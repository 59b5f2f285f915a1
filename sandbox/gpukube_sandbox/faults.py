"""Fault injection: which request, operation or node fails, and how.

In scope: the description of a fault, matching, counting. Out of scope: sockets (`traffic`), lifecycles, how a cloud
words its failures (`failures` of each). Standard library only: shell completion reads the kinds from here.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Collection

Json = dict[str, object]

Action = Literal[
    "status", "drop-before", "drop-after", "delay", "hang", "hang-after", "operation", "stock-out", "quota", "unlisted",
    "late-driver", "slices-lost", "incomplete-pool", "tainted-device", "stale-slice",
]  # fmt: skip
KINDS: Final[dict[str, str]] = {
    "status": "answer with an HTTP status, without reaching the service",
    "drop-before": "cut the connection before the service gets the request",
    "drop-after": "cut the connection after the service has handled the request: a lost response",
    "delay": "respond later",
    "hang": "hold the request until the faults are cleared",
    "hang-after": "handle the request, but do not respond until the faults are cleared",
    "stock-out": "make an operation on a node pool fail: no machines of the type",
    "quota": "make an operation on a node pool fail: the quota is too small",
    "operation": "make an operation on a node pool fail with a code, or take longer",
    "unlisted": "leave a new node pool out of lists for a while",
    "late-driver": "let the DRA driver's plugin find no devices at its start on a node",
    "slices-lost": "let the kubelet delete a node's slices unnoticed at the start of the DRA driver's plugin",
    "incomplete-pool": "let the DRA driver's plugin write too few slices at its start on a node",
    "tainted-device": "taint the first device at the start of the DRA driver's plugin on a node",
    "stale-slice": "keep the slices of a DRA plugin or of a node that is gone",
}
"""Action -> human-readable description."""
SERVICES: Final = ("any", "aws", "arm", "gke", "kube", "charts")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

_OPERATIONS: Final = frozenset({"operation", "stock-out", "quota"})
_OF_NODES: Final = frozenset({"late-driver", "slices-lost", "incomplete-pool", "tainted-device", "stale-slice"})
_OF_POOLS: Final = _OPERATIONS | _OF_NODES | {"unlisted"}
_CODES: Final[dict[tuple[str, str], str]] = {
    ("stock-out", "aws"): "InsufficientInstanceCapacity",
    ("stock-out", "arm"): "AllocationFailed",
    ("stock-out", "gke"): "GCE_STOCKOUT",
    ("quota", "aws"): "VcpuLimitExceeded",
    ("quota", "arm"): "QuotaExceeded",
    ("quota", "gke"): "GCE_QUOTA_EXCEEDED",
}
"""Action and cloud -> code in that cloud's `failures`."""


@dataclass(slots=True)
class Fault:
    """One fault.

    Attributes:
        action: Key of `KINDS`.
        service: One of `SERVICES`; for an operation, the service of its cloud.
        method: HTTP method; "" for any.
        path: Regular expression to search in the path, and in path and query.
        nth: First match that fails, starting at 1.
        times: Number of matches that fail; 0 for all from `nth` on.
        status: Status of action "status": 400 to 599; with a body, from 200 for a malformed response.
        code: Error code of action "status" or "operation".
        message: Error message; a default if empty.
        body: Full body of action "status", instead of code and message.
        headers: Headers of action "status", such as Retry-After.
        seconds: Action "delay": wall seconds. For an operation: additional sandbox seconds. Action "unlisted": sandbox
            seconds.
        cluster: For an operation: regular expression for the cluster's name; likewise `pool` and `kind`.
        after_nodes: For an operation: machines that are created before it fails.
    """

    action: Action
    service: str = "any"
    method: str = ""
    path: str = ""
    nth: int = 1
    times: int = 1
    status: int = 500
    code: str = ""
    message: str = ""
    body: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cluster: str = ""
    pool: str = ""
    kind: str = ""
    after_nodes: int = 0
    seen: int = 0
    struck: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def strikes(self) -> bool:
        """Count a match, and return whether to inject the fault."""
        self.seen += 1
        hit = self.seen >= self.nth and (self.times == 0 or self.seen < self.nth + self.times)
        self.struck += hit
        return hit

    def answer(self) -> Json:
        """Return the body of action "status": the given one, else ARM's nested format."""
        if self.body is not None:
            return self.body
        code = self.code or {429: "TooManyRequests", 409: "OperationNotAllowed"}.get(self.status, "InternalServerError")
        message = self.message or f"Injected fault: {self.status}."
        return {"error": {"code": code, "message": message}}

    def wire(self) -> Json:
        """Return the fault for the control API: its settings, and how often it matched."""
        given = {
            _WIRE_NAMES.get(one.name, one.name): getattr(self, one.name)
            for one in fields(self)
            if one.name in _TYPES and (one.name in _ALWAYS or getattr(self, one.name) != getattr(_PLAIN, one.name))
        }
        return {**given, "seen": self.seen, "struck": self.struck}


_OF_REQUESTS: Final = frozenset({"action", "service", "method", "path", "nth", "times"})
_OF_OPERATIONS: Final = frozenset(
    {"action", "service", "cluster", "pool", "kind", "nth", "times", "message", "seconds", "after_nodes"}
)
_KEYS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("drop-before", "drop-after", "hang", "hang-after"), _OF_REQUESTS),
    "status": _OF_REQUESTS | {"status", "code", "message", "body", "headers"},
    "delay": _OF_REQUESTS | {"seconds"},
    "operation": _OF_OPERATIONS | {"code"},
    "stock-out": _OF_OPERATIONS,
    "quota": _OF_OPERATIONS,
    "unlisted": frozenset({"action", "service", "cluster", "pool", "nth", "times", "seconds"}),
    **dict.fromkeys(_OF_NODES, frozenset({"action", "service", "cluster", "pool", "nth", "times"})),
}
"""Action -> the keys that it uses; others would have no effect, so they are rejected."""
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "action": str, "service": str, "method": str, "path": str, "nth": int, "times": int, "status": int, "code": str,
    "message": str, "body": dict, "headers": dict, "seconds": (int, float), "cluster": str, "pool": str, "kind": str,
    "after_nodes": int,
}  # fmt: skip
_MINIMUM: Final = {"nth": 1, "times": 0, "seconds": 0, "after_nodes": 0}
_FAILURES: Final = range(400, 600)
_ANSWERS: Final = range(200, 600)
_ALWAYS: Final = ("action", "service", "nth", "times")
_WIRE_NAMES: Final = {"after_nodes": "afterNodes"}
_FIELDS: Final = {name: wire for wire, name in _WIRE_NAMES.items()}


def parse_fault(document: object) -> Fault:
    """Parse a fault from JSON; keys are the attributes of `Fault` in camelCase.

    Raises:
        ValueError: An unknown action, key, service, or method, a key that the action does not use, a value of the wrong
            type or out of bounds, or a pattern that does not compile.
    """
    if not isinstance(document, dict) or document.get("action") not in get_args(Action):
        named = document.get("action") if isinstance(document, dict) else document
        message = f"there is no fault {named!r}; there are {', '.join(get_args(Action))}"
        raise ValueError(message)
    action = str(document["action"])
    values: dict[str, object] = {}
    for key, value in document.items():
        name = _FIELDS.get(key, key)
        if name not in _KEYS[action]:
            known = sorted(_WIRE_NAMES.get(one, one) for one in _KEYS[action] - {"action"})
            message = f"a fault {action!r} takes no {key!r}; it takes {', '.join(known)}"
            raise ValueError(message)
        if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
            message = f"{key} is {value!r}, which has the wrong type"
            raise ValueError(message)  # noqa: TRY004 - the caller's mistake, reported like the others
        values[name] = value
    fault = Fault(**values)  # type: ignore[arg-type] # each value is checked against _TYPES
    _check_values(fault)
    return fault


def _check_values(fault: Fault) -> None:
    fault.method = fault.method.upper()
    for name, known in (("service", SERVICES), ("method", ("", *METHODS))):
        if getattr(fault, name) not in known:
            message = f"there is no {name} {getattr(fault, name)!r}; there are {', '.join(filter(None, known))}"
            raise ValueError(message)
    for name, minimum in _MINIMUM.items():
        if getattr(fault, name) < minimum:
            message = f"{_WIRE_NAMES.get(name, name)} is {getattr(fault, name)}; it must be {minimum} or more"
            raise ValueError(message)
    statuses = _FAILURES if fault.body is None else _ANSWERS
    if fault.status not in statuses:
        message = f"status is {fault.status}; it must be {statuses[0]} to {statuses[-1]}"
        raise ValueError(message)
    if fault.action in {"delay", "unlisted"} and not fault.seconds:
        message = f"a fault {fault.action!r} needs seconds"
        raise ValueError(message)
    for name in ("path", "cluster", "pool", "kind"):
        try:
            re.compile(getattr(fault, name))
        except re.error as error:
            message = f"{name} is not a regular expression: {error}"
            raise ValueError(message) from error


class FaultBook:
    """All active faults."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def add(self, fault: Fault) -> int:
        """Add a fault and return its number."""
        self.faults.append(fault)
        return len(self.faults) - 1

    def clear(self) -> None:
        """Remove all faults; hanging requests continue."""
        for fault in self.faults:
            fault.released.set()
        self.faults.clear()

    def for_request(self, service: str, method: str, target: str) -> list[Fault]:
        """Return the faults to inject into a request: all delays, then one other; every matching fault counts it.

        Args:
            service: One of `SERVICES`.
            method: HTTP method.
            target: Path and query. Patterns are searched in it and in the path alone, so that `$` can match either end.
        """
        path = target.partition("?")[0]
        matching = [
            fault
            for fault in self.faults
            if fault.action not in _OF_POOLS
            and fault.service in {"any", service}
            and fault.method in {"", method}
            and (re.search(fault.path, target) or re.search(fault.path, path))
        ]
        struck = [fault for fault in matching if fault.strikes()]
        delays = [fault for fault in struck if fault.action == "delay"]
        return delays + [fault for fault in struck if fault.action != "delay"][:1]

    def operation(self, service: str, cluster: str, pool: str, kind: str) -> Fault | None:
        """Return the fault to inject into a starting operation, with a code of the cloud; None if there is none.

        Args:
            service: The cloud: "aws", "arm", "gke".
            cluster: Name of the cluster.
            pool: Name of the pool.
            kind: The cloud's name of the operation on the pool.
        """
        fault = self._striking(_OPERATIONS, service, cluster, pool, kind)
        return replace(fault, code=_CODES.get((fault.action, service), fault.code)) if fault else None

    def node(self, service: str, cluster: str, action: str, pool: str) -> bool:
        """Count an event on a node of a pool, and return whether a fault with that action strikes it."""
        return self._striking({action}, service, cluster, pool) is not None

    def lag(self, service: str, cluster: str, pool: str) -> float:
        """Return for how many sandbox seconds lists omit a new pool."""
        fault = self._striking({"unlisted"}, service, cluster, pool)
        return fault.seconds if fault else 0.0

    def _striking(
        self, actions: Collection[str], service: str, cluster: str, pool: str, kind: str = ""
    ) -> Fault | None:
        """Return the first fault that strikes; those before it and the fault itself count the event."""
        for fault in self.faults:
            is_here = fault.action in actions and fault.service in {"any", service}
            if is_here and _matches(fault, cluster, pool, kind) and fault.strikes():
                return fault
        return None


def no_fault(action: str, pool: str) -> bool:
    """Return False: nodes work."""
    del action, pool
    return False


def no_lag(cluster: str, pool: str) -> float:
    """Return 0: lists contain a new pool immediately."""
    del cluster, pool
    return 0.0


def _matches(fault: Fault, cluster: str, pool: str, kind: str) -> bool:
    pairs = ((fault.cluster, cluster), (fault.pool, pool), (fault.kind, kind))
    return all(re.search(pattern, text) for pattern, text in pairs)


_PLAIN: Final = Fault("status")
