"""The port on an API server: what it makes of answers that mean "not now"."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from gpukube_sandbox.kube import remote

FOUND = {"metadata": {"name": "n1"}}


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_get_when_the_server_cannot_answer_now_then_asked_again(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE_S", 0.0)
    answers = [httpx.Response(status), httpx.Response(status), httpx.Response(200, json=FOUND)]

    async def story() -> object:
        api = remote.RemoteApi("https://127.0.0.1", "token", "")
        await api.close()
        api._client = httpx.AsyncClient(
            base_url="https://127.0.0.1", transport=httpx.MockTransport(lambda _request: answers.pop(0))
        )
        found = await api.get("nodes", "n1")
        await api.close()
        return found

    assert asyncio.run(story()) == FOUND
    assert answers == []
