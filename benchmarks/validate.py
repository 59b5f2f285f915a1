"""Measure `gpukube validate`: seconds beyond start-up, memory, and where the time goes, rule by rule.

The command is measured as users run it, a process of its own each time; its start-up is the same command with one
pool. The share of each stage and rule is measured in this process, with a clock around each function. Seconds are those
of the processor: the command uses one core and waits for nothing, so on a quiet machine they are those of the wall.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "providers")]

from benchmarks.fleet import fleet, fleet_of_mistakes  # noqa: E402 - the path is set above
from gpukube import api  # noqa: E402
from gpukube.cli import app  # noqa: E402
from tests.fuzz.mutations import mangled  # noqa: E402

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users run compiled modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
RUNS = 3
MANGLED = 1_000
SHOWN = 25

STAGES = (
    ("gpukube.spec.loading.load", "load_documents", "read YAML"),
    ("gpukube.spec.loading.load", "substitute", "fill in variables"),
    ("gpukube.spec.loading.load", "build_spec", "merge, validate, judge (spec rules included)"),
    ("gpukube.engine.plan.prepare", "resolve_pool", "choose machines, judge sharing"),
    ("gpukube.engine.plan.prepare", "choose_releases", "choose releases"),
    ("gpukube.engine.plan.prepare", "desire_pool", "judge by cloud, translate (cloud rules included)"),
)
"""Module, the name that is called there, what it does."""

TABLES = (
    ("gpukube.spec.rules.fields", "POOL_RULES"),
    ("gpukube_eks.rules.checks", "_CHECKS"),
    ("gpukube_aks.rules.checks", "_CHECKS"),
    ("gpukube_gke.rules.checks", "_CHECKS"),
)
SINGLE = (
    ("gpukube.spec.loading.build", "check_together"),
    ("gpukube.core.resolve", "check_sharing"),
    ("gpukube_eks.rules.checks", "check_native"),
    ("gpukube_aks.rules.checks", "check_native"),
    ("gpukube_gke.rules.checks", "check_native"),
)
"""Tables of rules, and rules that are called by their names."""


def figures(pools: int, *, mistakes: bool = False) -> tuple[float, float]:
    """Return the seconds that the command takes beyond start-up, the least of some runs, and its most memory in MB."""
    write = fleet_of_mistakes if mistakes else fleet
    seconds, megabytes = zip(*(_command(write(pools)) for _ in range(RUNS)), strict=True)
    start_up = min(_command(fleet(1))[0] for _ in range(RUNS))
    return min(seconds) - start_up, max(megabytes)


def _command(spec: str) -> tuple[float, float]:
    """Run the command on a spec; give its seconds and its peak memory in MB."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(spec)
        file.flush()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])}
        ours = subprocess.Popen(
            [sys.executable, "-m", "gpukube", "validate", "-f", file.name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        _, _, used = os.wait4(ours.pid, 0)
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


class Clock:
    """Seconds of each function that was given to it, by name."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[P, object]) -> Callable[P, object]:
        """Wrap a function so that its time is counted; a generator is run to its end."""

        def run(*args: P.args, **kwargs: P.kwargs) -> object:
            begin = time.process_time()
            result = function(*args, **kwargs)
            result = list(result) if isinstance(result, Iterator) else result
            self.seconds[name] += time.process_time() - begin
            return result

        return run

    def rows(self, pools: int) -> Iterable[str]:
        """Write a line for each function, the dearest first."""
        for name, seconds in sorted(self.seconds.items(), key=lambda row: -row[1])[:SHOWN]:
            yield f"{name:<64} {seconds * 1e6 / pools:>8.1f} us a pool"


def shares(pools: int) -> tuple[Clock, Clock]:
    """Measure the stages, and in a run of its own the rules, for that many pools."""
    stages, rules = Clock(), Clock()
    for module, name, says in STAGES:
        _replace(module, name, stages.timed(says, getattr(import_module(module), name)))
    _prepare(1)
    stages.seconds.clear()
    _prepare(pools)
    for module, table in TABLES:
        found: Iterable[Callable[..., object]] = getattr(import_module(module), table)
        _replace(module, table, tuple(rules.timed(_name(module, rule), rule) for rule in found))
    for module, name in SINGLE:
        rule = getattr(import_module(module), name)
        _replace(module, name, rules.timed(_name(module, rule), rule))
    _prepare(pools)
    return stages, rules


def _replace(module: str, name: str, value: object) -> None:
    setattr(import_module(module), name, value)


def _name(module: str, rule: Callable[..., object]) -> str:
    return f"{module.removesuffix('.rules')}: {getattr(rule, '__name__', rule)}"


def _prepare(pools: int) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(fleet(pools))
        file.flush()
        api.prepare(api.load([file.name], environ={}))


def rows() -> list[tuple[str, str, str]]:
    """Measure what has a goal: what, figure, goal."""
    thousand, _ = figures(1_000)
    wrong, _ = figures(1_000, mistakes=True)
    many, megabytes = figures(10_000)
    return [
        ("validate 1,000 pools, beyond start-up", f"{thousand:.2f} s", "<= 0.35 s"),
        ("validate 1,000 pools with three mistakes in each", f"{wrong:.2f} s", "<= 1 s"),
        ("validate 10,000 pools, beyond start-up", f"{many:.2f} s", "<= 3 s"),
        ("validate 10,000 pools, peak memory of the process", f"{megabytes:.0f} MB", "<= 250 MB"),
        (f"slowest of {MANGLED:,} mangled specs", f"{slowest_mangled():.2f} s", "<= 1 s"),
    ]


def slowest_mangled() -> float:
    """Return the seconds of the slowest mangled spec of `tests/fuzz` in this process, without start-up."""
    with tempfile.TemporaryDirectory() as directory, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        file = Path(directory, "spec.yaml")
        _mangled_seconds(0, file)
        return max(_mangled_seconds(number, file) for number in range(1, MANGLED + 1))


def _mangled_seconds(number: int, file: Path) -> float:
    spec, words = mangled(number)
    file.write_bytes(spec)
    begin = time.process_time()
    app.run(["validate", "-f", str(file), *words])
    return time.process_time() - begin


def main() -> None:
    """Print the figures with goals, then the stages and the rules."""
    for what, figure, goal in rows():
        print(f"{what:<52} {figure:>10}   goal {goal}")
    pools = 1_000
    for title, clock in zip(("stages", "rules"), shares(pools), strict=True):
        print(f"\n{title}, {pools:,} pools:")
        print("\n".join(clock.rows(pools)))


if __name__ == "__main__":
    main()
