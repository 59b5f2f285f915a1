"""Rules about where pods can run: tolerations, selectors, resource names of nodes.

Pure. Out of scope: how many pods fit (`capacity`), sharing (`sharing`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.values import Taint
from gpukube.spec.source.positions import PositionedDict, PositionedList
from gpukube.spec.wording import quoted, shown
from gpukube.workload.lint.edits import Append, Drop, Insert, Rewrite
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import GPU, MIG, Loose, Pod, is_gpu, mapping, sequence, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.errors import Severity
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.lint.places import Place, Places
    from gpukube.workload.lint.world import World

CONTAINERS: Final[Rules[Pod | Loose]] = Rules()
"""Rules about containers, and about limits and requests elsewhere."""
PODS: Final[Rules[Pod]] = Rules()
WORLDS: Final[Rules[World]] = Rules()

_TAINTS: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"
_VALIDATION: Final = "https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/v1/validation/validation.go"
_ADMISSION: Final = (
    "https://github.com/kubernetes/kubernetes/blob/v1.34.0/plugin/pkg/admission/extendedresourcetoleration/admission.go"
)
_OPERATORS: Final = ("Exists", "Equal", "Lt", "Gt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MISSPELT: Final = re.compile(r"nvidia\.com/(mig\d.*|GPU.*|gpus|mig-.*\+.*|mig\..*)|(limits)\.nvidia\.com/.+|nvidia/.+")
_SCALE_SET: Final = "kubernetes.azure.com/scalesetpriority"
_SPOT_LABELS: Final = (_SCALE_SET, "kubernetes.azure.com/priority")
_SPOT_TAINTS: Final = (_SCALE_SET, "cloud.google.com/gke-spot")
_BETA_LABELS: Final = {
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Deprecated node labels -> replacements (kubernetes.io, reference/labels-annotations-taints)."""
_DISCOVERED: Final = ("nvidia.com/gpu.", "nvidia.com/mig.", "nvidia.com/mig-", "nvidia.com/cuda.")
_NAMED: Final = 3
"""Maximum number of pools named in a message; the others are counted."""
_PRODUCT: Final = "nvidia.com/gpu.product"
_GPU_LABELS: Final = (
    *_DISCOVERED, "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu", "kubernetes.azure.com/accelerator",
    "k8s.amazonaws.com/accelerator",
)  # fmt: skip


def unsure(places: Places) -> Severity | None:
    """Return the severity of a finding based only on the spec's pools: other nodes may be meant."""
    return None if places.bound else "warning"


def pools_text(places: Iterable[Place]) -> str:
    """Return pool names for messages: "train-aks/a100, train-aks/t4 and 2 more"."""
    names = [place.offer.name for place in places]
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest


@PODS.rule(
    "taint-untolerated",
    why="the scheduler places no pod on a node with a taint that it does not tolerate: it stays Pending",
    fix="add a toleration",
    source=_TAINTS,
)
def _untolerated(pod: Pod, world: World) -> Iterator[Hit]:
    for places, place, taint in _kept_away(pod, world):
        if not _is_other_name(pod, place, taint):
            # A class is selected: with a toleration alone, the autoscaler would not try its pools in their order.
            by_class = taint.key == place.offer.class_key
            yield Hit(
                where=pod.key_at("tolerations") if "tolerations" in pod.spec else pod.at(),
                seen=f"{_who(places, place)} the taint {taint}, which the pod does not tolerate",
                fix=f"write {place.selector_text}" if by_class else f"add {toleration_text(taint)} to tolerations",
                severity=unsure(places),
                edits=() if by_class else add_toleration(pod, taint),
            )


@PODS.rule(
    "taint-other-name",
    why="the cluster adds a toleration for the requested name, but the taint has another name",
    fix=f"add {{key: {GPU}, operator: Exists, effect: NoSchedule}} to tolerations",
    source=_ADMISSION,
)
def _other_name(pod: Pod, world: World) -> Iterator[Hit]:
    for places, place, taint in _kept_away(pod, world):
        if _is_other_name(pod, place, taint):
            yield Hit(
                where=pod.key_at("tolerations") if "tolerations" in pod.spec else pod.at(),
                seen=f"{_who(places, place)} the taint {taint}, and the pod requests {', '.join(pod.gpus)}",
                fix=f"add {toleration_text(taint)} to tolerations",
                severity=unsure(places),
                edits=add_toleration(pod, taint),
            )


