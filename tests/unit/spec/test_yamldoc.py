"""The YAML reader: positions, limits, refusals; both of PyYAML's parsers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpukube.spec.source.document import (
    MOST_ALIAS_NODES,
    MOST_ALIASES,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_DOCUMENTS,
    MOST_KEYS,
    load_documents,
)
from gpukube.spec.source.positions import PositionedDict, PositionedList, Positions

if TYPE_CHECKING:
    from gpukube.spec.source.document import Parser
    from gpukube.spec.source.positions import Data

PARSERS = [pytest.param(yaml.CSafeLoader, id="c"), pytest.param(yaml.SafeLoader, id="python")]

TEXT = """\
# a comment
metadata: {name: x}
pools:
  - name: a
    labels:
      "team": 'vision'   # quoted
      note: |
        two
        lines
  - name: b
"""


def codes(text: str) -> list[str]:
    return [found.code for found in load_documents(text, "a.yaml")[1]]


def load(text: str, parser: Parser = yaml.CSafeLoader) -> Data:
    documents, problems = load_documents(text, "a.yaml", parser=parser)
    assert not problems
    assert len(documents) == 1
    return documents[0].root


@pytest.mark.parametrize("parser", PARSERS)
def test_position_when_asked_then_is_line_and_column_of_key_or_value(parser: Parser) -> None:
    document = load_documents(TEXT, "a.yaml", parser=parser)[0][0]
    at = Positions(document.root, document.origin, document.mark)
    assert str(at.at("metadata.name")) == "a.yaml:2:18"
    assert str(at.key_at("metadata.name")) == "a.yaml:2:12"
    assert str(at.at("pools[0].labels.team")) == "a.yaml:6:15"
    assert str(at.key_at("pools[0].labels.team")) == "a.yaml:6:7"
    assert str(at.at("pools[0].labels.note")) == "a.yaml:7:13"
    assert str(at.at("pools[1]")) == "a.yaml:10:5"


@pytest.mark.parametrize("parser", PARSERS)
def test_data_when_read_then_is_plain_dicts_and_lists(parser: Parser) -> None:
    root = load(TEXT, parser)
    assert root == {
        "metadata": {"name": "x"},
        "pools": [{"name": "a", "labels": {"team": "vision", "note": "two\nlines\n"}}, {"name": "b"}],
    }
    assert isinstance(root, PositionedDict)
    assert isinstance(root["pools"], PositionedList)


def test_byte_order_mark_when_first_then_does_not_count() -> None:
    document = load_documents("\ufeffa: b", "a.yaml")[0][0]
    assert str(document.origin.where(document.mark)) == "a.yaml:1:1"


def test_alias_when_used_then_stands_for_the_anchored_value() -> None:
    root = load("a: &x {k: [1, 2]}\nb: *x\nc: &s text\nd: *s\n*s : e")
    assert root == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}, "c": "text", "d": "text", "text": "e"}


def test_alias_when_asked_for_its_position_then_value_is_at_the_alias_and_content_at_the_anchor() -> None:
    document = load_documents("a: &x {k: 1}\nb: *x\n", "a.yaml")[0][0]
    at = Positions(document.root, document.origin, document.mark)
    assert str(at.at("b")) == "a.yaml:2:4"
    assert str(at.at("b.k")) == "a.yaml:1:11"


def test_anchor_when_defined_in_another_document_then_is_unknown() -> None:
    assert codes("a: &x 1\n---\nb: *x\n") == ["yaml-alias"]


def test_several_documents_when_read_then_all_are_returned_with_their_lines() -> None:
    documents, problems = load_documents("a: 1\n---\nb: 2\n---\n", "a.yaml")
    assert not problems
    assert [document.root for document in documents] == [{"a": 1}, {"b": 2}, None]
    assert str(documents[1].origin.where(documents[1].mark)) == "a.yaml:3:1"


REFUSED = {
    "duplicate key": ("a: 1\na: 2", "yaml-duplicate-key"),
    "duplicate key, spelled otherwise": ("a: 1\n'a': 2", "yaml-duplicate-key"),
    "tag on a scalar": ("a: !x 1", "yaml-tag"),
    "tag on a mapping": ("a: !!map {b: 1}", "yaml-tag"),
    "tag on a list": ("a: !!python/list []", "yaml-tag"),
    "merge key": ("a: {<<: {b: 1}}", "yaml-merge-key"),
    "number as key": ("1: a", "yaml-key"),
    "null as key": ("? \n: a", "yaml-key"),
    "mapping as key": ("{a: b}: c", "yaml-key"),
    "alias of a list as key": ("a: &x [1]\n*x : c", "yaml-key"),
    "unknown alias": ("a: *x", "yaml-alias"),
    "alias in its own anchor": ("a: &x [*x]", "yaml-alias"),
    "long number": ("a: " + "1" * 400, "yaml-limit"),
    "control character": ("a: \x07", "yaml-syntax"),
    "control character after an old line end": ("a: 1\rb: \x07", "yaml-syntax"),
    "lone surrogate": ("a: \udc80", "yaml-syntax"),
    "tab": ("a:\n\tb: 1", "yaml-syntax"),
}


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_yaml_when_it_holds_what_we_refuse_then_one_problem_says_so(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_duplicate_key_when_of_several_lines_then_is_told_in_one() -> None:
    _, (found,) = load_documents('"x\\ny": 1\n"x\\ny": 2', "a.yaml")
    assert found.seen == 'key "x\\ny" is written twice; first at 1:1'


def test_merge_key_when_quoted_then_is_a_key() -> None:
    assert load('a: {"<<": 1}') == {"a": {"<<": 1}}


def test_problems_when_several_then_all_are_reported() -> None:
    assert codes("a: 1\na: 2\nb: !x 1\nc: *y\n1: 2") == ["yaml-duplicate-key", "yaml-tag", "yaml-alias", "yaml-key"]


AT_LIMIT = {
    "depth": ("[" * MOST_DEPTH + "]" * MOST_DEPTH, "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1)),
    "size": ("a" * MOST_BYTES, "a" * (MOST_BYTES + 1)),
    "size in bytes": ("é" * (MOST_BYTES // 2), "é" * (MOST_BYTES // 2 + 1)),
    "aliases": (
        "- &a x\n" + "- *a\n" * MOST_ALIASES,
        "- &a x\n" + "- *a\n" * (MOST_ALIASES + 1),
    ),
    "alias nodes": (
        f"- &a [{','.join('x' * 999)}]\n" + "- *a\n" * (MOST_ALIAS_NODES // 1000),
        f"- &a [{','.join('x' * 999)}]\n" + "- *a\n" * (MOST_ALIAS_NODES // 1000 + 1),
    ),
    "keys": tuple("".join(f"k{n}: x\n" for n in range(count)) for count in (MOST_KEYS, MOST_KEYS + 1)),
    "documents": ("--- a\n" * MOST_DOCUMENTS, "--- a\n" * (MOST_DOCUMENTS + 1)),
}


@pytest.mark.parametrize(("within", "beyond"), AT_LIMIT.values(), ids=AT_LIMIT)
def test_limit_when_reached_then_is_fine_and_when_passed_then_is_refused(within: str, beyond: str) -> None:
    assert codes(within) == []
    assert codes(beyond) == ["yaml-limit"]


def test_billion_laughs_when_read_then_stops_early() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert codes("\n".join(lines)) == ["yaml-limit"]


SYNTAX = {
    "colon in value": ("a: b: c", "1:5", 'unexpected ":"'),
    "open list": ("a: [1, 2", "1:9", 'the list that starts with "[" at 1:4 needs "," or "]" here'),
    "open mapping": ("a: {b: 1", "1:9", 'the mapping that starts with "{" at 1:4 needs "," or "}" here'),
    "tab": ("a:\n\tb: 1", "2:1", "unexpected tab in the indentation"),
    "reserved character": ("a: @b", "1:4", 'a value cannot start with "@"'),
    "open quote": ('a: "b', "1:6", "the quote opened at 1:4 is never closed"),
    "key in a list": ("- a\nb: c", "2:1", "this does not fit the list that starts at 1:1"),
    "indentation": ("a:\n  b: 1\n c: 2", "3:2", "this does not fit the mapping that starts at 1:1"),
    "no pair": ("a: 1\nb", "2:1", "expected a `key: value` pair"),
    "anchor name": ("a: *", "1:5", '"*" or "&" must be followed by the name of an anchor'),
    "block scalar": ("a: |x\n  b", "1:5", 'the line must end after "|" or ">"'),
    "comma": ("a: {b: 1, ,}", "1:11", 'a value is missing before ","'),
    "list in a line": ("a: - b", "1:4", "unexpected list or mapping"),
    "directive": ("%YAML 3.0\n---\na: 1", "1:1", "this %-directive is not supported"),
    "tag": ("a: !<", "1:6", "a tag is not complete"),
}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(("text", "place", "message"), SYNTAX.values(), ids=SYNTAX)
def test_syntax_error_when_met_then_is_explained_in_our_words(
    text: str, place: str, message: str, parser: Parser
) -> None:
    found = load_documents(text, "a.yaml", parser=parser)[1]
    assert [(str(one.where), one.seen) for one in found] == [(f"a.yaml:{place}", message)]


@pytest.mark.parametrize("parser", PARSERS)
def test_escape_when_unknown_then_is_explained(parser: Parser) -> None:
    (found,) = load_documents(r'a: "\q"', "a.yaml", parser=parser)[1]
    assert found.seen == "this escape does not exist in double quotes"


def test_document_when_another_is_broken_then_is_still_returned() -> None:
    documents, problems = load_documents("a: 1\n---\nb: [", "a.yaml")
    assert [document.root for document in documents] == [{"a": 1}]
    assert [found.code for found in problems] == ["yaml-syntax"]


# What JSON writes and YAML reads alike in double quotes: no control characters, no line separators.
printable = st.characters(exclude_categories=["C", "Zl", "Zp"])
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(printable, max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(printable, max_size=6), inner, max_size=4),
    max_leaves=12,
)


def write_block(data: object, pad: str = "") -> str:
    """Write data in block style; scalars and empty collections as JSON."""
    if isinstance(data, dict) and data:
        entries = (f"{pad}{json.dumps(k, ensure_ascii=False)}:{write_below(v, pad)}" for k, v in data.items())
        return "\n".join(entries)
    if isinstance(data, list) and data:
        return "\n".join(f"{pad}-{write_below(value, pad)}" for value in data)
    return pad + json.dumps(data, ensure_ascii=False)


def write_below(data: object, pad: str) -> str:
    return f"\n{write_block(data, pad + '  ')}" if isinstance(data, dict | list) and data else f" {write_block(data)}"


@given(data=plain)
def test_data_when_written_as_yaml_then_reads_back_the_same(data: object) -> None:
    for text in (json.dumps(data, ensure_ascii=False), write_block(data)):
        documents, problems = load_documents(text, "a.yaml")
        assert {found.code for found in problems} <= {"yaml-ambiguous"}  # 1e-05 is a text to YAML 1.1
        assert documents[0].root == data


@given(data=plain)
def test_document_when_read_by_either_parser_then_data_and_positions_are_the_same(data: object) -> None:
    text = f"# first\n{write_block({'a': data, 'b': [data, {'c': data}]})}\n"
    (c,), (python,) = (load_documents(text, "a.yaml", parser=one)[0] for one in (yaml.CSafeLoader, yaml.SafeLoader))
    assert c.root == python.root
    assert marks(c.root) == marks(python.root)


def marks(node: Data) -> list[int]:
    if isinstance(node, PositionedDict):
        return [node.mark, *node.key_marks.values(), *(m for value in node.values() for m in marks(value))]
    if isinstance(node, PositionedList):
        return [node.mark, *node.value_marks, *(m for value in node for m in marks(value))]
    return []


@given(text=st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#%@`,? \n\t~1.é"), max_size=40))
def test_any_text_when_read_then_both_parsers_answer_and_positions_lie_inside(text: str) -> None:
    lines = text.split("\n")
    for parser in (yaml.CSafeLoader, yaml.SafeLoader):
        for found in load_documents(text, "a.yaml", parser=parser)[1]:
            assert 1 <= found.where.line <= len(lines)
            assert 1 <= found.where.column <= len(lines[found.where.line - 1]) + 1
            assert found.fix
