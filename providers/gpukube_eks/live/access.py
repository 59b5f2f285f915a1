"""Who we are to AWS, and a complete kubeconfig for a cluster.

In scope: sessions of the SDK with their credentials, the clients made from them, the bearer token of a cluster, the
two ways to a kubeconfig: endpoint, CA and token; a file of the user's. Out of scope: what is called (`client`).

No cloud command line tool is run, and no exec plugin of ours is written. In emulated mode no file, variable or metadata
service is looked at for credentials: the keys are the sandbox's dummies.
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
        Aws,
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
"""Whose keys are used with an emulated AWS where no cluster names an account."""
_TOKEN_PREFIX: Final = "k8s-aws-v1."  # noqa: S105 - the public beginning of every token
_CLUSTER_HEADER: Final = "x-k8s-aws-id"
_TOKEN_S: Final = 60
"""As aws-cli signs; the cluster takes a token for 15 minutes from its date, whatever is written here."""
_CONNECT_TIMEOUT_S: Final = 5.0
_ATTEMPTS: Final = 8
_ATTEMPTS_EMULATED: Final = 4
"""A port of this machine that does not answer will not answer later either."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the spec wants us to be.

    Attributes:
        profile: Of the AWS configuration; "" for the chain's own.
        role: ARN of a role to assume first; "" for none.
        dummy: Account whose dummy keys are used; "" outside emulated mode.
        secret: Of the dummy keys.
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
    """What every client of the SDK has."""

    @property
    def meta(self) -> _Meta:
        """Where it leads."""

    def close(self) -> None:
        """Close connections that wait for more."""


class AwsClients:
    """The clients of one identity in one region; made when they are first used, safe to share between threads.

    Args:
        identity: Who.
        region: Where.
        endpoint: URL in place of AWS's own; "" for those.
        settings: Of this run.
    """

    def __init__(self, identity: Identity, region: str, endpoint: str, settings: Settings) -> None:
        self._identity = identity
        self._region = region
        self._endpoint = endpoint
        self._config = _config(settings, emulated=bool(identity.dummy))
        self._boto: Any = None  # untyped: its overloads know no name of a service that is a value
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
    def types(self) -> Ec2Types:
        """Instance types and their spot prices."""
        return cast("Ec2Types", self._client("ec2"))

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
        """Return the host that each service is reached at, AWS's own or one of the user's configuration."""
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
                    client.meta.events.register("before-send", raise_if_cancelled)  # before each try
                    client.meta.events.register("needs-retry", partial(_renewed, self._session()))
                    self._clients[service] = client
            return self._clients[service]


def _renewed(session: Session, response: Any, request_dict: dict[str, Any], **_: object) -> int | None:  # noqa: ANN401
    """Get new keys where AWS says that these have ended, and let the call be signed and sent again, once.

    botocore renews keys by their date alone, and has no public call for it. Keys that were given as they are cannot be
    renewed: their refusal stays.

    Returns:
        Seconds to wait before the next try; None leaves it to others (botocore, Endpoint._needs_retry).
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
    except RuntimeError:  # the new keys have ended too, by this machine's clock: AWS's refusal says more
        return None
    return 0


_RENEWED: Final = "gpukube_renewed"
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
_MAKING: Final = threading.Lock()
"""A session is not safe to make clients with from several threads (docs: boto3/latest/guide, sessions)."""


def connect_aws(cluster: ClusterRef, endpoint: Endpoint, settings: Settings) -> Aws:
    """Return the clients for a cluster; clusters of one identity and region share them, as a fleet needs."""
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
    """Return the clients for a region without a cluster: in the name of whom AWS's own chain finds."""
    identity = Identity(dummy=_DUMMY_ACCOUNT if endpoint.is_emulated else "", secret=endpoint.secret)
    return _shared_clients(identity, region, endpoint.url, (settings.request_timeout_s, settings.connections))


def cloud_access(cluster: ClusterRef, native: Mapping[str, object], aws: Aws, *, emulated: bool) -> KubeAccess:
    """Make a kubeconfig of the cluster's endpoint and a token.

    Args:
        cluster: Which.
        native: The cluster as DescribeCluster gives it.
        aws: Makes the token.
        emulated: Whether the keys are dummies.

    Raises:
        AccessError: No credentials, or real ones for a port of this machine.
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
    """Make the session of an identity, once: it holds the credentials and the models of the services."""
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
    """Reads the models of services in a fifth of botocore's time and memory: EC2's alone has 4 MB."""

    def load_file(self, file_path: str) -> dict[str, Any] | None:
        """Read a file, given without its ending; None when there is none."""
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
    """Unpack a gzip file into memory of the size that its end tells; grown step by step EC2's takes twice that."""
    return zlib.decompress(packed, _GZIP, int.from_bytes(packed[-4:], "little") or 1)


