"""Five clusters, made by hand: whole GPUs, MIG by one name, shares, claimed MIG devices, and reserved machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpukube.cluster.kube.slices import slice_view
from gpukube.cluster.kube.views import node_view
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import CAPACITY_TYPE, FieldPath
from gpukube.core.prices import EMBEDDED
from gpukube.core.values import ClusterFacts, ClusterRef, Observed
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.errors import ClusterError
from gpukube.usage.building import build_cluster
from gpukube.usage.pods import read_pods
from gpukube.usage.pricing import with_prices
from gpukube.usage.world import World
from tests.claim_cases import A100, parts, slice_of
from tests.unit.usage.worlds import GPU, NOW, OLD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Json = dict[str, Any]

EIGHT, T4, RESERVED = "Standard_ND96asr_v4", "Standard_NC4as_T4_v3", "Standard_ND96isr_H100_v5"
SINGLE: Final = {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", f"{GPU}.replicas": "1"}
SHARED: Final = {f"{GPU}.replicas": "4"}


def live(name: str, machine: str, nodes: int = 1, *, owner: str = "ml", family: str = "", **fields: str) -> Observed:
    """Make a live pool."""
    labels = {"gpukube.io/owner": owner, "gpukube.io/pool": name} | ({"gpukube.io/family": family} if family else {})
    known: dict[FieldPath, object] = {CAPACITY_TYPE: fields.get("capacity", "on-demand")}
    return Observed(
        name=name, owner=owner, pool=name, protected=False, state="ready", status="Succeeded", failure="",
        fields=known, nodes=nodes, labels=labels, effective_taints=(), instance_type=machine, etag="", native={},
    )  # fmt: skip


def node(name: str, pool: str, shows: Mapping[str, int], labels: Mapping[str, str] = {}, owner: str = "ml") -> Json:
    """Make a ready node."""
    counts = {key: str(count) for key, count in shows.items()}
    marks = {"gpukube.io/owner": owner, "gpukube.io/pool": pool, **labels}
    return {
        "metadata": {"name": name, "labels": marks, "creationTimestamp": OLD},
        "spec": {},
        "status": {"capacity": counts, "allocatable": counts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(place: str, on: str = "", *, claim: str = "", phase: str = "Running", **shows: int) -> Json:
    """Make a pod, "namespace/name", that requests devices by short names or uses a claim."""
    space, _, name = place.partition("/")
    limits = {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": str(count) for key, count in shows.items()}
    claims = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    return {
        "metadata": {"namespace": space, "name": name},
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            "resourceClaims": claims,
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": phase if on else "Pending", "startTime": OLD},
    }


def claim(place: str, *held: str, on: str, users: Sequence[str] = ()) -> Json:
    """Make a claim that holds devices of a node."""
    space, _, name = place.partition("/")
    results = [{"driver": "gpu.nvidia.com", "pool": on, "device": device, "request": "gpu"} for device in held]
    reserved = [{"resource": "pods", "name": user, "uid": user} for user in users]
    return {
        "metadata": {"namespace": space, "name": name},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved},
    }


def plan(key: str, pools: Sequence[Observed], nodes: Sequence[Json], slices: Sequence[Json] = ()) -> ClusterPlan:
    """Make a cluster as it was read."""
    return ClusterPlan(
        ClusterRef(key, "aks", key, {"subscription": "s", "resourceGroup": "ml"}),
        ClusterFacts("eastus", "1.36.0", ready=True, status="Running"),
        live=tuple(pools),
        seen=Snapshot(nodes=tuple(map(node_view, nodes)), slices=tuple(map(slice_view, slices))),
    )


def world(*clusters: tuple[ClusterPlan, Sequence[Json], Sequence[Json]]) -> World:
    """Read clusters with their pods and claims, and price them."""
    built = tuple(build_cluster(one, read_pods(pods, claims, NOW), NOW) for one, pods, claims in clusters)
    return with_prices(World(built, NOW), EMBEDDED)


def five() -> World:
    """Return the five clusters.

    whole: 2 x 8 A100; 5 + 0 held, one of ops stuck. single: 8 A100 as 56 x 1g.5gb, 14 held. shares: 1 T4 as 4, 1 held.
    parts: an A100 node of the DRA driver with one GPU as 3g.20gb + 2g.10gb + 2 x 1g.5gb, the first two held.
    reserved: 8 H100, 8 held. A sixth cluster cannot be read.
    """
    layout = ("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb")
    devices = parts(A100, "p-0", 0, layout)
    names = [device["name"] for device in devices]
    stuck = pod("ops/loop", "w-0", gpu=1)
    stuck["status"]["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    lost = ClusterError("no answer", where="lost", fix="check the network")
    return world(
        (
            plan("whole", [live("train", EIGHT, 2)], [node(f"w-{n}", "train", {GPU: 8}) for n in range(2)]),
            [
                pod("ml/a", "w-0", gpu=4),
                stuck,
                pod("ml/done", "w-0", phase="Succeeded", gpu=8),
                pod("dev/wide", gpu=9),
                pod("dev/slice", mig__1g_5gb=9),
            ],
            [],
        ),
        (
            plan("single", [live("slices", EIGHT)], [node("s-0", "slices", {GPU: 56}, SINGLE)]),
            [pod("dev/a", "s-0", gpu=14)],
            [],
        ),
        (
            plan("shares", [live("t4", T4, owner="web")], [node("t-0", "t4", {GPU: 4}, SHARED, owner="web")]),
            [],
            [],
        ),
        (
            plan("parts", [live("dra", EIGHT)], [node("p-0", "dra", {})], [slice_of("p-0", devices)]),
            [pod("ml/x", "p-0", claim="big")],
            [claim("ml/big", names[0], on="p-0", users=["x"]), claim("dev/left", names[1], on="p-0")],
        ),
        (
            plan("reserved", [live("h100", RESERVED, capacity="reserved")], [node("r-0", "h100", {GPU: 8})]),
            [pod("ml/h", "r-0", gpu=8)],
            [],
        ),
        (ClusterPlan(ClusterRef("lost", "aks", "lost", {"subscription": "s"}), error=lost), [], []),
    )
