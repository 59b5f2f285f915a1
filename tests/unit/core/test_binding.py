"""The field table: a row of a made-up cloud drives all that is read off it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from gpukube.core import binding
from gpukube.core.binding import Binding, Draft, Effect
from gpukube.core.diff import diff_fields
from gpukube.core.fields import DISK_SIZE, FieldPath, label
from gpukube.core.values import Ability, Change, Disk, UpdateRow
from tests.builders import by_text, make_target

Tree = Mapping[str, object]
FLAG = FieldPath("nodes", "exampleFlag")
EXACT = Ability("exact")


@dataclass(frozen=True, slots=True)
class FlagDraft(Draft):
    flag: object


BINDINGS: tuple[Binding[FlagDraft, Tree], ...] = (
    Binding(
        path=DISK_SIZE,
        wire=("config", "disks", 0, "sizeGb"),
        get=lambda draft: draft.target.disk.size_gib,
        write=lambda draft: str(draft.target.disk.size_gib),
        read=lambda _: 100,
        effect=Effect("replace", "set at creation only", "made up"),
        ability=EXACT,
        feature="disk.size",
    ),
    Binding(
        path=label("*"),
        wire=("config", "labels"),
        get=lambda draft: draft.labels,
        effect=Effect("in-place", "relabels", "made up", "update"),
    ),
    Binding(path=label("odd"), effect=Effect("disruptive", "evicts", "made up", "update")),
    Binding(
        path=FLAG,
        wire=("config", "disks", 0, "flag"),
        get=lambda draft: draft.flag,
        effect=Effect("in-place", "holds at once", "made up", "update"),
        ability=EXACT,
    ),
)
"""The last row is the shortest: what is declared goes to its place on the wire as it is."""


def draft(*, flag: object = True) -> FlagDraft:
    return FlagDraft(replace(make_target(), disk=Disk(200, None)), {"a.b/c": "1"}, flag)


def test_row_when_in_the_table_then_body_fields_and_observation_have_the_field() -> None:
    sent = draft()
    body = binding.body(BINDINGS, sent)
    assert body == {"config": {"disks": [{"sizeGb": "200", "flag": True}], "labels": {"a.b/c": "1"}}}
    desired, observed = binding.desired_fields(BINDINGS, sent), binding.observed_fields(BINDINGS, body, body)
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


@given(st.none() | st.booleans() | st.integers() | st.text(max_size=5))
def test_field_when_sent_and_read_again_then_no_difference(value: object) -> None:
    sent = draft(flag=value)
    body = binding.body(BINDINGS[1:], sent)
    assert binding.observed_fields(BINDINGS[1:], body, body) == binding.desired_fields(BINDINGS[1:], sent)