_GZIP: Final = 31
"""The form of a gzip file, and the largest window (docs: zlib.decompress, wbits)."""

EC2_OPERATIONS: Final = (
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "DeleteLaunchTemplate",
    "DeleteTags",
    "DescribeCapacityReservations",
    "DescribeInstances",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "DescribeSpotPriceHistory",
    "DescribeSubnets",
)
"""Those of 830 that `sdk` declares; only these are made methods of EC2's client."""
_USED: Final = {"ec2": EC2_OPERATIONS, "ssm": ("GetParameter",)}
"""Operations that are kept of the models of large services."""


def _part(model: dict[str, Any], operations: Sequence[str]) -> dict[str, Any]:
    """Keep some operations of a model, and the shapes that they refer to."""
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
    """Find the names of shapes that an operation or a shape refers to."""
    if isinstance(node, dict):
        if isinstance(name := node.get("shape"), str):
            yield name
        for below in node.values():
            yield from _shapes_in(below)
    elif isinstance(node, list):
        for below in node:
            yield from _shapes_in(below)


_LARGE: Final = ("operations", "shapes", "services")
"""Members of models, and of the table of endpoints, of which a run needs a few values of hundreds."""


def _decoded(text: bytes | msgspec.Raw) -> dict[str, Any]:
    """Decode a model or a table of endpoints; what is large in it when it is looked up."""
    model: dict[str, Any] = {}
    for name, value in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        if name == "partitions":
            model[name] = [_decoded(part) for part in msgspec.json.decode(value, type=list[msgspec.Raw])]
        else:
            model[name] = _Undecoded(value) if name in _LARGE else msgspec.json.decode(value)
    return model


class _Undecoded(dict[str, Any]):
    """An object whose members are decoded when they are looked up; a dict, since botocore merges additions into it."""

    def __init__(self, text: msgspec.Raw) -> None:
        super().__init__(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - JSON
        value = super().__getitem__(name)
        if isinstance(value, msgspec.Raw):
            value = self[name] = msgspec.json.decode(value)
        return value

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401
        return self[name] if name in self else default  # noqa: SIM401 - that is this method

    def values(self) -> Any:  # noqa: ANN401
        return [self[name] for name in self]

    def items(self) -> Any:  # noqa: ANN401
        return [(name, self[name]) for name in self]


def _configured(identity: Identity) -> Session:
    """Make a session that reads the user's AWS configuration; in emulated mode one that reads none."""
    session = _plain_session(identity)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache  # a fleet's clusters have a session each: what has been read is read once
def _loader(data_path: str | None) -> Loader:
    loader = create_loader(data_path)
    loader.file_loader = Models()
    return loader


def _plain_session(identity: Identity) -> Session:
    if not identity.dummy:
        session = Session(profile=identity.profile or None)
        # AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_<SERVICE> and endpoint_url of a profile lead every client elsewhere, those
        # too that the chain makes to assume a role: so the address is looked at as each signed request goes out.
        session.register("before-send", _require_safe)
        return session
    nowhere = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    return Session(session_vars={"profile": (None, None, None, None), **nowhere})


def _require_safe(**sent: Any) -> None:  # noqa: ANN401 - botocore's form of a handler
    """Refuse a request to an address that real keys must not sign for; botocore raises it to the caller."""
    source = "AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_<SERVICE>, or endpoint_url in the AWS config file"
    require_safe(sent["request"].url, "EKS", source=source, carries="a signed request and its session token")


class _KeepsNothing(dict[str, Any]):
    """A cache that keeps nothing: the credentials keep themselves, and what is renewed must be new."""

    def __setitem__(self, key: str, value: object) -> None:
        """Forget it."""


class _RoleProvider(CredentialProvider):
    """Assumes a role with the credentials of another session, and again before they end."""

    METHOD = "gpukube-assume-role"

    def __init__(self, source: Session, role: str, make_client: object) -> None:
        super().__init__()
        self._source = source
        self._role = role
        self._make_client = make_client

    def load(self) -> Credentials:
        """Return credentials that are fetched when they are first needed."""
        found = self._source.get_credentials()
        if found is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(
            self._make_client,  # type: ignore[arg-type]  # a client's constructor with two arguments filled in
            found,
            self._role,
            extra_args={"RoleSessionName": "gpukube"},
            cache=_KeepsNothing(),
        )
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method=self.METHOD)


def _config(settings: Settings, *, emulated: bool) -> Config:
    """Time-outs and retries of every call: the SDK's defaults are 60 seconds and 3 attempts.

    In emulated mode proxies of the environment are not looked at, nor its wish for other endpoints.
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
    """The regional host; the cluster calls the one that is in the token (docs: general/latest/gr/sts)."""
    return f"sts.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
