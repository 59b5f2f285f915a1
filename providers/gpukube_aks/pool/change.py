"""Changes of a live AKS pool -> the PUTs that make them.

In scope: merging changes into the pool as read, and grouping them into calls. Out of scope: the effect on the nodes
(`updates`), creating and deleting pools (`translate`).

AKS has no PATCH: every update is a PUT of the whole pool, as `az aks nodepool update` sends it. So the PUT returns
everything that was read, including unknown properties; only changed ones differ, and If-Match makes the PUT fail if
somebody else changed the pool in between (docs: aks/use-etags). No other state is kept between two calls: after a
killed run, the next one sees in the pool what is left to do. Every PUT includes the second copy of the ownership
labels.
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
"""Properties that a read returns and no PUT sends back -> why."""

_SYSTEM = "kubernetes.azure.com/"


def translate_updates(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Return the PUTs that make these changes, each built on the result of the one before.

    A change that rolls the nodes gets its own call, after everything else: AKS does not scale and upgrade at once
    (docs: aks/manage-node-pools), and upgrade settings must be in place before the upgrade starts.

    Raises:
        LookupError: No call can change one of the fields.
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
    """Return the PUT that sets a new count, or new bounds of an autoscaled pool.

    The count of an autoscaled pool is sent as read: the autoscaler manages it and moves it inside new bounds
    (Azure/AKS#1758), and AKS rejects a PUT without a count (pulumi/pulumi-azure-native#2943).
    """
    bounds = {"minCount": nodes.minimum, "maxCount": nodes.maximum}
    return _put(cluster, observed, _as_read(observed) | (bounds if nodes.autoscaled else {"count": nodes.count}))


def translate_release(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """Return the PUT that removes the ownership labels and their copy; nothing if the pool has neither."""
    properties = _as_read(observed)
    labels, tags = tree(properties, "nodeLabels"), tree(properties, "tags")
    kept = released_labels(observed)
    others = {key: value for key, value in tags.items() if not FORM.is_own(key)}
    if (kept, others) == (labels, tags):
        return ()
    return (_put(cluster, observed, {**properties, "nodeLabels": kept, **({"tags": others} if tags else {})}),)


def translate_copy(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the PUT that adds the copy of the labels; None if the pool has it, or its tags have no room for it."""
    request = _put(cluster, observed, _as_read(observed))
    sent = tree(request.params, "body", "properties", "tags")
    return None if observed.copied or sent == tree(_as_read(observed), "tags") else request


def translate_freeze(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the PUT that turns the autoscaler off, at the count that was read; None if it is off."""
    properties = _as_read(observed)
    if not properties.get("enableAutoScaling"):
        return None
    kept = {name: value for name, value in properties.items() if name not in ("minCount", "maxCount")}
    return _put(cluster, observed, kept | {"enableAutoScaling": False})


def translate_recreate(desired: Desired, observed: Observed) -> Request | None:
    """Return the PUT of a failed pool as read: AKS keeps the pool, and the same PUT reconciles it.

    Returns:
        None if the pool also differs in a field whose change disrupts pods or is not possible: that needs an update or
        a new pool, not a repair.
    """
    changes = diff_fields(desired.fields, observed.fields, observed.written)
    if any(find_row(change, observed).kind != "in-place" for change in changes):
        return None
    again = _put(desired.target.cluster, observed, _as_read(observed), recorded_tags(desired, observed, ()))
    return translate_updates(desired, observed, changes)[0] if changes else again


def _put(
    cluster: ClusterRef, observed: Observed, properties: Properties, declared: Collection[str] | None = None
) -> Request:
    """Return the PUT of the pool, with the copy of its labels; `declared` has the names of the spec's tags, if any.

    A shallow copy is enough: `Apply` replaces values and changes none.
    """
    sent = dict(properties)
    labels, read = tree(sent, "nodeLabels"), tree(sent, "tags")
    tags = with_copy(cluster, observed.name, labels, {key: str(value) for key, value in read.items()}, declared)
    body = {"properties": {**sent, "tags": tags} if tags or "tags" in sent else sent}
    return Request("aks", CREATE, {**pool_path(cluster, observed.name), "body": body, **etag_guard(observed)})


def _as_read(observed: Observed) -> Properties:
    """Return the properties to send back unchanged; to AKS null and absent are the same."""
    read = tree(observed.native, "properties")
    return {k: copy.deepcopy(v) for k, v in read.items() if k not in NOT_SENT and v is not None}


def _groups(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Group the changes into calls.

    Azure Container Linux requires Secure Boot, which is in the same call as the image (docs: aks/
    migrate-nodes-azure-container-linux).
    """
    image = next((change for change in changes if change.field == IMAGE), None)
    needs_secure_boot = image is not None and image.new == "AzureContainerLinux"
    with_image = [change for change in changes if needs_secure_boot and change.field.is_below("aks", "securityProfile")]
    rolling = [
        [change for change in changes if any(change.field.is_below(*field) for field in fields)] for fields in ROLLING
    ]
    in_place = [change for change in changes if change not in with_image and not any(change in one for one in rolling)]
    if in_place:
        yield in_place
    for group in filter(None, rolling):
        yield [*group, *(with_image if group[0].field == IMAGE else ())]


def _count(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Set a fixed count without autoscaler; if the autoscaler takes over, keep the count as read.

    AKS rejects bounds with enableAutoScaling: false, so they are removed (ksctl/ksctl#629).
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
    """Set one label and keep the rest: AKS replaces the whole map, even its own Spot labels (Azure/AKS#3152)."""
    _set_entry(properties, "nodeLabels", change.field.key, change.new)


def _protection(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    _set_entry(properties, "nodeLabels", PROTECT_LABEL, "true" if change.new else None)


def _tag(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Set one tag: Azure ignores case in tag names, and rejects two that differ only in case."""
    key = change.field.key
    read = tree(properties, "tags")
    properties["tags"] = {k: v for k, v in read.items() if k.casefold() != key.casefold()}
    _set_entry(properties, "tags", key, change.new)


def _taints(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Replace all taints; an empty list, not null, removes the last one (az: --node-taints "" sends [])."""
    own = [str(taint) for taint in items(properties, "nodeTaints") if str(taint).startswith(_SYSTEM)]
    properties["nodeTaints"] = [*items(change.new), *own]


def _at_its_place(properties: Properties, change: Change, _: Mapping[str, object]) -> None:
    """Set the one member on the wire that the table names; its siblings stay as read."""
    *parents, leaf = (str(step) for step in _WIRE[change.field])
    for name in parents:
        properties[name] = inner = tree(properties, name)
        properties = inner
    if change.new is None:
        properties.pop(leaf, None)
    else:
        properties[leaf] = change.new


def _native(properties: Properties, change: Change, native: Mapping[str, object]) -> None:
    """Set one leaf with the spec's own value: `Change` has ARM ids in lower case and lists as tuples."""
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
"""Field, or a parent path -> function that writes it into the pool."""


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
