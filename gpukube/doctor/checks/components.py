"""Checks of the stack's own parts: deleted, edited by hand, stopped, or with pods that do not start.

In scope: pure checks of DaemonSets and Deployments against their release, of the operator, and of pending pods. Out of
scope: failing containers (plugins), nodes without a plugin (placement).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.releases import DEPLOYED
from gpukube.cluster.kube.views import workload_view
from gpukube.cluster.names import CLUSTER_POLICY, NAMESPACE
from gpukube.cluster.state.release_drift import identity, manifest_objects
from gpukube.cluster.state.scheduling import daemon_misfits, lands_on
from gpukube.core.faults import Reconcile, fault
from gpukube.core.jsontree import at, text
from gpukube.doctor.check import APPLY, Checks
from gpukube.doctor.gpu_stack import (
    gpu_nodes,
    is_failing,
    part_of,
    pods_of_deployment,
    release_of,
    running_init,
    runtime_class_of,
    workloads_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.core.jsontree import Tree
    from gpukube.doctor.evidence import Evidence, PodFacts

_SLOW_S: Final = 300.0
"""Seconds after which a pod of the stack is slow: it starts in seconds, or in minutes with a large image."""
_MANY_RESTARTS: Final = 10
_PLACING: Final = ("nodeSelector", "affinity", "tolerations")

WITHOUT: Final = {
    "gfd": "this node gets no labels for product, memory and MIG, and no MPS",
    "mps": "the plugin waits for the MPS daemon and advertises no GPU",
    "mig-manager": "the MIG layout of this node is not applied",
    "operator": "new nodes get no plugin, and changes of its ClusterPolicy have no effect",
    "nfd-worker": "nothing labels this node as a GPU node, so DaemonSets that select that label do not run on it",
    "nfd-master": "node features do not become labels, so new GPU nodes are not recognized",
    "validator": "the operator's other parts wait on this node until driver, runtime and plugin pass its tests",
    "dcgm": "the GPUs of this node have no metrics but remain usable",
}
"""Part -> effect of its absence, if that is not just a node without a plugin."""
_ZERO: Final = "the plugin does not run on the node, so the node advertises no GPU"

CHECKS: Final = Checks(needs=("nodes", "daemonsets", "deployments", "pods"))


@lru_cache(maxsize=16)
def _workloads_in(manifest: str) -> tuple[Tree, ...]:
    objects = manifest_objects(manifest)
    return tuple(item for item in objects if text(item, "kind") in ("DaemonSet", "Deployment"))


def _declared(release: Release) -> Iterator[tuple[Tree, WorkloadView]]:
    """Return the stack parts that a release declares."""
    for obj in _workloads_in(release.manifest) if release.status == DEPLOYED else ():
        kind, _, name = identity(obj)
        metadata = {"labels": at(obj, "metadata", "labels"), "name": name}
        placed = {**obj, "metadata": {**metadata, "namespace": text(obj, "metadata", "namespace") or release.namespace}}
        view = workload_view(placed, kind)
        if part_of(view):
            yield placed, view


def _is_ours(evidence: Evidence, release: Release) -> bool:
    return release.namespace == NAMESPACE and bool(evidence.desired)


def _missing_parts(evidence: Evidence) -> Iterator[tuple[Release, WorkloadView]]:
    everything = (*evidence.seen.daemonsets, *evidence.seen.deployments)
    live = {(item.kind, item.namespace, item.name) for item in everything}
    unserved = {part for part in ("plugin", "dra") if not workloads_of(evidence, part)}  # no-plugin reports that
    for release in evidence.releases:
        for _obj, desired in _declared(release):
            is_live = (desired.kind, desired.namespace, desired.name) in live
            if not is_live and part_of(desired) not in unserved:
                yield release, desired


def is_part_gone(evidence: Evidence, *parts: str) -> bool:
    """Return whether a release has lost one of these parts, which explains failures that depend on it."""
    return any(part_of(desired) in parts for _release, desired in _missing_parts(evidence))


@CHECKS.add(
    "stack-part-gone",
    title="DaemonSets and Deployments of the stack that a release installed and that no longer exist",
    consequence="what depends on it fails, at the latest on the next new node",
    link="https://helm.sh/docs/helm/helm_rollback/",
    needs=("daemonsets", "deployments", "releases"),
)
def _part_gone(evidence: Evidence) -> Iterator[Fault]:
    for release, desired in _missing_parts(evidence):
        ours = _is_ours(evidence, release)
        yield fault(
            str(desired),
            f"release {release.namespace}/{release.name} installed it, and it no longer exists",
            APPLY
            if ours
            else f"to recreate it: helm rollback {release.name} {release.revision} --namespace {release.namespace}",
            safe_fix=Reconcile() if ours else None,
        )


@CHECKS.add(
    "stack-role-gone",
    title="roles and bindings of gpukube's release that no longer exist",
    consequence="the pods that had these rights keep running, but the Kubernetes API denies their requests",
    link="https://kubernetes.io/docs/reference/access-authn-authz/rbac/",
    needs=("releases", "roles"),
)
def _role_gone(evidence: Evidence) -> Iterator[Fault]:
    for release, gone in evidence.roles_gone:
        yield fault(
            gone,
            f"release {NAMESPACE}/{release} installed it, and it no longer exists",
            APPLY,
            safe_fix=Reconcile() if evidence.desired else None,
        )


def _placing(item: WorkloadView) -> dict[str, object]:
    place = item.placement
    return {
        "nodeSelector": dict(place.node_selector),
        "affinity": dict(place.affinity),
        "tolerations": sorted(place.tolerations),
    }


def edits_of(evidence: Evidence, item: WorkloadView) -> dict[str, object]:
    """Return the fields that select nodes and differ from the release, with the release's value or None."""
    for release in evidence.releases:
        for obj, desired in _declared(release):
            if (desired.kind, desired.namespace, desired.name) != (item.kind, item.namespace, item.name):
                continue
            live, declared = _placing(item), _placing(desired)
            pod = ("spec", "template", "spec")
            return {key: at(obj, *pod, key) or None for key in _PLACING if live[key] != declared[key]}
    return {}