def _kept_away(pod: Pod, world: World) -> Iterator[tuple[Places, Place, Taint]]:
    """Yield the taints of the first matching pool if no pool accepts the pod."""
    places = world.places(pod)
    if places is None or places.open or not (pod.gpus or world.gpu_claims(pod) or places.bound):
        return
    for place in places.offering[:1]:
        for taint in place.untolerated:
            yield places, place, taint


def _who(places: Places, place: Place) -> str:
    if places.bound:
        return f"pool {place.offer.name} has"
    return f"no pool of the spec is open to the pod: {place.offer.name} has"


def _is_other_name(pod: Pod, place: Place, taint: Taint) -> bool:
    return place.offer.tolerates_resources and taint.key == GPU and bool(pod.gpus) and GPU not in pod.names


def toleration_text(taint: Taint) -> str:
    """Return the toleration of a taint as it is written."""
    if not taint.value or taint.key.startswith("nvidia.com/"):
        return f"{{key: {taint.key}, operator: Exists, effect: {taint.effect}}}"
    return f"{{key: {taint.key}, operator: Equal, value: {json.dumps(taint.value)}, effect: {taint.effect}}}"


def add_toleration(pod: Pod, taint: Taint) -> tuple[Edit, ...]:
    """Return the edits that add a toleration to a pod; none if what is written is no list."""
    if "tolerations" not in pod.spec:
        return (Insert(pod.at(), f"tolerations: [{toleration_text(taint)}]"),)
    written = pod.spec["tolerations"]
    if isinstance(written, PositionedList):
        where = pod.at("tolerations")
        return (Append(where, toleration_text(taint)) if written else Rewrite(where, f"[{toleration_text(taint)}]"),)
    return ()


@PODS.rule(
    "toleration-syntax",
    why="the API server rejects the pod",
    fix="write {key: KEY, operator: Exists, effect: NoSchedule}",
    source=_VALIDATION,
)
def _toleration_syntax(pod: Pod, _: World) -> Iterator[Hit]:
    for index, item in enumerate(sequence(pod.spec.get("tolerations"))):
        toleration, path = mapping(item), ("tolerations", index)
        operator, effect, key = (toleration.get(name) for name in ("operator", "effect", "key"))
        if operator == "Exists" and toleration.get("value"):
            yield Hit(
                where=pod.key_at(*path, "value"),
                seen="a toleration with operator Exists has a value",
                fix="remove the value, or write operator: Equal",
                edits=(Drop(pod.key_at(*path, "value")),),
            )
        if isinstance(item, PositionedDict) and not key and operator != "Exists":
            yield Hit(
                where=pod.at(*path),
                seen="a toleration has no key",
                fix="write the key; operator: Exists without a key tolerates every taint",
            )
        for name, value, known in (("operator", operator, _OPERATORS), ("effect", effect, _EFFECTS)):
            if isinstance(value, str) and value and value not in known:
                meant = next((one for one in known if one.lower() == value.lower()), "")
                where = pod.at(*path, name)
                yield Hit(
                    where=where,
                    seen=f"{quoted(value)} is not {'an operator' if name == 'operator' else 'an effect'}",
                    fix=f"write {meant or ', '.join(known)}",
                    edits=(Rewrite(where, meant),) if meant else (),
                )


