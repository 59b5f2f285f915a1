"""Clusters with one fault each, by name, and healthy ones: evidence for the checks of the inside.

Out of scope: assertions.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from gpukube.cluster.kube.slices import DeviceTaint, SliceView
from gpukube.cluster.kube.views import ConditionView, Placement, placement_of
from gpukube.core.fields import HIGH_SPEED
from gpukube.core.values import Taint
from gpukube.doctor.evidence import ClaimFacts, ClassFacts
from tests.builders import make_observed
from tests.unit.cluster.builders import SINGLE, desire
from tests.unit.cluster.fabrics import EFA, instance_types, on_eks
from tests.unit.doctor.patients import (
    CPU_NODE,
    DRA,
    DRA_CLASSES,
    DRA_IMAGE,
    ENTRIES,
    FOUR,
    GFD,
    GPU_LABELS,
    GPU_NODE,
    GPU_TAINT,
    MPS_DAEMON,
    NFD_MASTER,
    NFD_WORKER,
    PLUGIN,
    SEEN_BY_NFD,
    TOLERATES,
    Body,
    container,
    daemonset,
    gpu,
    node,
    patient,
    pod,
    pod_of,
    published,
    quota,
    relabelled,
    release,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.doctor.evidence import Evidence, PodFacts

CONFIG = "nvidia.com/device-plugin.config"
OTHER_TAINT = Taint("sku", "gpu", "NoSchedule")
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
ZERO = replace(GPU_NODE, allocatable={"nvidia.com/gpu": "0"})
UNCOUNTED = relabelled(replace(ZERO, capacity={}, allocatable={}), **{"nvidia.com/gpu.count": None})
"""A node whose plugin never worked: feature discovery has said nothing of it either."""
SPECIAL = replace(UNCOUNTED, taints=(GPU_TAINT, OTHER_TAINT))
STATIC = daemonset("nvidia-device-plugin-daemonset", "nvidia-device-plugin", "kube-system", {})
OPERATED = daemonset(
    "nvidia-device-plugin-daemonset",
    "nvidia-device-plugin",
    "gpu-operator",
    {"app.kubernetes.io/managed-by": "gpu-operator"},
    nodeSelector={"nvidia.com/gpu.deploy.device-plugin": "true"},
)
MIG_MANAGER = daemonset("nvidia-mig-manager", "nvidia-mig-manager", "gpu-operator", {})
MIXED = relabelled(
    replace(GPU_NODE, allocatable={"nvidia.com/mig-1g.5gb": "56"}),
    **{
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.5gb.count": "56",
        "nvidia.com/mig-1g.5gb.replicas": "1",
        "nvidia.com/gpu.count": "8",
    },
)
SHARED = relabelled(
    replace(GPU_NODE, allocatable={"nvidia.com/gpu": "32"}), **{CONFIG: "four", "nvidia.com/gpu.replicas": "4"}
)
OTHERS = (pod_of(GFD), pod_of(NFD_WORKER))
"""The pods on the GPU node besides the plugin's."""
BY_MPS = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


def changed(body: Body, **spec: object) -> Body:
    """Change a DaemonSet's pods."""
    pods = body["spec"]["template"]["spec"]
    return {**body, "spec": {"template": {**body["spec"]["template"], "spec": {**pods, **spec}}}}


def with_env(body: Body, **env: str) -> Body:
    main = body["spec"]["template"]["spec"]["containers"][0]
    return changed(body, containers=[{**main, "env": [{"name": key, "value": value} for key, value in env.items()]}])


def waiting(name: str, resource: str, count: int = 1, said: str = "0/2 nodes are available") -> PodFacts:
    return pod(
        name, devices={resource: count}, phase="Pending", node="", scheduled=False, ready=False, unschedulable=said
    )


def half_cut() -> Evidence:
    """Make a cluster whose one node was promised 56 MIG devices and lists those of five GPUs."""
    pool = desire(sharing=SINGLE)
    live = make_observed(pool, owner=pool.target.owner, pool=pool.target.pool, labels=pool.labels)
    marks = {**GPU_LABELS, **pool.labels, "nvidia.com/mig.strategy": "single", "nvidia.com/gpu.count": "35"}
    return patient(
        node("gpu-1", marks, {"nvidia.com/gpu": 35}),
        live=(live,),
        desired=(pool,),
        entries={**ENTRIES, pool.ownership.config_key: "version: v1\nflags: {migStrategy: single}\n"},
    )


def failing(body: Body, reason: str, *, on: str = "gpu-1", init: bool = False) -> PodFacts:
    trouble = container(ready=False, waiting=reason, restarts=7, message="back-off", init=init)
    return pod_of(body, on, ready=False, phase="Pending", containers=(trouble,))


def of_ours(**labels: str | None) -> Evidence:
    """Make a cluster with a pool of ours whose node has other labels than the pool."""
    pool = desire()
    live = make_observed(pool, owner=pool.target.owner, pool=pool.target.pool, labels=pool.labels)
    made = node("gpu-1", {**GPU_NODE.labels, **pool.labels}, {"nvidia.com/gpu": 8})
    return patient(
        relabelled(made, **labels), live=(live,), entries={**ENTRIES, pool.ownership.config_key: "version: v1"}
    )


TAKEN_UP = relabelled(GPU_NODE, **{"nvidia.com/gpu.deploy.device-plugin": "true"})
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
RUNNING = (pod_of(PLUGIN), *OTHERS)
ON_TWO = (pod_of(GFD, "gpu-2"), pod_of(NFD_WORKER, "gpu-2"))
UNPLACED: dict[str, Any] = {
    "scheduled": False,
    "ready": False,
    "phase": "Pending",
    "unschedulable": "0/2 nodes are available: 1 Insufficient cpu",
}
CRASHING = container(ready=False, waiting="CrashLoopBackOff", restarts=7, message="back-off")
OPERATOR: Body = {
    **daemonset("gpu-operator", "gpu-operator", "gpu-operator", {"app": "gpu-operator"}),
    "status": {"replicas": 1, "readyReplicas": 1},
}
OPERATING: dict[str, Any] = {"masters": (NFD_MASTER, OPERATOR), "seen": {"cluster_policies": ("cluster-policy",)}}
"""What a cluster of the operator has beside its DaemonSets."""
MANIFEST = "---\n".join(
    yaml.safe_dump({**body, "kind": kind, "status": {}})
    for kind, body in (
        ("DaemonSet", PLUGIN),
        ("DaemonSet", GFD),
        ("DaemonSet", MPS_DAEMON),
        ("DaemonSet", NFD_WORKER),
        ("Deployment", NFD_MASTER),
    )
)
"""Of the release that the patients have."""


