"""Translates changes of a live pool into in-place update calls.

In scope: which changes share a call, its content, and the order of the calls. Out of scope: the effect of a change
(`updates`), sizes (`sizes`), sending.

Each UpdateNodePool call carries one group of attributes, as gcloud and Terraform send it: with zones in the request,
other changes apply only to new nodes (google.container.v1 UpdateNodePoolRequest.locations), and accelerators must not
be in a request for something else (hashicorp/terraform-provider-google#14800). Labels, taints, network tags, and
resource labels are replaced as whole sets, so each call sends the live set with the changes merged in, guarded by the
etag.

Order: metadata-only changes, protection first; how nodes are replaced, before changes that replace them; zones, because
sizes are per zone; sizes last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import (
    DISK_IOPS,
    DISK_SIZE,
    DISK_THROUGHPUT,
    DISK_TYPE,
    DRIVER,
    DRIVER_VERSION,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    PROTECTION,
    TAINTS,
    ZONES,
    FieldPath,
)
from gpukube.core.jsontree import merged, texts, tree
from gpukube.core.marks import recorded_tags, released_labels
from gpukube.core.values import PROTECT_LABEL, Change, Desired, Observed, Request
from gpukube_gke.facts.places import pool_name
from gpukube_gke.pool.effects import UPDATE
from gpukube_gke.pool.fields import LATEST, zones_of
from gpukube_gke.pool.marks import recorded
from gpukube_gke.pool.members import RIVALS, nested
from gpukube_gke.pool.native import native_path
from gpukube_gke.pool.sizes import autoscale_request, is_autoscaled, live_message, resize_request, size_of
from gpukube_gke.pool.taints import in_class, merged_taints

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Nodes

MANAGE: Final = "set_node_pool_management"
_SERVICE_TAGS: Final = "goog-"
"""Prefix of resource labels that only Google may write."""
_POLICY: Final = native_path("autoscaling.locationPolicy")


@dataclass(frozen=True, slots=True)
class _Edit:
    """The input of the functions that build calls."""

    desired: Desired
    observed: Observed
    changes: Mapping[FieldPath, Change]

    @property
    def cluster(self) -> ClusterRef:
        return self.desired.target.cluster

    @property
    def config(self) -> Mapping[str, object]:
        """The live node config."""
        return live_message(self.observed, "config")

    def has(self, *groups: tuple[str, ...]) -> bool:
        """Whether a field changes that is, or is below, one of these paths."""
        return any(path.is_below(*above) for path in self.changes for above in groups)

    def below(self, *above: str) -> dict[tuple[str, ...], object]:
        """Return the new values of the fields below a path, by the rest of their paths."""
        return {path[len(above) :]: change.new for path, change in self.changes.items() if path.is_below(*above)}

    def changed(self, message: str) -> dict[str, object]:
        """Return the changed native members of a message."""
        found: dict[str, object] = {}
        for path, value in self.below("gke", message).items():
            found = merged(found, nested(path, value))
        return found

    def sent(self, *message: str) -> dict[str, object]:
        """Return a message as a create request would set it."""
        return tree(self.desired.create.params, "nodePool", *message)

    def new(self, field: FieldPath) -> object:
        return self.changes[field].new

    def update(self, **body: object) -> Request:
        """Return an UpdateNodePool request with this body, for the pool as it was read."""
        return Request("gke", UPDATE, {"name": self._name, **body, **self._guard})

    def manage(self, body: Mapping[str, object]) -> Request:
        return Request("gke", MANAGE, {"name": self._name, "management": dict(body), **self._guard})

    @property
    def _name(self) -> str:
        return pool_name(self.cluster, self.observed.name)

    @property
    def _guard(self) -> dict[str, object]:
        return {"etag": self.observed.etag} if self.observed.etag else {}


def update_pool(desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
    """Return the calls for these changes, in the order in which they must be sent.

    Raises:
        SpecError: The declared size is not divisible by the live zones, which the spec leaves open.
    """
    edit = _Edit(desired, observed, {change.field: change for change in changes})
    return tuple(request for groups, build in _CALLS if edit.has(*groups) for request in build(edit))


def scale_pool(cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
    """Return the call that changes the size or the bounds of a live pool.

    Raises:
        SpecError: A number is not divisible by the zones of the pool.
    """
    if nodes.autoscaled:
        return autoscale_request(cluster, observed, nodes)
    return resize_request(cluster, observed, nodes.count)


def release_pool(cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
    """Remove gpukube's labels. The copy in the resource labels stays: changing those recreates every node."""
    kept = released_labels(observed)
    if kept == observed.labels:
        return ()
    guard = {"etag": observed.etag} if observed.etag else {}
    body = {"labels": {"labels": dict(sorted(kept.items()))}}
    return (Request("gke", UPDATE, {"name": pool_name(cluster, observed.name), **body, **guard}),)


