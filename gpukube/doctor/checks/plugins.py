"""Checks of device plugins: two on one node, failing pods, and plugins that run but advertise nothing.

In scope: pure checks. Out of scope: nodes without a plugin (placement), config entries (configs), MIG.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DRA_DRIVER, NAMESPACE
from gpukube.cluster.state.advertisers import (
    PLUGIN_AND_DRIVER,
    is_ours,
    keep_one,
    node_plugin_evidence,
    remove_plugin,
    without_gpus,
)
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import Reconcile, fault
from gpukube.core.jsontree import text
from gpukube.core.owners import ADVERTISER_LABEL, CLIENT_LABEL, CONFIG_LABEL
from gpukube.doctor.check import APPLY, MOST_NAMED, Checks
from gpukube.doctor.checks.components import WITHOUT, is_part_gone, recreate, restore_runtime_class
from gpukube.doctor.checks.configs import config_key_of, shares_by_mps
from gpukube.doctor.checks.mig import explains_crash, explains_zero
from gpukube.doctor.gpu_stack import (
    advertisers_on,
    dra_drivers,
    failure_of,
    gpu_nodes,
    is_failing,
    part_of,
    plugins,
    pods_of_deployment,
    release_of,
    workloads_of,
)
from gpukube.gpu.claims import DRIVER
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.core.in_cluster import NodePlugin
    from gpukube.doctor.evidence import Evidence
    from gpukube.doctor.gpu_stack import Failure, Part

_BAD_VERSIONS: Final = {
    (0, 16, 0): "deviceListStrategy volume-mounts fails, and failOnInitError is rendered as a value the API rejects",
    (0, 16, 1): "deviceListStrategy volume-mounts fails",
}
"""Plugin version -> known bug: NVIDIA/k8s-device-plugin#856 and CHANGELOG."""

_ISSUES: Final = "https://github.com/NVIDIA/k8s-device-plugin/issues"

CHECKS: Final = Checks()


@CHECKS.add(
    "two-advertisers",
    title="nodes on which two components advertise GPUs, as nvidia.com/* or in ResourceSlices",
    consequence="the kubelet keeps the last one, and the count drops to 0 when either restarts",
    link=f"{_ISSUES}/255",
    needs=("nodes", "daemonsets", "dra"),
)
def _two(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        found = advertisers_on(evidence, node)
        if len(found) > 1:
            yield fault(
                f"node {node.name}",
                f"{len(found)} components advertise GPUs here: {' and '.join(found)}",
                _keep_one(evidence, node),
                (f"allocatable: {_shown(node)}", *_holders(evidence, node)),
                why=PLUGIN_AND_DRIVER if evidence.published_on(node.name).pools else "",
            )


def _keep_one(evidence: Evidence, node: NodeView) -> str:
    """Return how to remove all but one; gpukube's stays, since its release contains the pools' settings."""
    landing = [item for item in plugins(evidence) if lands_on(item, node)]
    services = [
        plugin for facts in in_cluster_facts() for plugin in facts.node_plugins if node_plugin_evidence(plugin, node)
    ]
    if node.labels.get(ADVERTISER_LABEL) == DRA_DRIVER.advertiser:
        return _without_plugin(node, landing, services)
    drivers = [item for item in dra_drivers(evidence) if lands_on(item, node)]
    if drivers and not is_ours(drivers[0], evidence.seen):
        return without_gpus(drivers[0])
    if len(landing) > 1:
        return keep_one(landing, evidence.seen, node.name)
    if not landing or not services:
        return "disable GPUs in the DRA driver's release: resources.gpus.enabled=false"
    if is_ours(landing[0], evidence.seen):
        return f"{services[0].keep}; then run: {APPLY}"
    return remove_plugin(landing[0], node.name)


def _without_plugin(node: NodeView, landing: Sequence[WorkloadView], services: Sequence[NodePlugin]) -> str:
    """Return how to remove what advertises nvidia.com/* on a node whose GPUs gpukube's DRA driver publishes."""
    if landing:
        return " && ".join(dict.fromkeys(remove_plugin(item, node.name) for item in landing))
    if services:
        return services[0].remove
    return (
        "find what registers nvidia.com/gpu, and remove it: kubectl get pods --all-namespaces -o wide --field-selector "
        f"spec.nodeName={node.name}"
    )


def _holders(evidence: Evidence, node: NodeView) -> tuple[str, ...]:
    """Return the pods on a node that have GPUs of a plugin or of a claim: removing an advertiser does not stop them."""
    held = {str(claim) for claim in evidence.claims if any(driver == DRIVER for driver, _, _ in claim.devices)}
    return tuple(
        f"pod {pod} holds GPUs"
        for pod in evidence.pods_on(node.name)
        if pod.view.phase == "Running"
        and (pod.view.devices or any(f"{pod.view.namespace}/{name}" in held for name in pod.claims))
    )[:MOST_NAMED]


def _shown(node: NodeView) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(node.devices.items())) or "no nvidia.com/*"


