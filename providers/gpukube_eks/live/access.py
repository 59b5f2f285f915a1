"""AWS credentials and clients, and a complete kubeconfig for a cluster.

In scope: SDK sessions with their credentials, their clients, a cluster's bearer token, and the two kinds of kubeconfig:
endpoint, CA, and token, or the user's file. Out of scope: the calls (`client`).

gpukube runs no cloud CLI and writes no exec plugin. In emulated mode it reads no file, variable, or metadata service
for credentials: the keys are the sandbox's dummies.
"""

from __future__ import annotations

import base64
import os
import threading
import zlib
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import boto3
import msgspec
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
    RefreshableCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.loaders import JSONFileLoader, Loader, create_loader
from botocore.model import ServiceId
from botocore.session import Session
from botocore.signers import RequestSigner

from gpukube import __version__
from gpukube.cancellation import raise_if_cancelled
from gpukube.core.jsontree import at
from gpukube.endpoint import host_of, is_loopback, require_safe
from gpukube.errors import AccessError, CloudError
from gpukube.kubeconfig import Entry
from gpukube_eks.live.failures import explained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from botocore.credentials import Credentials

    from gpukube.core.values import ClusterRef, KubeAccess, Settings
    from gpukube.endpoint import Endpoint
    from gpukube_eks.live.sdk import (
        AutoScalingSdk,
        Aws,
        Ec2Capacity,
        Ec2Sdk,
        Ec2Types,
        EksSdk,
        IamSdk,
        PricingSdk,
        QuotasSdk,
        ServiceName,
        SsmSdk,
        StsSdk,
    )

_DUMMY_ACCOUNT: Final = "000000000000"
"""Account of the dummy keys for an emulated AWS if no cluster names one."""
_TOKEN_PREFIX: Final = "k8s-aws-v1."  # noqa: S105 - the public prefix of every token
_CLUSTER_HEADER: Final = "x-k8s-aws-id"
_TOKEN_S: Final = 60
"""Expiry as in aws-cli; the cluster accepts a token for 15 minutes from its date, whatever this value is."""
_CONNECT_TIMEOUT_S: Final = 5.0
_ATTEMPTS: Final = 8
_ATTEMPTS_EMULATED: Final = 4
"""Maximum attempts in emulated mode: a local port that does not answer will not answer later either."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that the spec requests.

    Attributes:
        profile: Profile of the AWS configuration; "" for the default chain.
        role: ARN of a role to assume first; "" for none.
        dummy: Account of the dummy keys; "" outside emulated mode.
        secret: Secret of the dummy keys.
    """

    profile: str = ""
    role: str = ""
    dummy: str = ""
    secret: str = field(default="", repr=False)


class _Meta(Protocol):
    @property
    def endpoint_url(self) -> str:
        """Base URL of the service."""


class _AnyClient(Protocol):
    """Members of every SDK client."""

    @property
    def meta(self) -> _Meta:
        """The client's endpoint."""

    def close(self) -> None:
        """Close idle connections."""