def _manage(edit: _Edit) -> list[Request]:
    """Build the whole message, since GKE replaces it: the unchanged flag is sent again."""
    live = live_message(edit.observed, "management")
    flags = {flag: bool(live.get(flag)) for flag in ("autoUpgrade", "autoRepair")}
    return [edit.manage(flags | _members(edit, *_MANAGEMENT))]


def _label(edit: _Edit) -> list[Request]:
    labels = dict(edit.observed.labels)
    for (key,), value in edit.below("labels").items():
        _put(labels, key, value)
    if PROTECTION in edit.changes:
        _put(labels, PROTECT_LABEL, "true" if edit.new(PROTECTION) else None)
    return [edit.update(labels={"labels": dict(sorted(labels.items()))})]


def _taint(edit: _Edit) -> list[Request]:
    taints = merged_taints(edit.observed.effective_taints, in_class(edit.desired.target).taints)
    return [edit.update(taints={"taints": taints})]


def _tag(edit: _Edit) -> list[Request]:
    """Build the resource labels without Google's, which it keeps on its own and accepts from nobody.

    The copy of gpukube's marks stays as written at creation; only its record of the spec's tags is updated.
    """
    live = texts(edit.config, "resourceLabels")
    tags = {key: value for key, value in live.items() if not key.startswith(_SERVICE_TAGS)}
    for (key,), value in edit.below("tags").items():
        _put(tags, key, value)
    tags = recorded(tags, recorded_tags(edit.desired, edit.observed, tuple(edit.changes.values())))
    return [edit.update(resourceLabels={"labels": dict(sorted(tags.items()))})]


def _put(labels: dict[str, str], key: str, value: object) -> None:
    if value is None:
        labels.pop(key, None)
    else:
        labels[key] = str(value)


def _accelerate(edit: _Edit) -> list[Request]:
    """Build the live accelerator with the changes; type and count stay, since GKE refuses others."""
    live = tree(edit.config, "accelerators", 0)
    expected = tree(edit.desired.create.params, "nodePool", "config", "accelerators", 0)
    if edit.has(("sharing",)):
        live = _with(live, "gpuSharingConfig", expected)
    if edit.has(DRIVER):
        live = _with(live, "gpuDriverInstallationConfig", expected)
    return [edit.update(accelerators=[live])]


def _with(live: Mapping[str, object], part: str, desired: Mapping[str, object]) -> dict[str, object]:
    kept = {name: value for name, value in live.items() if name != part}
    return kept | ({part: desired[part]} if part in desired else {})


def _migrate(edit: _Edit) -> list[Request]:
    body: dict[str, object] = {}
    if edit.has(DISK_IOPS, DISK_THROUGHPUT):
        body["bootDisk"] = merged(tree(edit.config, "bootDisk"), edit.sent("config", "bootDisk"))
    for field, name in ((INSTANCE_TYPE, "machineType"), (DISK_TYPE, "diskType"), (DISK_SIZE, "diskSizeGb")):
        if field in edit.changes:
            value = edit.new(field)
            body[name] = str(value) if name == "diskSizeGb" else value  # 64-bit numbers are strings
    return [edit.update(**body)]


