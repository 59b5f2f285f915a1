"""The live objects of a release.

In scope: reading them in few calls. Out of scope: what is wrong with them (release_drift).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.state.release_drift import identity, manifest_objects
from gpukube.core.jsontree import text

if TYPE_CHECKING:
    from collections.abc import Container

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.core.jsontree import Tree

_AT_ONCE = 5
_INSTANCE = "app.kubernetes.io/instance"
"""Both charts and the NFD they bring write the release's name into this label of all their objects."""


def live_objects(kube: Kube, release: Release, kinds: Container[str] = RELEASE_TYPES) -> tuple[Tree, ...]:
    """Read the live objects that a release's manifest names, one list for each type; missing ones are left out.

    What no list shows is asked for by name: somebody may have taken its label away.

    Args:
        kube: The cluster.
        release: One of ours.
        kinds: Which types; all when left out.

    Raises:
        AccessError: A type may not be listed; the message names which.
        ClusterError: The API did not answer.
    """
    desired = [obj for obj in manifest_objects(release.manifest) if text(obj, "kind") in kinds]
    listing = sorted({text(obj, "kind") for obj in desired})
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        listed = threads.map(lambda kind: _listed(kube, RELEASE_TYPES[kind], release.name), listing)
        there = {identity(obj): obj for objects in listed for obj in objects}
    for obj in desired:
        kind, namespace, name = identity(obj)
        if identity(obj) not in there and (found := kube.find_object(RELEASE_TYPES[kind], name, namespace)):
            there[identity(obj)] = {**found, "kind": kind}
    names = {identity(obj) for obj in desired}
    return tuple(obj for key, obj in there.items() if key in names)


def _listed(kube: Kube, kind: ApiType, release: str) -> list[Tree]:
    found = kube.objects(kind, NAMESPACE) if kind.namespaced else kube.objects(kind, labels={_INSTANCE: release})
    return [{**obj, "kind": kind.kind} for obj in found or ()]  # items of a list do not say what they are
