"""Generates the NVIDIA device plugin's config file for a sharing config.

In scope: the file (version v1) as data, its text, and its key. Out of scope: the chart's values, and which node uses
which file.

Every file sets flags.migStrategy, because the chart's own value would override all files (NVIDIA/k8s-device-plugin
v0.20.0: command line, then environment, then file). The plugin silently skips a resource name that matches nothing on
the node, so names are derived here, never typed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.gpu.capacity import unshared_resources
from gpukube.gpu.sharing import Sharing, Slicing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KEY_LENGTH: Final = 12


def plugin_config(sharing: Sharing) -> dict[str, object]:
    """Return the device plugin's v1 config file as data; the sharing must have passed check_sharing."""
    strategy = sharing.mig.strategy if sharing.mig else "none"
    config: dict[str, object] = {"version": "v1", "flags": {"migStrategy": strategy}}
    if sharing.slicing:
        block = "mps" if sharing.slicing.mode == "mps" else "timeSlicing"
        config["sharing"] = {block: _slicing(sharing.slicing, unshared_resources(sharing))}
    return config


def render_config(config: Mapping[str, object]) -> str:
    """Render a config as block YAML, deterministically, with quoted strings."""
    return "\n".join(_lines(config)) + "\n"


def config_key(config: Mapping[str, object]) -> str:
    """Return the key of a config, derived from its content: "c-" and 12 hex digits, always a valid label value."""
    canonical = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return f"c-{sha256(canonical.encode()).hexdigest()[:KEY_LENGTH]}"


def _slicing(slicing: Slicing, resources: Iterable[str]) -> dict[str, object]:
    block: dict[str, object] = {}
    if slicing.rename:
        block["renameByDefault"] = True
    if slicing.fail_requests_greater_than_one is not None:
        block["failRequestsGreaterThanOne"] = slicing.fail_requests_greater_than_one
    block["resources"] = [{"name": name, "replicas": slicing.replicas} for name in resources]
    return block


def _lines(node: Mapping[str, object]) -> list[str]:
    lines: list[str] = []
    for key, value in node.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {line}" for line in _lines(value))]
        elif isinstance(value, list):
            lines += [f"{key}:", *(line for item in value for line in _item(item))]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return lines


def _item(item: Mapping[str, object]) -> list[str]:
    first, *others = _lines(item)
    return [f"- {first}", *(f"  {line}" for line in others)]


UNSHARED: Final = plugin_config(Sharing())
"""The config of whole GPUs, for nodes without a sharing config."""
