"""Measure a look at one cluster beside the official client's list of its pools, both against the sandbox, in pairs.

`plan diff --skip-cluster` of one cluster with one pool against `aws eks list-nodegroups`, `az aks nodepool list` and
`gcloud container node-pools list`: those that are on PATH. Whole processes run A B A B, so that a drift of the
machine's speed cancels out; of the ratios of the pairs the median is given. Ours is the larger task: it reads the spec,
asks who we are, reads the cluster and each pool, and compares.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers")]

from gpukube_sandbox import daemon  # noqa: E402 - the path is set above
from gpukube_sandbox.environment import env  # noqa: E402

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users run compiled modules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PAIRS: Final = 7
GPUKUBE: Final = str(Path(sys.executable).with_name("gpukube"))
SPEC: Final = """apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: bench}}
clusters:
  train: {{provider: {cloud}, {identity}, name: train}}
pools:
  - {{name: one, clusters: [train], gpu: {{model: A100-40GB, count: 8}}, nodes: {{count: 1}}}}
"""
IDENTITIES: Final = {
    "eks": 'account: "111122223333", region: us-east-1',
    "aks": "subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml",
    "gke": "project: ml-prod, location: us-central1",
}
CLIENTS: Final = {
    "eks": "aws eks list-nodegroups --cluster-name train",
    "aks": "az aks nodepool list -g ml --cluster-name train -o json",
    "gke": "gcloud container node-pools list --cluster=train --location=us-central1 --format=json",
}


class Used(NamedTuple):
    """What a process took: seconds of the clock and of the processor, and most memory in MB."""

    wall: float
    cpu: float
    megabytes: float


def rows() -> Iterator[tuple[str, str, str]]:
    """Measure the pair of each cloud whose client is there: what, figure, goal."""
    for cloud, line in CLIENTS.items():
        words = line.split()
        found = shutil.which(words[0])
        if found is None:
            yield f"plan diff, one {cloud} cluster / {words[0]}", f"no {words[0]}", "<= 0.8 x"
            continue
        client = f"{words[0]} {_version(found)}"  # figures beside another version are not comparable
        pairs = _pairs(cloud, [found, *words[1:]])
        for name, what, goal in (("wall", "", 0.8), ("cpu", ", processor", 0.8), ("megabytes", ", peak memory", 1.2)):
            ratio = statistics.median(getattr(ours, name) / getattr(theirs, name) for ours, theirs in pairs)
            yield f"plan diff, one {cloud} cluster / {client}{what}", f"{ratio:.2f} x", f"<= {goal} x"


def _version(client: str) -> str:
    shown = subprocess.run([client, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", shown)
    return found[0] if found else ""


def _pairs(cloud: str, client: Sequence[str]) -> list[tuple[Used, Used]]:
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory, "spec.yaml")
        spec.write_text(SPEC.format(cloud=cloud, identity=IDENTITIES[cloud]))
        mine = {**os.environ, "GPUKUBE_SANDBOX_STATE": directory}
        pool = [GPUKUBE, "--sandbox", "pool"]
        try:
            for verb in (("create", "--no-wait"), ("wait",)):
                subprocess.run([*pool, *verb, "-f", str(spec)], env=mine, check=True, capture_output=True)
            info = daemon.load_info(Path(directory))
            assert info is not None  # noqa: S101 - it is up
            diff, theirs = [*pool, "plan", "diff", "--skip-cluster", "-f", str(spec)], {**os.environ, **env(info)}
            return [(run(diff, mine), run(client, theirs)) for _ in range(PAIRS + 1)][1:]
        finally:
            daemon.down(Path(directory))


def run(command: Sequence[str], environment: Mapping[str, str]) -> Used:
    """Run to the end and ask the operating system what it took.

    Raises:
        subprocess.CalledProcessError: It failed: there is nothing to compare.
    """
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def one_spec() -> Used:
    """Measure `gpukube validate` of one small spec: the median of some runs, each figure by itself."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(SPEC.format(cloud="eks", identity=IDENTITIES["eks"]))
        file.flush()
        runs = [run([GPUKUBE, "validate", "-f", file.name], os.environ) for _ in range(PAIRS + 1)][1:]
    return Used(*map(statistics.median, zip(*runs, strict=True)))


def main() -> None:
    """Print the figures beside their goals."""
    used = one_spec()
    print(f"{'validate one spec':<60} {used.wall:>8.2f} s   goal <= 0.20 s")
    print(f"{'the same, peak memory':<60} {used.megabytes:>7.0f} MB")
    for what, figure, goal in rows():
        print(f"{what:<60} {figure:>10}   goal {goal}")


if __name__ == "__main__":
    main()
