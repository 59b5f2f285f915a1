"""Allocates devices of one node to claims: an exhaustive search, whose first solution is taken.

In scope: requests and their alternatives, selectors, constraints, taints, administrative access, the allocation as an
object. Out of scope: which node (`verdicts`), which claims (`claims`).

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/{allocator_incubating,constraint}.go (1.36).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpukube_sandbox.kube.matching import untolerated
from gpukube_sandbox.kube.store.cel.selectors import CelError, CelSyntaxError, matches_device
from gpukube_sandbox.kube.store.objects import name_of, namespace_of, spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.kube.scheduler.devices import DeviceState
    from gpukube_sandbox.kube.scheduler.pools import Device, DeviceId
    from gpukube_sandbox.kube.store.objects import JsonObject

_MOST_RESULTS = 32
_MOST_STEPS = 30_000
"""Devices that a search tries before it gives up, a second of work; the real one gives up after ten seconds."""


class AllocationError(Exception):
    """A claim or class with which scheduling cannot proceed on any node."""


class InvalidPools(Exception):
    """There is no solution, and a pool of the node is invalid."""


class _TooManyResults(Exception):
    """The current choice of alternatives needs more devices than a claim may have."""


@dataclass(slots=True)
class _Request:
    """A request, or one of its alternatives."""

    name: str
    body: JsonObject
    count: int = 0
    every: list[Device] | None = None
    """All matching devices, for allocationMode All."""

    @property
    def class_name(self) -> str:
        return str(self.body.get("deviceClassName", ""))

    @property
    def is_alternative(self) -> bool:
        return "/" in self.name

    @property
    def is_admin(self) -> bool:
        return bool(self.body.get("adminAccess"))

    @property
    def short(self) -> str:
        """The name in messages: of an alternative, its own."""
        return self.name.rpartition("/")[2]

    @property
    def base(self) -> str:
        """The name of the request that it is an alternative of, or its own."""
        return self.name.partition("/")[0]

    def is_among(self, names: frozenset[str]) -> bool:
        """Return whether a constraint on these requests, or on all if there are none, concerns it."""
        return not names or bool(names & {self.name, self.base})


@dataclass(slots=True)
class _Match:
    """All devices have the same value of an attribute."""

    attribute: str
    requests: frozenset[str]
    values: list[JsonObject] = field(default_factory=list)

    def add(self, request: _Request, device: Device) -> bool:
        """Add a device unless it violates the constraint."""
        if not request.is_among(self.requests):
            return True
        value = attribute_of(device, self.attribute)
        if value is None or any(value != other for other in self.values[:1]):
            return False
        self.values.append(value)
        return True

    def remove(self, request: _Request) -> None:
        """Remove the device that was added last."""
        if request.is_among(self.requests):
            self.values.pop()


@dataclass(slots=True)
class _Distinct:
    """Each device has its own value of an attribute.

    Kubernetes 1.36 remembers one value for each request, that of the device that it tried last. So does this, because
    pods must find the same devices here.
    """

    attribute: str
    requests: frozenset[str]
    values: dict[str, JsonObject] = field(default_factory=dict)

    def add(self, request: _Request, device: Device) -> bool:
        """Add a device unless it violates the constraint."""
        if not request.is_among(self.requests):
            return True
        value = attribute_of(device, self.attribute)
        if value is None or value in self.values.values():
            return False
        self.values[request.base] = value
        return True

    def remove(self, request: _Request) -> None:
        """Forget the device that was added last."""
        if request.is_among(self.requests):
            self.values.pop(request.base, None)


def attribute_of(device: Device, full: str) -> JsonObject | None:
    """Return an attribute by its full name; the driver's own attributes may lack their domain."""
    attributes: dict[str, JsonObject] = device.body.get("attributes") or {}
    domain, _, name = full.partition("/")
    return attributes.get(full) or (attributes.get(name) if domain == device.driver else None)


