"""How often a call to the emulated GKE is repeated: counted, so that no pace of the machine changes it."""

from __future__ import annotations

import itertools
import time

import pytest
from google.api_core.exceptions import ServiceUnavailable

from gpukube.core.values import Settings
from gpukube_gke.live.client import connect_cluster
from gpukube_gke.live.failures import is_passing
from tests.unit.gpukube_gke.targets import CLUSTER

EMULATED = Settings({"gke": "http://127.0.0.1:1"}, sandbox=True)


def test_call_when_the_machine_stood_still_in_between_is_repeated_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count(0.0, 10.0)
    answers: list[Exception | str] = [ServiceUnavailable("not now"), ServiceUnavailable("not now"), "there"]  # type: ignore[no-untyped-call]  # ships half of its types

    def call() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    retried = connect_cluster(CLUSTER, EMULATED)._retry(is_passing)(call)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    assert retried() == "there"


def test_call_when_it_is_never_answered_is_given_up_after_seven_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    tries = itertools.count()

    def call() -> None:
        next(tries)
        raise ServiceUnavailable("never")  # type: ignore[no-untyped-call]  # as above

    with pytest.raises(ServiceUnavailable):
        connect_cluster(CLUSTER, EMULATED)._retry(is_passing)(call)()
    assert next(tries) == 8
