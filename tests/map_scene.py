"""Maps made by hand: one with everything in it, and one of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.prices import EMBEDDED
from gpukube.core.values import ClusterRef
from gpukube.errors import CloudError
from gpukube.usage.documents import map_document
from gpukube.usage.pricing import with_prices
from gpukube.usage.world import (
    WHOLE,
    Cluster,
    Device,
    Holder,
    Node,
    PodUse,
    Pool,
    Stock,
    Unit,
    Waiting,
    World,
)
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.map import MapDocument

GPU: Final = "nvidia.com/gpu"
SLICE: Final = "nvidia.com/mig-1g.5gb"
SHARED: Final = "nvidia.com/gpu.shared"
DRA_GPU, DRA_SLICE = "gpu.nvidia.com", "mig.nvidia.com/1g.5gb"
A100: Final = make_target("Standard_ND96asr_v4").machine
T4: Final = make_target("Standard_NC4as_T4_v3").machine
READ_AT: Final = 1_795_858_200.0


def eight(name: str, held: int, *pods: PodUse, **changes: int) -> Node:
    """Return a node with eight GPUs of a device plugin; those that no state takes are free."""
    stock = Stock(GPU, WHOLE, held=held, free=8 - held - sum(changes.values()), **changes)
    return Node(name, "ready", "", "us-east-1a", A100, (stock,), pods=pods)


def pool(name: str, *nodes: Node, **changes: object) -> Pool:
    made = Pool(name, name, "ml-platform", "", "ready", "p4d.24xlarge", "on-demand", A100, len(nodes), nodes)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def claimed_node() -> Node:
    """Return a node whose devices claims name: a GPU held, one free, one divided, one tainted."""
    train = Holder("research", "train-0", "train-0-gpu")
    devices = (
        Device("GPU-0", "gpu-0", DRA_GPU, "", "held", "", (train,)),
        Device("GPU-1", "gpu-1", DRA_GPU, "", "free"),
        *(
            Device(
                "GPU-2",
                f"gpu-2-mig-{place}",
                DRA_SLICE,
                "1g.5gb",
                "held" if place < 3 else "free",
                "",
                (Holder("serving", f"chat-{place}", f"chat-{place}-slice"),) if place < 3 else (),
            )
            for place in range(7)
        ),
        Device("GPU-3", "gpu-3", DRA_GPU, "", "unhealthy", "taint xid=79"),
    )
    stocks = (
        Stock(DRA_GPU, WHOLE, held=1, free=1, unhealthy=1),
        Stock(DRA_SLICE, Unit("instance", "1g.5gb", per_gpu=7, weight=1 / 7), held=3, free=4),
    )
    pods = (
        PodUse("research", "train-0", {DRA_GPU: 1}),
        *(PodUse("serving", f"chat-{place}", {DRA_SLICE: 1}) for place in range(3)),
    )
    return Node("gke-dra-1", "ready", "", "us-central1-a", A100, stocks, devices, pods)


def clusters() -> tuple[Cluster, ...]:
    train = pool(
        "h100train",
        eight("ip-10-0-1-17.ec2.internal", 8, PodUse("research", "llm-pretrain-worker-0", {GPU: 8})),
        eight("ip-10-0-1-18.ec2.internal", 8, PodUse("research", "llm-pretrain-worker-1", {GPU: 8})),
        eight(
            "ip-10-0-1-19.ec2.internal",
            3,
            PodUse("vision", "segment-7f9c", {GPU: 2}),
            PodUse("vision", "notebook-ada", {GPU: 1}, "completed"),
            unhealthy=1,
        ),
        replace(
            eight("ip-10-0-1-20.ec2.internal", 2, PodUse("audio", "whisper-large", {GPU: 2}, "CrashLoopBackOff")),
            state="cordoned",
            stocks=(Stock(GPU, WHOLE, held=2, unusable=6),),
        ),
        replace(
            eight("ip-10-0-1-21.ec2.internal", 0),
            state="starting",
            reason="the driver is being installed",
            stocks=(Stock(GPU, WHOLE, not_advertised=8),),
        ),
        family="h100train",
        starting=2,
        node_count=7,
    )
    reserve = pool("h100reserve", family="h100train", node_count=0, instance_type="p4de.24xlarge")
    slices = Stock(SLICE, Unit("instance", "1g.5gb", per_gpu=7, weight=1 / 7), held=31, free=25)
    mig = pool(
        "a100slices",
        Node(
            "aks-a100slices-3391-vmss000000",
            "ready",
            "",
            "1",
            A100,
            (slices,),
            pods=tuple(PodUse("serving", f"ranker-{place:02}", {SLICE: 1}) for place in range(31)),
        ),
        Node(
            "aks-a100slices-3391-vmss000001",
            "notReady",
            "kubelet stopped posting node status",
            "2",
            A100,
            (replace(slices, held=0, free=0, unusable=56),),
        ),
        instance_type="Standard_ND96asr_v4",
    )
    shares = pool(
        "t4slices",
        Node(
            "aks-t4slices-8810-vmss000000",
            "leaving",
            "karpenter removes it: underutilized",
            "1",
            T4,
            (Stock(SHARED, Unit("share", per_gpu=4, weight=0.25), held=1, unusable=3),),
            pods=(PodUse("notebooks", "jupyter-grace", {SHARED: 1}),),
        ),
        instance_type="Standard_NC4as_T4_v3",
        machine=T4,
    )
    dra = pool("dra", claimed_node(), instance_type="a2-highgpu-4g", state="busy")
    stray = replace(pool("", eight("spot-karpenter-x2l9", 0)), pool="", owner="", state="", instance_type="")
    return (
        Cluster(
            ClusterRef("train-eks", "eks", "train", {}),
            "us-east-1",
            (train, reserve),
            (
                Waiting("research", "llm-pretrain-worker-2", {GPU: 8}, "h100train", "0/5 nodes: 5 Insufficient gpu"),
                Waiting("audio", "diarize-0", {GPU: 1}),
            ),
        ),
        Cluster(replace(CLUSTER, key="train-aks"), "westeurope", (mig, shares)),
        Cluster(ClusterRef("train-gke", "gke", "train", {}), "us-central1", (dra, stray)),
        Cluster(ClusterRef("quiet-gke", "gke", "quiet", {}), "europe-west4", unknown="no permission to list pods"),
        Cluster(
            ClusterRef("lost-eks", "eks", "lost", {}),
            error=CloudError("no cluster named lost", fix="check its name", code="no-cluster"),
        ),
    )


def rich_map(**view: object) -> MapDocument:
    """Return a map with every state in it."""
    return map_document(with_prices(World(clusters(), READ_AT), EMBEDDED), **view)  # type: ignore[arg-type]  # test data


def big_map(nodes: int = 400) -> MapDocument:
    """Return a map of one cluster with nodes of eight GPUs."""
    made = []
    for place in range(nodes):
        held = (place * 5) % 9
        pods = [PodUse(f"team-{place % 7}", f"trainer-{place}-{one}", {GPU: 1}) for one in range(held % 3)]
        pods += [PodUse(f"team-{place % 5}", f"job-{place}", {GPU: held - len(pods)})] if held > len(pods) else []
        made.append(eight(f"ip-10-0-{place // 250}-{place % 250}.ec2.internal", held, *pods))
    step = max(1, nodes // 4)
    pools = [pool(f"pool{place // step}", *made[place : place + step]) for place in range(0, nodes, step)]
    cluster = Cluster(ClusterRef("train-eks", "eks", "train", {}), "us-east-1", tuple(pools))
    return map_document(with_prices(World((cluster,), READ_AT), EMBEDDED))
