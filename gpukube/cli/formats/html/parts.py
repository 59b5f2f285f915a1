"""Parts that all pages have: findings, folded parts, and the line of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cli.formats.html.page import Markup, cut, joined, tag
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.engine.documents.shapes.parts import Diagnostic

_STYLES = {"error": "bad", "warning": "warn", "hint": "soft"}


def finding_list(found: Iterable[Diagnostic]) -> Markup:
    """Return findings with their reasons and fixes."""
    return tag("ul", *map(_finding, found), class_="findings")


def _finding(finding: Diagnostic) -> Markup:
    label = tag("b", f"{finding['severity']}[{rule_label(finding['code'])}]", class_=_STYLES[finding["severity"]])
    more = [
        tag("p", f"{name}: {text}", class_="small soft")
        for name, text in (("why", finding["why"]), ("fix", finding["fix"]))
        if text
    ]
    where, message = cut(finding["where"]), finding["message"]
    return tag("li", joined((label, f" {where}: {message}", *more)))


def folded(title: str, *content: Markup) -> Markup:
    """Return a part that is shown on request, and on paper."""
    return tag("details", tag("summary", title), *content, class_="fold")


def tools(label: str, example: str, choices: Iterable[tuple[str, str]]) -> Markup:
    """Return the line of filters, which is hidden where no script runs.

    Args:
        label: What is filtered.
        example: What can be searched for.
        choices: Classes of what is shown, and their words.
    """
    options = (tag("option", words, value=state) for state, words in choices)
    return tag(
        "form",
        tag("label", label, tag("input", name="text", type="search", placeholder=example)),
        tag("label", "Show", tag("select", *options, name="state")),
        tag("button", "Open all", type="button", data_open="yes"),
        tag("button", "Close all", type="button", data_open="no"),
        tag("output", name="shown"),
        class_="tools",
        hidden="",
        role="search",
    )
