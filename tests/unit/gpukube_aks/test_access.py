"""Ways to a kubeconfig, and which token goes where."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.identity import CredentialUnavailableError

from gpukube.endpoint import Endpoint
from gpukube.errors import AccessError, CloudError
from gpukube.kubeconfig import file_access
from gpukube_aks.live.access import (
    KUBERNETES_SCOPE,
    AzureCredential,
    EmulatedIdentity,
    cloud_access,
    shared_credential,
)
from tests.builders import CLUSTER
from tests.unit.gpukube_aks.fakes import FakeAnswer, FakeSdk

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.core.values import KubeAccess

LOCAL_USER: dict[str, object] = {"client-certificate-data": "QQ==", "client-key-data": "Qg==", "token": "local"}
ENTRA_USER: dict[str, object] = {"exec": {"apiVersion": "v1beta1", "command": "kubelogin", "args": ["get-token"]}}
OLD_ENTRA_USER: dict[str, object] = {"auth-provider": {"name": "azure"}}


def kubeconfig(user: dict[str, object], server: str = "https://train-1.hcp.eastus.azmk8s.io:443") -> bytes:
    document = {
        "current-context": "train",
        "contexts": [{"name": "train", "context": {"cluster": "train", "user": "clusterUser_ml_train"}}],
        "clusters": [{"name": "train", "cluster": {"server": server, "certificate-authority-data": "Q0E="}}],
        "users": [{"name": "clusterUser_ml_train", "user": user}],
    }
    return yaml.safe_dump(document).encode()


class FakeCredential:
    """Gives one token and remembers for what."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.scopes: list[str] = []
        self.failure = failure

    def get_token(self, *scopes: str) -> AccessToken:
        self.scopes += scopes
        if self.failure is not None:
            raise self.failure
        return AccessToken("entra-token", 0)


def user_of(access: KubeAccess) -> object:
    return yaml.safe_load(access.kubeconfig)["users"][0]["user"]


def test_local_account_when_given_is_taken_as_it_is() -> None:
    credential = FakeCredential()
    access = cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(LOCAL_USER)), credential)

    assert user_of(access) == LOCAL_USER
    assert credential.scopes == []


@pytest.mark.parametrize("user", [ENTRA_USER, OLD_ENTRA_USER])
def test_entra_cluster_when_met_gets_a_token_for_the_aks_server_and_no_plugin(user: dict[str, object]) -> None:
    credential = FakeCredential()
    access = cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(user)), credential)

    assert user_of(access) == {"token": "entra-token"}
    assert credential.scopes == [KUBERNETES_SCOPE] == ["6dae42f8-4368-4678-94ff-3960e28e3630/.default"]
    assert "kubelogin" not in access.kubeconfig
    assert "entra-token" not in repr(access)


def test_entra_cluster_when_emulated_gets_a_dummy_token_from_its_own_endpoint() -> None:
    answer = FakeAnswer({"access_token": "dummy", "expires_on": "4102444800"})
    sdk = FakeSdk(kubeconfig=kubeconfig(ENTRA_USER, "https://127.0.0.1:1"), answers=[answer])
    access = cloud_access(
        CLUSTER, sdk, EmulatedIdentity(sdk, Endpoint("http://127.0.0.1:2", is_emulated=True, secret="s"))
    )

    assert user_of(access) == {"token": "dummy"}
    resource = KUBERNETES_SCOPE.removesuffix("/.default")
    address = f"http://127.0.0.1:2/msi/token?resource={resource}&api-version=2019-08-01"
    assert sdk.calls[1:] == [("send", "GET", address)]


def test_real_token_when_the_server_is_this_machine_is_not_even_asked_for() -> None:
    credential = FakeCredential()

    with pytest.raises(AccessError) as caught:
        cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(ENTRA_USER, "https://127.0.0.1:6443")), credential)

    assert caught.value.diagnostics[0].code == "loopback-server"
    assert credential.scopes == []


def test_token_when_there_are_no_credentials_names_the_login() -> None:
    credential = FakeCredential(CredentialUnavailableError("none"))

    with pytest.raises(AccessError, match="no Azure credentials") as caught:
        cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(ENTRA_USER)), credential)

    assert "az login" in caught.value.render()


@pytest.mark.parametrize("value", [None, b"", b"{}"])
def test_answer_when_it_holds_no_kubeconfig_is_a_cloud_error(value: bytes | None) -> None:
    with pytest.raises(CloudError, match="no usable kubeconfig"):
        cloud_access(CLUSTER, FakeSdk(kubeconfig=value), FakeCredential())


