"""The fields of a GKE node pool: one row each, from the spec to the wire and back.

In scope: the table, and the small functions of its special rows. Out of scope: what GKE refuses (`rules.checks`), calls
(`change`), native fields (`native`), which a spec writes with the API's names.

Not in the table: parts of a pool without a field (oauthScopes, management: `translate`), how machines are bought, which
takes several members (`purchase`), and the node count of a live autoscaled pool.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from gpukube.core import fields as paths
from gpukube.core.binding import Binding, Draft, Effect, abilities, adjust_taints
from gpukube.core.fields import FieldPath, label, tag
from gpukube.core.jsontree import at, number, strings, text, texts, tree, trees
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import PROTECT_LABEL, Ability, Taint
from gpukube.gpu.catalog import find_machine
from gpukube.gpu.sharing import Sharing
from gpukube_gke.facts.places import is_zone
from gpukube_gke.pool.counts import autoscaling_bounds, initial_per_zone
from gpukube_gke.pool.effects import (
    AT_CREATION,
    MAYBE_RECREATED,
    NEXT_UPGRADE,
    PROTO,
    RECREATED,
    RUN_DURATION,
    SET_SCALING,
    SET_SIZE,
    TERRAFORM,
    UPDATE,
)
from gpukube_gke.pool.marks import FORM, copy_tags
from gpukube_gke.pool.node_settings import NODE_ABILITIES, NODE_BINDINGS
from gpukube_gke.pool.purchase import (
    FORM_FIELD,
    RUN_FIELD,
    buying_fields,
    is_short_lived,
    observe_buying,
    translate_buying,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, TaintEffect, Target, UpdateRow
    from gpukube_gke.pool.live import Live

OPT_OUT_LABEL: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Node label that disables GKE's own device plugin (docs: kubernetes-engine, GPU Operator on GKE)."""
DRA_LABEL: Final = "cloud.google.com/gke-nvidia-gpu-dra-driver"
"""Node label that makes GKE's autoscaler count ResourceSlices, not nvidia.com/gpu (docs: kubernetes-engine, Prepare
GKE infrastructure for DRA workloads; modelplane-io/modelplane#306)."""
ARM_TAINT: Final = Taint("kubernetes.io/arch", "arm64", "NoSchedule")
"""GKE adds it to arm64 nodes (google.container.v1 TaintConfig)."""
QUEUED_TAINT: Final = Taint("cloud.google.com/gke-queued", "true", "NoSchedule")
"""GKE adds it to the nodes of queued pools (docs: kubernetes-engine/how-to/provisioningrequest)."""
SYSTEM_TAINTS: Final = frozenset({ARM_TAINT.key, QUEUED_TAINT.key})
"""Keys of taints that GKE adds to nodes, in addition to the GPU taint."""
NO_DRIVER: Final = "INSTALLATION_DISABLED"
"""GPUDriverVersion for nodes whose driver GKE does not install."""
LATEST: Final = "latest"
"""The other driver.version than "default", which is GKE's default and not a field."""
EFFECTS: Final[Mapping[str, str]] = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
"""Effect in Kubernetes -> NodeTaint.Effect."""
_STRATEGIES: Final = {"time-slicing": "TIME_SHARING", "mps": "MPS"}
_DRIVERS: Final = ("", "GPU_DRIVER_VERSION_UNSPECIFIED", "DEFAULT", "LATEST")
"""GpuDriverInstallationConfig.GPUDriverVersion values with which GKE installs the driver."""
_ADDED_LABELS: Final = (PROTECT_LABEL, OPT_OUT_LABEL)
"""Labels that are separate fields."""


# Reading the spec


def own_taints(target: Target) -> tuple[Taint, ...]:
    """Return the taints of a target without the GPU taint, which GKE adds."""
    return tuple(taint for taint in target.taints if taint != GPU_TAINT)


def runs_own_plugin(target: Target) -> bool:
    """Return whether GKE's plugin must be disabled: for a release of gpukube, or the user's own plugin."""
    return target.plugin_owner in ("none", "dra") or is_operated(target)


