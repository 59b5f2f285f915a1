"""The live half of GKE: Google's SDK, its transports, time-outs and retries.

In scope: `GkeCloud`, and creating the SDK's client. Out of scope: interpreting responses (`pool.observe`, `failures`),
access to a cluster's Kubernetes API (`access`).

Nothing here waits for an operation: a write returns its operation's name, and `poll` checks once.
"""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, cast

import grpc  # type: ignore[import-untyped]  # ships no types
import requests
from google.api_core.exceptions import NotFound, Unauthenticated
from google.api_core.gapic_v1.client_info import ClientInfo
from google.api_core.retry import Retry
from google.auth.transport.requests import AuthorizedSession
from google.cloud import container_v1 as wire
from google.cloud.container_v1.services.cluster_manager.transports import (
    ClusterManagerGrpcTransport,
    ClusterManagerRestTransport,
)
from google.oauth2.credentials import Credentials as TokenCredentials
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.cancellation import raise_if_cancelled
from gpukube.core.jsontree import at, tree
from gpukube.core.launches import Launches
from gpukube.core.meanings import Problem
from gpukube.core.quotas import QuotaReading
from gpukube.core.upgrades import NodeOffer
from gpukube.core.values import ClusterFacts, Operation
from gpukube.errors import AccessError, CloudError, GpukubeError, NoCluster, WrongAccount
from gpukube.kubeconfig import file_access
from gpukube.provider import CloudExtras
from gpukube_gke.facts.endpoint import choose_endpoint
from gpukube_gke.facts.meanings import error_of
from gpukube_gke.facts.places import cluster_name, operation_name, pool_name, project_of
from gpukube_gke.live.access import AGENT, EmulatedIdentity, GoogleIdentity, cloud_access, named, shared_identity
from gpukube_gke.live.failures import explained, is_passing, is_throttled
from gpukube_gke.live.offers import offered_zones
from gpukube_gke.live.quotas import QuotaReader
from gpukube_gke.pool.change import MANAGE
from gpukube_gke.pool.effects import UPDATE
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.pool.placement import choose_zone
from gpukube_gke.pool.progress import operation_progress, pool_error, pool_progress
from gpukube_gke.pool.purchase import reserved_name
from gpukube_gke.pool.sizes import AUTOSCALE, RESIZE
from gpukube_gke.pool.translate import CREATE, DELETE, needs_zone, with_zones
from gpukube_gke.rules.versions import is_picky, require_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.quotas import CloudQuota
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import ClusterRef, Desired, KubeAccess, Observed, Progress, Request, Settings
    from gpukube.provider import Cloud
    from gpukube_gke.facts.endpoint import Endpoint
    from gpukube_gke.live.sdk import GkeSdk, Identity

_RETRY_FIRST_S: Final = 1.0
_RETRY_FIRST_EMULATED_S: Final = 0.05
_RETRY_FACTOR: Final = 2.0
_RETRY_MAX_S: Final = 20.0
_RETRY_TOTAL_S: Final = 120.0
_REPEATS_EMULATED: Final = 7
"""Retries for a port on this machine: if it does not answer within seconds, it will not within two minutes. A count
rather than a time, because a stalled machine lets time pass without a retry."""
_SECRET_LASTS: Final = timedelta(hours=1)
_READY: Final = frozenset({"RUNNING", "RECONCILING", "DEGRADED"})


def connect_cluster(cluster: ClusterRef, settings: Settings) -> GkeCloud:
    """Create the live half of one cluster without any call or credential lookup.

    Raises:
        AccessError: Real credentials must not be sent to the configured endpoint.
    """
    endpoint = choose_endpoint(settings, cluster.key)
    if endpoint.is_emulated:
        emulated = EmulatedIdentity(endpoint.secret)
        return GkeCloud(cluster, settings, endpoint, lambda: _emulated_client(endpoint), emulated)
    identity, project = shared_identity(cluster.identity.get("impersonate", "")), cluster.identity["project"]
    return GkeCloud(
        cluster,
        settings,
        endpoint,
        lambda: _real_client(endpoint, identity),
        identity,
        offers=lambda accelerator: offered_zones(identity, project, accelerator, settings.request_timeout_s),
    )


def _not_known(accelerator: str) -> frozenset[str]:
    """Compute Engine of an emulated Google Cloud."""
    del accelerator
    return frozenset()


def _real_client(endpoint: Endpoint, identity: GoogleIdentity) -> GkeSdk:
    options = {"api_endpoint": endpoint.url} if endpoint.url else {}
    transport = "rest" if endpoint.url else "grpc"
    client = wire.ClusterManagerClient(
        credentials=identity.credentials(), transport=transport, client_options=options, client_info=_info()
    )
    return cast("GkeSdk", client)


