"""The two ways in which tests talk to the emulated GKE: the real client over gRPC, and over REST."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import ssl
import urllib.request
from typing import TYPE_CHECKING, Literal, cast

import grpc  # type: ignore[import-untyped] # ships no types
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import container_v1 as wire
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from google.oauth2.credentials import Credentials

from gpukube_sandbox import daemon
from sandbox_tests.conftest import SPEED
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo

PROJECT = "demo-proj"
ZONE = "us-central1-a"
NAME = "train"
LOCATION = f"projects/{PROJECT}/locations/{ZONE}"
CLUSTER = f"{LOCATION}/clusters/{NAME}"
Json = dict[str, object]
DONE = 3
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


class _Patient:
    """The client, each of whose calls has time enough on a busy machine: those of Google's own are 20 s.

    Args:
        client: The real one.
    """

    def __init__(self, client: wire.ClusterManagerClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        """A call with a time limit that a stall does not reach, unless it is given one."""
        found = getattr(self._client, name)
        return functools.partial(found, timeout=PATIENCE_S) if callable(found) else found


@contextlib.contextmanager
def held(info: SandboxInfo) -> Iterator[None]:
    """Let the sandbox's time stand nearly still: what takes time does not end before the block does."""
    daemon.configure(info, speed=0.001)
    yield
    daemon.configure(info, speed=SPEED)


class Gke:
    """The real client of one emulated cluster.

    Args:
        info: The running sandbox.
        transport: "grpc" or "rest".
    """

    def __init__(self, info: SandboxInfo, transport: str) -> None:
        self.info = info
        self.transport = transport
        self._channel = signed_channel(info) if transport == "grpc" else None
        if self._channel is not None:
            client = wire.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=self._channel))
        else:
            options = {"api_endpoint": info.gke_url}
            client = wire.ClusterManagerClient(
                credentials=Credentials(info.secret),  # type: ignore[no-untyped-call] # ships half of its types
                transport="rest",
                client_options=options,
            )
        self.sdk = cast("wire.ClusterManagerClient", _Patient(client))

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
        return self.sdk.create_node_pool(request={"parent": CLUSTER, "node_pool": pool})

    def create(self, pool: Json) -> wire.NodePool:
        """Create and wait; gives the pool."""
        self.succeed(self.begin(pool))
        return self.pool(str(pool["name"]))

    def update(self, name: str, **fields: object) -> wire.NodePool:
        """Update one group of attributes and wait."""
        self.succeed(self.sdk.update_node_pool(request={"name": f"{CLUSTER}/nodePools/{name}", **fields}))
        return self.pool(name)

    def wait(self, operation: wire.Operation, location: str = LOCATION) -> wire.Operation:
        """Wait for the end of an operation, good or bad."""

        def look() -> wire.Operation:
            return self.sdk.get_operation(name=f"{location}/operations/{operation.name}")

        ended = wait_for(lambda: seen if (seen := look()).status == DONE else None, look, _EVERY_S)
        assert ended is not None
        return ended

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
        found = json.loads(self._kube("/api/v1/nodes"))["items"]
        return [node for node in found if pool in ("", node["metadata"]["labels"]["cloud.google.com/gke-nodepool"])]

    def _kube(self, path: str) -> bytes:
        cluster = self.sdk.get_cluster(name=CLUSTER)
        context = ssl.create_default_context(cafile=self.info.ca_path)
        request = urllib.request.Request(f"https://{cluster.endpoint}{path}", headers=signed(self.info))
        with urllib.request.urlopen(request, context=context) as response:  # noqa: S310 - a loopback address
            found: bytes = response.read()
        return found

    def post(self, path: str, body: Json) -> None:
        """Create an object of the cluster."""
        cluster = self.sdk.get_cluster(name=CLUSTER)
        context = ssl.create_default_context(cafile=self.info.ca_path)
        headers = {**signed(self.info), "Content-Type": "application/json"}
        request = urllib.request.Request(f"https://{cluster.endpoint}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, context=context):  # noqa: S310 - a loopback address
            pass

    def version(self) -> str:
        """The version of the cluster's objects now, for `counts_since`."""
        found: str = json.loads(self._kube("/api/v1/nodes"))["metadata"]["resourceVersion"]
        return found

    def counts_since(self, pool: str, version: str, count: int) -> list[int]:
        """How many nodes a pool had after each that came or went since a version, at which it had `count`."""
        selector = f"labelSelector=cloud.google.com/gke-nodepool={pool}"
        lines = self._kube(f"/api/v1/nodes?watch=1&timeoutSeconds=1&resourceVersion={version}&{selector}").splitlines()
        steps = {"ADDED": 1, "DELETED": -1}
        moves = [steps.get(json.loads(line)["type"], 0) for line in lines]
        return list(itertools.accumulate(moves, initial=count))

    def devices(self, pool: str, wanted: int | None, nodes: int = 1) -> None:
        """Wait until every node of a pool offers so many devices; None for a resource that nobody ever offered."""

        def seen() -> list[object]:
            return [node["status"]["allocatable"].get("nvidia.com/gpu") for node in self.nodes(pool)]  # type: ignore[index]

        wait_for(lambda: seen() == [None if wanted is None else str(wanted)] * nodes, seen, 0.02)


def signed_channel(info: SandboxInfo) -> grpc.Channel:
    """A gRPC channel whose calls carry the dummy token."""
    return grpc.intercept_channel(grpc.insecure_channel(info.gke_grpc), _WithToken(info.secret))


class _WithToken(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc] # ships no types
    def __init__(self, secret: str) -> None:
        self._secret = secret

    def intercept_unary_unary(
        self, continuation: Callable[..., object], client_call_details: grpc.ClientCallDetails, request: object
    ) -> object:
        """Add the token, unless a test has sent one."""
        own = list(client_call_details.metadata or ())
        token = [] if "authorization" in dict(own) else [("authorization", f"Bearer {self._secret}")]
        return continuation(client_call_details._replace(metadata=own + token), request)


def add_cluster(info: SandboxInfo, **options: object) -> None:
    """The cluster of these tests."""
    daemon.add_gke_cluster(info, PROJECT, ZONE, NAME, options=options)
