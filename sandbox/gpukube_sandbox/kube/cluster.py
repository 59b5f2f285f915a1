"""One emulated cluster: its store, controllers, and nodes.

In scope: the interface that the emulated clouds use. Out of scope: rules of a cloud, HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
from typing import TYPE_CHECKING, Protocol

from gpukube_sandbox.faults import no_fault
from gpukube_sandbox.kube.autoscaler.scaler import Autoscaler
from gpukube_sandbox.kube.controllers.claims import VolumeClaims
from gpukube_sandbox.kube.controllers.daemonsets import DaemonSets
from gpukube_sandbox.kube.controllers.deployments import Deployments
from gpukube_sandbox.kube.controllers.deviceclaims import DeviceClaims
from gpukube_sandbox.kube.controllers.disruptions import Disruptions
from gpukube_sandbox.kube.controllers.jobs import Jobs
from gpukube_sandbox.kube.controllers.loops import run_loop
from gpukube_sandbox.kube.controllers.nodelife import NodeLife
from gpukube_sandbox.kube.controllers.operator import GpuOperator
from gpukube_sandbox.kube.controllers.replicas import ReplicaSets, ReplicationControllers
from gpukube_sandbox.kube.controllers.scheduler import Scheduler
from gpukube_sandbox.kube.controllers.statefulsets import StatefulSets
from gpukube_sandbox.kube.controlplane import ControlPlane
from gpukube_sandbox.kube.kuberay.controller import KubeRay
from gpukube_sandbox.kube.nodes import registration as nodes
from gpukube_sandbox.kube.nodes.devices import held_devices, uuid_of
from gpukube_sandbox.kube.nodes.draslices import orphan_slices
from gpukube_sandbox.kube.nodes.kubelet import Kubelets
from gpukube_sandbox.kube.nodes.machines import Machine
from gpukube_sandbox.kube.nodes.settings import configz
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.nodes.smi import can_run, listing
from gpukube_sandbox.kube.store.gates import parse_minor
from gpukube_sandbox.kube.store.objectapi import StoreApi
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec
from gpukube_sandbox.kube.store.rbac import SANDBOX_ADMIN
from gpukube_sandbox.kube.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.autoscaler.groups import Groups
    from gpukube_sandbox.kube.nodes.processes import NodeFaults
    from gpukube_sandbox.kube.remote import RemoteApi
    from gpukube_sandbox.kube.store.objectapi import ObjectApi, Wakeup
    from gpukube_sandbox.kube.store.objects import JsonObject

__all__ = ["GpuShape", "KubeCluster", "NodeShape", "Taint"]

REGISTERS_S = 5.0
"""Sandbox seconds from registration to readiness."""
REBOOT_S = 90.0
"""Sandbox seconds that the reboot for a MIG layout takes on AKS."""

_LOG = logging.getLogger(__name__)
_CONTROLLERS = (
    DaemonSets, Deployments, ReplicaSets, ReplicationControllers, StatefulSets, Jobs, Disruptions, NodeLife,
    VolumeClaims, DeviceClaims,
)  # fmt: skip


class Follower(Protocol):
    """A cloud's own loop over the machines of a cluster; runs as the controllers do."""

    @property
    def watches(self) -> tuple[str, ...]:
        """Types of objects whose changes wake it."""
        ...

    async def reconcile(self) -> float | None:
        """Do the work; return the sandbox time of the next step, or None."""
        ...


