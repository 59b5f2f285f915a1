"""The part of Google's SDK that gpukube uses, as protocols; a fake of it is twenty lines.

In scope: the operations used. Out of scope: any import of the SDK at run time.

The signatures match google-cloud-container 2.67.0, `ClusterManagerClient`; requests and responses are its own messages,
which the gRPC and REST transports share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud import container_v1 as wire


class _Transport(Protocol):
    def close(self) -> None:
        """Close the connections."""


class GkeSdk(Protocol):
    """`ClusterManagerClient`."""

    @property
    def api_endpoint(self) -> str:
        """Host that the calls go to."""

    @property
    def transport(self) -> _Transport:
        """Transport of the calls."""

    def get_cluster(self, request: wire.GetClusterRequest, *, retry: Retry, timeout: float) -> wire.Cluster:
        """Read a cluster."""

    def list_node_pools(
        self, request: wire.ListNodePoolsRequest, *, retry: Retry, timeout: float
    ) -> wire.ListNodePoolsResponse:
        """List all pools; there are no pages."""

    def get_node_pool(self, request: wire.GetNodePoolRequest, *, retry: Retry, timeout: float) -> wire.NodePool:
        """Read one pool."""

    def create_node_pool(self, request: wire.CreateNodePoolRequest, *, retry: Retry, timeout: float) -> wire.Operation:
        """Start creating a pool."""

    def update_node_pool(self, request: wire.UpdateNodePoolRequest, *, retry: Retry, timeout: float) -> wire.Operation:
        """Start a change of one attribute."""

    def set_node_pool_size(
        self, request: wire.SetNodePoolSizeRequest, *, retry: Retry, timeout: float
    ) -> wire.Operation:
        """Start a change of the number of nodes."""

    def set_node_pool_autoscaling(
        self, request: wire.SetNodePoolAutoscalingRequest, *, retry: Retry, timeout: float
    ) -> wire.Operation:
        """Start a change of the autoscaling, which is replaced as a whole."""

    def set_node_pool_management(
        self, request: wire.SetNodePoolManagementRequest, *, retry: Retry, timeout: float
    ) -> wire.Operation:
        """Start a change of the management, which is replaced as a whole."""

    def delete_node_pool(self, request: wire.DeleteNodePoolRequest, *, retry: Retry, timeout: float) -> wire.Operation:
        """Start a deletion."""

    def get_operation(self, request: wire.GetOperationRequest, *, retry: Retry, timeout: float) -> wire.Operation:
        """Read an operation."""


class Identity(Protocol):
    """Identity of the run."""

    def token(self) -> str:
        """Return an access token that is valid for a while."""

    def renew(self) -> None:
        """Replace a rejected access token."""
