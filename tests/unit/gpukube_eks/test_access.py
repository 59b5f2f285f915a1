"""Who we are to AWS: dummy keys in emulated mode and nothing else, tokens as aws-cli makes them, the user's files."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import NoCredentialsError

from gpukube.core.values import Settings
from gpukube.endpoint import Endpoint, choose_endpoint
from gpukube.errors import AccessError
from gpukube_eks import EksProvider
from gpukube_eks.live import access
from gpukube_eks.live.access import AwsClients, Identity, connect_aws
from gpukube_eks.live.client import EksCloud
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = "http://127.0.0.1:9"
REAL_KEY = "AKIAREALREALREALREAL"


@pytest.fixture(autouse=True)
def fresh_sessions() -> None:
    """Forget the sessions and clients that other tests made: they keep what the environment said."""
    access._session.cache_clear()
    access._shared_clients.cache_clear()


@pytest.fixture
def real_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has real credentials, a profile by default, and a wish for another endpoint."""
    (tmp_path / "credentials").write_text(f"[default]\naws_access_key_id = {REAL_KEY}\naws_secret_access_key = x\n")
    (tmp_path / "config").write_text("[profile other]\nregion = eu-west-1\n")
    for name, value in {
        "AWS_ACCESS_KEY_ID": REAL_KEY,
        "AWS_SECRET_ACCESS_KEY": "real",
        "AWS_SESSION_TOKEN": "real",
        "AWS_PROFILE": "there-is-none",
        "AWS_ENDPOINT_URL": "https://example.com",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }.items():
        monkeypatch.setenv(name, value)


def token_url(token: str) -> str:
    encoded = token.removeprefix("k8s-aws-v1.")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


@pytest.mark.usefixtures("real_keys")
def test_token_when_emulated_is_signed_by_dummy_keys() -> None:
    aws = AwsClients(Identity(dummy=ACCOUNT), REGION, LOOPBACK, Settings())

    token = aws.cluster_token("train")

    url = urlsplit(token_url(token))
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    assert query["X-Amz-Credential"].startswith(f"AKIAGPUK{ACCOUNT}/")
    assert "X-Amz-Security-Token" not in query


@pytest.mark.usefixtures("real_keys")
def test_client_when_emulated_has_dummy_keys_our_endpoint_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.com:3128")
    endpoint = choose_endpoint("eks", Settings({"eks": LOOPBACK}, sandbox=True), "train-eks")

    client = connect_aws(replace(CLUSTER, identity={**CLUSTER.identity, "profile": "x"}), endpoint, Settings()).eks

    assert client.meta.endpoint_url == LOOPBACK  # type: ignore[attr-defined]  # a client of the SDK
    assert client._request_signer._credentials.access_key == f"AKIAGPUK{ACCOUNT}"  # type: ignore[attr-defined]
    assert client.meta.config.proxies == {}  # type: ignore[attr-defined]


def test_token_when_made_has_the_form_of_aws_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEEXAMPLE00")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    aws = AwsClients(Identity(), "cn-north-1", "", Settings())

    token = aws.cluster_token("train")

    url = urlsplit(token_url(token))
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    assert "=" not in token
    assert len(token) <= 4096
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.cn-north-1.amazonaws.com.cn", "/")
    assert (query["Action"], query["Version"], query["X-Amz-Expires"]) == ("GetCallerIdentity", "2011-06-15", "60")
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].split("/")[2:] == ["cn-north-1", "sts", "aws4_request"]


def test_token_when_there_are_no_credentials_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    aws = AwsClients(Identity(role="arn:aws:iam::111122223333:role/nobody"), "eu-west-3", "", Settings())

    with pytest.raises(NoCredentialsError):
        aws.cluster_token("train")


def test_identify_when_the_profile_is_missing_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    cluster = replace(CLUSTER, identity={**CLUSTER.identity, "profile": "no-such-profile"})

    with pytest.raises(AccessError) as caught:
        EksProvider().connect(cluster, Settings()).identify()

    assert caught.value.diagnostics[0].code == "profile"


def test_clients_when_of_one_identity_and_region_are_shared() -> None:
    other = replace(CLUSTER, name="other", key="other")
    elsewhere = replace(CLUSTER, identity={**CLUSTER.identity, "region": "eu-west-1"})
    endpoint = Endpoint(LOOPBACK, is_emulated=True)

    assert connect_aws(CLUSTER, endpoint, Settings()) is connect_aws(other, endpoint, Settings())
    assert connect_aws(CLUSTER, endpoint, Settings()) is not connect_aws(elsewhere, endpoint, Settings())


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (Settings(sandbox=True), "sandbox-endpoint"),
        (Settings({"eks": "https://eks.example.com"}, sandbox=True), "sandbox-endpoint"),
        (Settings({"eks": "http://eks.example.com"}), "plain-http"),
    ],
    ids=["no endpoint", "another machine", "plain http"],
)
def test_connect_when_keys_would_go_astray_is_refused(settings: Settings, code: str) -> None:
    with pytest.raises(AccessError) as caught:
        EksProvider().connect(CLUSTER, settings)

    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("", Endpoint()),
        ("https://vpce-1.eks.us-east-1.vpce.amazonaws.com/", Endpoint("https://vpce-1.eks.us-east-1.vpce.amazonaws.com")),
        ("http://localhost:4566", Endpoint("http://localhost:4566", is_emulated=True)),
        ("http://[::1]:4566", Endpoint("http://[::1]:4566", is_emulated=True)),
        ("https://127.0.0.1:4566", Endpoint("https://127.0.0.1:4566", is_emulated=True)),
    ],
)  # fmt: skip
def test_endpoint_when_chosen_is_emulated_on_loopback_only(url: str, endpoint: Endpoint) -> None:
    assert choose_endpoint("eks", Settings({"eks": url} if url else {}), "train-eks") == endpoint


def test_connect_when_asked_makes_no_call_and_finds_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: pytest.fail("looked for credentials"))

    assert isinstance(EksProvider().connect(replace(CLUSTER, key="untouched"), Settings()), EksCloud)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: one, user: one}}
- {name: far, context: {cluster: far, user: one}}
clusters:
- {name: one, cluster: {server: "https://127.0.0.1:6443"}}
- {name: far, cluster: {server: "https://example.com"}}
users:
- {name: one, user: {token: t}}
"""


def test_kube_access_when_the_spec_names_a_context_takes_it(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    cluster = replace(CLUSTER, kubeconfig=str(tmp_path / "kubeconfig"), context="far")

    assert "https://example.com" in EksProvider().connect(cluster, Settings()).kube_access().kubeconfig

    sandbox = Settings({"eks": LOOPBACK}, sandbox=True)
    with pytest.raises(AccessError) as caught:
        EksProvider().connect(cluster, sandbox).kube_access()
    assert caught.value.diagnostics[0].code == "sandbox-endpoint"


def test_kube_access_when_kubectl_has_several_files_finds_the_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{tmp_path / 'kubeconfig'}")

    found = EksProvider().connect(replace(CLUSTER, context="one"), Settings()).kube_access()

    assert "127.0.0.1:6443" in found.kubeconfig
