"""The last lines of a creation: how a first pod comes onto each new pool."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from gpukube.cli.stderr import write_stderr

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gpukube.cli.options import Choices
    from gpukube.core.values import Desired

_MOST: Final = 6
"""Pools that are named; for more of them the line is the same but for its names."""


def tell_first_pods(choices: Choices, pools: Iterable[Desired], made: Collection[tuple[str, str]]) -> None:
    """Write the command that renders a pod for each new pool; none beside data, or for a spec from stdin.

    Args:
        choices: The command line.
        pools: Of the run.
        made: Cluster and pool of those that are there now.
    """
    if choices.output != "table" or "-" in choices.files:
        return
    new = [pool for pool in pools if (pool.target.cluster.key, pool.target.pool) in made]
    for pool in new[:_MOST]:
        write_stderr(f"first pod: {shlex.join(_words(choices, pool))} | kubectl apply -f -")
    if len(new) > _MOST:
        write_stderr(f"first pods of {len(new) - _MOST} more pools: likewise, with their --pool and --cluster")


def _words(choices: Choices, pool: Desired) -> Iterator[str]:
    target = pool.target
    yield from ("gpukube", "workload", "render", "pod")
    for option, values in (("-f", choices.files), ("--set", choices.sets)):
        yield from (word for value in values for word in (option, value))
    yield from ("--pool", target.pool, "--cluster", target.cluster.key)
    if len(pool.promise.per_node) > 1:
        yield from ("--resource", min(pool.promise.per_node))