def is_operated(target: Target) -> bool:
    """Return whether the GPU Operator owns plugin, sharing, and MIG; then none of them is sent to GKE.

    Source:
        GoogleCloudPlatform/container-engine-accelerators: GKE's plugin does the sharing, and it is disabled here.
    """
    return target.plugin_owner == "operator" or (target.driver_owner == "operator" and target.plugin_owner == "auto")


def image_of(target: Target) -> str:
    """Return the node image as GKE returns it; gcloud and Terraform also accept cos_containerd."""
    return target.image.upper()


def accelerator_of(target: Target) -> str:
    """Return the GPUs of a node in comparable form: "8 x nvidia-tesla-a100"."""
    return f"{target.machine.devices} x {target.machine.accelerator}"


def upgrade_fields(target: Target) -> dict[FieldPath, int]:
    """Return how many nodes an upgrade may add and remove, if the spec sets them; percentages are refused elsewhere."""
    requested = {paths.MAX_SURGE: target.upgrade.max_surge, paths.MAX_UNAVAILABLE: target.upgrade.max_unavailable}
    return {path: int(limit) for path, limit in requested.items() if limit and limit.isdecimal()}


def wire_taint(taint: Taint) -> dict[str, object]:
    """Return a taint in wire form, which has its own names for effects."""
    return {"key": taint.key, "value": taint.value, "effect": EFFECTS[taint.effect]}


def _zones(target: Target) -> list[str]:
    location = target.cluster.identity["location"]
    return sorted(target.zones) or ([location] if is_zone(location) else [])


def _parts(target: Target) -> int:
    return max(1, len(_zones(target)))  # without zones in the spec, one is used


def _scaling(draft: Draft) -> dict[str, object] | None:
    nodes = draft.target.nodes
    if not nodes.autoscaled:
        return None
    policy = {"locationPolicy": "ANY"} if is_short_lived(draft.target) else {}
    return {"enabled": True, **autoscaling_bounds(nodes, _parts(draft.target)), **policy}


def _pace(draft: Draft) -> dict[str, object] | None:
    """Return the upgrade settings; gcloud's defaults for parts that the spec omits."""
    requested = upgrade_fields(draft.target)
    if is_short_lived(draft.target) and not requested:
        return None
    return {"maxSurge": 1, **{path.key: limit for path, limit in requested.items()}}


def _driver(target: Target) -> str:
    """The plugin that the opt-out label disables would finish installing the managed driver (NVIDIA/aicr#2047)."""
    return "none" if target.driver_owner in ("none", "operator") or runs_own_plugin(target) else "cloud"


def _driver_version(target: Target) -> str:
    if _driver(target) == "none":
        return NO_DRIVER
    return "LATEST" if target.driver_version == LATEST else "DEFAULT"


def _sharing(target: Target) -> Sharing:
    return Sharing() if is_operated(target) else target.sharing


def _replicas(draft: Draft, mode: str) -> int | None:
    slicing = _sharing(draft.target).slicing
    return slicing.replicas if slicing and slicing.mode == mode else None


def _sliced(draft: Draft, mode: str) -> dict[str, object] | None:
    replicas = _replicas(draft, mode)
    words: dict[str, object] = {"gpuSharingStrategy": _STRATEGIES[mode], "maxSharedClientsPerGpu": str(replicas)}
    return None if replicas is None else words


# Reading a live pool


def zones_of(native: Mapping[str, object]) -> tuple[str, ...]:
    """Return the zones of a pool or cluster."""
    return strings(native, "locations")


def total_of(native: Mapping[str, object], per_zone: object) -> int:
    """Return the nodes of the whole pool from a number per zone."""
    return number(per_zone) * max(1, len(zones_of(native)))


def read_taints(config: Mapping[str, object]) -> tuple[Taint, ...]:
    """Read the taints of a node config, including GKE's."""
    effects = {word: effect for effect, word in EFFECTS.items()}
    return tuple(
        Taint(
            str(taint.get("key", "")),
            str(taint.get("value", "")),
            cast("TaintEffect", effects.get(word := text(taint, "effect") or "EFFECT_UNSPECIFIED", word)),
        )
        for taint in trees(config, "taints")
    )


def _is_scaled(live: Live) -> bool:
    return bool(at(live.pool, "autoscaling", "enabled"))


def _has_totals(live: Live) -> bool:
    return bool(at(live.pool, "autoscaling", "totalMaxNodeCount"))


