"""Measure start-up, validation, MIG layouts and planning; print figures beside their goals.

Whole processes are timed several times after a warm-up and the median is taken; ratios pair the runs A B A B, so that a
drift of the machine's speed cancels out. `--save FILE` writes the figures,
`--compare FILE` fails where one got worse by more than a tenth.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers")]

from benchmarks import clients, gpu_map, lint, table, validate  # noqa: E402 - the path is set above
from gpukube import api  # noqa: E402
from gpukube.__main__ import GARBAGE  # noqa: E402
from gpukube.cli.formats.html import html_lines  # noqa: E402
from gpukube.core.fields import label  # noqa: E402
from gpukube.core.plan import plan_pool  # noqa: E402
from gpukube.gpu.mig_solver import MOST_INSTANCES, pack  # noqa: E402
from gpukube.gpu.models import model_named  # noqa: E402
from gpukube.provider import load_provider  # noqa: E402
from gpukube_sandbox import daemon  # noqa: E402
from tests.builders import make_observed  # noqa: E402
from tests.map_scene import big_map  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpukube.core.values import Observed

PYTHON = sys.executable
GPUKUBE = str(Path(PYTHON).with_name("gpukube"))
RUNS = 7
SHOWN = 40
HEAD = """apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: bench}
clusters:
"""
CLUSTER = """  c{n}:
    {{provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: c{n}}}
"""
POOL = """  - name: p{p}
    clusters: [c{c}]
    gpu: {{model: A100-40GB, count: 8}}
    nodes: {{count: 1}}
    sharing:
      mig: {{profile: 1g.5gb}}
    labels: {{team: t{p}}}
"""


FLEET = """  {cloud}{n}: {{provider: {cloud}, {identity}, name: {cloud}{n}}}
"""
IDENTITIES = {
    "eks": 'account: "111122223333", region: us-east-1',
    "aks": "subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml",
    "gke": "project: ml-prod, location: us-central1",
}
FLEET_POOLS = """defaults: {{clusters: [{keys}], gpu: {{model: A100-40GB, count: 8}}, nodes: {{count: 1}}}}
pools: [{pools}]
"""
DELAY_S = 0.1
MILLION = {"1g.5gb": MOST_INSTANCES, "1g.10gb": 333_333, "2g.10gb": 77_777, "3g.20gb": 10_001, "4g.20gb": 123}
"""As many MIG instances of one profile as may be asked for at once, beside four others."""


def main() -> int:
    """Run everything and print the table; 1 when a figure is worse than in the file to compare with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", metavar="FILE", help="write the figures to this file")
    parser.add_argument("--compare", metavar="FILE", help="fail where a figure is worse by more than a tenth")
    options = parser.parse_args()
    figures = table.show(_rows())
    if options.save:
        table.save(figures, options.save)
    return int(bool(options.compare and table.compare(figures, options.compare)))


def _rows() -> Iterator[table.Row]:
    yield table.yardstick()
    empty, typer = [PYTHON, "-c", "pass"], [PYTHON, "-c", "import typer"]
    yield "--version / python -c pass", f"{ratio([GPUKUBE, '--version'], empty):.2f} x", "<= 2 x"
    yield "--help / import typer", f"{ratio([GPUKUBE, '--help'], typer):.2f} x", "<= 1.4 x"
    yield "completion / import typer", f"{ratio([GPUKUBE], typer, _completion()):.2f} x", "<= 1.4 x"
    yield "validate one spec", f"{clients.one_spec().wall:.2f} s", "<= 0.20 s"
    yield from clients.rows()
    yield from validate.rows()
    yield from lint.rows()
    yield from gpu_map.rows()
    yield f"cut {MILLION['1g.5gb']:,} MIG instances and more", f"{_timed(_cut_a_million):.2f} s", "<= 2 s"
    big = big_map(400)
    yield "page of a map of 400 nodes and 3,200 GPUs", f"{_timed(lambda: list(html_lines(big))):.2f} s", "<= 0.2 s"
    seconds, megabytes = plan_figures(10_000)
    yield "plan 10,000 pools from given live state", f"{seconds:.2f} s", "<= 0.4 s"
    yield "plan 10,000 pools, peak memory of the process", f"{megabytes:.0f} MB", "<= 250 MB"
    for clusters in (1, 8):
        seconds, chain_s = fleet_figures(clusters)
        what = f"plan diff, {3 * clusters} clusters, 100 ms a call / chain"
        yield what, f"{seconds / chain_s:.2f} x", f"<= 1.5 x of {chain_s:.1f} s"
    yield "plan diff, 2,010 unchanged pools on 201 clusters", f"{unchanged_figure(67, 10):.1f} s", "<= 10 s"


