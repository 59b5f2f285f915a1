"""Reads claims of devices: ResourceClaims, templates of them, DeviceClasses, and which of them a pod uses.

Pure. In scope: their content, in all versions of the API. Out of scope: allocation (`fit.allocation`), devices.

Source: kubernetes/api resource/v1 types.go; v1beta1 has the fields of `exactly` directly in the request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, number, strings, text, tree, trees
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.core.jsontree import Tree

API_GROUP: Final = "resource.k8s.io"
CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"
CLASS: Final = "DeviceClass"
STANDARD_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    name: (f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'",)
    for name, kind in ((GPU_CLASS, "gpu"), (MIG_CLASS, "mig"))
}
"""Classes of NVIDIA's driver -> their selectors (dra-driver-nvidia-gpu v0.4.1, templates/deviceclass-*.yaml)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to satisfy a request.

    Attributes:
        name: Name of the request, or "request/choice" for one of several.
        device_class: Its DeviceClass.
        selectors: CEL expressions, which a device must all match.
        count: Number of devices; None for all that match.
        tolerations: Taints of devices that it tolerates.
        admin: Whether it has access to devices that others use.
        beyond: What it has that nobody can judge here; "" for nothing.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    tolerations: tuple[Tree, ...] = ()
    admin: bool = False
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request of a claim.

    Attributes:
        name: Its name.
        choices: Ways to satisfy it, the preferred first.
        ordered: Whether they are choices (firstAvailable).
    """

    name: str
    choices: tuple[Choice, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule about an attribute of several devices.

    Attributes:
        attribute: Full name.
        requests: Names of the requests, or of choices; () for all.
        distinct: Whether the values must differ; otherwise they must be equal.
    """

    attribute: str
    requests: tuple[str, ...]
    distinct: bool = False

    def concerns(self, choice: Choice) -> bool:
        """Return whether it is about a choice."""
        return not self.requests or bool({choice.name, choice.name.partition("/")[0]} & {*self.requests})


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The spec of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @property
    def is_of_nvidia(self) -> bool:
        """Whether it asks for NVIDIA's devices, by the names of classes."""
        return any("nvidia" in choice.device_class.lower() for choice in self.choices)

    @property
    def firsts(self) -> tuple[Choice, ...]:
        """The preferred choice of each request."""
        return tuple(request.choices[0] for request in self.requests if request.choices)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All ways to satisfy its requests."""
        return tuple(choice for request in self.requests for choice in request.choices)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim of a pod.

    Attributes:
        name: Its name in the pod.
        spec: The claim; None if `missing`.
        shared: Namespace and name of the ResourceClaim that several pods may use; "" for one from a template.
        template: Namespace and name of the template; "" for a ResourceClaim.
        missing: Object that is not among the files, "ResourceClaimTemplate one-gpu"; "" if it is.
        resource: Extended resource that it stands for; "" for none.
    """

    name: str
    spec: ClaimSpec | None
    shared: str = ""
    template: str = ""
    missing: str = ""
    resource: str = ""


