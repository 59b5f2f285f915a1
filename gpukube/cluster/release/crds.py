"""The types (CustomResourceDefinitions) that a chart brings.

In scope: which of them a cluster lacks or has otherwise, and making the missing ones. Out of scope: reading a
chart (helm.chart), Helm: it is told to leave types alone.

Helm 3 leaves a type alone that is there, and makes none at an upgrade; Helm 4 applies them on the server, in conflict
with whoever made them: types outlive an uninstall. Here missing ones are made, at an upgrade too, and the others are
left, with whatever objects of somebody's they hold; the user is told how to renew them.
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
    """A chart's types in a cluster.

    Attributes:
        missing: As the chart has them.
        other: Names of those that are there, and not as the chart has them.
    """

    missing: tuple[Tree, ...] = ()
    other: tuple[str, ...] = ()


def look_at_types(kube: Kube, types: Iterable[Tree]) -> Types:
    """Compare a chart's types with the cluster's.

    Raises:
        AccessError, ClusterError: The cluster.
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
    """Try the missing types on the server; nothing is written.

    Raises:
        HelmError: It refuses one.
        AccessError, ClusterError: The cluster.
    """
    for desired in types.missing:
        if said := kube.try_object(CRDS, desired):
            raise HelmError(
                f"the cluster refuses {CRDS.kind} {text(desired, 'metadata', 'name')} of the chart",
                where=kube.server,
                why=said,
                fix="remove what keeps it away (an admission webhook, a right that is missing); then run again",
                code="kube-refused",
            )


def create_types(kube: Kube, types: Types, pause: Callable[[float], None]) -> None:
    """Make the missing types, and wait until the API serves them.

    Raises:
        AccessError, ClusterError: The cluster; or it does not accept a type.
    """
    for desired in types.missing:
        name = text(desired, "metadata", "name")
        if kube.find_object(CRDS, name) is None:
            kube.create_object(CRDS, desired)
    for desired in types.missing:
        name = text(desired, "metadata", "name")
        # The API server takes a moment to serve a new type, and Helm does not wait for types that are not its own.
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
