"""Comments of `pool import` are for copying from: an option is broken nowhere, and stays beside its value."""

from __future__ import annotations

import pytest

from gpukube.engine.importing import _comment


@pytest.mark.parametrize("before", range(40, 120, 7))
def test_comment_when_it_must_be_broken_then_no_option_is(before: int) -> None:
    command = "gpukube pool apply --adopt-managed --pool ng-1 --allow-disruption"
    text = f"{'word ' * (before // 5)}{'x' * (before % 5)} run {command}"
    rows = [line.removeprefix("  # ") for line in _comment(text)]
    assert " ".join(rows).split() == text.split()
    assert any("--pool ng-1" in row for row in rows)
