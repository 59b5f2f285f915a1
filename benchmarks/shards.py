"""Measure a fleet in shards: a spec of 10,000 clusters of which a run takes a part, and the merge of 100 documents.

`python benchmarks/shards.py`; takes two minutes. Seconds are those of the processor.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers")]

from gpukube import api  # noqa: E402 - the path is set above
from gpukube.core.shards import Shard  # noqa: E402
from tests.unit.engine.fleets import fleet_of  # noqa: E402

CLUSTERS, SHARDS = 10_000, 100
HEAD = "apiVersion: gpukube.io/v1alpha1\nkind: GPUNodePools\nmetadata: {name: fleet}\nclusters:\n"
CLUSTER = (
    "  c{n}: {{provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: c{n}}}\n"
)
POOL = """  - name: t4
    clusters: [{keys}]
    instanceType: Standard_NC4as_T4_v3
    nodes: {{count: 1}}
"""


def main() -> None:
    """Print one line per figure."""
    with tempfile.TemporaryDirectory() as directory:
        _measure_spec(Path(directory) / "fleet.yaml")
        _measure_merge(Path(directory))


def _measure_spec(path: Path) -> None:
    keys = ", ".join(f"c{n}" for n in range(CLUSTERS))
    clusters = "".join(CLUSTER.format(n=n) for n in range(CLUSTERS))
    path.write_text(f"{HEAD}{clusters}pools:\n{POOL.format(keys=keys)}")
    began = time.process_time()
    specs = api.load([str(path)])
    loaded = time.process_time()
    api.prepare(specs)
    prepared = time.process_time()
    part = api.prepare(specs, api.Filters(shard=Shard(7, SHARDS)))
    ended = time.process_time()
    _print(f"spec of {CLUSTERS} clusters ({path.stat().st_size >> 20} MiB): load", f"{loaded - began:.1f} s")
    _print("prepare all of it", f"{prepared - loaded:.1f} s")
    _print(f"prepare shard 7/{SHARDS}: {len(part.clusters)} clusters", f"{ended - prepared:.1f} s")
    _print("memory of this process", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


def _measure_merge(directory: Path) -> None:
    fleet = fleet_of(CLUSTERS)
    files = []
    for index in range(1, SHARDS + 1):
        files.append(str(directory / f"{index}.json"))
        Path(files[-1]).write_text(json.dumps(fleet.shard(Shard(index, SHARDS), "Diff"), indent=2))
    size = sum(Path(file).stat().st_size for file in files)
    for output in ("json", "table", "markdown"):
        process = subprocess.Popen(
            [sys.executable, "-m", "gpukube", "report", "merge", *files, "-o", output],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _print(
            f"merge {SHARDS} documents ({size >> 20} MiB) to {output}, exit {process.returncode}",
            f"{used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss >> 10} MiB",
        )


def _print(what: str, figure: str) -> None:
    sys.stdout.write(f"{what:80} {figure}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
