"""Two creations at the same time on one cluster: nothing is made twice, nothing of one is lost to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.boundaries import HELM_CALLS, helm_call
from tests.chaos.stage import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.boundaries import Undisturbed
    from tests.chaos.stage import Ended, Stage

SHARED = EXAMPLES / "aks-timeslicing.yaml"
MIG = EXAMPLES / "aks-mig-single.yaml"
HELD_BACK = (None, "release record", "config", "release record is closed")
"""Where the first of the two is held until the second has ended or waits; None: both run freely."""


def until_done(stage: Stage, spec: Path, ended: Ended) -> Ended:
    """A clear conflict is fine when the next run gets over it."""
    stage.require_polite(ended)
    if ended.code != 0:
        ended = stage.create(spec)
        stage.require_polite(ended)
    assert ended.code == 0, ended.said
    return ended


def create_both(stage: Stage, specs: Sequence[Path], nth: int | None) -> list[Ended]:
    """Start both; the first that reaches the request is held until the other one cannot get further without it."""
    if nth is not None:
        daemon.add_fault(stage.info, "hang", service="kube", nth=nth)
    first = stage.start_create(specs[0])
    if nth is not None:
        wait_for(stage.struck)
    second = stage.start_create(specs[1])
    if nth is not None:
        wait_for(lambda: not second.is_running or "another Helm run" in second.said or "release: " in second.said)
    daemon.clear_faults(stage.info)
    ended = first.wait(), second.wait()  # both: what is repeated meets nobody
    return [until_done(stage, spec, one) for spec, one in zip(specs, ended, strict=True)]


@pytest.mark.turns(4)
@pytest.mark.parametrize("held", HELD_BACK)
def test_create_when_run_twice_at_once_then_one_pool_and_one_release(
    stage: Stage, undisturbed: Undisturbed, held: str | None
) -> None:
    nth = helm_call(undisturbed, HELM_CALLS[held]) if held else None
    for ended in create_both(stage, (MIG, MIG), nth):
        stage.require_converged(ended, undisturbed.objects)


@pytest.mark.turns(4)
@pytest.mark.parametrize("held", HELD_BACK)
def test_create_when_two_specs_run_at_once_then_one_release_serves_both(
    stage: Stage, undisturbed: Undisturbed, held: str | None
) -> None:
    nth = helm_call(undisturbed, HELM_CALLS[held]) if held else None
    cut, shared = create_both(stage, (MIG, SHARED), nth)
    assert (cut.devices, shared.devices) == ({"nvidia.com/gpu": 56}, {"nvidia.com/gpu": 8})
    assert stage.pools() == {"nodepool1": 1, "a100mig": 1, "t4shared": 2}
    releases = stage.releases()
    assert {name for name, _, _ in releases} == {"gpukube-nvidia-device-plugin"}
    assert not [status for _, _, status in releases if status.startswith("pending")], releases
    assert len(stage.config_keys()) == 3  # one of each spec, and the unshared default
    assert stage.objects() == undisturbed.objects
    for spec in (MIG, SHARED):
        again = stage.run("pool", "plan", "diff", "-f", str(spec))
        assert again.code == 0, again.said
