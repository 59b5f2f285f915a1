"""Upgrades of live pools with pods on them, on each cloud: planned, consented to, cut off, held up by budgets."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.models.policy_v1 import PodDisruptionBudgetSpec
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod
from lightkube.resources.policy_v1 import PodDisruptionBudget

from gpukube import api
from gpukube.engine.commands import wait
from gpukube.errors import Conflict
from gpukube_sandbox import daemon
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.changes.conftest import SPEED
from tests.changes.world import CLOUDS, PACE, SMALL, World, differences, prepare, spec
from tests.cli.harness import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.changes.world import Document

CONSENT = api.Consent(allow_disruption=True)
OLD: Mapping[str, str] = {"eks": "1.33.4", "aks": "1.33.4", "gke": "1.33.4-gke.1036000"}
NEW: Mapping[str, str] = {"eks": "1.34.2", "aks": "1.34.2", "gke": "1.34.1-gke.1829001"}
IMAGES = "20260915"
LABELS = {"app": "infer"}


@dataclass(frozen=True)
class Stage:
    """A pool of two nodes with two pods on it, of a cluster that was upgraded since."""

    world: World
    cloud: str
    document: Document
    client: Client

    def kubelets(self) -> set[str]:
        """Return the versions of the pool's nodes."""
        nodes = [node.to_dict() for node in self.client.list(Node, labels={"gpukube.io/pool": "infer"})]
        return {node["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v") for node in nodes}

    def apply(self) -> api.PoolReport:
        return self.world.apply(self.document, consent=CONSENT, upgrade=True)["infer"]

    def begin_and_die(self) -> None:
        """Send the calls of an upgrade, and look no more; until one node is new."""
        daemon.configure(self.world.info, speed=100.0)
        run = self.world.run(no_wait=True)
        (left,) = api.apply(prepare(self.document), run, api.Scope(upgrade=True), CONSENT)[0].pools
        assert left.outcome == "started"
        wait_for(lambda: NEW[self.cloud] in self.kubelets())
        daemon.configure(self.world.info, speed=SPEED)

    def protect(self) -> None:
        """Let a budget keep both pods, so that neither may go."""
        rules = PodDisruptionBudgetSpec(minAvailable=2, selector=LabelSelector(matchLabels=LABELS))
        self.client.create(PodDisruptionBudget(metadata=ObjectMeta(name="keep", namespace="default"), spec=rules))
        wait_for(lambda: self._healthy() == 2)

    def _healthy(self) -> int:
        status = self.client.get(PodDisruptionBudget, "keep").status
        return (status and status.currentHealthy) or 0

    def release(self) -> None:
        self.client.delete(PodDisruptionBudget, "keep")


@contextmanager
def stage_of(world: World, cloud: str) -> Iterator[Stage]:
    world.reset()
    place = world.make(cloud, "old", version=OLD[cloud])
    document = spec("team", {"old": place}, [{"name": "infer", "nodes": {"count": 2}, **SMALL[cloud]}])
    assert world.create(document)["infer"].outcome == "done"
    kubeconfig = daemon.call(world.info, "GET", "kubeconfig")["kubeconfig"]
    assert isinstance(kubeconfig, dict)
    config = KubeConfig.from_dict(kubeconfig).get(kubeconfig["contexts"][0]["name"])
    with Client(config, timeout=Timeout(PATIENCE_S), trust_env=False) as client:
        rules = DeploymentSpec.from_dict(_inference())
        assert isinstance(rules, DeploymentSpec)
        client.create(Deployment(metadata=ObjectMeta(name="infer", namespace="default"), spec=rules))
        wait_for(lambda: sum(map(_is_ready, client.list(Pod, namespace="default", labels={"app": "infer"}))) == 2)
        daemon.upgrade_cluster(world.info, "old", kubernetes_version=NEW[cloud])
        yield Stage(world, cloud, document, client)


def _is_ready(pod: Pod) -> bool:
    conditions = (pod.status and pod.status.conditions) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


