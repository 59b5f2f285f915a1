"""The live half of AKS: the Azure SDK, its sessions, timeouts, and retries.

In scope: `AksCloud`, and creating the SDK's client. Out of scope: parsing responses (`pool.observe`, `failures`),
access to a cluster's Kubernetes API (`access`).

No call waits for an operation: the SDK's pollers block for hours and cannot be resumed after a kill. A write returns
the address of its operation, and `poll` reads it once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypedDict, cast

from azure.core import AzureClouds, MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import HeadersPolicy, HTTPPolicy, SansIOHTTPPolicy
from azure.core.rest import HttpRequest, HttpResponse
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.containerservice.models import AgentPool
from azure.mgmt.core.tools import get_arm_endpoints

from gpukube import __version__
from gpukube.cancellation import raise_if_cancelled
from gpukube.core.fields import ZONES
from gpukube.core.jsontree import at, tree
from gpukube.core.launches import Launches
from gpukube.core.upgrades import NodeOffer
from gpukube.core.values import ClusterFacts, Observed, Operation, Progress
from gpukube.endpoint import Endpoint, choose_endpoint, host_of
from gpukube.errors import AccessError, CloudError, SpecError, WrongAccount
from gpukube.kubeconfig import file_access
from gpukube.provider import CloudExtras
from gpukube_aks.facts.capacity import is_group
from gpukube_aks.facts.endpoint import is_same_origin
from gpukube_aks.facts.meanings import canceled, error_of, read_problem
from gpukube_aks.live.access import EmulatedIdentity, cloud_access, shared_credential
from gpukube_aks.live.failures import explained
from gpukube_aks.live.quotas import read_quotas
from gpukube_aks.pool.fields import RESERVATION_FIELD
from gpukube_aks.pool.observe import observe_pool, pool_error, state_of
from gpukube_aks.pool.renewing import UPGRADE_IMAGE
from gpukube_aks.pool.translate import CREATE, DELETE
from gpukube_aks.rules.cluster import check_cluster, read_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from azure.core.credentials import TokenCredential
    from azure.core.pipeline import PipelineRequest, PipelineResponse

    from gpukube.core.quotas import CloudQuota, QuotaReading
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import ClusterRef, Desired, KubeAccess, Request, Settings
    from gpukube.provider import Cloud
    from gpukube_aks.live.access import AzureCredential
    from gpukube_aks.live.sdk import AksSdk, Credential
    from gpukube_aks.rules.cluster import ClusterState

# azure-identity warns about every kind of credential that is not set up; Python prints warnings that no handler takes.
logging.getLogger("azure").addHandler(logging.NullHandler())

PUBLIC_URL: Final = "https://management.azure.com"
_CONDITIONS: Final = {
    "if-missing": MatchConditions.IfMissing,
    "if-not-modified": MatchConditions.IfNotModified,
}
_EXPANDER: Final = "random"
"""How AKS's autoscaler chooses by default (docs: aks/cluster-autoscaler, using the autoscaler profile)."""
_CONNECT_TIMEOUT_S: Final = 10.0
_RETRIES: Final = 6
_RETRY_FACTOR_S: Final = 0.8
_RETRY_FACTOR_EMULATED_S: Final = 0.05
"""Short: a local port that does not respond will not respond in ten seconds either."""
_RETRY_MAX_S: Final = 60
_UNREADABLE: Final = frozenset({403, 404})
"""Statuses of an operation that cannot be read: Azure keeps it only for a while, and it belongs to the subscription, so
a role on a resource group does not include it (microsoft/azure-container-apps#215)."""
_UNAUTHORIZED: Final = 401
_PRECONDITION: Final = 412
_NOT_READY: Final = frozenset({"Creating", "Deleting", "Starting", "Stopping"})


