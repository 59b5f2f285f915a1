"""Reads one cluster for the doctor: a dozen calls, each of which may fail independently.

In scope: I/O only. Out of scope: conclusions (the checks). A user who may not read Secrets, or whose cloud login has
expired, still gets the rest.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpukube.cluster.kube.api_types import CLAIM_TEMPLATES, EVENTS, LEASES, RELEASE_TYPES, RESOURCE_CLAIMS, ApiType
from gpukube.cluster.kube.releases import DEPLOYED, newest, release_history
from gpukube.cluster.kube.slices import slice_view
from gpukube.cluster.kube.views import devices_of, placement_of, pod_view, workload_view
from gpukube.cluster.names import DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.state.release_drift import find_drift, manifest_objects
from gpukube.cluster.state.release_objects import live_objects
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.expander import NAME as ORDER_MAP
from gpukube.core.fields import CAPACITY_TYPE
from gpukube.core.jsontree import items, number, text, texts, tree
from gpukube.core.reservations import LiveReservation
from gpukube.core.scaling_order import GroupOrder
from gpukube.doctor.checks.orders import scaled_members
from gpukube.doctor.evidence import ClaimFacts, ClassFacts, Evidence, PodFacts, Quota
from gpukube.doctor.gpu_stack import config_maps_of, part_of, release_of, runtime_class_of
from gpukube.doctor.rights import check_rights, rights_for
from gpukube.engine.change.family_record import ATTEMPTS, Record, lease_name, read_record
from gpukube.engine.plan.orders import CONFIG_MAPS, class_type, map_namespace
from gpukube.engine.plan.quotas import growth_needs, quotas_for
from gpukube.engine.run.fanout import run_all
from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.jsontree import Tree
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.values import ClusterFacts, Desired, Observed
    from gpukube.doctor.evidence import Reading
    from gpukube.doctor.local_tools import Tools
    from gpukube.engine.run.session import Session

_AT_ONCE: Final = 6
_PODS: Final = ApiType("", "v1", "Pod", "pods")
_QUOTAS: Final = ApiType("", "v1", "ResourceQuota", "resourcequotas")
_DAEMONSETS: Final = RELEASE_TYPES["DaemonSet"]
_INSIDE: Final[tuple[Reading, ...]] = (
    "version",
    "nodes",
    "daemonsets",
    "deployments",
    "pods",
    "releases",
    "roles",
    "config-maps",
    "order",
    "quotas",
    "policies",
    "dra",
    "claims",
    "runtime-classes",
    "events",
    "rights",
)
_ROLES: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_NOT_CREATED: Final = ("FailedCreate",)
_NOT_STARTED: Final = ("FailedCreatePodSandBox", "FailedPrepareDynamicResources")
"""Reasons of events (kubernetes pkg/controller/daemon, pkg/kubelet/events)."""
_HELM: Final = "meta.helm.sh/release-"
"""Prefix of the annotations of objects that Helm installed."""
_RESOURCE: Final = "resource.k8s.io"
_DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")

_Results = dict[str, Any]  # results by reading; typed again in the evidence


def gather(session: Session, desired: Sequence[Desired], tools: Tools | None = None) -> Evidence:
    """Read the cloud's side and the Kubernetes API of one cluster; errors of readings are recorded, not raised.

    Args:
        session: The cluster; connects on first use.
        desired: Pools that the given specs declare on it.
        tools: Tools of this machine, checked earlier.
    """
    troubles: dict[Reading, GpukubeError] = {}
    outside = _read({"cloud": session.cloud.identify, "pools": session.cloud.pools}, troubles)
    inside = _inside(session, desired, outside.get("pools") or (), troubles)
    daemonsets: tuple[Tree, ...] = inside.get("daemonsets") or ()
    live, facts = outside.get("pools"), outside.get("cloud")
    classes, slices = inside.get("dra") or ((), ())
    claims, templates = inside.get("claims") or ((), ())
    return Evidence(
        cluster=session.cluster,
        provider=session.provider,
        facts=facts,
        live=live or (),
        desired=tuple(desired),
        version=inside.get("version") or "",
        seen=inside["seen"],
        daemonsets={(text(item, "metadata", "namespace"), text(item, "metadata", "name")): item for item in daemonsets},
        pods=tuple(pod_facts(pod) for pod in inside.get("pods") or ()),
        classes=tuple(map(class_facts, classes)),
        slices=slices,
        claims=tuple(map(claim_facts, claims)),
        templates=tuple(map(claim_facts, templates)),
        quotas=tuple(quota_of(quota) for quota in inside.get("quotas") or ()),
        limits=_limits(session, desired, live, facts, inside["seen"]) if live is not None and facts else (),
        refusals=inside.get("events") or {},
        releases=inside.get("releases") or (),
        roles_gone=inside.get("roles") or (),
        runtime_classes=inside.get("runtime-classes"),
        config_maps=inside.get("config-maps") or {},
        orders=inside.get("order") or (),
        denied=inside.get("rights") or (),
        tools=tools,
        troubles=troubles,
        reserved=_reserved(session, live or ()),
        records=_records(session, live or ()) if "nodes" not in troubles else {},
        now=_now(inside),
    )


def _limits(
    session: Session, desired: Sequence[Desired], live: Sequence[Observed], facts: ClusterFacts, seen: Snapshot
) -> tuple[QuotaUse, ...]:
    """Read the cloud quotas that the declared pools need."""
    if session.provider.extras.quotas is None:
        return ()
    key = session.cluster.key
    needs = growth_needs(session.provider.extras.quotas, desired, live, facts.location, seen)
    return quotas_for({key: needs}, {key: session.cloud}, _AT_ONCE)[key]


def _reserved(session: Session, live: Sequence[Observed]) -> dict[str, LiveReservation]:
    """Read the reservations that pools name; one that cannot be read is left out, as nothing depends on it alone."""
    named = [pool for pool in live if pool.fields.get(CAPACITY_TYPE) == "reserved"]
    found = run_all({pool.name: partial(session.cloud.reserved, pool) for pool in named}, _AT_ONCE)
    return {name: result for name, result in found.items() if isinstance(result, LiveReservation)}


def _records(session: Session, live: Sequence[Observed]) -> dict[tuple[str, str], Record]:
    """Read the Leases of families; they only add details."""
    kube, keys = session.kube(), {(pool.owner, pool.family) for pool in live if pool.family}
    found = run_all({key: partial(kube.find_object, LEASES, lease_name(*key), NAMESPACE) for key in keys}, _AT_ONCE)
    leases = {key: lease for key, lease in found.items() if lease and not isinstance(lease, GpukubeError)}
    return {key: read_record(text(lease, "metadata", "annotations", ATTEMPTS)) for key, lease in leases.items()}


def _now(inside: _Results) -> datetime:
    """Return the current time; if the cluster's clock is ahead, the time of its youngest object."""
    times = [text(pod, "metadata", "creationTimestamp") for pod in inside.get("pods") or ()]
    times += [item for node in inside.get("nodes") or () for item in (node.created, node.layout_changed)]
    return max([datetime.now(UTC), *(datetime.fromisoformat(moment) for moment in times if moment)])


