"""Mangled specs: `validate` ends with 0 or 4, and never with a traceback. Its seconds are measured in benchmarks.

Two hundred by default; 10,000 with `pytest tests/fuzz -m slow`. A failure names its number: `mangled(number)` makes
the spec again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpukube.cli import app
from gpukube.cli.kinds import FORMATS
from tests.fuzz.mutations import ROOT, mangled

if TYPE_CHECKING:
    from pathlib import Path

FEW, ALL, CHUNK = 200, 10_000, 500


def validate(number: int, file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Validate one mangled spec; say what went wrong, or nothing."""
    spec, words = mangled(number)
    file.write_bytes(spec)
    output = FORMATS["Validation"][number % len(FORMATS["Validation"])]
    arguments = ["validate", "-f", str(file), "-o", output, *words]
    code = app.run(arguments)
    said = capsys.readouterr()
    if code not in (0, 4) or "Traceback" in said.err or "error[defect" in said.err:
        return f"{number}: ended with {code}: {said.err[:300]}"
    return ""


def complaints(numbers: range, file: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [said for number in numbers if (said := validate(number, file, capsys))]


def test_mangled_specs_when_validated_then_end_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaints(range(FEW), tmp_path / "spec.yaml", capsys) == []


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, ALL, CHUNK))
def test_ten_thousand_mangled_specs_when_validated_then_end_without_a_traceback(
    begin: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaints(range(begin, begin + CHUNK), tmp_path / "spec.yaml", capsys) == []


@pytest.mark.parametrize("number", [3, 4, 11])
def test_mangled_spec_when_piped_into_the_command_then_ends_without_a_traceback(number: int) -> None:
    spec, _ = mangled(number)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'providers'}"}
    ended = subprocess.run(
        [sys.executable, "-m", "gpukube", "validate", "-f", "-"],
        input=spec,
        capture_output=True,
        check=False,
        timeout=120,
        env=environment,
    )
    assert ended.returncode in (0, 4)
    assert b"Traceback" not in ended.stderr


def test_mangled_specs_when_made_twice_then_are_the_same_and_both_kinds_of_ending_occur(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [mangled(number) for number in range(20)] == [mangled(number) for number in range(20)]
    file = tmp_path / "spec.yaml"
    codes: set[int] = set()
    for number in range(ALL):
        if len(codes) > 1:
            break
        spec, _ = mangled(number)
        file.write_bytes(spec)
        codes.add(app.run(["validate", "-f", str(file)]))
    capsys.readouterr()
    assert codes == {0, 4}