def pod_of_deployment(body: Body, **changes: object) -> PodFacts:
    meta = body["metadata"]
    owner = {"owner_kind": "ReplicaSet", "owner": f"{meta['name']}-7d9f", "namespace": meta["namespace"]}
    return pod(f"{meta['name']}-7d9f-x7", **{**owner, "node": "cpu-1", **changes})


def creating(body: Body) -> PodFacts:
    """Make a pod whose sandbox cannot be made, three hours old."""
    state = container(ready=False, waiting="ContainerCreating")
    made = pod_of(body, ready=False, phase="Pending", containers=(state,))
    return replace(made, created="2026-11-01T09:00:00Z")


def of_operator(reason: str) -> tuple[PodFacts, ...]:
    """Make the pods of an operator's cluster, whose MIG manager fails."""
    return pod_of(OPERATED), pod_of(NFD_WORKER), failing(MIG_MANAGER, reason)


CASES: dict[str, tuple[str, Evidence]] = {
    "our label is gone": ("node-labels-lost", of_ours(**{CONFIG: None})),
    "no plugin at all": ("no-plugin", patient(UNCOUNTED, daemonsets=(NFD_WORKER,))),
    "labels absent, NFD elsewhere": (
        "plugin-desired-zero",
        patient(
            relabelled(UNCOUNTED, **{"feature.node.kubernetes.io/pci-10de.present": None, "accelerator": "nvidia"}),
            daemonsets=(PLUGIN, GFD),
            stack_pods=(),
        ),
    ),
    "taint of the pool": (
        "plugin-not-tolerating",
        patient(SPECIAL, daemonsets=(changed(PLUGIN, affinity={}), NFD_WORKER), stack_pods=()),
    ),
    "NFD worker kept away": (
        "nfd-worker-not-tolerating",
        patient(
            relabelled(SPECIAL, **{"feature.node.kubernetes.io/pci-10de.present": None, "accelerator": "nvidia"}),
            daemonsets=(changed(PLUGIN, tolerations=[{"operator": "Exists"}]), NFD_WORKER),
            stack_pods=(),
        ),
    ),
    "NFD worker kept away, plugin there": (
        "nfd-out-of-reach",
        patient(
            relabelled(replace(GPU_NODE, taints=(OTHER_TAINT,)), **{"nvidia.com/gpu.present": "true"}),
            daemonsets=(changed(PLUGIN, tolerations=[{"operator": "Exists"}]), NFD_WORKER),
        ),
    ),
    "class labels of another NFD": (
        "nfd-class-labels",
        patient(
            relabelled(
                UNCOUNTED,
                **{
                    "feature.node.kubernetes.io/pci-10de.present": None,
                    "feature.node.kubernetes.io/pci-0302_10de.present": "true",
                },
            ),
            stack_pods=OTHERS,
        ),
    ),
    "operator took the label back": (
        "operator-resets-label",
        patient(
            relabelled(
                UNCOUNTED,
                **{
                    "feature.node.kubernetes.io/pci-10de.present": None,
                    "nvidia.com/gpu.present": "false",
                    "accelerator": "nvidia",
                },
            ),
            daemonsets=(OPERATED, NFD_WORKER),
            stack_pods=OTHERS,
            **OPERATING,
        ),
    ),
    "static manifest beside the chart": ("two-advertisers", patient(daemonsets=(PLUGIN, STATIC, NFD_WORKER))),
    "DRA beside the chart": (
        "two-advertisers",
        patient(seen={"slices": (SliceView("slice-1", "gpu.nvidia.com", "gpu-1", "gpu-1"),)}),
    ),
    "Bottlerocket beside the chart": (
        "two-advertisers",
        patient(replace(GPU_NODE, os_image="Bottlerocket OS 1.54.0 (aws-k8s-1.34-nvidia)")),
    ),
    "two NFDs": (
        "two-nfds",
        patient(
            masters=(NFD_MASTER, {**NFD_MASTER, "metadata": {"name": "nfd-master", "namespace": "nfd", "labels": {}}})
        ),
    ),
    "config-manager fails": (
        "plugin-config-failing",
        patient(UNCOUNTED, stack_pods=(failing(PLUGIN, "CrashLoopBackOff", init=True), *OTHERS)),
    ),
    "plugin crashes": (
        "plugin-crashing",
        patient(UNCOUNTED, stack_pods=(failing(PLUGIN, "CrashLoopBackOff"), *OTHERS)),
    ),
    "plugin crashes on CPU nodes": (
        "plugin-on-cpu-nodes",
        patient(
            stack_pods=(
                pod_of(PLUGIN),
                pod_of(GFD),
                pod_of(NFD_WORKER),
                failing(PLUGIN, "CrashLoopBackOff", on="cpu-1"),
            )
        ),
    ),
    "image cannot be pulled": (
        "plugin-image",
        patient(UNCOUNTED, stack_pods=(failing(PLUGIN, "ImagePullBackOff"), *OTHERS)),
    ),
    "host path missing": (
        "plugin-mount",
        patient(UNCOUNTED, stack_pods=(failing(PLUGIN, "CreateContainerError"), *OTHERS)),
    ),
    "plugin waits for a driver": ("plugin-silent", patient(UNCOUNTED)),
    "pods refused by a quota": (
        "plugin-pods-refused",
        patient(
            UNCOUNTED,
            stack_pods=OTHERS,
            quotas=(quota({"pods": "0"}, {}, "nvidia-device-plugin"),),
        ),
    ),
    "MPS without GFD": (
        "mps-daemon-missing",
        patient(
            relabelled(UNCOUNTED, **{CONFIG: "mps"}),
            daemonsets=(PLUGIN, MPS_DAEMON, NFD_WORKER),
            entries={**ENTRIES, "mps": BY_MPS},
        ),
    ),
    "GFD without an NFD": ("gfd-without-nfd", patient(masters=())),
    "GFD with an NFD master that is Pending": (
        "gfd-without-nfd",
        patient(masters=({**NFD_MASTER, "status": {"replicas": 1}},)),
    ),
    "version with a fault": (
        "plugin-version",
        patient(
            daemonsets=(
                daemonset("nvdp", "nvidia-device-plugin", image="nvcr.io/nvidia/k8s-device-plugin:v0.16.1"),
                NFD_WORKER,
            )
        ),
    ),
    "chart beside a MIG manager": ("plugin-not-restarted", patient(daemonsets=(PLUGIN, MIG_MANAGER, NFD_WORKER))),
    "label names no entry": ("config-key-unknown", patient(relabelled(GPU_NODE, **{CONFIG: "five"}))),
    "default names no entry": (
        "config-default-unknown",
        patient(
            relabelled(GPU_NODE, **{CONFIG: "default"}),
            daemonsets=(with_env(PLUGIN, DEFAULT_CONFIG="none"), NFD_WORKER),
        ),
    ),
    "ConfigMap gone": ("config-map-missing", patient(config_maps={})),
    "entry that is no YAML": ("config-entry-refused", patient(entries={"default": "version: [v1"})),
    "entry of another version": ("config-entry-refused", patient(entries={"default": "version: v2"})),
    "entry with a strategy unheard of": (
        "config-entry-refused",
        patient(entries={"default": "version: v1\nflags: {migStrategy: both}"}),
    ),
    "entry with one replica": (
        "config-entry-refused",
        patient(entries={"default": FOUR["four"].replace("replicas: 4", "replicas: 1")}),
    ),
    "entry with too many MPS clients": (
        "config-entry-refused",
        patient(entries={"default": BY_MPS.replace("replicas: 4", "replicas: 49")}),
    ),
    "entry that shares nothing": (
        "config-entry-refused",
        patient(entries={"default": "version: v1\nsharing: {timeSlicing: {}}"}),
    ),
    "entry with mps and mixed": (
        "config-entry-refused",
        patient(entries={"default": BY_MPS + "flags: {migStrategy: mixed}\n"}),
    ),
    "entry that renames": (
        "config-entry-ignored",
        patient(entries={"default": "version: v1\nresources: {gpus: [{pattern: '*', name: big}]}"}),
    ),
    "entry that shares some devices": (
        "config-entry-ignored",
        patient(SHARED, entries={**ENTRIES, "four": FOUR["four"].replace("replicas", "devices: [0], replicas")}),
    ),
    "entry that shares MIG names under none": (
        "config-entry-ignored",
        patient(entries={"default": FOUR["four"].replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb")}),
    ),
    "entry nobody names": ("config-entry-unused", patient(entries={**ENTRIES, "six": "version: v1"})),
    "cut that nobody makes": (
        "mig-label-without-manager",
        patient(relabelled(GPU_NODE, **{"nvidia.com/mig.config": "all-1g.5gb"})),
    ),
    "cut that failed": (
        "mig-config-failed",
        patient(relabelled(GPU_NODE, **{"nvidia.com/mig.config.state": "failed"})),
    ),
    "GPUs cut unevenly": (
        "mig-single-uneven",
        patient(
            relabelled(UNCOUNTED, **{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"}),
            stack_pods=(failing(PLUGIN, "CrashLoopBackOff"), *OTHERS),
        ),
    ),
    "devices of a former cut": ("devices-out-of-date", patient(relabelled(GPU_NODE, **{"nvidia.com/gpu.count": "56"}))),
    "devices of a former mixed cut": (
        "devices-out-of-date",
        patient(relabelled(MIXED, **{"nvidia.com/mig-1g.5gb.count": "28"})),
    ),
    "nothing since the cut": ("devices-out-of-date", patient(replace(ZERO, capacity={"nvidia.com/gpu": "0"}))),
    "every device unhealthy": ("devices-unhealthy", patient(ZERO)),
    "name of a former cut": (
        "stale-resource-names",
        patient(replace(GPU_NODE, allocatable={"nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "0"})),
    ),
    "upgrade that was stopped": ("release-stuck", patient(releases=(release(status="pending-upgrade"),))),
    "upgrade that failed": ("release-stuck", patient(releases=(release(status="failed"),))),
    "strategy forced": (
        "strategy-overridden",
        patient(
            daemonsets=(with_env(PLUGIN, MIG_STRATEGY="none"), NFD_WORKER),
            entries={"default": "version: v1\nflags: {migStrategy: single}"},
        ),
    ),
    "value below gfd": (
        "chart-value-ignored",
        patient(releases=(release(values={"gfd": {"enabled": True, "sleepInterval": "30s"}}),)),
    ),
    "boolean as a string": ("chart-value-ignored", patient(releases=(release(values={"failOnInitError": "true"}),))),
    "affinity {}": ("chart-value-ignored", patient(releases=(release(values={"affinity": {}}),))),
    "gpu under mixed": ("pods-ask-gpu-under-mixed", patient(MIXED, pods=(waiting("w", "nvidia.com/gpu"),))),
    "name without .shared": (
        "pods-ask-other-name",
        patient(
            relabelled(replace(GPU_NODE, allocatable={"nvidia.com/gpu.shared": "8"})),
            pods=(waiting("w", "nvidia.com/gpu"),),
        ),
    ),
    "name with .shared": ("pods-ask-other-name", patient(pods=(waiting("w", "nvidia.com/gpu.shared"),))),
    "name without the dash": ("pods-ask-misspelt-name", patient(MIXED, pods=(waiting("w", "nvidia.com/mig1g.5gb"),))),
    "more than a node has": ("pods-too-large", patient(pods=(waiting("w", "nvidia.com/gpu", 16),))),
    "waits for its turn": ("pods-pending", patient(pods=(waiting("w", "nvidia.com/gpu", 8),))),
    "refused at admission": (
        "pods-refused-by-node",
        patient(pods=(pod(devices={"nvidia.com/gpu": 2}, phase="Failed", reason="UnexpectedAdmissionError"),)),
    ),
    "two shares": (
        "shared-request-above-one",
        patient(SHARED, entries={**ENTRIES, **FOUR}, pods=(pod(devices={"nvidia.com/gpu": 2}),)),
    ),
    "quota used up": (
        "quota-exhausted",
        patient(quotas=(quota({"requests.nvidia.com/gpu": "4"}, {"requests.nvidia.com/gpu": "4"}),)),
    ),
    "quota of another name": (
        "quota-other-name",
        patient(MIXED, quotas=(quota({"requests.nvidia.com/gpu": "4"}, {"requests.nvidia.com/gpu": "0"}),)),
    ),
    "plugin crashes, labels of better days": (
        "plugin-crashing",
        patient(ZERO, stack_pods=(failing(PLUGIN, "CrashLoopBackOff"), *OTHERS)),
    ),
    "a GPU that fell ill": ("devices-unhealthy", patient(replace(GPU_NODE, allocatable={"nvidia.com/gpu": "7"}))),
    "a kubelet that went silent": ("node-not-ready", patient(replace(GPU_NODE, conditions={"Ready": "Unknown"}))),
    "a node that lost its network": ("node-not-ready", patient(replace(GPU_NODE, conditions={"Ready": "False"}))),
    "a machine that boots": (
        "node-not-ready",
        patient(replace(UNCOUNTED, conditions={"Ready": "False"}), stack_pods=(), daemonsets=(NFD_WORKER,)),
    ),
    "a node that says nothing of itself": ("node-not-ready", patient(replace(GPU_NODE, conditions={}))),
    "cordoned": ("node-cordoned", patient(replace(GPU_NODE, taints=(GPU_TAINT, CORDON)))),
    "cordoned, and no controller has tainted it": ("node-cordoned", patient(replace(GPU_NODE, unschedulable=True))),
    "no taint": ("gpu-node-untainted", patient(replace(GPU_NODE, taints=()), pods=(pod(),))),
    "plugin pod not made on one node": (
        "plugin-pods-refused",
        patient(GPU_NODE, replace(UNCOUNTED, name="gpu-2"), stack_pods=(pod_of(PLUGIN), *OTHERS, *ON_TWO)),
    ),
    "plugin pod without a place": (
        "stack-pod-unplaced",
        patient(UNCOUNTED, stack_pods=(pod_of(PLUGIN, **UNPLACED), *OTHERS)),
    ),
    "NFD master without a place": (
        "stack-pod-unplaced",
        patient(stack_pods=(*RUNNING, pod_of_deployment(NFD_MASTER, **{**UNPLACED, "node": ""}))),
    ),
    "plugin pod that stays in ContainerCreating": (
        "stack-pod-not-starting",
        patient(
            UNCOUNTED,
            daemonsets=(changed(PLUGIN, runtimeClassName="nvidia"), GFD, MPS_DAEMON, NFD_WORKER),
            stack_pods=(creating(PLUGIN), *OTHERS),
            now=NOON,
        ),
    ),
    "plugin that was restarted 400 times": (
        "stack-pod-restarting",
        patient(stack_pods=(pod_of(PLUGIN, containers=(container(restarts=400),)), *OTHERS)),
    ),
    "MIG manager's image": (
        "plugin-image",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, MIG_MANAGER, NFD_WORKER),
            **OPERATING,
            stack_pods=of_operator("ImagePullBackOff"),
        ),
    ),
    "MIG manager crashes": (
        "plugin-crashing",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, MIG_MANAGER, NFD_WORKER),
            **OPERATING,
            stack_pods=of_operator("CrashLoopBackOff"),
        ),
    ),
    "NFD worker's image": (
        "plugin-image",
        patient(stack_pods=(pod_of(PLUGIN), pod_of(GFD), failing(NFD_WORKER, "ImagePullBackOff"))),
    ),
    "NFD master crashes": (
        "plugin-crashing",
        patient(stack_pods=(*RUNNING, pod_of_deployment(NFD_MASTER, ready=False, containers=(CRASHING,)))),
    ),
    "operator crashes": (
        "plugin-crashing",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, NFD_WORKER),
            **{**OPERATING, "masters": (NFD_MASTER, {**OPERATOR, "status": {"replicas": 1}})},
            stack_pods=(
                pod_of(OPERATED),
                pod_of(NFD_WORKER),
                pod_of_deployment(OPERATOR, ready=False, containers=(CRASHING,)),
            ),
        ),
    ),
    "operator scaled to 0": (
        "operator-down",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, NFD_WORKER),
            **{
                **OPERATING,
                "masters": (NFD_MASTER, {**OPERATOR, "spec": {**OPERATOR["spec"], "replicas": 0}, "status": {}}),
            },
        ),
    ),
    "operator gone": (
        "operator-down",
        patient(TAKEN_UP, daemonsets=(OPERATED, NFD_WORKER), **{**OPERATING, "masters": (NFD_MASTER,)}),
    ),
    "operator not ready": (
        "operator-down",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, NFD_WORKER),
            **{**OPERATING, "masters": (NFD_MASTER, {**OPERATOR, "status": {"replicas": 1}})},
        ),
    ),
    "policy gone": (
        "operator-down",
        patient(TAKEN_UP, daemonsets=(OPERATED, NFD_WORKER), **{**OPERATING, "seen": {"cluster_policies": ()}}),
    ),
    "GFD deleted": (
        "stack-part-gone",
        patient(daemonsets=(PLUGIN, MPS_DAEMON, NFD_WORKER), releases=(release(manifest=MANIFEST),)),
    ),
    "GFD deleted, and MPS waits for it": (
        "stack-part-gone",
        patient(
            relabelled(UNCOUNTED, **{CONFIG: "mps"}),
            daemonsets=(PLUGIN, MPS_DAEMON, NFD_WORKER),
            entries={**ENTRIES, "mps": BY_MPS},
            releases=(release(manifest=MANIFEST),),
        ),
    ),
    "MPS daemon deleted": (
        "stack-part-gone",
        patient(
            relabelled(UNCOUNTED, **{CONFIG: "mps"}),
            daemonsets=(PLUGIN, GFD, NFD_WORKER),
            entries={**ENTRIES, "mps": BY_MPS},
            releases=(release(manifest=MANIFEST),),
        ),
    ),
    "NFD master deleted": ("stack-part-gone", patient(masters=(), releases=(release(manifest=MANIFEST),))),
    "NFD worker sent elsewhere": (
        "stack-part-edited",
        patient(
            daemonsets=(PLUGIN, GFD, MPS_DAEMON, changed(NFD_WORKER, nodeSelector={"disk": "fast"})),
            stack_pods=(pod_of(PLUGIN), pod_of(GFD)),
            releases=(release(manifest=MANIFEST),),
        ),
    ),
    "plugin sent elsewhere by hand": (
        "plugin-desired-zero",
        patient(
            UNCOUNTED,
            daemonsets=(changed(PLUGIN, nodeSelector={"disk": "fast"}), GFD, MPS_DAEMON, NFD_WORKER),
            stack_pods=OTHERS,
            releases=(release(manifest=MANIFEST),),
        ),
    ),
    "node that the operator must leave alone": (
        "operands-kept-off",
        patient(
            relabelled(UNCOUNTED, **{"nvidia.com/gpu.deploy.operands": "false"}),
            daemonsets=(OPERATED, NFD_WORKER),
            **OPERATING,
            stack_pods=(pod_of(NFD_WORKER),),
        ),
    ),
    "operator waits for NFD": (
        "nfd-worker-not-tolerating",
        patient(
            UNCOUNTED,
            daemonsets=(OPERATED, NFD_WORKER),
            **{**OPERATING, "masters": ({**NFD_MASTER, "status": {}}, OPERATOR)},
            stack_pods=(pod_of(NFD_WORKER),),
        ),
    ),
    "cut that is pending for hours": (
        "mig-config-stuck",
        patient(
            replace(
                relabelled(ZERO, **{"nvidia.com/mig.config.state": "pending", "nvidia.com/mig.config": "all-1g.5gb"}),
                layout_changed="2026-11-01T09:00:00Z",
            ),
            daemonsets=(PLUGIN, {**MIG_MANAGER, "status": {}}, NFD_WORKER),
            now=NOON,
        ),
    ),
    "gpu on a mixed pool beside others": (
        "pods-ask-gpu-under-mixed",
        patient(
            GPU_NODE,
            replace(MIXED, name="gpu-2", labels={**MIXED.labels, "pool": "mixed"}),
            stack_pods=(*RUNNING, *ON_TWO, pod_of(PLUGIN, "gpu-2")),
            pods=(replace(waiting("w", "nvidia.com/gpu"), placement=Placement({"pool": "mixed"})),),
        ),
    ),
    "profile that no node has": (
        "pods-ask-absent-profile",
        patient(MIXED, pods=(waiting("w", "nvidia.com/mig-2g.10gb"),)),
    ),
    "manager kept off by a label": (
        "mig-label-without-manager",
        patient(
            relabelled(
                GPU_NODE,
                **{
                    "nvidia.com/mig.config": "all-1g.5gb",
                    "nvidia.com/gpu.deploy.mig-manager": "false",
                    "nvidia.com/gpu.deploy.device-plugin": "true",
                },
            ),
            daemonsets=(
                OPERATED,
                changed(MIG_MANAGER, nodeSelector={"nvidia.com/gpu.deploy.mig-manager": "true"}),
                NFD_WORKER,
            ),
            **OPERATING,
            stack_pods=(pod_of(OPERATED), pod_of(NFD_WORKER)),
        ),
    ),
}

