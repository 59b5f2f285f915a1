"""Killed at any request boundary and run again, `pool delete` ends it: no entry left over, no release half changed.

Two pools share their GPUs in two ways; one of them is deleted. Where Helm drops its entry the pool is gone already,
and the same delete has to finish what is left of it. What stays is as declared then: `plan diff` says 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube_sandbox import daemon
from tests.chaos.changes import CHANGES, CLOUDS, prepare, require_changed, start_change
from tests.chaos.stage import HELM_AGENT, Forge, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.chaos.stage import Ended

Action = Literal["hang", "hang-after"]

AKS = CLOUDS["aks"]
BESIDE = CHANGES["aks", "delete"]
ADDRESS = "aks:11111111-2222-3333-4444-555555555555/ml/train"
MOST = 130
"""Requests to Kubernetes of one deletion once the pool is gone, at the most."""


@dataclass(frozen=True)
class Deletion:
    """Requests of a deletion that nothing disturbs.

    Attributes:
        kube: To Kubernetes: method and path, in order.
        arm: To ARM.
        before: By service, how many requests come before the first change.
        helm: Numbers, from 1, within those to Kubernetes, of those of Helm that change something.
    """

    kube: tuple[tuple[str, str], ...]
    arm: tuple[tuple[str, str], ...]
    before: Mapping[str, int]
    helm: tuple[int, ...]

    def nth(self, method: str, part: str, which: int = 0) -> int:
        """Number of a change by Helm, within the requests to Kubernetes; `which` as of a list."""
        return [n for n in self.helm if self.kube[n - 1][0] == method and part in self.kube[n - 1][1]][which]


@pytest.fixture(scope="session")
def deletion(running_sandbox: SandboxInfo, forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Deletion:
    """Record a deletion that nothing disturbs."""
    daemon.reset(running_sandbox)
    with Stage(running_sandbox, forge, tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")) as stage:
        prepare(stage, AKS, BESIDE)
        mark = len(daemon.requests_since(running_sandbox))
        ended = start_change(stage, AKS, BESIDE).wait()
        requests = daemon.requests_since(running_sandbox, mark)
        require_changed(stage, AKS, BESIDE, ended)
    first = next(at for at, r in enumerate(requests) if r["method"] == "DELETE")
    before = [str(r["service"]) for r in requests[:first]]
    kube = [r for r in requests if r["service"] == "kube"]
    agents = [str(r["headers"]["user-agent"]) for r in kube]  # type: ignore[index]  # an object of the log
    made = tuple((str(r["method"]), str(r["path"])) for r in kube)
    return Deletion(
        made,
        tuple((str(r["method"]), str(r["path"])) for r in requests if r["service"] == "arm"),
        {service: before.count(service) for service in ("arm", "kube")},
        tuple(n for n, agent in enumerate(agents, 1) if agent.startswith(HELM_AGENT) and made[n - 1][0] != "GET"),
    )


def kill_and_repeat(stage: Stage, boundary: Mapping[str, object], action: Action) -> Ended | None:
    """Kill a deletion with all it started, and repeat it; None when it ended before."""
    prepare(stage, AKS, BESIDE)
    daemon.add_fault(stage.info, action, **boundary)
    first = start_change(stage, AKS, BESIDE)
    killed = stage.kill_at_fault(first, with_children=True)
    daemon.clear_faults(stage.info)
    ended = start_change(stage, AKS, BESIDE).wait()
    require_changed(stage, AKS, BESIDE, ended)
    return ended if killed else None


BOUNDARIES: dict[str, tuple[str, str, int, Action]] = {
    "record is opened": ("POST", "/secrets", 0, "hang-after"),
    "first object": ("PATCH", "", 0, "hang"),
    "entry is dropped": ("PATCH", "/configmaps/gpukube-nvidia-device-plugin-configs", -1, "hang-after"),
    "former record is closed": ("PUT", "/secrets/", 0, "hang-after"),
    "record is closed": ("PUT", "/secrets/", -1, "hang"),
}
"""Where a deletion that is repeated has something to finish: method, part of the path, which of those, and how."""


@pytest.mark.turns(5)
@pytest.mark.parametrize("case", BOUNDARIES)
def test_delete_when_killed_while_helm_drops_the_entry_then_the_same_delete_finishes_it(
    stage: Stage, deletion: Deletion, case: str
) -> None:
    method, part, which, action = BOUNDARIES[case]
    ended = kill_and_repeat(stage, {"service": "kube", "nth": deletion.nth(method, part, which)}, action)
    assert ended is not None
    assert '"outcome": "done"' in ended.out, ended.said
    assert "its leftovers in the release were removed" in ended.out
    again = start_change(stage, AKS, BESIDE).wait()
    assert (again.code, '"outcome": "unchanged"' in again.out) == (0, True), again.said


def test_delete_when_killed_by_address_while_helm_drops_the_entry_then_the_same_delete_finishes_it(
    stage: Stage, deletion: Deletion
) -> None:
    prepare(stage, AKS, BESIDE)
    words = ("pool", "delete", AKS.pool, "--yes", "--cluster", ADDRESS, "--owner", AKS.example, "-o", "json")
    daemon.add_fault(stage.info, "hang-after", service="kube", nth=deletion.nth("PUT", "/secrets/", 0))
    assert stage.kill_at_fault(stage.start(*words), with_children=True)
    ended = stage.run(*words)
    assert "its leftovers in the release were removed" in ended.out, ended.said
    require_changed(stage, AKS, BESIDE, ended)
    unknown = stage.run(*words)
    assert (unknown.code, "error[no-pool]" in unknown.err) == (4, True), unknown.said


@pytest.mark.slow
@pytest.mark.parametrize("service", ["arm", "kube"])
def test_delete_when_killed_at_each_request_before_the_first_change_in_a_row_then_the_next_one_does_it(
    stage: Stage, deletion: Deletion, service: str
) -> None:
    prepare(stage, AKS, BESIDE)
    for nth in range(1, deletion.before[service] + 1):
        daemon.add_fault(stage.info, "hang", service=service, nth=nth)
        assert stage.kill_at_fault(start_change(stage, AKS, BESIDE), with_children=True), nth
        assert AKS.pool in stage.pools()
    require_changed(stage, AKS, BESIDE, start_change(stage, AKS, BESIDE).wait())


@pytest.mark.slow
@pytest.mark.parametrize("action", ["hang", "hang-after"])
@pytest.mark.parametrize(("service", "at"), [("arm", at) for at in range(8)] + [("kube", at) for at in range(MOST)])
def test_delete_when_killed_at_any_request_from_the_first_change_on_then_the_same_delete_finishes_it(
    stage: Stage, deletion: Deletion, service: str, at: int, action: Action
) -> None:
    requests = deletion.kube if service == "kube" else deletion.arm
    nth = deletion.before[service] + 1 + at
    assert len(requests) <= deletion.before[service] + (MOST if service == "kube" else 8)
    if nth > len(requests):
        pytest.skip(f"an undisturbed run has {len(requests)} such requests")
    if action == "hang-after" and requests[nth - 1][0] == "GET":
        pytest.skip("a read that is not answered and one that is not processed are the same")
    kill_and_repeat(stage, {"service": service, "nth": nth}, action)