class AwsClients:
    """The clients of one identity in one region; created on first use, thread-safe.

    Args:
        identity: The identity.
        region: The region.
        endpoint: URL that replaces AWS's own; "" for AWS.
        settings: The settings of this run.
    """

    def __init__(self, identity: Identity, region: str, endpoint: str, settings: Settings) -> None:
        self._identity = identity
        self._region = region
        self._endpoint = endpoint
        self._config = _config(settings, emulated=bool(identity.dummy))
        self._boto: Any = None  # untyped: its overloads accept only literal service names
        self._clients: dict[str, object] = {}
        self._lock = threading.Lock()

    @property
    def eks(self) -> EksSdk:
        """Clusters and node groups."""
        return cast("EksSdk", self._client("eks"))

    @property
    def ec2(self) -> Ec2Sdk:
        """Launch templates, subnets, offerings."""
        return cast("Ec2Sdk", self._client("ec2"))

    @property
    def sts(self) -> StsSdk:
        """Identity."""
        return cast("StsSdk", self._client("sts"))

    @property
    def iam(self) -> IamSdk:
        """Roles."""
        return cast("IamSdk", self._client("iam"))

    @property
    def quotas(self) -> QuotasSdk:
        """Limits of the account."""
        return cast("QuotasSdk", self._client("service-quotas"))

    @property
    def ssm(self) -> SsmSdk:
        """Public parameters."""
        return cast("SsmSdk", self._client("ssm"))

    @property
    def autoscaling(self) -> AutoScalingSdk:
        """Auto Scaling groups."""
        return cast("AutoScalingSdk", self._client("autoscaling"))

    @property
    def types(self) -> Ec2Types:
        """Instance types and their spot prices."""
        return cast("Ec2Types", self._client("ec2"))

    @property
    def capacity(self) -> Ec2Capacity:
        """Available machines."""
        return cast("Ec2Capacity", self._client("ec2"))

    @property
    def pricing(self) -> PricingSdk:
        """The price list."""
        return cast("PricingSdk", self._client("pricing"))

    def cluster_token(self, cluster: str) -> str:
        """Presign GetCallerIdentity for one cluster.

        Source:
            kubernetes-sigs/aws-iam-authenticator pkg/token/token.go; aws-cli get_token.py.
        """
        session = self._session()
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        signer = RequestSigner(
            ServiceId("STS"), self._region, "sts", "v4", credentials, session.get_component("event_emitter")
        )
        request = {
            "method": "GET",
            "url": f"https://{_sts_host(self._region)}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {_CLUSTER_HEADER: cluster},
            "context": {},
        }
        url = signer.generate_presigned_url(request, region_name=self._region, expires_in=_TOKEN_S, operation_name="")
        return _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    def hosts(self) -> dict[str, str]:
        """Return each service's host, AWS's own or one from the user's configuration."""
        services: tuple[ServiceName, ...] = ("eks", "ec2", "sts")
        return {name: host_of(cast("_AnyClient", self._client(name)).meta.endpoint_url) for name in services}

    def close(self) -> None:
        """Close the connections; the clients stay usable."""
        with self._lock:
            for client in self._clients.values():
                cast("_AnyClient", client).close()

    def _session(self) -> Session:
        return _session(self._identity, self._region, self._endpoint)

    def _client(self, service: ServiceName) -> object:
        with self._lock:
            if service not in self._clients:
                with _MAKING:
                    if self._boto is None:
                        self._boto = boto3.Session(botocore_session=self._session(), region_name=self._region)
                    client = self._boto.client(service, endpoint_url=self._endpoint or None, config=self._config)
                    client.meta.events.register("before-send", raise_if_cancelled)  # before each attempt
                    client.meta.events.register("needs-retry", partial(_renewed, self._session()))
                    self._clients[service] = client
            return self._clients[service]


def _renewed(session: Session, response: Any, request_dict: dict[str, Any], **_: object) -> int | None:  # noqa: ANN401
    """Refresh expired keys and let botocore sign and send the call again, once.

    botocore refreshes keys only by their date, and has no public call for it. Static keys cannot be refreshed: the
    error stays.

    Returns:
        Seconds to wait before the next attempt; None leaves it to other handlers (botocore, Endpoint._needs_retry).
    """
    code = response[1].get("Error", {}).get("Code") if response else ""
    if code not in _EXPIRED or _RENEWED in request_dict["context"]:
        return None
    credentials = session.get_credentials()
    if not isinstance(credentials, RefreshableCredentials):
        return None
    request_dict["context"][_RENEWED] = True
    renewable: Any = credentials
    try:
        with renewable._refresh_lock:  # noqa: SLF001
            renewable._protected_refresh(is_mandatory=True)  # noqa: SLF001
    except RuntimeError:  # the new keys have expired too, by this machine's clock: AWS's error is more specific
        return None
    return 0


_RENEWED: Final = "gpukube_renewed"
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
_MAKING: Final = threading.Lock()
"""Guards creating clients: sessions are not thread-safe for that (docs: boto3/latest/guide, sessions)."""


def connect_aws(cluster: ClusterRef, endpoint: Endpoint, settings: Settings) -> AwsClients:
    """Return the clients for a cluster; clusters of one identity and region share them, for fleets."""
    written = cluster.identity
    emulated = endpoint.is_emulated
    identity = Identity(
        profile="" if emulated else written.get("profile", ""),
        role=written.get("roleArn", ""),
        dummy=written["account"] if emulated else "",
        secret=endpoint.secret,
    )
    key = (settings.request_timeout_s, settings.connections)
    return _shared_clients(identity, written["region"], endpoint.url, key)


def connect_region(region: str, endpoint: Endpoint, settings: Settings) -> AwsClients:
    """Return the clients for a region without a cluster, with the identity from AWS's default chain."""
    identity = Identity(dummy=_DUMMY_ACCOUNT if endpoint.is_emulated else "", secret=endpoint.secret)
    return _shared_clients(identity, region, endpoint.url, (settings.request_timeout_s, settings.connections))