CASES |= {
    "a node without a network for three days": (
        "node-not-ready",
        patient(
            replace(
                GPU_NODE,
                conditions={"Ready": "False"},
                condition_views={
                    "Ready": ConditionView("KubeletNotReady", "cni plugin not initialized", "2026-10-29T12:00:00Z")
                },
            ),
            now=NOON,
        ),
    ),
    "a full disk": (
        "node-condition",
        patient(
            replace(
                GPU_NODE,
                conditions={"Ready": "True", "DiskPressure": "True"},
                condition_views={"DiskPressure": ConditionView("KubeletHasDiskPressure", "", "2026-11-01T10:00:00Z")},
                taints=(GPU_TAINT, Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule")),
            ),
            now=NOON,
        ),
    ),
    "a node that gets its routes": (
        "node-condition",
        patient(
            replace(
                GPU_NODE,
                conditions={"Ready": "True", "NetworkUnavailable": "True"},
                condition_views={"NetworkUnavailable": ConditionView("NoRouteCreated", "", "2026-11-01T11:59:00Z")},
            ),
            now=NOON,
        ),
    ),
    "ClusterPolicy gone, and all that it made": (
        "operator-down",
        patient(
            relabelled(UNCOUNTED, **{"nvidia.com/mig.config": "all-1g.5gb"}),
            daemonsets=(NFD_WORKER,),
            masters=(NFD_MASTER, OPERATOR),
            stack_pods=(pod_of(NFD_WORKER), pod_of_deployment(OPERATOR)),
        ),
    ),
    "a pod that waits for a cordoned node": (
        "node-cordoned",
        patient(
            replace(GPU_NODE, taints=(CORDON,)),
            CPU_NODE,
            pods=(waiting("w", "nvidia.com/gpu", said="0/2 nodes are available: 1 node(s) were unschedulable"),),
        ),
    ),
    "tolerations of the plugin taken off": (
        "plugin-not-tolerating",
        patient(
            UNCOUNTED,
            daemonsets=(changed(PLUGIN, tolerations=[]), GFD, MPS_DAEMON, NFD_WORKER),
            stack_pods=OTHERS,
            releases=(release(manifest=MANIFEST),),
        ),
    ),
}

VALIDATOR = daemonset(
    "nvidia-operator-validator",
    "sh",
    "gpu-operator",
    {"app": "nvidia-operator-validator"},
    image="gpu-operator:v26.7.0",
)
EXPORTER = daemonset(
    "nvidia-dcgm-exporter", "dcgm-exporter", "gpu-operator", {"app": "nvidia-dcgm-exporter"}, image="x"
)
TYPE = "node.kubernetes.io/instance-type"
STARTING = container(ready=False, waiting="ContainerCreating")
CASES |= {
    "validator crashes before it starts": (
        "plugin-crashing",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, VALIDATOR, NFD_WORKER),
            **OPERATING,
            stack_pods=(
                pod_of(OPERATED),
                pod_of(NFD_WORKER),
                failing(VALIDATOR, "CrashLoopBackOff", init=True),
                pod_of_deployment(OPERATOR),
            ),
        ),
    ),
    "exporter crashes": (
        "plugin-crashing",
        patient(
            TAKEN_UP,
            daemonsets=(OPERATED, EXPORTER, NFD_WORKER),
            **OPERATING,
            stack_pods=(
                pod_of(OPERATED),
                pod_of(NFD_WORKER),
                failing(EXPORTER, "CrashLoopBackOff"),
                pod_of_deployment(OPERATOR),
            ),
        ),
    ),
    "pod of a runtime class without a handler": (
        "pods-not-starting",
        patient(
            pods=(
                replace(
                    pod("job", devices={"nvidia.com/gpu": 1}, phase="Pending", ready=False, containers=(STARTING,)),
                    created="2026-11-01T09:00:00Z",
                ),
            ),
            refusals={("Pod", "team", "job"): 'failed: no runtime for "crun-vm" is configured'},
            now=NOON,
        ),
    ),
    "one GPU is gone": (
        "devices-missing",
        patient(
            relabelled(
                replace(GPU_NODE, capacity={"nvidia.com/gpu": "7"}, allocatable={"nvidia.com/gpu": "7"}),
                **{TYPE: "Standard_ND96asr_v4", "nvidia.com/gpu.count": "7"},
            )
        ),
    ),
    "role of ours is gone": (
        "stack-role-gone",
        patient(roles_gone=(("gpukube-nvidia-device-plugin", "ClusterRole gpukube-nvidia-device-plugin"),)),
    ),
    "RuntimeClass is gone": (
        "runtime-class-gone",
        patient(daemonsets=(changed(PLUGIN, runtimeClassName="nvidia"), NFD_WORKER), runtime_classes=("runc",)),
    ),
    "half of a layout is cut": ("devices-missing", half_cut()),
    "a name of each strategy": (
        "pods-pending",
        patient(
            GPU_NODE,
            replace(MIXED, name="gpu-2"),
            stack_pods=(*RUNNING, *ON_TWO, pod_of(PLUGIN, "gpu-2")),
            pods=(
                pod(
                    "w",
                    devices={"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1},
                    phase="Pending",
                    node="",
                    scheduled=False,
                    ready=False,
                    unschedulable="0/2 nodes are available: 1 Insufficient nvidia.com/gpu",
                ),
            ),
        ),
    ),
}

