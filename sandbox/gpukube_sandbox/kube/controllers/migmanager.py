"""The operator's MIG manager: applies a node's MIG label to its GPUs (pending, rebooting, success, or failed).

In scope: its steps on one machine. Out of scope: its DaemonSet (`operands`).

Source: NVIDIA/mig-parted v0.15 deployments/container/reconfigure-mig.sh and cmd/nvidia-mig-manager; NVIDIA/gpu-operator
docs gpu-operator-mig. Which models need a reboot to change MIG mode: MIG User Guide (before Hopper a GPU reset, which
virtual machines cannot do; NVIDIA/gpu-operator#1606).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import yaml

from gpukube_sandbox.kube.controllers.operands import DEPLOY
from gpukube_sandbox.kube.matching import is_terminal, pod_requests
from gpukube_sandbox.kube.nodes import registration as nodes
from gpukube_sandbox.kube.nodes.containers import env_of
from gpukube_sandbox.kube.nodes.hardware import BOARDS, find_model, fits
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import ContainerRun
    from gpukube_sandbox.kube.nodes.shapes import GpuShape
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

CONFIG = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
PAUSED = "paused-for-mig-change"
CLIENTS = ("device-plugin", "gpu-feature-discovery", "dcgm", "dcgm-exporter", "client")
"""Operands that keep the GPUs open; they are stopped while the geometry changes."""

APPLY_S = 15.0
"""Sandbox seconds that nvidia-mig-parted takes."""
REBOOT_S = 90.0

_GENERATED = "default-mig-parted-config"
_BALANCED = ((1, 2), (2, 1), (3, 1))
_RESETS = frozenset({"ampere"})

Layout = tuple[tuple[str, ...] | None, ...]


@dataclass(slots=True)
class _Job:
    """One change in progress.

    Attributes:
        due: Sandbox time of the next step.
    """

    config: str
    layout: Layout
    phase: Literal["stopping", "rebooting", "applying"] = "stopping"
    due: float = 0.0


def layout_of(config: str, gpu: GpuShape) -> Layout | None:
    """Return the layout that a generated config sets on a node's GPUs; None if no such config exists.

    Args:
        config: all-disabled, all-enabled, all-balanced or all-<profile>; "+" in a profile is written ".".
        gpu: The node's GPUs.
    """
    model = find_model(gpu.model)
    if config == "all-disabled":
        return (None,) * gpu.count
    if config == "all-enabled":
        return ((),) * gpu.count
    if config == "all-balanced":
        return (_balanced(gpu.model),) * gpu.count
    for profile in model.profiles.values():
        if config == f"all-{profile.name.replace('+', '.')}":
            return ((profile.name,) * profile.max_count,) * gpu.count
    return None


def _balanced(name: str) -> tuple[str, ...]:
    """Return two one-slice profiles, one two-slice profile, and one three-slice profile if it fits."""
    model = find_model(name)
    found: tuple[str, ...] = ()
    plain = [profile for profile in model.profiles.values() if "+" not in profile.name and "-" not in profile.name]
    for slices, count in _BALANCED:
        first = next((profile.name for profile in plain if profile.slices == slices), "")
        if first and fits(model, (*found, *(first,) * count)):
            found = (*found, *(first,) * count)
    return found


class MigManagers:
    """The MIG managers on all nodes that run their pod.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        machines: Node name -> machine.
    """

    def __init__(self, api: ObjectApi, clock: Clock, machines: Mapping[str, Machine]) -> None:
        self._api = api
        self._clock = clock
        self._machines = machines
        self._jobs: dict[str, _Job] = {}
        self._done: dict[str, str] = {}

    @property
    def are_idle(self) -> bool:
        """Whether no change is in progress."""
        return not self._jobs

    async def step(self, pods: list[JsonObject]) -> list[float]:
        """Advance every node by one step; return the times of the next steps."""
        for name in [name for name in self._done if name not in self._machines]:
            self._done.pop(name, None)
            self._jobs.pop(name, None)
        due = []
        for name, machine in list(self._machines.items()):
            node = await self._api.get("nodes", name)
            manager = _manager_of(machine)
            if node is None or machine.shape.gpu is None or (manager is None and name not in self._jobs):
                continue
            due += await self._reconcile_one(node, machine, manager, pods)
        return due

    async def _reconcile_one(
        self, node: JsonObject, machine: Machine, manager: ContainerRun | None, pods: list[JsonObject]
    ) -> list[float]:
        name, desired, job = name_of(node), labels(node).get(CONFIG, ""), self._jobs.get(name_of(node))
        if job is None:
            if not desired or self._done.get(name) == desired:
                return []
            job = await self._begin(node, machine, desired)
            return [job.due] if job else []
        if self._clock.now() < job.due:
            return [job.due]
        match job.phase:
            case "stopping":
                return await self._stopped(node, machine, job, manager, pods)
            case "rebooting":
                machine.up = True
                await nodes.mark_ready(self._api, self._clock, name)
                job.phase, job.due = "applying", self._clock.now() + APPLY_S
            case "applying" if not machine.has_driver:  # a container reloads it after the reboot
                job.due = self._clock.now() + 1
            case "applying":
                await self._apply(node, machine, job)
        return [job.due] if name in self._jobs else []

    async def _begin(self, node: JsonObject, machine: Machine, desired: str) -> _Job | None:
        name, gpu = name_of(node), machine.shape.gpu
        layout = await self._layout(desired, gpu) if gpu else None
        if layout is None:
            await self._end(node, desired, "failed")
            return None
        if gpu and layout == gpu.per_gpu():
            await self._end(node, desired, "success")
            return None
        job = self._jobs[name] = _Job(desired, layout, due=self._clock.now() + 1)
        paused = {
            f"{DEPLOY}{item}": PAUSED for item in CLIENTS if labels(node).get(f"{DEPLOY}{item}", "true") != "false"
        }
        await self._label(node, {STATE: "pending", **paused})
        return job

    async def _stopped(
        self, node: JsonObject, machine: Machine, job: _Job, manager: ContainerRun | None, pods: list[JsonObject]
    ) -> list[float]:
        """Once the operator's clients are gone, fail if a user's pod holds a GPU, or reboot if necessary."""
        name, gpu = name_of(node), machine.shape.gpu
        if any(run.runs("plugin") or run.runs("gfd") for run in machine.pods.values()):
            job.due = self._clock.now() + 1
            return [job.due]
        if gpu is None or _users(name, pods) or any(run.claimed and not run.over for run in machine.pods.values()):
            await self._end(node, job.config, "failed")
            return []
        if _changes_mode(gpu, job.layout) and find_model(gpu.model).family in _RESETS:
            if manager is None or env_of(manager.body).get("WITH_REBOOT") != "true":
                await self._end(node, job.config, "failed")
                return []
            await self._reboot(node, machine)
            job.phase, job.due = "rebooting", self._clock.now() + REBOOT_S
            return [job.due]
        job.phase, job.due = "applying", self._clock.now() + APPLY_S
        return [job.due]

    async def _reboot(self, node: JsonObject, machine: Machine) -> None:
        """Reboot: MIG mode survives it, instances do not (NVIDIA/mig-parted#225)."""
        await self._label(node, {STATE: "rebooting"})
        machine.shut_down()
        await nodes.mark_unknown(self._api, self._clock, name_of(node))

    async def _apply(self, node: JsonObject, machine: Machine, job: _Job) -> None:
        gpu = machine.shape.gpu
        if gpu is not None:
            cut = dataclasses.replace(gpu, mig_layout=job.layout)
            machine.shape = dataclasses.replace(machine.shape, gpu=cut)
        await self._end(node, job.config, "success")

    async def _end(self, node: JsonObject, config: str, state: str) -> None:
        name = name_of(node)
        self._jobs.pop(name, None)
        self._done[name] = config
        live = await self._api.get("nodes", name) or node
        back = {
            f"{DEPLOY}{item}": "true"
            for item in CLIENTS
            if labels(live).get(f"{DEPLOY}{item}", "").startswith("paused")
        }
        await self._label(live, {STATE: state, **back})

    async def _label(self, node: JsonObject, desired: dict[str, str]) -> None:
        change = {key: value for key, value in desired.items() if labels(node).get(key) != value}
        if change:
            await self._api.patch("nodes", node, {"metadata": {"labels": change}})

    async def _layout(self, config: str, gpu: GpuShape) -> Layout | None:
        """Return the layout from the policy's own ConfigMap if it names one, else from the generated configs."""
        policies = await self._api.list("clusterpolicies")
        section = ((policies[0].get("spec") or {}).get("migManager") or {}).get("config") or {} if policies else {}
        name = str(section.get("name") or "")
        if name in {"", _GENERATED}:
            return layout_of(config, gpu)
        found = [item for item in await self._api.list("configmaps") if name_of(item) == name]
        text = (found[0].get("data") or {}).get("config.yaml", "") if found else ""
        entries = ((yaml.safe_load(text) or {}).get("mig-configs") or {}).get(config) if text else None
        return custom_layout(entries, gpu) if isinstance(entries, list) else None


def custom_layout(entries: list[JsonObject], gpu: GpuShape) -> Layout | None:
    """Return the layout of a custom config; None if it does not fit the GPUs."""
    found: list[tuple[str, ...] | None] = [None] * gpu.count
    for entry in entries:
        if not _is_for(entry, gpu):
            continue
        devices = entry.get("devices")
        chosen = range(gpu.count) if devices == "all" else [int(item) for item in devices or ()]
        cut = tuple(profile for profile, count in (entry.get("mig-devices") or {}).items() for _ in range(int(count)))
        if not fits(find_model(gpu.model), cut) or any(item >= gpu.count for item in chosen):
            return None
        for item in chosen:
            found[item] = cut if entry.get("mig-enabled") else None
    return tuple(found)


def _is_for(entry: JsonObject, gpu: GpuShape) -> bool:
    """Return whether an entry's device-filter (one or more of "0x" + device id + vendor id) matches these GPUs."""
    desired = entry.get("device-filter") or []
    named = [desired] if isinstance(desired, str) else desired
    return not named or any(f"0x{board}10DE" in named for board in BOARDS.get(find_model(gpu.model).name, ()))


def _manager_of(machine: Machine) -> ContainerRun | None:
    runs = machine.pods.values() if machine.up else ()
    return next(
        (item for run in runs for item in run.mains if item.role == "mig-manager" and item.state == "running"), None
    )


def _users(node: str, pods: list[JsonObject]) -> list[JsonObject]:
    """Return the users' pods that hold GPUs of a node."""
    here = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == node and not is_terminal(pod)]
    return [
        pod
        for pod in here
        if any(name.startswith("nvidia.com/") and count for name, count in pod_requests(pod).items())
        and namespace_of(pod)
        and not meta(pod).get("deletionTimestamp")
    ]


def _changes_mode(gpu: GpuShape, layout: Layout) -> bool:
    return any((old is None) != (new is None) for old, new in zip(gpu.per_gpu(), layout, strict=True))