def ratio(ours: Sequence[str], yardstick: Sequence[str], environment: dict[str, str] | None = None) -> float:
    """Time two commands in turn; give the median of the ratios."""
    pairs = [(_time(ours, environment), _time(yardstick)) for _ in range(RUNS + 1)][1:]
    return statistics.median(a / b for a, b in pairs)


def _time(command: Sequence[str], environment: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begin


def _completion() -> dict[str, str]:
    return {**os.environ, "_GPUKUBE_COMPLETE": "complete_bash", "COMP_WORDS": "gpukube pool ", "COMP_CWORD": "2"}


def _spec(pools: int) -> str:
    per_cluster = 100
    clusters = range((pools + per_cluster - 1) // per_cluster)
    parts = [HEAD, *(CLUSTER.format(n=n) for n in clusters), "pools:\n"]
    parts += [POOL.format(p=p, c=p // per_cluster) for p in range(pools)]
    return "".join(parts)


def _prepared(pools: int) -> api.Prepared:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(_spec(pools))
        file.flush()
        return api.prepare(api.load([file.name], environ={}))


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _cut_a_million() -> None:
    pack(model_named("A100-40GB"), MILLION)


def plan_figures(pools: int) -> tuple[float, float]:
    """Seconds to diff and plan that many pools against live ones that all differ in one label, and peak MB.

    Garbage is searched for as rarely as in the command; by Python's default it would be half of the time.
    """
    gc.set_threshold(GARBAGE)
    desired = [wanted for group in _prepared(pools).desired.values() for wanted in group]
    provider = load_provider("aks")
    live: dict[str, list[Observed]] = {}
    for wanted in desired:
        observed = make_observed(wanted)
        changed = replace(observed, fields={**observed.fields, label("team"): "other"})
        live.setdefault(wanted.target.cluster.key, []).append(changed)
    seconds = _timed(lambda: [plan_pool(provider, wanted, live[wanted.target.cluster.key]) for wanted in desired])
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fleet_figures(clusters: int) -> tuple[float, float]:
    """Seconds that `plan diff --skip-cluster` takes for that many clusters of each cloud, and for the longest chain.

    The chain is what no parallelism can shorten: start-up, imports included, and one call after the other of the
    cluster that needs most of them (EKS: identity, cluster, list, each pool with its template and subnets).
    """
    with _fleet(clusters, 2) as (spec, directory):
        diff = ("plan", "diff", "-f", spec, "--skip-cluster", "--parallelism", str(3 * clusters))
        bare_s = statistics.median(_timed(lambda: _sandboxed(*diff)) for _ in range(3))
        one = ("plan", "diff", "-f", spec, "--skip-cluster", "--cluster", "eks0")
        undelayed_s = statistics.median(_timed(lambda: _sandboxed(*one)) for _ in range(3))
        info = daemon.load_info(directory)
        assert info is not None  # noqa: S101 - it is up
        daemon.add_fault(info, "delay", times=0, seconds=DELAY_S)
        seconds = statistics.median(_timed(lambda: _sandboxed(*diff)) for _ in range(3))
        delayed_s = statistics.median(_timed(lambda: _sandboxed(*one)) for _ in range(3))
    return seconds, bare_s + (delayed_s - undelayed_s)


def unchanged_figure(clusters: int, pools: int) -> float:
    """Seconds that `plan diff` takes for that many clusters of each cloud with that many pools, inside and out."""
    with _fleet(clusters, pools) as (spec, _):
        return statistics.median(_timed(lambda: _sandboxed("plan", "diff", "-f", spec)) for _ in range(3))


@contextmanager
def _fleet(clusters: int, pools: int) -> Iterator[tuple[str, Path]]:
    """A spec whose pools are ready in a sandbox of its own: its file, and the directory of the sandbox."""
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory) / "fleet.yaml"
        keys = {f"{cloud}{n}": IDENTITIES[cloud] for cloud in IDENTITIES for n in range(clusters)}
        lines = [FLEET.format(cloud=key[:3], n=key[3:], identity=identity) for key, identity in keys.items()]
        named = ", ".join(f"{{name: p{p}}}" for p in range(pools))
        spec.write_text(HEAD + "".join(lines) + FLEET_POOLS.format(keys=", ".join(keys), pools=named))
        os.environ["GPUKUBE_SANDBOX_STATE"] = directory
        try:
            _sandboxed("create", "-f", str(spec), "--no-wait")
            _sandboxed("wait", "-f", str(spec))
            yield str(spec), Path(directory)
        finally:
            daemon.down(Path(directory))


def _sandboxed(*words: str) -> None:
    done = subprocess.run([GPUKUBE, "--sandbox", "pool", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        told = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if "error" in line or "fix:" in line]
        sys.exit(f"pool {words[0]} ended with {done.returncode}:\n" + "\n".join(told[:SHOWN]))


if __name__ == "__main__":
    sys.exit(main())