EFA_POOL = on_eks()
EFA_NODE = node(
    "gpu-1",
    {**GPU_LABELS, **EFA_POOL.labels, "node.kubernetes.io/instance-type": "p5.48xlarge"},
    {"nvidia.com/gpu": 8, EFA: 32},
)
UNCONNECTED = replace(EFA_NODE, allocatable={"nvidia.com/gpu": "8"})
TYPES = instance_types("p4d.24xlarge", "p5.48xlarge")
EFA_PLUGIN = daemonset(
    "efa-aws-efa-k8s-device-plugin",
    "/efa-k8s-device-plugin",
    "kube-system",
    {"app.kubernetes.io/instance": "efa"},
    image="602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20",
    affinity=TYPES,
)
INTOLERANT = changed(EFA_PLUGIN, tolerations=[{"key": "CriticalAddonsOnly", "operator": "Exists"}])
DRANET = daemonset(
    "aws-dranet", "/dranet", "kube-system", {"app": "aws-dranet"}, image="eks/dranet:v1.2.0-eksbuild.2", affinity=TYPES
)
MOUNTING = changed(
    PLUGIN,
    containers=[
        {**PLUGIN["spec"]["template"]["spec"]["containers"][0], "image": "nvcr.io/nvidia/k8s-device-plugin:v0.19.1"}
    ],
)


