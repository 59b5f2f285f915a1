"""Which devices of a node a pod's claims get: the search of the default scheduler, whose first solution counts.

Pure. In scope: requests with their choices, selectors, constraints, taints of devices. Out of scope: which node, and
claims that are allocated already (`predicates`).

Where an attribute is unknown, the search runs twice, as if it matched and as if it did not; if the results differ, the
answer is unknown.

Source: kubernetes/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go and
constraint.go (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.workload.cel.values import BeyondSubset, CelError
from gpukube.workload.devices import keeps_off

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpukube.workload.claims import Choice, ClaimSpec, Constraint
    from gpukube.workload.devices import Device, Published

DeviceKey = tuple[str, str, str]

_MOST_RESULTS: Final = 32
"""Devices of one claim (kubernetes/api resource/v1: AllocationResultsMaxSize)."""
_MOST_STEPS: Final = 20_000
"""Devices that a search tries; the scheduler stops after ten seconds."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a search.

    Attributes:
        devices: By claim, the keys of its devices, without those that it only monitors; None if there are none.
        why: Why not, human-readable.
        unknown: What keeps the answer unknown; "" if it is known.
        blocks: Whether the scheduler then places the pod on no node at all.
    """

    devices: tuple[tuple[DeviceKey, ...], ...] | None = None
    why: str = ""
    unknown: str = ""
    blocks: bool = False


class _Blocked(Exception):
    """Scheduling of the pod ends here."""


class _TooMany(Exception):
    """The choices need more devices than a claim may have."""


def allocate(
    claims: Sequence[ClaimSpec],
    published: Published,
    in_use: Collection[DeviceKey],
    classes: Mapping[str, Sequence[str]],
    *,
    classes_known: bool = False,
) -> Verdict:
    """Find devices of a node for claims that have none yet.

    Args:
        claims: The claims of a pod.
        published: Devices of the node.
        in_use: Devices that other claims have.
        classes: DeviceClasses with their selectors.
        classes_known: Whether these are all that the cluster has.
    """
    for name in {choice.device_class: None for claim in claims for choice in claim.choices}:
        if name not in classes:
            if classes_known:
                return Verdict(why=f"device class {name} does not exist", blocks=True)
            return Verdict(unknown=f"device class {name} is not among the files")
    first = _Search(claims, published, in_use, classes, optimistic=False)
    found = first.run()
    if not first.unknown or (found.unknown and found.devices is None):
        return found
    if not first.all_unknown:
        best = _Search(claims, published, in_use, classes, optimistic=True).run()
        if best.devices is None and not best.unknown:
            return best
    return Verdict(unknown=first.unknown)


@dataclass(slots=True)
class _Rule:
    """A constraint while devices are added.

    Kubernetes 1.36 remembers one value of a distinct attribute for each request, that of the device that it tried last;
    so does this.
    """

    constraint: Constraint
    values: list[object] = field(default_factory=list)
    latest: dict[str, object] = field(default_factory=dict)

    def add(self, choice: Choice, value: object) -> bool:
        """Add the value of a device unless that breaks the rule."""
        if self.constraint.distinct:
            if value is None or value in self.latest.values():
                return False
            self.latest[choice.name.partition("/")[0]] = value
            return True
        if value is None or any((type(value), value) != (type(other), other) for other in self.values[:1]):
            return False
        self.values.append(value)
        return True

    def remove(self, choice: Choice) -> None:
        """Remove the value that was added last."""
        if self.constraint.distinct:
            self.latest.pop(choice.name.partition("/")[0], None)
        else:
            self.values.pop()


@dataclass(slots=True)
class _Claim:
    spec: ClaimSpec
    rules: list[_Rule]
    found: list[tuple[Choice, Device]] = field(default_factory=list)


class _Search:
    def __init__(
        self,
        claims: Sequence[ClaimSpec],
        published: Published,
        in_use: Collection[DeviceKey],
        classes: Mapping[str, Sequence[str]],
        *,
        optimistic: bool,
    ) -> None:
        self.unknown = ""
        self.all_unknown = False
        self._published = published
        self._devices = published.devices
        self._in_use = in_use
        self._classes = classes
        self._optimistic = optimistic
        self._steps = 0
        self._taken: dict[DeviceKey, list[int]] = {}
        self._all: dict[int, list[Device]] = {}
        self._claims = [_Claim(spec, list(map(_Rule, spec.constraints))) for spec in claims]

    def run(self) -> Verdict:
        """Search for the first solution."""
        try:
            for claim in self._claims:
                self._prepare(claim)
            found = self._claim_from(0)
        except _Blocked as problem:
            return Verdict(why=str(problem), blocks=True)
        except _TooMany:
            return Verdict(why=f"a claim has at most {_MOST_RESULTS} devices", blocks=True)
        except BeyondSubset as problem:
            self.unknown = ""
            return Verdict(unknown=str(problem))
        if not found:
            return Verdict(why=self._why())
        return Verdict(
            tuple(tuple(device.key for choice, device in claim.found if not choice.admin) for claim in self._claims)
        )

    def _prepare(self, claim: _Claim) -> None:
        for choice in claim.spec.choices:
            if choice.beyond:
                raise BeyondSubset(choice.beyond)
            if choice.count is None:
                if self._published.incomplete:
                    raise _Blocked(f"request {choice.name} wants all devices, and slices of the node are missing")
                if self._published.wrong:
                    raise _Blocked(f"request {choice.name} wants all devices, and two devices have one name")
                known = bool(self.unknown)
                self._all[id(choice)] = [device for device in self._devices if self._matches(choice, device)]
                self.all_unknown |= bool(self.unknown) and not known
        least = sum(min(map(self._count, request.choices), default=0) for request in claim.spec.requests)
        if least > _MOST_RESULTS:
            raise _Blocked(f"{least} devices in one claim, {_MOST_RESULTS} at most")

    def _count(self, choice: Choice) -> int:
        return len(self._all[id(choice)]) if choice.count is None else choice.count

    def _claim_from(self, at: int) -> bool:
        return at == len(self._claims) or self._request_from(at, 0)

    def _request_from(self, at: int, number: int) -> bool:
        claim = self._claims[at]
        if number == len(claim.spec.requests):
            try:
                return self._claim_from(at + 1)
            except _TooMany:
                return False
        request = claim.spec.requests[number]
        if not request.ordered:
            return self._devices_from(at, number, request.choices[0])
        too_many = True
        for choice in request.choices:
            try:
                if self._devices_from(at, number, choice):
                    return True
                too_many = False
            except _TooMany:
                continue
        if too_many:
            raise _TooMany
        return False

    def _devices_from(self, at: int, number: int, choice: Choice, done: int = 0, start: int = 0) -> bool:
        """Find the rest of a request's devices, and those of all that follows; devices are tried in their order."""
        claim, count = self._claims[at], self._count(choice)
        if choice.count is None and not count:
            return False
        if done >= count:
            return self._request_from(at, number + 1)
        if len(claim.found) + count - done > _MOST_RESULTS:
            raise _TooMany
        if choice.count is None:
            return self._try(at, number, choice, (self._all[id(choice)][done], done, start))
        if not choice.admin and not claim.rules and self._too_few(choice, start, count - done):
            return False
        return any(
            self._try(at, number, choice, (device, done, place + 1))
            for place, device in self._candidates(at, choice, start)
        )

    def _too_few(self, choice: Choice, start: int, needed: int) -> bool:
        free = 0
        for device in self._devices[start:]:
            free += device.key not in self._in_use and device.key not in self._taken and self._matches(choice, device)
            if free >= needed:
                return False
        return True

    def _candidates(self, at: int, choice: Choice, start: int) -> Iterator[tuple[int, Device]]:
        for place in range(start, len(self._devices)):
            device = self._devices[place]
            if self._is_free(at, choice, device) and self._matches(choice, device):
                yield place, device

    def _try(self, at: int, number: int, choice: Choice, step: tuple[Device, int, int]) -> bool:
        device, done, start = step
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise BeyondSubset("too many combinations of devices")
        if not self._take(at, choice, device):
            return False
        found = False
        try:
            found = self._devices_from(at, number, choice, done + 1, start)
        finally:
            if not found:
                claim = self._claims[at]
                for rule in claim.rules:
                    if rule.constraint.concerns(choice):
                        rule.remove(choice)
                claim.found.pop()
                self._taken[device.key].pop()
                if not self._taken[device.key]:
                    del self._taken[device.key]
        return found

    def _is_free(self, at: int, choice: Choice, device: Device) -> bool:
        if choice.admin:
            return at not in self._taken.get(device.key, ())
        return device.key not in self._in_use and device.key not in self._taken

    def _take(self, at: int, choice: Choice, device: Device) -> bool:
        claim = self._claims[at]
        if not self._is_free(at, choice, device) or any(
            keeps_off(taint, choice.tolerations) for taint in device.taints
        ):
            return False
        if device.beyond:
            raise BeyondSubset(device.beyond)
        added: list[_Rule] = []
        for rule in claim.rules:
            if not rule.constraint.concerns(choice):
                continue
            try:
                fits = rule.add(choice, device.attribute(rule.constraint.attribute))
            except BeyondSubset as problem:
                self.unknown = self.unknown or str(problem)
                fits = self._optimistic and rule.add(choice, object() if rule.constraint.distinct else _any(rule))
            if not fits:
                if choice.count is None:
                    raise _Blocked(f"a constraint keeps a device from request {choice.name}, which wants all")
                for one in added:
                    one.remove(choice)
                return False
            added.append(rule)
        claim.found.append((choice, device))
        self._taken.setdefault(device.key, []).append(at)
        return True

    def _matches(self, choice: Choice, device: Device) -> bool:
        """Return whether a device matches the selectors of a class and of a request."""
        for expression in (*self._classes[choice.device_class], *choice.selectors):
            try:
                if not device.matches(expression):
                    return False
            except CelError as problem:
                raise _Blocked(f"request {choice.name}: the selector {expression} fails: {problem}") from None
            except BeyondSubset as problem:
                self.unknown = self.unknown or f"{expression}: {problem}"
                if not self._optimistic:
                    return False
        return True

    def _why(self) -> str:
        if self._published.wrong:
            return "two devices of the node have one name"
        if not self._devices:
            return "slices of the node are missing" if self._published.incomplete else "the node has no devices"
        for claim in self._claims:
            for request in claim.spec.requests:
                if why := self._lacking(request.choices):
                    return f"request {request.name}: {why}"
        return "no combination of free devices satisfies all its claims"

    def _lacking(self, choices: Sequence[Choice]) -> str:
        """Return what is missing for the best of a request's choices on its own; "" if nothing is."""
        found = []
        for choice in choices:
            fitting = [device for device in self._devices if self._matches(choice, device)]
            well = [one for one in fitting if not any(keeps_off(taint, choice.tolerations) for taint in one.taints)]
            free = [device for device in well if choice.admin or device.key not in self._in_use]
            needed = max(1, self._count(choice))
            what = f"{needed} of {choice.device_class}" + (" with its selectors" if choice.selectors else "")
            if not fitting:
                found.append(
                    f"no device of {choice.device_class}" + (" has what it selects" if choice.selectors else "")
                )
            elif len(fitting) < needed:
                found.append(f"{what} requested, a node has {len(fitting)}")
            elif len(well) < needed:
                found.append(f"{what} requested, {len(fitting) - len(well)} of {len(fitting)} have a taint")
            elif len(free) < needed:
                found.append(f"{what} requested, {len(free)} of {len(fitting)} free")
            else:
                return ""
        return "; ".join(dict.fromkeys(found))


def _any(rule: _Rule) -> object:
    """Return a value that an unknown attribute may have: the one that the others have."""
    return rule.values[0] if rule.values else object()
