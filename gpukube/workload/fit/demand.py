"""What is to be placed: the pods of the templates in the files, in order, and how many of each.

Pure. Lives here: templates made into pods. Must not live here: where they go (`packing`), reading files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, number, text
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.templates import ENDLESS, pod_templates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.templates import PodTemplate

_DEFAULT_UNAVAILABLE: Final = 25
"""Percent (kubernetes/api apps/v1 RollingUpdateDeployment: maxUnavailable and maxSurge default to 25%)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Demand:
    """Equal pods that a workload has.

    Attributes:
        template: Where they come from.
        pod: One of them, as the scheduler reads it.
        least: Pods that it always has.
        most: Pods that an autoscaler may give it; None without a limit.
        hosts: Pods of each replica: numOfHosts of a Ray worker group.
        surge: Pods more while it is rolled out or upgraded.
        surge_needed: How many of these must fit at least, or the roll-out never ends.
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
        """Whether each node that it may go to has one."""
        return self.template.role == "daemon"

    @property
    def workload(self) -> Manifest:
        """The object that it belongs to: it goes to one cluster as a whole."""
        return self.template.manifest


def read_demands(manifests: Iterable[Manifest]) -> tuple[Demand, ...]:
    """List the pods of manifests, in their order; templates that no object uses by itself are left out."""
    templates = [template for manifest in manifests for template in pod_templates(manifest)]
    return tuple(read_demand(item) for item in templates if item.role == "daemon" or item.replicas.most)


def read_demand(template: PodTemplate, spec: object = None) -> Demand:
    """Read a template.

    Args:
        template: As it stands in the file.
        spec: Its pod spec after an edit; None for its own.
    """
    least, most = template.replicas
    pod = read_pod(
        template.metadata,
        template.spec if spec is None else spec,
        name=str(template),
        namespace=template.manifest.namespace,
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
    """Return how many of the surge pods must fit for a roll-out to go on.

    A RayService waits for its whole second cluster. A Deployment that may do without one of its pods makes room by
    itself; one that may not waits for one surge pod.
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
