"""Translates changes of a live node group to calls.

In scope: calls, their order and content, and the live values that each is based on. Out of scope: sending them
(`live.client`), the effect of a change on pods (`updates`), a launch template's data (`template`).

EKS accepts deltas, so a call contains only what changes. For structures (updateConfig, nodeRepairConfig) it contains
the live one with the changes merged in, because the effect of omitted members is not documented. There is no etag:
every request records, under `expects`, the live values that it is based on, and is not sent if they have changed
since (`require_unmoved`).

Order: tags, then configuration, then version, so that a new updateConfig applies to the nodes that the version
replaces, and nodes that a smaller size removes are not replaced first. EKS does not accept configuration and version in
one call, nor any other call while one runs (eksctl-io/eksctl#2565).

The first call of a change also contains the tag copy of gpukube's labels (`copy`) if the live one is missing or
outdated: an outdated copy alone causes no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.binding import ANY
from gpukube.core.fields import KUBERNETES_VERSION, PLACEMENT, PROTECTION, TAINTS, FieldPath, tag
from gpukube.core.jsontree import at, texts, tree, trees
from gpukube.core.marks import recorded_tags, released_labels
from gpukube.core.values import MARKS, PROTECT_LABEL, Change, Nodes, Request
from gpukube.errors import SpecError
from gpukube_eks.facts.images import CUSTOM
from gpukube_eks.facts.meanings import busy
from gpukube_eks.pool.fields import (
    BINDINGS,
    RESOURCE_FIELD,
    RESOURCE_TAG,
    TAG,
    UNTAG,
    UPDATE_CONFIG,
    UPDATE_VERSION,
    native_taint,
)
from gpukube_eks.pool.launch import TOPS
from gpukube_eks.pool.marks import FORM, outdated_copy, scaled_copy
from gpukube_eks.pool.native import EXCLUSIVE
from gpukube_eks.pool.observe import STATES, health_of
from gpukube_eks.pool.own_image import changes_joining, joins_by_gpukube
from gpukube_eks.pool.refusals import moved, unchangeable
from gpukube_eks.pool.renewing import RELEASE
from gpukube_eks.pool.template import changed_data, template_name
from gpukube_eks.pool.translate import template_data
from gpukube_eks.pool.upgrades import upgrade_members

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.values import ClusterRef, Desired, Observed, Taint, Target
    from gpukube_eks.pool.marks import Outdated

_SIZES: Final = ("minSize", "maxSize", "desiredSize")
_BY_TEMPLATE: Final = tuple(
    tuple(step for step in row.path if step != ANY)
    for row in BINDINGS
    if row.effect.call == UPDATE_VERSION and row.path != KUBERNETES_VERSION
) + tuple(("eks", name) for name in sorted(TOPS))
"""Fields that a new version of the launch template changes."""
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "updateConfig": ("upgrade",),
    "nodeRepairConfig": ("eks", "nodeRepairConfig"),
}
"""Structure that is sent as a whole -> path above its fields."""

Json = Mapping[str, object]


def translate_changes(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Return the calls for changes in place, in the order that EKS requires.

    Args:
        desired: What is declared.
        observed: The live group.
        changes: In-place and disruptive ones; others are omitted.

    Raises:
        SpecError: Nodes would have to be replaced in a Capacity Block that is in use.
    """
    cluster = desired.target.cluster
    made = [*_tag_requests(cluster, observed, changes)]
    made += _config_requests(desired, observed, changes)
    made += _version_requests(desired, observed, changes)
    names = recorded_tags(desired, observed, changes)
    tags = texts(observed.native, "tags")
    return _with_copy(made, observed, outdated_copy(desired.target, observed.name, tags, names))


