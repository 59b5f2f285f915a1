"""The two ways in which tests talk to the emulated GKE: the real client over gRPC, and over REST."""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from typing import TYPE_CHECKING, Literal

import grpc  # type: ignore[import-untyped] # ships no types
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import container_v1 as wire
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

from gpukube.sandbox import daemon
from gpukube.sandbox.gke.tokens import ACCESS_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.sandbox.daemon import SandboxInfo

PROJECT = "demo-proj"
ZONE = "us-central1-a"
NAME = "train"
LOCATION = f"projects/{PROJECT}/locations/{ZONE}"
CLUSTER = f"{LOCATION}/clusters/{NAME}"
Json = dict[str, object]
DONE = 3
_PATIENCE_S = 10.0
_EVERY_S = 0.003


def pool_of(name: str, machine: str = "e2-standard-4", count: int = 1, **parts: object) -> Json:
    """A node pool as the client takes it."""
    config = {"machine_type": machine, "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    extra = parts.pop("config", {})
    assert isinstance(extra, dict)
    management = {"auto_upgrade": True, "auto_repair": True}
    return {"name": name, "initial_node_count": count, "config": config | extra, "management": management} | parts


def gpu_pool(name: str, machine: str, kind: str, gpus: int, count: int = 1, **parts: object) -> Json:
    """A node pool with GPUs; `parts` of the accelerator are its fields, others are the config's."""
    own = {key: parts.pop(key) for key in list(parts) if key.startswith("gpu_")}
    accelerator = {"accelerator_type": kind, "accelerator_count": gpus} | own
    return pool_of(name, machine, count, config={"accelerators": [accelerator]} | parts)


def mig_pool(name: str, count: int = 1) -> Json:
    """One A100 in seven."""
    return gpu_pool(name, "a2-highgpu-1g", "nvidia-tesla-a100", 1, count, gpu_partition_size="1g.5gb")


def t4_pool(name: str, count: int = 1, **parts: object) -> Json:
    """One T4, attached to an N1 machine."""
    return gpu_pool(name, "n1-standard-4", "nvidia-tesla-t4", 1, count, **parts)


def shared(strategy: Literal["TIME_SHARING", "MPS"], clients: int) -> Json:
    """A sharing config."""
    return {"gpu_sharing_strategy": strategy, "max_shared_clients_per_gpu": clients}


class Gke:
    """The real client of one emulated cluster.

    Args:
        info: The running sandbox.
        transport: "grpc" or "rest".
    """

    def __init__(self, info: SandboxInfo, transport: str) -> None:
        self.info = info
        self.transport = transport
        self._channel = grpc.insecure_channel(info.gke_grpc) if transport == "grpc" else None
        if self._channel is not None:
            self.sdk = wire.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=self._channel))
        else:
            options = {"api_endpoint": info.gke_url}
            self.sdk = wire.ClusterManagerClient(
                credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call] # ships half of its types
                transport="rest",
                client_options=options,
            )

    def close(self) -> None:
        """Close the connections."""
        self.sdk.transport.close()  # type: ignore[no-untyped-call] # as above

    def pool(self, name: str) -> wire.NodePool:
        """Get a pool."""
        return self.sdk.get_node_pool(name=f"{CLUSTER}/nodePools/{name}")

    def names(self) -> list[str]:
        """Names of the pools."""
        return [pool.name for pool in self.sdk.list_node_pools(parent=CLUSTER).node_pools]

    def begin(self, pool: Json) -> wire.Operation:
        """Begin a creation."""
        return self.sdk.create_node_pool(request={"parent": CLUSTER, "node_pool": pool}, timeout=10)

    def create(self, pool: Json) -> wire.NodePool:
        """Create and wait; gives the pool."""
        self.succeed(self.begin(pool))
        return self.pool(str(pool["name"]))

    def update(self, name: str, **fields: object) -> wire.NodePool:
        """Update one group of attributes and wait."""
        self.succeed(self.sdk.update_node_pool(request={"name": f"{CLUSTER}/nodePools/{name}", **fields}))
        return self.pool(name)

    def wait(self, operation: wire.Operation) -> wire.Operation:
        """Wait for the end of an operation, good or bad."""
        until = time.monotonic() + _PATIENCE_S
        while operation.status != DONE:
            assert time.monotonic() < until, operation
            time.sleep(_EVERY_S)
            operation = self.sdk.get_operation(name=f"{LOCATION}/operations/{operation.name}")
        return operation

    def succeed(self, operation: wire.Operation) -> wire.Operation:
        """Wait for the good end of an operation."""
        ended = self.wait(operation)
        assert not ended.status_message, ended
        assert not ended.error.code
        return ended

    def refused(self, call: Callable[[], object]) -> tuple[str, str]:
        """Canonical code and text of a call that is refused."""
        try:
            call()
        except GoogleAPICallError as error:
            if self.transport == "grpc":
                return getattr(error.grpc_status_code, "name", ""), str(error.message)
            found = error.response.json()["error"]
            return found["status"], found["message"]
        message = "the call was accepted"
        raise AssertionError(message)

    def nodes(self, pool: str = "") -> list[Json]:
        """Nodes of the cluster or of one of its pools, from the address that GetCluster gives."""
        cluster = self.sdk.get_cluster(name=CLUSTER)
        context = ssl.create_default_context(cafile=self.info.ca_path)
        url = f"https://{cluster.endpoint}/api/v1/nodes"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ACCESS_TOKEN}"})
        with urllib.request.urlopen(request, context=context) as response:  # noqa: S310 - as above
            found = json.load(response)["items"]
        return [node for node in found if pool in ("", node["metadata"]["labels"]["cloud.google.com/gke-nodepool"])]

    def devices(self, pool: str, wanted: int | None, nodes: int = 1) -> None:
        """Wait until every node of a pool offers so many devices; None for a resource that nobody ever offered."""
        until = time.monotonic() + _PATIENCE_S
        seen: list[object] = []
        while time.monotonic() < until:
            seen = [node["status"]["allocatable"].get("nvidia.com/gpu") for node in self.nodes(pool)]  # type: ignore[index]
            if seen == [None if wanted is None else str(wanted)] * nodes:
                return
            time.sleep(0.02)
        raise AssertionError(seen)


def add_cluster(info: SandboxInfo, **options: object) -> None:
    """The cluster of these tests."""
    daemon.add_gke_cluster(info, PROJECT, ZONE, NAME, options=options)