def _bound(live: Live, end: str) -> int | None:
    """Return a bound as a total, also if GKE has it per zone; proto3 omits 0."""
    if not _is_scaled(live):
        return None
    scaling = tree(live.pool, "autoscaling")
    if _has_totals(live):
        return number(scaling, f"total{end}NodeCount")
    return total_of(live.pool, scaling.get(f"{end.lower()}NodeCount"))


def _read_replicas(live: Live, mode: str) -> int | None:
    is_so = at(live.accelerator, "gpuSharingConfig", "gpuSharingStrategy") == _STRATEGIES[mode]
    return number(live.accelerator, "gpuSharingConfig", "maxSharedClientsPerGpu") if is_so else None


def _driver_word(live: Live) -> str:
    return text(live.accelerator, "gpuDriverInstallationConfig", "gpuDriverVersion")


def _live_driver(live: Live) -> str:
    word = _driver_word(live)
    return "none" if word == NO_DRIVER else "cloud" if word in _DRIVERS else word


def unknown_strategy(live: Live) -> str | None:
    """Return a sharing strategy that gpukube does not know: a difference without a row, which is never changed."""
    word = text(live.accelerator, "gpuSharingConfig", "gpuSharingStrategy")
    return None if word in ("", "GPU_SHARING_STRATEGY_UNSPECIFIED", *_STRATEGIES.values()) else word


def _read_taints(live: Live) -> tuple[str, ...]:
    theirs = {GPU_TAINT}
    found = (taint for taint in read_taints(live.config) if taint not in theirs and taint.key not in SYSTEM_TAINTS)
    return tuple(sorted(map(str, found)))


# Adjusting a row to the values of a change


def _type(change: Change, row: UpdateRow) -> UpdateRow:
    """GKE rolls out a machine of another size with the same GPUs (g2-standard-8 to -12)."""
    old, new = (find_machine("gke", str(name)) for name in (change.old, change.new))
    n1 = all(str(name).startswith("n1-") for name in (change.old, change.new))
    same = old is not None and new is not None and (old.accelerator, old.gpus) == (new.accelerator, new.gpus)
    if n1 or same:
        return replace(row, kind="disruptive", sentence=RECREATED, call=UPDATE, source=f"{PROTO}machine_type")
    return row


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    """The autoscaler owns the number while it is on."""
    old, new = change.old, change.new
    if new is None:
        return replace(row, sentence="the autoscaler controls the number", call=SET_SCALING)
    if old is None:
        sentence = "the autoscaler is turned off; GKE removes nodes above the number with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="GKE removes nodes with the pods on them")
    return row


def _bounds(change: Change, row: UpdateRow) -> UpdateRow:
    return row if change.new is not None else replace(row, sentence="the autoscaler is turned off")


def _moved(change: Change, row: UpdateRow) -> UpdateRow:
    """A pool has the same number of nodes in each zone, so with more zones the same total means fewer in each."""
    if {*strings(change.old)} <= {*strings(change.new)}:
        sentence = "GKE adds the same number of nodes in each new zone, then removes those above the total"
        return replace(row, sentence=sentence)
    return row


_BOUGHT: Final = (
    "Spot and reservations are set at creation only; UpdateNodePool accepts flex start and queued provisioning, but "
    "their effect on live nodes is not documented (unconfirmed)"
)
_REDIVIDED: Final = "the number of devices changes while pods run, and GKE may recreate the nodes"
_NEW_BOUND: Final = "the autoscaler uses the new bound"
_SET_AUTOSCALING: Final = "google.container.v1 SetNodePoolAutoscalingRequest.autoscaling"
_AICR: Final = "NVIDIA/aicr docs/integrator/gke-gpu-setup.md"
_TRIED: Final = "GoogleCloudPlatform/magic-modules#18493"
_DOCS: Final = "docs: kubernetes-engine/how-to/gpus"
_EXACT: Final = Ability("exact")
_ACCELERATOR: Final = ("config", "accelerators", 0)
_OWN_PLUGIN: Final = "GKE runs its own plugin"