def cloud_access(cluster: ClusterRef, native: Mapping[str, object], aws: Aws, *, emulated: bool) -> KubeAccess:
    """Return a kubeconfig with the cluster's endpoint and a token.

    Args:
        cluster: The cluster.
        native: The cluster as DescribeCluster returns it.
        aws: Clients that create the token.
        emulated: Whether the keys are dummies.

    Raises:
        AccessError: No credentials, or real ones for a local port.
        CloudError: The cluster has no endpoint yet.
    """
    server = str(native.get("endpoint") or "")
    authority = str(at(native, "certificateAuthority", "data") or "")
    if not server:
        fix = "wait until the cluster is ACTIVE, or write clusters.*.kubeconfig"
        raise CloudError("the cluster has no Kubernetes endpoint yet", where=cluster.key, fix=fix, code="kube-endpoint")
    if is_loopback(server) and not emulated:
        message = "the cluster's endpoint is on this machine; gpukube sends no real token there"
        raise AccessError(message, where=cluster.key, fix="write clusters.*.kubeconfig", code="loopback-server")
    with explained(cluster.key):
        token = aws.cluster_token(cluster.name)
    section = {"server": server, **({"certificate-authority-data": authority} if authority else {})}
    name = str(native.get("arn") or cluster.name)
    return Entry(name, section, {"token": token}).access()


@cache
def _shared_clients(identity: Identity, region: str, endpoint: str, key: tuple[float, int]) -> AwsClients:
    from gpukube.core.values import Settings  # noqa: PLC0415 - only its two numbers are a key

    return AwsClients(identity, region, endpoint, Settings(request_timeout_s=key[0], connections=key[1]))


@cache
def _session(identity: Identity, region: str, endpoint: str) -> Session:
    """Return the session of an identity, created once; it has the credentials and the service models."""
    base = _configured(identity)
    if identity.dummy:
        base.set_credentials(f"AKIAGPUK{identity.dummy}", identity.secret)
    if not identity.role:
        return base
    assumed = _configured(identity)
    config = Config(proxies={}) if identity.dummy else None
    make_client = partial(base.create_client, region_name=region, endpoint_url=endpoint or None, config=config)
    provider = _RoleProvider(base, identity.role, make_client)
    assumed.register_component("credential_provider", CredentialResolver([provider]))
    return assumed


class Models(JSONFileLoader):
    """Loads service models in a fifth of botocore's time and memory: EC2's alone has 4 MB."""

    def load_file(self, file_path: str) -> dict[str, Any] | None:
        """Return the content of a file, given without its extension; None if it does not exist."""
        plain, packed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            model = _decoded(plain.read_bytes())
        elif packed.is_file():
            model = _decoded(_unpacked(packed.read_bytes()))
        else:
            return None
        *_, service, _, kind = plain.parts
        operations = _USED.get(service) if kind == "service-2.json" else None
        return _part(model, operations) if operations else model


def _unpacked(packed: bytes) -> bytes:
    """Decompress a gzip file into a buffer of its stored size; growing a buffer for EC2's takes twice the memory."""
    return zlib.decompress(packed, _GZIP, int.from_bytes(packed[-4:], "little") or 1)


_GZIP: Final = 31
"""Gzip format with the largest window (docs: zlib.decompress, wbits)."""

EC2_OPERATIONS: Final = (
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "CreatePlacementGroup",
    "DeleteLaunchTemplate",
    "DeletePlacementGroup",
    "DeleteTags",
    "DescribeAvailabilityZones",
    "DescribeCapacityBlockOfferings",
    "DescribeCapacityReservations",
    "DescribeInstances",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "DescribePlacementGroups",
    "DescribeRouteTables",
    "DescribeSecurityGroupRules",
    "DescribeSpotPriceHistory",
    "DescribeSubnets",
    "GetSpotPlacementScores",
)
"""The operations that `sdk` declares, of EC2's 830; only these become methods of the client."""
_USED: Final = {"ec2": EC2_OPERATIONS, "ssm": ("GetParameter",), "autoscaling": ("DescribeScalingActivities",)}
"""Operations that are kept from large service models."""


def _part(model: dict[str, Any], operations: Sequence[str]) -> dict[str, Any]:
    """Keep some operations of a model, and the shapes that they reference."""
    kept = {name: model["operations"][name] for name in operations}
    shapes: dict[str, Any] = {}
    waiting = list(_shapes_in(kept))
    while waiting:
        name = waiting.pop()
        if name not in shapes:
            shapes[name] = model["shapes"][name]
            waiting += _shapes_in(shapes[name])
    return {**model, "operations": kept, "shapes": shapes}


