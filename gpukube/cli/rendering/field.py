"""Human-readable page of one field: its values, its effect on each cloud, and the fields below it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.explanation import Effect, Faith, FieldDocument, FieldPart

_KINDS: Final = {
    "in-place": "in place",
    "disruptive": "in place, disrupts pods",
    "replace": "replaces the pool",
    "refused": "refused",
}
_INDENT: Final = "    "
_MOST_KNOWN: Final = 24


def render_field(document: FieldDocument, *, recursive: bool, sources: bool) -> Iterator[Line]:
    """Show a field, then the fields below it.

    Args:
        document: The explanation.
        recursive: Show the fields below as a full tree, without descriptions.
        sources: Add the public source of each change's effect.
    """
    yield _title(document)
    yield Hung(Text(_INDENT), Text(document["description"]))
    yield from _values(document)
    if document["fidelity"]:
        yield _heading("clouds")
        yield from _fidelity_lines(document["fidelity"])
    if document["changes"]:
        yield _heading("changing it on a live pool")
        yield from (_effect(effect, sources=sources) for effect in document["changes"])
    if document["fields"]:
        yield _heading("fields")
        yield from _tree(document["fields"], 1) if recursive else _list(document["fields"])


def _title(part: FieldPart) -> Line:
    marks = "  required" if part["required"] and part["field"] else ""
    on = f"  on {', '.join(part['providers'])}" if part["providers"] else ""
    return Text.assemble((part["field"] or "the spec", "bold"), f" <{part['type']}>{marks}{on}")


def _heading(words: str) -> Line:
    return Text.assemble("\n", (words, "bold"))


def _values(part: FieldPart) -> Iterator[Line]:
    known = part["known"][:_MOST_KNOWN]
    more = f", ... ({len(part['known'])}; -o json has all)" if len(part["known"]) > len(known) else ""
    rows = (
        ("default", "" if part["default"] in (None, "") else _shown(part["default"])),
        ("one of", ", ".join(part["choices"])),
        ("range" if part["type"] in ("integer", "number") else "form", part["limits"]),
        ("known", ", ".join(known) + more),
        ("example", "; ".join(_shown(example) for example in part["examples"])),
    )
    for name, value in rows:
        if value:
            yield Hung(Text(f"{_INDENT}{name:<8} "), Text(value))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _fidelity_lines(found: Sequence[Faith]) -> Iterator[Line]:
    """Show on one line where a feature is exact, and on one line per cloud where it is not."""
    for feature in dict.fromkeys(faith["feature"] for faith in found):
        each = [faith for faith in found if faith["feature"] == feature]
        exact = [faith["provider"] for faith in each if faith["fidelity"] == "exact"]
        yield Hung(
            Text(f"{_INDENT}{feature}: "),
            Text(f"exact on {', '.join(exact)}" if exact else "no native field on any cloud"),
        )
        for faith in each:
            if faith["fidelity"] != "exact":
                why = f" ({faith['reason']})" if faith["reason"] else ""
                words = f"done by {faith['substitute']}{why}"
                if faith["fidelity"] == "missing":
                    words = f"missing: {faith['reason']}" + (f"; {faith['substitute']}" * bool(faith["substitute"]))
                yield Hung(Text(f"{_INDENT * 2}{faith['provider']}  "), Text(words))


def _effect(effect: Effect, *, sources: bool) -> Line:
    direction = f"{effect['direction']}: " if effect["direction"] else ""
    source = f" [{effect['source']}]" if sources else ""
    words = f"{direction}{_KINDS[effect['kind']]}: {effect['sentence']}{source}"
    return Hung(Text(f"{_INDENT}{effect['provider']}  "), Text(words))


def _list(fields: Sequence[FieldPart]) -> Iterator[Line]:
    for field in fields:
        yield _named(field, _INDENT)
        yield Hung(Text(_INDENT * 2), Text(field["description"]))


def _tree(fields: Sequence[FieldPart], depth: int) -> Iterator[Line]:
    for field in fields:
        yield _named(field, _INDENT * depth)
        yield from _tree(field["fields"], depth + 1)


def _named(field: FieldPart, indent: str) -> Line:
    required = "  required" if field["required"] else ""
    on = f"  on {', '.join(field['providers'])}" if field["providers"] else ""
    return Text.assemble(indent, (field["field"].rpartition(".")[2], "bold"), f" <{field['type']}>{required}{on}")