def _emulated_client(endpoint: Endpoint) -> GkeSdk:
    """Return a client with the secret; it ignores credentials, proxies, and netrc of the environment."""
    if endpoint.grpc:
        channel = grpc.insecure_channel(endpoint.grpc, options=[("grpc.enable_http_proxy", 0)])
        signed = grpc.intercept_channel(channel, _WithToken(endpoint.secret))
        tunnel = ClusterManagerGrpcTransport(channel=signed, client_info=_info())
        return cast("GkeSdk", wire.ClusterManagerClient(transport=tunnel, client_info=_info()))
    credentials = TokenCredentials(  # type: ignore[no-untyped-call]  # google-auth has no types
        endpoint.secret, refresh_handler=partial(_secret_again, endpoint.secret)
    )
    client = wire.ClusterManagerClient(
        credentials=credentials,
        transport="rest",
        client_options={"api_endpoint": endpoint.url},
        client_info=_info(),
    )
    transport = client.transport
    if isinstance(transport, ClusterManagerRestTransport):
        transport._session.trust_env = False  # noqa: SLF001 - the SDK has no other way to ignore proxies
    return cast("GkeSdk", client)


def _secret_again(secret: str, request: object, scopes: object) -> tuple[str, datetime]:
    """Return the secret again; google-auth expects the expiry in UTC without a time zone."""
    del request, scopes
    return secret, datetime.now(UTC).replace(tzinfo=None) + _SECRET_LASTS


def _info() -> ClientInfo:
    return ClientInfo(user_agent=AGENT)  # type: ignore[no-untyped-call]  # google-api-core has no types there


