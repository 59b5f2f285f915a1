"""Writes a validated spec as YAML.

In scope: writing specs. Out of scope: reading them (load.py), comments, and advice.

Loading the output of `dump_spec` returns an equal spec. Merged and substituted values are written out: every pool
contains the defaults, and a literal ${ is escaped.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import yaml

from gpukube.spec.source.scalars import TooManyDigitsError, parse_plain

if TYPE_CHECKING:
    from pydantic import JsonValue

    from gpukube.spec.model import GPUNodePools

SpecData: TypeAlias = "dict[str, JsonValue]"

_WIDTH: Final = 120
_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
"""Line breaks of YAML 1.1, which PyYAML reads as a space unless escaped."""
_FIRST: Final = ("name", "clusters")
"""Keys that come first in a pool; the models have the name last."""


def spec_data(spec: GPUNodePools) -> SpecData:
    """Return a spec as plain data with the keys of a file: only what was written or set by a program."""
    data = spec.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    return {
        **{key: _plain(value) for key, value in data.items()},
        "pools": [
            {key: _plain(pool[key]) for key in (*(first for first in _FIRST if first in pool), *pool)}
            for pool in data["pools"]
        ],
    }


def dump_spec(spec: GPUNodePools) -> str:
    """Return a spec as one YAML document that loads as an equal spec."""
    return dump_data(spec_data(spec))


def dump_data(data: SpecData) -> str:
    """Return plain data, a valid spec or not, as one YAML document that the loader reads as the same data."""
    return yaml.dump(
        _escaped(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )


def dump_scalar(text: str) -> str:
    """Return a text as a value in block style; variables stay variables."""
    return yaml.dump(text, Dumper=_Dumper, allow_unicode=True, width=sys.maxsize).removesuffix("...\n").rstrip("\n")


def _plain(node: object) -> JsonValue:
    """Convert the models' tuples to lists."""
    if isinstance(node, dict):
        return {str(key): _plain(value) for key, value in node.items()}
    return [_plain(item) for item in node] if isinstance(node, list | tuple) else cast("JsonValue", node)


def _escaped(node: JsonValue) -> JsonValue:
    """Escape ${ in values; the loader substitutes variables in values, not in keys."""
    if isinstance(node, str):
        return node.replace("${", "$${")
    if isinstance(node, list):
        return [_escaped(item) for item in node]
    if isinstance(node, dict):
        return {key: _escaped(value) for key, value in node.items()}
    return node


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes every text that YAML 1.1 or 1.2 would read as another type."""

    def ignore_aliases(self, _data: object) -> bool:
        """Return True, so that equal parts are written out."""
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) else None if _is_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_text(text: str) -> bool:
    """Return whether an unquoted text is a string in YAML 1.2; in PyYAML's 1.1, 1e3 and 0o17 are strings."""
    try:
        return isinstance(parse_plain(text), str)
    except TooManyDigitsError:
        return False


_Dumper.add_representer(str, _write_text)