class KubeCluster:
    """A Kubernetes cluster, initially without machines; `add_node` adds them.

    Args:
        name: Cluster name, used in the kubeconfig.
        clock: The sandbox's time.
        token: Bearer token that every request must carry.
        kubernetes_version: Version that `/version` reports, without the "v".
        assets: Directory with etcd and kube-apiserver (`controlplane.find_assets`). The cluster then has a real API
            server, and the real scheduler and controllers if the directory contains them; only nodes, kubelets, and the
            NVIDIA programs are simulated. `make_app`, `store`, `denied`, and pod logs are unused in this case, and
            `kubeconfig` points to the real server.
        reviewer: Address and certificate authority of a TokenReview webhook, which a real API server calls for any
            token other than `token`.

    Attributes:
        denied: (verb, resource) pairs denied with 403 and in access reviews, such as ("create", "secrets") or
            ("create", "daemonsets.apps"); "*" matches any verb or resource. If empty, everything is allowed.
        admits_anonymous: Treat a request without a token as system:anonymous, which may read health and version;
            otherwise answer 401.
        user: User that the token authenticates: an administrator, unless a test sets a user with fewer rights.
        node_faults: Takes a fault's action and a pool, and returns whether it strikes a node of the pool.
        failures: Exceptions that controllers raised; each is a bug in the emulation.
    """

    def __init__(  # noqa: PLR0913 - everything a cluster depends on
        self,
        name: str,
        clock: Clock,
        token: str,
        kubernetes_version: str = "1.34.2",
        *,
        assets: Path | None = None,
        reviewer: tuple[str, str] | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.token = token
        self._version = kubernetes_version
        self._versioned: list[Scheduler | Autoscaler] = []
        self.denied: set[tuple[str, str]] = set()
        self.admits_anonymous = True
        self.user = SANDBOX_ADMIN
        self.node_faults: NodeFaults = no_fault
        self.failures: list[Exception] = []
        self.store = Store(clock)
        self.store.serve_version(self._minor)
        self.api: ObjectApi = StoreApi(self.store)
        self._logs: dict[tuple[str, str], list[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._plane = ControlPlane(assets, token, reviewer) if assets else None
        self._remote: RemoteApi | None = None
        self._kubelets = Kubelets(self.api, clock, self._logs, self._is_struck)
        self._wakeups: dict[str, Wakeup] = {}
        self._groups: Groups | None = None
        self._follower: Follower | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a machine is booting or the cluster has a real control plane; neither can be copied."""
        boots = (task for name, task in self._tasks.items() if name.startswith("boot/"))
        return self._plane is not None or not all(task.done() for task in boots)

    def __deepcopy__(self, memo: dict[int, object]) -> KubeCluster:
        """Copy objects, machines and logs into a cluster that is not started yet."""
        twin = memo[id(self)] = KubeCluster(self.name, self.clock, self.token, self.kubernetes_version)
        twin.denied = set(self.denied)
        twin.admits_anonymous = self.admits_anonymous
        twin.user = self.user
        twin.store = self.store.copied()
        twin.api = StoreApi(twin.store)
        twin._logs = copy.deepcopy(self._logs)
        twin._kubelets = Kubelets(twin.api, self.clock, twin._logs, twin._is_struck)
        twin.node_faults = copy.deepcopy(self.node_faults, memo)
        twin._kubelets.machines.update(copy.deepcopy(self._kubelets.machines))
        twin._groups = copy.deepcopy(self._groups, memo)
        twin._follower = copy.deepcopy(self._follower, memo)
        return twin

    def tolerate_extended_resources(self) -> None:
        """Enable the admission plugin ExtendedResourceToleration; call it before `start`."""
        self.store.tolerates_extended_resources = True
        if self._plane:
            self._plane.tolerates_extended_resources = True

    def limit_critical_pods(self) -> None:
        """Admit critical-priority pods outside kube-system only if a quota names their class."""
        self.store.limits_critical_pods = True

    def tolerate_compute_classes(self) -> None:
        """Let pods that select a ComputeClass tolerate its taint, as on GKE; not with a real control plane."""
        self.store.tolerates_compute_classes = True

    async def start(self) -> None:
        """Start the controllers; needs a running event loop."""
        if self._plane:
            await self._start_plane(self._plane)
        scheduler = Scheduler(self.api, self.clock, self._minor)
        self._versioned.append(scheduler)
        for controller in (*(kind(self.api, self.clock) for kind in _CONTROLLERS), scheduler):
            if not (self._plane and self._plane.has(controller.emulates)):
                name = type(controller).__name__
                self._run(name, self._loop(name, controller.watches, controller.reconcile))
        if self._groups:
            self.autoscale(self._groups)
        if self._follower:
            self.follow(self._follower)
        for kind in (GpuOperator, KubeRay):
            operator = kind(self.api, self.clock, self._kubelets.machines)
            self._run(kind.__name__, self._loop(kind.__name__, kind.watches, operator.reconcile))
        self._run("Kubelets", self._loop("Kubelets", Kubelets.watches, self._kubelets.reconcile))

    @property
    def kubernetes_version(self) -> str:
        """Version of the control plane, without the "v"."""
        return self._version

    @kubernetes_version.setter
    def kubernetes_version(self, version: str) -> None:
        self._version = version
        self.store.serve_version(self._minor)
        for part in self._versioned:
            part.version = self._minor

    @property
    def _minor(self) -> tuple[int, int]:
        return parse_minor(self._version)

    def autoscale(self, groups: Groups) -> None:
        """Start an autoscaler for these node groups; a copy of the cluster has one too."""
        self._groups = groups
        scaler = Autoscaler(self.api, self.clock, groups, self._minor, self._run)
        self._versioned.append(scaler)
        self._run("Autoscaler", self._loop("Autoscaler", scaler.watches, scaler.reconcile))

    def follow(self, follower: Follower) -> None:
        """Start a cloud's own loop; a copy of the cluster has one too."""
        self._follower, name = follower, type(follower).__name__
        self._run(name, self._loop(name, follower.watches, follower.reconcile))

    def wake_autoscaler(self) -> None:
        """Wake the autoscaler: a node group was added, or its limits changed."""
        self._wake("Autoscaler")

    async def _start_plane(self, plane: ControlPlane) -> None:
        from gpukube_sandbox.kube.remote import RemoteApi  # noqa: PLC0415 -- httpx: see ControlPlane

        await plane.start()
        self.kubernetes_version = plane.version
        self._remote = RemoteApi(plane.url, self.token, plane.ca_pem)
        self.api = self._remote
        self._kubelets = Kubelets(self.api, self.clock, self._logs, self._is_struck)

    async def _loop(
        self, name: str, watches: tuple[str, ...], reconcile: Callable[[], Awaitable[float | None]]
    ) -> None:
        with self.api.watching(*watches) as wakeup:
            self._wakeups[name] = wakeup
            await run_loop(wakeup, self.clock, reconcile, self._report)

    def _wake(self, name: str) -> None:
        """Wake a controller for a change that no object shows."""
        if wakeup := self._wakeups.get(name):
            wakeup.wake()

    async def stop(self) -> None:
        """Stop the controllers and every node; the objects stay readable."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._plane:
            await self._plane.stop()
        if self._remote:
            await self._remote.close()

    def _is_struck(self, action: str, pool: str) -> bool:
        return self.node_faults(action, pool)

    async def add_node(self, shape: NodeShape) -> None:
        """Boot a machine and return immediately; the node registers after `shape.boot_s`, then becomes ready.

        A caller that sleeps for that long finds the node registered, however late the machine's own task is scheduled.
        """
        self._run(f"boot/{shape.name}", self._boot(shape, self.clock.now() + shape.boot_s))

    async def joined(self, names: Iterable[str]) -> None:
        """Wait without a limit until these machines are ready nodes; a machine that is removed no longer counts."""
        boots = [task for name in names if (task := self._tasks.get(f"boot/{name}")) is not None]
        if boots:
            await asyncio.wait(boots)

    async def remove_node(self, name: str) -> None:
        """Remove the machine, its node, and its pods; do nothing for an unknown name."""
        machine = self._kubelets.machines.pop(name, None)
        task = self._tasks.pop(f"boot/{name}", None)
        if task:
            task.cancel()
        node = await self.api.get("nodes", name)
        if node is not None:
            if self._is_struck("stale-slice", machine.shape.pool if machine else ""):
                await orphan_slices(self.api, name)
            await self.api.delete("nodes", node)
        for pod in await self.api.list("pods", fields=f"spec.nodeName={name}"):
            await self.api.delete("pods", pod, grace_s=0)

    async def _boot(self, shape: NodeShape, up_at: float) -> None:
        await self.clock.sleep(up_at - self.clock.now())
        node = await nodes.register(self.api, self.clock, shape, f"v{shape.kubelet or self.kubernetes_version}")
        registered = f"Node {shape.name} event: Registered Node {shape.name} in Controller"
        await self._kubelets.events.record("nodes", node, "Starting", "Starting kubelet.")
        await self._kubelets.events.record("nodes", node, "RegisteredNode", registered)
        await self.clock.sleep(REGISTERS_S)
        if shape.gpu and shape.gpu.mig_reboot:
            await nodes.mark_unknown(self.api, self.clock, shape.name)
            await self.clock.sleep(REBOOT_S)
        machine = self._kubelets.machines[shape.name] = Machine(shape)
        machine.start()
        await nodes.mark_ready(self.api, self.clock, shape.name)
        ready = f"Node {shape.name} status is now: NodeReady"
        await self._kubelets.events.record("nodes", node, "NodeReady", ready)
        self._wake("Kubelets")

    def _report(self, failure: Exception) -> None:
        self.failures.append(failure)
        _LOG.error("%s: a controller failed", self.name, exc_info=failure)

    def log_lines(self, pod_uid: str, container: str) -> list[str]:
        """Return what a container has written so far."""
        return self._logs.get((pod_uid, container), [])

    def kubelet_config(self, node: str) -> JsonObject | None:
        """Return the configuration that a node's kubelet serves; None if no kubelet runs there."""
        machine = self._kubelets.machines.get(node)
        return configz(machine.shape.settings, machine.shape.max_pods) if machine and machine.up else None

    def sysctls(self) -> dict[str, Mapping[str, str]]:
        """Return the kernel parameters that were set on each machine."""
        return {name: machine.shape.settings.sysctls for name, machine in self._kubelets.machines.items()}

    async def gpu_holders(self) -> dict[str, dict[str, list[str]]]:
        """Return which pods hold each GPU and MIG instance: node -> UUID -> pods, by plugins and claims alike.

        Two advertisers on a node hand out the same device twice, without any error.
        """
        pods = {meta(pod)["uid"]: f"{namespace_of(pod)}/{name_of(pod)}" for pod in await self.api.list("pods")}
        found: dict[str, dict[str, list[str]]] = {}
        for node, machine in self._kubelets.machines.items():
            held = found[node] = {}
            for run in machine.pods.values():
                for device in held_devices(run) if run.uid in pods else ():
                    held.setdefault(uuid_of(node, device), []).append(pods[run.uid])
        return {
            node: {uuid: sorted(names) for uuid, names in sorted(held.items())} for node, held in found.items() if held
        }

    def gpus_of(self, pod: JsonObject, container: str, command: str) -> list[str] | None:
        """Return the output lines of `nvidia-smi -L` in a container; None if the command does not find the program."""
        machine = self._kubelets.machines.get(spec(pod).get("nodeName", ""))
        run = machine.pods.get(meta(pod)["uid"]) if machine else None
        body = next(item for item in spec(pod)["containers"] if item["name"] == container)
        return listing(machine, run, container) if machine and run and can_run(machine, run, body, command) else None

    def _run(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work, name=f"{self.name}/{name}")

    def kubeconfig(self, server_url: str, ca_pem: str = "") -> str:
        """Write a complete kubeconfig (JSON, which is YAML too).

        Args:
            server_url: URL at which `make_app(cluster)` is served, including the path. It must be https: client-go, and
                so Helm and kubectl, send a bearer token over TLS only.
            ca_pem: Certificate of the authority that signed the server's certificate.
        """
        if self._plane:
            server_url, ca_pem = self._plane.url, self._plane.ca_pem
        server: dict[str, str] = {"server": server_url}
        if ca_pem:
            server["certificate-authority-data"] = base64.b64encode(ca_pem.encode()).decode()
        user = f"clusterUser_{self.name}"
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": self.name, "cluster": server}],
                "users": [{"name": user, "user": {"token": self.token}}],
                "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
                "current-context": self.name,
                "preferences": {},
            },
            indent=2,
        )