def connect_cluster(cluster: ClusterRef, settings: Settings) -> AksCloud:
    """Return the live half of one cluster, without any call yet.

    Raises:
        AccessError: Real credentials must not be sent to the endpoint of the settings.
    """
    endpoint = choose_endpoint("aks", settings, cluster.key)
    subscription = cluster.identity["subscription"]
    if endpoint.is_emulated:
        emulated = _emulated_client(subscription, settings, endpoint)
        return AksCloud(cluster, settings, endpoint, emulated, EmulatedIdentity(emulated, endpoint))
    authority, scopes = _sign_in(endpoint)
    credential = shared_credential(cluster.identity.get("tenant", ""), authority)
    client = _real_client(subscription, settings, endpoint, credential, scopes)
    return AksCloud(cluster, settings, endpoint, client, credential)


def connect_subscription(subscription: str, settings: Settings, endpoint: Endpoint, tenant: str = "") -> AksSdk:
    """Return a client of a subscription, with the identity that Azure's own credential chain finds.

    Args:
        subscription: Id of the subscription.
        settings: The settings of this run.
        endpoint: The client's endpoint.
        tenant: Tenant to sign in to; "" for the chain's own.
    """
    if endpoint.is_emulated:
        return _emulated_client(subscription, settings, endpoint)
    authority, scopes = _sign_in(endpoint)
    return _real_client(subscription, settings, endpoint, shared_credential(tenant, authority), scopes)


def _real_client(
    subscription: str, settings: Settings, endpoint: Endpoint, credential: AzureCredential, scopes: list[str]
) -> ContainerServiceClient:
    return ContainerServiceClient(
        credential,
        subscription,
        endpoint.url or PUBLIC_URL,
        credential_scopes=scopes,
        retry_backoff_factor=_RETRY_FACTOR_S,
        **_session(settings, credential.renew),
    )


def _emulated_client(subscription: str, settings: Settings, endpoint: Endpoint) -> ContainerServiceClient:
    """Return a client with the secret; it ignores the environment's credentials, proxies, netrc, and certificates."""
    return ContainerServiceClient(
        cast("TokenCredential", _NoCredential()),
        subscription,
        endpoint.url,
        authentication_policy=HeadersPolicy({"Authorization": f"Bearer {endpoint.secret}"}),
        use_env_settings=False,
        retry_backoff_factor=_RETRY_FACTOR_EMULATED_S,
        **_session(settings, lambda _: None),  # the secret does not expire
    )


class _NoCredential:
    """Placeholder for the credential that the client requires and its policy never uses."""


class _StopWhenCancelled(SansIOHTTPPolicy[object, object]):
    """Sends no further try of a canceled call, even after a long Retry-After."""

    def on_request(self, request: object) -> None:
        """Stop a canceled call; the pipeline calls this before each try."""
        raise_if_cancelled(request)


class _Renewed(HTTPPolicy[HttpRequest, HttpResponse]):
    """Sends a call that got a 401 once more, with a new token: a rejected call has had no effect.

    It precedes the SDK's authentication policy, which handles claims challenges itself and gets a token again after
    each 401 (azure-core, BearerTokenCredentialPolicy.send).

    Args:
        renew: Forgets the rejected token.
    """

    def __init__(self, renew: Callable[[str], None]) -> None:
        super().__init__()
        self._renew = renew

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, HttpResponse]:
        """Send a request, and once more after a 401."""
        response = self.next.send(request)
        if response.http_response.status_code != _UNAUTHORIZED:
            return response
        raise_if_cancelled()
        self._renew(request.http_request.headers.get("Authorization", "").removeprefix("Bearer "))
        return self.next.send(request)


class _Session(TypedDict):
    connection_timeout: float
    read_timeout: float
    retry_total: int
    retry_backoff_max: int
    permit_redirects: bool
    per_retry_policies: list[SansIOHTTPPolicy[object, object] | HTTPPolicy[HttpRequest, HttpResponse]]
    user_agent: str


