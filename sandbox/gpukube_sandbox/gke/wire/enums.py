"""Members of the wire enums, with types that the generated classes lack.

In scope: the members that the service writes. Out of scope: all others.
"""

from __future__ import annotations

from google.cloud import container_v1 as wire


class PoolStatus:
    """NodePool.Status."""

    PROVISIONING = wire.NodePool.Status(1)
    RUNNING = wire.NodePool.Status(2)
    RUNNING_WITH_ERROR = wire.NodePool.Status(3)
    RECONCILING = wire.NodePool.Status(4)
    STOPPING = wire.NodePool.Status(5)
    ERROR = wire.NodePool.Status(6)


BLUE_GREEN = wire.NodePoolUpdateStrategy(2)
"""NodePoolUpdateStrategy.BLUE_GREEN."""


class OperationStatus:
    """Operation.Status."""

    PENDING = wire.Operation.Status(1)
    RUNNING = wire.Operation.Status(2)
    DONE = wire.Operation.Status(3)
    ABORTING = wire.Operation.Status(4)


class Kind:
    """Operation.Type."""

    UPGRADE_NODES = wire.Operation.Type(4)
    UPDATE_CLUSTER = wire.Operation.Type(6)
    CREATE_NODE_POOL = wire.Operation.Type(7)
    DELETE_NODE_POOL = wire.Operation.Type(8)
    SET_NODE_POOL_MANAGEMENT = wire.Operation.Type(9)
    SET_NODE_POOL_SIZE = wire.Operation.Type(14)
