"""The kubelets of all simulated machines: run bound pods, or fail them like real kubelets.

In scope: starting and restarting containers, terminating deleted pods, reporting status of pods and nodes.
Out of scope: what programs do (`programs`), scheduling.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_terminal
from gpukube_sandbox.kube.nodes import nfd
from gpukube_sandbox.kube.nodes.containers import config_maps
from gpukube_sandbox.kube.nodes.devices import allocate
from gpukube_sandbox.kube.nodes.dranet import publish_slices
from gpukube_sandbox.kube.nodes.draslices import SLICES, concerns, serve_slices
from gpukube_sandbox.kube.nodes.gkenetworks import NETWORKS, PARAMETERS, register_networks
from gpukube_sandbox.kube.nodes.pluginconfig import Crash
from gpukube_sandbox.kube.nodes.podevents import no_runtime, no_volume, record_events
from gpukube_sandbox.kube.nodes.podruns import PodRun, pod_status, start_run
from gpukube_sandbox.kube.nodes.preparing import extended_by_claim, prepare_claims
from gpukube_sandbox.kube.nodes.processes import Process
from gpukube_sandbox.kube.nodes.programs import NotFound, config_label, start
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podevents import PodEvent
    from gpukube_sandbox.kube.nodes.podruns import ContainerRun
    from gpukube_sandbox.kube.nodes.processes import NodeFaults
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

PULL_S = 3.0
"""Sandbox seconds from binding to the start of containers."""
END_S = 1.0
"""Sandbox seconds that a deleted pod takes to terminate."""
WORK_S = 4.0
"""Sandbox seconds that a finite pod runs, unless its command sleeps."""
_SLEEPS = re.compile(r"\bsleep\s+(?:(?P<ever>inf)|(?P<seconds>\d+(?:\.\d+)?)(?P<unit>[smhd]?))")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_STAYS = re.compile(r"\bray start\b.*--block\b|\bray kuberay-autoscaler\b")
"""Commands of Ray nodes that run indefinitely."""
_FOR_EVER_S = 10.0 * 365 * 86400
_RELOADING = frozenset({"plugin", "gfd", "mps"})
_MASTER_CONFIG = "/etc/kubernetes/node-feature-discovery/nfd-master.conf"


class Kubelets:
    """The node agents of a cluster.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        logs: Container logs: (pod uid, container) -> lines.
        faults: Takes a fault's action and a pool, and returns whether it strikes a node of the pool.

    Attributes:
        machines: Node name -> machine; the cluster adds and removes them.
        events: Recorder of the kubelets' events about pods and nodes.
    """

    watches = ("pods", "nodes", "configmaps", "nodefeatures", NETWORKS, PARAMETERS, SLICES)

    def __init__(
        self, api: ObjectApi, clock: Clock, logs: dict[tuple[str, str], list[str]], faults: NodeFaults
    ) -> None:
        self._api = api
        self._clock = clock
        self._logs = logs
        self._faults = faults
        self.events = Recorder(api, clock, "kubelet")
        self.machines: dict[str, Machine] = {}

    async def reconcile(self) -> float | None:
        """Advance every pod by one step; return the time of the next step that no change triggers."""
        nodes = {name_of(node): node for node in await self._api.list("nodes")}
        pods: dict[str, list[JsonObject]] = {}
        for pod in await self._api.list("pods"):
            pods.setdefault(spec(pod).get("nodeName", ""), []).append(pod)
        due: list[float] = []
        for name, machine in list(self.machines.items()):  # the cluster may add nodes during an await
            if machine.up and name in nodes:
                due += await self._machine(machine, nodes[name], pods.get(name, []))
        due += await self._serve_slices(nodes)
        await self._discover(nodes.values(), [pod for group in pods.values() for pod in group])
        return min(due, default=None)

    async def _machine(self, machine: Machine, node: JsonObject, pods: list[JsonObject]) -> list[float]:
        living = {meta(pod)["uid"] for pod in pods}
        for uid in [uid for uid in machine.pods if uid not in living]:
            machine.unregister(machine.pods.pop(uid).advertised)
        due: list[float] = []
        for pod in pods:
            due += await self._pod(machine, node, pod)
        await register_networks(self._api, machine)
        await publish_slices(self._api, machine, node)
        await self._report(machine, node)
        return due

    async def _serve_slices(self, nodes: dict[str, JsonObject]) -> list[float]:
        """Keep the slices of the DRA driver; read them only if a machine needs that."""
        concerned = [
            (name, machine)
            for name, machine in self.machines.items()
            if machine.up and name in nodes and concerns(machine)
        ]
        slices: dict[str, list[JsonObject]] = {}
        for item in await self._api.list(SLICES) if concerned else ():
            slices.setdefault(spec(item).get("nodeName", ""), []).append(item)
        due: list[float] = []
        for name, machine in concerned:
            live, now = slices.get(name, []), self._clock.now()
            due += await serve_slices(self._api, machine, nodes[name], live, now, faults=self._faults)
        return due

    async def _pod(self, machine: Machine, node: JsonObject, pod: JsonObject) -> list[float]:
        now = self._clock.now()
        uid = meta(pod)["uid"]
        if uid not in machine.pods:
            if is_terminal(pod) and not meta(pod).get("deletionTimestamp"):
                return []
            machine.pods[uid] = start_run(pod, now)
            allocate(machine, machine.pods[uid], extended_by_claim(pod))
        run = machine.pods[uid]
        if meta(pod).get("deletionTimestamp"):
            await record_events(self.events, run, pod, None)
            return await self._end(machine, run, pod)
        creation_problem = None
        if not run.started and now >= run.born + PULL_S:
            creation_problem = await self._creation_problem(machine, node, pod, run)
            run.started = not (creation_problem or run.refusal or is_terminal(pod))
        if run.started and not is_terminal(pod):
            await self._advance(machine, node, pod, run)
        await record_events(self.events, run, pod, creation_problem)
        await self._show(machine, run, pod)
        return [] if run.refusal or is_terminal(pod) else _next_steps(run, now)

    async def _end(self, machine: Machine, run: PodRun, pod: JsonObject) -> list[float]:
        now = self._clock.now()
        run.end_at = run.end_at or now + END_S
        if now < run.end_at:
            return [run.end_at]
        machine.unregister(run.advertised)
        run.advertised = frozenset()
        await self._api.delete("pods", pod, grace_s=0)
        return []

    async def _advance(self, machine: Machine, node: JsonObject, pod: JsonObject, run: PodRun) -> None:
        now = self._clock.now()
        for item in run.inits:
            if item.state != "done":
                if not item.pullable:
                    item.wait_for_image()
                    return
                await self._try(item, self._process(machine, node, pod, run, item))
                if item.state != "running" or item.holds:
                    return
                item.finish(now)
        for item in run.mains:
            await self._tend(item, self._process(machine, node, pod, run, item))
        for item in run.mains:  # deliver a container's signal now: nothing else may trigger another run
            if item.state == "running" and item.role in _RELOADING and item.seen != run.reloads:
                await self._try(item, self._process(machine, node, pod, run, item), reload=True)

    async def _creation_problem(
        self, machine: Machine, node: JsonObject, pod: JsonObject, run: PodRun
    ) -> PodEvent | None:
        """Return why a pod's containers cannot be created; the kubelet retries."""
        if spec(pod).get("runtimeClassName") not in {None, *machine.runtimes}:
            return no_runtime(pod)
        for name in config_maps(pod):
            if not await self._api.get("configmaps", name, namespace_of(pod)):
                return no_volume(pod, name)
        return await prepare_claims(self._api, machine, node, pod, run)

    def _process(self, machine: Machine, node: JsonObject, pod: JsonObject, run: PodRun, item: ContainerRun) -> Process:
        log = self._logs.setdefault((run.uid, item.name), [])
        return Process(self._api, machine, node, pod, run, item, log, self._clock.now(), self._faults)

    async def _tend(self, item: ContainerRun, process: Process) -> None:
        run, now = process.run, process.now
        if not item.pullable:
            item.wait_for_image()
        elif item.state == "waiting":
            await self._try(item, process)
        elif item.state == "running":
            if spec(process.pod).get("restartPolicy") != "Always" and now >= item.since + _duration(item):
                item.finish(now)
            elif _must_reload(item, run, process.node, now):
                await self._try(item, process, reload=True)

    async def _try(self, item: ContainerRun, process: Process, *, reload: bool = False) -> None:
        if not reload and process.now < item.retry_at:
            return
        item.seen = process.run.reloads
        since = item.since
        item.run(process.now)
        if reload:
            item.since = since
        try:
            await start(process)
        except Crash as crash:
            if not isinstance(crash, NotFound):
                process.log.append(f"E main.go] {crash}")
            self._fail(item, process, crash)

    def _fail(self, item: ContainerRun, process: Process, crash: Crash) -> None:
        if item.role == "plugin":
            process.machine.unregister(process.run.advertised)
            process.run.advertised = frozenset()
        if item.role == "dra-plugin":
            process.run.offer = None
        if spec(process.pod).get("restartPolicy") == "Never":
            never_began = isinstance(crash, NotFound)
            item.fail(*(("StartError", str(crash), 128) if never_began else ("Error", "", 1)))
        else:
            item.crash(process.pod, process.now)

    async def _show(self, machine: Machine, run: PodRun, pod: JsonObject) -> None:
        digest = hashlib.sha256(machine.shape.name.encode()).digest()
        host = f"10.224.{digest[0]}.{digest[1]}"
        desired = pod_status(run, host) | {"hostIPs": [{"ip": host}]}
        inner = hashlib.sha256(run.uid.encode()).digest()
        if run.started:
            address = host if spec(pod).get("hostNetwork") else f"10.244.{inner[0]}.{inner[1]}"
            desired |= {"podIP": address, "podIPs": [{"ip": address}]}
        current = status(pod)
        if is_terminal(pod) or all(current.get(key) == value for key, value in desired.items()):
            return
        await self._api.patch_status("pods", pod, desired)

    async def _report(self, machine: Machine, node: JsonObject) -> None:
        current = status(node)
        capacity = {name: str(count) for name, count in machine.capacity.items()}
        allocatable = {name: str(count) for name, count in machine.allocatable().items()}
        if any(current["capacity"].get(name) != count for name, count in capacity.items()) or any(
            current["allocatable"].get(name) != count for name, count in allocatable.items()
        ):
            await self._api.patch_status("nodes", node, {"capacity": capacity, "allocatable": allocatable})

    async def _discover(self, nodes: Iterable[JsonObject], pods: list[JsonObject]) -> None:
        """Run the NFD master if one of its pods is running."""
        living = {meta(pod)["uid"]: pod for pod in pods if not meta(pod).get("deletionTimestamp")}
        for machine in self.machines.values():
            for run in machine.pods.values() if machine.up else ():
                if run.uid in living and run.runs("nfd-master"):
                    master = next(item for item in run.mains if item.role == "nfd-master")
                    node = {"metadata": {"name": machine.shape.name}}
                    config = await self._process(machine, node, living[run.uid], run, master).file(_MASTER_CONFIG)
                    await nfd.relabel(self._api, nodes, next(iter(config.values()), ""))
                    return


def _must_reload(item: ContainerRun, run: PodRun, node: JsonObject, now: float) -> bool:
    if item.role == "config-manager":
        return run.label != config_label(node)
    return 0 < item.retry_at <= now


def _duration(item: ContainerRun) -> float:
    """Return how long a finite program runs: as long as its command sleeps."""
    command = " ".join(str(part) for part in [*(item.body.get("command") or ()), *(item.body.get("args") or ())])
    if _STAYS.search(command):
        return _FOR_EVER_S
    found = _SLEEPS.search(command)
    if not found:
        return WORK_S
    return _FOR_EVER_S if found["ever"] else max(WORK_S, float(found["seconds"]) * _UNITS[found["unit"]])


def _next_steps(run: PodRun, now: float) -> list[float]:
    if not run.started:
        return [run.born + PULL_S] if now < run.born + PULL_S else []
    found = [
        item.retry_at for item in [*run.inits, *run.mains] if item.retry_at and item.state in {"waiting", "running"}
    ]
    found += [item.since + _duration(item) for item in run.mains if item.state == "running"]
    return [moment for moment in found if moment > now]
