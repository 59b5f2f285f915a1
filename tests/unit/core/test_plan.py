"""The plan of one pool: what will happen, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.core.fields import INSTANCE_TYPE, FieldPath, label, tag
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
    [(label("team"), "speech", "update"), (INSTANCE_TYPE, "other", "replace")],
)
def test_plan_when_a_field_differs_then_one_change_of_its_class(field: FieldPath, value: str, action: str) -> None:
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


def test_plan_when_the_cloud_says_that_something_is_wrong_then_a_warning_and_no_difference() -> None:
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, failure="AsgInstanceLaunchFailures: no subnet"),))
    assert (plan.action, [(d.code, d.severity) for d in plan.diagnostics]) == ("no-op", [("pool-ails", "warning")])


LOST = make_observed(WANTED, owner="", pool="", protected=True, copy=WANTED.copy, labels={})
FAILED = {"state": "failed", "status": "Failed"}


def test_plan_when_only_the_copy_names_it_then_ours_under_any_name() -> None:
    fields = {path: value for path, value in LOST.fields.items() if not path.is_below("labels")}
    plan = plan_pool(PROVIDER, WANTED, (replace(LOST, name="a100migb", fields=fields),))
    assert (plan.action, plan.name) == ("update", "a100migb")
    assert "its gpukube.io labels were replaced" in plan.why
    assert {label("gpukube.io/owner"), label("gpukube.io/pool")} <= {c.change.field for c in plan.changes}


@pytest.mark.parametrize("asked", [{"adopt": True}, {"adopt_managed": True}, {"adopt_from": ("others",)}])
def test_plan_when_an_adoption_was_cut_off_after_the_copy_then_asked_again_it_gives_the_labels(
    asked: dict[str, Any],
) -> None:
    fields = {path: value for path, value in LOST.fields.items() if not path.is_below("labels")}
    lost = replace(LOST, fields=fields)
    plan = plan_pool(PROVIDER, WANTED, (lost,), **asked)
    assert (plan.action, len(plan.requests)) == ("adopt", 1)
    half = plan_pool(PROVIDER, WANTED, (replace(lost, owner=WANTED.target.owner),), **asked)
    assert half.action == "update"


def test_plan_when_another_pool_has_the_marks_then_the_copy_is_no_second_half_of_a_replacement() -> None:
    second = replace(LOST, name="a100migb")
    plan = plan_pool(PROVIDER, WANTED, (second, make_observed(WANTED, copy=WANTED.copy)))
    assert (plan.action, plan.name) == ("no-op", WANTED.target.name)
    for live in ((second, make_observed(WANTED)), (LOST, make_observed(WANTED, name="victim"))):
        plan = plan_pool(PROVIDER, WANTED, live)
        assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["two-pools"])


def test_plan_when_two_pools_have_the_copy_alone_then_the_declared_name_or_a_conflict() -> None:
    second, third = replace(LOST, name="a100migb"), replace(LOST, name="a100migc")
    assert plan_pool(PROVIDER, WANTED, (second, LOST)).name == WANTED.target.name
    plan = plan_pool(PROVIDER, WANTED, (second, third))
    assert (plan.action, [d.code for d in plan.diagnostics], plan.requests) == ("conflict", ["lost-marks"], ())


def test_plan_when_a_pool_with_lost_marks_failed_then_it_is_not_made_again() -> None:
    plan = plan_pool(PROVIDER, WANTED, (replace(LOST, **FAILED),))  # type: ignore[arg-type]  # test data
    assert (plan.action, [d.code for d in plan.diagnostics], plan.requests) == ("conflict", ["lost-marks"], ())


def test_plan_when_the_copy_says_protected_and_the_spec_does_not_then_shown() -> None:
    copy = replace(WANTED.copy, protected=True) if WANTED.copy else None
    plan = plan_pool(PROVIDER, WANTED, (replace(LOST, copy=copy),))
    assert ("deletionProtection", True, None) in [
        (str(c.change.field), c.change.old, c.change.new) for c in plan.changes
    ]


@pytest.mark.parametrize(("owner", "pool"), [("others", "x"), ("others", "a100mig")])
def test_plan_when_a_label_names_another_owner_then_it_wins_over_our_copy(owner: str, pool: str) -> None:
    plan = plan_pool(PROVIDER, WANTED, (replace(LOST, owner=owner, pool=pool),), adopt=True, adopt_from=(owner,))
    assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["foreign-pool"])


def test_plan_when_a_tag_of_ours_is_not_declared_then_it_goes_and_those_of_others_stay() -> None:
    fields = {**WANTED.fields, tag("ours"): "1", tag("theirs"): "2"}
    plan = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, fields=fields, written=frozenset({tag("ours")})),))
    assert [(str(c.change.field), c.change.old, c.change.new) for c in plan.changes] == [("tags[ours]", "1", None)]


MANAGED = make_observed(WANTED, owner="", pool="", fields={**WANTED.fields, tag("made-by"): "templates"})


@pytest.mark.parametrize("adopt", [False, True])
def test_plan_when_something_else_manages_the_pool_then_adopted_only_on_its_own_option(*, adopt: bool) -> None:
    plan = plan_pool(PROVIDER, WANTED, (MANAGED,), adopt=adopt, adopt_from=("others",))
    assert (plan.action, plan.obstacle, plan.requests) == ("conflict", "managed", ())
    (problem,) = plan.diagnostics
    assert (problem.code, "templates (tag made-by) manages it" in problem.seen) == ("managed-pool", True)
    assert "--adopt-managed --pool a100mig" in problem.fix
    adopted = plan_pool(PROVIDER, WANTED, (MANAGED,), adopt=adopt, adopt_managed=True)
    assert adopted.action == "adopt"
    assert ("managed-pool", "warning") in [(one.code, one.severity) for one in adopted.diagnostics]


def test_plan_when_another_owner_has_the_managed_pool_then_no_option_adopts_it() -> None:
    live = replace(MANAGED, owner="others", pool="x")
    plan = plan_pool(PROVIDER, WANTED, (live,), adopt=True, adopt_from=("others",), adopt_managed=True)
    assert [one.code for one in plan.diagnostics] == ["foreign-pool"]


def test_plan_when_our_own_pool_has_a_sign_of_another_manager_then_it_is_ours() -> None:
    plan = plan_pool(PROVIDER, WANTED, (replace(MANAGED, owner=WANTED.target.owner, pool=WANTED.target.pool),))
    assert "managed-pool" not in [one.code for one in plan.diagnostics]
