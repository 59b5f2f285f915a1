"""Changes behind the user's back, as somebody else in the company makes them.

In scope: changing a pool without rules, operations or waiting. Out of scope: anything a real API offers.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.lifecycle import seed_pool, stop_work
from gpukube_sandbox.aks.machines import node_labels, node_taints, retouch_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.pools import Pool


async def tamper_pool(cluster: Cluster, name: str, changes: Mapping[str, object], *, delete: bool) -> None:
    """Delete a pool, or set properties of it; a value of None removes one.

    Args:
        cluster: Where.
        name: Pool.
        changes: Wire properties, unknown ones too, as a newer API version could have left them. `provisioningState`
            sets the state. Labels, taints and count reach the nodes at once.
        delete: Take the pool and its nodes away.

    Raises:
        KeyError: There is no such pool.
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
    """What works on a pool that vanishes ends with it."""
    operation = cluster.operation
    if operation is None or not operation.is_running or operation.pool != pool.name:
        return
    await stop_work(operation)
    operation.end("Canceled", cluster.kube.clock.now())


async def _drop_nodes(cluster: Cluster, pool: Pool, wanted: int) -> None:
    while len(pool.nodes) > wanted:
        await cluster.kube.remove_node(pool.nodes.pop())