def with_efa(
    node: NodeView, *daemonsets: Body, plugin: Body = PLUGIN, declared: bool = True, pods: tuple[PodFacts, ...] = ()
) -> Evidence:
    """Make a cluster with one pool whose spec requests the fast network, or that somebody else created with it."""
    live = make_observed(EFA_POOL, name="p5", labels={}, fields={HIGH_SPEED: True})
    others = relabelled(node, **dict.fromkeys(EFA_POOL.labels, None), **{"eks.amazonaws.com/nodegroup": "p5"})
    return patient(
        node if declared else others,
        daemonsets=(plugin, GFD, NFD_WORKER, *daemonsets),
        entries={**ENTRIES, EFA_POOL.ownership.config_key: "version: v1"} if declared else None,
        pods=pods,
        desired=(EFA_POOL,) if declared else (),
        live=() if declared else (live,),
    )


CASES |= {
    "nothing provides EFA": ("fabric-missing", with_efa(UNCONNECTED)),
    "the EFA plugin does not tolerate the GPU taint": ("fabric-missing", with_efa(UNCONNECTED, INTOLERANT)),
    "the EFA plugin does not tolerate the taint of a pool of others": (
        "fabric-unplaced",
        with_efa(UNCONNECTED, INTOLERANT, declared=False),
    ),
    "EFA by a plugin and by DRA": ("fabric-twice", with_efa(EFA_NODE, EFA_PLUGIN, DRANET)),
    "a plugin that mounts all RDMA devices": ("fabric-mounted", with_efa(EFA_NODE, EFA_PLUGIN, plugin=MOUNTING)),
    "an EFA interface is missing": (
        "fabric-short",
        with_efa(replace(EFA_NODE, allocatable={**EFA_NODE.allocatable, EFA: "31"}), EFA_PLUGIN),
    ),
}

