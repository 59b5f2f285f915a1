"""Measure the map of a large cluster: 400 nodes with 3,200 GPUs, once with pods that request them, once with claims.

`python benchmarks/gpu_map.py`; takes seconds, which are those of the processor. Calls of an API are not in them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers"), str(ROOT / "sandbox")]

from benchmarks import table  # noqa: E402 - the path is set above
from gpukube.cli.rendering.map import render_map  # noqa: E402
from gpukube.cli.rendering.usage import render_usage  # noqa: E402
from gpukube.cli.rendering.view import View  # noqa: E402
from gpukube.usage.counting import usage_document  # noqa: E402
from gpukube.usage.documents import map_document  # noqa: E402
from tests.claim_cases import A100, slice_of, whole  # noqa: E402
from tests.unit.usage.clusters import EIGHT, claim, live, node, plan, pod, world  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.usage.world import World

NODES, GPUS, PODS = 400, 8, 4


def rows() -> Iterator[table.Row]:
    """Measure both ways in which pods hold GPUs."""
    for name, make in (("counts", _counted), ("claims", _claimed)):
        began = time.process_time()
        made = make()
        built = time.process_time()
        document = map_document(made)
        text = json.dumps(document)
        written = time.process_time()
        yield f"map of {NODES} nodes, {NODES * GPUS} GPUs, {name}: read objects", f"{built - began:.2f} s", "<= 0.5 s"
        yield f"its document, {name}, {len(text) / 1e6:.1f} MB of JSON", f"{written - built:.2f} s", "<= 0.2 s"
        for width in (80, 200):
            start = time.process_time()
            lines = [line for line in render_map(document, View(width=width)) if isinstance(line, str) or line.plain]
            yield (
                f"drawn at {width} columns, {name}, {len(lines)} lines",
                f"{time.process_time() - start:.2f} s",
                "<= 0.1 s",
            )
        start = time.process_time()
        sum(1 for _ in render_usage(usage_document(made), View(width=80)))
        yield f"usage of it, {name}", f"{time.process_time() - start:.2f} s", "<= 0.2 s"


def _counted() -> World:
    names = [f"node-{number:03}" for number in range(NODES)]
    nodes = [node(name, "train", {"nvidia.com/gpu": GPUS}) for name in names]
    pods = [pod(f"ml/{name}-{copy}", name, gpu=2) for name in names[: NODES // 2] for copy in range(PODS)]
    return world((plan("big", [live("train", EIGHT, NODES)], nodes), pods, []))


def _claimed() -> World:
    names = [f"node-{number:03}" for number in range(NODES)]
    nodes = [node(name, "train", {}) for name in names]
    slices = [slice_of(name, [whole(A100, name, minor) for minor in range(GPUS)]) for name in names]
    held = [(name, copy) for name in names[: NODES // 2] for copy in range(PODS)]
    pods = [pod(f"ml/{name}-{copy}", name, claim=f"{name}-{copy}") for name, copy in held]
    claims = [
        claim(f"ml/{name}-{copy}", f"gpu-{2 * copy}", f"gpu-{2 * copy + 1}", on=name, users=[f"{name}-{copy}"])
        for name, copy in held
    ]
    return world((plan("big", [live("train", EIGHT, NODES)], nodes, slices), pods, claims))


if __name__ == "__main__":
    table.show(rows())