@CHECKS.add(
    "two-nfds",
    title="Node Feature Discovery installed twice",
    consequence="two masters write and remove the same labels, and plugins that select them start and stop",
    link="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html",
    needs=("daemonsets", "deployments"),
)
def _two_nfds(evidence: Evidence) -> Iterator[Fault]:
    masters = [item for item in workloads_of(evidence, "nfd-master") if item.desired]
    if len(masters) > 1:
        first, *others = masters
        _, release = release_of(others[-1])
        yield fault(
            str(others[-1]),
            f"Node Feature Discovery runs {len(masters)} times: also {first}",
            "keep one: set nfd.enabled=false in the other release"
            + (f" (helm get values {release} --namespace {others[-1].namespace})" if release else ""),
            tuple(str(item) for item in masters),
        )


def _pods_failing(evidence: Evidence, failure: Failure) -> Iterator[Fault]:
    """Find failing containers of the stack (for DaemonSets, on GPU nodes), unless another check finds the cause."""
    with_gpus = {node.name: node for node in gpu_nodes(evidence)}
    pods = [
        (item, pod) for item in evidence.seen.daemonsets for pod in evidence.pods_of(item) if pod.view.node in with_gpus
    ]
    pods += [(item, pod) for item in evidence.seen.deployments for pod in pods_of_deployment(evidence, item)]
    for item, pod in pods:
        part, node = part_of(item), with_gpus.get(pod.view.node)
        if part is None:
            continue
        for state in pod.view.containers:
            # Only the plugin's parts choose a config entry before they start.
            seen = failure_of(state)
            if ("crash" if seen == "config" and part not in _CONFIGURED else seen) != failure:
                continue
            if part == "validator" and _is_explained(evidence, pod.view.node):
                continue
            if node is not None and part in _CONFIGURED:
                # The label names a missing entry (configs), or the MIG change is in progress or failed (mig).
                if failure == "config" and config_key_of(evidence, node, item).wrong:
                    continue
                if failure == "crash" and explains_crash(node):
                    continue
            yield fault(
                f"pod {pod}",
                f"container {state.name} on node {pod.view.node} is in {state.waiting} ({state.restarts} restarts)",
                _fix_of(failure, part, item).format(
                    pod=pod.view.name, place=f"--namespace {pod.view.namespace}", container=state.name
                ),
                (f"message: {state.message.splitlines()[0]}",) if state.message else (),
                why=WITHOUT.get(part, ""),
                severity="warning" if part == "dcgm" else "error",
            )


def _is_explained(evidence: Evidence, node: str) -> bool:
    """Return whether the plugin on a node fails, or was rejected there: its validator waits for it."""
    served = [pod for item in plugins(evidence) for pod in evidence.pods_on(node, item)]
    return any(is_failing(state) for pod in served for state in pod.view.containers)


def _fix_of(failure: Failure, part: Part, item: WorkloadView) -> str:
    """Return the fix for a failing container; driver and config matter only for the plugin's own parts."""
    if failure == "image":
        operated = item.labels.get("app.kubernetes.io/managed-by") == "gpu-operator"
        value = _REPOSITORIES.get(part, "image.repository") if not operated else _OPERANDS.get(part, "repository")
        return f"to use a mirror, set {value}; the registry's answer: kubectl describe pod {{pod}} {{place}}"
    if failure == "crash" and part == "dra":
        return _READ_DRA
    if failure == "crash" and part in _WITHOUT_DRIVER:
        return _READ_LOGS
    return _READ[failure]


_READ: Final = {
    "config": "the node's label nvidia.com/device-plugin.config must name an entry of the plugin's ConfigMap: kubectl "
    "logs {pod} {place} -c {container}",
    "crash": "check the node's image, its driver and its container runtime; last log lines: kubectl logs {pod} {place} "
    "-c {container} --previous",
    "mount": "a ConfigMap or a host path (nvidiaDriverRoot) is missing: kubectl describe pod {pod} {place}",
}


