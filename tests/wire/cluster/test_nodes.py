"""Nodes that get back what they lost, and the pods a drain would move, against an emulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube import client as kube_module
from gpukube.cluster.kube.draining import drained_pods
from gpukube.cluster.release.node_repair import repair_nodes
from gpukube.cluster.state.node_drift import NodeRepair
from gpukube.core.values import Taint
from gpukube.errors import AccessError, ClusterError
from gpukube_sandbox.kube.nodes.shapes import NodeShape
from gpukube_sandbox.kube.nodes.shapes import Taint as SandboxTaint
from gpukube_sandbox.kube.store.kinds import CORE
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.kube.views import NodeView
    from tests.wire.cluster.conftest import Live

OTHER = Taint("other", "x", "NoSchedule")


def join(live: Live, kube: LightKube, name: str = "n1", *taints: SandboxTaint) -> None:
    live.run(live.cluster.add_node(NodeShape(name=name, labels={"a": "b"}, taints=taints, boot_s=1.0)))
    wait_for(lambda: any(node.name == name and node.ready for node in kube.nodes()))


def node_named(kube: LightKube, name: str = "n1") -> NodeView:
    return next(node for node in kube.nodes() if node.name == name)


def lost(kind: str, key: str, live: str | None = None, effect: str = "") -> NodeRepair:
    assert kind in ("label", "taint")
    return NodeRepair("n1", "a100mig", kind, key, "wanted", live, effect)  # type: ignore[arg-type]  # as asserted


def test_repair_when_labels_and_taints_are_gone_then_back_and_the_rest_stays(live: Live, kube: LightKube) -> None:
    join(live, kube, "n1", SandboxTaint("other", "x", "NoSchedule"))
    before = node_named(kube)
    asked = (
        lost("label", "team/x.y"),
        lost("label", "a", "b"),
        lost("taint", "mine", effect="NoSchedule"),
        lost("taint", "other", effect="NoExecute"),
    )
    assert repair_nodes(kube, asked) == asked
    after = node_named(kube)
    assert after.labels == {**before.labels, "team/x.y": "wanted", "a": "wanted"}
    wanted = {Taint("mine", "wanted", "NoSchedule"), Taint("other", "wanted", "NoExecute")}
    assert set(after.taints) == {*before.taints, *wanted}
    assert OTHER in after.taints


def test_repair_when_a_taint_has_another_value_then_replaced_in_its_place(live: Live, kube: LightKube) -> None:
    join(live, kube, "n1", SandboxTaint("other", "x", "NoSchedule"))
    repair_nodes(kube, [lost("taint", "other", "x", "NoSchedule")])
    assert node_named(kube).taints == (Taint("other", "wanted", "NoSchedule"),)


def test_repair_when_the_node_has_no_taint_then_the_first(live: Live, kube: LightKube) -> None:
    join(live, kube)
    repair_nodes(kube, [lost("taint", "mine", effect="NoSchedule")])
    assert node_named(kube).taints == (Taint("mine", "wanted", "NoSchedule"),)


def test_repair_when_done_again_or_changed_meanwhile_or_gone_then_nothing(live: Live, kube: LightKube) -> None:
    join(live, kube)
    assert repair_nodes(kube, [lost("label", "a", None)]) == ()
    assert node_named(kube).labels["a"] == "b"
    assert repair_nodes(kube, [NodeRepair("n9", "p", "label", "a", "wanted", None)]) == ()


class Hasty:
    """A cluster in which somebody else writes between our read and our write."""

    def __init__(self, kube: LightKube, live: Live, times: int) -> None:
        self._kube, self._live, self.times, self.server = kube, live, times, kube.server

    def find_object(self, kind: ApiType, name: str) -> Mapping[str, object] | None:
        found = self._kube.find_object(kind, name)
        if self.times:
            self.times -= 1
            change = {"metadata": {"annotations": {"beat": str(self.times)}}}
            self._live.run(self._live.cluster.api.patch("nodes", dict(found or {}), change))
        return found

    def change_object(self, kind: ApiType, node: Mapping[str, object], patch: list[Mapping[str, object]]) -> bool:
        return self._kube.change_object(kind, node, patch)


def test_repair_when_somebody_writes_at_the_same_time_then_read_again(live: Live, kube: LightKube) -> None:
    join(live, kube)
    asked = [lost("label", "team")]
    assert repair_nodes(Hasty(kube, live, 2), asked) == tuple(asked)  # type: ignore[arg-type]  # the part of Kube it needs
    assert node_named(kube).labels["team"] == "wanted"


def test_repair_when_somebody_writes_all_the_time_then_cluster_error(live: Live, kube: LightKube) -> None:
    join(live, kube)
    with pytest.raises(ClusterError) as caught:
        repair_nodes(Hasty(kube, live, 99), [lost("label", "team")])  # type: ignore[arg-type]  # as above
    assert "node n1 changed during each attempt" in caught.value.render()


def test_repair_when_forbidden_then_access_error(live: Live, kube: LightKube) -> None:
    join(live, kube)
    live.cluster.denied.add(("patch", "nodes"))
    with pytest.raises(AccessError) as caught:
        repair_nodes(kube, [lost("label", "team")])
    assert caught.value.diagnostics[0].code == "kube-forbidden"


def make_pod(live: Live, name: str, node: str, phase: str = "Running", **meta: object) -> None:
    async def make() -> None:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
        pod = {"metadata": {"name": name, "namespace": "default", **meta}, "spec": spec, "status": {"phase": phase}}
        made = live.cluster.store.create(CORE["pods"], pod)
        live.cluster.store.update(CORE["pods"], {**made, "status": {"phase": phase}}, part="status")

    live.run(make())


OWNED = {"apiVersion": "apps/v1", "name": "o", "uid": "u", "controller": True}


@pytest.mark.parametrize("few", [10, 0], ids=["one by one", "all pages"])
def test_drained_when_asked_then_only_what_a_drain_moves(
    live: Live, kube: LightKube, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_module, "_FEW_NODES", few)
    make_pod(live, "job", "n1")
    make_pod(live, "waits", "n1", "Pending")
    make_pod(live, "replica", "n2", ownerReferences=[{**OWNED, "kind": "ReplicaSet"}])
    make_pod(live, "daemon", "n1", ownerReferences=[{**OWNED, "kind": "DaemonSet"}])
    make_pod(live, "mirror", "n1", annotations={"kubernetes.io/config.mirror": "x"})
    make_pod(live, "done", "n1", "Succeeded")
    make_pod(live, "broken", "n1", "Failed")
    make_pod(live, "elsewhere", "n4")
    assert drained_pods(kube, ["n2", "n1", "n3", "n1"]) == {
        "n1": ("default/job", "default/waits"),
        "n2": ("default/replica",),
        "n3": (),
    }


def test_drained_when_no_node_is_asked_then_no_call(kube: LightKube, live: Live) -> None:
    live.cluster.denied.add(("list", "pods"))
    assert drained_pods(kube, []) == {}
    with pytest.raises(AccessError):
        drained_pods(kube, ["n1"])