@dataclass(frozen=True, slots=True)
class Allocated:
    """A live claim that has devices.

    Attributes:
        devices: Driver, pool, and name of each.
        terms: Node selector terms of the nodes that reach them; () for any node.
    """

    devices: tuple[tuple[str, str, str], ...]
    terms: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims, templates, and classes of files and of a cluster.

    Attributes:
        claims: Namespace and name -> ResourceClaim.
        templates: Namespace and name -> spec of the claims.
        classes: Name -> selectors.
        extended: Extended resource -> the class that serves it.
        allocated: Namespace and name -> devices that a live claim has.
    """

    claims: Mapping[tuple[str, str], ClaimSpec] = field(default_factory=dict)
    templates: Mapping[tuple[str, str], ClaimSpec] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extended: Mapping[str, str] = field(default_factory=dict)
    allocated: Mapping[tuple[str, str], Allocated] = field(default_factory=dict)

    def of_pod(self, spec: object, namespace: str) -> tuple[PodClaim, ...]:
        """Return the claims of a pod.

        Args:
            spec: Spec of a pod or a template, of any shape.
            namespace: Namespace of the pod; "" for that of the context.
        """
        return tuple(self._of_pod(item, namespace or "default") for item in trees(spec, "resourceClaims"))

    def _of_pod(self, item: Tree, namespace: str) -> PodClaim:
        name = text(item, "name")
        if shared := text(item, "resourceClaimName"):
            found = self.claims.get((namespace, shared))
            missing = "" if found else f"{CLAIM} {shared}"
            return PodClaim(name, found, shared=f"{namespace}/{shared}", missing=missing)
        template = text(item, "resourceClaimTemplateName")
        found = self.templates.get((namespace, template))
        missing = "" if found else f"{TEMPLATE} {template}"
        return PodClaim(name, found, template=f"{namespace}/{template}", missing=missing)

    def beside(self, other: Claims) -> Claims:
        """Return these together with others, which come first."""
        return Claims(
            {**self.claims, **other.claims},
            {**self.templates, **other.templates},
            {**self.classes, **other.classes},
            {**self.extended, **other.extended},
            {**self.allocated, **other.allocated},
        )


def read_claims(objects: Iterable[Tree]) -> Claims:
    """Read the claims, templates, and classes among objects."""
    claims: dict[tuple[str, str], ClaimSpec] = {}
    templates: dict[tuple[str, str], ClaimSpec] = {}
    classes: dict[str, tuple[str, ...]] = {}
    extended: dict[str, tuple[str, str]] = {}
    allocated: dict[tuple[str, str], Allocated] = {}
    for obj in objects:
        if text(obj, "apiVersion").partition("/")[0] != API_GROUP:
            continue
        key = (text(obj, "metadata", "namespace") or "default", text(obj, "metadata", "name"))
        match text(obj, "kind"):
            case "ResourceClaim":
                claims[key] = read_claim(tree(obj, "spec"))
                if (allocation := at(obj, "status", "allocation")) is not None:
                    allocated[key] = _allocated(allocation)
            case "ResourceClaimTemplate":
                templates[key] = read_claim(tree(obj, "spec", "spec"))
            case "DeviceClass":
                classes[key[1]] = _selectors(tree(obj, "spec"))
                if resource := text(obj, "spec", "extendedResourceName"):
                    # Of two classes the newest serves the resource, then the first by name.
                    made = text(obj, "metadata", "creationTimestamp"), key[1]
                    before = extended.get(resource, made)
                    extended[resource] = (
                        min(before, made, key=lambda one: one[1]) if before[0] == made[0] else max(before, made)
                    )
    return Claims(claims, templates, classes, {name: found for name, (_, found) in extended.items()}, allocated)


def read_claim(spec: Tree) -> ClaimSpec:
    """Read the spec of a claim."""
    requests = tuple(map(_request, trees(spec, "devices", "requests")))
    constraints = tuple(
        Constraint(
            text(item, "matchAttribute") or text(item, "distinctAttribute"),
            strings(item, "requests"),
            distinct=not text(item, "matchAttribute"),
        )
        for item in trees(spec, "devices", "constraints")
    )
    return ClaimSpec(requests, constraints)


def _request(item: Tree) -> DeviceRequest:
    name = text(item, "name")
    if choices := trees(item, "firstAvailable"):
        return DeviceRequest(name, tuple(_choice(one, f"{name}/{text(one, 'name')}") for one in choices), ordered=True)
    return DeviceRequest(name, (_choice(tree(item, "exactly") or item, name),))


def _choice(item: Tree, name: str) -> Choice:
    every = text(item, "allocationMode") == "All"
    return Choice(
        name=name,
        device_class=text(item, "deviceClassName"),
        selectors=_selectors(item),
        count=None if every else number(item, "count") or 1,
        tolerations=tuple(trees(item, "tolerations")),
        admin=at(item, "adminAccess") is True,
        beyond="capacity of a shared device" if at(item, "capacity", "requests") else "",
    )


def _selectors(item: Tree) -> tuple[str, ...]:
    return tuple(text(one, "cel", "expression") for one in trees(item, "selectors"))


def _allocated(allocation: object) -> Allocated:
    results = [item for item in trees(allocation, "devices", "results") if at(item, "adminAccess") is not True]
    return Allocated(
        tuple((text(item, "driver"), text(item, "pool"), text(item, "device")) for item in results),
        tuple(trees(allocation, "nodeSelector", "nodeSelectorTerms")),
    )
