"""Reads live clusters for `gpukube workload fit --live`: pools, nodes, devices, and free resources beside running pods.

In scope: reading. Out of scope: placement (gpukube.workload.fit), declared clusters (`fitting`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import CLAIM_TEMPLATES, NODES, PODS, RESOURCE_CLAIMS, ApiType
from gpukube.core.jsontree import text, texts, tree, trees
from gpukube.engine.plan.regions import region_of
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.session import open_sessions
from gpukube.errors import GpukubeError
from gpukube.provider import load_provider
from gpukube.workload.claims import Claims, read_claims
from gpukube.workload.devices import published_by_node
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.fit.nodes import read_node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.offers import make_offers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.workload.fit.demand import Demand
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.offers import PoolOffer

_NAMESPACES: Final = ApiType("", "v1", "Namespace", "namespaces", namespaced=False)
_CLASSES: Final = ApiType("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
_SLICES: Final = ApiType("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
_REGION: Final = "topology.kubernetes.io/region"
_ENDED: Final = ("Succeeded", "Failed")
"""Phases in which a pod has released its resources (Kubernetes: docs/concepts/workloads/pods/pod-lifecycle)."""
_RAY_CLUSTER: Final = "ray.io/cluster"
"""Label of the pods of a Ray cluster (KubeRay ray-operator/controllers/ray/utils/constant.go)."""


def live_clusters(prepared: Prepared, run: Run, demands: Sequence[Demand]) -> tuple[ClusterView, ...]:
    """Read the clusters of a spec: their pools, nodes, and running pods.

    Args:
        prepared: The spec.
        run: The run.
        demands: The workloads to place; their own running pods are left out.

    Raises:
        GpukubeError: A cluster could not be read.
    """
    prepared = prepared.narrowed()
    workloads = list({id(demand.workload): demand.workload for demand in demands}.values())
    with open_sessions(prepared.clusters.values(), run) as sessions:
        tasks = {
            key: partial(_read_cluster, session, make_offers(prepared.desired[key], load_provider), workloads, run)
            for key, session in sessions.items()
        }
        found = run_all(tasks, run.parallelism)
    for result in found.values():
        if isinstance(result, GpukubeError):
            raise result
    return tuple(result for result in found.values() if isinstance(result, ClusterView))


def _read_cluster(
    session: Session, offers: Sequence[PoolOffer], workloads: Sequence[Manifest], run: Run
) -> ClusterView:
    run.report("check", "reading pools, nodes and pods", session.cluster.key)
    there = {(pool.owner, pool.pool) for pool in session.cloud.pools()}
    kube = session.kube()
    nodes, pods = kube.objects(NODES) or (), kube.objects(PODS) or ()
    spaces, slices = kube.objects(_NAMESPACES) or (), kube.objects(_SLICES) or ()
    location = next(filter(None, (text(node, "metadata", "labels", _REGION) for node in nodes)), "")
    tolerates = session.provider.extras.tolerates_resources
    published = published_by_node(
        {text(node, "metadata", "name"): texts(node, "metadata", "labels") for node in nodes}, slices
    )
    found = {
        text(node, "metadata", "name"): read_node(
            node,
            session.cluster.key,
            tolerates_resources=tolerates,
            offer=_pool_of(node, offers),
            published=published[text(node, "metadata", "name")],
        )
        for node in nodes
    }
    own = [pod for pod in pods if any(_belongs(pod, workload) for workload in workloads)]
    mine = {text(pod, "metadata", "uid") for pod in own}
    for pod in pods:
        node = found.get(text(pod, "spec", "nodeName"))
        ended = text(pod, "status", "phase") in _ENDED
        if node is not None and not ended and text(pod, "metadata", "uid") not in mine:
            node.take(read_pod(tree(pod, "metadata"), tree(pod, "spec")))
    return ClusterView(
        key=session.cluster.key,
        offers=tuple(offer for offer in offers if (offer.desired.target.owner, offer.desired.target.pool) in there),
        missing=tuple(
            offer for offer in offers if (offer.desired.target.owner, offer.desired.target.pool) not in there
        ),
        nodes=tuple(found.values()),
        region=region_of(session.cluster, location),
        claims=_claims(kube, mine) if slices else Claims(),
        namespaces={text(space, "metadata", "name"): texts(space, "metadata", "labels") for space in spaces},
    )


def _claims(kube: Kube, own: Collection[str]) -> Claims:
    """Read classes, claims, and templates; what only the workloads' own pods hold is free for them."""
    found: list[Tree] = []
    for kind in (_CLASSES, CLAIM_TEMPLATES, RESOURCE_CLAIMS):
        named = {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.kind}
        found += [{**_freed(obj, own), **named} for obj in kube.objects(kind) or ()]
    return read_claims(found)


def _freed(claim: Tree, own: Collection[str]) -> Tree:
    users = {text(user, "uid") for user in trees(claim, "status", "reservedFor")}
    return {**claim, "status": {}} if users and users <= {*own} else claim


def _pool_of(node: Tree, offers: Sequence[PoolOffer]) -> PoolOffer | None:
    labels = texts(node, "metadata", "labels")
    return next((offer for offer in offers if offer.selector.items() <= labels.items()), None)


def _belongs(pod: Tree, workload: Manifest) -> bool:
    """Return whether a live pod belongs to a workload, so that fitting it again does not count it twice.

    A Deployment's pods belong to a ReplicaSet of its name, those of a RayJob or RayService to a RayCluster of its name.
    """
    if text(pod, "metadata", "namespace") != (workload.namespace or "default") or not workload.name:
        return False
    if workload.kind == "Pod":
        return text(pod, "metadata", "name") == workload.name
    cluster = text(pod, "metadata", "labels", _RAY_CLUSTER)
    if workload.kind.startswith("Ray") and cluster:
        return cluster == workload.name or cluster.startswith(f"{workload.name}-")
    for owner in trees(pod, "metadata", "ownerReferences"):
        kind, name = text(owner, "kind"), text(owner, "name")
        if (kind, name) == (workload.kind, workload.name):
            return True
        made = {"Deployment": "ReplicaSet", "CronJob": "Job", "JobSet": "Job"}.get(workload.kind)
        if kind == made and name.startswith(f"{workload.name}-"):
            return True
    return False
