"""Converts a pool between gpukube's comparable fields and Nimbus's API. Pure.

The API's body: name, machine, size or autoscale, labels, taints, tags, mig, and rack, the only native field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from gpukube.core.fields import COUNT, INSTANCE_TYPE, LEAST, MIG_PROFILE, MOST, TAINTS, FieldPath, label, tag
from gpukube.core.managers import Sign, find_managers
from gpukube.core.marks import CopyForm, recorded_tags, released_labels
from gpukube.core.provider_parts import PoolRequests
from gpukube.core.values import (
    OWNER_LABEL,
    POOL_LABEL,
    PROTECT_LABEL,
    Desired,
    Nodes,
    Observed,
    Request,
    Taint,
    UpdateRow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.managers import Manager
    from gpukube.core.values import Change, ClusterRef, Ownership, PoolState, Promise, Target

SOURCE: Final = "docs: nimbus.example/api/pools"
NATIVE: Final = ("rack",)
COPY: Final = CopyForm("gpukube.io/", 200, re.compile(r"[\x20-\x7e]*"))
"""Form of the copy of gpukube's labels in the tags: labels can be replaced as a whole, and would be lost."""
STATES: Final[Mapping[str, PoolState]] = {
    "ACTIVE": "ready", "CREATING": "busy", "UPDATING": "busy", "FAILED": "failed", "DELETING": "deleting",
}  # fmt: skip


def place_of(cluster: ClusterRef, pool: str) -> str:
    """Return a pool's place, so that a tag copied to another pool proves nothing."""
    return f"{cluster.identity['site']}/{cluster.name}/{pool}"


def request_for(cluster: ClusterRef, operation: str, **params: object) -> Request:
    """Return a request: the method of the API's client, and its arguments."""
    return Request("nimbus", operation, {"site": cluster.identity["site"], "cluster": cluster.name, **params})


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target."""
    labels = {**target.labels, **ownership.labels, OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    marks = COPY.copy_of(target.owner, target.pool, protected=target.protect)
    body: dict[str, object] = {
        "name": target.name,
        "machine": target.machine.name,
        **_size(target.nodes),
        "labels": labels,
        "taints": sorted(str(taint) for taint in target.taints),
        "tags": {**target.tags, **COPY.tags(marks, place_of(target.cluster, target.name), target.tags)},
        **({"mig": target.sharing.mig.profile} if target.sharing.mig else {}),
        **target.native,
    }
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=_fields(body),
        labels=labels,
        effective_taints=target.taints,
        create=request_for(target.cluster, "create_pool", body=body),
        copy=marks,
    )


def observe_pool(cluster: ClusterRef, body: Mapping[str, object]) -> Observed:
    """Read a live pool."""
    labels, tags = _texts(body["labels"]), _texts(body["tags"])
    name, status = str(body["name"]), str(body["state"])
    copy = COPY.read(tags, place_of(cluster, name))
    lost = copy is not None and not labels.get(OWNER_LABEL)
    return Observed(
        name=name,
        owner=labels.get(OWNER_LABEL, ""),
        pool=labels.get(POOL_LABEL, ""),
        protected=labels.get(PROTECT_LABEL) == "true" or lost,
        state=STATES.get(status, "busy"),
        status=status,
        failure=str(body.get("error", "")),
        fields=_fields(body),
        nodes=cast("int", body["nodes"]),
        labels=labels,
        effective_taints=tuple(map(Taint.parse, cast("Sequence[str]", body["taints"]))),
        instance_type=str(body["machine"]),
        etag=str(body["version"]),
        native=body,
        copy=copy,
        copied=COPY.is_copied(tags, place_of(cluster, name)),
        written=frozenset(tag(key) for key in COPY.written(tags, place_of(cluster, name))),
    )


def find_row(change: Change) -> UpdateRow:
    """Return the effect of changing a field: labels, tags, taints, and size in place, the rest only at creation."""
    if change.field[0] in ("labels", "tags", "taints", "nodes"):
        return UpdateRow(change.field, "in-place", "Nimbus changes it at once", "update_pool", SOURCE)
    return UpdateRow(change.field, "replace", "Nimbus sets it only at creation", "", SOURCE)


def update_pool(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Return one call for all changes; null removes a value, and the version guards the call."""
    target = desired.target
    patch: dict[str, object] = {}
    labels: dict[str, object] = {}
    tags: dict[str, object] = {}
    for change in changes:
        if change.field.is_below("labels"):
            labels[change.field.key] = change.new
        elif change.field.is_below("tags"):
            tags[change.field.key] = change.new
        elif change.field == TAINTS:
            patch["taints"] = [str(taint) for taint in sorted(target.taints)]
        else:
            patch |= {"size": None, "autoscale": None} | _size(target.nodes)
    if desired.copy is not None:
        names = recorded_tags(desired, observed, changes)
        copy = COPY.tags(desired.copy, place_of(target.cluster, observed.name), names)
        given, gone = COPY.outdated(_texts(observed.native["tags"]), copy)
        tags |= {**given, **dict.fromkeys(gone)}
    patch |= {"labels": labels} if labels else {}
    patch |= {"tags": tags} if tags else {}
    return (request_for(target.cluster, "update_pool", name=observed.name, patch=patch, version=observed.etag),)


