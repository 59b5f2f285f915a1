"""Device plugins of high-speed networks: what they advertise on a node.

In scope: AWS's plugin for EFA, the RDMA shared device plugin, and the SR-IOV network device plugin. Out of scope: pods
(`kubelet`), GPUs (`plugin`), the Network Operator, which creates the last two from its NicClusterPolicy.

Sources: aws/eks-charts stable/aws-efa-k8s-device-plugin; Mellanox/k8s-rdma-shared-dev-plugin pkg/resources;
k8snetworkplumbingwg/sriov-network-device-plugin docs, pkg/types; Azure/aks-rdma-infiniband configs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.pluginconfig import Crash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.nodes.containers import Role
    from gpukube_sandbox.kube.nodes.processes import Process
    from gpukube_sandbox.kube.store.objects import JsonObject

EFA, INFINIBAND = "efa", "infiniband"
_EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"
_VENDOR: Final = "15b3"
_FILES: Final[dict[Role, tuple[str, str]]] = {
    "rdma-shared-plugin": ("/k8s-rdma-shared-dev-plugin/config.json", "configList"),
    "sriov-plugin": ("/etc/pcidp/config.json", "resourceList"),
}
"""Plugin -> the file with its resources, and the key of their list."""
_PREFIXES: Final[dict[Role, str]] = {"rdma-shared-plugin": "rdma", "sriov-plugin": "intel.com"}
FABRIC_ROLES: Final = frozenset({"efa-plugin", *_FILES})


async def start_fabric_plugin(process: Process) -> None:
    """Register the network devices of a machine.

    Raises:
        Crash: The plugin exits: it has no configuration, or an invalid one.
    """
    machine, role = process.machine, process.container.role
    machine.unregister(process.run.advertised)
    if role == "efa-plugin":
        count = machine.shape.fabric.get(EFA, 0)
        found = {_EFA_RESOURCE: count} if count else {}
        process.log.append(f"EFA Device list: {count} devices" if count else "No EFA devices found")
    else:
        path, key = _FILES[role]
        text = next(iter((await process.file(path)).values()), "")
        found = dict(_configured(text, key, role, machine.shape.fabric.get(INFINIBAND, 0)))
        process.log.append(f"resources: {', '.join(sorted(found)) or 'none'}")
    machine.register(process.run.uid, found, frozenset())
    process.run.advertised = frozenset(found)


def _configured(text: str, key: str, role: Role, count: int) -> Iterator[tuple[str, int]]:
    """Yield the resources of a configuration that match the machine's adapters.

    The shared plugin advertises as many slots as its configuration says, the other one each adapter.
    """
    try:
        entries: list[JsonObject] = json.loads(text)[key]
    except (ValueError, KeyError, TypeError) as error:
        raise Crash(f"error reading configuration file: {key} cannot be read") from error
    for entry in entries:
        name = f"{entry.get('resourcePrefix') or _PREFIXES[role]}/{entry['resourceName']}"
        if count and _selects(entry.get("selectors") or {}):
            yield name, int(entry.get("rdmaHcaMax", 0)) if role == "rdma-shared-plugin" else count


def _selects(selectors: JsonObject | list[JsonObject]) -> bool:
    """Return whether selectors match adapters of NVIDIA; names of drivers and interfaces always do."""
    every = selectors if isinstance(selectors, list) else [selectors]
    return any(_VENDOR in (one.get("vendors") or [_VENDOR]) for one in every)
