"""Generated worlds: pools, nodes, pods and claims as plain objects of the API, placed by the sandbox's scheduler.

Everything that the map and usage are compared with is counted here from these objects, with none of the product's code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from gpukube.cluster.kube.slices import slice_view
from gpukube.cluster.kube.views import node_view
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import ClusterFacts, ClusterRef, Nodes
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.usage.building import build_cluster
from gpukube.usage.pods import read_pods
from gpukube.usage.world import World
from gpukube_sandbox.kube.scheduler.devices import DeviceState, take_devices
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place
from tests.builders import SUBSCRIPTION, make_observed
from tests.claim_cases import A100, CLASSES, XID, ask, devices, parts, slice_of, slices_of_profile, whole
from tests.unit.cluster.builders import claimed, desire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Desired, Observed

    Json = dict[str, Any]

VERSION: Final = (1, 36)
NOW: Final = 1_790_000_000.0
OLD, NEW, TOMORROW = "2026-09-01T00:00:00Z", "2026-09-21T14:10:00Z", "2026-09-22T14:10:00Z"
"""NOW is 2026-09-21 14:13:20 UTC: a node created at NEW may still be starting."""
GPU: Final = "nvidia.com/gpu"
SPACES: Final = ("ml", "dev", "batch")
LAYOUT: Final = ("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb")
LAYOUT_NAMES: Final = ("nvidia.com/mig-3g.20gb", "nvidia.com/mig-2g.10gb", "nvidia.com/mig-1g.5gb")
TOLERANT: Final = [{"operator": "Exists"}]


@dataclass(frozen=True)
class Kind:
    """A kind of pool.

    Attributes:
        machine: Instance type.
        shows: Resource or class -> devices per node, if all is well.
        unit: Kind of its devices, and their profile by resource; "" for GPUs.
        sharing: How its GPUs are shared.
        labels: What GPU feature discovery would write.
        profiles: MIG layout of each GPU, for nodes of the DRA driver.
        dra: Whether pods claim its devices.
    """

    machine: str
    shows: dict[str, int]
    unit: str = "gpu"
    sharing: Sharing = field(default_factory=Sharing)
    labels: dict[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    dra: bool = False


KINDS: Final = {
    "whole": Kind("Standard_ND96asr_v4", {GPU: 8}),
    "small": Kind("Standard_NC4as_T4_v3", {GPU: 1}),
    "single": Kind(
        "Standard_ND96asr_v4",
        {GPU: 56},
        "instance",
        Sharing(mig=MigCut("1g.5gb", "single")),
        {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", f"{GPU}.replicas": "1"},
    ),
    "mixed": Kind(
        "Standard_ND96asr_v4",
        dict(zip(LAYOUT_NAMES, (8, 8, 16), strict=True)),
        "instance",
        Sharing(mig=MigCut("", "mixed", LAYOUT)),
        {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB", f"{LAYOUT_NAMES[0]}.replicas": "1"},
    ),
    "shares": Kind(
        "Standard_NC4as_T4_v3",
        {GPU: 4},
        "share",
        Sharing(slicing=Slicing("time-slicing", 4)),
        {f"{GPU}.product": "Tesla-T4-SHARED", f"{GPU}.replicas": "4"},
    ),
    "claimed": Kind("Standard_ND96asr_v4", {"gpu.nvidia.com": 8}, dra=True),
    "parts": Kind(
        "Standard_ND96asr_v4",
        {f"mig.nvidia.com/{name}": 8 * LAYOUT.count(name) for name in dict.fromkeys(LAYOUT)},
        "instance",
        Sharing(mig=MigCut("", "mixed", LAYOUT)),
        profiles=LAYOUT,
        dra=True,
    ),
}


@dataclass
class Scene:
    """One cluster as plain objects.

    Attributes:
        pools: Kind, declared pool, live pool.
        nodes: Pool name -> Node objects.
        truths: Node -> what its machine has by resource.
    """

    key: str
    pools: list[tuple[Kind, Desired, Observed]] = field(default_factory=list)
    nodes: dict[str, list[Json]] = field(default_factory=dict)
    slices: list[Json] = field(default_factory=list)
    claims: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)
    truths: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def all_nodes(self) -> list[Json]:
        return [node for nodes in self.nodes.values() for node in nodes]

    def build(self, *, declared: bool = True) -> World:
        """Read the scene as the product does."""
        cluster = ClusterRef(self.key, "aks", self.key, {"subscription": SUBSCRIPTION, "resourceGroup": "ml"})
        seen = Snapshot(nodes=tuple(map(node_view, self.all_nodes)), slices=tuple(map(slice_view, self.slices)))
        plan = ClusterPlan(
            cluster,
            ClusterFacts("eastus", "1.36.0", ready=True, status="Running"),
            live=tuple(live for _, _, live in self.pools),
            desired=tuple(wanted for _, wanted, _ in self.pools) if declared else (),
            seen=seen,
        )
        return World((build_cluster(plan, read_pods(self.pods, self.claims, NOW), NOW),), NOW)


def scene(seed: int) -> Scene:
    """Make a cluster, and place its pods."""
    luck = Random(seed)  # noqa: S311 - the same each time
    made = Scene(f"c{seed}")
    for number, name in enumerate(luck.sample(sorted(KINDS), luck.randint(1, 4))):
        _add_pool(made, luck, f"{name}{number}", KINDS[name])
    _add_pods(made, luck)
    _age(made, luck)
    return made


def _add_pool(made: Scene, luck: Random, name: str, kind: Kind) -> None:
    count = luck.randint(0, 3)
    build: Callable[..., Desired] = claimed if kind.dra else desire
    wanted = build(
        pool=name,
        name=name,
        machine=kind.machine,
        sharing=kind.sharing,
        nodes=Nodes(count, count, count, autoscaled=False),
    )
    late = luck.choice((0, 0, 0, 1, 2))
    state = luck.choice(("ready",) * 7 + ("deleting",))
    live = make_observed(wanted, nodes=count + late, state=state)
    made.pools.append((kind, wanted, live))
    made.nodes[name] = [_node(made, luck, kind, wanted, f"{name}-{number}") for number in range(count)]


def _node(made: Scene, luck: Random, kind: Kind, wanted: Desired, name: str) -> Json:
    truth = dict(kind.shows)
    made.truths[name] = truth
    capacity = {} if kind.dra else dict(truth)
    if kind.dra:
        made.slices += _slices(luck, kind, name)
    elif luck.random() < 0.15:
        capacity = {}
    elif luck.random() < 0.1:
        lost = luck.choice(sorted(capacity))
        capacity[lost] = capacity[lost] * 3 // 4
    healthy = dict(capacity)
    if healthy and luck.random() < 0.2:
        sick = luck.choice(sorted(healthy))
        healthy[sick] = max(0, healthy[sick] - luck.randint(1, 2))
    if name.startswith("mixed") and capacity and luck.random() < 0.3:  # a name of an earlier sharing
        capacity[GPU], healthy[GPU] = 8, 0
    room = {"cpu": "900", "memory": "9000Gi", "pods": "500"}
    spec: Json = {"taints": []}
    if luck.random() < 0.1:
        spec["taints"].append({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
    ready = "True" if luck.random() < 0.9 else luck.choice(("False", "Unknown"))
    labels = {**wanted.labels, "node.kubernetes.io/instance-type": kind.machine}
    return {
        "metadata": {
            "name": name,
            "labels": labels | (kind.labels if capacity else {}),
            "creationTimestamp": luck.choice((OLD, OLD, OLD, NEW)),
        },
        "spec": spec,
        "status": {
            "capacity": {**room, **{key: str(count) for key, count in capacity.items()}},
            "allocatable": {**room, **{key: str(count) for key, count in healthy.items()}},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def _slices(luck: Random, kind: Kind, name: str) -> list[Json]:
    if luck.random() < 0.1:
        return []
    found: list[Json] = []
    for minor in range(8):
        taint = {"taints": [XID]} if luck.random() < 0.05 else {}
        found += (
            parts(A100, name, minor, kind.profiles, **taint) if kind.profiles else [whole(A100, name, minor, **taint)]
        )
    if luck.random() < 0.1 and not kind.profiles:
        found = found[: luck.randint(1, 7)]
    if luck.random() < 0.08:
        return [slice_of(name, found, of=2)]
    return [slice_of(name, found)]


def _add_pods(made: Scene, luck: Random) -> None:
    names = sorted({name for kind, _, _ in made.pools if not kind.dra for name in kind.shows} or {GPU})
    state = take_devices(made.slices, CLASSES, [])
    for number in range(luck.randint(0, 30)):
        pod = _pod(luck, number, names)
        if any(kind.dra for kind, _, _ in made.pools) and luck.random() < 0.5:
            _claim(made, luck, pod)
            state.put(made.claims[-1])
        if luck.random() < 0.2 and made.pools:
            pod["spec"]["nodeSelector"] = {"gpukube.io/pool": luck.choice(made.pools)[1].target.pool}
        if luck.random() < 0.05:
            pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        made.pods.append(pod)
        if "schedulingGates" not in pod["spec"]:
            _bind(made, pod, state)


def _bind(made: Scene, pod: Json, state: DeviceState) -> None:
    """Place a pod as the sandbox's scheduler does, with what its claims get."""
    spaces = [{"metadata": {"name": name}} for name in SPACES]
    found = place(pod, take_snapshot(made.all_nodes, made.pods, spaces, state), VERSION)
    if not found.nodes:
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": found.message}]
        return
    pod["spec"]["nodeName"] = found.nodes[0]
    grant = found.grants.get(found.nodes[0])
    user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    for claim, allocation in grant.allocations if grant else ():
        own = next(one for one in made.claims if one["metadata"]["name"] == claim["metadata"]["name"])
        own["status"] = {"allocation": allocation, "reservedFor": [user]}
        state.put(own)


