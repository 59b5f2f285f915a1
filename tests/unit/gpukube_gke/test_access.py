"""Who we are: found once, impersonating where asked, with a token that is renewed before it runs out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import google.auth
import pytest
from google.auth import impersonated_credentials
from google.auth.credentials import TokenState

from gpukube_gke.live.access import SCOPE, EmulatedIdentity, GoogleIdentity, cloud_access, shared_identity
from tests.unit.gpukube_gke.targets import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class FakeCredentials:
    """Credentials whose token is stale until it is refreshed."""

    token: str = ""
    token_state: TokenState = TokenState.INVALID
    refreshed: int = 0
    universe_domain: str = "googleapis.com"
    quota_project_id: str = ""

    @property
    def valid(self) -> bool:
        return self.token_state is not TokenState.INVALID

    def refresh(self, request: object) -> None:
        del request
        self.refreshed += 1
        self.token, self.token_state = f"token-{self.refreshed}", TokenState.FRESH


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[FakeCredentials]:
    made: list[FakeCredentials] = []

    def default(scopes: Sequence[str]) -> tuple[FakeCredentials, str]:
        assert scopes == [SCOPE]
        made.append(FakeCredentials())
        return made[-1], "other-project"

    monkeypatch.setattr(google.auth, "default", default)
    return made


def test_token_when_asked_for_twice_is_refreshed_once(found: list[FakeCredentials]) -> None:
    identity = GoogleIdentity("")

    assert [identity.token(), identity.token()] == ["token-1", "token-1"]
    assert len(found) == 1


@pytest.mark.parametrize("state", [TokenState.STALE, TokenState.INVALID])
def test_token_when_it_runs_out_is_renewed(found: list[FakeCredentials], state: TokenState) -> None:
    identity = GoogleIdentity("")
    identity.token()
    found[0].token_state = state

    assert identity.token() == "token-2"


def test_credentials_when_impersonating_are_those_of_the_account(found: list[FakeCredentials]) -> None:
    credentials = GoogleIdentity("sa@ml-prod.iam.gserviceaccount.com").credentials()

    assert isinstance(credentials, impersonated_credentials.Credentials)
    assert credentials.service_account_email == "sa@ml-prod.iam.gserviceaccount.com"
    assert len(found) == 1


def test_identity_when_shared_is_one_per_account() -> None:
    assert shared_identity("") is shared_identity("")
    assert shared_identity("a") is not shared_identity("b")


def test_access_when_the_cloud_is_emulated_then_its_secret_is_the_token() -> None:
    native = {"endpoint": "127.0.0.1:1", "masterAuth": {"clusterCaCertificate": "Q0E="}}

    access = cloud_access(CLUSTER, native, EmulatedIdentity("s3cret"))

    assert "s3cret" in access.kubeconfig
    assert "s3cret" not in repr(access)
