"""Lists the pods to place: those of the templates in the files, in order, with their number.

Pure. In scope: turning templates into pods. Out of scope: where they go (`packing`), reading files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.core.jsontree import at, number, text, trees
from gpukube.workload.claims import read_claims
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.requests import requested_names
from gpukube.workload.templates import ENDLESS, Replicas, read_contents, scaled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.workload.claims import Claims, PodClaim
    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.templates import PodTemplate

_DEFAULT_SCHEDULER: Final = "default-scheduler"
_KIND: Final = "not placed: gpukube does not know how many pods a {} creates, and with which spec"
_DEFAULT_UNAVAILABLE: Final = 25
"""Percent (kubernetes/api apps/v1 RollingUpdateDeployment: maxUnavailable and maxSurge default to 25%)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Demand:
    """Equal pods of a workload.

    Attributes:
        template: Their template.
        pod: One of the pods, as the scheduler reads it.
        least: Minimum number of pods.
        most: Maximum that an autoscaler may set; None without a limit.
        hosts: Pods per replica: numOfHosts of a Ray worker group.
        surge: Additional pods during a rollout or an upgrade.
        surge_needed: How many of these must fit for the rollout to finish.
    """

    template: PodTemplate
    pod: Pod
    least: int
    most: int | None
    hosts: int = 1
    surge: int = 0
    surge_needed: int = 0

    @property
    def daemon(self) -> bool:
        """Whether each matching node has one."""
        return self.template.role == "daemon"

    @property
    def workload(self) -> Manifest:
        """The object that it belongs to; all its pods go to one cluster."""
        return self.template.manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Pods that were not placed, because there are none or because it is unknown where they would go.

    Attributes:
        manifest: The object.
        group: Worker group or replicated job; "" if there is none.
        why: Human-readable reason.
        has_pods: Whether pods exist, or may exist.
    """

    manifest: Manifest
    group: str
    why: str
    has_pods: bool


class Workloads(NamedTuple):
    """The pods of manifests.

    Attributes:
        demands: Pods to place, in the order of the files.
        unplaced: Pods that cannot be placed.
        claims: Claims, templates, and device classes among the manifests.
    """

    demands: tuple[Demand, ...]
    unplaced: tuple[Unplaced, ...]
    claims: Claims


def read_demands(manifests: Iterable[Manifest]) -> Workloads:
    """Return the pods of manifests, in order."""
    manifests = list(manifests)
    scalers = _scalers(manifests)
    claims = read_claims(manifest.root for manifest in manifests)
    demands: list[Demand] = []
    unplaced: list[Unplaced] = []
    for manifest in manifests:
        found = read_contents(manifest)
        for item in found.templates:
            bounds = scalers.get((manifest.namespace, manifest.kind, manifest.name))
            template = scaled(item, bounds) if bounds and item.replicas.most else item
            why = _why_none(template) or _why_unknown(template)
            if why:
                has_pods = template.role == "embedded" or template.replicas.most > 0
                unplaced.append(Unplaced(manifest=manifest, group=template.group, why=why, has_pods=has_pods))
            elif template.role != "embedded":
                demands.append(read_demand(template, claims=claims.of_pod(template.spec, manifest.namespace)))
        if found.requirements and not found.templates:
            unplaced.append(Unplaced(manifest=manifest, group="", why=_KIND.format(manifest.kind), has_pods=True))
    return Workloads(tuple(demands), tuple(unplaced), claims)


def _scalers(manifests: Iterable[Manifest]) -> dict[tuple[str, str, str], Replicas]:
    """Read HorizontalPodAutoscalers: namespace, kind, and name of the scaled object -> its minimum and maximum."""
    found = {}
    for manifest in manifests:
        if manifest.kind != "HorizontalPodAutoscaler":
            continue
        target = at(manifest.root, "spec", "scaleTargetRef")
        least = at(manifest.root, "spec", "minReplicas")
        most = at(manifest.root, "spec", "maxReplicas")
        low = least if type(least) is int and least >= 0 else 1
        high = min(most, ENDLESS) if type(most) is int else low
        named = (manifest.namespace, text(target, "kind"), text(target, "name"))
        found[named] = Replicas(min(low, ENDLESS), max(low, high))
    return found


def _why_none(template: PodTemplate) -> str:
    """Return why a template has no pods; "" if it has some, or if unknown."""
    if template.role in ("daemon", "embedded") or template.replicas.most:
        return ""
    if template.role == "ray-worker":
        group = at(template.manifest.root, *template.path[:-1])
        return "no pods: it is suspended" if at(group, "suspend") is True else "no pods: no replicas and no autoscaler"
    if template.manifest.kind == "PodTemplate":
        return "no pods: nothing uses it automatically"
    return "no pods: it has 0 replicas"


def _why_unknown(template: PodTemplate) -> str:
    """Return why it is unknown where a template's pods go; "" if it is known."""
    spec = template.spec
    if template.role == "embedded":
        return _KIND.format(template.manifest.kind) if _names_devices(spec) else ""
    if gates := [text(gate, "name") for gate in trees(spec, "schedulingGates")]:
        return f"schedulingGates: not placed: no scheduler handles the pod until {', '.join(gates)} is removed"
    if (name := text(spec, "schedulerName")) not in ("", _DEFAULT_SCHEDULER):
        return f"schedulerName {name}: not placed: gpukube knows only the rules of the default scheduler"
    return ""


def _names_devices(spec: object) -> bool:
    return bool(requested_names(spec)) or bool(trees(spec, "resourceClaims"))


def read_demand(template: PodTemplate, spec: object = None, *, claims: tuple[PodClaim, ...] = ()) -> Demand:
    """Read a template.

    Args:
        template: The template in the file.
        spec: Its pod spec after an edit; None for its own.
        claims: Its claims of devices.
    """
    least, most = template.replicas
    pod = read_pod(
        template.metadata,
        template.spec if spec is None else spec,
        name=str(template),
        namespace=template.manifest.namespace,
        claims=claims,
    )
    return Demand(
        template=template,
        pod=pod,
        least=least,
        most=None if most >= ENDLESS else most,
        hosts=number(template.manifest.root, *template.path[:-1], "numOfHosts") or 1
        if template.role == "ray-worker"
        else 1,
        surge=template.surge,
        surge_needed=_surge_needed(template),
    )


def _surge_needed(template: PodTemplate) -> int:
    """Return how many of the surge pods must fit for a rollout to continue.

    A RayService waits for its complete second cluster. A Deployment that may lose one of its pods makes room on its
    own; otherwise it waits for one surge pod.
    """
    if template.role != "replica" or not template.surge:
        return template.surge
    replicas = template.replicas.least
    given = at(template.manifest.root, "spec", "strategy", "rollingUpdate", "maxUnavailable")
    percent = text(given).removesuffix("%") if isinstance(given, str) else ""
    if isinstance(given, int) and not isinstance(given, bool):
        unavailable = given
    else:
        unavailable = replicas * (int(percent) if percent.isdecimal() else _DEFAULT_UNAVAILABLE) // 100
    return 0 if unavailable else 1
