"""Killed while the order of an autoscaled pool's alternatives is half written, a second run completes pools and order.

Two stories: all pools of a family are created, and one of them leaves the spec. A boundary is a request for the order,
or one that makes or deletes a pool, not processed ("hang") or not answered ("hang-after"). The autoscaler must not see
a new pool without its place in the order: it is there before the pools, whenever the run is killed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from lightkube.generic_resource import create_global_resource
from lightkube.resources.core_v1 import ConfigMap

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import made_once
from tests.changes.world import SMALL, World, address, prepare, spec
from tests.e2e.stage import inside

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from tests.changes.world import Document
    from tests.chaos.stage import Stage

MAP = "cluster-autoscaler-priority-expander"
ACTIONS = ("hang", "hang-after")
CLOUDS = ("eks", "aks", "gke")
AUTOSCALER: dict[str, dict[str, str]] = {"eks": {"autoscaler": "priority"}, "aks": {}, "gke": {}}
BIG = {"eks": "g4dn.2xlarge", "aks": "Standard_NC8as_T4_v3", "gke": "g2-standard-8"}
NAMES = ("one", "onespot", "onebig")
WITHOUT = ("one", "onebig")
ORDERS = ("kube", "", f"configmaps/{MAP}|kube-system/configmaps|computeclasses")
"""Service, method and path of requests for the order."""
SERVICES = {"eks": "aws", "aks": "arm", "gke": "gke"}
CHANGES = {"create": {"eks": "POST", "aks": "PUT", "gke": "POST"}, "prune": dict.fromkeys(CLOUDS, "DELETE")}
POOLS = "/(node-groups|agentPools|nodePools)"
STORIES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "create": ((), NAMES, ("create",)),
    "prune": (NAMES, WITHOUT, ("apply", "--prune", "--yes")),
}
"""Pools at first and in the end, and the command."""
CALLS = {("create", "order"): 2, ("create", "pool"): 3, ("prune", "order"): 3, ("prune", "pool"): 1}
"""Requests of each sort in an undisturbed run: the order is read, written, and read again after a deletion."""
ComputeClass = create_global_resource("cloud.google.com", "v1", "ComputeClass", "computeclasses")
_made: dict[str, None] = {}


def declared(cloud: str, names: tuple[str, ...]) -> Document:
    """Write an autoscaled pool with one or two alternatives."""
    others: dict[str, Document] = {"onespot": {"capacity": {"type": "spot"}}, "onebig": {"instanceType": BIG[cloud]}}
    alternatives = [{"name": name, **others[name]} for name in names[1:]]
    nodes = {"autoscaling": {"min": 0, "max": 2}}
    pool: Document = {"name": "one", **SMALL[cloud], "nodes": nodes, "alternatives": alternatives}
    return spec("team", {cloud: address(cloud, cloud)}, [pool])


def begin(stage: Stage, cloud: str, had: tuple[str, ...]) -> None:
    """Have a cluster with a release and an autoscaler, and these pools in their order."""

    def make() -> None:
        world = World(stage.info)
        world.make(cloud, cloud, **AUTOSCALER[cloud])
        first = {"name": "first", **SMALL[cloud], "nodes": {"count": 0}}
        api.create(prepare(spec("first", {cloud: address(cloud, cloud)}, [first])), world.run())
        if had:
            world.create(declared(cloud, had))

    made_once(stage.info, f"orders {cloud} {had}", make, _made)


def ranks(info: SandboxInfo, cloud: str) -> list[list[str]]:
    """Return what the autoscaler is told, rank by rank, without the line for all other groups."""
    with inside(info, cloud) as there:
        if cloud == "gke":
            rules = [rule for one in there.client.list(ComputeClass) for rule in one["spec"]["priorities"]]
            return [list(rule["nodepools"]) for rule in rules]
        maps = list(there.client.list(ConfigMap, namespace="kube-system", fields={"metadata.name": MAP}))
    if not maps:
        return []
    lines = yaml.safe_load((maps[0].data or {})["priorities"])
    assert lines.pop(1) == [".*"]
    return [[one.split("-")[1] for one in lines[number]] for number in sorted(lines, reverse=True)]


def pools(stage: Stage) -> set[str]:
    """Return the live pools of the family."""
    return {name for name in stage.pools() if name.startswith("one")}


@pytest.mark.turns(9)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("story", "what", "nth"), [(*sort, nth) for sort, count in CALLS.items() for nth in range(1, count + 1)]
)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_run_when_killed_at_a_request_then_the_next_one_ends_with_these_pools_in_their_order(  # noqa: PLR0913, PLR0917 - a case is that much
    stage: Stage, story: str, what: str, nth: int, cloud: str, action: str
) -> None:
    had, names, words = STORIES[story]
    begin(stage, cloud, had)
    path = stage.home / "family.yaml"
    path.write_text(yaml.safe_dump(declared(cloud, names)))
    command = ("pool", *words, "-f", str(path), "-o", "json")
    service, method, where = ORDERS if what == "order" else (SERVICES[cloud], CHANGES[story][cloud], POOLS)
    daemon.add_fault(stage.info, action, service=service, method=method, path=where, nth=nth)
    assert stage.kill_at_fault(stage.start(*command), with_children=True)
    told = {name for rank in ranks(stage.info, cloud) for name in rank}
    assert pools(stage) <= told | set(had), told
    ended = stage.run(*command)
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    assert (pools(stage), ranks(stage.info, cloud)) == (set(names), [[name] for name in names]), ended.said
    again = json.loads(stage.run("pool", "plan", "diff", "-f", str(path), "-o", "json").out)
    assert again["differs"] is False, again
