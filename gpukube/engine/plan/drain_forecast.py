"""Forecasts the drain of replaced pools: what blocks their pods, and which cannot run on the new pool.

In scope: reading what the rules need, only for these pools. Out of scope: the rules (cluster.drain).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.drain.cordon import pool_nodes, staying_nodes
from gpukube.cluster.drain.judge import delays, gangs
from gpukube.cluster.drain.owners import describe_gang, fed_queues, find_pins, pool_labels
from gpukube.cluster.drain.reading import Controllers, find_occupants
from gpukube.cluster.kube.api_types import JOBS, RESOURCE_CLAIMS, STATEFUL_SETS, ApiType
from gpukube.cluster.state.bridge import keeps_extended_names
from gpukube.cluster.state.published import driver_results
from gpukube.core.drain_forecast import DrainForecast, KeptPod, Turns
from gpukube.core.jsontree import number, text, tree, trees
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import POOL_LABEL
from gpukube.errors import AccessError, GpukubeError
from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.claims import GPU_CLASS
from gpukube.provider import load_provider
from gpukube.workload.fit.nodes import HOSTNAME, ZONE, Node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import obstacles
from gpukube.workload.offers import make_offers
from gpukube.workload.selectors import read_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.drain.pods import DisruptionBudget, Gang
    from gpukube.cluster.drain.reading import Occupants
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.drain_forecast import PoolPin
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.run.session import Session
    from gpukube.workload.fit.predicates import Obstacle

_KINDS: Final = (
    ApiType("apps", "v1", "Deployment", "deployments"),
    STATEFUL_SETS,
    ApiType("apps", "v1", "DaemonSet", "daemonsets"),
    JOBS,
    ApiType("batch", "v1", "CronJob", "cronjobs"),
    ApiType("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    ApiType("ray.io", "v1", "RayCluster", "rayclusters"),
    # Kueue 0.15 and newer have v1beta2, and deprecate v1beta1; older ones have only v1beta1.
    ApiType("kueue.x-k8s.io", "v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False),
    ApiType("kueue.x-k8s.io", "v1beta1", "ResourceFlavor", "resourceflavors", namespaced=False),
)
"""Types whose objects may name a pool, newer versions first; types that the cluster lacks have no objects."""
_UNCLAIMABLE: Final = "its claim finds no device there: a device plugin serves the new nodes"
_OTHER_TEMPLATE: Final = "change the pod's template, or the declared pool"
_DISCOVERED: Final = "nvidia.com/"
"""Domain of the labels that feature discovery adds to running nodes: unknown for a new machine."""


def with_drain_forecasts(plans: Sequence[PoolPlan], session: Session, kube: Kube, now: float) -> tuple[PoolPlan, ...]:
    """Add the drain forecast to the plans of pools that are replaced.

    Args:
        plans: Plans of one cluster.
        session: Its session.
        kube: Its Kubernetes API; not called if no pool is replaced.
        now: Seconds since the epoch.

    Raises:
        AccessError: Nodes, pods, or budgets may not be listed.
        ClusterError: The API did not answer.
    """
    return tuple(
        replace(plan, leaving=forecast_drain(plan, session, kube, now)) if plan.action == "replace" else plan
        for plan in plans
    )


def forecast_drain(plan: PoolPlan, session: Session, kube: Kube, now: float) -> DrainForecast | None:
    """Forecast the drain of a plan's live pool.

    Args:
        plan: The pods of `observed` move to `desired`, or to its replacement.
        session: Its cluster.
        kube: Its Kubernetes API.
        now: Seconds since the epoch.

    Returns:
        The forecast; None if there is no live pool.

    Raises:
        AccessError: Nodes, pods, or budgets may not be listed.
        ClusterError: The API did not answer.
    """
    old, new = plan.observed, (plan.replacement and plan.replacement.successor) or plan.desired
    if old is None:
        return None
    nodes = pool_nodes(kube, old, session.provider.extras.in_cluster.pool_label)
    names = [text(node, "metadata", "name") for node in nodes]
    pods = {text(pod, "metadata", "uid"): pod for pod in kube.all_pods_on(names)} if names else {}
    occupants, unread_templates = _read_occupants(kube, nodes, pods, now)
    left = occupants.left
    if not left:
        return DrainForecast(0)
    objects, unread = read_owners(kube)
    owners = _owners_by_gang(objects)
    own_gangs = {_gang_key(v.pod.gang) for v in left if v.pod.gang}
    bridged = new is not None and _starts_publishing(old, new) and keeps_extended_names(kube)
    claiming, unread_claims = _claiming(kube) if new and _stops_publishing(old, new) else (frozenset(), ())
    return DrainForecast(
        pods=len(left),
        blocked=tuple(_kept_pod(v) for v in left if v.way == "never"),
        waiting=tuple(_kept_pod(v) for v in left if v.way == "waits"),
        needing=tuple(_kept_pod(v, "; ".join(v.needs), "add --allow-disruption") for v in left if v.needs),
        turns=tuple(
            Turns(delay.budget, delay.pods, delay.allowed, delay.seconds)
            for delay in delays(left, occupants.budgets, _min_ready(occupants.budgets, left, objects))
        ),
        gangs=tuple(describe_gang(gang, members, owners.get(_gang_key(gang))) for gang, members in gangs(left).items()),
        queues=fed_queues([v.pod for v in left], [obj for key, obj in owners.items() if key in own_gangs]),
        homeless=(
            *(_kept_pod(v, _UNCLAIMABLE, _OTHER_TEMPLATE) for v in left if v.pod.uid in claiming),
            *(
                _unschedulable([v for v in left if v.pod.uid not in claiming], pods, nodes, new, bridged=bridged)
                if new
                else ()
            ),
        ),
        pins=_pins(objects, [pods[v.pod.uid] for v in left if not v.pod.owner.kind], nodes, old.name),
        unread=(*unread_templates, *unread, *unread_claims),
    )


def _starts_publishing(old: Observed, new: Desired) -> bool:
    return old.labels.get(ADVERTISER_LABEL) != "dra" == new.ownership.advertiser


def _stops_publishing(old: Observed, new: Desired) -> bool:
    return old.labels.get(ADVERTISER_LABEL) == "dra" != new.ownership.advertiser


def _claiming(kube: Kube) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the uids of the pods with GPUs from NVIDIA's DRA driver, and what may not be listed."""
    try:
        claims = kube.objects(RESOURCE_CLAIMS) or ()
    except AccessError as error:
        return frozenset(), (f"resourceclaims: {error}",)
    return frozenset(
        text(pod, "uid") for claim in claims if driver_results(claim) for pod in trees(claim, "status", "reservedFor")
    ), ()


