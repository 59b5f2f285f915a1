"""Emulates the GPU Operator's controller: node labels, operands, and MIG managers.

In scope: creating DaemonSets and labels for a ClusterPolicy and nodes. Out of scope: manifests (`operands`), MIG
(`migmanager`), what the operands' programs do (`programs`).

Like the real controller, it works only while a pod of the operator's Deployment is running.

Source: NVIDIA/gpu-operator v26.7 controllers/state_manager.go, clusterpolicy_controller.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.controllers.migmanager import CONFIG, MigManagers
from gpukube_sandbox.kube.controllers.operands import APPLIED_HASH, DEPLOY, MANAGED_BY, operands, runtime_class
from gpukube_sandbox.kube.store.objects import annotations_of, labels, meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_GPU_LABELS = tuple(f"feature.node.kubernetes.io/pci-{part}10de.present" for part in ("", "0302_", "0300_"))
_PRESENT = "nvidia.com/gpu.present"
_CAPABLE = "nvidia.com/mig.capable"
_OPERANDS = f"{DEPLOY}operands"
_EVERYWHERE = (
    "driver", "container-toolkit", "device-plugin", "gpu-feature-discovery", "dcgm", "dcgm-exporter",
    "node-status-exporter", "operator-validator", "client",
)  # fmt: skip
_MIG = "mig-manager"


class GpuOperator:
    """The operator of a cluster; does nothing unless it is installed.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        machines: Node name -> machine.
    """

    watches = ("clusterpolicies", "nodes", "pods", "daemonsets", "configmaps")

    def __init__(self, api: ObjectApi, clock: Clock, machines: Mapping[str, Machine]) -> None:
        self._api = api
        self._machines = machines
        self._managers = MigManagers(api, clock, machines)

    async def reconcile(self) -> float | None:
        """Reconcile labels and operands with the policy; return the time of the MIG managers' next step."""
        policies = await self._api.list("clusterpolicies")
        if not policies and self._managers.are_idle:
            return None
        pods = await self._api.list("pods")
        namespace = self._home(pods)
        if policies and namespace:
            policy = policies[0]
            for node in await self._api.list("nodes"):
                await self._label(node, spec(policy))
            await self._runtime_class(policy)
            await self._operands(policy, namespace)
        due = await self._managers.step(pods)
        return min(due, default=None)

    def _home(self, pods: list[JsonObject]) -> str:
        """Return the namespace of the operator's pod; "" if none is running."""
        living = {
            run.uid
            for machine in self._machines.values()
            if machine.up
            for run in machine.pods.values()
            if run.runs("gpu-operator")
        }
        return next((namespace_of(pod) for pod in pods if meta(pod)["uid"] in living), "")

    async def _label(self, node: JsonObject, policy: JsonObject) -> None:
        """Label a GPU node for its operands; existing labels stay, such as a "false" that excludes an operand.

        Source:
            docs: GPU Operator, preventing installation of operands.
        """
        found = labels(node)
        if not any(found.get(key) == "true" for key in _GPU_LABELS) or found.get(_OPERANDS) == "false":
            return
        desired = {f"{DEPLOY}{item}": "true" for item in _EVERYWHERE}
        desired[_PRESENT] = "true"
        manager = policy.get("migManager") or {}
        if found.get(_CAPABLE) == "true" and manager.get("enabled", True):
            desired[f"{DEPLOY}{_MIG}"] = "true"
            desired[CONFIG] = str((manager.get("config") or {}).get("default") or "")
        change = {key: value for key, value in desired.items() if value and key not in found}
        if change:
            await self._api.patch("nodes", node, {"metadata": {"labels": change}})

    async def _runtime_class(self, policy: JsonObject) -> None:
        """Create the runtime class of the operands' pods; without it a real API server refuses these pods.

        Source: controllers/object_controls.go, transformRuntimeClass.
        """
        name = runtime_class(spec(policy))
        if name not in {name_of(item) for item in await self._api.list("runtimeclasses")}:
            made = {"metadata": {"name": name, "ownerReferences": [_owner(policy)]}, "handler": name}
            await self._api.create("runtimeclasses", {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **made})

    async def _operands(self, policy: JsonObject, namespace: str) -> None:
        desired = {name_of(item): item for item in operands(spec(policy), namespace)}
        where = f"app.kubernetes.io/managed-by={MANAGED_BY}"
        live = {name_of(item): item for item in await self._api.list("daemonsets", namespace, where=where)}
        for name, item in live.items():
            if name not in desired:
                await self._api.delete("daemonsets", item)
        for name, item in desired.items():
            present = live.get(name)
            if present is None:
                item["metadata"]["ownerReferences"] = [_owner(policy)]
                await self._api.create("daemonsets", item)
            elif annotations_of(present).get(APPLIED_HASH) != annotations_of(item)[APPLIED_HASH]:
                change = {
                    "metadata": {"annotations": annotations_of(item)},
                    "spec": {"template": spec(item)["template"]},
                }
                await self._api.patch("daemonsets", present, change)
        await self._report(policy, list(live.values()), len(desired))

    async def _report(self, policy: JsonObject, live: list[JsonObject], desired: int) -> None:
        """Set the policy to ready once every operand runs on every node it selects."""
        numbers = [status(item) for item in live]
        settled = len(live) == desired and all(
            item.get("desiredNumberScheduled", -1) == item.get("numberAvailable", 0) for item in numbers
        )
        state = "ready" if settled else "notReady"
        if (policy.get("status") or {}).get("state") != state:
            await self._api.patch_status("clusterpolicies", policy, {"state": state, "namespace": MANAGED_BY})


def _owner(policy: JsonObject) -> JsonObject:
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "name": name_of(policy),
        "uid": meta(policy)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
