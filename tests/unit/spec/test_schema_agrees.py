"""Schema and loader judge alike: specs drawn from the schema, one thing in each made wrong."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpukube.errors import SpecError
from gpukube.spec.dump import dump_data
from gpukube.spec.load import load_specs
from gpukube.spec.schema import json_schema
from tests.strategies import Node, specs

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


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_damaged_spec_when_judged_then_schema_and_loader_agree(data: Node) -> None:
    found, fits = codes(data), VALIDATOR.is_valid(data)
    assert fits or found, "the schema refuses what the loader takes"
    assert not fits or not found & STRUCTURE, "the schema takes what the loader refuses for its form"
