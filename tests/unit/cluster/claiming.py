"""Pools and nodes of NVIDIA's DRA driver for the tests: slices as it writes them, and a cluster that serves them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.kube.slices import DeviceTaint, DeviceView, SliceView
from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.names import CLUSTER_POLICY, DRA_DRIVER, NAMESPACE
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS
from gpukube.gpu.sharing import MigCut, Sharing
from tests.unit.cluster.builders import daemonset, node_of, operator_deployment, plugin_pod, state

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.views import NodeView, PodView
    from gpukube.core.values import Desired

A100 = "NVIDIA A100-SXM4-40GB"
CUT = Sharing(mig=MigCut("1g.5gb", "mixed"))
LAYOUT = Sharing(mig=MigCut("", "mixed", layout=("3g.20gb", "2g.10gb", "2g.10gb")))
PER_GPU = 7
BAD = DeviceTaint("gpu.nvidia.com/xid", "79", "NoExecute")


def gpu(index: int, **changes: object) -> DeviceView:
    attributes = {"type": "gpu", "uuid": f"GPU-{index}", "productName": A100, "driverVersion": "580.126.20"}
    made = DeviceView(f"gpu-{index}", _full(attributes), {f"{DRIVER}/memory": "40Gi"})
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def mig(parent: int, profile: str, index: int, **changes: object) -> DeviceView:
    attributes = {
        "type": "mig",
        "uuid": f"MIG-{parent}-{index}",
        "parentUUID": f"GPU-{parent}",
        "profile": profile,
        "productName": A100,
    }
    made = DeviceView(f"gpu-{parent}-mig-{index}", _full(attributes), {f"{DRIVER}/memory": "4864Mi"})
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def gpus(count: int = 8) -> tuple[DeviceView, ...]:
    return tuple(map(gpu, range(count)))


def cut_gpus(*profiles: str, count: int = 8) -> tuple[DeviceView, ...]:
    """Make the MIG devices of a node whose GPUs all have the same layout."""
    return tuple(
        mig(parent, profile, index)
        for parent in range(count)
        for index, profile in enumerate(profiles or ["1g.5gb"] * PER_GPU)
    )


def slice_of(devices: Iterable[DeviceView], node: str = "node-1", **changes: object) -> SliceView:
    made = SliceView(f"{node}-gpu.nvidia.com-x7k2p", DRIVER, node, node, 1, 1, tuple(devices))
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def claimed_node(pool: Desired, name: str = "node-1", **changes: object) -> NodeView:
    """Make a ready node of such a pool: its status lists no GPU; the operator has done its part."""
    labels = dict(pool.labels)
    if pool.target.sharing.mig:
        labels |= {"nvidia.com/mig.config.state": "success", "nvidia.com/gpu.deploy.client": "true"}
    return node_of(pool, name, allocatable={"cpu": "96"}, capacity={}, labels=labels, **changes)


def driver_pod(node: str = "node-1", **changes: object) -> PodView:
    states = (state("init-container", init=True, ready=True), state(DRA_DRIVER.container, ready=True))
    return plugin_pod(node, owner=DRA_DRIVER.plugin, **{"containers": states, **changes})


def claiming(pools: Sequence[Desired], *nodes: NodeView, **changes: object) -> Snapshot:
    """Make a cluster whose DRA driver serves these pools, with whole GPUs on every node given."""
    tolerations = [{"key": taint.key, "operator": "Exists"} for pool in pools for taint in pool.effective_taints]
    placed = placement_of({"nodeSelector": {"gpukube.io/advertiser": "dra"}, "tolerations": tolerations})
    seen = Snapshot(
        nodes=nodes,
        daemonsets=(daemonset(DRA_DRIVER.plugin, NAMESPACE, placement=placed),),
        deployments=(operator_deployment(),),
        pods=tuple(driver_pod(node.name) for node in nodes),
        cluster_policies=(CLUSTER_POLICY,),
        device_classes=(GPU_CLASS, MIG_CLASS),
        slices=tuple(slice_of(gpus(), node.name) for node in nodes),
    )
    return replace(seen, **changes)  # type: ignore[arg-type]  # test data


def _full(attributes: dict[str, str]) -> dict[str, object]:
    return {f"{DRIVER}/{name}": value for name, value in attributes.items()}