_READ_LOGS: Final = "kubectl logs {pod} {place} -c {container} --previous"
_READ_DRA: Final = (
    "its log names the cause: feature gates that exclude each other, a checkpoint of a newer version, or NVML: "
    + _READ_LOGS
)
_CONFIGURED: Final = ("plugin", "gfd", "mps")
"""Parts that read the plugin's config entries."""
_WITHOUT_DRIVER: Final = ("nfd-worker", "nfd-master", "operator", "mig-manager", "dcgm", "validator")
"""Parts that need neither NVIDIA's driver nor its container runtime to start."""
_REPOSITORIES: Final = {
    "nfd-worker": "image.repository of its node-feature-discovery (nfd.image.repository in the plugin's chart)",
    "nfd-master": "image.repository of its node-feature-discovery (nfd.image.repository in the plugin's chart)",
    "operator": "operator.repository",
}
_OPERANDS: Final = {
    "plugin": "devicePlugin.repository",
    "gfd": "gfd.repository",
    "mps": "devicePlugin.repository",
    "mig-manager": "migManager.repository",
    "validator": "validator.repository",
    "dcgm": "dcgmExporter.repository",
}
"""Part -> image value of the operator's chart (NVIDIA/gpu-operator v26.7.0 values.yaml)."""


CHECKS.add(
    "plugin-config-failing",
    title="config-manager containers that fail although the label names an existing entry",
    consequence="the node keeps its former sharing, or advertises no GPU",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/config-manager/main.go",
)(partial(_pods_failing, failure="config"))

CHECKS.add(
    "plugin-crashing",
    title="containers of the stack that crash",
    consequence="the node advertises no GPU; usually the driver is missing, or nvidia is not the container runtime",
    link=f"{_ISSUES}/478",
)(partial(_pods_failing, failure="crash"))


@CHECKS.add(
    "plugin-on-cpu-nodes",
    title="plugins that fail on nodes without GPUs",
    consequence="alerts about these harmless crashes hide the real ones",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/deployments/static/nvidia-device-plugin.yml",
    severity="warning",
)
def _on_cpu_nodes(evidence: Evidence) -> Iterator[Fault]:
    """Find plugins that run and fail on nodes without GPUs: static manifests select no nodes."""
    with_gpus = {node.name for node in gpu_nodes(evidence)}
    for item in plugins(evidence):
        failing = [
            pod
            for pod in evidence.pods_of(item)
            if pod.view.node not in with_gpus and any(map(is_failing, pod.view.containers))
        ]
        if failing:
            yield fault(
                str(item),
                f"{len(failing)} of its pods fail on nodes without GPUs",
                f"give it a node selector: kubectl patch daemonset {item.name} --namespace {item.namespace} --patch "
                '\'{"spec": {"template": {"spec": {"nodeSelector": {"nvidia.com/gpu.present": "true"}}}}}\'',
                tuple(f"pod {pod} on node {pod.view.node}" for pod in failing[:MOST_NAMED]),
            )


CHECKS.add(
    "plugin-image",
    title="images of the stack that cannot be pulled",
    consequence="the node advertises no GPU",
    link="https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff",
)(partial(_pods_failing, failure="image"))

CHECKS.add(
    "plugin-mount",
    title="pods of the stack whose ConfigMaps or host paths are missing",
    consequence="the pod stays in ContainerCreating, and the node advertises no GPU",
    link=f"{_ISSUES}/1371",
)(partial(_pods_failing, failure="mount"))


@CHECKS.add(
    "plugin-silent",
    title="plugins that run but advertise no devices",
    consequence="pods that request a GPU stay Pending even though every pod of the stack runs",
    link=f"{_ISSUES}/1011",
)
def _advertises_nothing(evidence: Evidence) -> Iterator[Fault]:
    """Find plugins that run but advertise nothing: with failOnInitError=false they wait forever for a driver."""
    with_gpus = {node.name: node for node in gpu_nodes(evidence)}
    for item in plugins(evidence):
        for pod in evidence.pods_of(item):
            node = with_gpus.get(pod.view.node)
            if node is None or not node.ready or not pod.view.ready or any(node.devices.values()):
                continue
            if explains_zero(evidence, node) or shares_by_mps(evidence, node):
                continue
            yield fault(
                f"node {node.name}",
                f"pod {pod} of {item} is Running, but the node advertises no devices",
                '"No devices found" in its log means no driver: '
                f"kubectl logs {pod.view.name} --namespace {pod.view.namespace}",
                (f"allocatable: {_shown(node)}", f"node image: {node.os_image}"),
            )


