"""Kubernetes objects, read from JSON."""

from __future__ import annotations

from gpukube.cluster.kube.views import Toleration, node_view, pod_view, workload_view
from gpukube.core.values import Taint

NODE = {
    "metadata": {"name": "n1", "labels": {"a": "b"}, "creationTimestamp": "2026-11-01T00:00:00Z"},
    "spec": {
        "taints": [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            {"key": "odd", "effect": "NoSuchEffect"},
        ]
    },
    "status": {
        "capacity": {"nvidia.com/gpu": "56"},
        "allocatable": {"cpu": "95", "nvidia.com/gpu": "56", "nvidia.com/mig-1g.5gb": "0"},
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"}],
        "nodeInfo": {"osImage": "Bottlerocket OS"},
    },
}
POD = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "ownerReferences": [
            {"kind": "Other", "name": "x", "controller": False},
            {"kind": "DaemonSet", "name": "ds", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [
            {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}}},
            {"resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}},
        ],
    },
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False"}],
        "initContainerStatuses": [
            {
                "name": "init",
                "restartCount": 4,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "message": "no such config"}},
            }
        ],
        "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}],
    },
}


def test_node_when_cordoned_then_known_before_a_controller_taints_it() -> None:
    assert not node_view(NODE).cordoned
    assert node_view({**NODE, "spec": {"unschedulable": True}}).cordoned


def test_node_when_read_then_devices_taints_and_readiness() -> None:
    node = node_view(NODE)
    assert (node.name, node.ready, node.os_image) == ("n1", True, "Bottlerocket OS")
    assert node.devices == {"nvidia.com/gpu": 56, "nvidia.com/mig-1g.5gb": 0}
    assert node.taints == (
        Taint("nvidia.com/gpu", "present", "NoSchedule"),
        Taint("node.kubernetes.io/not-ready", "", "NoExecute"),
    )


def test_node_when_it_is_bare_then_nothing_is_invented() -> None:
    node = node_view({"metadata": {"name": "n"}})
    assert (node.ready, node.devices, node.taints, node.labels) == (False, {}, (), {})


def test_pod_when_an_init_container_crashes_then_reason_message_and_restarts() -> None:
    pod = pod_view(POD)
    assert (pod.owner_kind, pod.owner, pod.node, pod.ready) == ("DaemonSet", "ds", "n1", False)
    first, second = pod.containers
    assert (first.init, first.waiting, first.message, first.restarts, first.exit_code) == (
        True,
        "CrashLoopBackOff",
        "no such config",
        4,
        1,
    )
    assert (second.name, second.ready, second.waiting, second.exit_code) == ("main", True, "", None)


def test_pod_when_containers_ask_for_gpus_then_summed_and_no_other_resource() -> None:
    assert pod_view(POD).devices == {"nvidia.com/gpu": 3}


def test_pod_when_not_placed_then_the_node_it_is_meant_for() -> None:
    path = "requiredDuringSchedulingIgnoredDuringExecution"
    match = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    pod = pod_view(
        {
            "spec": {"affinity": {"nodeAffinity": {path: {"nodeSelectorTerms": [{"matchFields": [match]}]}}}},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "Too many pods"}]},
        }
    )
    assert (pod.node, pod.scheduled, pod.unschedulable) == ("n7", False, "Too many pods")


def test_workload_when_it_is_a_daemonset_then_placement_and_numbers() -> None:
    pod_spec = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "value": "v"}, {"operator": "Exists"}],
        "containers": [{"name": "c", "image": "i", "command": ["x"], "args": ["-y"]}],
    }
    view = workload_view(
        {
            "metadata": {"name": "ds", "namespace": "ns"},
            "spec": {"template": {"metadata": {"labels": {"app": "p"}}, "spec": pod_spec}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 2},
        },
        "DaemonSet",
    )
    assert (str(view), view.desired, view.ready, view.images) == ("DaemonSet ns/ds", 3, 2, ("i",))
    assert view.placement.tolerations == (Toleration("k", "Equal", "v", ""), Toleration("", "Exists", "", ""))
    assert view.containers[0].command == ("x", "-y")
    assert view.pod_labels == {"app": "p"}