def _upgrade(edit: _Edit) -> list[Request]:
    """Build both, which are required together (google.container.v1); without a version GKE might use the newest."""
    live = {"imageType": edit.config.get("imageType"), "nodeVersion": edit.observed.native.get("version")}
    changed = {IMAGE: "imageType", KUBERNETES_VERSION: "nodeVersion"}
    body = live | {name: edit.new(field) for field, name in changed.items() if field in edit.changes}
    return [edit.update(**{name: value for name, value in body.items() if value})]


_ACCELERATORS: Final = (("sharing",), DRIVER)
_SYSTEM: Final = (IMAGE, KUBERNETES_VERSION)


def _renew(edit: _Edit) -> list[Request]:
    """The latest driver requires Container-Optimized OS: set it after that image, and drop it before another image."""
    calls = [
        *(_accelerate(edit) if edit.has(*_ACCELERATORS) else ()),
        *(_upgrade(edit) if edit.has(*_SYSTEM) else ()),
    ]
    newest = edit.changes.get(DRIVER_VERSION)
    return calls[::-1] if newest and newest.new == LATEST else calls


def _pace(edit: _Edit) -> list[Request]:
    live, numbers = live_message(edit.observed, "upgradeSettings"), _members(edit, "upgrade")
    return [edit.update(upgradeSettings=_merged({**live, **numbers}, edit.changed("upgradeSettings")))]


def _move(edit: _Edit) -> list[Request]:
    return [edit.update(locations=_zones(edit))]


def _zones(edit: _Edit) -> list[str]:
    """Return the zones that the pool will have."""
    desired = edit.new(ZONES) if ZONES in edit.changes else None
    return [str(zone) for zone in desired] if isinstance(desired, tuple) else list(zones_of(edit.observed.native))


def _resize(edit: _Edit) -> list[Request]:
    """Sizes follow zones: with other zones, the same total is a different number per zone."""
    zones = len(_zones(edit))
    if not edit.desired.target.nodes.autoscaled:
        return _fix_size(edit, zones)
    policy = edit.new(_POLICY) if _POLICY in edit.changes else None
    call = autoscale_request(edit.cluster, edit.observed, edit.desired.target.nodes, zones=zones, policy=policy)
    live, expected = live_message(edit.observed, "autoscaling"), call.params["autoscaling"]
    is_same = isinstance(expected, Mapping) and all(live.get(name, 0) == value for name, value in expected.items())
    return [] if is_same else [call]


def _fix_size(edit: _Edit, zones: int) -> list[Request]:
    """Turn the autoscaler off first: while it is on, a size that is set is only its starting point."""
    size = resize_request(edit.cluster, edit.observed, edit.desired.target.nodes.count, zones)
    if is_autoscaled(edit.observed):
        return [autoscale_request(edit.cluster, edit.observed, None), size]
    return [] if size.params["nodeCount"] == size_of(edit.observed) else [size]


def _members(edit: _Edit, *message: str) -> dict[str, object]:
    """Return the changed fields of a message, by name."""
    return {name: value for (name,), value in edit.below(*message).items()}


def _message(path: FieldPath, field: str) -> Callable[[_Edit], list[Request]]:
    """Return a builder for a native message that is sent with only its changes."""
    return lambda edit: [edit.update(**{field: _members(edit, *path)})]


def _whole(field: str, *parents: str) -> Callable[[_Edit], list[Request]]:
    """Return a builder for a message that GKE may replace: the live one with everything that is declared."""

    def build(edit: _Edit) -> list[Request]:
        live = tree(edit.observed.native, *parents, field)
        return [edit.update(**{field: _merged(live, edit.sent(*parents, field))})]

    return build


def _merged(live: Mapping[str, object], declared: Mapping[str, object]) -> dict[str, object]:
    """Merge two messages; a declared member displaces its rivals, of which a message has only one."""
    gone = {name for group in RIVALS if declared.keys() & set(group) for name in group} - declared.keys()
    found = {name: value for name, value in live.items() if name not in gone}
    for name, value in declared.items():
        old = found.get(name)
        found[name] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


def _only(field: str, *parents: str) -> Callable[[_Edit], list[Request]]:
    """Return a builder for a message that is sent as declared."""
    return lambda edit: [edit.update(**{field: edit.sent(*parents, field)})]