@CHECKS.add(
    "plugin-pods-refused",
    title="DaemonSets of the stack whose pods are not created",
    consequence="no pod of it runs on these nodes",
    link="https://kubernetes.io/docs/concepts/policy/resource-quotas/#limit-priority-class-consumption-by-default",
    needs=("nodes", "daemonsets", "pods", "quotas"),
)
def _not_made(evidence: Evidence) -> Iterator[Fault]:
    """Find DaemonSets of the stack whose pods a quota or an admission rule rejects."""
    for item in evidence.seen.daemonsets:
        nodes = [node for node in gpu_nodes(evidence) if node.ready and lands_on(item, node)]
        without = [node.name for node in nodes if not evidence.pods_on(node.name, item)]
        if not part_of(item) or not without or not item.desired or _is_rolling(evidence, item):
            continue
        there = [quota for quota in evidence.quotas if quota.namespace == item.namespace]
        limits = [
            (quota, ", ".join(f"{name} at most {value}" for name, value in quota.hard.items())) for quota in there
        ]
        refusal = evidence.refusals.get(("DaemonSet", item.namespace, item.name), "")
        ours = item.namespace == NAMESPACE and bool(evidence.desired)
        yield fault(
            str(item),
            f"{item.desired} pods are desired, none is created"
            if not evidence.pods_of(item)
            else f"no pod is created for {', '.join(without[:MOST_NAMED])}",
            _fix_for_refusal(evidence, item, refusal, ours=ours),
            (*((refusal,) if refusal else ()), *(f"{quota}: {limit}" for quota, limit in limits)),
            safe_fix=Reconcile() if ours and "serviceaccount" in refusal else None,
        )


def _fix_for_refusal(evidence: Evidence, item: WorkloadView, refusal: str, *, ours: bool) -> str:
    """Return what would allow a DaemonSet's pods to be created, based on the API server's message.

    Source:
        kubernetes plugin/pkg/admission/{resourcequota,runtimeclass,serviceaccount}, pod-security-admission,
        apiserver/pkg/admission/plugin/webhook.
    """
    place = f"--namespace {item.namespace}"
    if "insufficient quota to match these scopes" in refusal:
        priority = text(evidence.manifest(item), "spec", "template", "spec", "priorityClassName")
        return (
            f"pods of priority class {priority or 'system-node-critical'} need a ResourceQuota in namespace "
            f"{item.namespace} that allows that class"
        )
    if name := re.search(r"exceeded quota: ([^,\s]+)", refusal):
        return f"raise its limits: kubectl edit resourcequota {name[1]} {place}"
    if name := re.search(r'RuntimeClass "([^"]+)" not found', refusal):
        return restore_runtime_class(evidence, name[1])
    if "serviceaccount" in refusal and "not found" in refusal:
        return APPLY if ours else recreate(evidence, item)
    if "violates PodSecurity" in refusal:
        return f"kubectl label namespace {item.namespace} pod-security.kubernetes.io/enforce=privileged --overwrite"
    if name := re.search(r'failed calling webhook "([^"]+)"', refusal):
        return (
            f"webhook {name[1]} does not respond; find its service in its configuration: kubectl get "
            "validatingwebhookconfigurations,mutatingwebhookconfigurations --output yaml"
        )
    return f"its events show why: kubectl describe daemonset {item.name} {place}"


def _is_rolling(evidence: Evidence, daemonset: WorkloadView) -> bool:
    """Return whether pods of a DaemonSet are terminating, so that a node may briefly have none."""
    desired = ("DaemonSet", daemonset.namespace, daemonset.name)
    return any(
        pod.view.terminating and (pod.view.owner_kind, pod.view.namespace, pod.view.owner) == desired
        for pod in evidence.pods
    )


