"""Changes of a live AKS pool -> the PUTs that bring them about.

In scope: the pool as read with changes merged in, and what goes into which call. Out of scope: what a change
does to the nodes (`updates`), how a pool is made or deleted (`translate`).

AKS has no PATCH: every update is a PUT of the whole pool, as `az aks nodepool update` sends it. So everything that was
read goes back, what nobody here has heard of too; only the changed properties differ, and If-Match refuses the PUT when
somebody else changed the pool in between (docs: aks/use-etags). Nothing else is kept between two calls: a run that is
killed leaves a pool that the next look tells the rest of. Every PUT brings the second copy of the marks along, as the
labels in it say.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from gpukube.core.diff import diff_fields
from gpukube.core.fields import COUNT, IMAGE, LEAST, MOST, PROTECTION, TAINTS, FieldPath
from gpukube.core.jsontree import items, tree
from gpukube.core.marks import recorded_tags, released_labels
from gpukube.core.values import PROTECT_LABEL, Request
from gpukube_aks.pool.fields import BINDINGS
from gpukube_aks.pool.marks import FORM, with_copy
from gpukube_aks.pool.renewing import NODE_IMAGE, UPGRADE_IMAGE
from gpukube_aks.pool.translate import CREATE, etag_guard, pool_path
from gpukube_aks.pool.updates import ROLLING, find_row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from gpukube.core.values import Change, ClusterRef, Desired, Nodes, Observed

    Properties = dict[str, object]
    Apply = Callable[[Properties, Change, Mapping[str, object]], None]

NOT_SENT: Mapping[str, str] = {
    "eTag": "the service writes it",
    "currentOrchestratorVersion": "the service writes it",
    "provisioningState": "the service writes it",
    "status": "the service writes it: the last failure",
    "virtualMachineNodesStatus": "the service writes it",
    "nodeImageVersion": "a value other than the live one starts a rollback (SDK, AgentPool.nodeImageVersion)",
}
"""Properties that a read gives and no PUT sends back -> why."""

_SYSTEM = "kubernetes.azure.com/"


def translate_updates(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Make the PUTs that bring these changes about, each the pool as it stands after the one before.

    What rolls the nodes has a call of its own, after everything else: AKS does not scale and upgrade at once (docs:
    aks/manage-node-pools), and settings for the upgrade itself must be there before it starts.

    Raises:
        LookupError: A change of a field that no call changes.
    """
    properties, names = _as_read(observed), recorded_tags(desired, observed, changes)
    found: list[Request] = []
    for group in _groups(changes):
        if group[0].field == NODE_IMAGE:
            found.append(Request("aks", UPGRADE_IMAGE, pool_path(desired.target.cluster, observed.name)))
            continue
        for change in group:
            _apply_of(change.field)(properties, change, desired.target.native)
        found.append(_put(desired.target.cluster, observed, properties, names))
    return tuple(found)


