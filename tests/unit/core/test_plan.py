"""The plan of one pool: what will happen, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.owners import solve_ownership
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import promise_of
from gpukube.core.values import Ownership
from gpukube.testing.fakes import FakeProvider
from tests.builders import make_observed, make_target

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Target

PROVIDER = FakeProvider()


def desire(target: Target) -> Desired:
    ownership = solve_ownership(target, PROVIDER.stack(target))
    assert isinstance(ownership, Ownership)
    return PROVIDER.desired(target, ownership, promise_of(target))


WANTED = desire(make_target(labels={"team": "vision"}))


def test_plan_when_nothing_is_there_then_create_with_the_request() -> None:
    plan = plan_pool(PROVIDER, WANTED, ())
    assert (plan.action, plan.requests) == ("create", (WANTED.create,))


def test_plan_when_it_matches_then_no_op_says_why() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED),))
    assert (plan.action, plan.why, plan.requests) == ("no-op", "matches the spec", ())


def test_plan_when_cloud_still_works_on_it_then_no_op_names_the_state() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, state="busy", status="Creating"),))
    assert plan.action == "no-op"
    assert "Creating" in plan.why


def test_plan_when_creation_failed_then_it_is_repaired() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, state="failed", status="Failed", failure="no room"),))
    assert plan.action == "create"
    assert "no room" in plan.why
    assert [r.operation for r in plan.requests] == ["repair"]


@pytest.mark.parametrize(
    ("field", "value", "action"),
    [("labels[team]", "speech", "update"), ("instanceType", "other", "replace")],
)
def test_plan_when_a_field_differs_then_one_change_of_its_class(field: str, value: str, action: str) -> None:
    live = make_observed(WANTED, fields={**WANTED.fields, field: value})
    plan = plan_pool(PROVIDER, WANTED, (live,))
    assert plan.action == action
    assert [(c.change.field, c.change.old, c.change.new) for c in plan.changes] == [
        (field, value, WANTED.fields[field])
    ]
    assert [r.operation for r in plan.requests] == {"update": ["update"], "replace": ["delete", "create"]}[action]


def test_plan_when_mark_matches_then_the_cloud_name_may_differ() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, name="a100migb"),))
    assert plan.action == "no-op"


@pytest.mark.parametrize("owner", ["", "another-team"])
def test_plan_when_name_is_taken_by_somebody_else_then_conflict(owner: str) -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner=owner, pool=owner and "x"),))
    assert (plan.action, plan.requests) == ("conflict", ())
    assert [d.code for d in plan.diagnostics] == ["foreign-pool"]


def test_plan_when_two_live_pools_carry_the_mark_then_unfinished_replacement() -> None:
    live = make_observed(WANTED)
    plan = plan_pool(PROVIDER, WANTED, (live, replace(live, name="a100migb")))
    assert (plan.action, plan.requests) == ("conflict", ())
    assert [d.code for d in plan.diagnostics] == ["two-pools"]


def test_plan_when_the_cloud_says_that_something_is_wrong_then_a_warning_and_no_difference() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, failure="AsgInstanceLaunchFailures: no subnet"),))
    assert (plan.action, [(d.code, d.severity) for d in plan.diagnostics]) == ("no-op", [("pool-ails", "warning")])