def _read_occupants(
    kube: Kube, nodes: Sequence[Tree], pods: Mapping[str, Tree], now: float
) -> tuple[Occupants, tuple[str, ...]]:
    """Judge the pods, also by their templates; if these may not be listed, judge without and report them as unread."""
    read = partial(find_occupants, kube, pods.values(), now, staying=staying_nodes(nodes))
    try:
        return read(controllers=Controllers()), ()
    except AccessError as error:
        return read(), (f"templates that name a node: {error}",)


def _owners_by_gang(objects: Mapping[str, Sequence[Tree]]) -> dict[tuple[str, str, str], Tree]:
    return {
        (kind, text(obj, "metadata", "namespace"), text(obj, "metadata", "name")): obj
        for kind in ("Job", "JobSet", "RayCluster")
        for obj in objects.get(kind, ())
    }


def _gang_key(gang: Gang) -> tuple[str, str, str]:
    return gang.kind, gang.namespace, gang.name


def _pins(
    objects: Mapping[str, Sequence[Tree]], bare_pods: Sequence[Tree], nodes: Sequence[Tree], pool: str
) -> tuple[PoolPin, ...]:
    """Find the selectors that match nothing once the pool's nodes are gone."""
    labels = pool_labels(nodes, pool, {POOL_LABEL})
    by_kind = [*objects.items(), ("Pod", bare_pods)]
    return tuple(dict.fromkeys(pin for kind, found in by_kind for obj in found for pin in find_pins(obj, kind, labels)))


def _kept_pod(verdict: Verdict, why: str = "", fix: str = "") -> KeptPod:
    pod = verdict.pod
    return KeptPod(str(pod), pod.node, why or verdict.why, fix or verdict.fix, verdict.budgets)


