"""The part of the Azure SDK that gpukube uses, as protocols; a fake of it is twenty lines.

In scope: the operations used, and what gpukube reads from their responses. Out of scope: importing the SDK at run time.

The signatures match azure-mgmt-containerservice 41.8.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from azure.core import MatchConditions
    from azure.core.pipeline import PipelineResponse
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.containerservice.models import AgentPool


class Resource(Protocol):
    """A model of the SDK; 41.x keeps unknown members."""

    def as_dict(self) -> dict[str, object]:
        """Return the wire form."""


class Kubeconfig(Protocol):
    """One kubeconfig of a cluster, already decoded by the SDK."""

    @property
    def value(self) -> bytes | None:
        """The file."""


class Kubeconfigs(Protocol):
    """Response of listClusterUserCredential."""

    @property
    def kubeconfigs(self) -> Sequence[Kubeconfig] | None:
        """The files; the first is the one to use."""


class AgentPools(Protocol):
    """`client.agent_pools`."""

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
        """PUT; with polling=False it does not wait."""

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
        """DELETE; 202, or 204 if there is no such pool."""

    def begin_upgrade_node_image_version(
        self,
        resource_group_name: str,
        resource_name: str,
        agent_pool_name: str,
        *,
        polling: bool,
        raw_response_hook: Callable[[PipelineResponse[HttpRequest, HttpResponse]], None],
    ) -> object:
        """POST upgradeNodeImageVersion; 202."""

    def get_upgrade_profile(self, resource_group_name: str, resource_name: str, agent_pool_name: str) -> Resource:
        """GET upgradeProfiles/default of a pool."""

    def get(self, resource_group_name: str, resource_name: str, agent_pool_name: str) -> Resource:
        """GET one pool."""

    def list(self, resource_group_name: str, resource_name: str) -> Iterable[Resource]:
        """GET all pages."""


class ManagedClusters(Protocol):
    """`client.managed_clusters`."""

    def get(self, resource_group_name: str, resource_name: str) -> Resource:
        """GET the cluster."""

    def list_cluster_user_credentials(self, resource_group_name: str, resource_name: str) -> Kubeconfigs:
        """POST listClusterUserCredential."""


class AksSdk(Protocol):
    """`ContainerServiceClient`."""

    @property
    def agent_pools(self) -> AgentPools:
        """Operations on pools."""

    @property
    def managed_clusters(self) -> ManagedClusters:
        """Operations on clusters."""

    def send_request(self, request: HttpRequest) -> HttpResponse:
        """Send anything else through the same pipeline; raises for no status."""

    def close(self) -> None:
        """Close the connections."""


class Token(Protocol):
    """An access token."""

    @property
    def token(self) -> str:
        """The token itself."""


class Credential(Protocol):
    """The part of azure-identity's credentials that gpukube uses."""

    def get_token(self, *scopes: str) -> Token:
        """Get a token for a scope."""