@CHECKS.add(
    "mps-daemon-missing",
    title="nodes that share by MPS but have no MPS control daemon",
    consequence="the plugin waits for the MPS daemon and advertises no GPU",
    link=f"{_ISSUES}/634",
    needs=("nodes", "daemonsets", "pods", "config-maps"),
)
def _mps_missing(evidence: Evidence) -> Iterator[Fault]:
    daemons = workloads_of(evidence, "mps")
    for node in gpu_nodes(evidence):
        if not node.ready or not shares_by_mps(evidence, node) or any(node.devices.values()):
            continue
        if any(pod.view.ready for item in daemons for pod in evidence.pods_on(node.name, item)):
            continue
        if is_part_gone(evidence, "mps", "gfd"):
            continue
        capable = node.labels.get("nvidia.com/mps.capable", "absent")
        has_gfd = any(lands_on(item, node) for item in evidence.seen.daemonsets if part_of(item) == "gfd")
        yield fault(
            f"node {node.name}",
            "it shares by MPS, but no MPS control daemon runs here",
            "set gfd.enabled=true in the plugin's release: GFD writes the label that the daemon's DaemonSet waits for"
            if not has_gfd
            else "NFD's worker and master must publish GFD's labels: kubectl get pods --all-namespaces -o wide "
            f"--field-selector spec.nodeName={node.name}",
            (f"label nvidia.com/mps.capable is {capable}", f"label {CONFIG_LABEL}={node.labels.get(CONFIG_LABEL, '')}"),
        )


@CHECKS.add(
    "gfd-without-nfd",
    title="GPU feature discovery without an NFD master",
    consequence="nodes get no labels for product, memory and MIG, and no MPS",
    link=f"{_ISSUES}/712",
    severity="warning",
    needs=("daemonsets", "deployments"),
)
def _gfd_alone(evidence: Evidence) -> Iterator[Fault]:
    masters = workloads_of(evidence, "nfd-master")
    for item in workloads_of(evidence, "gfd"):
        if item.desired and not any(master.ready for master in masters) and not is_part_gone(evidence, "nfd-master"):
            what = f"{masters[0]} is not ready" if masters else "there is no NFD master"
            yield fault(
                str(item),
                f"GPU feature discovery runs, but {what}, so its features do not become labels",
                "set nfd.enabled=true in its release"
                if not masters
                else f"kubectl scale deployment {masters[0].name} --namespace {masters[0].namespace} --replicas=1"
                if not masters[0].replicas
                else "if all nodes have GPU taints, nfd.master.tolerations must cover them: kubectl describe "
                f"deployment {masters[0].name} --namespace {masters[0].namespace}",
            )


@CHECKS.add(
    "plugin-version",
    title="plugin versions with known bugs",
    consequence="pods may fail to start",
    link=f"{_ISSUES}/856",
    severity="warning",
    needs=("daemonsets",),
)
def _bad_version(evidence: Evidence) -> Iterator[Fault]:
    for item in plugins(evidence):
        for image in item.images:
            match = re.search(r"k8s-device-plugin[^:]*:v?(\d+)\.(\d+)\.(\d+)", image)
            trouble = _BAD_VERSIONS.get(tuple(map(int, match.groups()))) if match else None  # type: ignore[arg-type]  # three groups
            if trouble:
                yield fault(
                    str(item),
                    f"image {image} has a known bug: {trouble}",
                    "upgrade the release to 0.17.4 or newer",
                )
                break


@CHECKS.add(
    "plugin-not-restarted",
    title="a device plugin that the MIG manager does not restart",
    consequence="after a MIG change the node advertises the old devices",
    link="https://github.com/NVIDIA/gpu-operator/issues/1704",
    severity="warning",
    needs=("nodes", "daemonsets"),
)
def _outdated_pods(evidence: Evidence) -> Iterator[Fault]:
    """Find plugins that the MIG manager does not restart: it only knows the operator's own clients."""
    managers = [item for item in workloads_of(evidence, "mig-manager") if item.desired]
    for item in plugins(evidence) if managers else ():
        labels = {**item.labels, **item.pod_labels}
        requests = item.placement.node_selector
        pauses = {"nvidia.com/gpu.deploy.device-plugin", CLIENT_LABEL} & set(requests)
        shared = any(lands_on(item, node) and lands_on(managers[0], node) for node in gpu_nodes(evidence))
        if labels.get("app.kubernetes.io/managed-by") != "gpu-operator" and not pauses and shared:
            yield fault(
                str(item),
                f"{managers[0]} changes the MIG layout of its nodes but does not restart this plugin",
                'add nodeSelector nvidia.com/gpu.deploy.device-plugin: "true" to its release, or restart it after each '
                f"change: kubectl rollout restart daemonset/{item.name} --namespace {item.namespace}",
            )