def _read(tasks: Mapping[Reading, Callable[[], object]], troubles: dict[Reading, GpukubeError]) -> _Results:
    """Run the readings in parallel; those that fail are recorded in `troubles` and omitted."""
    results = run_all(tasks, _AT_ONCE)
    troubles.update({name: result for name, result in results.items() if isinstance(result, GpukubeError)})
    return {name: result for name, result in results.items() if not isinstance(result, GpukubeError)}


def _inside(
    session: Session, desired: Sequence[Desired], live: tuple[Observed, ...], troubles: dict[Reading, GpukubeError]
) -> _Results:
    try:
        kube = session.kube()
    except GpukubeError as error:
        troubles.update(dict.fromkeys(_INSIDE, error))
        return {"seen": Snapshot()}
    found = _read(
        {
            "version": kube.version,
            "nodes": kube.nodes,
            "daemonsets": partial(kube.objects, _DAEMONSETS),
            "deployments": kube.deployments,
            "pods": partial(kube.objects, _PODS),
            "quotas": partial(kube.objects, _QUOTAS),
            "policies": partial(kube.object_names, "nvidia.com", "clusterpolicies", ("v1",)),
            "dra": partial(_dra, kube),
            "claims": partial(_claims, kube),
            "rights": partial(check_rights, kube, rights_for(desired)),
        },
        troubles,
    )
    views = tuple(workload_view(item, "DaemonSet") for item in found.get("daemonsets") or ())
    workloads = (*views, *(found.get("deployments") or ()))
    found |= _read(
        {
            "releases": partial(_histories, kube, workloads),
            "config-maps": partial(_config_maps, kube, found.get("daemonsets") or ()),
            "order": partial(_orders, kube, session, live, found.get("deployments") or ()),
            "runtime-classes": partial(_runtime_classes, kube, found.get("daemonsets") or ()),
            "events": partial(_refusals, kube, found.get("daemonsets") or (), found.get("pods") or ()),
        },
        troubles,
    )
    histories: Mapping[tuple[str, str], tuple[Release, ...]] = found.get("releases") or {}
    latest = tuple(filter(None, (newest(history) for _key, history in sorted(histories.items()))))
    found |= _read({"roles": partial(_roles_gone, kube, latest)}, troubles)
    return {**found, "releases": latest, "seen": _snapshot(found, views)}


