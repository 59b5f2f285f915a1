"""Schema and loader judge alike: specs drawn from the schema, one thing in each made wrong; every spec of the tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpukube.errors import SpecError
from gpukube.spec.dump import dump_data, dump_spec
from gpukube.spec.loading.load import load_specs
from gpukube.spec.reference.schema import json_schema
from gpukube.spec.source.document import load_documents
from tests.strategies import Node, specs
from tools.message_cases import message_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

VALIDATOR = Draft202012Validator(json_schema())
STRUCTURE = frozenset({"type", "choice", "format", "range", "unknown-key", "missing-key", "empty-value"})
"""Codes of what a schema can see."""
VALUES: tuple[object, ...] = (None, "", "x", 0, -1, 5, 1.5, True, [], {}, ["x"], [1], {"x": 1}, [None])


def places(node: object, above: tuple[Any, Any] | None = None) -> Iterator[tuple[Any, Any]]:
    """List every container with one of its keys or indices."""
    if above is not None:
        yield above
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(inner, (node, key))


@st.composite
def damaged(draw: st.DrawFn) -> Node:
    """Draw a spec with a value replaced, a key removed or a key added."""
    data = draw(specs())
    holder, key = draw(st.sampled_from(list(places(data))))
    how = draw(st.sampled_from(["replace", "remove", "add"]))
    if how == "remove":
        del holder[key]
    elif how == "add" and isinstance(holder, dict):
        holder["colour"] = "red"
    else:
        holder[key] = draw(st.sampled_from(VALUES))
    return data


def codes(data: Node) -> set[str]:
    try:
        load_specs(["-"], stdin=io.StringIO(dump_data(data)), environ={})
    except SpecError as error:
        return {found.code for found in error.diagnostics}
    return set()


@settings(max_examples=50)
@given(damaged())
def test_damaged_spec_when_judged_then_schema_and_loader_agree(data: Node) -> None:
    found, fits = codes(data), VALIDATOR.is_valid(data)
    assert fits or found, "the schema refuses what the loader takes"
    assert not fits or not found & STRUCTURE, "the schema takes what the loader refuses for its form"


ROOT = Path(__file__).parents[3]
SHELVES = {"corpus": "tests/specs/*/*.yaml", "messages": "*/*.yaml", "examples": "examples/*.yaml"}


@pytest.mark.parametrize("shelf", SHELVES)
def test_spec_of_the_tests_when_judged_then_schema_and_loader_agree_and_right_ones_can_be_dumped(
    shelf: str, tmp_path: Path
) -> None:
    for case in message_cases() if shelf == "messages" else ():
        case.lay_out(tmp_path / case.name)
    files = sorted((tmp_path if shelf == "messages" else ROOT).glob(SHELVES[shelf]))
    assert len(files) > 10
    for file in files:
        documents, broken = load_documents(file.read_text("utf-8", "replace"), file.name)
        roots = [document.root for document in documents if document.root is not None]
        if broken or not roots:
            continue  # not even YAML
        fits = all(VALIDATOR.is_valid(root) for root in roots)
        try:
            specs_of_file = load_specs([str(file)], environ={})
        except SpecError as error:
            found = {one.code for one in error.diagnostics if one.severity == "error"}
            assert not fits or not found & STRUCTURE, f"{file}: the schema takes what the loader refuses for its form"
            continue
        assert fits, f"{file}: the schema refuses what the loader takes"
        for loaded in specs_of_file:
            (again,) = load_specs(["-"], stdin=io.StringIO(dump_spec(loaded.spec)), environ={})
            assert again.spec == loaded.spec, file
