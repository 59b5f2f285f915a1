"""YAML between machines: kubeconfigs, manifests, configuration of charts.

In scope: which parser and emitter. Out of scope: specs, whose lines and columns are told (spec.source).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's reads a chart's manifest in a hundredth of a second; PyYAML's own takes half a second."""
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump_yaml(value: object) -> str:
    """Write one document, keys in their order."""
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False))


def parse_yaml(text: str | bytes) -> object:
    """Read the one document of a text.

    Raises:
        yaml.YAMLError: It is not YAML, or more than one document.
    """
    return yaml.load(text, _LOADER)  # noqa: S506 -- a safe one


def parse_documents(text: str) -> Iterator[object]:
    """Read the documents of a text one by one.

    Raises:
        yaml.YAMLError: It is not YAML.
    """
    yield from yaml.load_all(text, _LOADER)
