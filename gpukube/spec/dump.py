"""A validated spec -> the YAML that gives it again.

In scope: writing specs. Out of scope: reading them (load.py), comments and advice.

Loading what `dump_spec` writes gives an equal spec. What was merged or substituted on the way in is written out: the
defaults stand in every pool, and a literal ${ is escaped.
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
"""Line breaks of YAML 1.1, which PyYAML reads as a blank where they are not escaped."""
_FIRST: Final = ("name", "clusters")
"""What people look for first in a pool; the models have the name last."""


def spec_data(spec: GPUNodePools) -> SpecData:
    """Return a spec as plain data with the keys of a file: what was written, or set by a program, and nothing else."""
    data = spec.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    return {
        **{key: _plain(value) for key, value in data.items()},
        "pools": [
            {key: _plain(pool[key]) for key in (*(first for first in _FIRST if first in pool), *pool)}
            for pool in data["pools"]
        ],
    }


def dump_spec(spec: GPUNodePools) -> str:
    """Write a spec as one YAML document that loads as an equal spec."""
    return dump_data(spec_data(spec))


def dump_data(data: SpecData) -> str:
    """Write plain data as one YAML document that the loader reads as the same data, right or wrong as a spec."""
    return yaml.dump(
        _escaped(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )


def dump_scalar(text: str) -> str:
    """Write one text as it must stand behind a key, in block style; variables stay variables."""
    return yaml.dump(text, Dumper=_Dumper, allow_unicode=True, width=sys.maxsize).removesuffix("...\n").rstrip("\n")


def _plain(node: object) -> JsonValue:
    """Write the tuples of the models as lists."""
    if isinstance(node, dict):
        return {str(key): _plain(value) for key, value in node.items()}
    return [_plain(item) for item in node] if isinstance(node, list | tuple) else cast("JsonValue", node)


def _escaped(node: JsonValue) -> JsonValue:
    """Write ${ so that it stays: the loader takes variables out of values, not out of keys."""
    if isinstance(node, str):
        return node.replace("${", "$${")
    if isinstance(node, list):
        return [_escaped(item) for item in node]
    if isinstance(node, dict):
        return {key: _escaped(value) for key, value in node.items()}
    return node


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes every text that a reader of YAML 1.1 or 1.2 takes for something else."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write equal parts out."""
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) else None if _is_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_text(text: str) -> bool:
    """Return whether the unquoted text is a string in YAML 1.2; PyYAML follows 1.1, where 1e3 and 0o17 are strings."""
    try:
        return isinstance(parse_plain(text), str)
    except TooManyDigitsError:
        return False


_Dumper.add_representer(str, _write_text)
