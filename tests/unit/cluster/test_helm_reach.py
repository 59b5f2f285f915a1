"""A cluster that answers late is asked again; one that does not answer, or refuses, is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gpukube.cluster.helm.engine import HelmAnswer
from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.cluster.helm.retry import run_with_retries
from gpukube.errors import AccessError, GpukubeError, Where

GET = 'kubernetes cluster unreachable: Get "https://127.0.0.1:1/version": '
LATE = f"{GET}net/http: TLS handshake timeout"
DONE = HelmAnswer(1, "deployed", "")
WORDS = words_of("gpukube-nvidia-device-plugin")


@dataclass
class FakeEngine:
    """Says these things, one after the other, and then does what it is asked."""

    message: list[str]
    asked: int = 0
    pauses: list[float] = field(default_factory=list)

    def upgrade(self) -> HelmAnswer:
        self.asked += 1
        if self.message:
            raise explain_helm(self.message.pop(0), Where("helm upgrade"), WORDS)
        return DONE

    def run(self) -> HelmAnswer:
        return run_with_retries(self.upgrade, self.pauses.append, lambda: self.pauses.append(0))


@pytest.mark.parametrize("often", [0, 1, 2])
def test_upgrade_when_the_cluster_answers_late_then_asked_again_after_a_pause(often: int) -> None:
    engine = FakeEngine([LATE] * often)
    assert engine.run() == DONE
    assert (engine.asked, len(engine.pauses)) == (often + 1, often)


def test_upgrade_when_the_cluster_is_late_each_time_then_its_error() -> None:
    engine = FakeEngine([LATE] * 9)
    with pytest.raises(GpukubeError, match="cannot reach"):
        engine.run()
    assert engine.asked == 3


@pytest.mark.parametrize("said", [f"{GET}dial tcp: connect: connection refused", "timed out waiting", LATE[len(GET) :]])
def test_upgrade_when_it_fails_otherwise_then_not_asked_again(said: str) -> None:
    engine = FakeEngine([said])
    with pytest.raises(GpukubeError):
        engine.run()
    assert (engine.asked, engine.pauses) == (1, [])


@pytest.mark.parametrize("said", ["the server has asked for the client to provide credentials", f"{GET}Unauthorized"])
def test_upgrade_when_the_token_ran_out_then_renewed_and_asked_again_but_once(said: str) -> None:
    engine = FakeEngine([said])
    assert engine.run() == DONE
    assert (engine.asked, engine.pauses) == (2, [0])
    engine = FakeEngine([said] * 2)
    with pytest.raises(AccessError):
        engine.run()
    assert engine.asked == 2