class _WithToken(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc ships no types
    """Adds the secret to each call: gRPC itself sends credentials only over TLS."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.ClientCallDetails, object], object],
        client_call_details: grpc.ClientCallDetails,
        request: object,
    ) -> object:
        """Add the secret to the metadata of a call."""
        metadata = [*(client_call_details.metadata or ()), ("authorization", f"Bearer {self._secret}")]
        return continuation(client_call_details._replace(metadata=metadata), request)


class GkeCloud(CloudExtras):
    """One live cluster.

    No limits are checked: pod ranges do not show how many of their addresses are in use.

    Args:
        cluster: The cluster.
        settings: Settings of this run.
        endpoint: The client's endpoint.
        make_sdk: Creates the client on the first call, because looking up Google's credentials uses the network.
        identity: The caller's identity.
        offers: Returns the zones with an accelerator type; empty if unknown.
    """

    def __init__(  # noqa: PLR0913 - everything that one cluster needs
        self,
        cluster: ClusterRef,
        settings: Settings,
        endpoint: Endpoint,
        make_sdk: Callable[[], GkeSdk],
        identity: Identity,
        *,
        offers: Callable[[str], frozenset[str]] = _not_known,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._make_sdk = make_sdk
        self._identity = identity
        self._offers = offers
        self._sdk: GkeSdk | None = None
        self._native: Mapping[str, object] | None = None
        self._lock = threading.Lock()
        self._is_emulated = endpoint.is_emulated
        self._base = endpoint.url if endpoint.is_emulated else ""

    def identify(self) -> ClusterFacts:
        """Check the project, and that the cluster exists and can have node pools."""
        native = self._read_cluster()
        self._check_project(native)
        if at(native, "autopilot", "enabled"):
            raise NoCluster(
                "the cluster is an Autopilot cluster, whose nodes Google manages; it cannot have node pools",
                where=self._cluster.key,
                fix="use a Standard cluster",
                code="autopilot",
            )
        status = str(native.get("status") or "STATUS_UNSPECIFIED")
        return ClusterFacts(
            location=str(native.get("location", "")),
            kubernetes_version=str(native.get("currentMasterVersion", "")).partition("-")[0],
            ready=status in _READY,
            status=status,
            endpoints={} if self._is_emulated else {"container": self._client().api_endpoint},
            channel=str(at(native, "releaseChannel", "channel") or ""),
        )

    def pools(self) -> tuple[Observed, ...]:
        """List every pool of the cluster; the response is not paged."""
        request = wire.ListNodePoolsRequest(parent=cluster_name(self._cluster))
        with explained(self._cluster.key):
            found = self._client().list_node_pools(request, retry=self._retry(is_passing), timeout=self._timeout)
            return tuple(observe_pool(_json(pool), self._cluster, self._native or {}) for pool in found.node_pools)

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Return the control plane's version including the build; the node image follows it."""
        del observed
        native = self._native or self._read_cluster()
        return NodeOffer(kubernetes or str(native.get("currentMasterVersion") or ""))

    def complete(self, desired: Desired) -> Desired:
        """Choose one zone if the spec names none and the cluster has several; check the cluster's version.

        Raises:
            SpecError: The cluster has no zone with the GPU, or its control plane is too old.
        """
        if is_picky(desired.target):
            plane = str((self._native or self._read_cluster()).get("currentMasterVersion", ""))
            require_version(desired.target, plane)
        if not needs_zone(desired):
            return desired
        return with_zones(desired, choose_zone(desired, self._native or self._read_cluster(), self._offers))

    def pool(self, name: str) -> Observed | None:
        """Read one pool."""
        native = self._read_pool(name)
        return None if native is None else observe_pool(native, self._cluster, self._native or {})

    def send(self, request: Request) -> Operation:
        """Start a change; deleting a missing pool returns an operation that `poll` reports as done.

        The calls that set size, autoscaling, and management accept no etag: the request's etag is compared with the
        live pool right before each attempt. A create whose response was lost is retried only if the pool does not
        exist; an update carries its etag, which no longer matches once the update took effect.
        """
        params = dict(request.params)
        pool = _subject(params)
        if request.operation not in _WRITES:
            raise CloudError(f"GKE has no operation {request.operation}", where=self._where(pool))
        read, verb = _WRITES[request.operation]
        require_repeatable: Callable[[], object] = lambda: None  # noqa: E731 - a delete, or an update with an etag
        if request.operation in _UNGUARDED:
            require_repeatable = partial(self._require_unmoved, pool, str(params.pop("etag", "")))
            require_repeatable()
        elif verb == "create":
            require_repeatable = partial(self._require_missing, pool)

        def passes(error: BaseException) -> bool:
            raise_if_cancelled()  # retry only while the caller still waits for the response
            if is_passing(error) and not is_throttled(error):  # a throttled call had no effect
                require_repeatable()
            return is_passing(error)

        retry = self._retry(passes)
        with explained(self._where(pool)):
            message = read(json.dumps(params))
            call: Callable[..., wire.Operation] = getattr(self._client(), request.operation)
            try:
                started = call(message, retry=retry, timeout=self._timeout)
            except NotFound:
                if verb != "delete":
                    raise
                return Operation(pool, verb)
        return Operation(pool, verb, started.name)

    def poll(self, operation: Operation) -> Progress:
        """Check once: the operation if its name is known and still kept, else the pool."""
        where = self._where(operation.pool)
        if operation.handle:
            name = operation_name(self._cluster, operation.handle)
            with explained(where), contextlib.suppress(NotFound):
                request = wire.GetOperationRequest(name=name)
                found = self._client().get_operation(request, retry=self._retry(is_passing), timeout=self._timeout)
                return operation_progress(_json(found), where)
        return pool_progress(operation, self._read_pool(operation.pool), where)

    def kube_access(self) -> KubeAccess:
        """Return a complete kubeconfig: from the spec's file, else the cluster's endpoint with an access token."""
        if self._cluster.kubeconfig or self._cluster.context:
            return file_access(self._cluster, sandbox=self._settings.sandbox)
        return cloud_access(self._cluster, self._native or self._read_cluster(), self._identity)

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read quotas of the project, regional or global; a quota that cannot be read has a reason."""
        if self._is_emulated and not self._base:
            return dict.fromkeys(asked, QuotaReading(unknown="only the emulated cloud's gRPC port is known"))
        try:
            with explained(self._cluster.key), self._open_session() as session:
                return QuotaReader(session, self._base, self._timeout, self._cluster.key).read(asked)
        except GpukubeError as error:
            return dict.fromkeys(asked, QuotaReading(unknown=str(error)))

    def launches(self, observed: Observed) -> Launches:
        """Return the error of the pool as read: GKE reports neither times nor successful launches."""
        return Launches(pool_error(observed.native, self._where(observed.name)))

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """Read the reservation from Compute Engine."""
        _, name = reserved_name(pool.fields)
        if not name or (self._is_emulated and not self._base):
            return None
        from gpukube_gke.live.reservations import find_reserved  # noqa: PLC0415 - only for reserved pools

        try:
            with explained(self._cluster.key), self._open_session() as session:
                return find_reserved(session, self._base, self._timeout, self._cluster.identity, pool.fields)
        except AccessError:
            return None

    def close(self) -> None:
        """Close all connections."""
        if self._sdk is not None:
            self._sdk.transport.close()

    @property
    def _timeout(self) -> float:
        return self._settings.request_timeout_s

    def _open_session(self) -> requests.Session:
        """Open a session for other Google APIs; proxies of the environment apply only to real ones."""
        if isinstance(self._identity, GoogleIdentity):
            credentials = self._identity.credentials()
            return named(AuthorizedSession(credentials))  # type: ignore[no-untyped-call]  # google-auth has no types
        session = named(requests.Session())
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {self._identity.token()}"
        return session

    def _retry(self, passes: Callable[[BaseException], bool]) -> Retry:
        """Return the retry policy of one call; over gRPC it renews the token once, over REST google-auth does."""
        renewals = iter((self._identity.renew,))

        def passes_renewed(error: BaseException) -> bool:
            if isinstance(error, Unauthenticated) and (renew := next(renewals, None)):  # REST raises its base class
                raise_if_cancelled()
                renew()
                return True  # a refused call had no effect
            return passes(error)

        if not self._is_emulated:
            return Retry(passes_renewed, _RETRY_FIRST_S, _RETRY_MAX_S, _RETRY_FACTOR, _RETRY_TOTAL_S)
        left = iter(range(_REPEATS_EMULATED))

        def passes_still(error: BaseException) -> bool:
            return passes_renewed(error) and next(left, None) is not None

        return Retry(passes_still, _RETRY_FIRST_EMULATED_S, _RETRY_MAX_S, _RETRY_FACTOR, _RETRY_TOTAL_S)

    def _client(self) -> GkeSdk:
        with self._lock:
            if self._sdk is None:
                self._sdk = self._make_sdk()
            return self._sdk

    def _where(self, pool: str) -> str:
        return f"{self._cluster.key}/{pool}"

    def _read_cluster(self) -> Mapping[str, object]:
        request = wire.GetClusterRequest(name=cluster_name(self._cluster))
        with explained(self._cluster.key):
            found = self._client().get_cluster(request, retry=self._retry(is_passing), timeout=self._timeout)
            self._native = _json(found)
        return self._native

    def _check_project(self, native: Mapping[str, object]) -> None:
        """Compare the project that answered with the spec's; a project number cannot be compared with an id."""
        requested, found = self._cluster.identity["project"], project_of(str(native.get("selfLink", "")))
        if found and requested != found and not found.isdigit() and not requested.isdigit():
            raise WrongAccount(
                f"the cluster is in project {found}, not {requested}",
                where=self._cluster.key,
                fix=f"check clusters.{self._cluster.key}.project",
                code="project",
            )

    def _read_pool(self, name: str) -> Mapping[str, object] | None:
        request = wire.GetNodePoolRequest(name=pool_name(self._cluster, name))
        with explained(self._where(name)):
            try:
                return _json(
                    self._client().get_node_pool(request, retry=self._retry(is_passing), timeout=self._timeout)
                )
            except NotFound:
                return None

    def _require_missing(self, pool: str) -> None:
        if self._read_pool(pool) is not None:
            problem = Problem("ALREADY_EXISTS", "the create took effect, but its response was lost")
            raise error_of(problem, self._where(pool))

    def _require_unmoved(self, pool: str, etag: str) -> None:
        found = self._read_pool(pool) if etag else None
        if found is not None and found.get("etag") != etag:
            text = "the etag changed since the pool was read"
            raise error_of(Problem("ABORTED", text), self._where(pool))


_WRITES: Final[Mapping[str, tuple[Callable[[str], object], Literal["create", "update", "delete"]]]] = {
    CREATE: (wire.CreateNodePoolRequest.from_json, "create"),
    UPDATE: (wire.UpdateNodePoolRequest.from_json, "update"),
    RESIZE: (wire.SetNodePoolSizeRequest.from_json, "update"),
    AUTOSCALE: (wire.SetNodePoolAutoscalingRequest.from_json, "update"),
    MANAGE: (wire.SetNodePoolManagementRequest.from_json, "update"),
    DELETE: (wire.DeleteNodePoolRequest.from_json, "delete"),
}
"""Operation (the SDK's method name) -> its request class and its effect on a pool."""
_UNGUARDED: Final = frozenset({RESIZE, AUTOSCALE, MANAGE})


def _subject(params: Mapping[str, object]) -> str:
    """Return the pool of a request."""
    pool = tree(params, "nodePool")
    return str(pool.get("name", "")) if pool else str(params.get("name", "")).rpartition("/")[2]


def _json(message: object) -> Mapping[str, object]:
    """Return an SDK message as JSON: camelCase, enums by name, only members that are set."""
    found: Mapping[str, object] = MessageToDict(type(message).pb(message))  # type: ignore[attr-defined]  # proto-plus
    return found


if TYPE_CHECKING:
    _: type[Cloud] = GkeCloud
