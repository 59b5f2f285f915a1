"""An AKS of dictionaries behind the SDK's protocol: canned answers, errors, and what was asked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from azure.core.exceptions import ResourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from azure.core import MatchConditions
    from azure.core.pipeline import PipelineResponse
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.containerservice.models import AgentPool


@dataclass
class FakeAnswer:
    """As much of an HTTP answer as is read."""

    body: object = None
    status_code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def json(self) -> object:
        return self.body

    def text(self) -> str:
        return json.dumps(self.body)

    def raise_for_status(self) -> None:
        assert self.status_code < 400


@dataclass
class Headers:
    """A pipeline's answer to a write."""

    http_response: FakeAnswer


@dataclass
class FakeResource:
    """A model of the SDK."""

    wire: dict[str, object]

    def as_dict(self) -> dict[str, object]:
        return self.wire


@dataclass
class FakeKubeconfig:
    """One kubeconfig."""

    value: bytes | None


@dataclass
class FakeKubeconfigs:
    """The answer of listClusterUserCredential."""

    kubeconfigs: list[FakeKubeconfig] | None


@dataclass
class FakeSdk:
    """The client; it is its own `agent_pools` and `managed_clusters`.

    Attributes:
        pools: Live pools by name, in wire form.
        cluster: The managed cluster in wire form.
        operation: Address that a write answers with; "" for none.
        answers: What the address answers, one by one.
        failure: Raised by the next write.
        kubeconfig: What listClusterUserCredential gives.
        calls: What was asked, in order.
    """

    pools: dict[str, dict[str, object]] = field(default_factory=dict)
    cluster: dict[str, object] = field(default_factory=dict)
    operation: str = ""
    answers: list[FakeAnswer] = field(default_factory=list)
    failure: Exception | None = None
    kubeconfig: bytes | None = None
    calls: list[tuple[object, ...]] = field(default_factory=list)
    closed: bool = False

    @property
    def agent_pools(self) -> FakePools:
        return FakePools(self)

    @property
    def managed_clusters(self) -> FakeClusters:
        return FakeClusters(self)

    def send_request(self, request: HttpRequest) -> HttpResponse:
        self.calls.append(("send", request.method, request.url))
        return self.answers.pop(0)  # type: ignore[return-value]  # all that is read is there

    def close(self) -> None:
        self.closed = True

    def write(self, *call: object, hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None]) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
        headers = {"Azure-AsyncOperation": self.operation} if self.operation else {}
        hook(Headers(FakeAnswer(headers=headers)))  # type: ignore[arg-type]  # all that is read is there


@dataclass
class FakePools:
    """Operations on pools."""

    sdk: FakeSdk

    def begin_create_or_update(  # noqa: PLR0913 - the SDK's own signature
        self,
        resource_group_name: str,
        resource_name: str,
        agent_pool_name: str,
        parameters: AgentPool,
        *,
        etag: str | None,
        match_condition: MatchConditions | None,
        polling: bool,
        raw_response_hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None],
    ) -> object:
        path = f"{resource_group_name}/{resource_name}/{agent_pool_name}"
        call = ("put", path, parameters.as_dict(), etag, match_condition, polling)
        self.sdk.write(*call, hook=raw_response_hook)
        return None

    def begin_upgrade_node_image_version(
        self,
        resource_group_name: str,
        resource_name: str,
        agent_pool_name: str,
        *,
        polling: bool,
        raw_response_hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None],
    ) -> object:
        path = f"{resource_group_name}/{resource_name}/{agent_pool_name}"
        self.sdk.write("image", path, None, None, None, polling, hook=raw_response_hook)
        return None

    def get_upgrade_profile(self, resource_group_name: str, resource_name: str, agent_pool_name: str) -> FakeResource:
        return self.get(resource_group_name, resource_name, agent_pool_name)

    def begin_delete(  # noqa: PLR0913 - the SDK's own signature
        self,
        resource_group_name: str,
        resource_name: str,
        agent_pool_name: str,
        *,
        etag: str | None,
        match_condition: MatchConditions | None,
        polling: bool,
        raw_response_hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None],
    ) -> object:
        path = f"{resource_group_name}/{resource_name}/{agent_pool_name}"
        self.sdk.write("delete", path, etag, match_condition, polling, hook=raw_response_hook)
        return None

    def get(self, resource_group_name: str, resource_name: str, agent_pool_name: str) -> FakeResource:
        self.sdk.calls.append(("get", f"{resource_group_name}/{resource_name}/{agent_pool_name}"))
        if agent_pool_name not in self.sdk.pools:
            raise ResourceNotFoundError("no such pool")
        return FakeResource(self.sdk.pools[agent_pool_name])

    def list(self, resource_group_name: str, resource_name: str) -> Iterable[FakeResource]:
        self.sdk.calls.append(("list", f"{resource_group_name}/{resource_name}"))
        return [FakeResource(pool) for pool in self.sdk.pools.values()]


@dataclass
class FakeClusters:
    """Operations on clusters."""

    sdk: FakeSdk

    def get(self, resource_group_name: str, resource_name: str) -> FakeResource:
        self.sdk.calls.append(("cluster", f"{resource_group_name}/{resource_name}"))
        return FakeResource(self.sdk.cluster)

    def list_cluster_user_credentials(self, resource_group_name: str, resource_name: str) -> FakeKubeconfigs:
        self.sdk.calls.append(("credentials", f"{resource_group_name}/{resource_name}"))
        if self.sdk.failure is not None:
            raise self.sdk.failure
        return FakeKubeconfigs(None if self.sdk.kubeconfig is None else [FakeKubeconfig(self.sdk.kubeconfig)])