@PODS.rule(
    "value-not-string",
    why="the field is a string: the API server rejects numbers and booleans",
    fix="put it in quotes",
    source="https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/",
)
def _not_string(pod: Pod, _: World) -> Iterator[Hit]:
    paths: list[tuple[str | int, ...]] = [("nodeSelector", key) for key in mapping(pod.spec.get("nodeSelector"))]
    for index, item in enumerate(sequence(pod.spec.get("tolerations"))):
        paths += [("tolerations", index, name) for name in ("key", "value") if name in mapping(item)]
    for container in pod.containers:
        for number, variable in enumerate(sequence(container.data.get("env"))):
            if "value" in mapping(variable):
                paths.append((*container.path, "env", number, "value"))
    positions = pod.manifest.positions
    for path in paths:
        value = positions.within((*pod.base, *path)).root
        if isinstance(value, bool | int | float):
            where = pod.at(*path)
            spelling = positions.origin.spellings.get(positions.mark_at((*pod.base, *path)))
            written = json.dumps(spelling if spelling is not None else str(value).lower())
            yield Hit(
                where=where,
                seen=f"{path[-1]} is {shown(value)}, not a string",
                fix=f"write {written}",
                edits=(Rewrite(where, written),),
            )


@PODS.rule(
    "toleration-equal",
    severity="warning",
    why="the value of this taint differs between clouds and guides: present, true, or none",
    fix="write operator: Exists, and no value",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/gpus",
)
def _equal(pod: Pod, world: World) -> Iterator[Hit]:
    taints = {taint.value for offer in world.offers or () for taint in offer.real.taints if taint.key == GPU}
    for index, item in enumerate(sequence(pod.spec.get("tolerations"))):
        toleration = mapping(item)
        operator, value = toleration.get("operator", "Equal"), toleration.get("value")
        if toleration.get("key") != GPU or operator != "Equal" or (isinstance(value, str) and value in taints):
            continue
        path = ("tolerations", index)
        edits: tuple[Edit, ...] = (Drop(pod.key_at(*path, "value")),) if "value" in toleration else ()
        where = pod.at(*path, "operator")
        added = Rewrite(where, "Exists") if "operator" in toleration else Insert(pod.at(*path), "operator: Exists")
        yield Hit(
            where=pod.at(*path),
            seen=f"the toleration of {GPU} is for the value {quoted(text(value))} only",
            severity="hint" if value == "present" else None,  # right on GKE, and on pools of gpukube
            edits=(added, *edits),
        )


@CONTAINERS.rule(
    "gpu-name-unknown",
    why="the API server accepts any name, but no node has this resource: the pod stays Pending",
    fix="request a resource that a pool has",
    source="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md",
)
def _name_unknown(pod: Pod | Loose, world: World) -> Iterator[Hit]:
    offered = {name for offer in world.offers or () for name in offer.real.devices}
    named = {name for container in pod.containers for name in (*container.limits, *container.requests)}
    misspelt = {name for name in named if _MISSPELT.fullmatch(name) and name not in offered}
    for name in sorted(misspelt):
        yield _misspelt(pod, name)
    places = world.places(pod) if isinstance(pod, Pod) else None
    if isinstance(pod, Pod) and places and places.every:
        requested = [name for name in pod.names if is_gpu(name) and pod.request.devices.get(name)]
        for name in requested:
            if name not in misspelt:
                yield from _not_offered(pod, name, places)


def _not_offered(pod: Pod, name: str, places: Places) -> Iterator[Hit]:
    scope = places.chosen or places.every
    if any(place.offer.real.devices.get(name) for place in scope):
        return
    if name == GPU and all(place.offer.by_claims for place in scope):
        return  # gpu-by-claims
    has = sorted({other for place in scope for other in place.offer.real.devices})
    chosen = f"pool {scope[0].offer.name} does not have" if places.bound else "no pool of the spec has"
    yield Hit(
        where=pod.place_of(name),
        seen=f"{chosen} {name}",
        fix=f"request {' or '.join(has)}" if has else "",
        severity=unsure(places),
    )