WITH_EFA = pod(
    devices={"nvidia.com/gpu": 8},
    others={EFA: 32},
    phase="Pending",
    node="",
    scheduled=False,
    ready=False,
    unschedulable=f"0/2 nodes are available: 2 Insufficient {EFA}",
)
CASES |= {
    "pods wait for EFA, which nothing provides": ("fabric-missing", with_efa(UNCONNECTED, pods=(WITH_EFA,))),
    "pods wait for EFA, which no pool has": ("pods-pending", patient(pods=(WITH_EFA,))),
}

# NVIDIA's DRA driver
BARE = relabelled(
    replace(GPU_NODE, capacity={}, allocatable={}), **{"nvidia.com/gpu.count": None, "nvidia.com/gpu.replicas": None}
)
"""A node whose GPUs a DRA driver publishes."""
EIGHT = published(*map(gpu, range(8)))
TWO_CLASSES = (
    ClassFacts("gpu.nvidia.com", "nvidia.com/gpu", ("dra", "mydra"), "2026-10-01T00:00:00Z"),
    ClassFacts("mine.example.com", "nvidia.com/gpu", created="2026-10-02T00:00:00Z"),
)
DRA_MANIFEST = yaml.safe_dump({**DRA, "kind": "DaemonSet", "status": {}})
INIT = container("init-container", init=True, ready=False)
TAINTED = (DeviceTaint("gpu.nvidia.com/xid", "79", "NoSchedule"),)
DRA_GATE = "unknown GPU sharing strategy: TimeSlicing"
CLAIM = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}]},
}


ELSEWHERE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpukube.io/advertiser", "operator": "DoesNotExist"}]}]
        }
    }
}
DOMAINS = changed(
    {**DRA, "metadata": {**DRA["metadata"], "name": "domains"}},
    containers=[{"name": "compute-domains", "image": DRA_IMAGE, "command": ["bash"]}],
)


def of_dra(
    *nodes: NodeView,
    slices: tuple[SliceView, ...] = (EIGHT,),
    classes: tuple[ClassFacts, ...] = tuple(map(ClassFacts, DRA_CLASSES)),
    daemonsets: tuple[Body, ...] = (DRA,),
    **changes: object,
) -> Evidence:
    """Make a cluster whose GPUs somebody's release of the DRA driver publishes."""
    return patient(
        *(nodes or (BARE, CPU_NODE)),
        daemonsets=daemonsets,
        masters=(),
        seen={"slices": slices, "device_classes": tuple(item.name for item in classes)},
        classes=classes,
        **changes,  # type: ignore[arg-type]  # test data
    )