def _configure(edit: _Edit) -> list[Request]:
    """Build both messages in one call, as gcloud does (--system-config-from-file), so that nodes are recreated once."""
    body = {
        field: _merged(tree(edit.config, field), edit.sent("config", field))
        for field, groups in _SYSTEM_CONFIG.items()
        if edit.has(*groups)
    }
    return [edit.update(**body)]


def _networked(edit: _Edit) -> list[Request]:
    return [edit.update(nodeNetworkConfig=edit.changed("networkConfig"))]


def _pool_disks(edit: _Edit) -> list[Request]:
    pools = edit.new(_STORAGE_POOLS)
    return [edit.update(storagePools=list(pools) if isinstance(pools, tuple) else [])]


def _network_tag(edit: _Edit) -> list[Request]:
    tags = edit.new(_NETWORK_TAGS)
    return [edit.update(tags={"tags": list(tags) if isinstance(tags, tuple) else []})]


def _consolidate(edit: _Edit) -> list[Request]:
    return [edit.update(consolidationDelay=edit.new(_CONSOLIDATION))]


_MANAGEMENT: Final = native_path("management")
_STRATEGY: Final = native_path("upgradeSettings")
_TAINT_CONFIG: Final = native_path("config.taintConfig")
_CONSOLIDATION: Final = native_path("config.consolidationDelay")
_NETWORK_TAGS: Final = native_path("config.tags")
_STORAGE_POOLS: Final = native_path("config.storagePools")
_NETWORK: Final = native_path("networkConfig")
_SYSTEM_CONFIG: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "linuxNodeConfig": (("sysctls",), ("hugepages",), native_path("config.linuxNodeConfig")),
    "kubeletConfig": (("kubelet",), native_path("config.kubeletConfig")),
}
"""Message of the node software -> its fields."""
_GVNIC: Final = native_path("config.gvnic")
_FAST_SOCKET: Final = native_path("config.fastSocket")


def _connect(edit: _Edit) -> list[Request]:
    """Fast socket needs gVNIC: enable it after gVNIC, and disable it before."""
    calls = [
        *(_message(_GVNIC, "gvnic")(edit) if edit.has(_GVNIC) else ()),
        *(_message(_FAST_SOCKET, "fastSocket")(edit) if edit.has(_FAST_SOCKET) else ()),
    ]
    goes = not edit.below(*_GVNIC).get(("enabled",), True)
    return calls[::-1] if goes else calls


_CALLS: Final[tuple[tuple[tuple[tuple[str, ...], ...], Callable[[_Edit], list[Request]]], ...]] = (
    ((_MANAGEMENT,), _manage),
    ((("labels",), PROTECTION), _label),
    ((TAINTS,), _taint),
    ((_TAINT_CONFIG,), _message(_TAINT_CONFIG, "taintConfig")),
    ((_CONSOLIDATION,), _consolidate),
    ((native_path("nodeDrainConfig"),), _whole("nodeDrainConfig")),
    ((native_path("maintenancePolicy"),), _only("maintenancePolicy")),
    ((("upgrade",), _STRATEGY), _pace),
    ((_NETWORK_TAGS,), _network_tag),
    ((("tags",),), _tag),
    ((*_ACCELERATORS, *_SYSTEM), _renew),
    ((_GVNIC, _FAST_SOCKET), _connect),
    *(
        ((native_path(f"config.{field}"),), _whole(field, "config"))
        for field in ("workloadMetadataConfig", "gcfsConfig", "loggingConfig", "containerdConfig")
    ),
    (tuple(group for groups in _SYSTEM_CONFIG.values() for group in groups), _configure),
    ((native_path("config.resourceManagerTags"),), _only("resourceManagerTags", "config")),
    ((_STORAGE_POOLS,), _pool_disks),
    ((INSTANCE_TYPE, ("disk",)), _migrate),
    ((_NETWORK,), _networked),
    ((ZONES,), _move),
    ((ZONES, ("nodes",), _POLICY), _resize),
)
"""Field paths of each group (or their parents) and the builder of its calls, in sending order."""
