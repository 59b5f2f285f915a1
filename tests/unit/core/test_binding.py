"""The field table: a row of a made-up cloud drives all that is read off it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from gpukube.core import binding
from gpukube.core.binding import Binding, Draft, Effect
from gpukube.core.diff import diff_fields
from gpukube.core.fields import DISK_SIZE, FieldPath, label
from gpukube.core.values import Ability, Change, Disk, UpdateRow
from gpukube.engine.plan.fidelity import check_fidelity, inexact, used_features
from gpukube.spec.base import SpecModel
from gpukube.spec.plain import PLAIN, plain_values
from tests.builders import by_text, make_target

Tree = Mapping[str, object]
FLAG = FieldPath("nodes", "exampleFlag")
EXACT = Ability("exact")
BINDINGS: tuple[Binding[Draft, Tree], ...] = (
    Binding(
        path=DISK_SIZE,
        wire=("config", "disks", 0, "sizeGb"),
        get=lambda made: made.target.disk.size_gib,
        write=lambda made: str(made.target.disk.size_gib),
        read=lambda _: 100,
        effect=Effect("replace", "set at creation only", "made up"),
        ability=EXACT,
        feature="disk.size",
    ),
    Binding(
        path=label("*"),
        wire=("config", "labels"),
        get=lambda made: made.labels,
        effect=Effect("in-place", "relabels", "made up", "update"),
    ),
    Binding(path=label("odd"), effect=Effect("disruptive", "evicts", "made up", "update")),
    Binding(
        path=FLAG,
        wire=("config", "disks", 0, "flag"),
        effect=Effect("in-place", "holds at once", "made up", "update"),
        ability=EXACT,
    ),
)
"""The last row is that of a plain field: a path, a place on the wire, what a change does, how faithful."""


class Nodes(SpecModel):
    example_flag: Annotated[bool | None, PLAIN] = Field(default=None, description="made up")


class Pool(SpecModel):
    nodes: Nodes = Nodes()
    plain: Annotated[int | None, PLAIN] = None


def draft(*, flag: object = True) -> Draft:
    plain = {} if flag is None else {FLAG: flag}
    return Draft(replace(make_target(), disk=Disk(200, None), plain=plain), {"a.b/c": "1"})


def test_plain_fields_when_written_then_found_by_their_paths() -> None:
    assert dict(plain_values(Pool.model_validate({"nodes": {"exampleFlag": False}}))) == {
        ("nodes", "exampleFlag"): False
    }


def test_row_when_in_the_table_then_body_fields_and_observation_have_the_field() -> None:
    made = draft()
    body = binding.body(BINDINGS, made)
    assert body == {"config": {"disks": [{"sizeGb": "200", "flag": True}], "labels": {"a.b/c": "1"}}}
    desired, observed = binding.desired_fields(BINDINGS, made), binding.observed_fields(BINDINGS, body, body)
    assert by_text(desired) == {"disk.sizeGiB": 200, "labels[a.b/c]": "1", "nodes.exampleFlag": True}
    assert diff_fields(desired, observed) == (Change(DISK_SIZE, 100, 200),)


def test_row_when_in_the_table_then_members_abilities_and_updates_know_the_field() -> None:
    assert binding.managed_members(BINDINGS) == {
        "config.disks.sizeGb": "disk.sizeGiB",
        "config.labels": "labels",
        "config.disks.flag": "nodes.exampleFlag",
    }
    assert binding.abilities(BINDINGS) == {"disk.size": EXACT, "nodes.exampleFlag": EXACT}
    rows = {row.path: row.row for row in BINDINGS}
    assert binding.find_row(rows, {}, FLAG) == UpdateRow(FLAG, "in-place", "holds at once", "update", "made up")
    assert [row.kind for key in ("a", "odd") if (row := binding.find_row(rows, {}, label(key)))] == [
        "in-place",
        "disruptive",
    ]
    assert binding.find_row(rows, {}, FieldPath("made", "up")) is None


def test_plain_field_when_a_provider_has_no_row_then_it_is_missing_and_never_silent() -> None:
    target = draft().target
    assert used_features(target)[-1] == "nodes.exampleFlag"
    known = dict.fromkeys(used_features(target), EXACT)
    assert inexact(target, known) == {}
    del known["nodes.exampleFlag"]
    (finding,) = check_fidelity(target, known)
    assert (finding.code, finding.severity) == ("missing-feature", "error")


@given(st.none() | st.booleans() | st.integers() | st.text(max_size=5))
def test_plain_field_when_sent_and_read_again_then_no_difference(value: object) -> None:
    made = draft(flag=value)
    body = binding.body(BINDINGS[1:], made)
    assert binding.observed_fields(BINDINGS[1:], body, body) == binding.desired_fields(BINDINGS[1:], made)
