"""What a plan forecasts of a drain: budgets, consent, gangs, queues, pods without a home, selectors of the pool."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.cluster.drain.owners import describe_gang, fed_queues, find_pins
from gpukube.cluster.drain.pods import Gang, node_pod
from gpukube.cluster.kube.api_types import REPLICA_SETS, RESOURCE_CLAIMS
from gpukube.core.drain_forecast import PoolPin
from gpukube.core.jsontree import text, tree
from gpukube.engine.plan.drain_forecast import forecast_drain, read_owners
from gpukube.errors import AccessError
from gpukube.testing.fakes import FakeProvider
from tests.draining import NEW, OLD, PLAN, Stage, budget, deployment, pod_spec
from tests.unit.cluster.builders import desire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.drain_forecast import DrainForecast
    from gpukube.core.jsontree import Tree

POOL_LABEL = "fake.example/pool"


def forecast(stage: Stage) -> DrainForecast:
    new = replace(desire(), target=replace(desire().target, name=NEW))
    found = forecast_drain(replace(PLAN, desired=new), stage.session, cast("Kube", stage.kube), stage.clock.now())
    assert found is not None
    return found


def test_forecast_when_pods_are_kept_then_by_budget_by_consent_and_by_the_new_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpukube.engine.plan.drain_forecast.load_provider", lambda _name: FakeProvider())
    with Stage() as stage:
        stage.join("old-1")
        stage.put("deployments", deployment("web", 4))
        stage.put("poddisruptionbudgets", budget("web", maxUnavailable=2))
        stage.put("deployments", deployment("single", 1))
        stage.put("poddisruptionbudgets", budget("keep", "single", minAvailable=1))
        stage.put("deployments", deployment("pinned", 1, nodeSelector={POOL_LABEL: OLD}))
        stage.put("pods", {"metadata": {"name": "bare"}, "spec": pod_spec()})
        daemon = {"metadata": {"name": "agent"}, "spec": deployment("agent", 1, nodeSelector={POOL_LABEL: OLD})["spec"]}
        del daemon["spec"]["replicas"]
        stage.put("daemonsets", daemon)
        stage.pass_time(60)
        found = forecast(stage)
    assert found.pods == 7
    (blocked,) = found.blocked
    assert (blocked.pod.rsplit("-", 2)[0], blocked.budgets) == ("default/single", ("default/keep",))
    assert "minAvailable 1 needs 1 of its 1 pods" in blocked.why
    assert [pod.pod for pod in found.needing] == ["default/bare"]
    (turn,) = found.turns
    assert (turn.budget, turn.pods, turn.allowed, turn.seconds >= 60) == ("default/web", 4, 2, True)
    (homeless,) = [pod for pod in found.homeless if "pinned" in pod.pod]
    assert not any("nodeName" in pod.why for pod in found.homeless), "the scheduler wrote it"
    assert f"{POOL_LABEL} is {NEW}, the nodeSelector requires {OLD}" in homeless.why
    label = f"{POOL_LABEL}={OLD}"
    assert set(found.pins) == {
        PoolPin("Deployment default/pinned", "nodeSelector", label),
        PoolPin("DaemonSet default/agent", "nodeSelector", label),
    }


def test_forecast_when_a_device_plugin_follows_dra_then_pods_with_claims_find_no_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpukube.engine.plan.drain_forecast.load_provider", lambda _name: FakeProvider())
    with Stage() as stage:
        stage.join("old-1")
        for name in ("claims", "free"):
            stage.put(
                "pods", {"metadata": {"name": name}, "spec": {**pod_spec(), "tolerations": [{"operator": "Exists"}]}}
            )
        stage.pass_time(60)
        pods = [tree(one, "metadata") for one in stage.kube.all_pods_on(["old-1"])]
        (uid,) = [text(one, "uid") for one in pods if text(one, "name") == "claims"]
        claim = {
            "status": {
                "allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "device": "gpu-0"}]}},
                "reservedFor": [{"resource": "pods", "name": "claims", "uid": uid}],
            }
        }
        nic = {"status": {**claim["status"], "allocation": {"devices": {"results": [{"driver": "dra.net"}]}}}}
        listed = {RESOURCE_CLAIMS: (claim, nic)}
        everything = stage.kube.objects
        monkeypatch.setattr(
            stage.kube, "objects", lambda kind, *more, **how: listed.get(kind) or everything(kind, *more, **how)
        )
        assert PLAN.observed
        was_dra = replace(PLAN, observed=replace(PLAN.observed, labels={"gpukube.io/advertiser": "dra"}))
        for plan, homeless in ((was_dra, ["default/claims"]), (PLAN, [])):
            found = forecast_drain(
                replace(plan, desired=replace(desire(), target=replace(desire().target, name=NEW))),
                stage.session,
                cast("Kube", stage.kube),
                stage.clock.now(),
            )
            assert found is not None
            assert [pod.pod for pod in found.homeless] == homeless
            assert all("its claim finds no device" in pod.why for pod in found.homeless)


def test_forecast_when_a_workload_ignores_the_cordon_then_named_and_templates_that_may_not_be_read_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpukube.engine.plan.drain_forecast.load_provider", lambda _name: FakeProvider())
    with Stage() as stage:
        stage.join("old-1")
        stage.put("deployments", deployment("named", 1, nodeName="old-1"))
        stage.put("deployments", deployment("all", 2, tolerations=[{"operator": "Exists"}]))
        stage.pass_time(60)
        found = forecast(stage)
        whys = {pod.why.partition(":")[0] for pod in found.needing}
        assert whys == {
            "Deployment default/all ignores the cordon (tolerations",
            "Deployment default/named ignores the cordon (nodeName",
        }
        read = stage.kube.objects

        def denied(
            kind: ApiType, namespace: str = "", labels: Mapping[str, str] | None = None
        ) -> tuple[Tree, ...] | None:
            if kind is REPLICA_SETS:
                raise AccessError("not allowed: list replicasets.apps")
            return read(kind, namespace, labels)

        monkeypatch.setattr(stage.kube, "objects", denied)
        less = forecast(stage)
    assert (len(found.needing), len(less.needing)) == (3, 2)
    assert any(line.startswith("templates that name a node: ") and "replicasets" in line for line in less.unread)


def test_forecast_when_nothing_must_leave_then_next_to_nothing_is_read() -> None:
    with Stage() as stage:
        stage.join("old-1")
        assert forecast(stage).pods == 0


def test_pins_when_a_selector_names_the_pool_then_found_wherever_it_stands() -> None:
    gone = {"agentpool": frozenset({"a100"})}
    term = {"matchExpressions": [{"key": "agentpool", "operator": "In", "values": ["t4", "a100"]}]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
    }
    spec = {"containers": [{"name": "x"}], "affinity": {"nodeAffinity": affinity}}
    ray = {
        "metadata": {"name": "r", "namespace": "ml"},
        "spec": {
            "headGroupSpec": {
                "template": {"spec": {"containers": [{"name": "x"}], "nodeSelector": {"agentpool": "t4"}}}
            },
            "workerGroupSpecs": [{"template": {"spec": spec}}],
        },
    }
    assert [(pin.object, pin.field, pin.label) for pin in find_pins(ray, "RayCluster", gone)] == [
        ("RayCluster ml/r", "required node affinity", "agentpool=a100"),
        ("RayCluster ml/r", "preferred node affinity", "agentpool=a100"),
    ]
    flavor = {"metadata": {"name": "f"}, "spec": {"nodeLabels": {"agentpool": "a100"}}}
    assert [str(pin.field) for pin in find_pins(flavor, "ResourceFlavor", gone)] == ["nodeLabels"]
    cron = {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
    assert len(list(find_pins(cron, "CronJob", gone))) == 2


def test_gangs_when_described_then_what_leaving_costs_them() -> None:
    head = node_pod({"metadata": {"labels": {"ray.io/cluster": "r", "ray.io/node-type": "head"}}})
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    free = {"action": "RestartJobSetAndIgnoreMaxRestarts", "onPodConditions": [{"type": "DisruptionTarget"}]}
    notes = [
        describe_gang(Gang("Job", "ml", "j"), [head], {"spec": {"backoffLimit": 2}, "status": {"failed": 1}}).note,
        describe_gang(Gang("Job", "ml", "j"), [head], {"spec": {"podFailurePolicy": {"rules": [ignored]}}}).note,
        describe_gang(Gang("JobSet", "ml", "s"), [head], {"spec": {"failurePolicy": {"maxRestarts": 3}}}).note,
        describe_gang(Gang("JobSet", "ml", "s"), [head], {"spec": {"failurePolicy": {"rules": [free]}}}).note,
        describe_gang(Gang("RayCluster", "ml", "r"), [head], {"spec": {}}).note,
        describe_gang(Gang("RayCluster", "ml", "r"), [], {"spec": {}}).note,
    ]
    assert notes == [
        "evictions count as failures: 1 of backoffLimit 2 so far",
        "its podFailurePolicy does not count evictions",
        "all of it restarts: 0 of maxRestarts 3 so far",
        "all of it restarts; its failurePolicy does not count evictions",
        "its head leaves last, and its jobs end with it (no GCS fault tolerance)",
        "its head stays",
    ]
    queued = {"metadata": {"namespace": "ml", "labels": {"kueue.x-k8s.io/queue-name": "team"}}}
    (queue,) = fed_queues([head], [queued])
    assert queue.name == "ml/team"
    assert queue.hold == """kubectl -n ml patch localqueue team --type merge -p '{"spec":{"stopPolicy":"Hold"}}'"""


class Listing:
    """A Kubernetes API that knows some types of one group."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.asked: list[str] = []

    def objects(self, kind: ApiType) -> tuple[Tree, ...] | None:
        if kind.kind != "ResourceFlavor":
            return ()
        self.asked.append(kind.version)
        return ({"metadata": {"name": kind.version}},) if kind.version in self.versions else None


@pytest.mark.parametrize(
    ("served", "asked"),
    [(("v1beta1", "v1beta2"), ["v1beta2"]), (("v1beta1",), ["v1beta2", "v1beta1"]), ((), ["v1beta2", "v1beta1"])],
)
def test_flavors_when_read_then_in_the_newest_version_that_kueue_serves(
    served: tuple[str, ...], asked: list[str]
) -> None:
    kube = Listing(*served)
    found, unread = read_owners(cast("Kube", kube))
    assert (kube.asked, unread) == (asked, ())
    assert [flavor["metadata"] for flavor in found.get("ResourceFlavor", ())] == [
        {"name": version} for version in asked[-1:] if version in served
    ]
