"""Real credentials of the environment never go to a port of this machine, nor does the sandbox go elsewhere."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]  # grpcio has no types
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gpukube.core.values import ClusterRef, Settings
from gpukube.endpoint import UNKNOWN_SECRET
from gpukube.errors import AccessError, GpukubeError
from gpukube.provider import load_provider
from gpukube_eks.live import access as eks_access
from tests.builders import SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTERS = {
    "eks": ClusterRef("train-eks", "eks", "train", {"account": "111122223333", "region": "us-east-1"}),
    "aks": ClusterRef("train-aks", "aks", "train", {"subscription": SUBSCRIPTION, "resourceGroup": "ml"}),
    "gke": ClusterRef("train-gke", "gke", "train", {"project": "ml-prod", "location": "us-central1"}),
}
SECRET = "r3alS3cret"
KEY_ID = f"AKIA{SECRET.upper()}"
REAL = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": SECRET,
    "AWS_PROFILE": SECRET,
    "AWS_BEARER_TOKEN_BEDROCK": SECRET,
    "AZURE_TENANT_ID": SECRET,
    "AZURE_CLIENT_ID": SECRET,
    "AZURE_CLIENT_SECRET": SECRET,
    "GOOGLE_API_KEY": SECRET,
    "CLOUDSDK_AUTH_ACCESS_TOKEN": SECRET,
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
}


@dataclass
class Ear:
    """Hears what comes to a port and refuses it.

    Attributes:
        url: For REST.
        rpc: host:port for gRPC.
        heard: One text per request: line, headers or metadata, body.
    """

    url: str = ""
    rpc: str = ""
    heard: list[str] = field(default_factory=list)


@pytest.fixture
def ear() -> Iterator[Ear]:
    """Listen for REST."""
    ear = Ear()

    class Handler(BaseHTTPRequestHandler):
        def refuse(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            ear.heard.append(f"{self.requestline}\n{self.headers}\n{body.decode()}")
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = refuse  # noqa: N815 - the names http.server asks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    ear.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield ear
    server.shutdown()
    thread.join()
    server.server_close()


class _Listening(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """Hears the metadata of every call; knows no method, so gRPC answers UNIMPLEMENTED."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> None:
        self._ear.heard.append(f"{handler_call_details.method}\n{handler_call_details.invocation_metadata}")


@pytest.fixture
def rpc_ear(ear: Ear) -> Iterator[Ear]:
    """Listen for gRPC too."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=(_Listening(ear),))
    ear.rpc = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield ear
    server.stop(None).wait()


@pytest.fixture
def real_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Log in everywhere: variables, AWS files, a service account of Google, .netrc."""
    for name, value in REAL.items():
        monkeypatch.setenv(name, value)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": f"{SECRET}@ml-prod.iam.gserviceaccount.com",
        "private_key": key.decode(),
        "private_key_id": SECRET,
        "token_uri": "http://127.0.0.1:9/token",
    }
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    home = Path.home()
    (home / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    (home / ".aws").mkdir()
    keys = f"aws_access_key_id={KEY_ID}\naws_secret_access_key={SECRET}\n"
    (home / ".aws" / "credentials").write_text(f"[default]\n{keys}[{SECRET}]\n{keys}")


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "endpoint only"])
@pytest.mark.parametrize("name", [*CLUSTERS, "gke-grpc"])
def test_request_when_real_credentials_are_around_then_none_of_them_goes_to_loopback(
    name: str,
    sandbox: bool,  # noqa: FBT001 - a case
    rpc_ear: Ear,
    real_credentials: None,
) -> None:
    provider, _, is_rpc = name.partition("-")
    endpoints = {provider: rpc_ear.url} | ({name: rpc_ear.rpc} if is_rpc else {})
    cloud = load_provider(provider).connect(CLUSTERS[provider], Settings(endpoints, sandbox=sandbox))
    for ask in (cloud.identify, cloud.pools):
        with pytest.raises(GpukubeError):
            ask()
    cloud.close()

    assert rpc_ear.heard
    everything = "\n".join(rpc_ear.heard).lower().replace(f"bearer {UNKNOWN_SECRET}", "")
    assert SECRET.lower() not in everything
    assert "bearer" not in everything
    assert "basic " not in everything
    assert ("akiagpuk111122223333" in everything) == (provider == "eks"), "the sandbox's dummy key, and no other"