def read_owners(kube: Kube) -> tuple[dict[str, tuple[Tree, ...]], tuple[str, ...]]:
    """List the objects that pods may belong to, and the types that may not be listed."""
    found: dict[str, tuple[Tree, ...]] = {}
    unread = []
    for kind in _KINDS:
        if kind.kind in found:
            continue
        try:
            listed = kube.objects(kind)
        except GpukubeError as error:
            unread.append(f"{kind.plural}: {error}")
            listed = ()
        if listed is not None:
            found[kind.kind] = listed
    return found, tuple(unread)


def _min_ready(
    budgets: Sequence[DisruptionBudget], left: Sequence[Verdict], objects: Mapping[str, Sequence[Tree]]
) -> dict[str, float]:
    """Return per budget the largest minReadySeconds of the controllers of its pods."""
    found: dict[str, float] = {}
    for obj in (*objects.get("Deployment", ()), *objects.get("StatefulSet", ())):
        seconds, selector = number(obj, "spec", "minReadySeconds"), read_selector(tree(obj, "spec").get("selector"))
        space = text(obj, "metadata", "namespace")
        if not seconds or selector is None:
            continue
        for budget in budgets:
            pods = [v.pod for v in left if str(budget) in v.budgets and v.pod.namespace == space]
            if any(selector.matches(pod.labels) for pod in pods):
                found[str(budget)] = max(found.get(str(budget), 0.0), float(seconds))
    return found


def _unschedulable(
    left: Sequence[Verdict], whole: Mapping[str, Tree], nodes: Sequence[Tree], new: Desired, *, bridged: bool
) -> Iterator[KeptPod]:
    """Find the pods that could not run on an empty node of the new pool.

    Args:
        left: The pods that leave.
        whole: All pods of the nodes, by uid.
        nodes: The nodes that they leave.
        new: The new pool.
        bridged: Whether requests for nvidia.com/gpu get devices of its DRA driver.
    """
    claimable = new.promise.per_node.get(GPU_CLASS, 0) if bridged else 0
    (offer,) = make_offers([new], load_provider)
    zones = {text(node, "metadata", "name"): text(node, "metadata", "labels", ZONE) for node in nodes}
    for verdict in left:
        obj = whole[verdict.pod.uid]
        zone = zones.get(verdict.pod.node, "")
        if new.target.zones and zone not in new.target.zones:
            zone = new.target.zones[0]
        node = Node(
            name="new",
            cluster=new.target.cluster.key,
            shape=offer.real,
            labels={**offer.real.labels, HOSTNAME: "new", ZONE: zone},
            tolerates_resources=offer.tolerates_resources,
            offer=offer,
            new=True,
        )
        # The scheduler wrote the node; a template that names one is found by its controller.
        spec = {name: value for name, value in tree(obj, "spec").items() if name != "nodeName"}
        pod = read_pod(tree(obj, "metadata"), spec)
        unknown = [key for term in pod.terms or () for key in _keys(term) if key not in node.labels]
        wanted = pod.request.devices.get(GPU_RESOURCE, 0)
        reasons = [
            found.text
            for found in obstacles(pod, node)
            if found.lasting and found.subject != GPU_RESOURCE and not _is_unsure(found, unknown)
        ]
        has = offer.real.count(GPU_RESOURCE)  # None: only the cluster's configuration tells
        if has is not None and wanted > max(has, claimable):
            less = f"a node has {has}" if has else "the nodes have none"
            reasons.append(f"{GPU_RESOURCE}: {wanted} requested, and {less}")
        if reasons:
            yield _kept_pod(verdict, "; ".join(reasons), _OTHER_TEMPLATE)


def _keys(term: Tree) -> list[str]:
    expressions = term.get("matchExpressions")
    return [text(item, "key") for item in expressions] if isinstance(expressions, list) else []


def _is_unsure(found: Obstacle, unknown: Sequence[str]) -> bool:
    """Return whether a reason depends on labels that only running nodes get, or on claims that were not read."""
    if found.kind == "claim-unknown":
        return True
    if found.kind == "selector":
        return found.subject.startswith(_DISCOVERED)
    return found.kind == "affinity" and any(key.startswith(_DISCOVERED) for key in unknown)
