"""Human-readable list of emulated clusters and pending faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube.cli.rendering.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View

_TYPES = ("vmSize", "instanceType", "machineType")


def render_sandbox(document: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Show the emulated clusters with their pools and nodes."""
    if not document["clusters"]:
        yield "no clusters; gpukube sandbox up -f SPEC creates those in a spec"
    for cluster in document["clusters"]:
        yield Text.assemble((cluster["name"], "bold"), f"  {cluster['provider']}  {cluster['state']}")
        for pool in cluster["pools"]:
            machine = next((pool[key] for key in _TYPES if key in pool), "?")
            yield f"  pool {pool['name']}  {pool['state']}  {pool['count']} x {machine}"
            for node in pool["nodes"] if view.verbose else ():
                yield f"    node {node}"


def render_faults(document: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Show each fault with what it matches, and how often it has struck."""
    del view
    if not document["faults"]:
        yield "no faults"
    for fault in document["faults"]:
        rest = {key: value for key, value in fault.items() if key not in ("number", "action", "seen", "struck")}
        plain = {
            key: ",".join(f"{name}:{item}" for name, item in value.items()) if isinstance(value, dict) else value
            for key, value in rest.items()
        }
        strikes = " ".join(f"{key}={value}" for key, value in plain.items())
        yield Text.assemble(f"{fault['number']}  ", (fault["action"], "bold"), f"  {strikes}")
        yield f"   {fault['seen']} matched, {fault['struck']} struck"