def patch_back(item: WorkloadView, edits: dict[str, object]) -> str:
    """Return the command that resets fields of a pod template to the release's values."""
    operations = [
        {"op": "remove", "path": f"/spec/template/spec/{key}"}
        if value is None
        else {"op": "add", "path": f"/spec/template/spec/{key}", "value": value}
        for key, value in edits.items()
    ]
    name = f"{item.kind.lower()} {item.name} --namespace {item.namespace}"
    return f"kubectl patch {name} --type json --patch '{json.dumps(operations)}'"


@CHECKS.add(
    "stack-part-edited",
    title="parts of the stack whose node selection was changed by hand",
    consequence="these nodes lose their labels and what depends on them, at the latest when they are replaced",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
    needs=("nodes", "daemonsets", "deployments", "releases"),
)
def _part_edited(evidence: Evidence) -> Iterator[Fault]:
    """Find parts that no longer select GPU nodes; for the plugin itself, the placement checks report the cause."""
    for item in (*evidence.seen.daemonsets, *evidence.seen.deployments):
        if not part_of(item) or part_of(item) == "plugin" or not (edits := edits_of(evidence, item)):
            continue
        missed = [node.name for node in gpu_nodes(evidence) if node.ready and not lands_on(item, node)]
        if not missed:
            continue
        yield fault(
            str(item),
            f"somebody changed its {' and '.join(edits)}, so it does not run on {', '.join(missed[:3])}",
            patch_back(item, edits),
            tuple(
                reason.message
                for node in gpu_nodes(evidence)
                if node.name in missed[:1]
                for reason in daemon_misfits(item.placement, node.labels, node.taints, name=node.name)
            ),
        )


def recreate(evidence: Evidence, item: WorkloadView) -> str:
    """Return the command that restores what another tool's release has lost."""
    namespace, name = release_of(item)
    release = next((one for one in evidence.releases if (one.namespace, one.name) == (namespace, name)), None)
    if release is None:
        return f"recreate what it names: kubectl get daemonset {item.name} --namespace {item.namespace} --output yaml"
    return f"helm rollback {release.name} {release.revision} --namespace {release.namespace}"


def restore_runtime_class(evidence: Evidence, name: str) -> str:
    """Return the command that restores a RuntimeClass; the GPU Operator creates its own when it starts."""
    operators = workloads_of(evidence, "operator")
    if not operators:
        return f"create RuntimeClass {name}, with the handler of the nodes' container runtime"
    return f"kubectl rollout restart deployment/{operators[0].name} --namespace {operators[0].namespace}"


