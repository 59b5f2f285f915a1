"""The last lines of a create run: how to run a first pod on each new pool."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from gpukube.cli.stderr import write_stderr

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gpukube.cli.options import Choices
    from gpukube.core.values import Desired

_MOST: Final = 6
"""Maximum number of pools named; for more, only the names in the line would differ."""


def print_first_pods(choices: Choices, pools: Iterable[Desired], created: Collection[tuple[str, str]]) -> None:
    """Print the command that renders a pod for each new pool; not after JSON or YAML output, or for a spec from stdin.

    Args:
        choices: The command line.
        pools: Desired pools of the run.
        created: Cluster and pool of those that exist now.
    """
    if choices.output != "table" or "-" in choices.files:
        return
    there = [pool for pool in pools if (pool.target.cluster.key, pool.target.pool) in created]
    new = list({(one.target.cluster.key, one.target.owner, _name(one)): one for one in reversed(there)}.values())[::-1]
    for pool in new[:_MOST]:
        write_stderr(f"first pod: {shlex.join(_words(choices, pool))} | kubectl apply -f -")
    if len(new) > _MOST:
        write_stderr(f"first pods of {len(new) - _MOST} more pools: the same command with their --pool and --cluster")


def _name(pool: Desired) -> str:
    """Return the name of a pool for pods; alternatives have that of the first, as the manifest is the same."""
    return pool.target.family or pool.target.pool


def _words(choices: Choices, pool: Desired) -> Iterator[str]:
    target = pool.target
    yield from ("gpukube", "workload", "render", "pod")
    for option, values in (("-f", choices.files), ("--set", choices.sets)):
        yield from (word for value in values for word in (option, value))
    yield from ("--pool", _name(pool), "--cluster", target.cluster.key)
    if len(pool.promise.per_node) > 1:
        yield from ("--resource", min(pool.promise.per_node))