def _dra(kube: Kube) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """Read the DeviceClasses and ResourceSlices in the newest version that the cluster has."""
    for version in _DRA_VERSIONS:
        classes = ApiType(_RESOURCE, version, "DeviceClass", "deviceclasses", namespaced=False)
        slices = ApiType(_RESOURCE, version, "ResourceSlice", "resourceslices", namespaced=False)
        if (found := kube.objects(classes)) is not None:
            return found, kube.objects(slices) or ()
    return (), ()


def _claims(kube: Kube) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """Read the ResourceClaims and their templates; before Kubernetes 1.34 they have another form."""
    claims = kube.objects(RESOURCE_CLAIMS)
    return ((), ()) if claims is None else (claims, kube.objects(CLAIM_TEMPLATES) or ())


def _histories(kube: Kube, workloads: Iterable[WorkloadView]) -> dict[tuple[str, str], tuple[Release, ...]]:
    """Read the releases of gpukube's namespace, and those that workloads of NVIDIA and NFD elsewhere name."""
    found: dict[tuple[str, str], list[Release]] = {}
    for release in release_history(kube, "", NAMESPACE):
        found.setdefault((NAMESPACE, release.name), []).append(release)
    named = {release_of(item) for item in workloads if part_of(item)}
    for namespace, name in sorted(named - set(found)):
        if name and namespace != NAMESPACE:
            found[namespace, name] = list(release_history(kube, name, namespace))
    return {key: tuple(history) for key, history in found.items()}


def _roles_gone(kube: Kube, releases: Iterable[Release]) -> tuple[tuple[str, str], ...]:
    """Return missing roles and bindings that gpukube's release created: its pods keep running without rights."""
    found: list[tuple[str, str]] = []
    for release in releases:
        if release.namespace == NAMESPACE and release.status == DEPLOYED:
            made = [obj for obj in manifest_objects(release.manifest) if text(obj, "kind") in _ROLES]
            drift = find_drift(made, live_objects(kube, release, _ROLES))
            found += [(release.name, item.object) for item in drift if item.gone]
    return tuple(found)