BINDINGS: Final[tuple[Binding[Draft, Live], ...]] = (
    Binding(
        path=paths.COUNT,
        wire=("initialNodeCount",),
        get=lambda draft: None if draft.target.nodes.autoscaled else draft.target.nodes.count,
        write=lambda draft: initial_per_zone(draft.target.nodes, _parts(draft.target)),
        read=lambda live: None if _is_scaled(live) else total_of(live.pool, live.pool.get("initialNodeCount")),
        effect=Effect("in-place", "GKE adds nodes", "google.container.v1 SetNodePoolSizeRequest.node_count", SET_SIZE),
        ability=_EXACT,
        adjust=_count,
    ),
    Binding(
        path=paths.ZONES,
        wire=("locations",),
        get=lambda draft: tuple(sorted(draft.target.zones)) or None,
        write=lambda draft: _zones(draft.target) or None,
        read=lambda live: tuple(sorted(zones_of(live.pool))) or None,
        effect=Effect("disruptive", "GKE removes the nodes in removed zones", f"{PROTO}locations", UPDATE),
        ability=_EXACT,
        adjust=_moved,
    ),
    Binding(
        path=paths.KUBERNETES_VERSION,
        wire=("version",),
        get=lambda draft: draft.target.kubernetes_version or None,
        effect=Effect("disruptive", RECREATED, f"{PROTO}node_version", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=paths.INSTANCE_TYPE,
        wire=("config", "machineType"),
        get=lambda draft: draft.target.machine.name,
        effect=Effect("replace", "another machine type has different GPUs, and a pool's GPUs are fixed", _TRIED),
        adjust=_type,
    ),
    Binding(
        path=paths.GPU,
        wire=_ACCELERATOR,
        members=(),
        get=lambda draft: accelerator_of(draft.target),
        write=lambda draft: {
            "acceleratorType": draft.target.machine.accelerator,
            "acceleratorCount": str(draft.target.machine.devices),
        },
        read=lambda live: (
            f"{number(live.accelerator, 'acceleratorCount')} x {live.accelerator.get('acceleratorType', 'no GPU')}"
        ),
        effect=Effect("replace", "GKE answers: Accelerator count should not be updated", _TRIED),
    ),
    Binding(
        path=paths.DRIVER,
        get=lambda draft: _driver(draft.target),
        read=_live_driver,
        words=frozenset({"cloud", "none"}),
        effect=Effect(
            "disruptive",
            "the driver is installed differently, and GKE may recreate the nodes",
            f"{_DOCS}, {_TRIED}",
            UPDATE,
        ),
    ),
    Binding(
        path=paths.DRIVER_VERSION,
        wire=(*_ACCELERATOR, "gpuDriverInstallationConfig", "gpuDriverVersion"),
        get=lambda draft: LATEST if _driver_version(draft.target) == "LATEST" else None,
        write=lambda draft: _driver_version(draft.target),
        read=lambda live: LATEST if _driver_word(live) == "LATEST" else None,
        effect=Effect("disruptive", MAYBE_RECREATED, f"{_DOCS}, {_TRIED}", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=paths.MIG_PROFILE,
        wire=(*_ACCELERATOR, "gpuPartitionSize"),
        get=lambda draft: cut.profile if (cut := _sharing(draft.target).mig) else None,
        read=lambda live: live.accelerator.get("gpuPartitionSize") or None,
        effect=Effect(
            "replace", "whether GKE changes the MIG layout of live nodes is not documented (unconfirmed)", _TRIED
        ),
    ),
    *(
        Binding(
            path=FieldPath("sharing", name, "replicas"),
            wire=(*_ACCELERATOR, "gpuSharingConfig"),
            spec="sharing.timeSlicing or sharing.mps",
            get=partial(_replicas, mode=mode),
            write=partial(_sliced, mode=mode),
            read=partial(_read_replicas, mode=mode),
            effect=Effect("disruptive", _REDIVIDED, f"{_TRIED}, {_AICR}", UPDATE),
            ability=Ability("emulated", substitute, _OWN_PLUGIN),
            feature=f"sharing.{name}",
        )
        for name, mode, substitute in (
            ("timeSlicing", "time-slicing", "GKE's own sharing, always with one share per container"),
            ("mps", "mps", "GKE's own MPS"),
        )
    ),
    Binding(
        path=label("*"),
        wire=("config", "labels"),
        get=lambda draft: {key: value for key, value in draft.labels.items() if key not in _ADDED_LABELS},
        write=lambda draft: dict(sorted(draft.labels.items())),
        read=lambda live: {k: v for k, v in texts(live.config, "labels").items() if k not in _ADDED_LABELS},
        effect=Effect("in-place", "GKE relabels the nodes", f"{PROTO}labels, {_AICR}", UPDATE),
        ability=_EXACT,
        feature="labels",
    ),
    Binding(
        path=label("nvidia.com/device-plugin.config"),
        effect=Effect(
            "disruptive",
            "the device plugin restarts with another configuration: the number of devices changes while pods run",
            "NVIDIA/k8s-device-plugin README, config-manager",
            UPDATE,
        ),
    ),
    Binding(
        path=label("nvidia.com/mig.config"),
        effect=Effect(
            "disruptive",
            "the MIG manager stops the GPU clients of each node and may reboot it",
            "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
            UPDATE,
        ),
    ),
    Binding(
        path=paths.TAINTS,
        wire=("config", "taints"),
        get=lambda draft: tuple(sorted(map(str, own_taints(draft.target)))),
        write=lambda draft: [wire_taint(taint) for taint in sorted(own_taints(draft.target))] or None,
        read=_read_taints,
        effect=Effect("in-place", "GKE changes the taints of the nodes", f"{PROTO}taints, {_AICR}", UPDATE),
        ability=_EXACT,
        adjust=adjust_taints,
    ),
    Binding(
        path=paths.DISK_SIZE,
        wire=("config", "diskSizeGb"),
        get=lambda draft: draft.target.disk.size_gib,
        effect=Effect("disruptive", RECREATED, f"{PROTO}disk_size_gb", UPDATE),
        ability=_EXACT,
        feature="disk.size",
    ),
    Binding(
        path=paths.DISK_TYPE,
        wire=("config", "diskType"),
        get=lambda draft: draft.target.disk.type,
        effect=Effect("disruptive", RECREATED, f"{PROTO}disk_type", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=paths.IMAGE,
        wire=("config", "imageType"),
        get=lambda draft: image_of(draft.target) or None,
        read=lambda live: text(live.config, "imageType").upper() or None,
        effect=Effect("disruptive", RECREATED, f"{PROTO}image_type", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=tag("*"),
        wire=("config", "resourceLabels"),
        get=lambda draft: draft.target.tags,
        write=lambda draft: dict(sorted({**draft.target.tags, **copy_tags(draft.target)}.items())),
        read=lambda live: {
            key: value
            for key, value in tree(live.config, "resourceLabels").items()
            if not (key.startswith("goog-") or FORM.is_own(key))
        },
        effect=Effect("disruptive", RECREATED, "gcloud container node-pools update --help: --labels", UPDATE),
        ability=Ability("emulated", "labels of the machines", "node pools have no other tags for billing"),
        feature="tags",
    ),
    Binding(
        path=paths.MAX_SURGE,
        wire=("upgradeSettings",),
        members=("upgradeSettings.maxSurge",),
        get=lambda draft: upgrade_fields(draft.target).get(paths.MAX_SURGE),
        write=_pace,
        read=lambda live: number(live.pool, "upgradeSettings", "maxSurge"),
        effect=Effect("in-place", NEXT_UPGRADE, f"{PROTO}upgrade_settings", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=paths.MAX_UNAVAILABLE,
        members=("upgradeSettings.maxUnavailable",),
        get=lambda draft: upgrade_fields(draft.target).get(paths.MAX_UNAVAILABLE),
        read=lambda live: number(live.pool, "upgradeSettings", "maxUnavailable"),
        effect=Effect("in-place", NEXT_UPGRADE, f"{PROTO}upgrade_settings", UPDATE),
        ability=_EXACT,
    ),
    Binding(
        path=paths.MAX_PODS,
        wire=("maxPodsConstraint", "maxPodsPerNode"),
        get=lambda draft: draft.target.max_pods,
        write=lambda draft: None if draft.target.max_pods is None else str(draft.target.max_pods),
        read=lambda live: number(live.pool, "maxPodsConstraint", "maxPodsPerNode") or None,
        effect=Effect("replace", AT_CREATION, TERRAFORM),
        ability=_EXACT,
    ),
    Binding(
        path=paths.LEAST,
        wire=("autoscaling",),
        members=("autoscaling.totalMinNodeCount",),
        get=lambda draft: draft.target.nodes.minimum if draft.target.nodes.autoscaled else None,
        write=_scaling,
        read=partial(_bound, end="Min"),
        effect=Effect("in-place", _NEW_BOUND, _SET_AUTOSCALING, SET_SCALING),
        ability=_EXACT,
        feature="nodes.autoscaling",
        adjust=_bounds,
    ),
    Binding(
        path=paths.MOST,
        members=("autoscaling.totalMaxNodeCount",),
        get=lambda draft: draft.target.nodes.maximum if draft.target.nodes.autoscaled else None,
        read=partial(_bound, end="Max"),
        effect=Effect("in-place", _NEW_BOUND, _SET_AUTOSCALING, SET_SCALING),
        adjust=_bounds,
    ),
    Binding(
        path=paths.SCOPE,
        get=lambda draft: draft.target.nodes.scope if draft.target.nodes.autoscaled else None,
        read=lambda live: ("pool" if _has_totals(live) else "zone") if _is_scaled(live) else None,
        effect=Effect(
            "in-place",
            "the autoscaler uses the bounds of the other scope; no nodes are removed",
            "google.container.v1 NodePoolAutoscaling.total_max_node_count",
            SET_SCALING,
        ),
        ability=_EXACT,
        adjust=_bounds,
    ),
    Binding(
        path=paths.CAPACITY_TYPE,
        members=("config.spot",),
        get=lambda draft: buying_fields(draft.target).get(paths.CAPACITY_TYPE),
        write=lambda draft: translate_buying(draft.target),
        read=lambda live: observe_buying(live.pool, live.config).get(paths.CAPACITY_TYPE),
        effect=Effect("replace", _BOUGHT, TERRAFORM),
        ability=_EXACT,
        feature="capacity.spot",
    ),
    Binding(
        path=FORM_FIELD,
        get=lambda draft: buying_fields(draft.target).get(FORM_FIELD),
        read=lambda live: observe_buying(live.pool, live.config).get(FORM_FIELD),
        effect=Effect("replace", _BOUGHT, TERRAFORM),
        ability=_EXACT,
        feature="capacity.reserved",
    ),
    Binding(
        path=RUN_FIELD,
        get=lambda draft: buying_fields(draft.target).get(RUN_FIELD),
        read=lambda live: observe_buying(live.pool, live.config).get(RUN_FIELD),
        effect=Effect("replace", RUN_DURATION, TERRAFORM),
    ),
    Binding(
        path=paths.PROTECTION,
        get=lambda draft: draft.target.protect,
        read=lambda live: text(live.config, "labels", PROTECT_LABEL) == "true",
        effect=Effect("in-place", "a label of the pool", f"{PROTO}labels", UPDATE),
        ability=Ability("emulated", "the node label gpukube.io/protect", "GKE has no field for it"),
    ),
    Binding(
        path=paths.PLUGIN,
        get=lambda draft: "none" if runs_own_plugin(draft.target) else "cloud",
        read=lambda live: "none" if text(live.config, "labels", OPT_OUT_LABEL) == "true" else "cloud",
        effect=Effect("replace", "the label that disables GKE's plugin removes the devices of running pods", _AICR),
    ),
    *NODE_BINDINGS,
)
"""The portable fields, in wire order."""

ABILITIES: Final[Mapping[str, Ability]] = MappingProxyType(
    {
        **abilities(BINDINGS),
        **NODE_ABILITIES,
        "sharing.mig.single": _EXACT,
        "sharing.mig.mixed": Ability("missing", "", "GKE's plugin advertises nvidia.com/gpu only"),
        "sharing.mig.layout": Ability(
            "missing", "write a pool for each profile", "all GPUs of a GKE pool use the same MIG size"
        ),
        "gpuTaint": Ability("missing", "", "GKE adds the GPU taint if the cluster has other nodes"),
    }
)
"""Docs: kubernetes-engine/how-to/gpus, concepts/timesharing-gpus, how-to/gpus-multi, how-to/nvidia-mps-gpus."""