@CHECKS.add(
    "runtime-class-gone",
    title="RuntimeClasses that DaemonSets of the stack name and that do not exist",
    consequence="running pods continue, but the API server rejects every new one: after a restart, on a new node",
    link="https://kubernetes.io/docs/concepts/containers/runtime-class/",
    needs=("daemonsets", "deployments", "runtime-classes"),
)
def _runtime_class_gone(evidence: Evidence) -> Iterator[Fault]:
    """Find missing classes before any pod is rejected; later the check of rejected pods has the message."""
    named: dict[str, list[str]] = {}
    for item in evidence.seen.daemonsets:
        name = runtime_class_of(evidence.manifest(item)) if part_of(item) else ""
        if name and evidence.runtime_classes is not None and name not in evidence.runtime_classes:
            named.setdefault(name, []).append(str(item))
    refused = " ".join(evidence.refusals.values())
    for name, users in named.items():
        if f'RuntimeClass "{name}" not found' not in refused:
            yield fault(
                f"RuntimeClass {name}",
                f"{users[0]} names it, and it does not exist",
                restore_runtime_class(evidence, name),
                tuple(f"{user} names it" for user in users[1:]),
            )


def is_operator_down(evidence: Evidence) -> bool:
    """Return whether an installed operator is inactive: none of its pods is ready, or it has no ClusterPolicy."""
    operators = workloads_of(evidence, "operator")
    orphaned = CLUSTER_POLICY not in evidence.seen.cluster_policies and not evidence.troubles.get("policies")
    return bool(operators) and (orphaned or not any(item.ready for item in operators))


@CHECKS.add(
    "operator-down",
    title="a GPU Operator that is not running, or has no ClusterPolicy",
    consequence=WITHOUT["operator"],
    link="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/troubleshooting.html",
    needs=("daemonsets", "deployments", "pods", "releases", "policies"),
)
def _operator_down(evidence: Evidence) -> Iterator[Fault]:
    operators = workloads_of(evidence, "operator")
    installed = [item for item in evidence.releases if item.chart == "gpu-operator" and item.status == DEPLOYED]
    if not operators and evidence.seen.cluster_policies and not is_part_gone(evidence, "operator"):
        yield fault(
            f"ClusterPolicy {evidence.seen.cluster_policies[0]}",
            "it configures a GPU Operator, but there is no GPU Operator Deployment",
            APPLY
            if any(_is_ours(evidence, item) for item in installed)
            else "upgrade its release, or install the chart gpu-operator if there is none: helm list --all-namespaces",
        )
    for item in operators:
        place = f"--namespace {item.namespace}"
        if not item.replicas:
            yield fault(str(item), "it is scaled to 0", f"kubectl scale deployment {item.name} {place} --replicas=1")
        elif not item.ready and not any(_is_reported(evidence, pod) for pod in pods_of_deployment(evidence, item)):
            yield fault(
                str(item),
                "none of its pods is ready",
                f"its events show why: kubectl describe deployment {item.name} {place} && kubectl describe pods "
                f"{place} --selector app=gpu-operator",
            )
        elif CLUSTER_POLICY not in evidence.seen.cluster_policies and not evidence.troubles.get("policies"):
            ours = any(_is_ours(evidence, release) for release in installed)
            yield fault(
                str(item),
                f"ClusterPolicy {CLUSTER_POLICY} does not exist; the operator does nothing without it",
                APPLY
                if ours
                else f"upgrade its release, which recreates it: helm list {place}"
                if not installed
                else f"to recreate it: helm rollback {installed[0].name} {installed[0].revision} --namespace "
                f"{installed[0].namespace}",
                safe_fix=Reconcile() if ours else None,
            )


def _is_reported(evidence: Evidence, pod: PodFacts) -> bool:
    """Return whether another check reports a pod: its containers fail, it is unschedulable, or it has just started."""
    age = evidence.age_s(pod.created)
    return (
        any(is_failing(state) for state in pod.view.containers)
        or bool(pod.view.unschedulable)
        or (age is not None and age < _SLOW_S)
    )