def _runtime_classes(kube: Kube, daemonsets: Iterable[Tree]) -> tuple[str, ...] | None:
    """Read the names of the RuntimeClasses, if a DaemonSet of the stack names one."""
    if any(runtime_class_of(item) for item in daemonsets if part_of(workload_view(item, "DaemonSet"))):
        return kube.object_names("node.k8s.io", "runtimeclasses", ("v1",))
    return None


def _config_maps(kube: Kube, daemonsets: Iterable[Tree]) -> dict[tuple[str, str], dict[str, str]]:
    """Read the ConfigMaps that plugins mount; missing ones are omitted."""
    named = {(NAMESPACE, DEVICE_PLUGIN.config_map), (NAMESPACE, GPU_OPERATOR.config_map)}
    for item in daemonsets:
        if part_of(workload_view(item, "DaemonSet")) in ("plugin", "gfd", "mps"):
            named |= config_maps_of(item)
    read = {key: kube.config_map(*key) for key in sorted(named)}
    return {key: entries for key, entries in read.items() if entries is not None}


def _orders(
    kube: Kube, session: Session, live: tuple[Observed, ...], deployments: Sequence[WorkloadView]
) -> tuple[Tree, ...]:
    """Read the autoscaler's order of pools, if a live family needs one."""
    how = session.provider.extras.order
    if how is None or not scaled_members(live):
        return ()
    if not isinstance(how, GroupOrder):
        return kube.objects(class_type(how)) or ()
    namespace = map_namespace(session.cluster, Snapshot(deployments=tuple(deployments)), how)
    found = kube.find_object(CONFIG_MAPS, ORDER_MAP, namespace) if namespace else None
    return (found,) if found else ()


def _refusals(kube: Kube, daemonsets: Iterable[Tree], pods: Iterable[Tree]) -> dict[tuple[str, str, str], str]:
    """Read why pods are not created or do not start, if there are any such pods: a cluster has thousands of events."""
    reasons: dict[tuple[str, str, str], tuple[str, ...]] = {
        ("DaemonSet", *_placed(item)): _NOT_CREATED
        for item in daemonsets
        if part_of(workload_view(item, "DaemonSet"))
        and number(item, "status", "currentNumberScheduled") < number(item, "status", "desiredNumberScheduled")
    }
    reasons |= {("Pod", *_placed(item)): _NOT_STARTED for item in pods if _hangs(item)}
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for namespace in sorted({namespace for _kind, namespace, _name in reasons}):
        for event in kube.objects(EVENTS, namespace) or ():
            about = tree(event, "involvedObject")
            key = (text(about, "kind"), namespace, text(about, "name"))
            if text(event, "reason") in reasons.get(key, ()):
                when = text(event, "lastTimestamp") or text(event, "eventTime")
                found[key] = max(found.get(key, ("", "")), (when, " ".join(text(event, "message").split())))
    return {key: message for key, (_when, message) in found.items()}


def _placed(obj: Tree) -> tuple[str, str]:
    return text(obj, "metadata", "namespace"), text(obj, "metadata", "name")


def _hangs(pod: Tree) -> bool:
    """Return whether a pod that requests devices is on a node but has not started."""
    view = pod_view(pod)
    uses = bool(view.devices) or bool(items(pod, "spec", "resourceClaims"))
    return uses and view.scheduled and view.phase == "Pending"