def _session(settings: Settings, renew: Callable[[str], None]) -> _Session:
    """Return timeouts and retries of every call.

    Azure sends 429 with Retry-After; its bucket refills once a minute (docs: aks/quotas-skus-regions). The SDK honors
    Retry-After, and retries GET, PUT, and DELETE after a lost connection.
    """
    return {
        "connection_timeout": min(_CONNECT_TIMEOUT_S, settings.request_timeout_s),
        "read_timeout": settings.request_timeout_s,
        "retry_total": _RETRIES,
        "retry_backoff_max": _RETRY_MAX_S,
        "permit_redirects": False,
        "per_retry_policies": [_StopWhenCancelled(), _Renewed(renew)],
        "user_agent": f"gpukube/{__version__}",
    }


def _sign_in(endpoint: Endpoint) -> tuple[str, list[str]]:
    """Return login host and scopes of the cloud that the endpoint belongs to, else of the public cloud."""
    from azure.identity import AzureAuthorityHosts  # noqa: PLC0415 - 90 ms that an emulated Azure has no use for

    authorities = {
        AzureClouds.AZURE_PUBLIC_CLOUD: AzureAuthorityHosts.AZURE_PUBLIC_CLOUD,
        AzureClouds.AZURE_CHINA_CLOUD: AzureAuthorityHosts.AZURE_CHINA,
        AzureClouds.AZURE_US_GOVERNMENT: AzureAuthorityHosts.AZURE_GOVERNMENT,
    }
    for cloud, authority in authorities.items():
        known = get_arm_endpoints(cloud)
        if is_same_origin(endpoint.url or PUBLIC_URL, known["resource_manager"]):
            return ("" if cloud is AzureClouds.AZURE_PUBLIC_CLOUD else authority), known["credential_scopes"]
    return "", [f"{PUBLIC_URL}/.default"]