def _pod(luck: Random, number: int, names: list[str]) -> Json:
    name = luck.choice(names)
    container: Json = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    if luck.random() < 0.9:
        container["resources"]["limits"] = {name: str(luck.choice((0, 1, 1, 2, 4, 8)))}
    spec: Json = {"containers": [container], "tolerations": TOLERANT}
    if luck.random() < 0.15:  # an init container that needs more than the others, or a sidecar that adds to them
        before: Json = {"name": "before", "image": "i", "resources": {"limits": {name: "2"}}}
        spec["initContainers"] = [before | ({"restartPolicy": "Always"} if luck.random() < 0.5 else {})]
    return {
        "metadata": {"name": f"pod-{number}", "namespace": luck.choice(SPACES), "uid": f"uid-{number}"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _claim(made: Scene, luck: Random, pod: Json) -> None:
    """Let a pod claim devices instead of requesting them."""
    wanted = ask(count=luck.randint(1, 3)) if luck.random() < 0.5 else slices_of_profile(luck.choice(LAYOUT[:3]))
    name = f"claim-{pod['metadata']['name']}"
    made.claims.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": pod["metadata"]["namespace"], "uid": name},
            "spec": devices(wanted),
        }
    )
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    pod["spec"]["containers"] = [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]
    pod["spec"].pop("initContainers", None)


