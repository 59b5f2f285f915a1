"""Every field of a spec edited on live pools: the change of the tables, the consent it needs, then none.

What each edit is by the tables is checked in each run, without a cloud. Live pools of so many fields cost minutes: a
twelfth of the edits, another each day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.core.diff import diff_fields
from gpukube.core.fields import KUBERNETES_VERSION
from gpukube.errors import Conflict
from gpukube.installed import load_installed
from tests.changes.edits import EDITS, OPERATED, ROWS, STRATEGY, UNREACHED, class_of, covers
from tests.changes.world import CLOUDS, World, address, differences, prepare, spec
from tests.networks import install_driver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired
    from gpukube.provider import Provider
    from tests.changes.edits import Class, Edit
    from tests.changes.world import Document

GROUPS: dict[str, list[Edit]] = {**EDITS, "operator": OPERATED}
CONSENTS: Mapping[Class, api.Consent] = {
    "nothing": api.Consent(),
    "in-place": api.Consent(),
    "disruptive": api.Consent(allow_disruption=True),
    "replace": api.Consent(replace="recreate"),
}
TOO_LITTLE: Mapping[Class, tuple[api.Consent, ...]] = {
    "nothing": (),
    "in-place": (),
    "disruptive": (api.Consent(), api.Consent(replace="recreate")),
    "replace": (api.Consent(), api.Consent(allow_disruption=True)),
    "refused": (api.Consent(), api.Consent(allow_disruption=True, replace="recreate")),
}
PARTS = 3
SUBNETS = [{"id": f"subnet-0000000{zone}", "zone": zone} for zone in "abc"]


def edits_of(group: str, kind: Class, part: int) -> dict[str, Edit]:
    """Return a part of the edits of a class by the names of their pools."""
    edits = [(f"e{at}", edit) for at, edit in enumerate(GROUPS[group]) if class_of(edit) == kind]
    return dict(edits[part::PARTS])


def cloud_of(group: str) -> str:
    """Return the cloud of a group of edits."""
    return group if group in CLOUDS else "eks"


CASES = [
    (group, kind, part)
    for group in GROUPS
    for kind in TOO_LITTLE
    for part in range(PARTS)
    if edits_of(group, kind, part)
]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_edits_when_compared_with_the_tables_leave_no_row_out(cloud: str) -> None:
    edits = [*EDITS[cloud], *([*OPERATED, STRATEGY] if cloud == "eks" else [])]
    fields = {field for edit in edits for field in edit.fields}
    reached = {row for row in ROWS[cloud] if any(covers(row, field) for field in fields)}
    missing = ROWS[cloud] - reached - UNREACHED[cloud].keys()
    assert missing == set(), f"add edits to tests/changes/edits.py, or to its UNREACHED why not: {missing}"
    needless = UNREACHED[cloud].keys() - (ROWS[cloud] - reached)
    assert needless == set(), f"remove these from UNREACHED in tests/changes/edits.py: {needless}"
    rowless = {field for field in fields if not any(covers(row, field) for row in ROWS[cloud])}
    assert rowless == set(), f"no row of pool/fields.py has these fields of edits: {rowless}"


@pytest.mark.parametrize("group", GROUPS)
def test_edit_when_compared_with_its_pool_as_declared_then_what_the_tables_promise(group: str) -> None:
    edits = GROUPS[group]
    provider = load_installed(cloud_of(group))
    place = {"here": address(cloud_of(group), "edits")}
    before, after = (
        prepare(spec("editors", place, [{"name": f"e{at}", **pool} for at, pool in enumerate(pools)])).desired["here"]
        for pools in ([edit.pool for edit in edits], [edit.edited for edit in edits])
    )
    for edit, old, new in zip(edits, before, after, strict=True):
        assert planned(provider, old, new) == dict(edit.fields), edit  # type: ignore[arg-type]  # found by its name


def planned(provider: Provider, old: Desired, new: Desired) -> dict[str, str]:
    """Describe what changes, and how, where a live pool is just as it was declared."""
    live = {KUBERNETES_VERSION: "1.34.2", **old.fields}
    changes = diff_fields(new.fields, live, [path for path in old.fields if path[0] == "tags"])
    return {str(change.field): provider.update_row(change, changes).kind for change in changes}


@pytest.mark.turns(9)
@pytest.mark.parametrize(("group", "kind", "part"), CASES)
def test_edit_when_applied_then_what_the_tables_promise_and_nothing_is_left(
    group: str, kind: Class, part: int, world: World
) -> None:
    check(group, kind, edits_of(group, kind, part), world)


def test_edit_when_it_is_the_strategy_of_an_operator_then_also(world: World) -> None:
    check("eks", class_of(STRATEGY), {"e0": STRATEGY}, world)


def check(group: str, kind: Class, edits: Mapping[str, Edit], world: World) -> None:
    """Edit pools, one field each, all of one class."""
    before, after = _staged(group, edits, world)
    planned = {
        name: {str(c.change.field): c.row.kind for c in pool.changes} for name, pool in world.pools(after).items()
    }
    assert planned == {name: dict(edit.fields) for name, edit in edits.items()}
    for consent in TOO_LITTLE[kind]:
        with pytest.raises(Conflict) as caught:
            world.apply(after, consent=consent)
        assert {d.where.source for d in caught.value.diagnostics} == {f"here/{name}" for name in edits}
    if kind != "refused":
        assert differences(world.plan(before)) == []
        reports = world.apply(after, consent=CONSENTS[kind])
        outcome = "unchanged" if kind == "nothing" else "done"
        assert {n: f"{r.outcome} {r.error or ''}" for n, r in reports.items()} == dict.fromkeys(edits, f"{outcome} ")
        assert differences(world.plan(after)) == []


def _staged(group: str, edits: Mapping[str, Edit], world: World) -> tuple[Document, Document]:
    """Make the pools; gives the spec that made them, and the edited one."""
    cloud = cloud_of(group)
    world.reset()
    clusters = {"here": world.make(cloud, f"{group}-edits", **({"subnets": SUBNETS} if cloud == "eks" else {}))}
    install_driver(world.info, clusters["here"])  # for GKE pools of the DRA driver
    before = spec("editors", clusters, [{"name": name, **edit.pool} for name, edit in edits.items()])
    after = spec("editors", clusters, [{"name": name, **edit.edited} for name, edit in edits.items()])
    created = world.create(before)
    assert {name: str(report.error) for name, report in created.items() if report.error is not None} == {}
    assert differences(world.plan(before)) == []
    return before, after
