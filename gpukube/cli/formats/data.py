"""JSON and YAML documents without sequences that a terminal or a CI system showing the log would act on.

Readers get every value unchanged; only its spelling is escaped.
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
    """Return JSON that no terminal and no CI system acts on: everything but printable ASCII is escaped.

    A CI marker can occur only inside a string, where "#" may be written as an escape: readers get the same text.
    """
    text = json.dumps(value, indent=indent, default=str)
    return text.replace("##", "\\u0023#").replace("\x7f", "\\u007f")


def write_data(document: Mapping[str, object], output: str) -> None:
    """Write a document for programs on stdout: "json" or "yaml"."""
    if output == "json":
        sys.stdout.write(quoted_json(document, indent=2) + "\n")
        return
    plain = json.loads(json.dumps(document, default=str))
    # No line folding: a folded part would start a line, where CI systems look for commands.
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, width=sys.maxsize)
    sys.stdout.write(
        text.replace("##[", "\\x23#[").replace("##vso[", "\\x23#vso[")
    )  # occurs only between double quotes


class _Dumper(yaml.SafeDumper):
    """YAML dumper that escapes, in double quotes, invisible characters and the commands of CI systems."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Represent a string; readers always get the same string."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if visible(data) == data else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
