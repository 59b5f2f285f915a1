"""A change of the release that fails half-way: what served before serves again, by either Helm."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.shared_values import put
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.errors import AccessError
from tests.unit.cluster.builders import RELEASE_NAME, SINGLE, SLICED, desire

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from tests.wire.cluster.conftest import Live

CUT, SHARED = desire(sharing=SINGLE), desire(sharing=SLICED, pool="shared")


def bare(plan: ReleasePlan) -> ReleasePlan:
    """Leave NFD out, so that a later upgrade makes objects that the first revision has not."""
    values = dict(plan.values)
    put(values, ("nfd", "enabled"), new=False)
    return replace(plan, values=values)


def test_upgrade_when_it_fails_then_the_last_deployed_revision_is_back_and_said_so(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    first = bare(plan_release([CUT], Snapshot()))
    keeper.install_or_upgrade(first, 0)
    before = look(kube).config_map
    live.cluster.denied |= {(verb, "deployments.apps") for verb in ("create", "patch")}
    with pytest.raises(AccessError) as caught:
        keeper.install_or_upgrade(plan_release([CUT, SHARED], look(kube)), 1)
    (said,) = caught.value.diagnostics
    assert said.why.endswith("; the release was rolled back to revision 1, which serves as before")
    seen = look(kube)
    release = seen.release_of(DEVICE_PLUGIN)
    assert release is not None
    assert (release.revision, release.status, release.values) == (3, "deployed", first.values)
    assert seen.config_map == before

    live.cluster.denied.clear()
    plan = plan_release([CUT, SHARED], seen)
    assert keeper.install_or_upgrade(plan, plan.revision).status == "deployed"
    assert plan_release([CUT, SHARED], look(kube)).action == "none"


def test_upgrade_when_the_rollback_fails_too_then_the_command_is_named(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(plan_release([CUT], Snapshot()), 0)
    live.cluster.denied |= {(verb, "configmaps") for verb in ("create", "patch", "update")}
    with pytest.raises(AccessError) as caught:
        keeper.install_or_upgrade(plan_release([CUT, SHARED], look(kube)), 1)
    (said,) = caught.value.diagnostics
    assert "could not be rolled back to revision 1" in said.why
    assert said.fix.endswith(f"helm rollback {RELEASE_NAME} 1 --namespace {NAMESPACE}")

    live.cluster.denied.clear()
    plan = plan_release([CUT, SHARED], look(kube))
    assert "its last change ended as failed" in plan.reason
    keeper.install_or_upgrade(plan, plan.revision)
    assert plan_release([CUT, SHARED], look(kube)).action == "none"


def test_install_when_the_first_one_fails_then_nothing_to_go_back_to_and_the_next_run_goes_on(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    live.cluster.denied |= {(verb, "deployments.apps") for verb in ("create", "patch")}
    with pytest.raises(AccessError) as caught:
        keeper.install_or_upgrade(plan_release([CUT], Snapshot()), 0)
    assert "roll" not in caught.value.diagnostics[0].why
    live.cluster.denied.clear()
    plan = plan_release([CUT], look(kube))
    keeper.install_or_upgrade(plan, plan.revision)
    assert plan_release([CUT], look(kube)).action == "none"
