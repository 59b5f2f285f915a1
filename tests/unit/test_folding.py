"""What is the same about many pools or clusters is told once in texts, with their number."""

from __future__ import annotations

import pytest

from gpukube.errors import Finding, Where, render_diagnostics

FILE = "a.yaml"


def found(line: int, seen: str) -> Finding:
    return Finding("instance-type", Where(FILE, line, 3), seen, fix="write another")


CASES = {
    "one": ([found(1, "no x (on c1)")], ["a.yaml:1:3", "no x (on c1)"]),
    "clusters": (
        [found(1, f"no x (on c{n})") for n in range(1, 21)],
        ["a.yaml:1:3", "no x (20 times: c1, c10, c11 and 17 more)"],
    ),
    "pools of a line": (
        [found(1, f"{name}/p: no x") for name in ("aks", "eks", "gke")],
        ["a.yaml:1:3", "no x (3 times: aks/p, eks/p, gke/p)"],
    ),
    "many lines": (
        [found(line, f"no x (on c{n})") for line in range(1, 11) for n in range(20)],
        ["a.yaml:1:3", "(200 times: c0, c1, c10 and 17 more; also at a.yaml:2:3, a.yaml:3:3, a.yaml:4:3 and 6 more)"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_diagnostics_when_alike_then_one_with_their_count(case: str) -> None:
    diagnostics, expected = CASES[case]
    shown = render_diagnostics(diagnostics)
    assert shown.count("fix:") == 1
    assert not [part for part in expected if part not in shown]


def test_diagnostics_when_of_few_lines_or_other_mistakes_then_each_is_told() -> None:
    shown = render_diagnostics([*(found(line, "no x") for line in (1, 2, 3)), found(1, "no y")])
    assert shown.count("fix:") == 4
