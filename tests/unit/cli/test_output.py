"""Formats, streams and widths: what each command can write, and that nothing hostile gets through."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from gpukube.cli.console import PIPE_WIDTH, clean, draw, write_lines
from gpukube.cli.kinds import FORMATS
from gpukube.cli.output import (
    RENDERERS,
    TEXTS,
    renderer,
    require_format,
    show,
    show_lines,
    show_on_stderr,
    text_writer,
)
from gpukube.cli.rendering.lines import difference_lines, number, plural, value_words
from gpukube.cli.rendering.text import Hung, Table, Text, record
from gpukube.engine.documents.listing import list_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.schema import SCHEMA_NAMES
from gpukube.errors import ExitCode, SpecError

if TYPE_CHECKING:
    from gpukube.cli.rendering.text import Line

EMPTY_PLAN = plan_document([], [])
EMPTY_LIST = list_document([])


def written(*lines: Line, width: int = 40, wrap: bool = True) -> list[str]:
    stream = io.StringIO()
    write_lines(lines, Console(file=stream, width=width, highlight=False, emoji=False), wrap=wrap)
    return stream.getvalue().splitlines()


def test_kinds_when_listed_then_each_has_formats_a_screen_and_a_schema() -> None:
    explanations = {"OwnerExplanation", "FieldExplanation"}  # with screens of their own
    assert FORMATS.keys() - explanations == RENDERERS.keys()
    assert FORMATS.keys() - {"Sandbox", "SandboxFaults"} == SCHEMA_NAMES.keys() - {"Event"}
    assert all(callable(renderer(kind)) for kind in RENDERERS)
    assert all(callable(text_writer(output)) for output in TEXTS)
    for formats in FORMATS.values():
        assert formats[0] == "table"
        assert {"json", "yaml"} <= set(formats)


@pytest.mark.parametrize("kind", FORMATS)
def test_format_when_the_command_does_not_write_it_then_four_and_the_possible_ones(kind: str) -> None:
    for good in FORMATS[kind]:
        require_format(good, kind)
    with pytest.raises(SpecError) as refused:
        require_format("xml", kind)
    (found,) = refused.value.diagnostics
    assert (refused.value.exit_code, found.code, found.where.source) == (
        ExitCode.BAD_INPUT,
        "output-format",
        "--output",
    )
    assert found.fix == f"choose one of {', '.join(FORMATS[kind])}"


def test_format_when_another_command_writes_it_then_refused_all_the_same() -> None:
    with pytest.raises(SpecError, match='"github" is not an output format of this command'):
        show(EMPTY_LIST, "github")
    require_format("github", "Diff")


def test_json_and_yaml_when_shown_then_the_same_data(capsys: pytest.CaptureFixture[str]) -> None:
    show(EMPTY_PLAN, "json")
    as_json = json.loads(capsys.readouterr().out)
    show(EMPTY_PLAN, "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == as_json == EMPTY_PLAN


def test_question_when_it_shows_a_plan_then_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show_on_stderr(EMPTY_PLAN)
    assert capsys.readouterr() == ("", "plan: nothing declared\n")


def test_line_when_too_long_for_a_terminal_then_its_rows_hang_below_its_body() -> None:
    assert written(Hung(Text("  why  "), Text("one two three four five six seven")), width=24) == [
        "  why  one two three",
        "       four five six",
        "       seven",
    ]


def test_line_when_in_a_pipe_then_a_record() -> None:
    long = "word " * 60
    assert written(Hung(Text("why "), Text(long)), "x" * 300, wrap=False) == [f"why {long}", "x" * 300]


def test_line_when_one_word_is_longer_than_the_row_then_folded_and_whole() -> None:
    rows = written(Hung(Text("> "), Text("abcdefghij" * 5)), width=22)
    assert "".join(row[2:] for row in rows) == "abcdefghij" * 5
    assert max(map(len, rows)) <= 22


def test_lines_when_in_a_pipe_then_the_same_without_rich_and_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    table = Table(("A", "B"))
    table.add_row("1", Text("two", "bold"))
    lines: list[Line] = ["plain [red]", Text("x" * 300, "bold"), Hung(Text("a ", "dim"), Text("a\x1b[2J")), table, ""]
    stream = io.StringIO()
    show_lines(lines, stream)
    assert stream.getvalue().splitlines() == written(*lines, width=PIPE_WIDTH, wrap=False)


def test_lines_when_colour_is_asked_for_in_a_pipe_then_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    show_lines([Text("head", "bold")], stream)
    assert stream.getvalue() == "\x1b[1mhead\x1b[0m\n"


HOSTILE = "a\x1b[2Jb\x07c\x9bd"


def test_value_when_it_would_steer_the_terminal_then_it_cannot() -> None:
    table = Table(("X",))
    table.add_row(HOSTILE)
    for shown in (written(HOSTILE), written(Hung(Text(HOSTILE), Text(HOSTILE))), written(table)):
        assert not {"\x1b", "\x07", "\x9b"} & set("".join(shown))
    assert clean(draw(Text("a\x1b[2Jb\n"))).plain == record(Text("a\x1b[2Jb\n")) == "a<U+001B>[2Jb\n"


def test_cell_when_it_looks_like_markup_then_it_is_kept() -> None:
    table = Table(("FIELD",))
    table.add_row("labels[team] [red]x[/red]")
    assert written(table)[1].strip() == "labels[team] [red]x[/red]"


def test_words_when_counted_then_plain() -> None:
    assert (plural(1, "node"), plural(0, "node"), number(8.0), number(0.125)) == ("1 node", "0 nodes", "8", "0.125")
    assert [value_words(v) for v in (None, "a\n b", ["x", 1], 3)] == ["(absent)", '"a b"', "[x, 1]", "3"]


VALUES: dict[str, tuple[object, str]] = {
    "true": (True, "true"),
    "mapping": ({"name": "FOO", "value": "bar baz", "on": None}, '{name: FOO, value: "bar baz", "on": null}'),
    "nested": (
        [{"key": "nvidia.com/gpu", "tolerationSeconds": 1.5}],
        "[{key: nvidia.com/gpu, tolerationSeconds: 1.5}]",
    ),
    "text that YAML reads otherwise": (["true", "1", "a: b", ""], '["true", "1", "a: b", ""]'),
    "taints": (["nvidia.com/gpu=present:NoSchedule"], "[nvidia.com/gpu=present:NoSchedule]"),
}


@pytest.mark.parametrize("case", VALUES)
def test_value_when_written_then_yaml_reads_it_back(case: str) -> None:
    value, words = VALUES[case]
    assert value_words(value) == words
    assert yaml.safe_load(words) == value


def test_difference_when_the_list_is_long_then_only_the_items_that_differ() -> None:
    kept = [{"key": f"taint-{number}", "operator": "Exists", "effect": "NoSchedule"} for number in range(9)]
    gone, come = {"key": "old", "operator": "Exists"}, {"key": "new", "operator": "Exists"}
    assert difference_lines("tolerations", [*kept, gone], [*kept, come]) == [
        "tolerations: 1 removed, 1 added",
        "- {key: old, operator: Exists}",
        "+ {key: new, operator: Exists}",
    ]
    assert difference_lines("tolerations", None, kept)[:2] == [
        "tolerations: 9 added",
        "+ {key: taint-0, operator: Exists, effect: NoSchedule}",
    ]
    assert difference_lines("zones", ["a"], ["b"]) == ["zones: [a] -> [b]"]
    (ordered,) = difference_lines("env", kept, kept[::-1])
    assert ordered.startswith("env: [{key: taint-0, ")
