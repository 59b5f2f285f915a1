"""The CustomResourceDefinitions (types) in a chart.

In scope: which of them a cluster lacks or has in another version, and creating the missing ones. Out of scope: reading
a chart (helm.chart), and running Helm, which skips them.

Helm 3 skips existing CRDs, and creates none during an upgrade; Helm 4 applies them server-side, in conflict with their
creator: CRDs outlive an uninstall. gpukube creates missing ones, also during an upgrade, and keeps the others with
their objects; it tells the user how to update them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import ApiType
from gpukube.core.jsontree import at, items, text, tree
from gpukube.errors import ClusterError, HelmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree

CRDS: Final = ApiType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_LOOKS: Final = 60
_LOOK_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Types:
    """A chart's CRDs compared with a cluster's.

    Attributes:
        missing: CRDs to create, as in the chart.
        other: Names of existing ones that differ from the chart.
    """

    missing: tuple[Tree, ...] = ()
    other: tuple[str, ...] = ()


def look_at_types(kube: Kube, types: Iterable[Tree]) -> Types:
    """Compare a chart's CRDs with the cluster's.

    Raises:
        AccessError, ClusterError: The cluster could not be read.
    """
    missing, other = [], []
    for desired in types:
        name = text(desired, "metadata", "name")
        live = kube.find_object(CRDS, name)
        if live is None:
            missing.append(desired)
        elif not _holds(tree(desired, "spec"), tree(live, "spec")):
            other.append(name)
    return Types(tuple(missing), tuple(other))


def try_types(kube: Kube, types: Types) -> None:
    """Try to create the missing CRDs in a dry run.

    Raises:
        HelmError: The server rejects one.
        AccessError, ClusterError: The call failed.
    """
    for desired in types.missing:
        if reason := kube.try_object(CRDS, desired):
            raise HelmError(
                f"the cluster rejects {CRDS.kind} {text(desired, 'metadata', 'name')} of the chart",
                where=kube.server,
                why=reason,
                fix="fix what blocks it (an admission webhook, a missing permission), then run again",
                code="kube-refused",
            )


def create_types(kube: Kube, types: Types, pause: Callable[[float], None]) -> None:
    """Create the missing CRDs, and wait until the API serves them.

    Raises:
        AccessError, ClusterError: The call failed, or the API server does not accept a CRD.
    """
    for desired in types.missing:
        name = text(desired, "metadata", "name")
        try:
            if kube.find_object(CRDS, name) is None:
                kube.create_object(CRDS, desired)
        except ClusterError:
            if kube.find_object(CRDS, name) is None:  # else another run created it meanwhile
                raise
    for desired in types.missing:
        name = text(desired, "metadata", "name")
        # The API server needs a moment to serve a new CRD, and Helm waits only for those it creates itself.
        for _ in range(_LOOKS):
            if _is_served(kube.find_object(CRDS, name)):
                break
            pause(_LOOK_AGAIN_S)
        else:
            raise ClusterError(
                f"{CRDS.kind} {name} is not served",
                where=kube.server,
                why="the API server has not accepted it within 30 s",
                fix=f"kubectl describe customresourcedefinition {name} shows why; then run again",
            )


def _is_served(live: Tree | None) -> bool:
    conditions = items(live, "status", "conditions")
    return any((text(item, "type"), text(item, "status")) == ("Established", "True") for item in conditions)


def _holds(desired: object, live: object) -> bool:
    """Return whether a live value contains the desired one; the API server drops empty values and adds defaults."""
    if isinstance(desired, dict):
        return all(_holds(value, at(live, key)) for key, value in desired.items())
    if isinstance(desired, list):
        return isinstance(live, list) and len(desired) == len(live) and all(map(_holds, desired, live))
    return desired == live or (not desired and not live)
