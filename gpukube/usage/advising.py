"""The MIG layout that would let waiting pods run, on GPUs that nobody holds. Pure; nothing is changed.

In scope: pods that wait for instances by profile. Out of scope: what else keeps a pod waiting, such as taints (`gpukube
workload fit`), and how a pool gets a layout (sharing.mig in its spec, which is the same for all of its GPUs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.gpu.claims import MIG_CLASS
from gpukube.gpu.mig import RESOURCE_PREFIX, profiles, resource_name
from gpukube.gpu.mig_solver import MOST_INSTANCES, pack

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.usage import UsageAdvice, UsageRoom
    from gpukube.gpu.models import GpuModel
    from gpukube.usage.world import Cluster, Node


def advise_layouts(cluster: Cluster) -> list[UsageAdvice]:
    """Return a layout per GPU model of a cluster whose instances are too few for the waiting pods."""
    wanted: dict[str, int] = {}
    for pod in cluster.waiting:
        for name, count in pod.devices.items():
            wanted[name] = wanted.get(name, 0) + count
    found: list[UsageAdvice] = []
    models: dict[str, GpuModel] = {}
    for pool in cluster.pools:
        for node in pool.nodes:
            if node.machine and node.machine.mig_capable is not False and profiles(node.machine.model):
                models.setdefault(node.machine.model.name, node.machine.model)
    for model in models.values():
        missing = _missing(cluster, model, wanted)
        if missing:
            found.append(_advice(cluster, model, missing))
    return found


def _missing(cluster: Cluster, model: GpuModel, wanted: dict[str, int]) -> dict[str, int]:
    """Return the instances by profile that waiting pods request or claim, and that are not free."""
    missing: dict[str, int] = {}
    for profile in profiles(model):
        for name in (resource_name(profile), f"{MIG_CLASS}/{profile.name}"):
            free = sum(
                stock.free
                for pool in cluster.pools
                for node in pool.nodes
                for stock in node.stocks
                if stock.resource == name
            )
            if (short := wanted.get(name, 0) - free) > 0:
                missing[profile.name] = min(missing.get(profile.name, 0) + short, MOST_INSTANCES)
    return missing


def _advice(cluster: Cluster, model: GpuModel, missing: dict[str, int]) -> UsageAdvice:
    packing = pack(model, missing)
    spare = {
        pool.name: sum(_spare(node) for node in pool.nodes if node.machine and node.machine.model.name == model.name)
        for pool in cluster.pools
    }
    rooms: list[UsageRoom] = [{"pool": name, "gpus": gpus} for name, gpus in spare.items() if gpus]
    return {
        "model": model.name,
        "instances": missing,
        "layouts": [{"instances": list(layout), "gpus": count} for layout, count in packing.layouts],
        "gpus": packing.gpus,
        "rooms": rooms,
        "enough": sum(room["gpus"] for room in rooms) >= packing.gpus,
    }


def _spare(node: Node) -> int:
    """Return the GPUs of a node that nobody holds, as far as that is known.

    Whole GPUs that are free count. Of divided GPUs only those count whose devices are all free by name, or all of a
    node on which nothing is held: elsewhere it is unknown on which GPU the held instances are.
    """
    if node.state != "ready" or node.machine is None:
        return 0
    whole = sum(stock.free for stock in node.stocks if stock.unit.kind == "gpu")
    named = {device.gpu: True for device in node.devices if device.profile}
    for device in node.devices:
        if device.gpu in named and device.state != "free":
            named[device.gpu] = False
    cut = [
        stock for stock in node.stocks if stock.resource.startswith(RESOURCE_PREFIX) and stock.unit.kind == "instance"
    ]
    empty = node.machine.devices if cut and not any(stock.held or stock.unhealthy for stock in node.stocks) else 0
    return min(node.machine.devices, whole + sum(named.values()) + empty)
