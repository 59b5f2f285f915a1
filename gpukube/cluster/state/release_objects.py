"""Reads the live objects of a release.

In scope: reading them in few calls. Out of scope: comparing them (release_drift).
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
"""Label in which the plugin's charts and their NFD write the release's name on all objects. The DRA driver's chart does
not; its few cluster-scoped objects are read by name."""


def live_objects(kube: Kube, release: Release, kinds: Container[str] = RELEASE_TYPES) -> tuple[Tree, ...]:
    """Return the live objects that a release's manifest names, with one list per type; skip missing ones.

    Objects that no list contains are read by name: their label may have been removed.

    Args:
        kube: The cluster.
        release: One of gpukube's releases.
        kinds: Types to read; all by default.

    Raises:
        AccessError: A type may not be listed; the message names it.
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
    return [{**obj, "kind": kind.kind} for obj in found or ()]  # items of a list have no kind
