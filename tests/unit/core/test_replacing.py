"""Two live pools of one mark: which of them is the old one, what is left to do, and under which names pools live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import INSTANCE_TYPE, label
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.replacing import successor_name
from gpukube.core.values import OWNER_LABEL, RELEASED_LABEL, MarksCopy, Nodes
from gpukube.spec.poolnames import alternate_name
from gpukube.testing.fakes import FakeProvider
from tests.builders import make_observed, make_target
from tests.unit.core.test_plan import WANTED, desire

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed, SurgeStep

PROVIDER = FakeProvider()
NAME = WANTED.target.name
AUTOSCALED = desire(make_target(nodes=Nodes(1, 0, 4, autoscaled=True)))
ALTERNATE = alternate_name(NAME)


def live(name: str, *, fits: bool = True, **changes: object) -> Observed:
    other = {} if fits else {INSTANCE_TYPE: "other"}
    made = make_observed(WANTED, name=name, fields={**WANTED.fields, **other}, copy=WANTED.copy)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def left(name: str) -> Observed:
    """What a killed run leaves of a pool: no nodes, and nothing to compare."""
    return live(name, fields={}, state="failed", status="NO_NODE_GROUP")


def test_successor_name_when_replaced_again_and_again_then_two_names_take_turns() -> None:
    assert [successor_name("a100", name) for name in ("a100", "a100b", "older")] == ["a100b", "a100", "a100"]


@pytest.mark.parametrize(("name", "successor"), [(NAME, ALTERNATE), (ALTERNATE, NAME)])
def test_plan_when_it_must_be_replaced_then_the_second_pool_has_the_other_name(name: str, successor: str) -> None:
    plan = plan_pool(PROVIDER, WANTED, (live(name, fits=False),))
    assert plan.replacement is not None
    assert plan.replacement.successor is not None
    assert (plan.action, plan.name, plan.replacement.name) == ("replace", name, successor)
    assert plan.replacement.successor.create.params["body"]["name"] == successor  # type: ignore[index]  # a body
    assert [r.operation for r in plan.replacement.requests] == ["create", "delete"]
    assert plan.replacement.requests[-1].params["name"] == name
    assert [r.operation for r in plan.requests] == ["delete", "create"], "recreate, until a surge is asked for"


def test_plan_when_the_pool_lives_under_its_alternate_name_then_it_is_the_pool() -> None:
    plan = plan_pool(PROVIDER, WANTED, (live(ALTERNATE),))
    assert (plan.action, plan.name, plan.desired and plan.desired.target.name) == ("no-op", ALTERNATE, ALTERNATE)


def test_plan_when_a_replaced_pool_is_autoscaled_then_its_autoscaler_is_stopped_before_it_goes() -> None:
    old = make_observed(AUTOSCALED, fields={**AUTOSCALED.fields, INSTANCE_TYPE: "other"})
    plan = plan_pool(PROVIDER, AUTOSCALED, (old,))
    assert plan.replacement is not None
    assert [r.operation for r in plan.replacement.requests] == ["create", "update", "delete"]


@pytest.mark.parametrize(
    ("first", "second", "old", "step"),
    [
        (live(NAME, fits=False), live(ALTERNATE), NAME, "prove"),
        (live(NAME), live(ALTERNATE, fits=False), ALTERNATE, "prove"),
        (live(NAME, fits=False), live(ALTERNATE, state="busy", status="Creating"), NAME, "create"),
        (live(NAME, fits=False), live(ALTERNATE, state="failed", status="Failed"), NAME, "create"),
        (live(NAME, fits=False), live(ALTERNATE, state="deleting", status="Deleting"), NAME, "create"),
        (live(NAME, fits=False), left(ALTERNATE), NAME, "create"),
        (left(NAME), live(ALTERNATE), NAME, "delete"),
        (live(NAME, fits=False, state="deleting", status="Deleting"), live(ALTERNATE), NAME, "delete"),
        (live(NAME, state="deleting", status="Deleting"), live(ALTERNATE), NAME, "delete"),
        (live(NAME, fits=False, state="failed", status="Failed"), live(ALTERNATE), NAME, "prove"),
    ],
)
def test_plan_when_two_pools_have_one_mark_then_the_one_that_matches_is_new(
    first: Observed, second: Observed, old: str, step: SurgeStep
) -> None:
    for pair in ((first, second), (second, first)):
        plan = plan_pool(PROVIDER, WANTED, pair)
        assert plan.replacement is not None
        assert plan.replacement.beside is not None
        assert (plan.action, plan.name, plan.replacement.step) == ("replace", old, step)
        assert {plan.name, plan.replacement.beside.name} == {o.name for o in pair}
        assert plan.desired is not None
        assert plan.desired.target.name == plan.replacement.beside.name


def test_plan_when_the_new_pool_differs_in_place_then_it_is_still_the_new_one() -> None:
    fields = {**WANTED.fields, label("team"): "speech"}
    plan = plan_pool(PROVIDER, WANTED, (live(NAME, fits=False), live(ALTERNATE, fields=fields)))
    assert plan.name == NAME
    assert [r.operation for r in plan.requests] == ["update", "delete"]


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ((live(NAME), live(ALTERNATE)), "both match the spec"),
        ((live(NAME, fits=False), live(ALTERNATE, fits=False)), "neither matches the spec"),
        ((live("one"), live("two", fits=False)), "only one is expected"),
        ((live(NAME, fits=False), live(ALTERNATE), live("third")), "only one is expected"),
    ],
)
def test_plan_when_it_cannot_be_told_which_is_old_then_nothing_is_guessed(
    pools: tuple[Observed, ...], message: str
) -> None:
    plan = plan_pool(PROVIDER, WANTED, pools)
    assert (plan.action, plan.requests) == ("conflict", ())
    assert [d.code for d in plan.diagnostics] == ["two-pools"]
    assert message in plan.why


FIXED = replace(WANTED, copy_is_fixed=True)
"""As on GKE, where an adopted pool keeps the copy of its first owner."""
THEIRS = MarksCopy("others", "theirs")


@pytest.mark.parametrize(
    ("pools", "strange", "taken"),
    [
        ((live(NAME), live("victim", fits=False)), "victim", ()),
        ((live(ALTERNATE), live("victim", fits=False)), "victim", ()),
        ((live(NAME, fits=False), live(ALTERNATE), live("third", copy=None)), "third", ()),
        ((live(NAME, fits=False), live(ALTERNATE, copy=None)), ALTERNATE, ()),
        ((live(NAME, fits=False), live(ALTERNATE, copy=None, copied=True)), ALTERNATE, ()),
        ((live(NAME, copy=None, copied=True, fits=False), live(ALTERNATE)), NAME, ()),
        ((live(NAME, copy=THEIRS, fits=False), live(ALTERNATE)), NAME, ()),
        ((live(NAME, fits=False), live(ALTERNATE, copy=THEIRS)), ALTERNATE, ()),
        ((live(NAME, fits=False), live(ALTERNATE)), ALTERNATE, (ALTERNATE,)),
    ],
)
def test_plan_when_marks_may_be_copied_then_two_pools_and_the_command_that_takes_them_off(
    pools: tuple[Observed, ...], strange: str, taken: tuple[str, ...]
) -> None:
    for order in (pools, pools[::-1]):
        plan = plan_pool(PROVIDER, WANTED, order, taken=taken)
        (found,) = plan.diagnostics
        assert (plan.action, plan.requests, plan.replacement, found.code) == ("conflict", (), None, "two-pools")
        assert all(pool.name in found.seen for pool in pools)
        assert f"gpukube pool release {strange} " in found.fix
        removals = [plan_removal(PROVIDER, WANTED.target.cluster, pool, order) for pool in pools]
        if not taken and THEIRS not in {pool.copy for pool in pools}:  # no spec says any more whose it was
            assert {(one.action, one.requests) for one in removals} == {("conflict", ())}


@pytest.mark.parametrize("copy", [None, THEIRS])
def test_plan_when_the_declared_pool_has_no_copy_or_where_copies_are_fixed_another_then_a_replacement(
    copy: MarksCopy | None,
) -> None:
    pair = (live(NAME, fits=False, copy=copy), live(ALTERNATE))
    plan = plan_pool(PROVIDER, WANTED if copy is None else FIXED, pair, form=lambda name: renamed_form(name, copy))
    assert (plan.action, plan.name) == ("replace", NAME)


def renamed_form(name: str, copy: MarksCopy | None) -> Desired:
    desired = WANTED if copy is None else FIXED
    return replace(desired, target=replace(desired.target, name=name))


def test_plan_when_the_only_pool_was_made_from_another_then_a_conflict() -> None:
    plan = plan_pool(PROVIDER, WANTED, (live("victim", copy=None, copied=True),))
    assert (plan.action, plan.requests, [d.code for d in plan.diagnostics]) == ("conflict", (), ["copied-marks"])


def test_removal_when_a_pool_has_an_owner_and_no_pool_then_a_conflict() -> None:
    plan = plan_removal(PROVIDER, WANTED.target.cluster, live(NAME, pool="", copy=None))
    assert (plan.action, plan.requests, [d.code for d in plan.diagnostics]) == ("conflict", (), ["half-marks"])


@pytest.mark.parametrize(
    ("name", "released", "action"),
    [
        (NAME, WANTED.target.pool, "conflict"),
        (ALTERNATE, WANTED.target.pool, "conflict"),
        (ALTERNATE, "true", "conflict"),
        (ALTERNATE, "another", "create"),
        ("elsewhere", WANTED.target.pool, "create"),
        (ALTERNATE, "", "create"),
        (NAME, "", "conflict"),
    ],
)
def test_plan_when_a_pool_was_released_then_found_under_both_names_and_adopted_without_the_label(
    name: str, released: str, action: str
) -> None:
    labels = {RELEASED_LABEL: released} if released else {}
    fields = {path: value for path, value in WANTED.fields.items() if path != label(OWNER_LABEL)}
    fields |= {label(key): value for key, value in labels.items()}
    stranger = live(name, owner="", pool="", copy=None, labels=labels, fields=fields)
    plan = plan_pool(PROVIDER, WANTED, (stranger,))
    assert plan.action == action
    if action == "create":
        warned = [found.code for found in plan.diagnostics if found.severity == "warning"]
        assert warned == (["surge-impossible"] if name == ALTERNATE else [])
        return
    assert [found.code for found in plan.diagnostics] == ["foreign-pool"]
    adopted = plan_pool(PROVIDER, WANTED, (stranger,), adopt=True)
    changed = {c.change.field: c.change.new for c in adopted.changes}
    assert (adopted.action, adopted.name) == ("adopt", name)
    assert (label(RELEASED_LABEL) in changed) == bool(released)
    assert changed.get(label(RELEASED_LABEL)) is None


@pytest.mark.parametrize(("adopt", "expected"), [(False, "marks-lost"), (True, "adopt")])
def test_plan_when_marks_are_lost_and_the_copy_is_fixed_then_only_adopting_restores_them(
    *, adopt: bool, expected: str
) -> None:
    fields = {path: value for path, value in FIXED.fields.items() if path != label(OWNER_LABEL)}
    plan = plan_pool(
        PROVIDER, FIXED, (live(NAME, owner="", pool="", fields=fields),), adopt=adopt, form=lambda _: FIXED
    )
    assert expected == (plan.diagnostics[0].code if plan.action == "conflict" else plan.action)
    assert bool(plan.requests) == adopt


def test_plan_when_the_live_pool_has_a_former_name_then_surge_is_impossible() -> None:
    plan = plan_pool(PROVIDER, WANTED, (live("older", fits=False),))
    assert plan.replacement is not None
    assert [one.code for one in plan.replacement.obstacles] == ["surge-impossible"]
    assert plan.action == "replace"


def test_plan_when_the_old_pool_is_protected_then_an_error_that_stops_the_run() -> None:
    plan = plan_pool(PROVIDER, WANTED, (live(NAME, fits=False, protected=True), live(ALTERNATE)))
    assert [d.code for d in plan.diagnostics if d.severity == "error"] == ["protected"]
