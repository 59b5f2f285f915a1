"""Hints about pools that are valid but cost more than necessary or provide less than expected, on any cloud.

In scope: rules on a resolved pool and its owners; all are hints. Out of scope: errors (resolve, owners), and rules of
one cloud (the providers).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.gpu.mig import instances_per_gpu, place_layout
from gpukube.gpu.mig_room import room_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Ownership, Target
    from gpukube.gpu.models import GpuModel

_COSTLY_USD_H: Final = 200.0
"""Price from which a pool that never scales to zero gets a hint: three machines of 8 x H100."""

_RACK_SCALE: Final = frozenset({"GB200", "GB300"})
"""Chips whose NVLink connects the nodes of a rack."""
_COMPUTE_DOMAINS: Final = (
    "helm upgrade --install nvidia-dra-driver-gpu nvidia/nvidia-dra-driver-gpu --namespace nvidia-dra-driver-gpu "
    "--create-namespace --set resources.gpus.enabled=false"
)


def advise(target: Target, ownership: Ownership) -> list[Finding]:
    """Return the hints for a pool."""
    return [found for rule in _RULES for found in rule(target, ownership)]


def _leftover(target: Target, _ownership: Ownership) -> Iterator[Finding]:
    """Report a profile that does not divide the GPU evenly: the remainder is unusable (NVIDIA MIG User Guide)."""
    cut = target.sharing.mig
    if cut is None or not cut.profile:
        return
    if unused := _unused_part(target.machine.model, cut.profile):
        yield Finding(
            "mig-leftover",
            target.locator.at("sharing.mig.profile"),
            f"{target.where}: {unused}",
            fix="use a profile that divides the GPU, or sharing.mig.layout where the GPU Operator does MIG",
            severity="hint",
        )


@lru_cache(maxsize=256)  # pools have few layouts, and one takes as long as all other rules of a pool
def _unused_part(model: GpuModel, profile: str) -> str:
    placed = place_layout(model, [profile] * instances_per_gpu(model, profile)) or ()
    plain = {name: count for name, count in room_left(model, placed).items() if "+" not in name}
    if not plain:
        return ""
    name, count = max(plain.items(), key=lambda item: item[1])
    return f"{len(placed)} x {profile} leave part of each {model} unused: room for {count} x {name}"


def _shares_add(target: Target, ownership: Ownership) -> Iterator[Finding]:
    """Report that two shares may be of one GPU (NVIDIA/gpu-operator#386); GKE's plugin allows a pod only one."""
    slicing = target.sharing.slicing
    if slicing is None or slicing.mode != "time-slicing" or slicing.fail_requests_greater_than_one:
        return
    if target.machine.devices > 1 and ownership.advertiser in ("chart", "operator"):
        yield Finding(
            "shares-add",
            target.locator.at("sharing.timeSlicing"),
            f"{target.where}: a pod that requests 2 may get two shares of one of the {target.machine.devices} GPUs",
            fix="write failRequestsGreaterThanOne: true",
            severity="hint",
        )


def _isolation(target: Target, _ownership: Ownership) -> Iterator[Finding]:
    """Report what sharing does not isolate (NVIDIA/k8s-device-plugin README; NVIDIA MIG User Guide)."""
    slicing = target.sharing.slicing
    if slicing is None:
        return
    sliced = slicing.mode == "time-slicing"
    what = "GPU instance" if target.sharing.mig else "GPU"
    memory = f"each may use all memory of the {what}, and a" if sliced else "memory is capped for each, but a"
    yield Finding(
        "sharing-isolation",
        target.locator.at("sharing.timeSlicing" if sliced else "sharing.mps"),
        f"{target.where}: pods that share a {what} are not isolated: {memory} fault of one can stop all",
        fix="share among pods that trust each other, use sharing.mig, or silence this rule",
        why="time-slicing isolates neither memory nor faults (NVIDIA/k8s-device-plugin README)"
        if sliced
        else "the pods' processes are clients of one MPS server (NVIDIA/k8s-device-plugin README)",
        severity="hint",
    )


def _costly(target: Target, _ownership: Ownership) -> Iterator[Finding]:
    """Report the price of the nodes that always run, with its date and region."""
    machine, nodes = target.machine, target.nodes.minimum
    price = (machine.price_usd_h or 0.0) * nodes
    if target.capacity.type == "on-demand" and price >= _COSTLY_USD_H:
        yield Finding(
            "costly",
            target.locator.at("nodes"),
            f"{target.where}: {nodes} x {machine.name} always run: about {price:,.0f} USD an hour on demand "
            f"({machine.price_region}, {machine.price_date})",
            fix="write autoscaling with min: 0, or reserve them",
            severity="hint",
        )


def _nvlink(target: Target, _ownership: Ownership) -> Iterator[Finding]:
    """Report what connects the GPUs of a rack: gpukube installs a plugin that advertises the GPUs of single nodes."""
    if target.machine.model.chip not in _RACK_SCALE:
        return
    yield Finding(
        "nvlink-domain",
        target.locator.at("instanceType"),
        f"{target.where}: gpukube sets up no NVLink domain between nodes of {target.machine.name}",
        fix=f"for jobs over several nodes run {_COMPUTE_DOMAINS}; values for each cloud: docs/large-pools.md",
        why="NVIDIA's DRA driver makes the domains, in addition to the device plugin (docs: "
        "eks/ml-eks-nvidia-ultraserver; ai-hypercomputer/docs/create/gke-ai-hypercompute)",
        severity="hint",
    )


_RULES: Final[tuple[Callable[[Target, Ownership], Iterator[Finding]], ...]] = (
    _leftover,
    _shares_add,
    _isolation,
    _costly,
    _nvlink,
)