def translate_scale(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    """Return a pool another count, or an autoscaled one other bounds.

    The count of an autoscaled pool goes back as read: it is the autoscaler's, which brings it inside new bounds
    (Azure/AKS#1758), and a PUT without a count is refused (pulumi/pulumi-azure-native#2943).
    """
    bounds = {"minCount": nodes.minimum, "maxCount": nodes.maximum}
    return _put(cluster, observed, _as_read(observed) | (bounds if nodes.autoscaled else {"count": nodes.count}))


def translate_release(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """PUT the pool without our marks and their copy; nothing where it has neither."""
    properties = _as_read(observed)
    labels, tags = tree(properties, "nodeLabels"), tree(properties, "tags")
    kept = released_labels(observed)
    others = {key: value for key, value in tags.items() if not FORM.is_own(key)}
    if (kept, others) == (labels, tags):
        return ()
    return (_put(cluster, observed, {**properties, "nodeLabels": kept, **({"tags": others} if tags else {})}),)


def translate_copy(cluster: ClusterRef, observed: Observed) -> Request | None:
    """PUT the pool with the copy of its marks; None where it has this one, or its tags have no room for it."""
    request = _put(cluster, observed, _as_read(observed))
    sent = tree(request.params, "body", "properties", "tags")
    return None if observed.copied or sent == tree(_as_read(observed), "tags") else request


def translate_freeze(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Turn the autoscaler off, at the count that was read; None where it is off."""
    properties = _as_read(observed)
    if not properties.get("enableAutoScaling"):
        return None
    kept = {name: value for name, value in properties.items() if name not in ("minCount", "maxCount")}
    return _put(cluster, observed, kept | {"enableAutoScaling": False})


def translate_recreate(desired: Desired, observed: Observed) -> Request | None:
    """PUT a failed pool again, as read: AKS keeps it, and the same PUT reconciles it.

    Returns:
        None where it also differs in what pods would suffer from, or in what no PUT changes: that is not repaired in
        passing, it is an update or a new pool.
    """
    changes = diff_fields(desired.fields, observed.fields, observed.written)
    if any(find_row(change, observed).kind != "in-place" for change in changes):
        return None
    again = _put(desired.target.cluster, observed, _as_read(observed), recorded_tags(desired, observed, ()))
    return translate_updates(desired, observed, changes)[0] if changes else again


def _put(
    cluster: ClusterRef, observed: Observed, properties: Properties, declared: Collection[str] | None = None
) -> Request:
    """Put the pool, with the copy of its marks; `declared` are the names of the spec's tags, where there is one.

    A copy of the members is enough: `Apply` puts new values in their places and changes none.
    """
    sent = dict(properties)
    labels, read = tree(sent, "nodeLabels"), tree(sent, "tags")
    tags = with_copy(cluster, observed.name, labels, {key: str(value) for key, value in read.items()}, declared)
    body = {"properties": {**sent, "tags": tags} if tags or "tags" in sent else sent}
    return Request("aks", CREATE, {**pool_path(cluster, observed.name), "body": body, **etag_guard(observed)})


def _as_read(observed: Observed) -> Properties:
    """What goes back as it came; null and absent are one to AKS."""
    read = tree(observed.native, "properties")
    return {k: copy.deepcopy(v) for k, v in read.items() if k not in NOT_SENT and v is not None}


def _groups(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Put the changes into calls.

    Azure Container Linux boots securely only, and gets that in its own call (docs: aks/
    migrate-nodes-azure-container-linux).
    """
    image = next((change for change in changes if change.field == IMAGE), None)
    secure = image is not None and image.new == "AzureContainerLinux"
    beside = [change for change in changes if secure and change.field.is_below("aks", "securityProfile")]
    still = [change for change in changes if change.field not in ROLLING and change not in beside]
    if still:
        yield still
    for field in ROLLING:
        yield from ([change, *(beside if field == IMAGE else ())] for change in changes if change.field == field)


def _count(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """A count means no autoscaler; where the autoscaler takes over, the count stays as read.

    Bounds beside enableAutoScaling: false are refused, so they are left out (ksctl/ksctl#629).
    """
    if change.new is None:
        return
    properties["count"] = change.new
    if properties.get("enableAutoScaling"):
        properties["enableAutoScaling"] = False
        properties.pop("minCount", None)
        properties.pop("maxCount", None)


def _bound(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    name = {LEAST: "minCount", MOST: "maxCount"}[change.field]
    if change.new is None:
        properties.pop(name, None)
    else:
        properties |= {name: change.new, "enableAutoScaling": True}


def _label(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """AKS replaces the map whole, its own labels of Spot pools with it: everything read stays (Azure/AKS#3152)."""
    _set_entry(properties, "nodeLabels", change.field.key, change.new)


def _protection(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    _set_entry(properties, "nodeLabels", PROTECT_LABEL, "true" if change.new else None)


def _tag(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Azure compares names of tags without case, and refuses two that differ in nothing else."""
    key = change.field.key
    read = tree(properties, "tags")
    properties["tags"] = {k: v for k, v in read.items() if k.casefold() != key.casefold()}
    _set_entry(properties, "tags", key, change.new)


def _taints(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Replaced whole too; an empty list, not null, takes the last one away (az: --node-taints "" sends [])."""
    own = [str(taint) for taint in items(properties, "nodeTaints") if str(taint).startswith(_SYSTEM)]
    properties["nodeTaints"] = [*items(change.new), *own]


def _at_its_place(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """What the table gives one place on the wire: one member, the ones beside it stay as read."""
    *parents, leaf = (str(step) for step in _WIRE[change.field])
    for name in parents:
        properties[name] = inner = tree(properties, name)
        properties = inner
    if change.new is None:
        properties.pop(leaf, None)
    else:
        properties[leaf] = change.new


def _native(properties: Properties, change: Change, native: Mapping[str, object]) -> None:
    """Set one leaf, in the spelling of the spec: `Change` compares ARM ids without case and lists as tuples."""
    *parents, leaf = change.field[1:]
    for name in parents:
        inner = tree(properties, name)
        properties[name] = inner
        properties, native = inner, tree(native, name)
    properties[leaf] = copy.deepcopy(native[leaf])


_APPLY: Mapping[tuple[str, ...], Apply] = {
    COUNT: _count,
    ("nodes", "autoscaling"): _bound,
    ("labels",): _label,
    PROTECTION: _protection,
    ("tags",): _tag,
    TAINTS: _taints,
    ("aks",): _native,
}
"""A field, or a path above it -> how it enters the pool."""


_WIRE: Mapping[FieldPath, tuple[str | int, ...]] = {row.path: row.wire for row in BINDINGS if row.effect.call}


def _apply_of(field: FieldPath) -> Apply:
    for above, apply in _APPLY.items():
        if field.is_below(*above):
            return apply
    if field in _WIRE:
        return _at_its_place
    message = f"no call changes {field} of a live pool"
    raise LookupError(message)


def _set_entry(properties: Properties, name: str, key: str, value: object) -> None:
    entries = {k: v for k, v in tree(properties, name).items() if k != key}
    properties[name] = entries if value is None else dict(sorted({**entries, key: value}.items()))