class AksCloud(CloudExtras):
    """One live cluster.

    It checks no limits: no API of AKS returns free addresses, and the number of pools has no confirmed limit.

    Args:
        cluster: The cluster.
        settings: Settings of this run.
        endpoint: Endpoint of the client.
        sdk: The client.
        credential: Identity of the run.
    """

    def __init__(
        self,
        cluster: ClusterRef,
        settings: Settings,
        endpoint: Endpoint,
        sdk: AksSdk,
        credential: Credential,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._base = endpoint.url or PUBLIC_URL
        self._sdk = sdk
        self._credential = credential
        self._path = (cluster.identity["resourceGroup"], cluster.name)
        self._state: ClusterState | None = None

    def identify(self) -> ClusterFacts:
        """Check subscription and tenant, and that the cluster exists."""
        with explained(self._cluster.key):
            native = self._sdk.managed_clusters.get(*self._path).as_dict()
        properties = tree(native, "properties")
        self._check_place(str(native.get("id", "")), str(at(native, "identity", "tenantId") or ""))
        state = str(properties.get("provisioningState") or "Unknown")
        power = str(at(properties, "powerState", "code") or "Running")
        self._state = read_cluster(native)
        return ClusterFacts(
            location=str(native.get("location", "")),
            kubernetes_version=self._state.version,
            ready=power == "Running" and state not in _NOT_READY,
            status=state if power == "Running" else power,
            endpoints={} if isinstance(self._credential, EmulatedIdentity) else {"arm": host_of(self._base)},
            channel=_channel(properties),
            expander=str(at(properties, "autoScalerProfile", "expander") or _EXPANDER),
        )

    def pools(self) -> tuple[Observed, ...]:
        """List every pool of the cluster."""
        with explained(self._cluster.key):
            return tuple(observe_pool(pool.as_dict()) for pool in self._sdk.agent_pools.list(*self._path))

    def pool(self, name: str) -> Observed | None:
        """Read one pool with one GET; return None if it does not exist."""
        with explained(self._where(name)):
            native = self._get(name)
        return None if native is None else observe_pool(native)

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Read the newest node image from the pool's upgrade profile."""
        if self._state is None:
            self.identify()
        version = kubernetes or (self._state.version if self._state else "")
        try:
            with explained(self._where(observed.name)):
                profile = self._sdk.agent_pools.get_upgrade_profile(*self._path, observed.name).as_dict()
        except AccessError as error:
            fix = "allow Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles/read"
            return NodeOffer(version, unknown=f"the newest node image cannot be read: {error}", fix=fix)
        return NodeOffer(version, str(at(profile, "properties", "latestNodeImageVersion") or "") or None)

    def complete(self, desired: Desired) -> Desired:
        """Return the pool unchanged, after checking it: AKS sets subnet, image, and disk itself, without drift.

        Raises:
            SpecError: The cluster excludes a requested feature: its version, its identity, node auto-provisioning.
        """
        if self._state is None:
            self.identify()
        if self._state and (problems := check_cluster(desired.target, self._state)):
            raise SpecError.of(problems)
        return desired

    def send(self, request: Request) -> Operation:
        """Start a change; deleting a missing pool returns an operation that `poll` reports as done."""
        pool = str(request.params["pool"])
        if request.operation == DELETE:
            return self._delete(pool, request.params)
        if request.operation == UPGRADE_IMAGE:
            return self._upgrade_image(pool)
        if request.operation != CREATE:
            raise CloudError(f"AKS has no operation {request.operation}", where=self._where(pool))
        return self._put(pool, request.params)

    def poll(self, operation: Operation) -> Progress:
        """Check once: the operation if its address is known and readable, else the pool."""
        if operation.handle:
            with explained(self._where(operation.pool)):
                response = self._sdk.send_request(HttpRequest("GET", operation.handle))
                if response.status_code not in _UNREADABLE:
                    return self._progress(operation, response)
        return self._follow_pool(operation)

    def kube_access(self) -> KubeAccess:
        """Return access with a complete kubeconfig: the spec's file, else AKS's."""
        if self._cluster.kubeconfig or self._cluster.context:
            return file_access(self._cluster, sandbox=self._settings.sandbox)
        return cloud_access(self._cluster, self._sdk, self._credential)

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read quotas of the subscription in the region; an unreadable one contains the reason."""
        return read_quotas(self._sdk, self._base, asked, self._cluster.key)

    def launches(self, observed: Observed) -> Launches:
        """Return the error of the pool as read: AKS reports neither times nor successful launches."""
        return Launches(pool_error(observed.native, self._where(observed.name)))

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """Read the capacity reservation group, and its reservations of the pool's size and zones."""
        group, zones = str(pool.fields.get(RESERVATION_FIELD) or ""), pool.fields.get(ZONES)
        if not is_group(group):
            return None
        from gpukube_aks.live.reservations import find_reserved  # noqa: PLC0415 - only for reserved pools

        size = pool.instance_type if isinstance(pool, Observed) else pool.target.machine.name
        try:
            with explained(self._cluster.key):
                return find_reserved(self._sdk, self._base, group, size, zones if isinstance(zones, tuple) else ())
        except AccessError:
            return None

    def close(self) -> None:
        """Close all connections."""
        self._sdk.close()

    def _where(self, pool: str) -> str:
        return f"{self._cluster.key}/{pool}"

    def _check_place(self, resource_id: str, tenant: str) -> None:
        """Compare the cluster's subscription and tenant with the spec's; ARM ids ignore case."""
        subscription = resource_id.split("/")[2] if resource_id.count("/") > 1 else ""
        desired = self._cluster.identity
        for field, found in (("subscription", subscription), ("tenant", tenant)):
            requested = desired.get(field, "")
            is_domain = field == "tenant" and "." in requested
            if requested and found and not is_domain and requested.lower() != found.lower():
                raise WrongAccount(
                    f"the cluster is in {field} {found}, not {requested}",
                    where=self._cluster.key,
                    fix=f"check clusters.{self._cluster.key}.{field}",
                    code=field,
                )

    def _put(self, pool: str, params: Mapping[str, object]) -> Operation:
        answer = _Answer()
        with explained(self._where(pool)):
            self._sdk.agent_pools.begin_create_or_update(
                *self._path,
                pool,
                AgentPool(tree(params, "body")),
                etag=_text(params.get("etag")),
                match_condition=_CONDITIONS.get(str(params.get("match_condition"))),
                polling=False,
                raw_response_hook=answer,
            )
        verb = "create" if params.get("match_condition") == "if-missing" else "update"
        return Operation(pool, "create" if verb == "create" else "update", self._handle(answer))

    def _upgrade_image(self, pool: str) -> Operation:
        answer = _Answer()
        with explained(self._where(pool)):
            self._sdk.agent_pools.begin_upgrade_node_image_version(
                *self._path, pool, polling=False, raw_response_hook=answer
            )
        return Operation(pool, "update", self._handle(answer))

    def _delete(self, pool: str, params: Mapping[str, object]) -> Operation:
        answer = _Answer()
        with explained(self._where(pool)):
            try:
                self._sdk.agent_pools.begin_delete(
                    *self._path,
                    pool,
                    etag=_text(params.get("etag")),
                    match_condition=_CONDITIONS.get(str(params.get("match_condition"))),
                    polling=False,
                    raw_response_hook=answer,
                )
            except ResourceNotFoundError:
                return Operation(pool, "delete")
            except HttpResponseError as error:
                # If-Match on a pool that no longer exists fails too (docs: aks/use-etags).
                if error.status_code == _PRECONDITION and self._get(pool) is None:
                    return Operation(pool, "delete")
                raise
        return Operation(pool, "delete", self._handle(answer))

    def _handle(self, answer: _Answer) -> str:
        """Return the address of the operation; "" if it is on another host, which would get our token."""
        return answer.operation if is_same_origin(answer.operation, self._base) else ""

    def _get(self, pool: str) -> Mapping[str, object] | None:
        try:
            return self._sdk.agent_pools.get(*self._path, pool).as_dict()
        except ResourceNotFoundError:
            return None

    def _progress(self, operation: Operation, response: HttpResponse) -> Progress:
        if response.status_code >= 400:  # noqa: PLR2004 - HTTP's own threshold
            raise HttpResponseError(response=response)
        document = tree(response.json())
        status = str(document.get("status") or "InProgress")
        where = self._where(operation.pool)
        if status == "Canceled":
            return Progress(done=False, status=status, error=canceled(where))
        if status == "Failed":
            problem = read_problem(200, document, response.headers.get("x-ms-request-id", ""))
            return Progress(done=False, status=status, error=error_of(problem, where))
        if status == "Succeeded" and operation.verb == "delete":
            return self._follow_pool(operation)
        wait = _seconds(response.headers.get("Retry-After"))
        return Progress(done=status == "Succeeded", status=status, retry_after_s=wait)

    def _follow_pool(self, operation: Operation) -> Progress:
        where = self._where(operation.pool)
        with explained(where):
            native = self._get(operation.pool)
        if native is None:
            return _gone(operation, where)
        state, status = state_of(tree(native, "properties"))
        if error := pool_error(native, where):
            return Progress(done=False, status=status, error=error)
        return Progress(done=state == "ready" and operation.verb != "delete", status=status)


class _Answer:
    """Hook that keeps the operation address of the last response."""

    def __init__(self) -> None:
        self.operation = ""

    def __call__(self, response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        headers = response.http_response.headers
        self.operation = str(headers.get("Azure-AsyncOperation") or "")


def _channel(properties: Mapping[str, object]) -> str:
    """Return the channels by which AKS upgrades nodes (docs: aks/auto-upgrade-cluster, auto-upgrade-node-os-image)."""
    profile = tree(properties, "autoUpgradeProfile")
    channels = ((name, str(profile.get(name) or "")) for name in ("upgradeChannel", "nodeOSUpgradeChannel"))
    return ", ".join(f"{name} {word}" for name, word in channels if word.lower() not in ("", "none", "unmanaged"))


def _gone(operation: Operation, where: str) -> Progress:
    if operation.verb == "delete":
        return Progress(done=True, status="Deleted")
    fix = "run the same command again: it reads the live state first"
    error = CloudError("the pool no longer exists", where=where, fix=fix, code="pool-gone")
    return Progress(done=False, status="NotFound", error=error)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return str(value) if value else None


if TYPE_CHECKING:
    _: type[Cloud] = AksCloud
