"""Measure the sandbox: its start, its idle processor time, and its memory with 30 clusters and 300 nodes.

The clusters are of all three clouds; each has a system pool of one node, and a pool of GPUs whose plugin Helm installs
on EKS and AKS as a user's does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers")]

from gpukube_sandbox import daemon  # noqa: E402 - the path is set above

GPUKUBE = str(Path(sys.executable).with_name("gpukube"))
STARTS = 5
IDLE_S = 20.0
CLUSTERS = 30
NODES = 300
MOST_START_S, MOST_IDLE, MOST_MIB = 2.5, 0.01, 250
PLACES = {
    "eks": 'account: "111122223333", region: us-east-1',
    "aks": "subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml",
    "gke": "project: ml-prod, location: us-central1-a",
}


def main() -> int:
    """Print the figures beside their goals; 1 when one is missed."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "GPUKUBE_SANDBOX_STATE": f"{home}/state"}
        starts = [_start() for _ in range(STARTS)]
        empty, idle = _rss_mib(), _idle()
        try:
            _fill(Path(home))
            full, busy = _rss_mib(), _idle()
            nodes = _nodes()
        finally:
            daemon.down(Path(home) / "state")
    start_s = statistics.median(starts)
    print(f"start        {start_s:6.2f} s     goal {MOST_START_S} s (median of {STARTS}, the command included)")
    print(f"idle, empty  {idle:6.2%}       goal {MOST_IDLE:.0%} of a core")
    print(f"idle, full   {busy:6.2%}       goal {MOST_IDLE:.0%} of a core")
    print(f"memory       {full:6.0f} MiB   goal {MOST_MIB} MiB, with {CLUSTERS} clusters and {nodes} nodes")
    print(f"memory empty {empty:6.0f} MiB")
    return int(start_s > MOST_START_S or max(idle, busy) > MOST_IDLE or full > MOST_MIB)


def _start() -> float:
    state = Path(os.environ["GPUKUBE_SANDBOX_STATE"])
    daemon.down(state)
    began = time.monotonic()
    subprocess.run([GPUKUBE, "sandbox", "up", "--speed", "2000"], check=True, capture_output=True)
    return time.monotonic() - began


def _fill(home: Path) -> None:
    """Create a pool of GPUs in each cluster, as a user does."""
    clouds = [list(PLACES)[at % len(PLACES)] for at in range(CLUSTERS)]
    lines = [f"  c{at}: {{provider: {cloud}, {PLACES[cloud]}, name: c{at}}}" for at, cloud in enumerate(clouds)]
    spec = home / "fleet.yaml"
    spec.write_text(
        "apiVersion: gpukube.io/v1alpha1\nkind: GPUNodePools\nmetadata: {name: bench}\nclusters:\n"
        + "\n".join(lines)
        + f"\npools:\n  - name: t4\n    clusters: [{', '.join(f'c{at}' for at in range(CLUSTERS))}]\n"
        + f"    gpu: {{model: T4, count: 1}}\n    nodes: {{count: {NODES // CLUSTERS - 1}}}\n"
    )
    subprocess.run([GPUKUBE, "--sandbox", "pool", "create", "-f", str(spec)], check=True, stdout=subprocess.DEVNULL)


def _info() -> daemon.SandboxInfo:
    info = daemon.load_info(Path(os.environ["GPUKUBE_SANDBOX_STATE"]))
    assert info is not None  # noqa: S101 - it is up
    return info


def _nodes() -> int:
    clusters = daemon.status(_info())["clusters"]
    assert isinstance(clusters, list)  # noqa: S101 - as `status` has it
    return sum(cluster["readyNodes"] for cluster in clusters)


def _rss_mib() -> float:
    lines = Path(f"/proc/{_info().pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def _idle() -> float:
    """Share of a core that it takes while nobody calls."""
    before = _cpu_s()
    time.sleep(IDLE_S)
    return (_cpu_s() - before) / IDLE_S


def _cpu_s() -> float:
    fields = Path(f"/proc/{_info().pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
