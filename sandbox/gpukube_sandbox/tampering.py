"""Out-of-band changes, as made by someone else in the company.

In scope: changing a pool without rules, operations, or waiting. Out of scope: features of a real API.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.lifecycle import delete_machine, seed_pool, stop_work
from gpukube_sandbox.aks.machines import node_labels, node_taints, retouch_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.pools import Pool


async def tamper_pool(cluster: Cluster, name: str, changes: Mapping[str, object], *, delete: bool) -> None:
    """Delete a pool, or set properties of it; a value of None removes one.

    Args:
        cluster: Cluster of the pool.
        name: Name of the pool.
        changes: Wire properties, including unknown ones, which a newer API version could have set. `provisioningState`
            sets the state. Labels, taints, and count apply to the nodes immediately.
        delete: Delete the pool and its nodes.

    Raises:
        KeyError: The pool does not exist.
    """
    pool = cluster.pools[name]
    if delete:
        await _drop_operation(cluster, pool)
        del cluster.pools[name]
        await _drop_nodes(cluster, pool, 0)
        return
    before = copy.deepcopy(pool.properties)
    for key, value in changes.items():
        if key == "provisioningState":
            pool.state = str(value)
        elif value is None:
            pool.properties.pop(key, None)
        else:
            pool.properties[key] = value
    pool.touch()
    await _drop_nodes(cluster, pool, int(str(pool.properties["count"])))
    labels = tuple(node_labels(name, properties, cluster.node_group) for properties in (before, pool.properties))
    for node in pool.nodes:
        taints = node_taints(before), node_taints(pool.properties)
        await retouch_node(cluster.kube, node, (labels[0], labels[1]), taints)
    await seed_pool(cluster, pool)


async def _drop_operation(cluster: Cluster, pool: Pool) -> None:
    """End the operation on a deleted pool."""
    operation = cluster.operation
    if operation is None or not operation.is_running or operation.pool != pool.name:
        return
    await stop_work(operation)
    operation.end("Canceled", cluster.kube.clock.now())


async def _drop_nodes(cluster: Cluster, pool: Pool, wanted: int) -> None:
    while len(pool.nodes) > wanted:
        await delete_machine(cluster, pool, pool.nodes[-1])
