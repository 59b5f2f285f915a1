"""A GKE of dictionaries behind the SDK's protocol: canned answers, errors, and what was asked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.api_core.exceptions import NotFound
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class FakeIdentity:
    """Gives one token."""

    asked: int = 0
    renewed: int = 0

    def token(self) -> str:
        self.asked += 1
        return "ya29.token"

    def renew(self) -> None:
        self.renewed += 1


@dataclass
class FakeTransport:
    closed: bool = False

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeSdk:
    """The client.

    Attributes:
        cluster: In JSON form.
        pools: Live pools by name, in JSON form.
        operations: Operations by name, in JSON form.
        failure: Raised by the next write.
        calls: What was asked, in order: the call, and its request in JSON form.
    """

    cluster: Mapping[str, object] = field(default_factory=dict)
    pools: dict[str, Mapping[str, object]] = field(default_factory=dict)
    operations: dict[str, Mapping[str, object]] = field(default_factory=dict)
    failure: Exception | None = None
    calls: list[tuple[str, object]] = field(default_factory=list)
    transport: FakeTransport = field(default_factory=FakeTransport)
    api_endpoint: str = "container.googleapis.com"

    def get_cluster(self, request: wire.GetClusterRequest, **_: object) -> wire.Cluster:
        self._note("get_cluster", wire.GetClusterRequest.pb(request))
        found: wire.Cluster = wire.Cluster.from_json(json.dumps(self.cluster))
        return found

    def list_node_pools(self, request: wire.ListNodePoolsRequest, **_: object) -> wire.ListNodePoolsResponse:
        self._note("list_node_pools", wire.ListNodePoolsRequest.pb(request))
        pools = [wire.NodePool.from_json(json.dumps(pool)) for pool in self.pools.values()]
        return wire.ListNodePoolsResponse(node_pools=pools)

    def get_node_pool(self, request: wire.GetNodePoolRequest, **_: object) -> wire.NodePool:
        self._note("get_node_pool", wire.GetNodePoolRequest.pb(request))
        name = request.name.rpartition("/")[2]
        if name not in self.pools:
            raise NotFound(f"Not found: {request.name}.")  # type: ignore[no-untyped-call]  # ships no types
        found: wire.NodePool = wire.NodePool.from_json(json.dumps(self.pools[name]))
        return found

    def create_node_pool(self, request: wire.CreateNodePoolRequest, **_: object) -> wire.Operation:
        return self._write("create_node_pool", wire.CreateNodePoolRequest.pb(request))

    def update_node_pool(self, request: wire.UpdateNodePoolRequest, **_: object) -> wire.Operation:
        return self._write("update_node_pool", wire.UpdateNodePoolRequest.pb(request))

    def set_node_pool_size(self, request: wire.SetNodePoolSizeRequest, **_: object) -> wire.Operation:
        return self._write("set_node_pool_size", wire.SetNodePoolSizeRequest.pb(request))

    def set_node_pool_autoscaling(self, request: wire.SetNodePoolAutoscalingRequest, **_: object) -> wire.Operation:
        return self._write("set_node_pool_autoscaling", wire.SetNodePoolAutoscalingRequest.pb(request))

    def set_node_pool_management(self, request: wire.SetNodePoolManagementRequest, **_: object) -> wire.Operation:
        return self._write("set_node_pool_management", wire.SetNodePoolManagementRequest.pb(request))

    def delete_node_pool(self, request: wire.DeleteNodePoolRequest, **_: object) -> wire.Operation:
        return self._write("delete_node_pool", wire.DeleteNodePoolRequest.pb(request))

    def get_operation(self, request: wire.GetOperationRequest, **_: object) -> wire.Operation:
        self._note("get_operation", wire.GetOperationRequest.pb(request))
        name = request.name.rpartition("/")[2]
        if name not in self.operations:
            raise NotFound(f"Not found: {request.name}.")  # type: ignore[no-untyped-call]  # ships no types
        found: wire.Operation = wire.Operation.from_json(json.dumps(self.operations[name]))
        return found

    def _write(self, call: str, message: object) -> wire.Operation:
        self._note(call, message)
        if self.failure is not None:
            raise self.failure
        return wire.Operation(name="operation-1")

    def _note(self, call: str, message: object) -> None:
        self.calls.append((call, MessageToDict(message)))
