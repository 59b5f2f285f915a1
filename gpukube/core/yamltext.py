"""Reads and writes machine-to-machine YAML: kubeconfigs, manifests, chart values.

In scope: the parser and emitter. Out of scope: specs, which need lines and columns (spec.source).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader parses a chart's manifest in a hundredth of a second; PyYAML's own takes half a second."""
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump_yaml(value: object) -> str:
    """Return one document as text, with keys in their order."""
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False))


def parse_yaml(text: str | bytes) -> object:
    """Parse a text that contains a single document.

    Raises:
        yaml.YAMLError: It is not YAML, or more than one document.
    """
    return yaml.load(text, _LOADER)  # noqa: S506 -- a safe loader


def parse_documents(text: str) -> Iterator[object]:
    """Yield the documents of a text.

    Raises:
        yaml.YAMLError: It is not YAML.
    """
    yield from yaml.load_all(text, _LOADER)