def _age(made: Scene, luck: Random) -> None:
    """Let time pass: pods run, fail, end and leave; nodes are cordoned, and devices fail."""
    for pod in made.pods:
        if not pod["spec"].get("nodeName"):
            continue
        pod["status"] = {"phase": "Running", "startTime": OLD}
        match luck.randrange(9):
            case 0:
                pod["status"]["phase"] = luck.choice(("Succeeded", "Failed"))
            case 1:
                stuck = {"waiting": {"reason": luck.choice(("CrashLoopBackOff", "ImagePullBackOff"))}}
                pod["status"]["containerStatuses"] = [{"name": "main", "state": stuck}]
            case 2:
                pod["metadata"]["deletionTimestamp"] = luck.choice((OLD, TOMORROW))
            case 3:
                pod["status"]["phase"] = "Pending"
    _wear(made, luck)


def _wear(made: Scene, luck: Random) -> None:
    for node in made.all_nodes:
        if luck.random() < 0.15:
            node["spec"]["unschedulable"] = True
        if luck.random() < 0.1:
            healthy = node["status"]["allocatable"]
            for name in healthy.keys() & {GPU, *LAYOUT_NAMES}:
                healthy[name] = str(max(0, int(healthy[name]) - 1))
        if luck.random() < 0.05:  # its device plugin is gone, and the pods run on
            for shown in (node["status"]["capacity"], node["status"]["allocatable"]):
                shown.update(dict.fromkeys(shown.keys() & {GPU, *LAYOUT_NAMES}, "0"))
    for claim in made.claims:
        if claim.get("status") and luck.random() < 0.1:
            claim["status"]["reservedFor"] = []


# Counted independently.


def requests(pod: Json) -> Counter[str]:
    """Count what a pod holds: its containers and sidecars together, or an init container that needs more."""
    total: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        total.update(_limits(container))
    sidecars: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for container in pod["spec"].get("initContainers", ()):
        own = _limits(container)
        if container.get("restartPolicy") == "Always":
            sidecars.update(own)
            most |= sidecars
        else:
            most |= own + sidecars
    return (total + sidecars) | most


def _limits(container: Json) -> Counter[str]:
    limits = container["resources"].get("limits", {})
    return Counter({name: int(count) for name, count in limits.items() if name.startswith("nvidia.com/")})


def holds(pod: Json) -> bool:
    """Return whether a pod holds what it requests."""
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in ("Succeeded", "Failed")


def allocations(made: Scene) -> Iterator[tuple[str, str, Json]]:
    """Yield node (whose name is that of its pool of devices), device and claim of each allocated device."""
    for claim in made.claims:
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
            yield result["pool"], result["device"], claim


def published(made: Scene) -> dict[str, dict[str, Json]]:
    """Return the devices of each node by name, of pools with all of their slices or not."""
    found: dict[str, dict[str, Json]] = {}
    for item in made.slices:
        spec = item["spec"]
        whole_pool = spec["pool"]["resourceSliceCount"] == 1
        found[spec["nodeName"]] = {one["name"]: {**one, "complete": whole_pool} for one in spec["devices"]}
    return found


def class_name(device: Json) -> str:
    """Return the name that counts of a device have."""
    attributes = device["attributes"]
    if attributes["type"]["string"] == "gpu":
        return "gpu.nvidia.com"
    return f"mig.nvidia.com/{attributes['profile']['string']}"