def scale_pool(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    """Return the call that sets size or bounds."""
    return request_for(cluster, "update_pool", name=observed.name, patch=_size(nodes), version=observed.etag)


def write_copy(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that copies gpukube's labels to the tags; None if the copy exists."""
    if observed.copy or not (observed.owner and observed.pool):
        return None
    marks = COPY.copy_of(observed.owner, observed.pool, protected=observed.protected)
    patch = {"tags": COPY.tags(marks, place_of(cluster, observed.name))}
    return request_for(cluster, "update_pool", name=observed.name, patch=patch, version=observed.etag)


def release_pool(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """Return the call that removes gpukube's labels and their copy; empty if there are none."""
    kept = released_labels(observed)
    labels: dict[str, str | None] = {key: None for key in observed.labels if key not in kept}
    labels |= {key: value for key, value in kept.items() if observed.labels.get(key) != value}
    tags = {key: None for key in _texts(observed.native["tags"]) if COPY.is_own(key)}
    if not labels and not tags:
        return ()
    patch = {"labels": labels, "tags": tags}
    return (request_for(cluster, "update_pool", name=observed.name, patch=patch, version=observed.etag),)


def chosen_fields(observed: Observed) -> Mapping[FieldPath, object]:
    """Return the fields without the tag that Nimbus sets on every pool."""
    return {path: value for path, value in observed.fields.items() if path != tag("made-by")}


def find_templates(observed: Observed) -> tuple[Manager, ...]:
    """Return the template that created a pool."""
    sign = Sign("Nimbus templates", "nimbus-template", "docs: nimbus.example/templates")
    return find_managers("tag", _texts(observed.native["tags"]), [sign])


def freeze_pool(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that fixes the size; None if it is already fixed."""
    count = observed.nodes or 0
    if MOST not in observed.fields or observed.fields[LEAST] == observed.fields[MOST] == count:
        return None
    return scale_pool(cluster, observed, Nodes(count, count, count, autoscaled=True))


def delete_pool(cluster: ClusterRef, observed: Observed) -> Request:
    """Return the call that deletes a pool by name."""
    return request_for(cluster, "delete_pool", name=observed.name)


REQUESTS: Final = PoolRequests(
    delete=delete_pool,
    update=update_pool,
    scale=scale_pool,
    release=release_pool,
    copy=write_copy,
    freeze=freeze_pool,
)
"""Nimbus's requests. No `recreate`: a failed pool must be deleted first. No `follow_up`: the creation is complete."""


def _size(nodes: Nodes) -> dict[str, object]:
    if nodes.autoscaled:
        return {"autoscale": {"min": nodes.minimum, "max": nodes.maximum, "initial": nodes.count}}
    return {"size": nodes.count}


def _fields(body: Mapping[str, object]) -> dict[FieldPath, object]:
    """Flatten a declared or live body to comparable fields, without gpukube's own tags."""
    fields: dict[FieldPath, object] = {INSTANCE_TYPE: body["machine"], TAINTS: tuple(cast("list[str]", body["taints"]))}
    fields |= {label(key): value for key, value in _texts(body["labels"]).items()}
    fields |= {tag(key): value for key, value in _texts(body["tags"]).items() if not COPY.is_own(key)}
    fields |= {FieldPath("nimbus", key): body[key] for key in NATIVE if key in body}
    if "mig" in body:
        fields[MIG_PROFILE] = body["mig"]
    if isinstance(bounds := body.get("autoscale"), dict):
        fields |= {LEAST: bounds["min"], MOST: bounds["max"]}
    else:
        fields[COUNT] = body["size"]
    return fields


def _texts(node: object) -> dict[str, str]:
    return dict(cast("Mapping[str, str]", node))
