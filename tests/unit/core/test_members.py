"""Members of an API object: which were chosen, and which a create request would not set."""

from __future__ import annotations

import pytest

from gpukube.core.fields import FieldPath, label
from gpukube.core.members import Chosen, Member, chosen_members, lost_members

MEMBERS = {
    "name": Member("server"),
    "disk.size": Member("field", "disk.sizeGiB", defaults=(100,)),
    "repair": Member("native", "nimbus.repair", defaults=(True,)),
    "labels.*": Member("field", "labels[*]"),
    "sandbox": Member("unsupported", reason="pools run plain containers"),
    "status.*": Member("server"),
}


def chosen(**live: object) -> list[tuple[str, object]]:
    return [(one.path, one.value) for one in chosen_members(live, MEMBERS, "nimbus")]


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        ({"name": "a", "status": {"ready": True}}, []),
        ({"disk": {"size": 100}}, []),
        ({"disk": {"size": 200}}, [("disk.sizeGiB", 200)]),
        ({"repair": True}, []),
        ({"repair": False}, [("nimbus.repair", False)]),
        ({"labels": {"team": "a", "x": ""}}, [("labels[team]", "a"), ("labels[x]", "")]),
        ({"sandbox": {"type": "GVISOR"}}, [("nimbus.sandbox", {"type": "GVISOR"})]),
        ({"brand": {"new": 1}}, [("nimbus.brand.new", 1)]),
        ({"brand": {}, "disk": {}, "sandbox": None}, []),
    ],
)
def test_object_when_read_then_values_of_people_are_chosen(
    live: dict[str, object], expected: list[tuple[str, object]]
) -> None:
    assert chosen(**live) == expected


def test_member_when_no_spec_can_say_it_then_has_a_reason() -> None:
    found = chosen_members({"sandbox": "GVISOR", "brand": 1}, MEMBERS, "nimbus")
    assert found == (
        Chosen("nimbus.sandbox", ("sandbox",), "unsupported", "GVISOR", "pools run plain containers"),
        Chosen("nimbus.brand", ("brand",), "unsupported", 1, "this version of gpukube does not know it"),
    )


def test_create_request_when_it_lacks_a_chosen_member_then_it_is_lost() -> None:
    live = {"disk": {"size": 200}, "repair": False, "labels": {"team": "a", "env": "b"}}
    create = {"disk": {"size": 50}, "labels": {"team": "c"}}
    chosen = chosen_members(live, MEMBERS, "nimbus")
    found = lost_members(chosen, create, [FieldPath("disk", "sizeGiB"), label("team")])
    assert [one.path for one in found] == ["nimbus.repair", "labels[env]"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("labels[env]", ["nimbus.repair"]),
        ("labels[en]", ["nimbus.repair", "labels[env]"]),
        ("nimbus", ["labels[env]"]),
        ("nimbus.repair.after", ["labels[env]"]),
        ("nimbus.rep", ["nimbus.repair", "labels[env]"]),
    ],
)
def test_member_when_the_plan_shows_its_change_then_it_is_not_lost(changed: str, expected: list[str]) -> None:
    chosen = chosen_members({"repair": False, "labels": {"env": "b"}}, MEMBERS, "nimbus")
    found = lost_members(chosen, {}, [FieldPath.parse(changed)])
    assert [one.path for one in found] == expected


def test_create_request_when_it_has_a_value_that_no_spec_asked_for_then_the_live_one_is_lost() -> None:
    chosen = chosen_members({"disk": {"size": 200}, "repair": False}, MEMBERS, "nimbus")
    found = lost_members(chosen, {"disk": {"size": 50}, "repair": False}, [FieldPath("disk", "type")])
    assert [one.path for one in found] == ["disk.sizeGiB"]


def test_message_when_only_parts_of_it_have_entries_then_the_rest_is_treated_as_the_message() -> None:
    members = {"place": Member("unsupported", reason="no"), "place.group": Member("field", "placement")}
    found = chosen_members({"place": {"group": "g", "host": "h"}}, members, "nimbus")
    assert [(one.path, one.reason) for one in found] == [("placement", ""), ("nimbus.place.host", "no")]
