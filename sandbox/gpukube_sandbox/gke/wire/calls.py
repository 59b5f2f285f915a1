"""The calls of ClusterManager, each with its messages and its REST form.

In scope: the table, and mapping a REST path to a request. Out of scope: sockets, the calls' behavior.

Source: the HTTP annotations of google/container/v1/cluster_service.proto.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.wire.answers import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE = "google.container.v1.ClusterManager"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ClusterManager.

    Attributes:
        name: Name in the service definition.
        request: Type of its request.
        verb: HTTP method.
        below: Path after the `name` or `parent`.
        kind: Kind of the named resource: "location", "cluster", "pool", or "operation".
        field: "name" or "parent".
    """

    name: str
    request: type
    verb: str
    kind: str
    below: str = ""
    field: str = "name"
    body: bool = False

    @property
    def method(self) -> str:
        """Return the name of the service's method."""
        return re.sub(r"(?<!^)([A-Z])", r"_\1", self.name).lower()

    def answer(self, service: object, request: object) -> object:
        """Return the response of the service's method for this call.

        Raises:
            GoogleError: The service's error.
        """
        handler: Callable[[object], object] = getattr(service, self.method)
        return handler(request)

    def path(self, request: object) -> str:
        """Return the REST path for the log; its parts are empty if the old fields were used."""
        return f"/v1/{getattr(request, self.field)}{self.below}"


CALLS = (
    Call("ListClusters", wire.ListClustersRequest, "GET", "location", "/clusters", "parent"),
    Call("GetCluster", wire.GetClusterRequest, "GET", "cluster"),
    Call("UpdateCluster", wire.UpdateClusterRequest, "PUT", "cluster", body=True),
    Call("ListNodePools", wire.ListNodePoolsRequest, "GET", "cluster", "/nodePools", "parent"),
    Call("GetNodePool", wire.GetNodePoolRequest, "GET", "pool"),
    Call("CreateNodePool", wire.CreateNodePoolRequest, "POST", "cluster", "/nodePools", "parent", body=True),
    Call("UpdateNodePool", wire.UpdateNodePoolRequest, "PUT", "pool", body=True),
    Call("DeleteNodePool", wire.DeleteNodePoolRequest, "DELETE", "pool"),
    Call("SetNodePoolSize", wire.SetNodePoolSizeRequest, "POST", "pool", ":setSize", body=True),
    Call("SetNodePoolAutoscaling", wire.SetNodePoolAutoscalingRequest, "POST", "pool", ":setAutoscaling", body=True),
    Call("SetNodePoolManagement", wire.SetNodePoolManagementRequest, "POST", "pool", ":setManagement", body=True),
    Call("GetOperation", wire.GetOperationRequest, "GET", "operation"),
    Call("ListOperations", wire.ListOperationsRequest, "GET", "location", "/operations", "parent"),
    Call("CancelOperation", wire.CancelOperationRequest, "POST", "operation", ":cancel", body=True),
    Call("GetServerConfig", wire.GetServerConfigRequest, "GET", "location", "/serverConfig"),
)

_LOCATION = r"projects/[^/:]+/(?:locations|zones)/[^/:]+"
_NAMES = {
    "location": _LOCATION,
    "cluster": rf"{_LOCATION}/clusters/[^/:]+",
    "pool": rf"{_LOCATION}/clusters/[^/:]+/nodePools/[^/:]+",
    "operation": rf"{_LOCATION}/operations/[^/:]+",
}
_PATTERNS = [(call, re.compile(rf"/v1/(?P<name>{_NAMES[call.kind]}){re.escape(call.below)}")) for call in CALLS]


def find_call(verb: str, path: str) -> tuple[Call, str]:
    """Return the call of a REST request, and the name in its path; old paths with zones/ are also valid.

    Raises:
        GoogleError: 501 if the sandbox does not have the call, though GKE may; 404 if no Google API has it.
    """
    for call, pattern in _PATTERNS:
        found = pattern.fullmatch(path)
        if found and call.verb == verb:
            return call, found["name"]
    if path.startswith(("/v1/projects/", "/v1beta1/projects/")):
        raise GoogleError("UNIMPLEMENTED", f"The gpukube sandbox does not emulate {verb} {path}.")
    raise GoogleError("NOT_FOUND", f"The requested URL {path} was not found on this server.")
