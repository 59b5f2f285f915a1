"""Rules about claims of devices: pods that use them, templates, classes, and selectors.

Pure. A claim is judged on nodes of the pools, as `gpukube workload fit` does; unknown results are no findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import trees
from gpukube.gpu.claims import GPU_CLASS
from gpukube.gpu.refusal import nearest
from gpukube.spec.wording import quoted
from gpukube.workload.cel.syntax import CelSyntaxError, parse_cel, unknown_names
from gpukube.workload.cel.values import BeyondSubset
from gpukube.workload.claims import API_GROUP, CLAIM, CLASS, STANDARD_CLASSES, TEMPLATE
from gpukube.workload.fit.claiming import Board
from gpukube.workload.lint.edits import Rewrite
from gpukube.workload.lint.placement import pools_text, unsure
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import GPU, Pod, mapping, sequence, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.source.positions import Path
    from gpukube.workload.claims import PodClaim
    from gpukube.workload.lint.places import Place
    from gpukube.workload.lint.world import World
    from gpukube.workload.manifests import Manifest

PODS: Final[Rules[Pod]] = Rules()
OBJECTS: Final[Rules[Manifest]] = Rules()

_DRA: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_TYPES: Final = "https://github.com/kubernetes/api/blob/v0.34.0/resource"
_CLASSES: Final = "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/tree/v0.4.1/deployments/helm/dra-driver-nvidia-gpu/templates"
_OF_DRIVER: Final = (
    *STANDARD_CLASSES,
    "vfio.gpu.nvidia.com",
    "compute-domain-daemon.nvidia.com",
    "compute-domain-default-channel.nvidia.com",
)
_BRIDGE: Final = (1, 36)
"""First release that serves extended resources by claims by default (Kubernetes feature gate DRAExtendedResource)."""
_CURRENT: Final = f"{API_GROUP}/v1"
_FLAT: Final = "v1beta1"
"""The version whose requests have their fields without `exactly`."""
_IN_EXACTLY: Final = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations")
_SPECS: Final[dict[str, Path]] = {CLAIM: ("spec",), TEMPLATE: ("spec", "spec")}
_DEVICE: Final = frozenset({"device"})


@PODS.rule(
    "claim-unlisted",
    why="only containers that list a claim get its devices; the pod holds them all the same",
    fix="write resources: {claims: [{name: NAME}]} in the container",
    source=f"{_TYPES}/v1/types.go",
)
def _unlisted(pod: Pod, _: World) -> Iterator[Hit]:
    listed: dict[str, Path] = {}
    for container in pod.containers:
        for index, item in enumerate(sequence(container.resources.get("claims"))):
            listed.setdefault(text(mapping(item).get("name")), (*container.path, "resources", "claims", index))
    claims = {text(mapping(item).get("name")) for item in sequence(pod.spec.get("resourceClaims"))}
    for index, item in enumerate(sequence(pod.spec.get("resourceClaims"))):
        name = text(mapping(item).get("name"))
        if name and name not in listed:
            yield Hit(
                where=pod.at("resourceClaims", index),
                seen=f"no container lists the claim {name}",
                fix=f"write resources: {{claims: [{{name: {name}}}]}} in the container",
                severity="warning",
            )
    for name, path in listed.items():
        if name and name not in claims:
            yield Hit(
                where=pod.at(*path),
                seen=f"a container lists the claim {name}, which the pod does not have",
                why="the API server rejects the pod",
                fix=f"write {{name: {name}, resourceClaimTemplateName: TEMPLATE}} in resourceClaims of the pod",
            )


@PODS.rule(
    "claim-and-gpu",
    severity="warning",
    why="it gets two GPUs where Kubernetes serves both, and stays Pending on all other nodes",
    fix="remove one of the two",
    source=_DRA,
)
def _both(pod: Pod, world: World) -> Iterator[Hit]:
    own = {claim.name for claim in world.gpu_claims(pod)}
    for container in pod.containers:
        listed = [text(mapping(item).get("name")) for item in sequence(container.resources.get("claims"))]
        named = [name for name in listed if name in own]
        for resource in container.gpus if named else ():
            yield Hit(
                where=pod.place_of(resource),
                seen=f"{container} requests {resource} and lists the claim {named[0]}",
            )


@PODS.rule(
    "claim-of-replicas",
    severity="warning",
    why="all of them share its devices, on one node",
    fix="write a ResourceClaimTemplate and resourceClaimTemplateName, so that each pod gets a claim of its own",
    source=_DRA,
)
def _of_replicas(pod: Pod, world: World) -> Iterator[Hit]:
    if pod.template.replicas.most <= 1:
        return
    gpus = {claim.name for claim in world.gpu_claims(pod)}
    for index, item in enumerate(sequence(pod.spec.get("resourceClaims"))):
        claim = mapping(item)
        if (name := text(claim.get("resourceClaimName"))) and text(claim.get("name")) in gpus:
            yield Hit(
                where=pod.at("resourceClaims", index, "resourceClaimName"),
                seen=f"several pods use the one ResourceClaim {name}",
            )


@PODS.rule(
    "claim-not-served",
    why="nodes with a device plugin publish no devices for claims: the pod stays Pending",
    fix="request nvidia.com/gpu, or write devicePlugin: {owner: dra} in the pool",
    source=_DRA,
)
def _not_served(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    claims = world.gpu_claims(pod)
    scope = places.chosen if places else ()
    if not places or not claims or not scope or any(place.offer.by_claims for place in scope):
        return
    yield Hit(
        where=pod.at("resourceClaims"),
        seen=f"the pod claims GPUs, and {pools_text(scope)} has a device plugin"
        if places.bound
        else "the pod claims GPUs, and no pool of the spec that it may use has the DRA driver",
        severity=unsure(places),
    )


@PODS.rule(
    "claim-no-device",
    why="no device satisfies the claim: the pod stays Pending",
    fix="change the claim, or the pool",
    source=_DRA,
)
def _no_device(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    claims = world.gpu_claims(pod)
    scope = [place for place in places.chosen if place.offer.by_claims] if places else []
    reasons = [_refusal(claims, place, world) for place in scope]
    if not places or not claims or not reasons or not all(reasons):
        return
    yield Hit(
        where=pod.at("resourceClaims"),
        seen=f"{'' if places.bound else 'no pool of the spec has the devices: '}{scope[0].offer.name}: {reasons[0]}",
        severity=unsure(places),
    )


def _refusal(claims: tuple[PodClaim, ...], place: Place, world: World) -> str:
    """Return why an empty node of a pool has no devices for claims; "" if it has, or if that is unknown."""
    board = Board(world.claims)
    node = place.offer.desired.target.name
    return board.verdict(claims, place.offer.real.published, (), node, place.offer.real.labels).why


@PODS.rule(
    "gpu-by-claims",
    why="its nodes publish devices for claims: before Kubernetes 1.36, or without its class, the pod stays Pending",
    fix="write a claim; gpukube workload render shows one",
    source="https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/5004-dra-extended-resource",
)
def _by_claims(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or GPU not in pod.gpus:
        return
    scope = places.chosen or places.every
    if not all(place.offer.by_claims for place in scope):
        return
    old = all(_is_before_bridge(place) for place in scope)
    yield Hit(
        where=pod.place_of(GPU),
        seen=f"the pod requests {GPU}, and {pools_text(scope)} has the DRA driver",
        severity=None if places.bound and old else "warning",
    )


def _is_before_bridge(place: Place) -> bool:
    found = place.offer.desired.target.kubernetes_version.split(".")[:2]
    return all(part.isdecimal() for part in found) and (0, 0) < tuple(map(int, found)) < _BRIDGE


@OBJECTS.rule(
    "claim-class",
    severity="warning",
    why="no device matches a class that does not exist: the pod stays Pending",
    fix=f"write deviceClassName: {GPU_CLASS}",
    source=_CLASSES,
)
def _class(manifest: Manifest, world: World) -> Iterator[Hit]:
    for path, choice in _choices(manifest):
        name = text(choice.get("deviceClassName"))
        if "nvidia" in name.lower() and name not in _OF_DRIVER and name not in world.claims.classes:
            close = nearest(name, STANDARD_CLASSES)[0]
            yield Hit(
                where=manifest.positions.at((*path, "deviceClassName")),
                seen=f"{quoted(name)} is no class of NVIDIA's DRA driver, nor among the files",
                fix=f"write deviceClassName: {close}",
            )


@OBJECTS.rule(
    "claim-api",
    why="the API server drops or rejects fields that this version does not have",
    fix=f"write apiVersion: {_CURRENT}",
    source=f"{_TYPES}/v1beta1/types.go",
)
def _api(manifest: Manifest, _: World) -> Iterator[Hit]:
    group, version = manifest.api_version.partition("/")[::2]
    if group != API_GROUP or manifest.kind not in {*_SPECS, CLASS}:
        return
    flat = version == _FLAT
    for path, request in _requests(manifest):
        wrong = ["exactly"] if flat and "exactly" in request else []
        wrong += [name for name in _IN_EXACTLY if name in request] if not flat else []
        if wrong:
            yield Hit(
                where=manifest.positions.key_at((*path, wrong[0])),
                seen=f"{wrong[0]} is no field of a request in {manifest.api_version}",
                fix="write the fields directly in the request" if flat else f"write {wrong[0]} under exactly",
            )
            return
    if manifest.api_version != _CURRENT:
        where = manifest.positions.at("apiVersion")
        yield Hit(
            where=where,
            seen=f"{manifest.api_version} is not the stable version",
            why="clusters serve no beta versions by default; Kubernetes 1.34, which the DRA driver needs, has v1",
            severity="warning",
            edits=() if flat else (Rewrite(where, _CURRENT),),
        )


@OBJECTS.rule(
    "claim-selector",
    why="the API server rejects the object",
    fix="write a CEL expression about device: device.attributes['gpu.nvidia.com'].profile == '1g.5gb'",
    source="https://github.com/kubernetes/dynamic-resource-allocation/blob/v0.34.0/cel/compile.go",
)
def _selector(manifest: Manifest, _: World) -> Iterator[Hit]:
    for path, expression in _expressions(manifest):
        where = manifest.positions.at((*path, "cel", "expression"))
        try:
            names = [*unknown_names(parse_cel(expression), _DEVICE)]
        except CelSyntaxError as problem:
            yield Hit(where=where, seen=f"the selector is not CEL: {problem} (at {problem.offset + 1})")
        except BeyondSubset:
            continue
        else:
            if names:
                yield Hit(where=where, seen=f"the selector names {names[0]}, but knows only device")


def _is_claim(manifest: Manifest) -> bool:
    return manifest.api_version.partition("/")[0] == API_GROUP and manifest.kind in _SPECS


def _requests(manifest: Manifest) -> Iterator[tuple[Path, dict[str, object]]]:
    if not _is_claim(manifest):
        return
    above: Path = (*_SPECS[manifest.kind], "devices", "requests")
    for index, request in enumerate(trees(manifest.root, *above)):
        yield (*above, index), request


def _choices(manifest: Manifest) -> Iterator[tuple[Path, dict[str, object]]]:
    """Yield each way to satisfy a request, in any version of the API."""
    for path, request in _requests(manifest):
        if "firstAvailable" in request:
            for index, choice in enumerate(trees(request, "firstAvailable")):
                yield (*path, "firstAvailable", index), choice
        else:
            exact = request.get("exactly")
            yield ((*path, "exactly"), exact) if isinstance(exact, dict) else (path, request)


def _expressions(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    holders = [*_choices(manifest)]
    if manifest.api_version.partition("/")[0] == API_GROUP and manifest.kind == CLASS:
        holders = [(("spec",), {"selectors": mapping(manifest.root.get("spec")).get("selectors")})]
    for path, holder in holders:
        for index, selector in enumerate(trees(holder, "selectors")):
            if expression := text(mapping(selector.get("cel")).get("expression")):
                yield (*path, "selectors", index), expression
