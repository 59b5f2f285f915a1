"""Reads pod owners for a drain: what an eviction costs a gang, Kueue queues, and selectors that name a pool.

In scope: extracting that from objects; pure. Out of scope: which objects are read (reading).

Sources: kubernetes batch/v1 (backoffLimit, podFailurePolicy); kubernetes-sigs/jobset api/jobset/v1alpha2
(failurePolicy); ray-project/kuberay ray-operator (fault tolerance of the GCS); kubernetes-sigs/kueue apis/kueue
(LocalQueue.spec.stopPolicy, ResourceFlavor.spec.nodeLabels).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.drain_forecast import DrainedGang, FedQueue, PoolPin
from gpukube.core.jsontree import at, number, strings, text, texts, tree, trees
from gpukube.workload.fit.pods import PREFERRED, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from gpukube.cluster.drain.pods import Gang, NodePod
    from gpukube.core.jsontree import Tree

QUEUE: Final = "kueue.x-k8s.io/queue-name"
_DISRUPTED: Final = "DisruptionTarget"
_BACKOFF: Final = 6
"""Default of a Job that sets none (batch/v1 JobSpec.backoffLimit)."""


def describe_gang(gang: Gang, members: Sequence[NodePod], obj: Tree | None) -> DrainedGang:
    """Describe what the eviction costs a gang.

    Args:
        gang: What the pods belong to.
        members: Its pods on the nodes.
        obj: The Job, JobSet, or RayCluster; None if not found.
    """
    note = {"Job": _job_note, "JobSet": _jobset_note, "RayCluster": _ray_note}[gang.kind](obj, members) if obj else ""
    return DrainedGang(str(gang), len(members), note)


def _job_note(job: Tree, _members: Sequence[NodePod]) -> str:
    rules = trees(job, "spec", "podFailurePolicy", "rules")
    if any(text(rule, "action") == "Ignore" and _names_disruption(rule) for rule in rules):
        return "its podFailurePolicy does not count evictions"
    limit = number(job, "spec", "backoffLimit") if at(job, "spec", "backoffLimit") is not None else _BACKOFF
    return f"evictions count as failures: {number(job, 'status', 'failed')} of backoffLimit {limit} so far"


def _jobset_note(jobset: Tree, _members: Sequence[NodePod]) -> str:
    rules = trees(jobset, "spec", "failurePolicy", "rules")
    if any(text(rule, "action").endswith("IgnoreMaxRestarts") and _names_disruption(rule) for rule in rules):
        return "all of it restarts; its failurePolicy does not count evictions"
    most = number(jobset, "spec", "failurePolicy", "maxRestarts")
    return f"all of it restarts: {number(jobset, 'status', 'restarts')} of maxRestarts {most} so far"


def _ray_note(cluster: Tree, members: Sequence[NodePod]) -> str:
    if not any(pod.head for pod in members):
        return "its head stays"
    kept = at(cluster, "spec", "gcsFaultToleranceOptions") is not None
    if kept or text(cluster, "metadata", "annotations", "ray.io/ft-enabled") == "true":
        return "its head leaves last, and its state is kept (GCS fault tolerance)"
    return "its head leaves last, and its jobs end with it (no GCS fault tolerance)"


def _names_disruption(rule: Tree) -> bool:
    return any(text(item, "type") == _DISRUPTED for item in trees(rule, "onPodConditions"))


def fed_queues(pods: Sequence[NodePod], owners: Sequence[Tree]) -> tuple[FedQueue, ...]:
    """Return the queues that workloads on the nodes came from.

    Args:
        pods: Pods on the nodes.
        owners: Jobs, JobSets, and RayClusters that own them.
    """
    found = {(pod.namespace, pod.queue) for pod in pods}
    found |= {(text(obj, "metadata", "namespace"), text(obj, "metadata", "labels", QUEUE)) for obj in owners}
    return tuple(_queue(namespace, name) for namespace, name in sorted(found) if name)


def _queue(namespace: str, name: str) -> FedQueue:
    def command(policy: str) -> str:
        patch = f'{{"spec":{{"stopPolicy":"{policy}"}}}}'
        return f"kubectl -n {namespace} patch localqueue {name} --type merge -p '{patch}'"

    return FedQueue(f"{namespace}/{name}", command("Hold"), command("None"))


def pool_labels(nodes: Sequence[Tree], pool: str, marks: AbstractSet[str]) -> dict[str, frozenset[str]]:
    """Return the labels that disappear with a pool: those with its cloud name on each node, and the nodes' own names.

    Args:
        nodes: Nodes of the pool.
        pool: Its name in the cloud.
        marks: gpukube's labels, which the new pool has too.

    Returns:
        Key -> values that disappear.
    """
    keys = {key for node in nodes for key, value in texts(node, "metadata", "labels").items() if value == pool}
    hosts = {text(node, "metadata", "labels", "kubernetes.io/hostname") for node in nodes} - {""}
    return {key: frozenset({pool}) for key in keys - marks} | (
        {"kubernetes.io/hostname": frozenset(hosts)} if hosts else {}
    )


def find_pins(obj: Tree, kind: str, gone: Mapping[str, AbstractSet[str]]) -> Iterator[PoolPin]:
    """Return the selectors of an object that match labels that disappear: in all its pods and pod templates, once each.

    Args:
        obj: An object of any type.
        kind: Its kind.
        gone: Key -> values, as returned by pool_labels.
    """
    name = "/".join(filter(None, (text(obj, "metadata", "namespace"), text(obj, "metadata", "name"))))
    found = dict.fromkeys(pin for spec in _pod_specs(obj) for pin in _pins(spec, gone))
    if kind == "ResourceFlavor":
        labels = texts(obj, "spec", "nodeLabels")
        found |= dict.fromkeys(("nodeLabels", f"{k}={v}") for k, v in labels.items() if v in gone.get(k, ()))
    return (PoolPin(f"{kind} {name}", field, label) for field, label in found)


def _pod_specs(value: object) -> Iterator[Tree]:
    """Yield the pod specs in an object of any kind: a mapping with containers is one."""
    for item in trees([value]) if isinstance(value, dict) else trees(value):
        if trees(item, "containers"):
            yield item
            continue
        for below in item.values():
            if isinstance(below, dict | list):
                yield from _pod_specs(below)


def _pins(spec: Tree, gone: Mapping[str, AbstractSet[str]]) -> Iterator[tuple[str, str]]:
    for key, value in texts(spec, "nodeSelector").items():
        if value in gone.get(key, ()):
            yield "nodeSelector", f"{key}={value}"
    affinity = tree(spec, "affinity", "nodeAffinity")
    required = trees(affinity, REQUIRED, "nodeSelectorTerms")
    preferred = [tree(item, "preference") for item in trees(affinity, PREFERRED)]
    for field, terms in (("required node affinity", required), ("preferred node affinity", preferred)):
        for expression in (item for term in terms for item in trees(term, "matchExpressions")):
            key = text(expression, "key")
            for value in strings(expression, "values") if text(expression, "operator") == "In" else ():
                if value in gone.get(key, ()):
                    yield field, f"{key}={value}"
