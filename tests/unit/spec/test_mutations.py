"""Specs mangled in every way: always a spec or diagnostics, never a traceback."""

from __future__ import annotations

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.codes import SPEC
from gpukube.errors import SpecError
from gpukube.spec.loading.load import load_specs
from gpukube.spec.model import Pool
from gpukube.spec.reference.fields import keys_of
from tests.unit.spec.samples import FULL

LINES = FULL.replace("pools:", "defaults: {labels: {org: x}, disk: {sizeGiB: 9}}\npools:").splitlines()
VALUES = [
    "null", "", "{}", "[]", "true", "1.30", "-1", "0x10", ".inf", ".nan", '""', "text", "[1, {a: b}]", "{a: {b: c}}",
    '"${X}"', '"${"', "&a {b: *a}", "*t", "!x y", "{<<: {a: b}}", "1e999", "9" * 30, "{? [a] : b}", "'\\'", "|\n", "no",
    '"a\\u0000b"', "🦄", "2026-01-01", "'{0}'", "{true: 1}", "eks", "[eks]", "{eks: 1}",
]  # fmt: skip
KEYS = [*keys_of(Pool), "aks", "count", "profile", "<<", "1", "[key]", "type-name", "a.b", '"x\\ny"', "~", "{}"]
SETS = [
    "pools[0].name",
    "pools.t4shared.labels",
    "defaults.zones[0]",
    "clusters.train-aks",
    "kind",
    "",
    "pools",
    "a.b[3]",
]

mutation = st.tuples(
    # Mostly values and keys: the other changes seldom get past the YAML reader.
    st.sampled_from([*["value"] * 8, *["key"] * 5, "delete", "double", "cut", "insert", "indent"]),
    st.integers(0, len(LINES) - 1),
    st.integers(0, 12),
    st.sampled_from(VALUES) | st.text(max_size=8),
    st.sampled_from(KEYS),
)


def mutate(lines: list[str], change: tuple[str, int, int, str, str]) -> list[str]:
    kind, number, choice, value, key = change
    number %= max(1, len(lines))
    line = lines[number] if lines else ""
    pairs = list(re.finditer(r"([\w.\-/]+): ?([^,{}\[\]\n]*)", line))
    if kind in {"value", "key"} and pairs:
        part = pairs[choice % len(pairs)]
        new = f"{part[1]}: {value}" if kind == "value" else f"{key}: {part[2]}"
        changed = [line[: part.start()] + new + line[part.end() :]]
    else:
        changed = {
            "delete": [],
            "double": [line, line],
            "cut": [line[: choice * 5]],
            "insert": [line[: choice * 5] + value + line[choice * 5 :]],
            "indent": [" " * (choice % 5) + line],
        }.get(kind, [line])
    return lines[:number] + changed + lines[number + 1 :]


@settings(max_examples=500)
@given(
    changes=st.lists(mutation, min_size=1, max_size=6),
    sets=st.lists(st.tuples(st.sampled_from(SETS), st.sampled_from(VALUES)), max_size=2),
)
def test_mangled_spec_when_loaded_then_gives_a_spec_or_diagnostics_inside_the_file(
    changes: list[tuple[str, int, int, str, str]], sets: list[tuple[str, str]]
) -> None:
    lines = LINES
    for change in changes:
        lines = mutate(lines, change)
    text = "\n".join(lines)
    try:
        load_specs(["-"], stdin=io.StringIO(text), sets=[f"{k}={v}" for k, v in sets], environ={"X": "x"})
    except SpecError as error:
        check_diagnostics(error, text)


def check_diagnostics(error: SpecError, text: str) -> None:
    lines = re.split("\r\n|[\r\n\x85\u2028\u2029]", text)
    for found in error.diagnostics:
        assert found.code in SPEC
        assert found.seen
        assert found.fix
        assert "\n" not in found.seen + found.fix + found.why
        assert "cannot be used here" not in found.seen, "an error type of pydantic has no row in the table"
        if found.where.line:
            assert found.where.line <= len(lines)
            assert 1 <= found.where.column <= len(lines[found.where.line - 1]) + 1
        else:
            assert found.where.source == "-" or found.where.source.startswith("--set")