ELSEWHERE: dict[str, dict[str, str]] = {
    "eks, none given": {},
    "eks, AWS's own": {"eks": "https://eks.us-east-1.amazonaws.com"},
    "eks, another machine": {"eks": "http://10.0.0.1:8080"},
    "eks, a name like loopback": {"eks": "http://127.0.0.1.example.com"},
    "aks, none given": {},
    "aks, Azure's own": {"aks": "https://management.azure.com"},
    "gke, none given": {},
    "gke, Google's own": {"gke": "https://container.googleapis.com"},
    "gke, another machine by gRPC": {"gke-grpc": "10.0.0.1:443"},
    "gke, Google's own by gRPC": {"gke-grpc": "container.googleapis.com:443"},
    "gke, REST on loopback but gRPC elsewhere": {"gke": "http://127.0.0.1:9", "gke-grpc": "10.0.0.1:443"},
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_connect_when_in_sandbox_mode_and_the_endpoint_is_elsewhere_then_refused(name: str) -> None:
    provider = name.partition(",")[0]
    with pytest.raises(AccessError) as caught:
        load_provider(provider).connect(CLUSTERS[provider], Settings(ELSEWHERE[name], sandbox=True))
    assert caught.value.diagnostics[0].code == "sandbox-endpoint"


@pytest.fixture
def fresh_sessions() -> Iterator[None]:
    """Sessions are made once per process, and this test's are of its own environment."""
    for made in (eks_access._session, eks_access._shared_clients):
        made.cache_clear()
    yield
    for made in (eks_access._session, eks_access._shared_clients):
        made.cache_clear()


AWS_ELSEWHERE: dict[str, tuple[dict[str, str], str, str]] = {
    "all services": ({"AWS_ENDPOINT_URL": "{url}"}, "", "plain-http"),
    "one service": ({"AWS_ENDPOINT_URL_STS": "{url}"}, "", "plain-http"),
    "the config file": ({}, "[default]\nendpoint_url = {url}\n", "plain-http"),
    "a service in the config file": (
        {},
        "[default]\nservices = mine\n[services mine]\nsts =\n  endpoint_url = {url}\n",
        "plain-http",
    ),
    "a role that the chain assumes": (
        {"AWS_PROFILE": "role", "AWS_ENDPOINT_URL_STS": "{url}"},
        f"[profile role]\nrole_arn = arn:aws:iam::111122223333:role/r\nsource_profile = {SECRET}\n",
        "plain-http",
    ),
    "http on another machine": ({"AWS_ENDPOINT_URL": "http://aws.example.com"}, "", "plain-http"),
    "https on this machine": ({"AWS_ENDPOINT_URL": "https://127.0.0.1:9"}, "", "loopback-endpoint"),
}


@pytest.mark.parametrize("name", AWS_ELSEWHERE)
def test_request_when_the_aws_configuration_leads_elsewhere_then_refused_and_nothing_is_heard(
    name: str, ear: Ear, real_credentials: None, fresh_sessions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables, file, code = AWS_ELSEWHERE[name]
    monkeypatch.delenv("AWS_PROFILE")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN") * ("AWS_PROFILE" in variables):
        monkeypatch.delenv(variable)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value.format(url=ear.url))
    (Path.home() / ".aws" / "config").write_text(file.format(url=ear.url))
    cloud = load_provider("eks").connect(CLUSTERS["eks"], Settings())
    with pytest.raises(AccessError) as refused:
        cloud.identify()
    assert refused.value.diagnostics[0].code == code
    assert "AWS_ENDPOINT_URL" in refused.value.diagnostics[0].fix
    assert not ear.heard


@pytest.mark.parametrize("role", ["", "arn:aws:iam::111122223333:role/deploy"])
def test_role_of_the_spec_when_the_aws_configuration_leads_to_loopback_then_its_keys_are_not_sent(
    role: str, ear: Ear, real_credentials: None, fresh_sessions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ENDPOINT_URL", ear.url)
    cluster = ClusterRef("t", "eks", "train", {"account": "111122223333", "region": "us-east-1", "roleArn": role})
    with pytest.raises(AccessError, match="is not https"):
        load_provider("eks").connect(cluster, Settings()).identify()
    assert not ear.heard


@pytest.mark.parametrize(
    ("host", "code"), [("http://login.example.com", "plain-http"), ("https://127.0.0.1:9", "loopback-endpoint")]
)
def test_login_when_azure_authority_leads_elsewhere_then_refused_by_name(
    host: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", host)
    identity = {"subscription": SUBSCRIPTION, "resourceGroup": "ml", "tenant": f"tenant-of-{code}"}
    with pytest.raises(AccessError) as refused:
        load_provider("aks").connect(ClusterRef("train-aks", "aks", "train", identity), Settings())
    assert refused.value.diagnostics[0].code == code
    assert "AZURE_AUTHORITY_HOST" in refused.value.diagnostics[0].fix