def test_credential_when_it_may_not_be_listed_is_an_access_error() -> None:
    answer = FakeAnswer({"error": {"code": "AuthorizationFailed", "message": "no listClusterUserCredential"}}, 403)
    failure = HttpResponseError(response=answer)  # type: ignore[arg-type]  # all that is read is there

    with pytest.raises(AccessError) as caught:
        cloud_access(CLUSTER, FakeSdk(failure=failure), FakeCredential())

    assert "listClusterUserCredential" in caught.value.render()
    assert "Cluster User Role" in caught.value.render()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_bytes(kubeconfig(LOCAL_USER))
    return path


def test_file_of_the_spec_when_given_is_used(file: Path) -> None:
    access = file_access(replace(CLUSTER, kubeconfig=str(file)), sandbox=False)

    assert user_of(access) == LOCAL_USER


def test_context_when_given_alone_is_looked_for_where_kubectl_looks(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{file}")

    assert user_of(file_access(replace(CLUSTER, context="train"), sandbox=False)) == LOCAL_USER


def test_default_file_when_missing_is_named() -> None:
    with pytest.raises(AccessError, match=r"\.kube/config cannot be read"):
        file_access(replace(CLUSTER, context="train"), sandbox=False)


def test_file_when_it_leads_out_of_the_sandbox_is_refused(file: Path) -> None:
    with pytest.raises(AccessError) as caught:
        file_access(replace(CLUSTER, kubeconfig=str(file)), sandbox=True)

    assert caught.value.diagnostics[0].code == "sandbox-endpoint"


def test_azure_credential_when_nothing_is_set_up_says_so_without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    credential = AzureCredential("", "")

    with pytest.raises(AccessError) as caught:
        cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(ENTRA_USER)), credential)

    assert "az login" in caught.value.render()


@pytest.fixture
def az_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in az on PATH that notes how it is called (azure-identity's AzureCliCredential)."""
    az, calls = tmp_path / "az", tmp_path / "calls"
    token = '{"accessToken": "cli-token", "expires_on": 4102444800}'
    az.write_text(f"#!/bin/sh\necho \"$@\" >> {calls}\necho '{token}'\n")
    az.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    return calls


def test_azure_credential_when_a_tenant_is_given_asks_for_it(az_calls: Path) -> None:
    credential = AzureCredential("corp.example", "")
    access = cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(ENTRA_USER)), credential)

    assert user_of(access) == {"token": "cli-token"}
    assert "--tenant corp.example" in az_calls.read_text()
    assert "--resource 6dae42f8-4368-4678-94ff-3960e28e3630" in az_calls.read_text()


def test_azure_credential_when_the_tenant_cannot_be_one_is_an_access_error(az_calls: Path) -> None:
    with pytest.raises(AccessError, match="could not log in") as caught:
        cloud_access(CLUSTER, FakeSdk(kubeconfig=kubeconfig(ENTRA_USER)), AzureCredential("my tenant", ""))

    assert "tenant" in caught.value.diagnostics[0].why
    assert not az_calls.exists()


def test_azure_credential_when_asked_again_keeps_its_token(az_calls: Path) -> None:
    credential = AzureCredential("", "")
    tokens = {credential.get_token(scope).token for scope in ("a/.default", "a/.default", "b/.default")}

    assert tokens == {"cli-token"}
    assert len(az_calls.read_text().splitlines()) == 2


def test_azure_credential_when_az_is_slow_waits_longer_than_the_sdk_by_itself(
    az_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    check_output = subprocess.check_output

    def watched(*args: Any, timeout: float, **more: Any) -> str:  # noqa: ANN401 - as subprocess has it
        waits.append(timeout)
        return str(check_output(*args, timeout=timeout, **more))

    monkeypatch.setattr(subprocess, "check_output", watched)
    AzureCredential("", "").get_token("a/.default")

    assert waits == [60]


def test_azure_credential_when_its_token_runs_out_gets_another(az_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    credential = AzureCredential("", "")
    credential.get_token("a/.default")
    monkeypatch.setattr("gpukube_aks.live.access.time.time", lambda: 4102444800.0 - 10)
    credential.get_token("a/.default")

    assert len(az_calls.read_text().splitlines()) == 2


def test_azure_credential_when_its_token_was_refused_gets_another_unless_it_has(az_calls: Path) -> None:
    credential = AzureCredential("", "")
    refused = credential.get_token("a/.default").token
    credential.renew("another one, that a sibling replaced")
    credential.get_token("a/.default")
    assert len(az_calls.read_text().splitlines()) == 1

    credential.renew(refused)
    credential.get_token("a/.default")
    assert len(az_calls.read_text().splitlines()) == 2


def test_shared_credential_when_asked_twice_is_one_per_tenant() -> None:
    assert shared_credential("one.example", "") is shared_credential("one.example", "")
    assert shared_credential("one.example", "") is not shared_credential("two.example", "")
