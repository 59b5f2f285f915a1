"""Changes of live pools on all clouds: what each starts from, how it is asked for, and what must be true in the end.

In scope: the stories, their specs, the end of each. Out of scope: processes (`stage`), faults, the tests.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.clouds import templates
from tests.chaos.stage import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.chaos.stage import Ended, NodeSeen, Stage, Started

Json = dict[str, Any]  # a spec before it is checked
CONFIG_LABEL = "nvidia.com/device-plugin.config"
MARKS = ("gpukube.io/", "team")
"""How the node labels begin that are declared."""


@dataclass(frozen=True)
class Cloud:
    """One cloud with a shared pool.

    Attributes:
        example: Its spec below examples/, without the ending.
        service: Its name in the log of requests.
        pool: The pool of the example, of two nodes with four devices each.
        others: Pools that are not ours, with their machines.
        writes: Faults match these: all requests that change something, each as method and path.
        rolled, older: Native or portable fields that make the cloud roll all nodes, after and before.
        replaced: Fields that cannot change on a live pool.
        versions: Versions of the pool's launch template after nodes were rolled; 0 where there are none.
    """

    example: str
    service: str
    pool: str
    others: Mapping[str, int]
    writes: tuple[tuple[str, str], ...]
    rolled: Json
    replaced: Json
    older: Json = field(default_factory=dict)
    versions: int = 0


CLOUDS = {
    "aks": Cloud(
        "aks-timeslicing",
        "arm",
        "t4shared",
        {"nodepool1": 1},
        (("PUT", "/agentPools/"), ("DELETE", "/agentPools/")),
        rolled={"kubernetesVersion": "1.34.2"},
        replaced={"instanceType": "Standard_NC8as_T4_v3"},
        older={"kubernetesVersion": "1.33.5"},
    ),
    "eks": Cloud(
        "eks-timeslicing",
        "aws",
        "t4shared",
        {"system": 1},
        (
            ("POST", "/clusters/"),
            ("DELETE", "/clusters/"),
            ("POST", "Action=CreateLaunchTemplate$"),
            ("POST", "Action=CreateLaunchTemplateVersion"),
            ("POST", "Action=ModifyLaunchTemplate"),
            ("POST", "Action=DeleteLaunchTemplate"),
            ("POST", "/tags/"),
            ("DELETE", "/tags/"),
            ("POST", "Action=(Create|Delete)Tags$"),
        ),
        rolled={"disk": {"sizeGiB": 150}},
        replaced={"instanceType": "g4dn.2xlarge"},
        versions=2,
    ),
    "gke": Cloud(
        "gke-timesharing",
        "gke",
        "l4shared",
        {"default-pool": 1},
        (("PUT", "/nodePools"), ("POST", "/nodePools"), ("DELETE", "/nodePools")),
        rolled={"disk": {"sizeGiB": 150}},
        replaced={"capacity": {"type": "spot"}},
    ),
}


@dataclass(frozen=True)
class Change:
    """One story.

    Attributes:
        after: Fields of the pool that are declared afterwards.
        before: Fields that are declared before.
        words: The command after `gpukube` and its group; the pool's name is put where POOL stands.
        beside: Whether another pool is declared, before and afterwards.
        gone: Whether the pool itself is no longer declared afterwards.
        nodes: Machines of the pool in the end.
        devices: On each of them.
        suffix: Of the pool's name in the cloud in the end.
        plane: What the control plane is upgraded to before, and the nodes afterwards.
        group: Of commands.
    """

    after: Json
    before: Json = field(default_factory=dict)
    words: tuple[str, ...] = ("apply", "--yes")
    beside: bool = False
    gone: bool = False
    nodes: int = 2
    devices: int = 4
    suffix: str = ""
    plane: str = ""
    group: str = "pool"

    @property
    def is_apply(self) -> bool:
        """Whether the command takes the spec that is declared afterwards."""
        return self.words[0] == "apply"


DEDICATED = [{"key": "dedicated", "value": "vision", "effect": "NoSchedule"}]
SLICED = {"sharing": {"timeSlicing": {"replicas": 3, "failRequestsGreaterThanOne": True}}}
HALVED = {"sharing": {"timeSlicing": {"replicas": 2, "failRequestsGreaterThanOne": True}}}
BESIDE = "beside"
NEWER = "1.35.1"
POOL = "POOL"


@cache
def _changes() -> dict[tuple[str, str], Change]:
    found: dict[tuple[str, str], Change] = {}
    for name, cloud in CLOUDS.items():
        grown = {"nodes": {"count": 4}}
        found |= {
            (name, "update"): Change({"labels": {"team": "audio"}, "taints": DEDICATED, **grown}, nodes=4),
            (name, "sharing"): Change(SLICED, words=("apply", "--yes", "--allow-disruption"), devices=3),
            (name, "roll"): Change(cloud.rolled, cloud.older, ("apply", "--yes", "--allow-disruption")),
            (name, "recreate"): Change(cloud.replaced, words=("apply", "--yes", "--replace", "recreate")),
            (name, "surge"): Change(cloud.replaced, words=("apply", "--yes", "--replace", "surge"), suffix="b"),
            (name, "upgrade"): Change({}, words=("apply", "--yes", "--upgrade", "--allow-disruption"), plane=NEWER),
            (name, "prune"): Change({}, words=("apply", "--yes", "--prune"), beside=True, gone=True),
            (name, "delete"): Change({}, words=("delete", POOL, "--yes"), beside=True, gone=True),
            (name, "scale"): Change(grown, words=("scale", POOL, "--nodes", "4"), nodes=4),
        }
    return found


CHANGES = _changes()
"""By cloud and name."""
COMMANDS = {
    "create": Change({}, words=("create",)),
    "release": Change({}, words=("release", POOL, "--yes")),
    "adopt": Change({}, words=("create", "--adopt")),
    "drain": Change({}, words=("drain", POOL, "--yes")),
    "undo": Change({}, words=("drain", POOL, "--undo", "--yes")),
    "remove": Change({}, words=("remove", "--yes"), group="release"),
}
"""What is not a change of a declared pool, by its name; see `begin` for what each starts with."""
STORIES = {**{(name, what): COMMANDS[what] for name in CLOUDS for what in COMMANDS}, **CHANGES}
OPERATOR = replace(CLOUDS["gke"], example="gke-operator", pool="l4own")
"""GKE has a release of ours only with its own plugin left out."""
OCCUPIED = ("drain", "undo")
"""Stories of a pool with pods."""


def _spec(cloud: Cloud, change: Change, *, after: bool) -> Json:
    spec: Json = yaml.safe_load((EXAMPLES / f"{cloud.example}.yaml").read_text())
    (pool,) = [one for one in spec["pools"] if one["name"] == cloud.pool]
    beside = copy.deepcopy(pool) | {"name": BESIDE} | HALVED
    pool.update(change.after if after else change.before)
    declared = [] if after and change.gone else [pool]
    spec["pools"] = [*declared, beside] if change.beside else declared
    return spec


def _written(stage: Stage, name: str, spec: Json) -> Path:
    path = stage.home / name
    path.write_text(yaml.safe_dump(spec))
    return path


def prepare(stage: Stage, cloud: Cloud, change: Change, *, made: bool = True) -> None:
    """Make what is declared before; write both specs."""
    before = _written(stage, "before.yaml", _spec(cloud, change, after=False))
    _written(stage, "after.yaml", _spec(cloud, change, after=True))
    if made:
        stage.made(before)
    if change.plane:
        daemon.upgrade_cluster(stage.info, "train", kubernetes_version=change.plane)


def start_apply(stage: Stage, which: str, *more: str) -> Started:
    """Apply one of the two specs, whatever that disturbs."""
    spec = stage.home / f"{which}.yaml"
    return stage.start("pool", "apply", "--yes", "--allow-disruption", "-f", str(spec), "-o", "json", *more)


def start_change(stage: Stage, cloud: Cloud, change: Change, *more: str) -> Started:
    """Ask for the change."""
    words = [cloud.pool if word == POOL else word for word in change.words]
    spec = stage.home / ("after.yaml" if change.is_apply else "before.yaml")
    return stage.start(change.group, *words, "-f", str(spec), "-o", "json", *more)


def require_changed(stage: Stage, cloud: Cloud, change: Change, ended: Ended) -> None:
    """Everything is as declared afterwards, nothing is there twice, nothing is left over."""
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    pools = dict(cloud.others)
    pools |= {BESIDE: 2} if change.beside else {}
    pools |= {} if change.gone else {cloud.pool + change.suffix: change.nodes}
    assert stage.pools() == pools
    _require_labels(stage, cloud, change)
    _require_templates(stage, cloud, change)
    _require_release(stage)
    stage.require_private()
    same = stage.run("pool", "plan", "diff", "-f", str(stage.home / "after.yaml"))
    assert same.code == 0, same.said


def _require_labels(stage: Stage, cloud: Cloud, change: Change) -> None:
    """Nodes carry what is declared, and show the devices.

    A run proves the pools it changed: on the others the plugin's pods may be replaced for a while, as the release has
    moved.
    """
    declared = _spec(cloud, change, after=True)["pools"]
    if change.plane:
        assert {node.kubelet.startswith(f"v{change.plane}") for node in stage.nodes() if node.devices} == {True}
    devices = {
        pool["name"]: [change.devices if pool["name"] == cloud.pool else 2] * pool["nodes"]["count"]
        for pool in declared
    }
    wait_for(
        lambda: {name: [node.devices for node in _nodes_of(stage.nodes(), name)] for name in devices} == devices,
        stage.nodes,
    )
    nodes = stage.nodes()
    for pool in declared:
        mine = _nodes_of(nodes, pool["name"])
        assert {node.labels.get("team") for node in mine} == {pool["labels"]["team"]}
        keys = {taint.partition("=")[0] for node in mine for taint in node.taints}
        assert ("dedicated" in keys) == ("taints" in pool)
        assert len({(node.taints, node.labels.get(CONFIG_LABEL)) for node in mine}) == 1
    owned = [node for node in nodes if "gpukube.io/pool" in node.labels]
    assert len(owned) == sum(pool["nodes"]["count"] for pool in declared)


def _nodes_of(nodes: Sequence[NodeSeen], pool: str) -> list[NodeSeen]:
    return [node for node in nodes if node.labels.get("gpukube.io/pool") == pool]


def _require_templates(stage: Stage, cloud: Cloud, change: Change) -> None:
    """A group has its launch template, with the versions that an undisturbed run leaves."""
    if not cloud.versions:
        return
    rolled = cloud.versions if change.after is cloud.rolled else 1
    expected = {} if change.gone else {f"gpukube/train/{cloud.pool}{change.suffix}": rolled}
    expected |= {f"gpukube/train/{BESIDE}": 1} if change.beside else {}
    assert templates(stage) == expected


def _require_release(stage: Stage) -> None:
    """Nothing of Helm is half done, and every entry but the default one is named by a node."""
    releases = stage.releases()
    assert not [status for _, _, status in releases if status.startswith("pending")], releases
    if releases:
        assert releases[-1][2] == "deployed", releases
        named = {node.labels[CONFIG_LABEL] for node in stage.nodes() if CONFIG_LABEL in node.labels}
        keys = stage.config_keys()
        assert named <= keys, (named, keys)
        assert len(keys - named) == 1, (named, keys)


# Commands besides


def cloud_of(name: str, what: str) -> Cloud:
    """Return the cloud of a story, with its pool."""
    return OPERATOR if (name, what) == ("gke", "remove") else CLOUDS[name]


def begin(stage: Stage, name: str, what: str, *, occupied: bool = False) -> None:
    """Bring an empty sandbox to where the story begins.

    `create` starts with nothing, `adopt` with a released pool, `undo` with a drained one, `remove` with the release
    alone and an object of others beside it.
    """
    cloud, change = cloud_of(name, what), STORIES[name, what]
    daemon.reset(stage.info)
    prepare(stage, cloud, change, made=what != "create")
    if occupied or what in OCCUPIED:
        stage.occupy(cloud.pool)
    if first := {"adopt": "release", "undo": "drain"}.get(what):
        ended = start_change(stage, cloud, COMMANDS[first]).wait()
        assert ended.code == 0, ended.said
    if what == "remove":
        ended = stage.run("pool", "delete", cloud.pool, "--yes", "-f", str(stage.home / "before.yaml"))
        assert (ended.code, len(stage.objects()) > 1) == (0, True), ended.said
        stage.lay_theirs()


def require_done(stage: Stage, name: str, what: str, ended: Ended) -> None:
    """What the command is for is so, and the spec says nothing else."""
    cloud, change = cloud_of(name, what), STORIES[name, what]
    if what not in ("release", "drain", "undo", "remove"):
        return require_changed(stage, cloud, change, ended)
    assert ended.code == 0, ended.said
    stage.require_polite(ended)
    stage.require_private()
    ours = [] if what == "remove" else [cloud.pool]
    assert stage.pools() == {**cloud.others, **dict.fromkeys(ours, 2)}
    owned = [node for node in stage.nodes() if "gpukube.io/owner" in node.labels]
    cordoned = [node for node in stage.nodes() if "node.kubernetes.io/unschedulable=:NoSchedule" in node.taints]
    expected = {"release": (0, 0), "drain": (2, 2), "undo": (2, 0), "remove": (0, 0)}
    assert (len(owned), len(cordoned)) == expected[what]
    if what == "remove":
        assert (stage.releases(), stage.objects()) == ([], set())
    same = stage.run("pool", "plan", "diff", "-f", str(stage.home / "before.yaml"))
    code = 2 if what in ("release", "remove") else 0
    assert (same.code, "foreign-pool" in same.said) == (code, what == "release"), same.said
    return None
