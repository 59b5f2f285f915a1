"""What a change of a field does to a live GKE pool: one row per field, with its sentence and source.

Lives here: the table and the look-up in it. Must not live here: how an update is sent.

One attribute goes into one call, as gcloud and Terraform do it. Sources named "proto" are the comments of
google.container.v1 UpdateNodePoolRequest; "Terraform" is the ForceNew list of GoogleCloudPlatform/magic-modules,
mmv1/third_party/terraform/services/container/node_config.go.tmpl.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.values import UpdateRow
from gpukube.gpu.catalogue import find_machine
from gpukube_gke.native import DRIVER_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, UpdateKind

__all__ = ["INTENT_ROWS", "NATIVE_ROWS", "find_row"]

_UPDATE: Final = "update_node_pool"
_SIZE: Final = "set_node_pool_size"
_SCALING: Final = "set_node_pool_autoscaling"
_MANAGEMENT: Final = "set_node_pool_management"
_AT_BIRTH: Final = "set at creation only"
_RECREATED: Final = "GKE makes the nodes again, one surge at a time, draining each"


def _rows(*rows: tuple[str, UpdateKind, str, str, str]) -> dict[str, UpdateRow]:
    return {row[0]: UpdateRow(*row) for row in rows}


INTENT_ROWS: Final[Mapping[str, UpdateRow]] = _rows(
    (
        "instanceType",
        "replace",
        "another machine type has other GPUs, whose type and number a pool keeps",
        "",
        "GoogleCloudPlatform/magic-modules#18493",
    ),
    (
        "gpu",
        "replace",
        "GKE answers: Accelerator count should not be updated",
        "",
        "GoogleCloudPlatform/magic-modules#18493",
    ),
    ("nodes.count", "in-place", "GKE adds or removes nodes", _SIZE, "proto: SetNodePoolSizeRequest"),
    ("nodes.autoscaling.min", "in-place", "the autoscaler keeps the new bound", _SCALING, "proto: NodePoolAutoscaling"),
    ("nodes.autoscaling.max", "in-place", "the autoscaler keeps the new bound", _SCALING, "proto: NodePoolAutoscaling"),
    ("capacity.type", "replace", "Spot or not is set at creation only", "", "Terraform"),
    ("zones", "disruptive", "GKE removes the nodes in zones that are taken away", _UPDATE, "proto: locations"),
    ("disk.sizeGiB", "disruptive", _RECREATED, _UPDATE, "proto: disk_size_gb"),
    ("disk.type", "disruptive", _RECREATED, _UPDATE, "proto: disk_type"),
    ("image", "disruptive", _RECREATED, _UPDATE, "proto: image_type"),
    (
        "sharing.mig.profile",
        "replace",
        "whether GKE cuts the GPUs of living nodes again is not documented",
        "",
        "GoogleCloudPlatform/magic-modules#18493",
    ),
    (
        "sharing.timeSlicing.replicas",
        "disruptive",
        "the number of devices changes under running pods, and GKE may make the nodes again",
        _UPDATE,
        "GoogleCloudPlatform/magic-modules#18493, NVIDIA/aicr docs/integrator/gke-gpu-setup.md",
    ),
    (
        "sharing.mps.replicas",
        "disruptive",
        "the number of devices changes under running pods, and GKE may make the nodes again",
        _UPDATE,
        "GoogleCloudPlatform/magic-modules#18493, NVIDIA/aicr docs/integrator/gke-gpu-setup.md",
    ),
    ("labels[*]", "in-place", "GKE relabels the nodes", _UPDATE, "NVIDIA/aicr docs/integrator/gke-gpu-setup.md"),
    (
        "taints",
        "in-place",
        "GKE changes the taints of the nodes",
        _UPDATE,
        "NVIDIA/aicr docs/integrator/gke-gpu-setup.md",
    ),
    ("tags[*]", "disruptive", _RECREATED, _UPDATE, "gcloud container node-pools update --help: --labels"),
    ("deletionProtection", "in-place", "a label of the pool", _UPDATE, "proto: labels"),
    (
        "driver",
        "disruptive",
        "the driver is installed another way, and GKE may make the nodes again",
        _UPDATE,
        "docs: kubernetes-engine/how-to/gpus",
    ),
    (
        "devicePlugin",
        "replace",
        "the label that keeps GKE's plugin away takes the devices from under running pods",
        "",
        "NVIDIA/aicr docs/integrator/gke-gpu-setup.md",
    ),
)
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[str, UpdateRow]] = _rows(
    ("gke.version", "disruptive", _RECREATED, _UPDATE, "proto: node_version"),
    ("gke.management.autoUpgrade", "in-place", "holds from now on", _MANAGEMENT, "proto: NodeManagement"),
    ("gke.management.autoRepair", "in-place", "holds from now on", _MANAGEMENT, "proto: NodeManagement"),
    *(
        (
            f"gke.upgradeSettings.{name}",
            "in-place",
            "holds from the next upgrade on",
            _UPDATE,
            "proto: upgrade_settings",
        )
        for name in ("maxSurge", "maxUnavailable", "strategy")
    ),
    ("gke.autoscaling.locationPolicy", "in-place", "holds from now on", _SCALING, "proto: NodePoolAutoscaling"),
    ("gke.config.gvnic.enabled", "disruptive", _RECREATED, _UPDATE, "proto: gvnic"),
    ("gke.config.fastSocket.enabled", "disruptive", _RECREATED, _UPDATE, "proto: fast_socket"),
    ("gke.config.tags", "in-place", "GKE changes the network tags of the nodes", _UPDATE, "proto: tags"),
    ("gke.config.consolidationDelay", "in-place", "holds from now on", _UPDATE, "proto: consolidation_delay"),
    (
        "gke.config.taintConfig.architectureTaintBehavior",
        "in-place",
        "holds from now on",
        _UPDATE,
        "proto: taint_config",
    ),
    (f"gke.{DRIVER_VERSION}", "disruptive", _RECREATED, _UPDATE, "docs: kubernetes-engine/how-to/gpus"),
    ("gke.networkConfig.enablePrivateNodes", "disruptive", _RECREATED, _UPDATE, "proto: node_network_config"),
    *(
        (f"gke.{path}", "replace", _AT_BIRTH, "", "Terraform")
        for path in (
            "maxPodsConstraint.maxPodsPerNode",
            "networkConfig.createPodRange",
            "networkConfig.podRange",
            "networkConfig.podIpv4CidrBlock",
            "placementPolicy.type",
            "placementPolicy.policyName",
            "queuedProvisioning.enabled",
            "bestEffortProvisioning.enabled",
            "bestEffortProvisioning.minProvisionNodes",
            "config.serviceAccount",
            "config.oauthScopes",
            "config.minCpuPlatform",
            "config.flexStart",
            "config.maxRunDuration",
            "config.reservationAffinity.consumeReservationType",
            "config.reservationAffinity.key",
            "config.reservationAffinity.values",
            "config.ephemeralStorageLocalSsdConfig.localSsdCount",
            "config.localNvmeSsdBlockConfig.localSsdCount",
            "config.shieldedInstanceConfig.enableSecureBoot",
            "config.shieldedInstanceConfig.enableIntegrityMonitoring",
            "config.gpuDirectConfig.gpuDirectStrategy",
            "config.bootDiskKmsKey",
        )
    ),
)
"""Rows of the native fields, one per field of `native.NATIVE`."""


def find_row(change: Change) -> UpdateRow:
    """Say what this change does; a field that no row covers is refused, never guessed."""
    row = _row_of(change.field)
    adjust = _BY_VALUE.get(row.field)
    return adjust(change, row) if adjust else row


def _row_of(field: str) -> UpdateRow:
    if field in INTENT_ROWS:
        return INTENT_ROWS[field]
    if field.startswith(("labels[", "tags[")):
        return replace(INTENT_ROWS[field.partition("[")[0] + "[*]"], field=field)
    if field in NATIVE_ROWS:
        return NATIVE_ROWS[field]
    return UpdateRow(field, "refused", "what a change of this field does is not documented", "", "")


def _type(change: Change, row: UpdateRow) -> UpdateRow:
    """A machine of another size with the same GPUs is a change that GKE rolls out (g2-standard-8 to -12)."""
    old, new = (find_machine("gke", str(name)) for name in (change.old, change.new))
    n1 = all(str(name).startswith("n1-") for name in (change.old, change.new))
    same = old is not None and new is not None and (old.accelerator, old.gpus) == (new.accelerator, new.gpus)
    if n1 or same:
        return replace(row, kind="disruptive", sentence=_RECREATED, call=_UPDATE, source="proto: machine_type")
    return row


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = change.old, change.new
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="GKE removes nodes with the pods on them")
    return row


def _taints(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = _items(change.old), _items(change.new)
    if any(taint.endswith(":NoExecute") for taint in new - old):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _zones(change: Change, row: UpdateRow) -> UpdateRow:
    if _items(change.old) <= _items(change.new):
        return replace(row, kind="in-place", sentence="GKE adds nodes in the new zones")
    return row


def _items(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, tuple) else set()


_BY_VALUE: Final = {"instanceType": _type, "nodes.count": _count, "taints": _taints, "zones": _zones}
