"""Every code of the spec has a folder under tests/messages: bad.yaml (and arguments.json) -> expected.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast

import pytest

from gpukube.errors import ExitCode, SpecError
from gpukube.spec.codes import CODES
from gpukube.spec.load import load_specs

FOLDERS = Path(__file__).parents[2] / "messages"
STYLE_FORBIDS = ("invalid", "failed to", "please", "pydantic", "https://", "Input should")


class Arguments(TypedDict, total=False):
    paths: list[str]
    sets: list[str]
    environ: dict[str, str]


def render_case(folder: Path) -> str:
    file = folder / "arguments.json"
    arguments = cast("Arguments", json.loads(file.read_text("utf-8")) if file.exists() else {})
    with pytest.raises(SpecError) as caught:
        load_specs(
            arguments.get("paths", ["bad.yaml"]),
            sets=arguments.get("sets", []),
            environ=arguments.get("environ", {}),
        )
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    return caught.value.render() + "\n"


@pytest.mark.parametrize("code", CODES)
def test_bad_spec_when_loaded_then_says_what_is_expected(
    code: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    folder = FOLDERS / code
    assert folder.is_dir(), f"{code} has no folder under tests/messages"
    monkeypatch.chdir(folder)
    said = render_case(folder)
    if request.config.getoption("--update", default=False):
        (folder / "expected.txt").write_text(said, "utf-8")
    assert f"error[{code}]: " in said
    assert said == (folder / "expected.txt").read_text("utf-8")


@pytest.mark.parametrize("code", CODES)
def test_message_when_shown_then_keeps_the_house_form(code: str) -> None:
    said = (FOLDERS / code / "expected.txt").read_text("utf-8")
    assert not [word for word in STYLE_FORBIDS if word in said]
    for line in said.splitlines():
        assert not line.endswith((".", " ")) or line.endswith("...")
    assert said.count("error[") == said.count("    fix: ")


def test_codes_when_listed_then_are_kebab_case_with_a_sentence() -> None:
    for code, sentence in CODES.items():
        assert code == code.lower().replace("_", "-").replace(" ", "-")
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence.startswith("capacity")
