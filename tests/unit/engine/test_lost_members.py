"""Members that a replacement would lose: refused by name, accepted by name, never shown with a value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube.core.members import Chosen
from gpukube.core.values import PoolPlan, Request
from gpukube.engine.plan.lost_members import parse_accepted, require_lost, with_lost_members
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.errors import GpukubeError, SpecError
from gpukube.testing.fakes import FakeExtras, FakeProvider
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import desire

if TYPE_CHECKING:
    from gpukube.core.values import Action, Desired, Observed

IOPS = Chosen("disk.iops", ("disk", "iops"), "field", 6000)
OWNER = Chosen("fake.metadata[owner]", ("metadata", "owner"), "native", "s3cret")
SANDBOX = Chosen("fake.sandbox", ("sandbox",), "unsupported", "s3cret", "pools run plain containers")


@dataclass
class Members:
    """Loses the same members of every pool."""

    losses: tuple[Chosen, ...]

    def chosen(self, _observed: Observed) -> tuple[Chosen, ...]:
        return self.losses

    def lost(self, _observed: Observed, _desired: Desired) -> tuple[Chosen, ...]:
        return self.losses


def provider(*losses: Chosen) -> FakeProvider:
    found = FakeProvider()
    found.extras = FakeExtras()
    found.extras.members = Members(losses)
    return found


def planned(action: Action = "replace", state: Literal["ready", "deleting"] = "ready", calls: int = 2) -> PoolPlan:
    desired = desire()
    observed = replace(make_observed(desired), state=state)
    requests = (Request("fake", "x", {}),) * calls
    return PoolPlan(CLUSTER, "a", "a-live", action, "", desired, observed, (), requests)


def findings(plan: PoolPlan) -> list[tuple[str, str]]:
    return [(found.severity, found.seen.rpartition(": ")[2]) for found in plan.diagnostics]


def test_replacement_when_it_loses_members_then_refused_by_name_with_the_options_that_accept_it() -> None:
    plan = with_lost_members(planned(), provider(IOPS, OWNER, SANDBOX), ())
    assert findings(plan) == [("error", "disk.iops, fake.metadata[owner]"), ("error", "fake.sandbox")]
    sayable, other = plan.diagnostics
    assert sayable.fix.endswith("accept the loss: --accept-loss disk.iops --accept-loss 'fake.metadata[owner]'")
    assert (other.why, other.fix) == (
        "fake.sandbox: pools run plain containers",
        "keep the pool, or accept the loss: --accept-loss fake.sandbox",
    )
    assert "s3cret" not in str(plan.diagnostics)


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        (["disk.iops"], "fake.metadata[owner]"),
        (["a:disk.iops"], "fake.metadata[owner]"),
        (["b:disk.iops"], "disk.iops, fake.metadata[owner]"),
        (["fake.metadata[owner]"], "disk.iops"),
        (["disk.iops", "fake.metadata[owner]"], ""),
    ],
)
def test_loss_when_accepted_then_only_what_is_named_is_a_warning(accepted: list[str], left: str) -> None:
    plan = with_lost_members(planned(), provider(IOPS, OWNER), accepted)
    assert [seen for severity, seen in findings(plan) if severity == "error"] == ([left] if left else [])
    agreed = [seen for severity, seen in findings(plan) if severity == "warning"]
    assert len(agreed) == (left != "disk.iops, fake.metadata[owner]")


@pytest.mark.parametrize(
    "plan",
    [planned("update"), planned(state="deleting"), planned("create", calls=1), replace(planned(), observed=None)],
)
def test_pool_when_it_stays_or_is_gone_then_nothing_is_lost(plan: PoolPlan) -> None:
    assert with_lost_members(plan, provider(IOPS), ()) == plan


def test_failed_pool_when_deleted_and_created_again_then_loses_members_too() -> None:
    assert findings(with_lost_members(planned("create"), provider(IOPS), ())) == [("error", "disk.iops")]


def test_key_when_it_has_a_colon_then_is_not_taken_for_a_pool() -> None:
    assert parse_accepted("tags[a:b]") == ("", "tags[a:b]")
    assert parse_accepted("pool:tags[a:b]") == ("pool", "tags[a:b]")


def test_argument_when_nothing_would_lose_it_then_refused_with_what_would_be_lost() -> None:
    plan = ClusterPlan(CLUSTER, pools=(with_lost_members(planned(), provider(IOPS), ()),))
    require_lost([plan], ["disk.iops", "a:disk.iops"])
    for argument in ("disk.iop", "b:disk.iops"):
        with pytest.raises(SpecError, match="no replacement in this plan would lose it") as caught:
            require_lost([plan], [argument])
        assert caught.value.diagnostics[0].fix == "write one of disk.iops, or remove it"


def test_argument_when_the_pool_is_gone_or_unknown_then_the_command_can_be_run_again() -> None:
    gone = ClusterPlan(CLUSTER, pools=(replace(planned("create", calls=1), observed=None),))
    unread = ClusterPlan(CLUSTER, error=GpukubeError("x", code="cloud-answer"))
    require_lost([gone], ["a:disk.iops"])
    require_lost([unread], ["disk.iops"])
