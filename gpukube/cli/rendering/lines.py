"""Building blocks of all screens: lines, styles, and wording for values, counts, and devices.

Out of scope: content of documents (the modules next to this one), streams and terminals (output).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.text import Hung, Text
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.parts import Change, Diagnostic, GpuModel, NodeRange

INDENT: Final = " " * 13
"""Indent of the facts below a headline."""
WIDE: Final = 150
"""Columns from which a terminal shows tables."""

ACTION_STYLES: Final = {
    "create": ("+", "green"),
    "install": ("+", "green"),
    "update": ("~", "yellow"),
    "upgrade": ("~", "yellow"),
    "repair": ("~", "yellow"),
    "adopt": ("~", "yellow"),
    "replace": ("!", "bold red"),
    "delete": ("-", "bold red"),
    "conflict": ("x", "red"),
    "unknown": ("?", "yellow"),
    "extra": ("?", "yellow"),
    "no-op": ("=", "dim"),
    "standby": (".", "dim"),
    "none": ("=", "dim"),
}
QUIET_ACTIONS: Final = ("no-op", "standby")
"""Actions of a plan that change nothing."""
_SEVERITY_STYLES: Final = {"error": "red", "warning": "yellow", "hint": "cyan"}
_CHANGE_STYLES: Final = {"replace": "red", "refused": "red"}
_PLAIN: Final = re.compile(r"[A-Za-z_/][\w./@=+-]*(:[\w./@=+-]+)*")
_NOT_TEXT: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that YAML parses as a boolean or null: plain text in a flow collection must not be one of them."""
_LINE: Final = 100
"""Characters of a difference beyond which long lists are shown item by item."""


def headline(action: str, *words: str) -> Line:
    """Describe an action on an object."""
    sign, style = ACTION_STYLES[action]
    return Hung(Text.assemble("  ", (f"{sign} {action:<8}", style), " "), Text("  ".join(filter(None, words))))


def fact(name: str, value: str, style: str = "", *, indent: str = INDENT) -> Line:
    """Return a named fact below a headline."""
    return Hung(Text.assemble(indent, (f"{name:<8}", "dim")), Text(value, style=style))


def change_lines(change: Change, *, indent: str = INDENT) -> Iterator[Line]:
    """Show a changed field and the effect of the change."""
    style = _CHANGE_STYLES.get(change["kind"], "yellow")
    first, *items = difference_lines(change["field"], change["old"], change["new"])
    yield Hung(Text.assemble(indent, ("~ ", style)), Text.assemble(first, (f"  [{change['kind']}]", style)))
    yield from (Hung(Text(f"{indent}    {item[:2]}"), Text(item[2:])) for item in items)
    yield Hung(Text(f"{indent}  "), Text(change["sentence"], style="dim"))


def finding_lines(found: Iterable[Diagnostic], *, indent: str = "  ") -> Iterator[Line]:
    """Show findings with their reasons and fixes."""
    for finding in found:
        style = _SEVERITY_STYLES[finding["severity"]]
        label = f"{finding['severity']}[{rule_label(finding['code'])}]"
        message = Text.assemble(f"{finding['where']}: ", (label, style), f": {finding['message']}")
        yield Hung(Text(indent), message)
        for name, text in (("why", finding["why"]), ("fix", finding["fix"])):
            if text:
                yield Hung(Text(f"{indent}    {name}: "), Text(text))


def plural(count: float, noun: str) -> str:
    """Return a count with its noun: 1 node, 2 nodes."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def number(count: float) -> str:
    """Format a number without a needless fraction."""
    return str(int(count)) if count == int(count) else f"{count:.3g}"


def node_words(nodes: NodeRange) -> str:
    """Return the number of nodes in words."""
    return f"{nodes['min']} to {nodes['max']} nodes" if nodes["autoscaled"] else plural(nodes["count"], "node")


def gpu_words(gpu: GpuModel | None) -> str:
    """Return the GPUs of a node; "" if unknown."""
    return f"{number(gpu['count'])} x {gpu['model']}" if gpu else ""


def short(resource: str) -> str:
    """Remove the domain that all devices share."""
    return resource.removeprefix("nvidia.com/")


def device_words(devices: Mapping[str, int] | None) -> str:
    """List devices; "-" if unknown."""
    if devices is None:
        return "-"
    return ", ".join(f"{name}: {count}" for name, count in devices.items()) or "none"


def value_words(value: object) -> str:
    """Format the value of a field on one line, collections as YAML in flow style; None means the field is absent."""
    if value is None:
        return "(absent)"
    return f'"{" ".join(value.split())}"' if isinstance(value, str) else _flow(value)


def difference_lines(field: str, old: object, new: object) -> list[str]:
    """Return what differs in a field: one line, or for long lists a count, then "- item" and "+ item" lines.

    A list with the same items in a different order is written whole: the order is the difference.
    """
    whole = f"{field}: {value_words(old)} -> {value_words(new)}"
    removed, added = _without(old, new), _without(new, old)
    if len(whole) <= _LINE or not (removed or added):
        return [whole]
    counts = [f"{len(items)} {word}" for items, word in ((removed, "removed"), (added, "added")) if items]
    items = [*(f"- {_flow(item)}" for item in removed), *(f"+ {_flow(item)}" for item in added)]
    return [f"{field}: {', '.join(counts)}", *items]


def _without(items: object, others: object) -> list[object]:
    """Return the items of a list that another lacks; None is an empty list, other values have no items."""
    if not isinstance(items, list) or not isinstance(others, list | None):
        return []
    return [item for item in items if item not in (others or [])]


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
