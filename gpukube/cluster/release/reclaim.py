"""Reclaims the objects of gpukube's release from other managers, so that Helm can set every field again.

In scope: what must be removed from a live object before Helm runs; the patches. Out of scope: Helm, and which objects
differ (state.release_drift).

Helm 4 uses server-side apply, where a field that someone else has changed belongs to them: Helm's apply fails with a
conflict, and neither Helm nor its library can take over such fields (only the command has an option). Neither Helm 3
nor 4 removes what someone added. So the other managers' entries are dropped from managedFields, as client-go's
csaupgrade does when a client moves to server-side apply, and the additions are removed; Helm then writes the values.
Custom resources
under Helm 3 are an exception: it compares its old manifest with its new one and does not read the live object
(helm.sh/helm v3.6.2 pkg/kube/client.go, createPatch), so their values are restored here. Only objects in the release's
own manifest are changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.cluster.state.release_drift import find_drift, identity, manifest_objects
from gpukube.cluster.state.release_objects import live_objects
from gpukube.core.jsontree import at, items, pointer, text, tree
from gpukube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.state.release_drift import Drift
    from gpukube.core.jsontree import Tree

_RELEASE_NAME: Final = "meta.helm.sh/release-name"
_CUSTOM: Final = frozenset(kind.kind for kind in RELEASE_TYPES.values() if kind.group == "nvidia.com")


def appliers(objects: Iterable[Tree]) -> frozenset[str]:
    """Return the field managers under which Helm has applied these objects; none for Helm 3."""
    return frozenset(text(entry, "manager") for obj in objects for entry in _applied(obj))


def reclaim_objects(kube: Kube, release: Release, manager: str = "") -> int:
    """Make Helm the only manager of every object of a release.

    Args:
        kube: The cluster.
        release: Its newest revision.
        manager: Field manager of the coming apply, which takes over what another Helm applied; "" for Helm 3.

    Returns:
        Number of changed objects; 0 if no one else owns anything.

    Raises:
        Conflict: An object changed at the same time; plan again.
        AccessError: Objects may not be patched.
        ClusterError: The API did not answer.
    """
    changed = 0
    desired = {identity(obj): obj for obj in manifest_objects(release.manifest)}
    found = live_objects(kube, release)
    former = sorted(appliers(found))
    manager = manager if manager and former else "".join(former[:1])
    for live in found:
        owner = text(live, "metadata", "annotations", _RELEASE_NAME)
        operations = _operations(desired[identity(live)], live, manager) if owner in ("", release.name) else []
        if not operations:
            continue
        if not kube.change_object(RELEASE_TYPES[text(live, "kind")], live, operations):
            raise Conflict(
                f"{text(live, 'kind')} {text(live, 'metadata', 'name')} changed at the same time",
                where=f"{release.namespace}/{release.name}",
                fix="run again to start from the current release",
                code="release-moved",
            )
        changed += 1
    return changed


def _operations(desired: Tree, live: Tree, manager: str) -> list[Tree]:
    """Return the patch: remove additions, from the end of lists backward, and the others' claims."""
    drift = find_drift([desired], [live])
    added = [item for item in drift if item.desired is None]
    found: list[Tree] = [] if manager or text(live, "kind") not in _CUSTOM else _put_back(drift)
    found += [{"op": "remove", "path": pointer(*item.path)} for item in sorted(added, key=_last_first)]
    claims = items(live, "metadata", "managedFields")
    kept = _helms(claims, _applied(live), desired, manager) if manager else claims
    if any(entry not in claims for entry in kept) or len(kept) != len(claims):
        found.append({"op": "replace", "path": "/metadata/managedFields", "value": kept})
    return found


def _put_back(drift: Sequence[Drift]) -> list[Tree]:
    """Return operations that restore the manifest's values; items missing at the end of a list are appended."""
    lost = [item for item in drift if item.desired is not None]
    return [
        {"op": "add" if item.live is None else "replace", "path": pointer(*item.path), "value": item.desired}
        for item in lost
    ]


def _applied(live: Tree) -> list[object]:
    """Return the claims of Helm's server-side apply; Helm 3 makes none, and causes no conflict either."""
    annotation = ("fieldsV1", "f:metadata", "f:annotations", f"f:{_RELEASE_NAME}")
    claims = items(live, "metadata", "managedFields")
    return [entry for entry in claims if text(entry, "operation") == "Apply" and at(entry, *annotation) is not None]


def _last_first(item: Drift) -> list[tuple[bool, int, str]]:
    return [(isinstance(step, str), -step if isinstance(step, int) else 0, str(step)) for step in item.path]


def _helms(claims: list[object], applied: list[object], desired: Tree, manager: str) -> list[object]:
    """Keep the claims of Helm's apply, merged into one, and those on statuses.

    A gpukube elsewhere, or the helm command, has applied under another name. What both claim would stay when one of
    them stops sending it, and neither could change what only the other has sent.

    Helm gets its claim on a ConfigMap's entries back: an edit took it, and Helm never drops what it does not own. An
    object that someone deleted and recreated is claimed for Helm as a whole.
    """
    statuses = [entry for entry in claims if text(entry, "subresource")]
    others = [entry for entry in claims if entry not in applied and entry not in statuses]
    if not applied:
        return [*({**tree(entry), "manager": manager, "operation": "Apply"} for entry in others[:1]), *statuses]
    data: dict[str, object] = {f"f:{key}": {} for key in tree(desired, "data")}
    fields: Tree = {}
    for entry in applied:
        fields = _joined(fields, tree(entry, "fieldsV1"))
    if data:
        fields = _joined(fields, {"f:data": data})
    return [{**tree(applied[0]), "manager": manager, "fieldsV1": fields}, *statuses]


def _joined(fields: Tree, more: Tree) -> Tree:
    """Merge two sets of fields (fieldsV1)."""
    return {**fields, **{key: _joined(tree(fields, key), tree(more, key)) for key in more}}
