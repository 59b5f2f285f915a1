"""Checks whether GKE can share and partition GPUs as requested, and under which name it advertises them.

In scope: checks of `sharing` and of who runs the plugin. Out of scope: the other rules (`checks`).

GKE's own plugin always advertises nvidia.com/gpu, however the GPUs are partitioned or shared
(GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_gke.facts.partitions import PARTITIONS
from gpukube_gke.pool.fields import is_operated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target
    from gpukube.gpu.sharing import MigCut, Slicing

_COHERENT: Final = "a4x-highgpu-"
_MAX_CLIENTS: Final = 48  # 2 to 48 (GKE cluster autoscaler, GetMaxGpuSharedClients)
_FIELDS: Final = {"time-slicing": "sharing.timeSlicing", "mps": "sharing.mps"}


def check_shared(target: Target) -> Iterator[Finding]:
    """Report every kind of sharing that GKE's plugin does not support."""
    cut, slicing = target.sharing.mig, target.sharing.slicing
    if (cut or slicing) and target.machine.is_fractional:
        yield Finding(
            "gke-fractional",
            target.locator.at("sharing"),
            f"{target.machine.name} has a fraction of a GPU, which GKE cannot share further",
            fix="remove sharing, or choose a machine with a whole GPU, such as g4-standard-48",
        )
        return
    if is_operated(target):
        return
    if cut is not None:
        yield from _mig(target, cut)
    if slicing is not None:
        yield from _slicing(target, slicing)
    if cut is not None and target.plugin_owner == "none":
        yield from _own_plugin(target)


def _mig(target: Target, cut: MigCut) -> Iterator[Finding]:
    """Report unsupported profiles and names; unsupported layouts are a missing ability (`provider`)."""
    if cut.layout:
        return
    if cut.strategy == "mixed":
        yield Finding(
            "gke-mig-mixed",
            target.locator.at("sharing.mig.strategy"),
            f"GKE advertises MIG instances as nvidia.com/gpu, never as nvidia.com/mig-{cut.profile}",
            fix="write strategy: single",
        )
    if target.machine.name.startswith(_COHERENT):
        yield Finding(
            "gke-mig-coherent",
            target.locator.at("sharing.mig"),
            f"GKE starts {target.machine.name} with coherent driver memory (CDMM), which excludes MIG",
            fix="remove sharing.mig, or choose another machine",
            why="docs: ai-hypercomputer/docs/create/gke-ai-hypercompute; Google's device plugin has sizes of this "
            "GPU nevertheless (GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia/mig)",
            severity="warning",
        )
    known = PARTITIONS.get(target.machine.accelerator, {})
    if cut.profile not in known:
        yield Finding(
            "gke-mig-profile",
            target.locator.at("sharing.mig.profile"),
            f'GKE does not support the MIG profile "{cut.profile}" on {target.machine.model}',
            fix=f"write one of {', '.join(known)}",
            why="GKE's partitioner and its device plugin support different sizes; both support these",
        )
    elif "+" in cut.profile:
        plain = cut.profile.partition("+")[0]
        yield Finding(
            "gke-mig-spelling",
            target.locator.at("sharing.mig.profile"),
            f'Google uses two spellings of the size "{cut.profile}", with + and with a dot',
            fix=f"write {plain} unless the engines of {cut.profile} are needed",
            why="the partitioner accepts +, the autoscaler a dot; which one GKE's API needs is not documented",
            severity="warning",
        )


def _slicing(target: Target, slicing: Slicing) -> Iterator[Finding]:
    field = _FIELDS[slicing.mode]
    if slicing.rename:
        yield Finding(
            "gke-renamed",
            target.locator.at(f"{field}.renameByDefault"),
            "GKE advertises shared GPUs as nvidia.com/gpu, never as nvidia.com/gpu.shared",
            fix="remove renameByDefault: true",
        )
    if slicing.replicas > _MAX_CLIENTS:
        yield Finding(
            "gke-clients",
            target.locator.at(f"{field}.replicas"),
            f"{field}.replicas is {slicing.replicas}, more clients than GKE allows per GPU",
            fix=f"write 2 to {_MAX_CLIENTS}",
        )
    limit = f"{field}.failRequestsGreaterThanOne"
    is_written = target.locator.at(limit) != target.locator.at(field)  # else false is only the default
    if slicing.mode == "time-slicing" and not slicing.fail_requests_greater_than_one and is_written:
        yield Finding(
            "gke-request-limit",
            target.locator.at(limit),
            "GKE refuses pods that request more than one share of a GPU",
            fix="write failRequestsGreaterThanOne: true",
            why="docs: kubernetes-engine/concepts/timesharing-gpus",
            severity="warning",
        )


def _own_plugin(target: Target) -> Iterator[Finding]:
    """Warn about MIG without GKE's plugin; time-slicing and MPS without it are errors on every cloud."""
    yield Finding(
        "gke-own-plugin",
        target.locator.at("devicePlugin.owner"),
        "devicePlugin.owner is none: GKE's driver installer configures MIG, and your plugin has to advertise it",
        fix="run a plugin with migStrategy single, or remove devicePlugin.owner: none",
        severity="warning",
    )
