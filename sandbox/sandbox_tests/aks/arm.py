"""The two ways in which tests talk to the emulated ARM: the real SDK, and bare HTTP for what the SDK would not send."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Self

import httpx
from azure.core.pipeline.policies import HeadersPolicy
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.containerservice.models import AgentPool

from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from azure.core.credentials import AccessToken

    from gpukube_sandbox.daemon import SandboxInfo

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
GROUP = "ml"
NAME = "train"
API = "2026-08-01"
CLUSTER_PATH = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.ContainerService/managedClusters/{NAME}"
)

Json = dict[str, object]
MIG: Json = {"count": 1, "vmSize": "Standard_ND96asr_v4", "gpuInstanceProfile": "MIG1g"}
T4: Json = {"count": 1, "vmSize": "Standard_NC4as_T4_v3"}


class NoCredential:
    """What the SDK wants to hold; never asked over plain http."""

    def get_token(self, *scopes: str, **_: object) -> AccessToken:
        """Fail the test: no token may travel."""
        message = f"a token was asked for: {scopes}"
        raise AssertionError(message)


class Arm:
    """A client of one emulated cluster.

    Args:
        info: The running sandbox.
    """

    def __init__(self, info: SandboxInfo) -> None:
        self.info = info
        self.sdk = make_sdk(info)
        self.http = arm_http(info)

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close both clients."""
        self.sdk.close()
        self.http.close()

    def create(self, name: str, properties: Mapping[str, object]) -> Json:
        """Create or update by the SDK and wait; gives the pool's properties."""
        poller = self.sdk.agent_pools.begin_create_or_update(GROUP, NAME, name, pool_of(properties))
        return dict(poller.result().as_dict()["properties"])

    def get(self, name: str) -> Json:
        """Properties of a pool, by the SDK."""
        return dict(self.sdk.agent_pools.get(GROUP, NAME, name).as_dict()["properties"])

    def put(
        self,
        name: str,
        properties: Mapping[str, object],
        *,
        api: str = API,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """PUT by bare HTTP."""
        path = f"{CLUSTER_PATH}/agentPools/{name}"
        body = {"properties": properties}
        return self.http.put(path, params={"api-version": api}, json=body, headers=dict(headers or {}))

    def request(
        self, method: str, below: str, *, api: str = API, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Any call below the cluster by bare HTTP."""
        return self.http.request(method, CLUSTER_PATH + below, params={"api-version": api}, headers=dict(headers or {}))


def arm_http(info: SandboxInfo) -> httpx.Client:
    """Bare HTTP, with the dummy token."""
    return httpx.Client(base_url=info.arm_url, headers=signed(info), trust_env=False, timeout=PATIENCE_S)


def make_sdk(info: SandboxInfo) -> ContainerServiceClient:
    """The real SDK over plain http: with a policy that sends the dummy token there."""
    return ContainerServiceClient(
        NoCredential(),
        SUBSCRIPTION,
        base_url=info.arm_url,
        authentication_policy=HeadersPolicy(signed(info)),
        retry_total=0,
    )


def trusting(info: SandboxInfo) -> ssl.SSLContext:
    """A TLS context that trusts the sandbox's authority and no other."""
    return ssl.create_default_context(cafile=info.ca_path)


def pool_of(properties: Mapping[str, object]) -> AgentPool:
    """A model of the SDK from wire properties."""
    return AgentPool({"properties": dict(properties)})
