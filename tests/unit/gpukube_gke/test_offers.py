"""Compute Engine's answer to where a GPU is offered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from gpukube_gke.live.access import GoogleIdentity
from gpukube_gke.live.offers import offered_zones, read_zones

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class FakeAnswer:
    body: object
    ok: bool = True

    def json(self) -> object:
        return self.body


@dataclass
class FakeSession:
    answer: FakeAnswer
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> FakeAnswer:
        assert timeout == 5
        self.asked.append((url, params))
        return self.answer


FOUND = {
    "items": {
        "zones/us-central1-a": {"acceleratorTypes": [{"name": "nvidia-l4"}]},
        "zones/us-central1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
        "zones/us-east1-b": {"acceleratorTypes": [{"name": "nvidia-l4"}]},
    }
}


@pytest.mark.parametrize(
    ("answer", "zones"),
    [
        (FakeAnswer(FOUND), {"us-central1-a", "us-east1-b"}),
        (FakeAnswer({"error": {"code": 403}}, ok=False), set()),
        (FakeAnswer({}), set()),
        (FakeAnswer([]), set()),
    ],
)
def test_zones_when_asked_for_are_those_with_the_type(answer: FakeAnswer, zones: set[str]) -> None:
    session = FakeSession(answer)

    assert read_zones(session, "ml-prod", "nvidia-l4", 5) == zones
    ((url, params),) = session.asked
    assert url.endswith("/projects/ml-prod/aggregated/acceleratorTypes")
    assert params["filter"] == "name = nvidia-l4"


def test_zones_when_there_are_no_credentials_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")

    assert offered_zones(GoogleIdentity(""), "ml-prod", "nvidia-l4", 5) == frozenset()
