"""Every pair of commands that change a pool, at the same time: no harm to either, and one more run ends as declared."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest
import yaml

from sandbox_tests.waiting import wait_for
from tests.chaos.changes import CHANGES, CLOUDS, POOL, prepare

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.changes import Cloud
    from tests.chaos.stage import Ended, NodeSeen, Stage, Started

COMMANDS = {
    "apply": ("apply", "--yes", "--allow-disruption"),
    "surge": ("apply", "--yes", "--allow-disruption", "--replace", "surge"),
    "delete": ("delete", POOL, "--yes"),
    "scale": ("scale", POOL, "--nodes", "4", "--yes", "--timeout", "0.2"),
    "drain": ("drain", POOL, "--yes", "--allow-disruption"),
    "release": ("release", POOL, "--yes"),
}
"""Each after `gpukube pool`. Of a pool that is released meanwhile no nodes are ours: scaling waits for them in vain."""
PAIRS = list(combinations_with_replacement(COMMANDS, 2))
MOST_RUNS = 4
"""Runs that may be needed until all is as declared: one after each refusal that names the next step."""


def spec_of(stage: Stage, command: str) -> Path:
    """Apply and surge declare something else; the others take the pool as it was declared."""
    return stage.home / {"apply": "grown.yaml", "surge": "after.yaml"}.get(command, "before.yaml")


def start(stage: Stage, cloud: Cloud, command: str) -> Started:
    """Start one of the two."""
    words = [cloud.pool if word == POOL else word for word in COMMANDS[command]]
    return stage.start("pool", *words, "-f", str(spec_of(stage, command)), "-o", "json")


def require_clear(stage: Stage, ended: Ended) -> None:
    """It went well, or was refused with the way out: what it met was half of the other's work."""
    stage.require_polite(ended)
    assert ended.code in (0, 1, 3, 7), ended.said


def converge(stage: Stage, cloud: Cloud, spec: Path, *, drained: bool) -> None:
    """Apply until nothing differs, and undo what a drain cordoned: a pool that was released is ours again by then."""
    apply = ("apply", "--yes", "--allow-disruption", "--adopt", "--replace", "surge")
    undo = ("drain", cloud.pool, "--undo", "--yes")
    said = []
    for _ in range(MOST_RUNS):
        done = [stage.run("pool", *words, "-f", str(spec)) for words in (apply, *([undo] if drained else []))]
        same = stage.run("pool", "plan", "diff", "-f", str(spec))
        said += [ended.said for ended in (*done, same)]
        for ended in done:
            require_clear(stage, ended)
        if not any(ended.code for ended in (*done, same)):
            return
    raise AssertionError("\n".join(said))


@pytest.mark.turns(9)
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_pair_when_run_at_once_then_neither_does_harm_and_one_more_run_ends_as_declared(
    stage: Stage, name: str, first: str, second: str
) -> None:
    cloud = CLOUDS[name]
    prepare(stage, cloud, CHANGES[name, "surge"])
    before = yaml.safe_load((stage.home / "before.yaml").read_text())
    before["pools"][0] |= {"nodes": {"count": 4}, "labels": {"team": "audio"}}
    (stage.home / "grown.yaml").write_text(yaml.safe_dump(before))
    stage.occupy(cloud.pool)
    both = [start(stage, cloud, command) for command in (first, second)]
    for ended in [run.wait() for run in both]:
        require_clear(stage, ended)
    chosen = next((command for command in ("surge", "apply") if command in (first, second)), first)
    converge(stage, cloud, spec_of(stage, chosen), drained="drain" in (first, second))
    pools = stage.pools()
    assert {name: count for name, count in pools.items() if name in cloud.others} == cloud.others
    released = {node.labels["gpukube.io/released"] for node in stage.nodes() if "gpukube.io/released" in node.labels}
    assert released <= {cloud.pool}
    assert "release" in (first, second) or not released
    ours = pools.keys() - cloud.others.keys()
    assert len(ours) == 1 + len(released), pools
    assert ours <= {cloud.pool, f"{cloud.pool}b"}, pools

    def marked() -> list[NodeSeen]:
        return [node for node in stage.nodes() if "gpukube.io/pool" in node.labels]

    wait_for(lambda: all(node.devices for node in marked()), stage.nodes)
    assert not [node for node in marked() if "node.kubernetes.io/unschedulable=:NoSchedule" in node.taints]
    assert not [status for _, _, status in stage.releases() if status.startswith("pending")]
    stage.require_private()
