"""Two applies at the same time on one cluster: one wins, the other waits or says what is the matter; both end quiet."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.changes import CHANGES, CLOUDS, CONFIG_LABEL, prepare, require_changed, start_apply

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.changes import Cloud
    from tests.chaos.stage import Ended, NodeSeen, Stage, Started

CLEAN = (0, 1, 3)
"""How the one that was slower may end."""
HELM = ("kube", "POST", "/secrets\\?")
RECORD = "/secrets/sh.helm.release.v1.gpukube-nvidia-device-plugin"
HOLDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "aks": (("arm", "PUT", "/agentPools/"), HELM),
    "eks": (("aws", "POST", "/update-config"), HELM),
    "gke": (("gke", "PUT", "/nodePools/"),),
}
"""Where the first of the two is held: at its change of the pool, or while Helm runs."""
CASES = [(name, hold) for name, holds in HOLDS.items() for hold in (None, *holds)]


def hold(stage: Stage, started: Started) -> None:
    """Wait until it is held."""
    wait_for(lambda: stage.struck() or not started.is_running)
    assert started.is_running, started.said


def until_quiet(stage: Stage, ended: Ended, spec: Path) -> Ended:
    """A clear refusal is fine when the next run gets over it."""
    stage.require_polite(ended)
    assert ended.code in CLEAN, ended.said
    if ended.code == 0:
        return ended
    again = apply(stage, spec).wait()
    stage.require_polite(again)
    assert again.code == 0, again.said
    return again


def apply(stage: Stage, spec: Path) -> Started:
    """Apply a spec, whatever that disturbs."""
    return stage.start("pool", "apply", "--yes", "--allow-disruption", "-f", str(spec), "-o", "json")


@pytest.mark.turns(8)
@pytest.mark.parametrize(("name", "held"), CASES)
def test_apply_when_one_spec_is_applied_twice_at_once_then_the_change_is_made_once(
    stage: Stage, name: str, held: tuple[str, str, str] | None
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "sharing"]
    prepare(stage, cloud, change)
    if held:
        service, method, path = held
        daemon.add_fault(stage.info, "hang", service=service, method=method, path=path)
    first = start_apply(stage, "after")
    if held:
        hold(stage, first)
    second = start_apply(stage, "after")
    if held:
        wait_for(lambda: not second.is_running or "another Helm run" in second.said or "release: " in second.said)
    daemon.clear_faults(stage.info)
    spec = stage.home / "after.yaml"
    ended = first.wait(), second.wait()  # both: what is repeated meets nobody
    until_quiet(stage, ended[0], spec)
    require_changed(stage, cloud, change, until_quiet(stage, ended[1], spec))


# Two owners on one cluster


def other_spec(stage: Stage, cloud: Cloud, replicas: Sequence[int]) -> Path:
    """Write the spec of another owner: a pool of one node for each sharing."""
    spec = yaml.safe_load((stage.home / "before.yaml").read_text())
    spec["metadata"]["name"] = "others"
    (template,) = spec["pools"]
    spec["pools"] = []
    for count in replicas:
        pool = copy.deepcopy(template)
        pool |= {"name": f"other{count}", "nodes": {"count": 2}, "taints": []}
        pool["sharing"]["timeSlicing"]["replicas"] = count
        spec["pools"].append(pool)
    path = stage.home / "others.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def require_both(stage: Stage, specs: Sequence[Path], devices: set[int]) -> None:
    """Both are as declared; each node has its entry and shows what it promises; no entry is left over.

    Each run proves its own pools; when the other one changes the release after that, the plugin's pods are replaced on
    all nodes.
    """

    def ours() -> list[NodeSeen]:
        return [node for node in stage.nodes() if "gpukube.io/pool" in node.labels]

    wait_for(lambda: {node.devices for node in ours()} == devices, ours)
    for spec in specs:
        same = stage.run("pool", "plan", "diff", "-f", str(spec))
        assert same.code == 0, same.said
    nodes = ours()
    named = {node.labels[CONFIG_LABEL] for node in nodes}
    keys = stage.config_keys()
    assert named < keys, (named, keys)
    assert len(keys) == len(devices) + 1  # the unshared default too
    assert not [status for _, _, status in stage.releases() if status.startswith("pending")]


@pytest.mark.parametrize("name", ["aks", pytest.param("eks", marks=pytest.mark.slow)])
def test_apply_when_two_owners_change_their_sharing_at_once_then_both_entries_are_there(
    stage: Stage, name: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "sharing"]
    prepare(stage, cloud, change)
    ours, theirs = stage.home / "after.yaml", other_spec(stage, cloud, [5])
    started = [(spec, apply(stage, spec)) for spec in (ours, theirs)]
    for spec, ended in [(spec, run.wait()) for spec, run in started]:
        until_quiet(stage, ended, spec)
    require_both(stage, (ours, theirs), {3, 5})


@pytest.mark.parametrize("name", ["aks", pytest.param("eks", marks=pytest.mark.slow)])
def test_apply_when_it_waits_for_helm_while_the_other_retires_an_entry_then_the_entry_does_not_come_back(
    stage: Stage, name: str
) -> None:
    """The other run upgrades twice between two looks of the waiting one, whose plan has the entry that was dropped.

    The waiting one has planned before that, and made its dry run: whoever plans from an open change retires entries.
    """
    cloud, change = CLOUDS[name], CHANGES[name, "sharing"]
    prepare(stage, cloud, change)
    ours, theirs = stage.home / "after.yaml", other_spec(stage, cloud, [5])
    daemon.add_fault(stage.info, "hang", service="kube", method="GET", path="/nodefeaturerules\\.")
    waits = apply(stage, theirs)
    hold(stage, waits)
    waits.freeze()
    daemon.clear_faults(stage.info)
    daemon.add_fault(stage.info, "hang", service="kube", method="PUT", path=f"{RECORD}.v2")
    retires = apply(stage, ours)
    hold(stage, retires)
    waits.thaw()
    wait_for(lambda: not waits.is_running or "another Helm run" in waits.said, lambda: waits.said)
    waits.freeze()
    daemon.clear_faults(stage.info)
    assert until_quiet(stage, retires.wait(), ours).code == 0
    assert [revision for _, revision, _ in stage.releases()] == [1, 2, 3]
    waits.thaw()
    until_quiet(stage, waits.wait(), theirs)
    require_both(stage, (ours, theirs), {3, 5})


@pytest.mark.parametrize("name", ["aks", pytest.param("eks", marks=pytest.mark.slow)])
@pytest.mark.parametrize("late", ["adds", "retires"])
def test_apply_when_it_overwrites_what_the_other_did_unseen_then_both_changes_are_there(
    stage: Stage, name: str, late: str
) -> None:
    """One is held after it has compared the revision and before Helm reads it; the other one does all its work."""
    cloud, change = CLOUDS[name], CHANGES[name, "sharing"]
    prepare(stage, cloud, change)
    ours, theirs = stage.home / "after.yaml", other_spec(stage, cloud, [5])
    held, other, upgrade = (theirs, ours, 1) if late == "adds" else (ours, theirs, 2)
    daemon.add_fault(stage.info, "hang", service="kube", method="GET", path="/namespaces/gpukube-system$", nth=upgrade)
    first = apply(stage, held)
    hold(stage, first)
    before = stage.releases()
    until_quiet(stage, apply(stage, other).wait(), other)
    assert len(stage.releases()) > len(before) == upgrade
    daemon.clear_faults(stage.info)
    until_quiet(stage, first.wait(), held)
    assert "changed by somebody else" in first.said
    require_both(stage, (ours, theirs), {3, 5})


def test_delete_when_it_overwrites_an_added_entry_unseen_then_the_entry_comes_back(stage: Stage) -> None:
    """No pool of the deleting spec needs the release any more; nodes of the other one name the lost entry already."""
    cloud, change = CLOUDS["aks"], CHANGES["aks", "sharing"]
    prepare(stage, cloud, change)
    theirs = other_spec(stage, cloud, [5])
    daemon.add_fault(stage.info, "hang", service="kube", method="GET", path="/namespaces/gpukube-system$")
    first = stage.start("pool", "delete", cloud.pool, "--yes", "-f", str(stage.home / "before.yaml"), "-o", "json")
    hold(stage, first)
    until_quiet(stage, apply(stage, theirs).wait(), theirs)
    daemon.clear_faults(stage.info)
    ended = first.wait()
    assert ended.code == 0, ended.said
    require_both(stage, (theirs,), {5})


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    "held",
    [
        ("kube", "PUT", f"{RECORD}.v2"),
        ("arm", "PUT", "/agentPools/other"),
    ],
    ids=["helm", "queue"],
)
def test_apply_when_one_retires_entries_while_pools_of_the_other_queue_then_both_entries_are_there(
    stage: Stage, held: tuple[str, str, str]
) -> None:
    """Entries that nothing names yet: while their own Helm ends, and while AKS makes one pool after the other."""
    cloud, change = CLOUDS["aks"], CHANGES["aks", "sharing"]
    prepare(stage, cloud, change)
    ours, theirs = stage.home / "after.yaml", other_spec(stage, cloud, [5, 6])
    service, method, path = held
    daemon.add_fault(stage.info, "hang", service=service, method=method, path=path)
    queues = apply(stage, theirs)
    hold(stage, queues)
    retires = apply(stage, ours)
    if service == "kube":  # Helm is at work: this one has to wait for it
        wait_for(lambda: not retires.is_running or "another Helm run" in retires.said)
        daemon.clear_faults(stage.info)
    until_quiet(stage, retires.wait(), ours)
    daemon.clear_faults(stage.info)
    until_quiet(stage, queues.wait(), theirs)
    require_both(stage, (ours, theirs), {3, 5, 6})