def translate_scale(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    """Return the call that sets a group's size or bounds."""
    live = tree(observed.native, "scalingConfig")
    found = _scaling(nodes, live) or {name: live[name] for name in ("minSize", "maxSize") if name in live}
    request = _config(cluster, observed, {"scalingConfig": found}, {"scalingConfig": _sizes_read(found, live)})
    return _with_copy([request], observed, scaled_copy(cluster, observed, texts(observed.native, "tags")))[0]


def translate_release(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """Return the calls that remove gpukube's labels and tags: tags first, since the labels establish ownership."""
    tags = sorted(key for key in texts(observed.native, "tags") if FORM.is_own(key))
    labels = [key for key in MARKS if key in observed.labels]
    given = {key: value for key, value in released_labels(observed).items() if observed.labels.get(key) != value}
    made = [*_tag_requests(cluster, observed, [Change(tag(key), None, None) for key in tags])]
    if labels:
        delta: dict[str, object] = {"addOrUpdateLabels": given} if given else {}
        read = {"labels": {key: observed.labels.get(key) for key in (*labels, *given)}}
        request = _config(cluster, observed, {"labels": {**delta, "removeLabels": labels}}, read)
        name = template_name(cluster.name, observed.name)
        if at(observed.native, "launchTemplate", "name") == name:
            request = replace(request, params={**request.params, "releasedTemplate": {"LaunchTemplateName": name}})
        made.append(request)
    return tuple(made)


def translate_copy(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that tags a group with the copy of its gpukube.io labels; None if the copy is current."""
    given, _ = scaled_copy(cluster, observed, texts(observed.native, "tags"))
    if observed.copied or not given:
        return None
    return next(_tag_requests(cluster, observed, [Change(tag(key), None, value) for key, value in given.items()]))


def translate_freeze(cluster: ClusterRef, observed: Observed) -> Request | None:
    """Return the call that sets both bounds to the live size; None if they already are."""
    live = tree(observed.native, "scalingConfig")
    size = live.get("desiredSize")
    if not isinstance(size, int) or not _scaling(fixed := Nodes(size, size, size, autoscaled=False), live):
        return None
    return translate_scale(cluster, observed, fixed)


def _with_copy(made: Sequence[Request], observed: Observed, outdated: Outdated) -> tuple[Request, ...]:
    """Add the copy of gpukube's labels to the first call."""
    given, gone = outdated
    if not made or not (given or gone):
        return tuple(made)
    copy: dict[str, object] = {"resourceArn": str(observed.native.get("nodegroupArn") or "")}
    copy |= {"tags": given} if given else {}
    copy |= {"tagKeys": list(gone)} if gone else {}
    return replace(made[0], params={**made[0].params, "copy": copy}), *made[1:]


def require_unmoved(request: Request, group: Json | None, where: str) -> None:
    """Raise if the group differs from what the change is based on, or if EKS is already changing it.

    Args:
        request: From `translate_changes` or `translate_scale`.
        group: As DescribeNodegroup returns it just before the call; None if it does not exist.
        where: The pool, for errors.

    Raises:
        Conflict: With code MOVED or BUSY.
        CloudError: The group failed: it must be deleted.
    """
    if group is None:
        raise moved(("it is gone",), where)
    status = str(group.get("status") or "Unknown")
    if request.operation in (UPDATE_CONFIG, UPDATE_VERSION) and (state := STATES.get(status, "busy")) != "ready":
        raise unchangeable(status, health_of(group), where) if state == "failed" else busy(status, where)
    scaling = tree(request.params, "nodegroup", "scalingConfig")
    taints = trees(group, "taints")
    live: dict[str, object] = {
        **group,
        "taints": {f"{taint.get('key')}:{taint.get('effect')}": str(taint.get("value") or "") for taint in taints},
    }
    parts = tuple(
        part if name == "" else f"{part}[{name}]"
        for part, values in tree(request.params, "expects").items()
        for name, value in _pairs(part, values)
        if (live.get(part) if name == "" else tree(live, part).get(name)) != value
    )
    if parts or (scaling and _outgrown(scaling, group)):
        raise moved(parts or ("scalingConfig[desiredSize]",), where)


def _outgrown(scaling: Json, group: Json) -> bool:
    """Return whether new bounds exclude the live size; EKS rejects them without a new size."""
    sizes = {**tree(group, "scalingConfig"), **scaling}
    least, most, desired = (sizes.get(name) for name in _SIZES)
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(desired, int)):
        return False
    return not least <= desired <= most


def _pairs(part: str, values: object) -> Iterator[tuple[str, object]]:
    """Return the values to compare: each label, tag, taint, and size; a structure as a whole."""
    if part in ("labels", "tags", "taints", "scalingConfig", "launchTemplate") and isinstance(values, Mapping):
        yield from values.items()
    else:
        yield "", values


# Tags


def _tag_requests(cluster: ClusterRef, observed: Observed, changes: Sequence[Change]) -> Iterator[Request]:
    desired = {key: change.new for change in changes if (key := _tag_of(change.field))}
    gone = sorted(key for key, value in desired.items() if value is None)
    given = {key: str(value) for key, value in sorted(desired.items()) if value is not None}
    arn, live = str(observed.native.get("nodegroupArn") or ""), tree(observed.native, "tags")
    for operation, keys, members in ((UNTAG, gone, {"tagKeys": gone}), (TAG, [*given], {"tags": given})):
        if keys:
            params = {
                "nodegroup": _path(cluster, observed),
                "resource": {"resourceArn": arn, **members},
                "expects": {"tags": {key: live.get(key) for key in keys}},
            }
            yield Request("eks", operation, params)


def _tag_of(field: FieldPath) -> str:
    """Return the key of a field's tag; "" for none."""
    if field.is_below(*RESOURCE_FIELD):
        return f"{RESOURCE_TAG}{field.key}"
    return field.key if field.is_below("tags") else ""


# Configuration


def _config_requests(desired: Desired, observed: Observed, changes: Sequence[Change]) -> Iterator[Request]:
    body: dict[str, object] = {}
    expects: dict[str, object] = {}
    fields = {change.field for change in changes}
    parts = [_labels(observed, changes)]
    parts += [_taints(desired, observed)] if TAINTS in fields else []
    if any(field.is_below("nodes") and not _tag_of(field) for field in fields):
        live = tree(observed.native, "scalingConfig")
        sizes = _scaling(desired.target.nodes, live)
        parts.append(({"scalingConfig": sizes}, {"scalingConfig": _sizes_read(sizes, live)}) if sizes else ({}, {}))
    parts += [_structure(name, desired, observed) for name, above in _PARTS.items() if _has(fields, above)]
    for members, read in parts:
        body |= members
        expects |= read
    if body:
        yield _config(desired.target.cluster, observed, body, expects)


def _config(cluster: ClusterRef, observed: Observed, body: Json, expects: Json) -> Request:
    group = {**_path(cluster, observed), **body}
    return Request("eks", UPDATE_CONFIG, {"nodegroup": group, "expects": dict(expects)})


def _labels(observed: Observed, changes: Sequence[Change]) -> tuple[dict[str, object], dict[str, object]]:
    desired = {change.field.key: change.new for change in changes if change.field.is_below("labels")}
    for change in changes:
        if change.field == PROTECTION:
            desired[PROTECT_LABEL] = "true" if change.new else None
    if not desired:
        return {}, {}
    gone = sorted(key for key, value in desired.items() if value is None and key in observed.labels)
    given = {key: str(value) for key, value in sorted(desired.items()) if value is not None}
    delta: dict[str, object] = {"addOrUpdateLabels": given} if given else {}
    delta |= {"removeLabels": gone} if gone else {}
    return {"labels": delta}, {"labels": {key: observed.labels.get(key) for key in sorted(desired)}}


def _taints(desired: Desired, observed: Observed) -> tuple[dict[str, object], dict[str, object]]:
    """Return changed taints; key and effect identify one, so another value is an update (as in Terraform)."""
    expected = {_identity(taint): taint for taint in desired.target.taints}
    live = {_identity(taint): taint for taint in observed.effective_taints}
    given = [taint for identity, taint in sorted(expected.items()) if live.get(identity) != taint]
    gone = [taint for identity, taint in sorted(live.items()) if identity not in expected]
    delta: dict[str, object] = {"addOrUpdateTaints": [native_taint(taint) for taint in given]} if given else {}
    delta |= {"removeTaints": [native_taint(taint) for taint in gone]} if gone else {}
    read = {_identity(t): live[_identity(t)].value if _identity(t) in live else None for t in (*given, *gone)}
    return ({"taints": delta}, {"taints": read}) if delta else ({}, {})


def _identity(taint: Taint) -> str:
    return f"{taint.key}:{native_taint(taint)['effect']}"


def _scaling(nodes: Nodes, live: Json) -> dict[str, object]:
    """Return the sizes that must be sent.

    The autoscaler owns the size itself: for an autoscaled group it is sent only if it is outside the new bounds,
    because EKS would reject them (terraform-aws-modules/terraform-aws-eks#748).
    """
    # EKS requires a maxSize of at least 1, even for an empty group (botocore eks NodegroupScalingConfig).
    expected = {"minSize": nodes.minimum, "maxSize": max(1, nodes.maximum), "desiredSize": nodes.count}
    if nodes.autoscaled:
        least, most, desired = nodes.minimum, max(1, nodes.maximum), live.get("desiredSize")
        expected["desiredSize"] = min(max(desired, least), most) if isinstance(desired, int) else least
    return {name: value for name, value in expected.items() if live.get(name) != value}


def _sizes_read(sent: Json, live: Json) -> dict[str, object]:
    """Return the live sizes to compare: bounds, and the size only if it is sent; the autoscaler may change it."""
    return {name: live.get(name) for name in _SIZES if name != "desiredSize" or name in sent}


def _structure(name: str, desired: Desired, observed: Observed) -> tuple[dict[str, object], dict[str, object]]:
    target = desired.target
    given = upgrade_members(target) if name == "updateConfig" else tree(target.native, name)
    live = tree(observed.native, name)
    shut = {f"{name}.{key}" for key in given}
    excluded = {other for pair in EXCLUSIVE for one, other in (pair, pair[::-1]) if one in shut}
    kept = {key: value for key, value in live.items() if f"{name}.{key}" not in excluded and value is not None}
    return {name: {**kept, **given}}, {name: observed.native.get(name)}


# Version


def _require_empty_block(target: Target, observed: Observed) -> None:
    live = tree(observed.native, "scalingConfig")
    if size := {**live, **_scaling(target.nodes, live)}.get("desiredSize"):
        raise SpecError(
            f"{target.where}: this change needs new nodes, but EKS does not replace nodes of a Capacity Block in use",
            where=target.locator.at("capacity.reserved.eks.capacityBlock"),
            fix="apply nodes: {count: 0} with this change, then the old count; or undo the change",
            why=f"the size of the node group must be 0; it is {size} (docs: eks/capacity-blocks-mng)",
            code="block-in-use",
        )


def _version_requests(desired: Desired, observed: Observed, changes: Sequence[Change]) -> Iterator[Request]:
    """Return the calls that replace nodes: with a new launch template version, another release, or both.

    EKS defaults to the newest release, and even to the newest Kubernetes version (botocore eks
    UpdateNodegroupVersionRequest). So values that must not change are always sent.
    """
    fields = {change.field for change in changes}
    remade, upgraded = _has(fields, *_BY_TEMPLATE), KUBERNETES_VERSION in fields
    remade |= joins_by_gpukube(observed) and changes_joining(fields)
    if not remade and not upgraded and RELEASE not in fields:
        return
    if observed.native.get("capacityType") == "CAPACITY_BLOCK":
        _require_empty_block(desired.target, observed)
    native, template = observed.native, tree(observed.native, "launchTemplate")
    group: dict[str, object] = dict(_path(desired.target.cluster, observed))
    if native.get("amiType") != CUSTOM:
        # The live release belongs to the live version: another version gets its newest, unless the spec names one.
        release = desired.target.native.get("releaseVersion") or (None if upgraded else native.get("releaseVersion"))
        group["version"] = desired.target.kubernetes_version if upgraded else native.get("version")
        group |= {"releaseVersion": release} if release else {}
    params: dict[str, object] = {}
    if remade or template:
        version = {} if remade else {"version": template.get("version")}
        group["launchTemplate"] = {"id": template.get("id"), **version}
    if remade:
        params["launchTemplate"] = {
            "LaunchTemplateId": template.get("id"),
            "SourceVersion": template.get("version"),
            "LaunchTemplateData": changed_data(desired.target, observed, fields, template_data(desired)),
        }
        if PLACEMENT in fields and (own := desired.create.params.get("placementGroup")):
            params["placementGroup"] = own
    expects = {name: native.get(name) for name in ("version", "releaseVersion")}
    read = {"launchTemplate": {key: template.get(key) for key in ("id", "version")}}
    yield Request("eks", UPDATE_VERSION, {**params, "nodegroup": group, "expects": {**expects, **read}})


def _path(cluster: ClusterRef, observed: Observed) -> dict[str, object]:
    return {"clusterName": cluster.name, "nodegroupName": observed.name}


def _has(fields: set[FieldPath], *groups: tuple[str, ...]) -> bool:
    return any(field.is_below(*above) for field in fields for above in groups)
