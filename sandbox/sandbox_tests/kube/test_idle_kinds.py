"""What every cluster has and nothing here acts on: listed as empty where kubectl looks, else refused with 501."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.store.kinds import BUILT_IN, NOT_EMULATED, Kind
from sandbox_tests.kube.conftest import TOKEN

IDLE = [kind for kind in BUILT_IN if kind.idle]


@pytest.fixture(scope="module")
def api() -> TestClient:
    app = make_app(KubeCluster("train", ManualClock(), TOKEN))
    return TestClient(app, headers={"authorization": f"Bearer {TOKEN}"})


def root(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


@pytest.mark.parametrize("kind", IDLE, ids=lambda kind: kind.plural)
def test_kind_when_idle_then_it_is_listed_and_takes_nothing(api: TestClient, kind: Kind) -> None:
    place = f"{root(kind.group, kind.version)}/{'namespaces/default/' if kind.namespaced else ''}{kind.plural}"
    listed, made = api.get(place), api.post(place, json={"metadata": {"name": "x"}})
    assert (listed.status_code, listed.json()["items"]) == (200, [])
    assert (made.status_code, made.json()["details"]["kind"]) == (501, kind.plural)
    rows = {row["name"]: row for row in api.get(root(kind.group, kind.version)).json()["resources"]}
    assert rows[kind.plural]["verbs"] == ["get", "list", "watch"]


@pytest.mark.parametrize(("group", "plural"), sorted(NOT_EMULATED))
def test_type_when_only_real_clusters_have_it_then_501_with_details(api: TestClient, group: str, plural: str) -> None:
    answer = api.get(f"{root(group, 'v1')}/{plural}")
    assert (answer.status_code, answer.json()["details"]["kind"]) == (501, plural)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/api/v1/namespaces/default/pods/p/ephemeralcontainers"),
        ("PATCH", "/api/v1/namespaces/default/pods/p/resize"),
        ("GET", "/api/v1/namespaces/default/services/s/proxy/metrics"),
        ("GET", "/api/v1/nodes/n/proxy/metrics"),
        ("GET", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"),
    ],
)
def test_part_when_only_real_clusters_have_it_then_501_with_details(api: TestClient, method: str, path: str) -> None:
    answer = api.request(method, path, json={} if method == "PATCH" else None)
    assert (answer.status_code, bool(answer.json()["details"]["kind"])) == (501, True)


def test_type_when_nobody_has_it_then_404(api: TestClient) -> None:
    assert api.get("/apis/storage.k8s.io/v1/csithings").status_code == 404