def _shapes_in(node: object) -> Iterator[str]:
    """Yield the names of shapes that an operation or a shape references."""
    if isinstance(node, dict):
        if isinstance(name := node.get("shape"), str):
            yield name
        for below in node.values():
            yield from _shapes_in(below)
    elif isinstance(node, list):
        for below in node:
            yield from _shapes_in(below)


_LARGE: Final = ("operations", "shapes", "services")
"""Members of models and of the endpoint table in which a run needs only a few of hundreds of values."""


def _decoded(text: bytes | msgspec.Raw) -> dict[str, Any]:
    """Decode a model or an endpoint table; large members are decoded on access."""
    model: dict[str, Any] = {}
    for name, value in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        if name == "partitions":
            model[name] = [_decoded(part) for part in msgspec.json.decode(value, type=list[msgspec.Raw])]
        else:
            model[name] = _Undecoded(value) if name in _LARGE else msgspec.json.decode(value)
    return model


class _Undecoded(dict[str, Any]):
    """An object whose members are decoded on access; a dict, since botocore merges additions into it."""

    def __init__(self, text: msgspec.Raw) -> None:
        super().__init__(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - JSON
        value = super().__getitem__(name)
        if isinstance(value, msgspec.Raw):
            value = self[name] = msgspec.json.decode(value)
        return value

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def values(self) -> Any:  # noqa: ANN401
        return [self[name] for name in self]

    def items(self) -> Any:  # noqa: ANN401
        return [(name, self[name]) for name in self]


def _configured(identity: Identity) -> Session:
    """Return a session that reads the user's AWS configuration, except in emulated mode."""
    session = _plain_session(identity)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache  # each of a fleet's clusters has a session: read files only once
def _loader(data_path: str | None) -> Loader:
    loader = create_loader(data_path)
    loader.file_loader = Models()
    return loader


def _plain_session(identity: Identity) -> Session:
    if not identity.dummy:
        session = Session(profile=identity.profile or None)
        # AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_<SERVICE>, and a profile's endpoint_url redirect every client, even those
        # that the chain creates to assume a role: so check the address of each signed request before it is sent.
        session.register("before-send", _require_safe)
        return session
    nowhere = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    return Session(session_vars={"profile": (None, None, None, None), **nowhere})


def _require_safe(**sent: Any) -> None:  # noqa: ANN401 - botocore's handler signature
    """Reject a request to an address that real keys must not sign for; botocore raises the error to the caller."""
    source = "AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_<SERVICE>, or endpoint_url in the AWS config file"
    require_safe(sent["request"].url, "EKS", source=source, carries="a signed request and its session token")


class _KeepsNothing(dict[str, Any]):
    """A cache that stores nothing: credentials cache themselves, and a refresh must return new ones."""

    def __setitem__(self, key: str, value: object) -> None:
        """Discard the value."""


class _RoleProvider(CredentialProvider):
    """Assumes a role with another session's credentials, and again before they expire."""

    METHOD = "gpukube-assume-role"

    def __init__(self, source: Session, role: str, make_client: object) -> None:
        super().__init__()
        self._source = source
        self._role = role
        self._make_client = make_client

    def load(self) -> Credentials:
        """Return credentials that are fetched on first use."""
        found = self._source.get_credentials()
        if found is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(
            self._make_client,  # type: ignore[arg-type]  # a client's constructor with two arguments bound
            found,
            self._role,
            extra_args={"RoleSessionName": "gpukube"},
            cache=_KeepsNothing(),
        )
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method=self.METHOD)


def _config(settings: Settings, *, emulated: bool) -> Config:
    """Return timeouts and retries of every call; the SDK's defaults are 60 seconds and 3 attempts.

    Emulated mode ignores proxies and endpoints from the environment.
    """
    attempts = _ATTEMPTS_EMULATED if emulated else _ATTEMPTS
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=min(_CONNECT_TIMEOUT_S, settings.request_timeout_s),
        read_timeout=settings.request_timeout_s,
        max_pool_connections=settings.connections,
        user_agent_extra=f"gpukube/{__version__}",
    )
    if not emulated:
        return config
    return config.merge(Config(proxies={}, use_fips_endpoint=False, use_dualstack_endpoint=False))


def _sts_host(region: str) -> str:
    """Return the regional host; the cluster calls the host in the token (docs: general/latest/gr/sts)."""
    return f"sts.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
