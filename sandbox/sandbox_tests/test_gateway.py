"""One port for all clusters: which one a request is for."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from gpukube_sandbox.aks.clusters import AZURE_KUBERNETES_SERVER_APP, ClusterOptions
from gpukube_sandbox.aks.identity import issued_token
from gpukube_sandbox.gateway import KubeGateway
from gpukube_sandbox.world import ClusterRequest, World

KEYS = ("s/g/a", "s/g/b")


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, str, int], tuple[int, str]]:
    """What `kubectl get --raw PATH` is answered, by path, whose token is sent, and how many clusters there are."""

    async def gather() -> dict[tuple[str, str, int], tuple[int, str]]:
        world = World(1000.0, b"authority")
        found = {}
        transport = httpx.ASGITransport(KubeGateway(world))
        async with httpx.AsyncClient(transport=transport, base_url="https://kube") as client:
            for count, key in enumerate(KEYS, 1):
                await world.ensure_cluster(ClusterRequest("s", "g", key[-1]))
                tokens = {name: world.kube_apps[name].state.cluster.token for name in world.kube_apps} | {"other": "x"}
                for name, token in tokens.items():
                    for path in ("/readyz", "/clusters/s/g/a/readyz", "/clusters/s/g/none/readyz"):
                        answer = await client.get(path, headers={"authorization": f"Bearer {token}"})
                        found[path, name, count] = (answer.status_code, answer.text)
        await world.reset()
        return found

    return asyncio.run(gather())


@pytest.mark.parametrize(
    ("path", "token", "clusters", "status"),
    [
        pytest.param("/clusters/s/g/a/readyz", KEYS[0], 2, 200, id="with-its-prefix"),
        pytest.param("/clusters/s/g/a/readyz", KEYS[1], 2, 401, id="with-the-prefix-of-another"),
        pytest.param("/readyz", KEYS[0], 1, 200, id="the-only-one"),
        pytest.param("/readyz", "other", 1, 401, id="the-only-one-by-a-stranger"),
        pytest.param("/readyz", KEYS[1], 2, 200, id="by-its-token"),
        pytest.param("/readyz", "other", 2, 401, id="two-by-a-stranger"),
        pytest.param("/clusters/s/g/none/readyz", KEYS[0], 2, 404, id="none"),
    ],
)
def test_request_when_made_to_the_port_then_prefix_or_token_tell_the_cluster(
    answers: dict[tuple[str, str, int], tuple[int, str]], path: str, token: str, clusters: int, status: int
) -> None:
    assert answers[path, token, clusters][0] == status


def test_request_when_a_stranger_makes_it_then_no_cluster_is_named(
    answers: dict[tuple[str, str, int], tuple[int, str]],
) -> None:
    text = answers["/readyz", "other", 2][1]

    assert json.loads(text)["message"] == "Unauthorized"
    assert not [key for key in KEYS if key in text]


def test_request_when_the_token_is_of_two_clusters_then_the_answer_lists_their_prefixes() -> None:
    async def ask() -> tuple[int, str]:
        world = World(1000.0, b"authority")
        for name in ("a", "b", "c"):
            await world.ensure_cluster(ClusterRequest("s", "g", name, options=ClusterOptions(aad=name != "c")))
        token = issued_token(AZURE_KUBERNETES_SERVER_APP, 0.0, world.secret)
        transport = httpx.ASGITransport(KubeGateway(world))
        async with httpx.AsyncClient(transport=transport, base_url="https://kube") as client:
            answer = await client.get("/readyz", headers={"authorization": f"Bearer {token}"})
        await world.reset()
        return answer.status_code, answer.json()["message"]

    status, message = asyncio.run(ask())

    assert status == 404
    assert (
        message
        == "the token is valid for several clusters; start the path with one of /clusters/s/g/a, /clusters/s/g/b"
    )
