"""Faults on demand: which request or operation shall go wrong, and how.

Lives here: the description of a fault, matching, counting, the table of AKS failures. Must not live here: sockets
(`traffic`), life cycles.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args, Literal

from gpukube.sandbox.aks.answers import Json, Refusal, error_detail
from gpukube.sandbox.aks.lifecycle import Failure

if TYPE_CHECKING:
    from gpukube.sandbox.aks.clusters import Cluster

__all__ = ["FAILURES", "Action", "Fault", "FaultBook", "KnownFailure", "parse_fault"]

Action = Literal["status", "drop-before", "drop-after", "delay", "hang", "hang-after", "operation"]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One way in which AKS fails; `{size}`, `{location}`, `{family}`, `{zone}` are filled in.

    Attributes:
        inner: Code of the compute service where it is another.
        status: Above 0: refused at once with this status; 0: the operation fails late.
    """

    message: str
    inner: str = ""
    target: str = ""
    status: int = 0


_CONSTRAINTS = (
    "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too "
    "restrictive. Please remove some constraints and try again."
)
_QUOTA = (
    "Operation could not be completed as it results in exceeding approved {what} quota. Additional details - Deployment "
    "Model: Resource Manager, Location: {location}, Current Limit: 0, Current Usage: 0, Additional Required: {vcpus}, "
    "(Minimum) New Limit Required: {vcpus}."
)

FAILURES: dict[str, KnownFailure] = {
    # Azure/karpenter-provider-azure pkg/fake/aksmachinesapi.go
    "AllocationFailed": KnownFailure(
        "Allocation failed. If you are trying to add a new VM to a Virtual Machine Scale Set with a single placement group "
        "or update/resize an existing VM in a Virtual Machine Scale Set with a single placement group, please note that "
        "such allocation is scoped to a single cluster, and it is possible that the cluster is out of capacity. Please "
        "read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance.",
        target="243",
    ),
    "ZonalAllocationFailed": KnownFailure(
        "Allocation failed. We do not have sufficient capacity for the requested VM size {size} in zone {zone}. Read more "
        "about improving likelihood of allocation success at http://aka.ms/allocation-guidance"
    ),
    "OverconstrainedAllocationRequest": KnownFailure(_CONSTRAINTS, target="0"),
    "OverconstrainedZonalAllocationRequest": KnownFailure(_CONSTRAINTS, target="6"),
    "SkuNotAvailable": KnownFailure(
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is currently "
        "not available in location '{location}'. Please try another size or deploy to a different location or different "
        "zone. See https://aka.ms/azureskunotavailable for details.",
        target="sku.name",
    ),
    "QuotaExceeded": KnownFailure(_QUOTA.replace("{what}", "{family} Family Cores"), inner="OperationNotAllowed"),
    "LowPriorityQuotaExceeded": KnownFailure(_QUOTA.replace("{what}", "LowPriorityCores"), inner="OperationNotAllowed"),
    "RegionalQuotaExceeded": KnownFailure(
        _QUOTA.replace("{what}", "Total Regional Cores"), inner="OperationNotAllowed"
    ),
    # 1ChristianAlex/motordesk#14; the HTTP status is unconfirmed
    "ErrCode_InsufficientVCPUQuota": KnownFailure(
        "Insufficient vcpu quota requested {vcpus}, remaining 0 for family {family} for region {location}. Surge nodes "
        "would also consume vcpu quota.",
        status=400,
    ),
    "RequestDisallowedByPolicy": KnownFailure("Resource '{pool}' was disallowed by policy.", status=403),
    "AuthorizationFailed": KnownFailure(
        "The client does not have authorization to perform action "
        "'Microsoft.ContainerService/managedClusters/agentPools/write' over scope '{scope}' or the scope is invalid.",
        status=403,
    ),
    "MissingSubscriptionRegistration": KnownFailure(
        "The subscription is not registered to use namespace 'Microsoft.ContainerService'.", status=409
    ),
    # Azure/AgentBaker cse_helpers.sh: exit codes of the bootstrap; the sentence is shortened
    "VMExtensionProvisioningError": KnownFailure(
        "VM has reported a failure when processing extension 'vmssCSE'. Error message: \\\"Enable failed: failed to execute "
        'command: command terminated with exit status=84\\"'
    ),
    "NodesNotReady": KnownFailure("Nodes of agent pool {pool} are not ready."),
    "SubnetIsFull": KnownFailure("Subnet does not have enough IP addresses for agent pool {pool}."),
}
_OUTER = {"LowPriorityQuotaExceeded": "QuotaExceeded", "RegionalQuotaExceeded": "QuotaExceeded"}
_NESTED = frozenset({"RequestDisallowedByPolicy", "AuthorizationFailed", "MissingSubscriptionRegistration"})


@dataclass(slots=True)
class Fault:
    """One fault.

    Attributes:
        service: "arm", "kube" or "any".
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

    def for_request(self, service: str, method: str, target: str) -> Fault | None:
        """The fault that strikes a request; every matching fault counts it."""
        matching = [
            fault
            for fault in self.faults
            if fault.action != "operation"
            and fault.service in {"any", service}
            and fault.method.upper() in {"", method}
            and re.search(fault.path, target)
        ]
        struck = [fault for fault in matching if fault.strikes()]
        return struck[0] if struck else None

    def for_operation(self, cluster: Cluster, pool: str, kind: str) -> Failure | None:
        """What shall go wrong with an operation that is about to start.

        Raises:
            Refusal: The failure is one that the service notices at once.
        """
        for fault in self.faults:
            if fault.action != "operation" or not _names(fault, cluster.name, pool, kind) or not fault.strikes():
                continue
            if not fault.code:
                return Failure(None, delay_s=fault.seconds)
            return _failure(fault, cluster, pool)
        return None


def _names(fault: Fault, cluster: str, pool: str, kind: str) -> bool:
    pairs = ((fault.cluster, cluster), (fault.pool, pool), (fault.kind, kind))
    return all(re.search(pattern, text) for pattern, text in pairs)


def _failure(fault: Fault, cluster: Cluster, pool: str) -> Failure:
    known = FAILURES.get(fault.code, KnownFailure(f"Injected failure {fault.code}."))
    message = fault.message or _filled(known.message, cluster, pool)
    if known.status:
        shape: Literal["flat", "nested"] = "nested" if fault.code in _NESTED else "flat"
        raise Refusal(known.status, fault.code, message, shape=shape)
    detail = error_detail(_OUTER.get(fault.code, fault.code), message, inner=known.inner, target=known.target)
    return Failure(detail, fault.after_nodes, fault.seconds)


def _filled(template: str, cluster: Cluster, pool: str) -> str:
    from gpukube.sandbox.aks.sizes import find_size  # noqa: PLC0415 - only failures need the table

    stored = cluster.pools.get(pool)
    size = find_size(str(stored.properties["vmSize"])) if stored else None
    values = {
        "size": size.name if size else "Standard_ND96asr_v4",
        "family": size.family if size else "Standard NDASv4_A100",
        "vcpus": str(size.vcpus if size else 96),
        "zone": "1",
        "location": cluster.location,
        "pool": pool,
        "scope": cluster.id,
    }
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", value)
    return template