def claiming(name: str = "train-0", *, said: str = "0/2 nodes are available: 2 cannot allocate all claims") -> PodFacts:
    """Make a pod that waits for the devices of a claim, which its template has made."""
    made = pod(name, phase="Pending", node="", scheduled=False, ready=False, unschedulable=said)
    tolerates = placement_of({"tolerations": TOLERATES})
    return replace(made, claims=(f"{name}-gpu-x7",), templates=("one-gpu",), placement=tolerates)


def claim(name: str = "train-0-gpu-x7", spec: Body = CLAIM, **changes: object) -> ClaimFacts:
    (request,) = spec["devices"]["requests"]
    classes = tuple(item["deviceClassName"] for item in request.get("firstAvailable", [request.get("exactly")]))
    return replace(ClaimFacts("team", name, classes, spec=spec), **changes)  # type: ignore[arg-type]  # test data


def exactly(count: int = 1, class_name: str = "gpu.nvidia.com", **changes: object) -> Body:
    request = {"deviceClassName": class_name, "count": count, **changes}
    return {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}


CHOICES = [{"name": name[:3], "deviceClassName": name} for name in ("gpu.nvidia.com", "mig.nvidia.com")]
ALTERNATIVES: Body = {"devices": {"requests": [{"name": "gpu", "firstAvailable": CHOICES}]}}
ONE_GPU = ClaimFacts("team", "one-gpu", ("gpu.nvidia.com",), spec=CLAIM)
HELD = tuple(
    claim(
        f"job-{index}-gpu-y1",
        allocated=True,
        devices=(("gpu.nvidia.com", "gpu-1", f"gpu-{index}"),),
        pods=(f"job-{index}",),
    )
    for index in range(8)
)
WAITING: dict[str, Any] = {"templates": (ONE_GPU,), "pods": (claiming(),)}


def one_gpu_short() -> Evidence:
    """Make a node of a declared pool, whose driver found seven of its eight GPUs."""
    pool = desire(plugin_owner="dra")
    ours = replace(BARE, labels={**BARE.labels, **pool.labels}, taints=pool.effective_taints)
    return of_dra(ours, CPU_NODE, slices=(published(*map(gpu, range(7))),), desired=(pool,))


def not_prepared(message: str) -> Evidence:
    """Make a pod that has its claim, and whose kubelet reports why it cannot prepare it."""
    made = pod("train-0", phase="Pending", ready=False, containers=(STARTING,))
    started = replace(made, claims=("train-0-gpu-x7",), created="2026-11-01T11:58:00Z")
    return of_dra(
        pods=(started,),
        claims=(claim(allocated=True, pods=("train-0",)),),
        refusals={("Pod", "team", "train-0"): message},
        now=NOON,
    )


CASES |= {
    "DRA driver and a plugin": (
        "two-advertisers",
        of_dra(GPU_NODE, CPU_NODE, daemonsets=(DRA, PLUGIN), pods=(pod(devices={"nvidia.com/gpu": 1}),)),
    ),
    "DRA driver, and devices of a plugin that nobody knows": ("two-advertisers", of_dra(GPU_NODE, CPU_NODE)),
    "service of the node that publishes GPUs, and a plugin": (
        "two-advertisers",
        patient(seen={"slices": (EIGHT,), "device_classes": DRA_CLASSES}),
    ),
    "DRA driver under both names": (
        "dra-driver-twice",
        of_dra(
            daemonsets=(
                DRA,
                {
                    **DRA,
                    "metadata": {**DRA["metadata"], "name": "nvidia-dra-driver-gpu-kubelet-plugin", "namespace": "old"},
                },
            ),
        ),
    ),
    "DRA driver that selects a label nobody has": (
        "plugin-desired-zero",
        of_dra(daemonsets=(changed(DRA, nodeSelector={"gpu": "yes"}),), slices=(), stack_pods=()),
    ),
    "DRA driver that does not tolerate a taint": (
        "plugin-not-tolerating",
        of_dra(replace(BARE, taints=(GPU_TAINT, OTHER_TAINT)), CPU_NODE, slices=(), stack_pods=()),
    ),
    "pool of the DRA driver without it": (
        "no-plugin",
        of_dra(
            relabelled(BARE, **{"gpukube.io/advertiser": "dra"}),
            CPU_NODE,
            daemonsets=(changed(PLUGIN, nodeSelector={"gpukube.io/advertiser": "chart"}),),
            slices=(),
            stack_pods=(),
        ),
    ),
    "DRA driver deleted": (
        "no-plugin",
        of_dra(
            relabelled(BARE, **{"gpukube.io/advertiser": "dra"}),
            CPU_NODE,
            daemonsets=(),
            slices=(),
            releases=(release(name="mydra", namespace="dra", manifest=DRA_MANIFEST),),
        ),
    ),
    "DRA driver that finds no driver": (
        "dra-driver-waiting",
        of_dra(
            slices=(),
            stack_pods=(
                replace(pod_of(DRA, ready=False, phase="Pending", containers=(INIT,)), created="2026-11-01T09:00:00Z"),
            ),
            now=NOON,
        ),
    ),
    "DRA driver whose gates exclude each other": (
        "plugin-crashing",
        of_dra(slices=(), stack_pods=(failing(DRA, "CrashLoopBackOff"),)),
    ),
    "DRA driver refused by a quota": (
        "plugin-pods-refused",
        of_dra(
            slices=(), stack_pods=(), refusals={("DaemonSet", "dra", DRA["metadata"]["name"]): "insufficient quota"}
        ),
    ),
    "DRA driver before NVIDIA's driver": ("dra-silent", of_dra(slices=(published(),))),
    "DRA driver after its kubelet started again": ("dra-silent", of_dra(slices=())),
    "half of the slices": ("dra-slices-incomplete", of_dra(slices=(replace(EIGHT, expected=2),))),
    "slices of a node that is gone": ("dra-slices-stale", of_dra(slices=(EIGHT, published(gpu(0), on="gone")))),
    "slices from before a driver upgrade": (
        "dra-slices-stale",
        of_dra(relabelled(BARE, **{"nvidia.com/cuda.driver-version.full": "590.44.01"}), CPU_NODE),
    ),
    "slices on a node that a plugin serves now": (
        "dra-slices-stale",
        of_dra(
            relabelled(GPU_NODE, **{"gpukube.io/advertiser": "chart"}),
            CPU_NODE,
            daemonsets=(changed(DRA, nodeSelector={"gpukube.io/advertiser": "dra"}), changed(PLUGIN, volumes=[])),
            stack_pods=(pod_of(PLUGIN),),
        ),
    ),
    "class of whole GPUs deleted": ("dra-class-missing", of_dra(classes=tuple(map(ClassFacts, DRA_CLASSES[1:])))),
    "class of whole GPUs deleted, and a pod waits": (
        "dra-class-missing",
        of_dra(classes=tuple(map(ClassFacts, DRA_CLASSES[1:])), claims=(claim(),), **WAITING),
    ),
    "two classes for nvidia.com/gpu": ("dra-class-twice", of_dra(classes=TWO_CLASSES)),
    "a template that does not exist": ("claims-pending", of_dra(claims=(), pods=(claiming(),))),
    "a claim that does not exist": (
        "claims-pending",
        of_dra(pods=(replace(claiming(), templates=(), claims=("shared",)),)),
    ),
    "a class that nobody installed": (
        "claims-pending",
        of_dra(claims=(claim(spec=exactly(class_name="tpu.example.com")),), **WAITING),
    ),
    "more devices than a node has": ("claims-pending", of_dra(claims=(claim(spec=exactly(9)),), **WAITING)),
    "all devices held by others": ("claims-pending", of_dra(claims=(*HELD, claim()), **WAITING)),
    "a profile that no node has": (
        "claims-pending",
        of_dra(claims=(claim(spec=exactly(class_name="mig.nvidia.com")),), **WAITING),
    ),
    "a selector that matches nothing": (
        "claims-pending",
        of_dra(claims=(claim(spec=exactly(selectors=[{"cel": {"expression": "false"}}])),), **WAITING),
    ),
    "a GPU less than the spec promises": ("devices-missing", one_gpu_short()),
    "devices with a taint": (
        "devices-unhealthy",
        of_dra(
            slices=(published(*(gpu(index, taints=TAINTED) for index in range(8))),),
            claims=(claim(),),
            **WAITING,
        ),
    ),
    "a taint of the nodes": (
        "claims-pending",
        of_dra(claims=(claim(),), templates=(ONE_GPU,), pods=(replace(claiming(), placement=Placement()),)),
    ),
    "alternatives that do not exist": (
        "claims-pending",
        of_dra(claims=(claim(spec=ALTERNATIVES),), **WAITING),
    ),
    "a claim that waits for a cordoned node": (
        "node-cordoned",
        of_dra(replace(BARE, taints=(GPU_TAINT, CORDON)), CPU_NODE, claims=(claim(),), **WAITING),
    ),
    "a selector of other nodes": (
        "claims-pending",
        of_dra(
            claims=(claim(),),
            templates=(ONE_GPU,),
            pods=(replace(claiming(), placement=replace(claiming().placement, node_selector={"pool": "other"})),),
        ),
    ),
    "a claim reserved for a pod that is gone": (
        "claims-stuck",
        of_dra(claims=(replace(HELD[0], deleted="2026-11-01T09:00:00Z"),), now=NOON),
    ),
    "a plugin that the kubelet does not know": (
        "pods-not-starting",
        not_prepared("failed to prepare dynamic resources: DRA driver gpu.nvidia.com is not registered"),
    ),
    "a claim with a strategy that is off": (
        "pods-not-starting",
        not_prepared(f"failed to prepare dynamic resources: {DRA_GATE}"),
    ),
    "a container runtime without CDI": (
        "pods-not-starting",
        not_prepared("unresolvable CDI devices k8s.gpu.nvidia.com/claim=x"),
    ),
    "a request of nvidia.com/gpu that only claims could serve": (
        "pods-ask-gpu-under-dra",
        of_dra(pods=(waiting("w", "nvidia.com/gpu"),)),
    ),
}