def _stack_pods(evidence: Evidence) -> Iterator[tuple[WorkloadView, PodFacts]]:
    """Yield the pods of the stack's parts; for DaemonSets that run on all nodes, only those on GPU nodes."""
    with_gpus = {node.name for node in gpu_nodes(evidence) if node.ready}
    for item in evidence.seen.daemonsets:
        if part_of(item):
            yield from ((item, pod) for pod in evidence.pods_of(item) if pod.view.node in with_gpus)
    for item in evidence.seen.deployments:
        if part_of(item):
            yield from ((item, pod) for pod in pods_of_deployment(evidence, item))


@CHECKS.add(
    "stack-pod-unplaced",
    title="pods of the stack that cannot be scheduled",
    consequence=_ZERO,
    link="https://kubernetes.io/docs/tasks/debug/debug-application/debug-pods/#my-pod-stays-pending",
)
def _unplaced(evidence: Evidence) -> Iterator[Fault]:
    for item, pod in _stack_pods(evidence):
        reason = pod.view.unschedulable
        if pod.view.scheduled or not reason:
            continue
        where = f" for node {pod.view.node}" if pod.view.node else ""
        yield fault(
            f"pod {pod}",
            f"it cannot be scheduled{where}: {reason}",
            _scheduling_fix(item, pod),
            (f"it belongs to {item}",),
            why=WITHOUT.get(part_of(item) or "", ""),
        )


def _scheduling_fix(item: WorkloadView, pod: PodFacts) -> str:
    reason, node = pod.view.unschedulable, pod.view.node
    if "Insufficient" in reason or "Too many pods" in reason:
        named = f"kubectl describe node {node}" if node else "kubectl describe nodes"
        return f"free resources for it, or give it a priority class that may preempt other pods: {named}"
    if "taint" in reason:
        return f"add tolerations for these taints to the release of {item}"
    return f"kubectl describe pod {pod.view.name} --namespace {pod.view.namespace}"


@CHECKS.add(
    "stack-pod-not-starting",
    title="pods of the stack that stay in ContainerCreating",
    consequence=_ZERO,
    link="https://kubernetes.io/docs/concepts/containers/runtime-class/#usage",
)
def _not_starting(evidence: Evidence) -> Iterator[Fault]:
    for item, pod in _stack_pods(evidence):
        age = evidence.age_s(pod.created)
        view = pod.view
        if not view.scheduled or view.phase != "Pending" or age is None or age < _SLOW_S:
            continue
        if any(is_failing(state) for state in view.containers):
            continue
        if part_of(item) == "dra" and running_init(pod):  # dra-driver-waiting reports that
            continue
        runtime = text(evidence.manifest(item), "spec", "template", "spec", "runtimeClassName")
        states = sorted({state.waiting for state in view.containers if state.waiting}) or ["nothing"]
        yield fault(
            f"pod {pod}",
            f"it has not started on node {view.node} after {int(age // 60)} min; its containers: {', '.join(states)}",
            (_RUNTIME.format(runtime=runtime) if runtime else _NOT_THERE)
            + f": kubectl describe pod {view.name} --namespace {view.namespace}",
            (f"it belongs to {item}",),
            why=WITHOUT.get(part_of(item) or "", ""),
        )


_RUNTIME: Final = (
    'the events show what is missing; "no runtime for {runtime} is configured" means that the container runtime '
    "has no handler for RuntimeClass {runtime}: use a node image with NVIDIA's container toolkit, or remove "
    "runtimeClassName from its release"
)
_NOT_THERE: Final = "the events show what is missing (a ConfigMap, a host path, an address of the pod network)"


@CHECKS.add(
    "stack-pod-restarting",
    title="pods of the stack that run now but were restarted many times",
    consequence="during each restart the node advertises no GPU, and pods that start then are rejected",
    link="https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/",
    severity="warning",
)
def _restarting(evidence: Evidence) -> Iterator[Fault]:
    """Find running containers that restarted often; other checks report those that wait for a restart."""
    for item, pod in _stack_pods(evidence):
        worst = max(pod.view.containers, key=lambda state: state.restarts, default=None)
        if worst is None or worst.restarts < _MANY_RESTARTS or any(is_failing(state) for state in pod.view.containers):
            continue
        yield fault(
            f"pod {pod}",
            f"container {worst.name} on node {pod.view.node} was restarted {worst.restarts} times",
            f"kubectl logs {pod.view.name} --namespace {pod.view.namespace} -c {worst.name} --previous",
            (f"it belongs to {item}",),
        )
