"""The GKE provider: the pure half, tied together from its parts.

Lives here: `GkeProvider` and what GKE can do. Must not live here: any import of Google's SDK; `connect` imports the
live half (`client`) when it is asked for.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.binding import abilities
from gpukube.core.values import Ability, NodeStack
from gpukube.provider import importing_sdk
from gpukube_gke.change import scale_pool, update_pool
from gpukube_gke.fields import BINDINGS, OPT_OUT_LABEL, image_of, is_operated, runs_own_plugin
from gpukube_gke.installer import OWN_DRIVER_VALUES, QUOTA_VALUES
from gpukube_gke.rules import check_target
from gpukube_gke.translate import translate_delete, translate_pool, translate_taint
from gpukube_gke.updates import find_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import (
        Change,
        ClusterRef,
        Desired,
        Nodes,
        Observed,
        Ownership,
        Promise,
        Request,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.errors import Diagnostic
    from gpukube.provider import Cloud, Provider

__all__ = ["GkeProvider"]

_ABILITIES: Final[Mapping[str, Ability]] = MappingProxyType(
    {
        **abilities(BINDINGS),
        "sharing.mig.single": Ability("exact"),
        "sharing.mig.mixed": Ability("missing", "", "GKE's plugin shows nvidia.com/gpu only"),
        "sharing.mig.layout": Ability(
            "missing", "write a pool for each profile", "GKE cuts all GPUs of a pool into instances of one size"
        ),
        "gpuTaint": Ability("missing", "", "GKE adds the GPU taint by itself where the cluster has other nodes"),
    }
)
"""Docs: kubernetes-engine/how-to/gpus, concepts/timesharing-gpus, how-to/gpus-multi, how-to/nvidia-mps-gpus."""

_SOURCE: Final = "docs: kubernetes-engine/how-to/gpus"
_OWN_SOURCE: Final = "NVIDIA/cloud-native-docs: gpu-operator/google-gke"
_IMAGES: Final = {"": "COS", "COS_CONTAINERD": "COS", "UBUNTU_CONTAINERD": "Ubuntu"}
_NO_OPERATOR: Final = "GKE's own plugin runs there"
_INSTALLED: Final = " with Google's driver installer"
_ACCELERATOR: Final = "nodePool.config.accelerators.0"
_FIELDS: Final = (
    f"{_ACCELERATOR}.gpuDriverInstallationConfig.gpuDriverVersion",
    f"{_ACCELERATOR}.gpuPartitionSize",
    f"{_ACCELERATOR}.gpuSharingConfig.gpuSharingStrategy",
    f"nodePool.config.labels.{OPT_OUT_LABEL}",
)
"""Who installs what is decided by these (docs: kubernetes-engine/how-to/gpus, NVIDIA/cloud-native-docs google-gke)."""
_AT_ONCE: Final = 4


class GkeProvider:
    """Google Kubernetes Engine."""

    @property
    def name(self) -> str:
        """`provider: gke`."""
        return "gke"

    @property
    def pools_at_once(self) -> int:
        """Four: five operations of a cluster may run, and one is left to others (terraform-provider-google#15205)."""
        return _AT_ONCE

    @property
    def tolerates_resources(self) -> bool:
        """Every cluster does (docs: kubernetes-engine/how-to/gpus, Automatic tolerations)."""
        return True

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature how faithful GKE is."""
        return _ABILITIES

    def check(self, target: Target) -> list[Diagnostic]:
        """Find what GKE would refuse, before any call."""
        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Say what the nodes bring: driver and plugin, unless the spec says that somebody else runs the plugin."""
        own = runs_own_plugin(target)
        installed = is_operated(target) and target.driver_owner in ("auto", "cloud")
        left_out = own or target.driver_owner in ("none", "operator")
        cutter: Literal["operator", "cloud"] = "operator" if is_operated(target) else "cloud"
        system = _IMAGES.get(image_of(target), target.image)
        return NodeStack(
            driver="cloud" if installed or not left_out else "none",
            advertiser="none" if own else "cloud",
            cut_by=cutter if target.sharing.mig else "none",
            source=_OWN_SOURCE if own else _SOURCE,
            image=f"GKE {system}{_INSTALLED if installed else ''}",
            no_operator="" if own else _NO_OPERATOR,
            no_driver="there is none for Container-Optimized OS (NVIDIA/gpu-operator#1623)" if system == "COS" else "",
            without_plugin="write devicePlugin.owner: operator, whose release keeps GKE's plugin away",
            operator_values=OWN_DRIVER_VALUES if installed else QUOTA_VALUES if is_operated(target) else {},
            fields=_FIELDS,
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        return translate_pool(target, ownership, promise)

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Delete a pool by its name; the call takes no etag."""
        return translate_delete(cluster, observed)

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: a pool that failed at creation must be deleted first."""
        del desired, observed
        return None

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Add the GPU taint where GKE did not."""
        return translate_taint(desired, observed)

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Say what changing this field does."""
        del beside, live
        return find_row(change)

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """Make the calls that bring these changes about: one group of attributes in each, guarded by the etag.

        Raises:
            SpecError: The live zones do not divide the size that is declared.
        """
        return update_pool(desired, observed, changes)

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """Set the size, or the bounds of the autoscaler; GKE counts per zone.

        Raises:
            SpecError: The zones of the pool do not divide a number, or it is more than GKE allows.
        """
        return scale_pool(cluster, observed, nodes)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half; no call yet.

        Raises:
            MissingExtra: Google's SDK is not installed.
            AccessError: The endpoint is one that credentials must not be sent to.
        """
        with importing_sdk("google-cloud-container", ("google", "grpc"), "gke", cluster.key):
            from gpukube_gke.client import connect_cluster  # noqa: PLC0415 - the SDK costs 320 ms, planning needs none
        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = GkeProvider
