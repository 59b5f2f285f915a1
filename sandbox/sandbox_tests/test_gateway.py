"""One port for all clusters: which one a request is for."""

from __future__ import annotations

import asyncio

import httpx
import pytest

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
        pytest.param("/readyz", "other", 2, 404, id="two-and-no-word-which"),
        pytest.param("/clusters/s/g/none/readyz", KEYS[0], 2, 404, id="none"),
    ],
)
def test_request_when_made_to_the_port_then_prefix_or_token_tell_the_cluster(
    answers: dict[tuple[str, str, int], tuple[int, str]], path: str, token: str, clusters: int, status: int
) -> None:
    assert answers[path, token, clusters][0] == status


def test_request_when_nothing_tells_the_cluster_then_the_answer_lists_the_prefixes(
    answers: dict[tuple[str, str, int], tuple[int, str]],
) -> None:
    text = answers["/readyz", "other", 2][1]

    assert "/clusters/s/g/a, /clusters/s/g/b" in text
