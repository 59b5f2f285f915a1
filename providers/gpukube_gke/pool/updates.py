"""The effect of changing each field of a live GKE pool, with its source.

In scope: the table, its lookup, and the unused parts of the update calls. Out of scope: sending an update (`change`),
the list of native fields (`native`).

A source that begins with "google.container.v1" is a comment of that message's field; "Terraform" is the ForceNew list
of GoogleCloudPlatform/magic-modules, mmv1/third_party/terraform/services/container/node_config.go.tmpl. If it is not
documented whether a change recreates nodes, the row assumes that it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import binding
from gpukube.core.values import UpdateRow
from gpukube_gke.pool.fields import BINDINGS, SET_MANAGEMENT, SET_SCALING, UPDATE
from gpukube_gke.pool.native import native_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Change, UpdateKind

_AT_CREATION: Final = "set at creation only"
_RUN_DURATION: Final = (
    "set at creation, as in Terraform; the effect of UpdateNodePool on live nodes is not documented (unconfirmed)"
)
_RECREATED: Final = "GKE recreates the nodes, one surge at a time, draining each"
_MAYBE_RECREATED: Final = "GKE may recreate the nodes, one surge at a time, draining each"
_REDIVIDED: Final = "the number of devices changes while pods run, and GKE may recreate the nodes"
_NEXT_UPGRADE: Final = "takes effect at the next upgrade"
_FROM_NOW_ON: Final = "takes effect immediately"
_PROTO: Final = "google.container.v1 UpdateNodePoolRequest."
_AICR: Final = "NVIDIA/aicr docs/integrator/gke-gpu-setup.md"
_TRIED: Final = "GoogleCloudPlatform/magic-modules#18493"
_TERRAFORM: Final = "Terraform: ForceNew (GoogleCloudPlatform/magic-modules, node_config.go.tmpl)"


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str, str]) -> dict[FieldPath, UpdateRow]:
    return {row[0]: UpdateRow(*row) for row in rows}


INTENT_ROWS: Final[Mapping[FieldPath, UpdateRow]] = {row.path: row.row for row in BINDINGS}
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Final[Mapping[FieldPath, UpdateRow]] = _rows(
    *(
        (
            native_path(f"management.{name}"),
            "in-place",
            _FROM_NOW_ON,
            SET_MANAGEMENT,
            "google.container.v1 SetNodePoolManagementRequest.management",
        )
        for name in ("autoUpgrade", "autoRepair")
    ),
    (native_path("upgradeSettings.strategy"), "in-place", _NEXT_UPGRADE, UPDATE, f"{_PROTO}upgrade_settings"),
    (
        native_path("autoscaling.locationPolicy"),
        "in-place",
        _FROM_NOW_ON,
        SET_SCALING,
        "google.container.v1 NodePoolAutoscaling.location_policy",
    ),
    (native_path("config.gvnic.enabled"), "disruptive", _MAYBE_RECREATED, UPDATE, f"{_PROTO}gvnic"),
    (native_path("config.fastSocket.enabled"), "disruptive", _MAYBE_RECREATED, UPDATE, f"{_PROTO}fast_socket"),
    (native_path("config.tags"), "in-place", "GKE changes the network tags of the nodes", UPDATE, f"{_PROTO}tags"),
    (native_path("config.consolidationDelay"), "in-place", _FROM_NOW_ON, UPDATE, f"{_PROTO}consolidation_delay"),
    (
        native_path("config.taintConfig.architectureTaintBehavior"),
        "in-place",
        "GKE changes the taints of arm64 nodes",
        UPDATE,
        f"{_PROTO}taint_config",
    ),
    (
        native_path("config.workloadMetadataConfig.mode"),
        "disruptive",
        _MAYBE_RECREATED,
        UPDATE,
        f"{_PROTO}workload_metadata_config",
    ),
    (native_path("config.gcfsConfig.enabled"), "disruptive", _MAYBE_RECREATED, UPDATE, f"{_PROTO}gcfs_config"),
    (
        native_path("config.loggingConfig.variantConfig.variant"),
        "disruptive",
        _MAYBE_RECREATED,
        UPDATE,
        f"{_PROTO}logging_config",
    ),
    *(
        (
            native_path(f"nodeDrainConfig.{name}"),
            "in-place",
            "takes effect at the next drain",
            UPDATE,
            f"{_PROTO}node_drain_config",
        )
        for name in ("respectPdbDuringNodePoolDeletion", "pdbTimeoutDuration", "graceTerminationDuration")
    ),
    (
        native_path("networkConfig.enablePrivateNodes"),
        "disruptive",
        _MAYBE_RECREATED,
        UPDATE,
        f"{_PROTO}node_network_config",
    ),
    *(
        (native_path(path), "replace", _AT_CREATION, "", _TERRAFORM)
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
        (native_path(path), "replace", _AT_CREATION, "", "google.container.v1: in no update call")
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
    """Return the effect of a change; a field without a row is refused, never guessed."""
    row = binding.find_row(INTENT_ROWS, NATIVE_ROWS, change.field)
    if row is None:
        return UpdateRow(change.field, "refused", "the effect of changing this field is not documented", "", "")
    return binding.adjusted(BINDINGS, change, row)
