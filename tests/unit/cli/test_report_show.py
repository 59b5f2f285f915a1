"""`gpukube report show`: documents from files, which may come from anybody, in the formats of their commands."""

from __future__ import annotations

import copy
import io
import json
import random
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from gpukube.__main__ import main
from gpukube.cli import output
from gpukube.cli.bodies.report_show import FOR_SEVERAL
from gpukube.cli.kinds import FORMATS
from gpukube.engine.documents import reading
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_shape
from tests.documents import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVIL: Final = "\x1b]0;owned\x07\n::error::x\r\u202e\u200b\x9b31m##vso[task.setvariable variable=PATH]x|`</details>"
UNSEEN: Final = ("\x1b", "\x07", "\r", "\u202e", "\x9b", "##vso[")
FORMS: Final = [(name, form) for name, made in DOCUMENTS.items() for form in FORMATS[made["kind"]]]


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["report", "show", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def written(directory: Path, document: object, name: str = "run.json") -> str:
    file = directory / name
    file.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return str(file)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_document_when_read_back_then_shown_as_by_its_command(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output.show(DOCUMENTS[name], form)
    expected = capsys.readouterr().out
    code, out, err = shown(capsys, written(tmp_path, DOCUMENTS[name]), "-o", form)
    assert (code, out) == (0, expected)
    assert bool(err) == (form == "terraform-json")  # what it leaves out


def test_terraform_json_when_only_the_document_is_left_then_no_prices_are_pretended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, err = shown(capsys, written(tmp_path, DOCUMENTS["Plan"]), "-o", "terraform-json")
    plan = json.loads(out)
    assert "planned_values" not in plan  # infracost takes a plan with empty ones for free of charge
    assert plan["resource_changes"]
    assert "planned_values, which infracost needs, is missing" in err


def test_documents_when_several_then_one_after_the_other_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [written(tmp_path, DOCUMENTS[name], f"{name}.json") for name in ("Plan", "Verify")]
    code, out, _ = shown(capsys, *files)
    assert code == 0
    assert "plan: " in out.partition("probe")[0]
    assert out.count("probe") > 0
    code, out, err = shown(capsys, *files, "-o", "json")
    assert (code, out) == (4, "")
    fix = f"give one file, or choose one of {', '.join(FOR_SEVERAL)}"
    assert f"error[output-format]: cannot combine 2 documents into one json\n    fix: {fix}\n" in err


def test_document_when_on_stdin_then_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(DOCUMENTS["same"]).encode("utf-16"))  # as an old PowerShell redirects

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert shown(capsys, "-", "-o", "json") == (0, json.dumps(DOCUMENTS["same"], indent=2) + "\n", "")


def changed(**keys: object) -> dict[str, Any]:
    return {**DOCUMENTS["Diff"], **keys}


def half_a_pair() -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENTS["PoolList"])
    document["clusters"][0]["pools"][0]["autoscaling"] = [1]
    return document


