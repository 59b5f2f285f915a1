"""Two live pools of one mark: which of them is the old one, what is left to do, and under which names pools live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    fields = {**AUTOSCALED.fields, INSTANCE_TYPE: "other"}
    old = make_observed(AUTOSCALED, fields=fields, copy=AUTOSCALED.copy)
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
        ((live(NAME, fits=False, copy=None), live(ALTERNATE)), NAME, ()),  # surge would have written it
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
        assert f"gpukube pool release {plan.cluster.key}/{strange} " in str(found.fix)
        removals = [plan_removal(PROVIDER, WANTED.target.cluster, pool, order) for pool in pools]
        if not taken and THEIRS not in {pool.copy for pool in pools}:  # no spec says any more whose it was
            assert {(one.action, one.requests) for one in removals} == {("conflict", ())}


def form_of(name: str) -> Desired:
    return replace(FIXED, target=replace(FIXED.target, name=name))


@pytest.mark.parametrize(
    ("first", "second", "is_pair"),
    [
        ({"copy": None}, {}, True),  # adopted under the declared name, or a clone of labels alone: docs/replace.md
        ({"copy": THEIRS}, {"copy": THEIRS}, True),
        ({}, {"copy": None}, False),
        ({"copy": None, "copied": True}, {}, False),
        ({}, {"copy": None, "copied": True}, False),
    ],
)
def test_plan_when_copies_are_fixed_then_the_place_in_them_alone_counts(
    first: dict[str, Any], second: dict[str, Any], *, is_pair: bool
) -> None:
    pair = (live(NAME, fits=False, **first), live(ALTERNATE, **second))
    plan = plan_pool(PROVIDER, FIXED, pair, form=form_of)
    assert plan.action == ("replace" if is_pair else "conflict")


@pytest.mark.parametrize(
    ("pool", "taken", "obstacle"),
    [
        (live(NAME, fits=False), (), ""),
        (live(NAME, fits=False, copy=None), (), "writes"),
        (live(ALTERNATE, fits=False, copy=None), (), "writes"),
        (live(ALTERNATE, fits=False, copy=THEIRS), (), "writes"),
        (live("older", fits=False), (), "older is live under another name"),
        (live(NAME, fits=False), (ALTERNATE,), "another pool of the spec has the cloud name"),
        (live(ALTERNATE, fits=False), (ALTERNATE,), "another pool of the spec has the cloud name"),
    ],
)
def test_plan_when_it_is_to_be_replaced_then_its_copy_is_written_first_or_surge_is_refused(
    pool: Observed, taken: tuple[str, ...], obstacle: str
) -> None:
    plan = plan_pool(PROVIDER, WANTED, (pool,), taken=taken)
    assert plan.replacement is not None
    if obstacle in ("", "writes"):
        writes = [request.operation for request in plan.replacement.requests] == ["update", "create", "delete"]
        assert (plan.replacement.obstacles, writes) == ((), bool(obstacle))
        return
    (found,) = plan.replacement.obstacles
    assert (found.code, obstacle in found.seen, plan.replacement.requests) == ("surge-impossible", True, ())


class Fixed(FakeProvider):
    """A cloud that writes copies at creation only."""

    requests = replace(FakeProvider.requests, copy=lambda _cluster, _observed: None)


@pytest.mark.parametrize(("name", "possible"), [(NAME, True), (ALTERNATE, False)])
def test_plan_when_a_missing_copy_cannot_be_written_then_surge_is_refused_where_it_is_needed(
    name: str, *, possible: bool
) -> None:
    plan = plan_pool(Fixed(), FIXED, (live(name, fits=False, copy=None),), form=form_of)
    assert plan.replacement is not None
    assert (plan.replacement.successor is not None) == possible


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
        (ALTERNATE, "true", "create"),  # GKE's label of earlier releases: below
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


@pytest.mark.parametrize(("taken", "action"), [((), "conflict"), ((ALTERNATE,), "create")])
def test_plan_when_an_earlier_release_left_true_then_found_where_copies_are_fixed_unless_the_name_is_anothers(
    taken: tuple[str, ...], action: str
) -> None:
    stranger = live(ALTERNATE, owner="", pool="", copy=None, labels={RELEASED_LABEL: "true"}, fields={})
    assert plan_pool(PROVIDER, FIXED, (stranger,), form=form_of, taken=taken).action == action


@pytest.mark.parametrize("adopt", [False, True])
def test_plan_when_the_declared_name_has_half_the_marks_then_a_conflict_that_no_option_resolves(*, adopt: bool) -> None:
    half = live(NAME, pool="", copy=None)
    plan = plan_pool(PROVIDER, WANTED, (half,), adopt=adopt, adopt_from=(half.owner,), adopt_managed=adopt)
    assert (plan.action, plan.requests, [d.code for d in plan.diagnostics]) == ("conflict", (), ["half-marks"])


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
