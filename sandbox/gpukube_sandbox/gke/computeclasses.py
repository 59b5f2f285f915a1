"""The type ComputeClass, which GKE's clusters serve: an order of node pools for pods that select the class.

In scope: the CustomResourceDefinition. Out of scope: the order in which the autoscaler tries pools
(`kube.autoscaler.classes`), the toleration of pods (`kube.store.admission`), creating node pools for a class.

Settings of node pools that GKE would create are accepted with any content.

Sources: docs: kubernetes-engine/reference/crds/computeclass, concepts/about-custom-compute-classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.gke.versions import is_at_least

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

_GROUP, _PLURAL = "cloud.google.com", "computeclasses"
_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_PERCENT: JsonObject = {**_COUNT, "maximum": 100}
_OPEN: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_THRESHOLDS = ("consolidationThreshold", "gpuConsolidationThreshold")
_TEXTS = ("machineFamily", "machineType", "minCpuPlatform", "podFamily")
_COUNTS = ("minCores", "minMemoryGb", "maxRunDurationSeconds", "maxPodsPerNode", "capacityCheckWaitTimeSeconds")
_OTHERS = ("flexStart", "gpu", "location", "nodeSystemConfig", "placement", "reservations", "storage", "tpu")
_HARDWARE: JsonObject = {
    **dict.fromkeys(_TEXTS, _TEXT),
    **dict.fromkeys(_COUNTS, _COUNT),
    **dict.fromkeys(_OTHERS, _OPEN),
    "spot": _FLAG,
}


def _record(*required: str, **fields: JsonObject) -> JsonObject:
    return {"type": "object", "properties": fields} | ({"required": list(required)} if required else {})


def _rule() -> JsonObject:
    """Return the schema of a rank: names of existing pools and nothing else, or hardware."""
    pools = {"type": "array", "items": _TEXT, "minItems": 1}
    apart = [{"required": ["nodepools"], "maxProperties": 1}, {"not": {"required": ["nodepools"]}}]
    return {**_record(nodepools=pools, **_HARDWARE), "oneOf": apart}


def _schema() -> JsonObject:
    moves = _record("optimizeRulePriority", optimizeRulePriority=_FLAG, ensureAllDaemonSetPodsRunning=_FLAG)
    limits = dict.fromkeys(_THRESHOLDS, _PERCENT)
    delay = {"type": "integer", "minimum": 1, "maximum": 1440}
    spec = _record(
        "priorities",
        priorities={"type": "array", "items": _rule(), "minItems": 1},
        whenUnsatisfiable={"type": "string", "enum": ["DoNotScaleUp", "ScaleUpAnyway"]},
        nodePoolAutoCreation={**_record("enabled", enabled=_FLAG), "x-kubernetes-preserve-unknown-fields": True},
        activeMigration=moves,
        autoscalingPolicy=_record(consolidationDelayMinutes=delay, **limits),
        description=_TEXT,
        autopilot=_record("enabled", enabled=_FLAG),
        nodePoolConfig=_OPEN,
        priorityDefaults=_OPEN,
    )
    return _record("spec", spec=spec, status=_OPEN)


async def apply_compute_classes(kube: KubeCluster, version: str) -> None:
    """Serve ComputeClass if the control plane's version has it; pods then tolerate the taint of their class."""
    if not is_at_least(version, "compute-classes"):
        return
    kube.tolerate_compute_classes()
    names = {"kind": "ComputeClass", "listKind": "ComputeClassList", "plural": _PLURAL, "singular": "computeclass"}
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _schema()},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
        "spec": {"group": _GROUP, "scope": "Cluster", "names": names, "versions": [served]},
    }
    await kube.api.create("customresourcedefinitions", definition)