REFUSED: Final[dict[str, tuple[object, str, str]]] = {
    "empty": (b" \n", "report-cut", "it is empty"),
    "not JSON": (b"kind: Diff", "report-document", "it is not JSON: expecting value"),
    "cut off": (json.dumps(DOCUMENTS["Diff"]).encode()[:-9], "report-cut", "it is truncated: "),
    "cut off in a word": (b'{"kind": tru', "report-cut", "it is truncated: expecting value"),
    "cut off in an escape": (b'{"kind": "\\u00', "report-cut", "it is truncated: "),
    "two documents": (b"{}\n{}", "report-document", "it is not JSON: extra data"),
    "not UTF-8": (b'{"kind": "\xff"}', "report-document", "it is not JSON: 'utf-8' codec"),
    "a list": ([], "report-document", "it is not a gpukube document: it has no kind"),
    "a kind that is none": ({"kind": [1]}, "report-document", "it has no kind"),
    "another kind": ({"kind": f"Pod{EVIL}"}, "report-document", 'this gpukube has no documents of kind "Pod'),
    "a saved plan": ({"kind": "SavedPlan"}, "report-document", "it is a saved plan"),
    "a newer one": (changed(schemaVersion=7), "report-version", "its schemaVersion is 7, but for a Diff this gpukube"),
    "no version": (changed(schemaVersion=None), "report-version", "its schemaVersion is null"),
    "a version like one": (changed(schemaVersion=True), "report-version", "its schemaVersion is true"),
    "a key missing": (
        {key: value for key, value in DOCUMENTS["Diff"].items() if key != "summary"},
        "report-document",
        "it is not a complete Diff: object missing required field `summary`",
    ),
    "a type": (changed(differs="yes"), "report-document", "it is not a complete Diff: expected `bool`, got `str`"),
    "not a number": (changed(x=float("nan")), "report-document", "it is not JSON: the number NaN is not finite"),
    "infinite": (b'{"kind": 1e999}', "report-document", "it is not JSON: the number 1e999 is not finite"),
    "a huge number": (b'{"kind": ' + b"9" * 5000 + b"}", "report-document", "... is too large"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "report-document", "it is not JSON: nested too deep"),
    "deep in a request": (
        b'{"a":' * (reading.MOST_DEEP + 1) + b"{}" + b"}" * (reading.MOST_DEEP + 1),
        "report-document",
        "it is not JSON: nested too deep",
    ),
    "half a character": (b'{"kind": "\\ud800"}', "report-document", "it is not JSON: 'utf-8' codec can't encode"),
    "half a pair": (half_a_pair(), "report-document", "its parts contradict each other"),
    "an event": (
        {
            "schemaVersion": 1,
            "kind": "Event",
            "at": "",
            "cluster": "",
            "pool": None,
            "phase": "",
            "message": "",
        },
        "report-document",
        "a Event has no other formats",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_file_when_it_is_no_document_then_four_and_what_to_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, said_code, message = REFUSED[name]
    file = written(tmp_path, content)
    code, out, err = shown(capsys, file)
    assert (code, out) == (4, "")
    assert err.startswith(f"{file}: error[{said_code}]: ")
    assert message in err
    assert "    fix: " in err
    assert len(err) < 1000
    assert not [char for char in UNSEEN if char in err]


def test_file_when_it_cannot_be_read_then_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, reason in ((f"{tmp_path}/none.json", "no such file or directory"), (str(tmp_path), "is a directory")):
        code, _, err = shown(capsys, file)
        assert (code, err.splitlines()[0]) == (4, f"{file}: error[report-file]: it cannot be read: {reason}")
    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    code, _, err = shown(capsys, written(tmp_path, DOCUMENTS["same"]))
    assert (code, "it is larger than 10 bytes" in err) == (4, True)


def test_format_when_the_kind_has_none_then_four_and_the_possible_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, DOCUMENTS["Pool"])
    code, out, err = shown(capsys, file, "-o", "sarif")
    assert (code, out) == (4, "")
    assert f'{file}: error[output-format]: "sarif" is not a format of a Pool' in err
    assert "    fix: choose one of table, wide, json, yaml, name" in err


def test_shapes_when_listed_then_of_every_schema() -> None:
    assert all(document_shape(kind) for kind in SCHEMA_NAMES)


def places(node: object) -> Iterator[tuple[Any, Any]]:
    """Walk over everything that can be changed: its container and its key there."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in pairs:
        yield node, key
        yield from places(child)


ODD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 10**17, 1e300, -0.0, "", EVIL, "\ud800", "x" * 3000, [], {}, [[]], [1], {EVIL: EVIL}, {"": 0},
)  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_when_edited_anyhow_then_shown_or_refused_and_nothing_hostile_comes_through(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each edit keeps the type of what stood there or not; what the shape allows is shown in every format."""
    dice = random.Random(name)  # noqa: S311 - repeatable, which is the point
    forms = FORMATS[DOCUMENTS[name]["kind"]]
    ends = {0: 0, 4: 0}
    for number in range(30):
        document = json.loads(json.dumps(DOCUMENTS[name]))
        for _ in range(dice.randint(1, 3)):
            where, key = dice.choice(list(places(document)))
            like = [odd for odd in ODD if type(odd) is type(where[key])] if dice.random() < 0.8 else []
            where[key] = dice.choice(like or ODD)
        file = written(tmp_path, document)
        form = forms[number % len(forms)]
        code, out, err = shown(capsys, file, "-o", form)
        assert code in ends, (form, err)
        ends[code] += 1
        assert not [char for char in UNSEEN if char in out + err], form
        assert not [line for line in out.splitlines() if line.lstrip().startswith("::error::")], form
        if code == 0 and form == "yaml":
            assert yaml.safe_load(out) == document
    assert min(ends.values()) > 1


@pytest.mark.parametrize("form", FORMATS["Fit"])
def test_fit_when_it_is_unknown_whether_pods_fit_then_every_format_tells(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = copy.deepcopy(DOCUMENTS["Fit"])
    for part in made["workloads"]:
        part |= {"state": "unknown", "now": 0, "never": 0, "unknown": 1, "edit": None, "rollOut": None}
    code, out, _ = shown(capsys, written(tmp_path, made), "-o", form)
    assert code == 0
    assert "unknown" in out