@dataclass(slots=True)
class _Claim:
    body: JsonObject
    requests: list[list[_Request]]
    constraints: list[_Match | _Distinct]
    results: list[tuple[_Request, Device]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{namespace_of(self.body)}/{name_of(self.body)}"


def choices_of(request: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return a request's alternatives in their order, or the request itself, with the names that results have."""
    alternatives = request.get("firstAvailable") or ()
    named = [(f"{request['name']}/{one['name']}", one) for one in alternatives]
    return named or [(request["name"], request.get("exactly") or {})]


class _Place(NamedTuple):
    """Where the search is: a claim, one of its requests, how many of its devices it has, and the next device to try."""

    claim: int
    number: int
    request: _Request
    done: int = 0
    start: int = 0


def allocate(node: JsonObject, claims: Sequence[JsonObject], state: DeviceState) -> list[JsonObject] | None:
    """Return an allocation for each claim from the devices of a node; None if there is no solution.

    Raises:
        AllocationError: Scheduling cannot proceed: an expression fails, a pool is incomplete and all devices are
            requested, or too many are.
        InvalidPools: There is no solution, and a pool is invalid.
    """
    return _Search(node, claims, state).run()


class _Search:
    def __init__(self, node: JsonObject, claims: Sequence[JsonObject], state: DeviceState) -> None:
        self._node = node
        self._state = state
        self._pools = state.pools_on(node)
        self._devices = [device for pool in self._pools for device in pool.devices]
        self._in_use = state.in_use()
        self._taken: defaultdict[DeviceId, list[int]] = defaultdict(list)
        """Device -> the claims that it is taken for in the current attempt."""
        self._matching: dict[tuple[int, DeviceId], bool] = {}
        self._steps = 0
        self._claims = [self._prepare(claim) for claim in claims]

    # preparation

    def _prepare(self, body: JsonObject) -> _Claim:
        desired = spec(body).get("devices") or {}
        constraints: list[_Match | _Distinct] = []
        for one in desired.get("constraints") or ():
            among = frozenset(one.get("requests") or ())
            matched = one.get("matchAttribute")
            constraints.append(_Match(matched, among) if matched else _Distinct(one["distinctAttribute"], among))
        requests = [
            [_Request(name, one) for name, one in choices_of(request)] for request in desired.get("requests") or ()
        ]
        claim = _Claim(body, requests, constraints)
        for alternatives in claim.requests:
            for one in alternatives:
                self._count(claim, one)
        least = sum(min(one.count for one in alternatives) for alternatives in claim.requests)
        if least > _MOST_RESULTS:
            text = f"number of requested devices {least} exceeds the claim limit of {_MOST_RESULTS}"
            raise AllocationError(f"claim {claim.label}: {text}")
        return claim

    def _count(self, claim: _Claim, request: _Request) -> None:
        where = f"claim {claim.label}, request {request.short}"
        if request.class_name not in self._state.classes:
            missing = f'deviceclass.resource.k8s.io "{request.class_name}" not found'
            raise AllocationError(f"{where}: could not retrieve device class {request.class_name}: {missing}")
        if request.body.get("allocationMode") != "All":
            request.count = int(request.body.get("count") or 1)
            return
        for pool in self._pools:
            if problem := "being updated" if pool.is_incomplete else "invalid" if pool.is_invalid else "":
                text = f"asks for all devices, but resource pool {pool.label} is currently {problem}"
                raise AllocationError(f"{where}: {text}")
        request.every = [device for device in self._devices if self._matches(claim, request, device)]
        request.count = len(request.every)

    def _matches(self, claim: _Claim, request: _Request, device: Device) -> bool:
        key = id(request), device.key
        if key not in self._matching:
            of_class = spec(self._state.classes[request.class_name]).get("selectors") or ()
            own = request.body.get("selectors") or ()
            self._matching[key] = _selected(f"class {request.class_name}", of_class, device) and _selected(
                f"claim {claim.label}", own, device
            )
        return self._matching[key]

    # search

    def run(self) -> list[JsonObject] | None:
        """Return the allocations of the first solution."""
        try:
            found = self._claim_from(0)
        except _TooManyResults:
            raise AllocationError("allocation max size exceeded") from None
        if not found:
            if any(pool.is_invalid for pool in self._pools):
                raise InvalidPools
            return None
        return [self._allocation(claim) for claim in self._claims]

    def _claim_from(self, at: int) -> bool:
        """Allocate this claim and those after it."""
        return at == len(self._claims) or self._request_from(at, 0)

    def _request_from(self, at: int, number: int) -> bool:
        """Allocate this request and everything after it: its alternatives in their order."""
        claim = self._claims[at]
        if number == len(claim.requests):
            try:
                return self._claim_from(at + 1)
            except _TooManyResults:
                return False
        alternatives = claim.requests[number]
        if not alternatives[0].is_alternative:
            return self._devices_from(_Place(at, number, alternatives[0]))
        all_exceed = True
        for one in alternatives:
            try:
                if self._devices_from(_Place(at, number, one)):
                    return True
            except _TooManyResults:
                continue
            all_exceed = False
        if all_exceed:
            raise _TooManyResults
        return False

    def _devices_from(self, at: _Place) -> bool:
        """Allocate the rest of a request and everything after it; devices are tried in their order."""
        claim, request = self._claims[at.claim], at.request
        if request.every is not None and not request.every:
            return False
        if at.done >= request.count:
            return self._request_from(at.claim, at.number + 1)
        if len(claim.results) + request.count - at.done > _MOST_RESULTS:
            raise _TooManyResults
        if request.every is not None:  # the order does not matter, as all are needed
            return self._try(at, request.every[at.done], at.start)
        if request.count - at.done > self._left(at):  # no later choice can help: without this, all would be tried
            return False
        return any(
            self._try(at, device, place + 1)
            for place, device in enumerate(self._devices[at.start :], at.start)
            if self._is_free(at, device) and self._matches(claim, request, device)
        )

    def _left(self, at: _Place) -> int:
        """Return how many devices may still match, without evaluating a selector that the search may not come to."""
        return sum(
            self._is_free(at, device) and self._matching.get((id(at.request), device.key), True)
            for device in self._devices[at.start :]
        )

    def _try(self, at: _Place, device: Device, start: int) -> bool:
        """Take a device; give it back if the rest cannot be allocated."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise AllocationError(f"node {name_of(self._node)}: timed out trying to allocate devices")
        if not self._take(at, device):
            return False
        allocated = False
        try:
            allocated = self._devices_from(at._replace(done=at.done + 1, start=start))
        finally:
            if not allocated:
                self._give_back(at, device)
        return allocated

    def _is_free(self, at: _Place, device: Device) -> bool:
        if at.request.is_admin:
            return at.claim not in self._taken[device.key]
        return device.key not in self._in_use and not self._taken[device.key]

    def _take(self, at: _Place, device: Device) -> bool:
        claim, request = self._claims[at.claim], at.request
        if not self._is_free(at, device) or untolerated(request.body, device.body.get("taints") or ()):
            return False
        for number, constraint in enumerate(claim.constraints):
            if not constraint.add(request, device):
                if request.every is not None:
                    text = f"cannot add device {device.label} because a claim constraint would not be satisfied"
                    raise AllocationError(f"claim {claim.label}, request {request.short}: {text}")
                for added in claim.constraints[:number]:
                    added.remove(request)
                return False
        self._taken[device.key].append(at.claim)
        claim.results.append((request, device))
        return True

    def _give_back(self, at: _Place, device: Device) -> None:
        claim = self._claims[at.claim]
        for constraint in claim.constraints:
            constraint.remove(at.request)
        self._taken[device.key].remove(at.claim)
        claim.results.pop()

    # result

    def _allocation(self, claim: _Claim) -> JsonObject:
        found: JsonObject = {"devices": {"results": [_result(request, device) for request, device in claim.results]}}
        if config := self._configuration(claim):
            found["devices"]["config"] = config
        if any(device.is_local for _, device in claim.results):
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name_of(self._node)]}]}
            found["nodeSelector"] = {"nodeSelectorTerms": [term]}
        return found

    def _configuration(self, claim: _Claim) -> list[JsonObject]:
        """Return the configuration of the classes and of the claim, for the requests that got devices."""
        chosen = {request.name: request.class_name for request, _ in claim.results}
        found: list[JsonObject] = []
        for name in dict.fromkeys(chosen.values()):
            requests = [request for request, of in chosen.items() if of == name]
            of_class = spec(self._state.classes[name]).get("config") or ()
            found += [{"source": "FromClass", "requests": requests, **one} for one in of_class]
        for one in (spec(claim.body).get("devices") or {}).get("config") or ():
            named = set(one.get("requests") or ())
            if not named or any(named & {name, name.partition("/")[0]} for name in chosen):
                found.append({"source": "FromClaim", **one})
        return found


def _selected(owner: str, selectors: Sequence[JsonObject], device: Device) -> bool:
    for number, selector in enumerate(selectors):
        try:
            if not matches_device(selector["cel"]["expression"], device.driver, device.body):
                return False
        except CelSyntaxError as problem:
            raise AllocationError(f"{owner}: selector #{number}: CEL compile error: {problem}") from None
        except CelError as problem:
            raise AllocationError(f"{owner}: selector #{number}: CEL runtime error: {problem}") from None
    return True


def _result(request: _Request, device: Device) -> JsonObject:
    driver, pool, name = device.key
    found: JsonObject = {"request": request.name, "driver": driver, "pool": pool, "device": name}
    if request.is_admin:
        found["adminAccess"] = True
    if request.body.get("tolerations"):
        found["tolerations"] = request.body["tolerations"]
    return found
