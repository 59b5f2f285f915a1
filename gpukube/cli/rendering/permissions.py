"""Human-readable policies: what each is for, how to apply it, and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cli.rendering.text import Hung, Text
from gpukube.engine.permissions.policies import file_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.permissions import PermissionPart, PermissionsDocument, PolicyPart


def render_permissions(document: PermissionsDocument, view: View) -> Iterator[Line]:
    """Show every policy, without its content if that is in a file; with -v add the reason for each permission."""
    directory, count = document["directory"], len(document["policies"])
    for policy in document["policies"]:
        yield from _head(policy)
        if view.verbose:
            for row in policy["permissions"]:
                yield from _permission(row)
        if not directory:
            yield from map(Text, file_text(policy["file"], policy["documents"]).splitlines())
        yield Text("")
    counted = f"{count} {'policy' if count == 1 else 'policies'} for gpukube {document['level']}"
    ending = f"written to {directory}" if directory else "--out DIR writes one file per policy; -v explains each line"
    yield Hung(Text(""), Text(f"{counted}: {ending}", style="bold"))


def _head(policy: PolicyPart) -> Iterator[Line]:
    yield Hung(Text("# "), Text(policy["title"], style="bold"))
    yield Hung(Text("# "), Text(f"clusters: {', '.join(policy['clusters'])}"))
    for command in policy["commands"]:
        yield Hung(Text("#   "), Text(command))
    for note in policy["notes"]:
        yield Hung(Text("# note: "), Text(note))


def _permission(row: PermissionPart) -> Iterator[Line]:
    yield Hung(Text("# "), Text(f"{row['name']}: {row['purpose']}"))
    facts = (
        ("needed", row["when"]),
        ("without it", row["without"]),
        ("calls", ", ".join(row["calls"])),
        ("see", row["source"]),
    )
    for name, text in facts:
        if text:
            yield Hung(Text(f"#     {name}: "), Text(text, style="dim"))
