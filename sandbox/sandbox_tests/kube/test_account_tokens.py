"""Tokens of service accounts: who gets one, and what its bearer may."""

from __future__ import annotations

import asyncio

import pytest
from starlette.testclient import TestClient

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.store.kinds import CORE
from sandbox_tests.kube.conftest import TOKEN

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/robot"
ME = "system:serviceaccount:default:robot"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> TestClient:
    cluster = KubeCluster("train", clock, TOKEN)
    cluster.store.create(CORE["serviceaccounts"], {"metadata": {"namespace": "default", "name": "robot"}})
    return TestClient(make_app(cluster), headers={"authorization": f"Bearer {TOKEN}"})


def token(api: TestClient, **wanted: object) -> str:
    answer = api.post(f"{ACCOUNT}/token", json={"spec": wanted})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["status"]["token"])


def status(api: TestClient, bearer: str, path: str = "/api/v1/namespaces/default/pods") -> int:
    return api.get(path, headers={"authorization": f"Bearer {bearer}"}).status_code


def test_token_when_issued_then_its_bearer_is_the_account_and_has_its_rights(api: TestClient) -> None:
    bearer = token(api)
    who = api.post(WHO, json={}, headers={"authorization": f"Bearer {bearer}"}).json()["status"]["userInfo"]
    assert who["username"] == ME
    assert {"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"} == set(who["groups"])

    before = status(api, bearer)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "robot"}
    binding = {"metadata": {"name": "robot"}, "roleRef": role, "subjects": [subject]}
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json=binding).raise_for_status()
    assert (before, status(api, bearer)) == (403, 200)


def test_token_when_its_time_is_over_then_401(api: TestClient, clock: ManualClock) -> None:
    bearer = token(api, expirationSeconds=600)
    asyncio.run(clock.advance(599))
    assert status(api, bearer) == 403
    asyncio.run(clock.advance(1))
    assert status(api, bearer) == 401


def test_token_when_the_account_was_made_again_then_401(api: TestClient) -> None:
    bearer = token(api)
    api.delete(ACCOUNT).raise_for_status()
    assert status(api, bearer) == 401
    api.post(ACCOUNT.rpartition("/")[0], json={"metadata": {"name": "robot"}}).raise_for_status()
    assert status(api, bearer) == 401


def test_token_when_meant_for_others_or_forged_then_401(api: TestClient) -> None:
    head, claims, signature = token(api).split(".")
    bearers = (
        token(api, audiences=["vault"]),
        f"{head}.{claims}.{signature[::-1]}",
        f"{head}.{claims[::-1]}.{signature}",
        "a.b",
        "",
    )
    assert [status(api, bearer) for bearer in bearers] == [401] * len(bearers)


@pytest.mark.parametrize(
    ("path", "wanted", "code", "text"),
    [
        (f"{ACCOUNT}/token", {"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        (f"{ACCOUNT}/token", {"expirationSeconds": 2**32 + 1}, 422, "larger than 2^32 seconds"),
        (f"{ACCOUNT}x/token", {}, 404, 'serviceaccounts "robotx" not found'),
        (f"{ACCOUNT}/token", {"boundObjectRef": {"kind": "Pod", "name": "p"}}, 501, "bound to an object"),
    ],
)
def test_token_when_asked_for_wrongly_then_refused(
    api: TestClient, path: str, wanted: dict[str, object], code: int, text: str
) -> None:
    answer = api.post(path, json={"spec": wanted})
    assert (answer.status_code, text in answer.json()["message"]) == (code, True), answer.text


def test_token_when_read_then_405(api: TestClient) -> None:
    assert api.get(f"{ACCOUNT}/token").status_code == 405