def _snapshot(found: Mapping[str, Any], views: tuple[WorkloadView, ...]) -> Snapshot:
    histories = found.get("releases") or {}
    maps = found.get("config-maps") or {}
    classes, slices = found.get("dra") or ((), ())
    names = tuple(text(item, "metadata", "name") for item in classes)
    return Snapshot(
        nodes=found.get("nodes") or (),
        daemonsets=views,
        deployments=found.get("deployments") or (),
        pods=tuple(pod_view(pod) for pod in found.get("pods") or () if text(pod, "metadata", "namespace") == NAMESPACE),
        history=histories.get((NAMESPACE, DEVICE_PLUGIN.name), ()),
        config_map=maps.get((NAMESPACE, DEVICE_PLUGIN.config_map)),
        operator_history=histories.get((NAMESPACE, GPU_OPERATOR.name), ()),
        operator_config_map=maps.get((NAMESPACE, GPU_OPERATOR.config_map)),
        dra_history=histories.get((NAMESPACE, DRA_DRIVER.name), ()),
        cluster_policies=found.get("policies") or (),
        device_classes=names,
        slices=tuple(map(slice_view, slices)),
    )


def pod_facts(pod: Tree) -> PodFacts:
    """Parse a Pod."""
    most: dict[str, int] = {}
    for container in (*items(pod, "spec", "initContainers"), *items(pod, "spec", "containers")):
        amounts = texts(container, "resources", "limits") | texts(container, "resources", "requests")
        for name, count in devices_of(amounts).items():
            most[name] = max(count, most.get(name, 0))
    view = pod_view(pod)
    named = items(pod, "spec", "resourceClaims")
    made = {text(item, "resourceClaimName") for item in items(pod, "status", "resourceClaimStatuses")}
    # A pod that requests an extended resource gets a claim from the scheduler.
    made |= {text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName")}
    claims = {text(item, "resourceClaimName") for item in named} | made
    waits = not view.scheduled and view.phase == "Pending"
    return PodFacts(
        view=view,
        reason=text(pod, "status", "reason"),
        message=text(pod, "status", "message"),
        most=most,
        created=text(pod, "metadata", "creationTimestamp"),
        placement=placement_of(tree(pod, "spec")),
        spec=tree(pod, "spec") if waits and (most or named) else {},
        claims=tuple(sorted(claims - {""})),
        templates=tuple(name for item in named if (name := text(item, "resourceClaimTemplateName"))),
    )


def class_facts(obj: Tree) -> ClassFacts:
    """Parse a DeviceClass."""
    annotations = texts(obj, "metadata", "annotations")
    return ClassFacts(
        name=text(obj, "metadata", "name"),
        extended=text(obj, "spec", "extendedResourceName"),
        release=(annotations.get(f"{_HELM}namespace", ""), annotations.get(f"{_HELM}name", "")),
        created=text(obj, "metadata", "creationTimestamp"),
    )


def claim_facts(obj: Tree) -> ClaimFacts:
    """Parse a ResourceClaim or a ResourceClaimTemplate of API version v1."""
    spec = tree(obj, "spec", "spec") or tree(obj, "spec")
    requests = items(spec, "devices", "requests")
    exact = [tree(item, "exactly") for item in requests]
    choices = [choice for item in requests for choice in items(item, "firstAvailable")]
    results = items(obj, "status", "allocation", "devices", "results")
    return ClaimFacts(
        namespace=text(obj, "metadata", "namespace"),
        name=text(obj, "metadata", "name"),
        classes=tuple(dict.fromkeys(name for item in (*exact, *choices) if (name := text(item, "deviceClassName")))),
        devices=tuple(
            (text(item, "driver"), text(item, "pool"), text(item, "device"))
            for item in results
            if text(item, "adminAccess") != "true"
        ),
        pods=tuple(
            text(item, "name") for item in items(obj, "status", "reservedFor") if text(item, "resource") == "pods"
        ),
        allocated=bool(tree(obj, "status", "allocation")),
        deleted=text(obj, "metadata", "deletionTimestamp"),
        spec=spec,
    )


def quota_of(quota: Tree) -> Quota:
    """Parse a ResourceQuota."""
    return Quota(
        namespace=text(quota, "metadata", "namespace"),
        name=text(quota, "metadata", "name"),
        hard=texts(quota, "spec", "hard"),
        used=texts(quota, "status", "used"),
    )