HEALTHY: dict[str, Evidence] = {
    "DRA": of_dra(claims=HELD, templates=(ONE_GPU,)),
    "DRA without a driver in the cluster, as AKS may install it": of_dra(daemonsets=(), stack_pods=()),
    "DRA beside a plugin on other nodes": of_dra(
        BARE,
        replace(GPU_NODE, name="gpu-2", labels={**GPU_NODE.labels, "gpukube.io/advertiser": "chart"}),
        daemonsets=(
            changed(DRA, nodeSelector={SEEN_BY_NFD: "true"}, affinity=ELSEWHERE),
            changed(PLUGIN, volumes=[], nodeSelector={"gpukube.io/advertiser": "chart"}),
        ),
        stack_pods=(pod_of(DRA), pod_of(PLUGIN, "gpu-2")),
    ),
    "DRA only for ComputeDomains": patient(daemonsets=(PLUGIN, GFD, MPS_DAEMON, NFD_WORKER, DOMAINS)),
    "a mapped nvidia.com/gpu": of_dra(classes=TWO_CLASSES[:1], pods=()),
    "slices that came a moment ago": of_dra(
        slices=(published(),), stack_pods=(replace(pod_of(DRA), created="2026-11-01T11:59:00Z"),), now=NOON
    ),
    "EFA": with_efa(EFA_NODE, EFA_PLUGIN),
    "EFA of others": with_efa(EFA_NODE, EFA_PLUGIN, declared=False),
    "operator gone, its label left": patient(relabelled(GPU_NODE, **{"nvidia.com/mig.config": "all-disabled"})),
    "whole GPUs before the first cut": patient(
        relabelled(
            replace(MIXED, allocatable={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "56"}),
            **{
                "nvidia.com/mig.config": "all-1g.5gb",
                "nvidia.com/mig.config.state": "success",
                "nvidia.com/gpu.deploy.device-plugin": "true",
            },
        ),
        daemonsets=(OPERATED, MIG_MANAGER, NFD_WORKER),
        **OPERATING,
        stack_pods=(pod_of(OPERATED), pod_of(NFD_WORKER), pod_of(MIG_MANAGER)),
    ),
    "as helm leaves it": patient(),
    "ours": of_ours(),
    "mixed": patient(MIXED, pods=(pod(devices={"nvidia.com/mig-1g.5gb": 1}),)),
    "shared": patient(SHARED, entries={**ENTRIES, **FOUR}, pods=(pod(devices={"nvidia.com/gpu": 1}),)),
    "without GPUs": patient(CPU_NODE, daemonsets=(), masters=()),
    "cut under way": patient(
        relabelled(ZERO, **{"nvidia.com/mig.config.state": "rebooting", "nvidia.com/mig.config": "all-1g.5gb"}),
        daemonsets=(PLUGIN, {**MIG_MANAGER, "status": {}}, NFD_WORKER),
    ),
    "quota with room": patient(quotas=(quota({"requests.nvidia.com/gpu": "4"}, {"requests.nvidia.com/gpu": "3"}),)),
    "advertised by something unknown": patient(daemonsets=(NFD_WORKER,)),
}
