"""What kubectl shows: tables, ages, chunks of lists, logs; asked of the application in this process."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox.clock import ManualClock, ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster, NodeShape
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.http.moments import shift_times_back
from gpukube_sandbox.kube.http.tables import human
from gpukube_sandbox.kube.nodes.registration import node_object
from gpukube_sandbox.kube.store.kinds import CORE

from .conftest import TOKEN

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def ask(cluster: KubeCluster, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 -- as httpx has them
    async def send() -> httpx.Response:
        headers = {"authorization": f"Bearer {TOKEN}"} | more.pop("headers", {})
        transport = httpx.ASGITransport(make_app(cluster, more.pop("permits", None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://kube", headers=headers) as client:
            return await client.request(more.pop("method", "GET"), path, **more)

    return asyncio.run(send())


def cluster(clock: Clock | None = None) -> KubeCluster:
    return KubeCluster("train", clock or ManualClock(), TOKEN)


def row(of: KubeCluster, path: str) -> dict[str, object]:
    table = ask(of, path, headers=TABLE).json()
    heads = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(heads, table["rows"][0]["cells"], strict=True))


def test_table_of_a_pod_when_it_waits_then_cells_are_as_printed_in_life() -> None:
    of = cluster()
    of.store.create(CORE["pods"], POD)

    found = row(of, "/api/v1/pods")

    assert found == {
        "Name": "p", "Ready": "0/1", "Status": "Pending", "Restarts": 0, "Age": "0s", "IP": "<none>", "Node": "<none>",
        "Nominated Node": "<none>", "Readiness Gates": "<none>",
    }  # fmt: skip


def test_table_of_a_node_when_wide_then_addresses_and_system_are_shown() -> None:
    of = cluster()
    made = node_object(NodeShape("n", kernel="6.12.46+"), "v1.34.2", "2026-01-01T00:00:00Z")
    of.store.create(CORE["nodes"], made)
    of.store.update(CORE["nodes"], made, part="status")

    found = row(of, "/api/v1/nodes")

    assert found["Internal-IP"] == made["status"]["addresses"][0]["address"]
    assert (found["Kernel-Version"], found["External-IP"], found["Roles"]) == ("6.12.46+", "<none>", "<none>")


def test_table_of_a_custom_type_when_it_names_columns_then_they_are_shown() -> None:
    of = cluster()
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "additionalPrinterColumns": columns,
    }
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    of.store.create(CORE["customresourcedefinitions"], {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    of.store.create(of.store.kinds["example.com", "widgets"], {"metadata": {"name": "w"}, "spec": {"size": 3}})

    assert row(of, "/apis/example.com/v1/widgets") == {"Name": "w", "Size": 3, "Age": "0s"}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"), (119, "119s"), (120, "2m"), (301, "5m1s"), (3600, "60m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"),
        (20 * 3600, "20h"), (2 * 86400, "2d"), (2 * 86400 + 3600, "2d1h"), (30 * 86400, "30d"),
    ],
)  # fmt: skip
def test_age_when_written_then_as_kubectl_does(seconds: int, shown: str) -> None:
    assert human(seconds) == shown


def test_time_when_the_sandbox_is_ahead_then_clients_read_none_in_the_future() -> None:
    elapsed = [0.0]
    of = cluster(ScaledClock(60.0, monotonic=lambda: elapsed[0]))
    elapsed[0] = 600.0
    of.store.create(CORE["pods"], POD)

    read = ask(of, "/api/v1/namespaces/default/pods/p").json()["metadata"]["creationTimestamp"]

    lead_s = (datetime.fromisoformat(of.store.now()) - datetime.fromisoformat(read)).total_seconds()
    assert lead_s == 600 * 59  # 600 s have passed, 600 * 60 here


def test_time_when_it_is_in_a_text_then_it_stays() -> None:
    answer = json.dumps({"metadata": {"annotations": {"made": '{"time": "2026-01-01T00:00:10Z"}'}}}).encode()

    assert shift_times_back(answer, 5.0) == answer
    assert (
        shift_times_back(b'{"eventTime":"2026-01-01T00:00:10.000000Z"}', 5.0)
        == b'{"eventTime":"2026-01-01T00:00:05.000000Z"}'
    )


def test_chunk_when_its_moment_is_forgotten_then_410() -> None:
    of = cluster()
    for name in ("a", "b"):
        of.store.create(CORE["configmaps"], {"metadata": {"name": name}})
    token = ask(of, "/api/v1/configmaps?limit=1").json()["metadata"]["continue"]
    for number in range(4001):
        of.store.delete(CORE["configmaps"], "default", "a")
        of.store.create(CORE["configmaps"], {"metadata": {"name": "a"}, "data": {"n": str(number)}})

    answer = ask(of, f"/api/v1/configmaps?limit=1&continue={token}")

    assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")


def test_logs_when_pod_has_no_node_then_empty_and_when_it_is_being_made_then_400() -> None:
    of = cluster()
    of.store.create(CORE["pods"], POD)
    waiting = ask(of, "/api/v1/namespaces/default/pods/p/log")
    of.store.bind("default", "p", "n")
    placed = ask(of, "/api/v1/namespaces/default/pods/p/log")

    assert (waiting.status_code, waiting.text) == (200, "")
    assert placed.status_code == 400
    assert "waiting to start: ContainerCreating" in placed.text