def _misspelt(pod: Pod | Loose, name: str) -> Hit:
    right = re.sub(r"/mig[.]?(?=\d)", "/mig-", name.removeprefix("limits.")).replace("+", ".")
    right = re.sub(r"^nvidia(\.com)?[/.](?=\w)", "nvidia.com/", right, flags=re.IGNORECASE)
    right = right.replace("/GPU", "/gpu").replace("/gpus", "/gpu")
    places = [
        (pod.key_at(*container.path, container.field, part, name), right not in named)
        for container in pod.containers
        for part, named in (("limits", container.limits), ("requests", container.requests))
        if name in named
    ]
    return Hit(
        where=places[0][0],
        seen=f"{name} is a name that no device plugin advertises",
        why="a resource name may not contain +: the API server rejects it" if "+" in name else "",
        fix=f"write {right}",
        severity="error",
        edits=tuple(Rewrite(place, right) for place, free in places if free),
    )


@PODS.rule(
    "selector-no-pool",
    severity="warning",
    why="the pod stays Pending, unless nodes that are not in the spec have these labels",
    fix="select a pool by the label that its nodes have from the start",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
)
def _no_pool(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not places.selects or places.chosen or not pod.gpus:
        return
    required = pod.required_labels
    labels = [place.offer.real.labels for place in places.every]
    missed = [item for item in required if not any(one.get(item[0]) == item[1] for one in labels)]
    suited = [place for place in places.every if not place.lacking] or list(places.every)
    for key, value, path in (missed or required)[:1]:
        yield Hit(
            where=pod.label_at(path),
            seen=f"no pool of the spec has nodes with {key}{f': {value}' if value else ''}",
            fix=f"write {suited[0].selector_text} for pool {suited[0].offer.name}",
        )


@PODS.rule(
    "selector-from-zero",
    severity="warning",
    why="the label is set once the driver runs on a node: while a pool is empty, its autoscaler expects no such node",
    fix="select the pool by the label that its nodes have from the start",
    source="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md",
)
def _from_zero(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not places.open or not all(place.from_zero for place in places.open):
        return
    place = places.open[0]
    for key, _, path in pod.required_labels:
        if key.startswith(_DISCOVERED):
            yield Hit(
                where=pod.label_at(path),
                seen=f"the pod requires the label {key}, and {pools_text(places.open)} may be empty",
                fix=f"write {place.selector_text}",
            )


@PODS.rule(
    "selector-product",
    severity="warning",
    why="GPU feature discovery adds -MIG-PROFILE and -SHARED to the product: the bare name never matches",
    fix="add the suffix, or select the pool",
    source="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md",
)
def _product(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    for key, value, path in pod.required_labels if places and places.offering else ():
        if key != _PRODUCT or not value or not places:
            continue
        lacking = [_suffix(place) for place in places.offering]
        if all(suffix and not value.endswith(suffix) for suffix in lacking):
            yield Hit(
                where=pod.at(*path),
                seen=f"{key} {value} is not a product of {pools_text(places.offering)}",
                fix=f"write {value}{lacking[0]}, or select the pool",
            )


def _suffix(place: Place) -> str:
    """Return the suffix that GPU feature discovery adds to the product name on a pool."""
    sharing = place.offer.desired.target.sharing
    cut = f"-MIG-{sharing.mig.profile}" if sharing.mig and sharing.mig.strategy == "single" else ""
    return cut + ("-SHARED" if sharing.slicing and not sharing.slicing.rename else "")


@PODS.rule(
    "selector-resource-name",
    severity="warning",
    why="it is the name of a resource; no cloud and no component sets such a label on nodes",
    fix="select the pool by its own label; the request alone finds nodes with GPUs",
    source="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/docs/gpu-feature-discovery/README.md",
)
def _resource_name(pod: Pod, world: World) -> Iterator[Hit]:
    known = {key for offer in world.offers or () for key in offer.real.labels}
    for key, _, path in pod.required_labels:
        if key not in known and (key == GPU or (key.startswith(MIG) and not key.endswith((".count", ".memory")))):
            yield Hit(
                where=pod.label_at(path),
                seen=f"{key} is required as a label of the node",
            )


@PODS.rule(
    "spot-untolerated",
    why=f"AKS gives nodes of spot pools the taint {_SCALE_SET}=spot:NoSchedule: the pod stays Pending",
    fix=f"add {{key: {_SCALE_SET}, operator: Equal, value: spot, effect: NoSchedule}} to tolerations",
    source="https://learn.microsoft.com/azure/aks/spot-node-pool",
)
def _spot(pod: Pod, _: World) -> Iterator[Hit]:
    tolerations = [mapping(item) for item in sequence(pod.spec.get("tolerations"))]
    keys = {text(item.get("key")) for item in tolerations if item.get("key") or item.get("operator") == "Exists"}
    required = pod.required_labels
    for key, value, path in required:
        if key in _SPOT_LABELS and value == "spot" and not keys & {_SCALE_SET, ""}:
            yield Hit(
                where=pod.at(*path),
                seen="the pod selects spot nodes but does not tolerate their taint",
                edits=add_toleration(pod, Taint(_SCALE_SET, "spot", "NoSchedule")),
            )
    for index, item in enumerate(tolerations):
        affinity = mapping(mapping(pod.spec.get("affinity")).get("nodeAffinity"))
        if item.get("key") in _SPOT_TAINTS and not required and not affinity:
            yield Hit(
                where=pod.at("tolerations", index),
                seen="the pod tolerates spot nodes but selects none",
                why="it may also run on nodes that are not spot, at their price",
                fix="select the pool in nodeSelector",
                severity="warning",
            )


@PODS.rule(
    "gpu-node-without-gpu",
    severity="warning",
    why="it uses CPU and memory of an expensive node, and prevents its removal",
    fix="remove it, or request a GPU",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
)
def _without_gpu(pod: Pod, world: World) -> Iterator[Hit]:
    if pod.names or pod.template.role == "daemon" or any(one.mentions_gpu for one in pod.containers):
        return
    if "resourceClaims" in pod.spec:
        return  # claim-unlisted
    places = world.places(pod)
    for index, item in enumerate(sequence(pod.spec.get("tolerations"))):
        if mapping(item).get("key") == GPU:
            yield Hit(where=pod.at("tolerations", index), seen=f"the pod tolerates the taint {GPU} but requests no GPU")
            return
    for key, _, path in pod.required_labels:
        if key.startswith(_GPU_LABELS) or (places and places.bound):
            yield Hit(
                where=pod.label_at(path),
                seen=f"the pod selects GPU nodes by {key} but requests no GPU",
            )
            return


@WORLDS.rule(
    "pool-open",
    severity="hint",
    why="pods that request no GPU fill the nodes, and the autoscaler cannot remove them",
    fix="add a taint to the pool in the spec, or a nodeSelector for other nodes to the pods",
    source=_TAINTS,
)
def _pool_open(world: World, _: World) -> Iterator[Hit]:
    free = [pod for pod in world.pods if _may_go_anywhere(pod)]
    for offer in (world.offers or ()) if free else ():
        if all(taint.effect == "PreferNoSchedule" for taint in offer.real.taints):
            more = f" and {len(free) - 1} more" if len(free) > 1 else ""
            yield Hit(where=free[0].at(), seen=f"pool {offer.name} has no taint: {free[0]}{more} may run there")


def _may_go_anywhere(pod: Pod) -> bool:
    if pod.names or pod.template.role == "daemon" or any(one.mentions_gpu for one in pod.containers):
        return False
    return not pod.required_labels and "affinity" not in pod.spec


@PODS.rule(
    "label-deprecated",
    severity="warning",
    why="AKS has replaced the label and may remove it",
    fix="write kubernetes.azure.com/priority",
    source="https://learn.microsoft.com/azure/aks/use-labels",
)
def _deprecated(pod: Pod, _: World) -> Iterator[Hit]:
    for key, value, path in pod.required_labels:
        where = pod.label_at(path)
        if key == _SCALE_SET:
            yield Hit(
                where=where,
                seen=f"the pod selects nodes by {key}",
                fix=f"write kubernetes.azure.com/priority: {value or 'spot'}",
            )
        elif right := _BETA_LABELS.get(key):
            yield Hit(
                where=where,
                seen=f"the pod selects nodes by {key}",
                why="Kubernetes has replaced the label, and nodes may lack it",
                fix=f"write {right}{f': {value}' if value else ''}",
            )