def _inference() -> Document:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "nodeSelector": {"gpukube.io/pool": "infer"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    return {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_pool_when_upgraded_then_told_before_driven_and_proven(cloud: str, world: World) -> None:
    with stage_of(world, cloud) as stage:
        quiet = world.pools(stage.document)["infer"]
        assert quiet.action == "no-op"
        assert quiet.upgrade is not None
        assert quiet.upgrade.is_behind
        assert not quiet.upgrade.is_planned

        with pytest.raises(Conflict, match="restarts or evicts pods"):
            world.apply(stage.document, upgrade=True)
        assert stage.kubelets() == {OLD[cloud]}

        plan = world.pools(stage.document, upgrade=True)["infer"]
        assert [str(change.change.field) for change in plan.disruptive][-1] == "kubernetesVersion"
        assert plan.upgrade is not None
        assert plan.upgrade.blocked == ()
        report = stage.apply()
        assert (str(report.error or ""), report.outcome) == ("", "done")
        assert stage.kubelets() == {NEW[cloud]}
        assert differences(world.plan(stage.document, upgrade=True)) == []
        assert differences(world.plan(stage.document)) == []

        daemon.upgrade_cluster(world.info, "old", images=IMAGES)
        newer = world.pools(stage.document, upgrade=True)["infer"].disruptive
        assert [IMAGES[6:] in str(change.change.new) for change in newer] == ([] if cloud == "gke" else [True])
        assert str(stage.apply().error or "") == ""
        assert differences(world.plan(stage.document, upgrade=True)) == []


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "aks"])
def test_budget_when_it_blocks_then_named_and_once_gone_a_killed_run_is_completed(cloud: str, world: World) -> None:
    with stage_of(world, cloud) as stage:
        stage.protect()
        plan = world.pools(stage.document, upgrade=True)["infer"]
        warned = [found for found in plan.diagnostics if found.code == "upgrade-blocked"]
        assert ["default/keep" in found.why for found in warned] == [True, True]

        report = stage.apply()
        assert report.outcome == "failed"
        assert report.error is not None
        assert [found.code for found in report.error.diagnostics] == ["drain", "upgrade-blocked", "upgrade-blocked"]
        assert "edit pdb keep" in report.error.diagnostics[1].fix
        assert OLD[cloud] in stage.kubelets()

        stage.release()
        if cloud == "aks":  # the PUT that repairs the pool goes on with its upgrade
            repaired = world.pools(stage.document)["infer"]
            assert (repaired.action, repaired.changes, repaired.loss is not None) == ("create", (), True)
            with pytest.raises(Conflict, match="finishing the repair takes an upgrade"):
                world.apply(stage.document)
            assert world.create(stage.document)["infer"].outcome == "differs"
            assert OLD[cloud] in stage.kubelets()
        stage.begin_and_die()
        assert stage.kubelets() == {OLD[cloud], NEW[cloud]}
        done = stage.apply()
        assert str(done.error or "") == ""
        assert stage.kubelets() == {NEW[cloud]}


def test_wait_when_nodes_were_left_behind_then_not_ready(world: World) -> None:
    world.reset()
    document = spec(
        "team", {"train": world.make("aks", "train")}, [{"name": "infer", "nodes": {"count": 1}, **SMALL["aks"]}]
    )
    assert world.create(document)["infer"].outcome == "done"
    run = replace(world.run(), pace=replace(PACE, settle_s=0.2))
    assert wait(prepare(document), run)[0].pools[0].message == "ready"
    inside = Cluster(world.info)
    inside.label_nodes(
        "infer", **{"kubernetes.azure.com/node-image-version": "AKSUbuntu-2204gen2containerd-202401.01.0"}
    )
    inside.close()
    (left,) = wait(prepare(document), run)[0].pools
    assert left.outcome == "failed"
    assert left.error is not None
    assert [found.code for found in left.error.diagnostics] == ["node-outdated"]


def test_budget_when_it_blocks_on_gke_then_pods_are_deleted_in_the_end_and_a_killed_run_is_completed(
    world: World,
) -> None:
    with stage_of(world, "gke") as stage:
        stage.protect()
        plan = world.pools(stage.document, upgrade=True)["infer"]
        assert plan.upgrade is not None
        assert plan.upgrade.terms.overdue == "forces"
        assert len(plan.upgrade.blocked or ()) == 2
        stage.begin_and_die()
        assert str(stage.apply().error or "") == ""
        assert stage.kubelets() == {NEW["gke"]}
