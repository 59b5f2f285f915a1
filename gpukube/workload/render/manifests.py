"""Renders an intent as the text of its manifests.

In scope: the kinds, and the comment at the top. Out of scope: the content of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.workload.render.batch import (
    render_deployment,
    render_job,
    render_jobset,
    render_pod,
    render_statefulset,
)
from gpukube.workload.render.claims import claim_templates
from gpukube.workload.render.intent import fit_intent, refuse, usual_name
from gpukube.workload.render.kueue import render_kueue
from gpukube.workload.render.pods import metadata
from gpukube.workload.render.ray import render_raycluster, render_rayjob, render_rayservice
from gpukube.workload.render.text import plain, write_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Fitted, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of manifest.

    Attributes:
        make: Function that returns its documents.
        counts: Options on the number of pods that it accepts.
        of_ray: Whether KubeRay creates its pods.
        has_environment: Whether Ray installs a runtime environment for it.
        runs: Whether it has its own pods, with an image and a command.
        needs: Human-readable requirement on the cluster; "" for none.
    """

    make: Callable[[Fitted, Sequence[PoolOffer]], list[dict[str, object]]]
    counts: tuple[str, ...] = ("--replicas",)
    of_ray: bool = False
    runs: bool = True
    has_environment: bool = False
    needs: str = ""


_RAY: Final = ("--replicas", "--min", "--max")
_KUBERAY: Final = "KubeRay 1.4 or newer"
_KINDS: Final[Mapping[str, _Kind]] = {
    "pod": _Kind(make=render_pod, counts=()),
    "job": _Kind(make=render_job),
    "deployment": _Kind(make=render_deployment),
    "statefulset": _Kind(make=render_statefulset),
    "jobset": _Kind(make=render_jobset, needs="JobSet"),
    "raycluster": _Kind(make=render_raycluster, counts=_RAY, of_ray=True, needs=_KUBERAY),
    "rayjob": _Kind(make=render_rayjob, counts=_RAY, of_ray=True, has_environment=True, needs=_KUBERAY),
    "rayservice": _Kind(make=render_rayservice, counts=_RAY, of_ray=True, has_environment=True, needs=_KUBERAY),
    "kueue": _Kind(make=render_kueue, counts=(), runs=False, needs="Kueue 0.15 or newer"),
}
KINDS: Final = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class Rendered:
    """Rendered manifests.

    Attributes:
        text: YAML, with comments.
        documents: The same as data.
        notes: Human-readable notes.
    """

    text: str
    documents: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...]


def render(intent: Intent, offer: PoolOffer, others: Sequence[PoolOffer] = ()) -> Rendered:
    """Render manifests for a pool.

    Args:
        intent: The requested workload; its kind is one of KINDS.
        offer: The pool.
        others: The other pools of its cluster.

    Raises:
        SpecError: workload-option; the pool or the kind does not support it.
    """
    kind = _KINDS[intent.kind]
    _check_options(intent, kind)
    if not kind.runs and not intent.resource:  # it covers the whole node, so any of its devices will do
        intent = replace(intent, resource=min(offer.gpus, default=""))
    intent = replace(intent, name=intent.name or usual_name(offer.desired.target.pool))
    fitted = fit_intent(intent, offer, of_ray=kind.of_ray)
    documents = claim_templates(fitted, metadata(fitted))
    documents += kind.make(fitted, (offer, *(other for other in others if other is not offer)))
    needs = (f"requires {kind.needs} in the cluster",) if kind.needs else ()
    queue = (f"workloads use it with the label kueue.x-k8s.io/queue-name: {intent.name}",) if not kind.runs else ()
    return Rendered(
        text=write_documents(documents, _head(fitted, kind)),
        documents=tuple(plain(document) for document in documents),  # type: ignore[misc]  # mappings remain mappings
        notes=(*fitted.notes, *needs, *queue, *_about_arch(intent, offer, kind)),
    )


def _check_options(intent: Intent, kind: _Kind) -> None:
    given = {"--replicas": intent.replicas, "--min": intent.least, "--max": intent.most}
    for option, value in given.items():
        if value is not None and option not in kind.counts:
            takers = ", ".join(name for name, other in _KINDS.items() if option in other.counts)
            refuse(option, f"{option} is not for {intent.kind}", f"remove it, or render {takers}")
    for option, text in {"--runtime-env": intent.runtime_env, "--working-dir": intent.working_dir}.items():
        if text and not kind.has_environment:
            refuse(option, f"{option} is not for {intent.kind}", "remove it, or render rayjob, rayservice")
    own = {"--image": intent.image, "--cpu": intent.cpu, "--memory": intent.memory, "COMMAND": intent.command}
    for option, text in own.items():
        if text and not kind.runs:
            refuse(option, f"{option} is not for {intent.kind}", "remove it: a queue runs no pods itself")


def _head(fitted: Fitted, kind: _Kind) -> list[str]:
    target = fitted.offer.desired.target
    nodes = target.nodes
    plural = "s" * (nodes.maximum != 1)
    span = f"{nodes.minimum} to {nodes.maximum} node{plural}" if nodes.autoscaled else f"{nodes.count} node{plural}"
    fabric = fitted.offer.desired.fabric
    network = {fabric.request: fabric.names[fabric.request]} if fabric and fabric.request else {}
    each = {**fitted.offer.gpus, **network}
    devices = ", ".join(f"{count} {name}" for name, count in sorted(each.items()))
    lines = [f"{fitted.offer.name}: {span} of {target.machine.name}, each with {devices}."]
    if (others := fitted.offer.alternatives) and nodes.autoscaled:
        lines = [f"{fitted.offer.name}, with its alternatives {', '.join(others)}: {span}, each with {devices}."]
    elif others:
        lines.append(f"Or of its alternatives: {', '.join(others)}.")
    if kind.runs:
        whole = f", the pool for {fitted.capacity}" if nodes.maximum > 1 else ""
        lines.append(f"A node has room for {fitted.per_node} such pod{'s' * (fitted.per_node != 1)}{whole}.")
    return lines


def _about_arch(intent: Intent, offer: PoolOffer, kind: _Kind) -> list[str]:
    if offer.desired.target.machine.arch != "arm64" or not kind.of_ray or intent.image:
        return []
    return ["the nodes are arm64: rayproject may not publish the GPU image for it; add --image"]
