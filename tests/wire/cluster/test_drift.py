"""Hands of others in the objects of our release: found field by field, and set right again by the next upgrade."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.core_v1 import ConfigMap, ServiceAccount
from lightkube.resources.rbac_authorization_v1 import ClusterRole, ClusterRoleBinding
from lightkube.types import PatchType

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.cluster.kube.calls import global_kind
from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, FIELD_MANAGER, NAMESPACE
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.reclaim import appliers
from gpukube.cluster.release.shared_values import DEFAULT_KEY
from gpukube.cluster.state.snapshot import has_entry, look
from gpukube.core.jsontree import items, tree
from sandbox_tests.waiting import PATIENCE_S
from tests.unit.cluster.builders import PLUGIN_NAME, SINGLE, SLICED, VISION_TAINT, desire, operated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lightkube.core.client import GlobalResource, NamespacedResource

    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from tests.wire.cluster.conftest import Live

CUT = desire(sharing=SINGLE)
SHARED = desire(sharing=SLICED, pool="shared", taints=(VISION_TAINT,))
KEY = CUT.ownership.config_key
GFD = f"{PLUGIN_NAME}-gpu-feature-discovery"
MPS = f"{PLUGIN_NAME}-mps-control-daemon"
ROLE = f"{PLUGIN_NAME}-role"
WORKER = f"{PLUGIN_NAME}-node-feature-discovery-worker"
MASTER = f"{PLUGIN_NAME}-node-feature-discovery-master"


@pytest.fixture
def hand(live: Live) -> Iterator[Client]:
    """Somebody with kubectl."""
    config = KubeConfig.from_dict(json.loads(live.access().kubeconfig))
    client = Client(config, timeout=Timeout(PATIENCE_S), trust_env=False, field_manager="kubectl-edit")
    yield client
    client.close()


@pytest.fixture
def installed(keeper: ReleaseManager, kube: LightKube) -> ReleaseManager:
    keeper.install_or_upgrade(plan_release([CUT], look(kube)), 0)
    return keeper


def pod(**fields: object) -> dict[str, object]:
    return {"spec": {"template": {"spec": fields}}}


def _patch(client: Client, kind: type[NamespacedResource], name: str, change: dict[str, object]) -> None:
    client.patch(kind, name, change, namespace=NAMESPACE, patch_type=PatchType.STRATEGIC)


def _delete(client: Client, kind: type[NamespacedResource], name: str) -> None:
    client.delete(kind, name, namespace=NAMESPACE)


def _merge(client: Client, kind: type[GlobalResource], name: str, change: dict[str, object]) -> None:
    client.patch(kind, name, change, patch_type=PatchType.MERGE)


def _delete_daemonsets(client: Client) -> None:
    for name in (MPS, GFD):
        _delete(client, DaemonSet, name)


def _delete_access(client: Client) -> None:
    _delete(client, ServiceAccount, f"{PLUGIN_NAME}-service-account")
    client.delete(ClusterRole, ROLE)


IMAGE = {"containers": [{"name": "nvidia-device-plugin-ctr", "image": "mine:1"}]}
ENV = {"containers": [{"name": "nvidia-device-plugin-ctr", "env": [{"name": "MIG_STRATEGY", "value": "none"}]}]}
CONFIGS = f"ConfigMap {DEVICE_PLUGIN.config_map}"


def _make_anew(client: Client) -> None:
    """Delete and create, as kubectl replace --force does, with another image."""
    live = client.get(DaemonSet, PLUGIN_NAME, namespace=NAMESPACE).to_dict()
    _delete(client, DaemonSet, PLUGIN_NAME)
    kept = ("name", "namespace", "labels", "annotations")
    details = {key: value for key, value in live["metadata"].items() if key in kept}
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "mine:1"
    made = DaemonSet.from_dict({**live, "metadata": details})
    assert isinstance(made, DaemonSet)
    client.create(made)


EDITS: dict[str, tuple[Callable[[Client], None], list[tuple[str, str]]]] = {
    "image": (
        lambda c: _patch(c, DaemonSet, PLUGIN_NAME, pod(**IMAGE)),
        [(f"DaemonSet {PLUGIN_NAME}", "containers[nvidia-device-plugin-ctr].image")],
    ),
    "made anew with another image": (
        _make_anew,
        [(f"DaemonSet {PLUGIN_NAME}", "containers[nvidia-device-plugin-sidecar].image")],
    ),
    "an environment variable more": (
        lambda c: _patch(c, DaemonSet, PLUGIN_NAME, pod(**ENV)),
        [(f"DaemonSet {PLUGIN_NAME}", "containers[nvidia-device-plugin-ctr].env[MIG_STRATEGY]")],
    ),
    "a node selector": (
        lambda c: _patch(c, DaemonSet, GFD, pod(nodeSelector={"a": "b"})),
        [(f"DaemonSet {GFD}", "nodeSelector")],
    ),
    "tolerations of the workers": (
        lambda c: _patch(c, DaemonSet, WORKER, pod(tolerations=[])),
        [(f"DaemonSet {WORKER}", "tolerations")],
    ),
    "MPS and GFD deleted": (
        _delete_daemonsets,
        [(f"DaemonSet {GFD}", ""), (f"DaemonSet {MPS}", "")],
    ),
    "the master scaled to nothing": (
        lambda c: _patch(c, Deployment, MASTER, {"spec": {"replicas": 0}}),
        [(f"Deployment {MASTER}", "replicas")],
    ),
    "an entry edited and one more": (
        lambda c: _patch(c, ConfigMap, DEVICE_PLUGIN.config_map, {"data": {KEY: "version: v2", "mine": "version: v1"}}),
        [(CONFIGS, f"data[{KEY}]"), (CONFIGS, "data[mine]")],
    ),
    "an entry removed": (
        lambda c: _patch(c, ConfigMap, DEVICE_PLUGIN.config_map, {"data": {DEFAULT_KEY: None}}),
        [(CONFIGS, f"data[{DEFAULT_KEY}]")],
    ),
    "account and role deleted": (
        _delete_access,
        [(f"ServiceAccount {PLUGIN_NAME}-service-account", ""), (f"ClusterRole {ROLE}", "")],
    ),
    "a binding to nobody": (
        lambda c: _merge(c, ClusterRoleBinding, f"{ROLE}-binding", {"subjects": []}),
        [(f"ClusterRoleBinding {ROLE}-binding", "subjects")],
    ),
    "the instance label taken away": (
        lambda c: _merge(c, ClusterRole, ROLE, {"metadata": {"labels": {"app.kubernetes.io/instance": None}}}),
        [(f"ClusterRole {ROLE}", "metadata.labels[app.kubernetes.io/instance]")],
    ),
}


def findings(plan: ReleasePlan) -> list[tuple[str, str]]:
    return sorted(
        (item.object, item.field.removeprefix("spec.template.spec.").removeprefix("spec.")) for item in plan.drift
    )


def test_look_when_nothing_was_touched_then_no_drift(installed: ReleaseManager, kube: LightKube) -> None:
    plan = plan_release([CUT], look(kube))
    assert (plan.action, plan.drift) == ("none", ())


@pytest.mark.turns(6)
@pytest.mark.parametrize("case", EDITS)
def test_upgrade_when_a_hand_was_in_it_then_found_exactly_and_set_right(
    case: str, installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    edit, wanted = EDITS[case]
    edit(hand)
    plan = plan_release([CUT], look(kube))
    assert (plan.action, findings(plan)) == ("upgrade", sorted(wanted))
    plan = replace(plan, contested=installed.dry_run(plan).contested)
    apply_release(installed, kube, plan, lambda missed: plan_release([CUT], look(kube), missed=missed))
    after = plan_release([CUT], look(kube))
    assert (after.action, after.reason) == ("none", f"revision {plan.revision + 1} already serves these pools")


def test_upgrade_when_a_hand_holds_a_field_that_we_change_then_taken_back(
    installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    tolerations = hand.get(DaemonSet, PLUGIN_NAME, namespace=NAMESPACE).to_dict()["spec"]["template"]["spec"][
        "tolerations"
    ]
    _patch(hand, DaemonSet, PLUGIN_NAME, pod(tolerations=[]))
    _patch(hand, DaemonSet, PLUGIN_NAME, pod(tolerations=tolerations))
    pools = [CUT, SHARED]
    plan = plan_release(pools, look(kube))
    assert plan.drift == ()
    plan = replace(plan, contested=installed.dry_run(plan).contested)
    apply_release(installed, kube, plan, lambda missed: plan_release(pools, look(kube), missed=missed))
    assert plan_release(pools, look(kube)).action == "none"


def test_upgrade_when_a_hand_comes_after_the_trial_then_taken_back_too(
    installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    pools = [CUT, SHARED]
    plan = plan_release(pools, look(kube))
    plan = replace(plan, contested=installed.dry_run(plan).contested)
    _patch(hand, DaemonSet, PLUGIN_NAME, pod(tolerations=[]))
    apply_release(installed, kube, plan, lambda missed: plan_release(pools, look(kube), missed=missed))
    assert plan_release(pools, look(kube)).action == "none"


def test_retire_when_a_hand_touched_the_entry_then_it_goes_all_the_same(
    installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    _patch(hand, ConfigMap, DEVICE_PLUGIN.config_map, {"data": {KEY: "version: v2"}})
    plan = plan_release([SHARED], look(kube), retire=True)
    plan = replace(plan, contested=installed.dry_run(plan).contested)
    apply_release(installed, kube, plan, lambda missed: plan_release([SHARED], look(kube), missed=missed, retire=True))
    assert not has_entry(kube, DEVICE_PLUGIN, KEY)
    assert has_entry(kube, DEVICE_PLUGIN, SHARED.ownership.config_key)
    assert plan_release([SHARED], look(kube), retire=True).action == "none"


def test_retire_when_a_gpukube_of_another_name_applied_before_then_the_entry_goes_and_one_manager_is_left(
    installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    found = kube.find_object(RELEASE_TYPES["ConfigMap"], DEVICE_PLUGIN.config_map, NAMESPACE)
    assert found is not None
    claims = [{**tree(entry), "manager": "python3"} for entry in items(found, "metadata", "managedFields")]
    renamed = {"op": "replace", "path": "/metadata/managedFields", "value": claims}
    assert kube.change_object(RELEASE_TYPES["ConfigMap"], found, [renamed])
    plan = plan_release([SHARED], look(kube), retire=True)
    apply_release(installed, kube, plan, lambda missed: plan_release([SHARED], look(kube), missed=missed, retire=True))
    assert not has_entry(kube, DEVICE_PLUGIN, KEY)
    after = hand.get(ConfigMap, DEVICE_PLUGIN.config_map, namespace=NAMESPACE).to_dict()
    assert appliers([after]) <= {FIELD_MANAGER, "helm"}


def test_upgrade_when_nobody_else_holds_anything_then_nothing_is_patched_by_us(
    installed: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    _delete(hand, DaemonSet, GFD)
    plan = plan_release([CUT], look(kube))
    apply_release(installed, kube, plan, lambda missed: plan_release([CUT], look(kube), missed=missed))
    found = hand.get(ConfigMap, DEVICE_PLUGIN.config_map, namespace=NAMESPACE).to_dict()
    claims = [(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]]
    assert (FIELD_MANAGER, "Update") not in claims


def test_operator_when_its_policy_was_edited_then_found_and_set_right(
    keeper: ReleaseManager, kube: LightKube, hand: Client
) -> None:
    pools = [operated(sharing=SINGLE)]
    keeper.install_or_upgrade(plan_release(pools, look(kube)), 0)
    assert plan_release(pools, look(kube)).drift == ()
    change = {"spec": {"mig": {"strategy": "mixed"}, "daemonsets": {"tolerations": []}}}
    hand.patch(global_kind(RELEASE_TYPES["ClusterPolicy"]), CLUSTER_POLICY, change, patch_type=PatchType.MERGE)
    plan = plan_release(pools, look(kube))
    policy = f"ClusterPolicy {CLUSTER_POLICY}"
    assert findings(plan) == [(policy, "daemonsets.tolerations"), (policy, "mig.strategy")]
    plan = replace(plan, contested=keeper.dry_run(plan).contested)
    apply_release(keeper, kube, plan, lambda missed: plan_release(pools, look(kube), missed=missed))
    assert plan_release(pools, look(kube)).action == "none"
