"""${NAME} in texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.spec.samples import POOL, load_text, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {
    "TEAM": "vision",
    "NUMBER": "2",
    "YAML": "{a: b}",
    "NESTED": "${TEAM}",
    "SECRET": "hunter2 hunter2",
    "EMPTY": "",
}

CASES = {
    "alone": ("${TEAM}", "vision"),
    "inside": ("x-${TEAM}-y", "x-vision-y"),
    "twice": ("${TEAM}${TEAM}", "visionvision"),
    "escaped": ("$${TEAM}", "${TEAM}"),
    "not written": ("$TEAM", "$TEAM"),
    "a number stays a text": ("${NUMBER}", "2"),
    "YAML stays a text": ("${YAML}", "{a: b}"),
    "once only": ("${NESTED}", "${TEAM}"),
    "default not needed": ("${TEAM:-music}", "vision"),
    "default of an unset one": ("${NONE:-music}", "music"),
    "default of an empty one": ("${EMPTY:-music}", "music"),
    "empty default": ("x${NONE:-}y", "xy"),
    "empty without a default": ("x${EMPTY}y", "xy"),
    "default with blanks and signs": ("${NONE:-a b:-c/d}", "a b:-c/d"),
    "escaped with a default": ("$${NONE:-x}", "${NONE:-x}"),
}


@pytest.mark.parametrize(("written", "value"), CASES.values(), ids=CASES)
def test_variable_when_written_then_is_substituted_as_text(written: str, value: str, tmp_path: Path) -> None:
    text = spec_of(POOL.replace("nodes:", f'tags: {{team: "{written}"}}, nodes:'))
    assert load_text(tmp_path, text, environ=ENVIRON).spec.pools[0].tags == {"team": value}


def test_variable_when_in_a_key_or_comment_then_is_left_alone(tmp_path: Path) -> None:
    text = spec_of(POOL.replace("nodes:", 'tags: {"${NONE}": x}, nodes:')) + "# ${NONE}\n"
    assert load_text(tmp_path, text).spec.pools[0].tags == {"${NONE}": "x"}


def test_escape_when_two_aliases_share_it_then_is_undone_once(tmp_path: Path) -> None:
    pools = POOL.replace("nodes:", 'tags: &t {x: "$${TEAM}"}, nodes:')
    pools += POOL.replace("name: a", "name: b").replace("nodes:", "tags: *t , nodes:")
    spec = load_text(tmp_path, spec_of(pools), environ=ENVIRON).spec
    assert [pool.tags for pool in spec.pools] == [{"x": "${TEAM}"}] * 2


# Where a message quotes the value, the text as written stands instead of what the variable holds.
QUOTING = {
    "format": POOL.replace("name: a", 'name: "${SECRET}"'),
    "choice": POOL.replace("nodes:", 'capacity: {type: "${SECRET}"}, nodes:'),
    "type": POOL.replace("count: 1}, nodes", 'count: "${SECRET}"}, nodes'),
    "type of a list": POOL.replace("[train-aks]", '"${SECRET}"'),
    "cluster": POOL.replace("[train-aks]", '["${SECRET}"]'),
    "repeated": POOL.replace("nodes:", 'zones: ["${SECRET}", "${SECRET}"], nodes:'),
    "label": POOL.replace("nodes:", 'labels: {a: "${SECRET}"}, nodes:'),
    "taint": POOL.replace("nodes:", 'taints: [{key: "${SECRET}", value: "${SECRET}", effect: "${SECRET}"}], nodes:'),
    "taints": POOL.replace("nodes:", 'taints: [{key: "${SECRET}", value: "${SECRET}", effect: NoExecute}], nodes:'),
}


@pytest.mark.parametrize("pool", QUOTING.values(), ids=QUOTING)
def test_message_when_value_came_from_a_variable_then_does_not_show_it(pool: str, tmp_path: Path) -> None:
    found = problems_of(tmp_path, spec_of(pool), environ=ENVIRON)
    assert found
    for one in found:
        assert "hunter2" not in one.render()
        assert "${SECRET}" in one.seen


def test_number_when_from_a_variable_then_the_message_points_to_set(tmp_path: Path) -> None:
    (found,) = problems_of(
        tmp_path, spec_of(POOL.replace("nodes: {count: 1}", 'nodes: {count: "${NUMBER}"}')), environ=ENVIRON
    )
    assert found.fix == "remove it here and pass --set pools[0].nodes.count=VALUE"


def test_variable_when_missing_then_nothing_else_is_said_about_the_value(tmp_path: Path) -> None:
    text = spec_of(POOL).replace('"111122223333"', '"${ACCOUNT}"')
    assert [one.code for one in problems_of(tmp_path, text)] == ["env-missing"]


@pytest.mark.parametrize("written", ["${1}", "${}", "${A-b}", "${A:+b}", "${A:-${TEAM}}", "${A:-b$c}", "${A", "${A:-b"])
def test_variable_when_not_written_as_one_then_is_refused(written: str, tmp_path: Path) -> None:
    text = spec_of(POOL.replace("nodes:", f'tags: {{team: "{written}"}}, nodes:'))
    (found,) = problems_of(tmp_path, text, environ=ENVIRON)
    assert found.code == "env-syntax"


def test_default_when_refused_by_its_field_then_shown_as_written(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, spec_of(POOL.replace("name: a", 'name: "${NONE:-a b}"')))
    assert (found.code, "${NONE:-a b}" in found.seen) == ("format", True)
