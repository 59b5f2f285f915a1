"""Documents for programs: JSON and YAML in which nothing acts on a terminal or on a CI system that shows the log.

Every value is what it was for whoever reads the document; only its spelling is careful.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import yaml

from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping


def quoted_json(value: object, *, indent: int | None = None) -> str:
    """Write JSON that no terminal and no CI system acts on: all but printable ASCII is escaped.

    A marker can stand inside a string only, where a number sign may be written as an escape: readers get the same text.
    """
    text = json.dumps(value, indent=indent, default=str)
    return text.replace("##", "\\u0023#").replace("\x7f", "\\u007f")


def write_data(document: Mapping[str, object], output: str) -> None:
    """Write a document for programs on stdout: "json" or "yaml"."""
    if output == "json":
        sys.stdout.write(quoted_json(document, indent=2) + "\n")
        return
    plain = json.loads(json.dumps(document, default=str))
    # Never folded: the rest of a folded text would begin a line, where CI systems look for commands.
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, width=sys.maxsize)
    sys.stdout.write(text.replace("##[", "\\x23#[").replace("##vso[", "\\x23#vso["))  # between double quotes only


class _Dumper(yaml.SafeDumper):
    """YAML in which what cannot be seen, and what CI systems act on, stands escaped between double quotes."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Represent a text; the value that a reader gets is always the text itself."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if visible(data) == data else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
