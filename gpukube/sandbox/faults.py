"""Faults on demand: which request or operation shall go wrong, and how.

Lives here: the description of a fault, matching, counting. Must not live here: sockets (`traffic`), life cycles, how
AKS words its failures (`aks.failures`).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from gpukube.sandbox.aks.failures import planned_failure
from gpukube.sandbox.aks.lifecycle import Failure

if TYPE_CHECKING:
    from gpukube.sandbox.aks.answers import Json
    from gpukube.sandbox.aks.clusters import Cluster

Action = Literal["status", "drop-before", "drop-after", "delay", "hang", "hang-after", "operation"]


@dataclass(slots=True)
class Fault:
    """One fault.

    Attributes:
        service: "arm", "aws", "gke", "charts", "kube" or "any".
        method: HTTP method, "" for any.
        path: Regular expression searched in path and query.
        nth: First match that it strikes, counted from 1.
        times: How many matches it strikes; 0 for all from then on.
        status: Answer of action "status".
        code: Error code of action "status" or "operation".
        message: Error text; a fitting one when empty.
        body: Whole body of action "status", instead of code and message.
        headers: Headers of action "status", such as Retry-After.
        seconds: Action "delay": wall seconds. Action "operation": sandbox seconds that it takes longer.
        cluster: Action "operation": regular expression for the cluster's name; likewise `pool` and `kind`.
        after_nodes: Action "operation": machines that still come.
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
        """Count a match; whether this one is hit."""
        self.seen += 1
        hit = self.seen >= self.nth and (self.times == 0 or self.seen < self.nth + self.times)
        self.struck += hit
        return hit

    def answer(self) -> Json:
        """Body of action "status": ARM's nested shape unless given whole."""
        if self.body is not None:
            return self.body
        code = self.code or {429: "TooManyRequests", 409: "OperationNotAllowed"}.get(self.status, "InternalServerError")
        message = self.message or f"Injected fault: {self.status}."
        return {"error": {"code": code, "message": message}}


def parse_fault(document: object) -> Fault:
    """Read a fault from JSON; keys as the attributes of `Fault`, in camelCase.

    Raises:
        ValueError: Unknown key, unknown action, wrong type, or a pattern that does not compile.
    """
    if not isinstance(document, dict) or document.get("action") not in get_args(Action):
        message = f"a fault is an object with an action out of {', '.join(get_args(Action))}"
        raise ValueError(message)
    values: dict[str, object] = {}
    for key, value in document.items():
        name = "after_nodes" if key == "afterNodes" else key
        if name not in _TYPES or not isinstance(value, _TYPES[name]):
            message = f"fault has a wrong or unknown key {key!r}"
            raise ValueError(message)
        values[name] = value
    for name in ("path", "cluster", "pool", "kind"):
        try:
            re.compile(str(values.get(name, "")))
        except re.error as error:
            message = f"{name} is no regular expression: {error}"
            raise ValueError(message) from error
    return Fault(**values)  # type: ignore[arg-type] # each value was checked against _TYPES


_TYPES: dict[str, type | tuple[type, ...]] = {
    "action": str, "service": str, "method": str, "path": str, "nth": int, "times": int, "status": int, "code": str,
    "message": str, "body": dict, "headers": dict, "seconds": (int, float), "cluster": str, "pool": str, "kind": str,
    "after_nodes": int,
}  # fmt: skip


class FaultBook:
    """All faults that are waiting to strike."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def add(self, fault: Fault) -> int:
        """Add a fault; gives its number."""
        self.faults.append(fault)
        return len(self.faults) - 1

    def clear(self) -> None:
        """Forget all faults and let go what hangs."""
        for fault in self.faults:
            fault.released.set()
        self.faults.clear()

    def for_request(self, service: str, method: str, target: str) -> list[Fault]:
        """The faults that strike a request: every delay, then one other; every matching fault counts it."""
        matching = [
            fault
            for fault in self.faults
            if fault.action != "operation"
            and fault.service in {"any", service}
            and fault.method.upper() in {"", method}
            and re.search(fault.path, target)
        ]
        struck = [fault for fault in matching if fault.strikes()]
        delays = [fault for fault in struck if fault.action == "delay"]
        return delays + [fault for fault in struck if fault.action != "delay"][:1]

    def for_operation(self, cluster: Cluster, pool: str, kind: str, size: str) -> Failure | None:
        """What shall go wrong with an operation that is about to start.

        Raises:
            Refusal: The failure is one that the service notices at once.
        """
        fault = self.operation(cluster.name, pool, kind)
        if fault is None:
            return None
        if not fault.code:
            return Failure(None, delay_s=fault.seconds)
        detail = planned_failure(fault.code, fault.message, cluster, pool, size)
        return Failure(detail, fault.after_nodes, fault.seconds)

    def operation(self, cluster: str, pool: str, kind: str) -> Fault | None:
        """The fault that strikes an operation of any cloud, which is about to start; None when none does."""
        for fault in self.faults:
            if fault.action == "operation" and _names(fault, cluster, pool, kind) and fault.strikes():
                return fault
        return None


def _names(fault: Fault, cluster: str, pool: str, kind: str) -> bool:
    pairs = ((fault.cluster, cluster), (fault.pool, pool), (fault.kind, kind))
    return all(re.search(pattern, text) for pattern, text in pairs)
