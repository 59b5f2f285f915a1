"""What a change of a field does to a live GKE pool: one row per field, with its sentence and source.

Lives here: the table, the look-up in it, and what of the update calls is not used. Must not live here: how an update is
sent (`change`), which native fields there are (`native`).

A source that begins with "google.container.v1" is a comment of that message's field; "Terraform" is the ForceNew list
of GoogleCloudPlatform/magic-modules, mmv1/third_party/terraform/services/container/node_config.go.tmpl. Where it is not
documented whether nodes are made again, the row takes the worse case.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import (
    CAPACITY_TYPE,
    COUNT,
    DISK_SIZE,
    DISK_TYPE,
    DRIVER,
    DRIVER_VERSION,
    GPU,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    LEAST,
    MAX_PODS,
    MAX_SURGE,
    MAX_UNAVAILABLE,
    MIG_PROFILE,
    MOST,
    PLUGIN,
    PROTECTION,
    SCOPE,
    TAINTS,
    ZONES,
    FieldPath,
    label,
    tag,
)
from gpukube.core.values import UpdateRow
from gpukube.gpu.catalogue import find_machine
from gpukube_gke.native import native_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, UpdateKind

__all__ = ["BY_VALUE", "INTENT_ROWS", "NATIVE_ROWS", "find_row"]

_UPDATE: Final = "update_node_pool"
_SIZE: Final = "set_node_pool_size"
_SCALING: Final = "set_node_pool_autoscaling"
_MANAGEMENT: Final = "set_node_pool_management"
_AT_BIRTH: Final = "set at creation only"
_RUN_DURATION: Final = (
    "set at creation, like everywhere in Terraform; what UpdateNodePool does with it to living nodes is not documented "
    "(unconfirmed)"
)
_RECREATED: Final = "GKE makes the nodes again, one surge at a time, draining each"
_MAYBE_RECREATED: Final = "GKE may make the nodes again, one surge at a time, draining each"
_REDIVIDED: Final = "the number of devices changes under running pods, and GKE may make the nodes again"
_NEXT_UPGRADE: Final = "holds from the next upgrade on"
_FROM_NOW_ON: Final = "holds from now on"
_PROTO: Final = "google.container.v1 UpdateNodePoolRequest."
_AICR: Final = "NVIDIA/aicr docs/integrator/gke-gpu-setup.md"
_TRIED: Final = "GoogleCloudPlatform/magic-modules#18493"
_TERRAFORM: Final = "Terraform: ForceNew (GoogleCloudPlatform/magic-modules, node_config.go.tmpl)"


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str, str]) -> dict[FieldPath, UpdateRow]:
    return {row[0]: UpdateRow(*row) for row in rows}


INTENT_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    (INSTANCE_TYPE, "replace", "another machine type has other GPUs, whose type and number a pool keeps", "", _TRIED),
    (GPU, "replace", "GKE answers: Accelerator count should not be updated", "", _TRIED),
    (
        COUNT,
        "in-place",
        "GKE adds nodes",
        _SIZE,
        "google.container.v1 SetNodePoolSizeRequest.node_count",
    ),
    *(
        (
            bound,
            "in-place",
            "the autoscaler keeps the new bound",
            _SCALING,
            "google.container.v1 SetNodePoolAutoscalingRequest.autoscaling",
        )
        for bound in (LEAST, MOST)
    ),
    (
        SCOPE,
        "in-place",
        "the autoscaler keeps the bounds of the other scope; no node goes for it",
        _SCALING,
        "google.container.v1 NodePoolAutoscaling.total_max_node_count",
    ),
    (CAPACITY_TYPE, "replace", "how machines are bought is set at creation only", "", _TERRAFORM),
    (
        FieldPath("capacity", "reserved", "gke"),
        "replace",
        "how machines are bought is set at creation only",
        "",
        _TERRAFORM,
    ),
    (FieldPath("capacity", "reserved", "gke", "maxRunDuration"), "replace", _RUN_DURATION, "", _TERRAFORM),
    (ZONES, "disruptive", "GKE removes the nodes in zones that are taken away", _UPDATE, f"{_PROTO}locations"),
    (DISK_SIZE, "disruptive", _RECREATED, _UPDATE, f"{_PROTO}disk_size_gb"),
    (DISK_TYPE, "disruptive", _RECREATED, _UPDATE, f"{_PROTO}disk_type"),
    (IMAGE, "disruptive", _RECREATED, _UPDATE, f"{_PROTO}image_type"),
    (KUBERNETES_VERSION, "disruptive", _RECREATED, _UPDATE, f"{_PROTO}node_version"),
    *(
        (limit, "in-place", _NEXT_UPGRADE, _UPDATE, f"{_PROTO}upgrade_settings")
        for limit in (MAX_SURGE, MAX_UNAVAILABLE)
    ),
    (MAX_PODS, "replace", _AT_BIRTH, "", _TERRAFORM),
    (
        MIG_PROFILE,
        "replace",
        "whether GKE cuts the GPUs of living nodes again is not documented (unconfirmed)",
        "",
        _TRIED,
    ),
    (FieldPath("sharing", "timeSlicing", "replicas"), "disruptive", _REDIVIDED, _UPDATE, f"{_TRIED}, {_AICR}"),
    (FieldPath("sharing", "mps", "replicas"), "disruptive", _REDIVIDED, _UPDATE, f"{_TRIED}, {_AICR}"),
    (label("*"), "in-place", "GKE relabels the nodes", _UPDATE, f"{_PROTO}labels, {_AICR}"),
    (
        label("nvidia.com/device-plugin.config"),
        "disruptive",
        "the device plugin restarts with another configuration: the number of devices changes under running pods",
        _UPDATE,
        "NVIDIA/k8s-device-plugin README, config-manager",
    ),
    (
        label("nvidia.com/mig.config"),
        "disruptive",
        "the MIG manager stops the GPU clients of each node and may reboot it",
        _UPDATE,
        "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
    ),
    (TAINTS, "in-place", "GKE changes the taints of the nodes", _UPDATE, f"{_PROTO}taints, {_AICR}"),
    (tag("*"), "disruptive", _RECREATED, _UPDATE, "gcloud container node-pools update --help: --labels"),
    (PROTECTION, "in-place", "a label of the pool", _UPDATE, f"{_PROTO}labels"),
    (
        DRIVER,
        "disruptive",
        "the driver is installed another way, and GKE may make the nodes again",
        _UPDATE,
        f"docs: kubernetes-engine/how-to/gpus, {_TRIED}",
    ),
    (
        DRIVER_VERSION,
        "disruptive",
        _MAYBE_RECREATED,
        _UPDATE,
        f"docs: kubernetes-engine/how-to/gpus, {_TRIED}",
    ),
    (
        PLUGIN,
        "replace",
        "the label that keeps GKE's plugin away takes the devices from under running pods",
        "",
        _AICR,
    ),
)
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    *(
        (
            native_path(f"management.{name}"),
            "in-place",
            _FROM_NOW_ON,
            _MANAGEMENT,
            "google.container.v1 SetNodePoolManagementRequest.management",
        )
        for name in ("autoUpgrade", "autoRepair")
    ),
    (native_path("upgradeSettings.strategy"), "in-place", _NEXT_UPGRADE, _UPDATE, f"{_PROTO}upgrade_settings"),
    (
        native_path("autoscaling.locationPolicy"),
        "in-place",
        _FROM_NOW_ON,
        _SCALING,
        "google.container.v1 NodePoolAutoscaling.location_policy",
    ),
    (native_path("config.gvnic.enabled"), "disruptive", _MAYBE_RECREATED, _UPDATE, f"{_PROTO}gvnic"),
    (native_path("config.fastSocket.enabled"), "disruptive", _MAYBE_RECREATED, _UPDATE, f"{_PROTO}fast_socket"),
    (native_path("config.tags"), "in-place", "GKE changes the network tags of the nodes", _UPDATE, f"{_PROTO}tags"),
    (native_path("config.consolidationDelay"), "in-place", _FROM_NOW_ON, _UPDATE, f"{_PROTO}consolidation_delay"),
    (
        native_path("config.taintConfig.architectureTaintBehavior"),
        "in-place",
        "GKE changes the taints of arm64 nodes",
        _UPDATE,
        f"{_PROTO}taint_config",
    ),
    (
        native_path("config.workloadMetadataConfig.mode"),
        "disruptive",
        _MAYBE_RECREATED,
        _UPDATE,
        f"{_PROTO}workload_metadata_config",
    ),
    (native_path("config.gcfsConfig.enabled"), "disruptive", _MAYBE_RECREATED, _UPDATE, f"{_PROTO}gcfs_config"),
    (
        native_path("config.loggingConfig.variantConfig.variant"),
        "disruptive",
        _MAYBE_RECREATED,
        _UPDATE,
        f"{_PROTO}logging_config",
    ),
    *(
        (
            native_path(f"nodeDrainConfig.{name}"),
            "in-place",
            "holds from the next drain on",
            _UPDATE,
            f"{_PROTO}node_drain_config",
        )
        for name in ("respectPdbDuringNodePoolDeletion", "pdbTimeoutDuration", "graceTerminationDuration")
    ),
    (
        native_path("networkConfig.enablePrivateNodes"),
        "disruptive",
        _MAYBE_RECREATED,
        _UPDATE,
        f"{_PROTO}node_network_config",
    ),
    *(
        (native_path(path), "replace", _AT_BIRTH, "", _TERRAFORM)
        for path in (
            "networkConfig.createPodRange",
            "networkConfig.podRange",
            "networkConfig.podIpv4CidrBlock",
            "networkConfig.additionalNodeNetworkConfigs",
            "config.advancedMachineFeatures.threadsPerCore",
            "config.secondaryBootDisks",
            "placementPolicy.type",
            "placementPolicy.policyName",
            "config.serviceAccount",
            "config.oauthScopes",
            "config.minCpuPlatform",
            "config.reservationAffinity.consumeReservationType",
            "config.ephemeralStorageLocalSsdConfig.localSsdCount",
            "config.localNvmeSsdBlockConfig.localSsdCount",
            "config.shieldedInstanceConfig.enableSecureBoot",
            "config.shieldedInstanceConfig.enableIntegrityMonitoring",
            "config.bootDiskKmsKey",
        )
    ),
    (native_path("config.maxRunDuration"), "replace", _RUN_DURATION, "", _TERRAFORM),
    *(
        (native_path(path), "replace", _AT_BIRTH, "", "google.container.v1: no update call has it")
        for path in (
            "bestEffortProvisioning.enabled",
            "bestEffortProvisioning.minProvisionNodes",
            "config.gpuDirectConfig.gpuDirectStrategy",
            "networkConfig.acceleratorNetworkProfile",
        )
    ),
)
"""Rows of the native fields, one per field of `native.NATIVE`."""


def find_row(change: Change) -> UpdateRow:
    """Say what this change does; a field that no row covers is refused, never guessed."""
    row = _row_of(change.field)
    adjust = BY_VALUE.get(row.field)
    return adjust(change, row) if adjust else row


def _row_of(field: FieldPath) -> UpdateRow:
    if field in INTENT_ROWS:
        return INTENT_ROWS[field]
    if field[0] in ("labels", "tags"):
        return replace(INTENT_ROWS[FieldPath(field[0], "*")], field=field)
    if field in NATIVE_ROWS:
        return NATIVE_ROWS[field]
    return UpdateRow(field, "refused", "what a change of this field does is not documented", "", "")


def _type(change: Change, row: UpdateRow) -> UpdateRow:
    """A machine of another size with the same GPUs is a change that GKE rolls out (g2-standard-8 to -12)."""
    old, new = (find_machine("gke", str(name)) for name in (change.old, change.new))
    n1 = all(str(name).startswith("n1-") for name in (change.old, change.new))
    same = old is not None and new is not None and (old.accelerator, old.gpus) == (new.accelerator, new.gpus)
    if n1 or same:
        return replace(row, kind="disruptive", sentence=_RECREATED, call=_UPDATE, source=f"{_PROTO}machine_type")
    return row


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    """With an autoscaler the number is its own, and comes and goes with it."""
    old, new = change.old, change.new
    if new is None:
        return replace(row, sentence="the autoscaler takes the number over", call=_SCALING)
    if old is None:
        sentence = "the autoscaler is turned off; GKE removes nodes above the number with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="GKE removes nodes with the pods on them")
    return row


def _bound(change: Change, row: UpdateRow) -> UpdateRow:
    return row if change.new is not None else replace(row, sentence="the autoscaler is turned off")


def _taints(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = _items(change.old), _items(change.new)
    if any(taint.endswith(":NoExecute") for taint in new - old):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _zones(change: Change, row: UpdateRow) -> UpdateRow:
    """A pool has the same number of nodes in each zone: with more zones a total that stays leaves fewer in each."""
    if _items(change.old) <= _items(change.new):
        sentence = "GKE adds the same number of nodes in each new zone, then removes those above the total"
        return replace(row, sentence=sentence)
    return row


def _items(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, tuple) else set()


BY_VALUE: Final = {
    INSTANCE_TYPE: _type,
    COUNT: _count,
    LEAST: _bound,
    MOST: _bound,
    SCOPE: _bound,
    TAINTS: _taints,
    ZONES: _zones,
}
