"""Every edit of a live pool, on a running sandbox through the real SDK: one change, its calls, and nothing else moved.

Runs over the table of edits, which has one for every row of the updatability tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import FieldPath
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import GPU_TAINT
from gpukube_gke.pool.updates import INTENT_ROWS, NATIVE_ROWS
from tests.unit.gpukube_gke.edits import EDITS, Edit
from tests.unit.gpukube_gke.targets import PROVIDER, desire
from tests.wire.gke.living import bring_about, create, find, machines, moved, planned, prove

if TYPE_CHECKING:
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

MUTABLE = ("in-place", "disruptive")


def names_of(edits: dict[str, Edit], *kinds: str) -> list[str]:
    return [name for name, edit in edits.items() if edit.kind in kinds]


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", names_of(EDITS, *MUTABLE))
def test_edit_when_brought_about_is_one_change_and_moves_nothing_else(
    edited_sandbox: SandboxInfo, living: GkeCloud, name: str
) -> None:
    edit = EDITS[name]
    create(living, edit.base)
    before, old = find(living), machines(edited_sandbox)
    (change,) = planned(living, desire(edit.target))
    assert (str(change.change.field), change.row.kind) == (edit.field, edit.kind)

    plan = plan_pool(PROVIDER, desire(edit.target), living.pools())
    calls = bring_about(living, desire(edit.target))
    after = find(living)

    assert [call.operation for call in calls] == [call.operation for call in plan.requests]
    assert calls[0] == plan.requests[0]
    assert calls[0].operation == change.row.call
    assert plan_pool(PROVIDER, desire(edit.target), living.pools()).action == "no-op"
    stray = {path for path in moved(before, after) if not f"{path}.".startswith(tuple(f"{m}." for m in edit.moves))}
    assert stray == set()
    assert GPU_TAINT in after.effective_taints
    if edit.kind == "in-place":
        assert set(machines(edited_sandbox)) >= set(old)


@pytest.mark.parametrize("name", names_of(EDITS, "replace", "refused"))
def test_edit_when_it_cannot_be_in_place_is_planned_as_such(living: GkeCloud, name: str) -> None:
    edit = EDITS[name]
    create(living, edit.base)
    plan = plan_pool(PROVIDER, desire(edit.target), living.pools())

    assert [(str(c.change.field), c.row.kind) for c in plan.changes] == [(edit.field, edit.kind)]
    assert plan.action == "replace"
    assert [request.operation for request in plan.requests] == ["delete_node_pool", "create_node_pool"]


def test_rows_when_compared_with_the_edits_have_one_each() -> None:
    mutable = {field for field, row in {**INTENT_ROWS, **NATIVE_ROWS}.items() if row.kind in MUTABLE}

    assert mutable <= {FieldPath.parse(edit.row) for edit in EDITS.values() if edit.kind in MUTABLE}


ROLLING = (
    "instanceType, the same GPUs",
    "disk.type",
    "image",
    "sharing.mps.replicas",
    "driver",
    "tags",
    "kubernetesVersion",
)


@pytest.mark.parametrize("name", ROLLING)
def test_edit_when_it_makes_the_nodes_again_leaves_none_of_the_old(
    edited_sandbox: SandboxInfo, living: GkeCloud, name: str
) -> None:
    create(living, EDITS[name].base)
    old = machines(edited_sandbox)
    bring_about(living, desire(EDITS[name].target))

    assert len(machines(edited_sandbox)) == len(old)
    assert not set(old) & set(machines(edited_sandbox))


PROVEN = {"sharing.timeSlicing.replicas, new": 4, "sharing.mps.replicas": 8, "sharing.timeSlicing.replicas, on MIG": 21}


@pytest.mark.parametrize(("name", "devices"), PROVEN.items())
def test_sharing_when_changed_is_proven_on_the_new_nodes(living: GkeCloud, name: str, devices: int) -> None:
    create(living, EDITS[name].base)
    desired = desire(EDITS[name].target)
    bring_about(living, desired)

    assert prove(living, desired).total == {"nvidia.com/gpu": devices}
