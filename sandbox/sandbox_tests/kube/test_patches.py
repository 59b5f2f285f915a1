"""Strategic merge patches as kubectl sends them, and server-side apply, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store.kinds import CLUSTER_POLICY, CORE
from gpukube_sandbox.kube.store.patches import patch_object
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

STRATEGIC = "application/strategic-merge-patch+json"
GPU, OLD = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}, {"key": "nvidia.com/gpu", "effect": "NoExecute"}


def merged(plural: str, old: JsonObject, patch: JsonObject) -> JsonObject:
    return patch_object(old, patch, STRATEGIC, CORE[plural])


def pod(*containers: JsonObject, **more: object) -> JsonObject:
    return {"spec": {"containers": list(containers), **more}}


def names(obj: JsonObject, field: str = "containers") -> list[str]:
    return [item["name"] for item in obj["spec"][field]]


# strategic merge


@pytest.mark.parametrize(
    ("live", "sent"),
    [
        pytest.param([GPU], [], id="untaint-the-last"),
        pytest.param([GPU, OLD], [OLD], id="untaint-one-effect"),
        pytest.param([GPU], [OLD, GPU], id="two-effects-of-one-key"),
    ],
)
def test_node_when_kubectl_sends_taints_then_the_list_is_replaced(
    live: list[JsonObject], sent: list[JsonObject]
) -> None:
    assert merged("nodes", {"spec": {"taints": live}}, {"spec": {"taints": sent}}) == {"spec": {"taints": sent}}


def test_list_with_a_key_when_items_are_sent_then_they_merge_and_deletions_apply() -> None:
    old = pod({"name": "a", "image": "1", "tty": True, "args": ["x"]}, {"name": "b"})
    patch = pod({"name": "a", "image": "2", "args": ["y"]}, {"name": "b", "$patch": "delete"}, {"name": "c"})

    assert merged("pods", old, patch) == pod({"name": "a", "image": "2", "tty": True, "args": ["y"]}, {"name": "c"})


def test_list_when_item_has_no_merge_key_then_400() -> None:
    with pytest.raises(ApiProblem, match="does not contain declared merge key: name") as problem:
        merged("pods", pod({"name": "a"}), pod({"image": "2"}))
    assert problem.value.code == 400


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param(["b", "a"], ["b", "a", "server"], id="all-but-one"),
        pytest.param(["new", "server", "a", "b"], ["new", "server", "a", "b"], id="with-a-new-one"),
        pytest.param(["b", "new"], ["a", "server", "b", "new"], id="others-keep-their-place"),
    ],
)
def test_list_when_element_order_is_sent_then_items_stand_so(order: list[str], expected: list[str]) -> None:
    live = {"spec": {"containers": [{"name": "a"}, {"name": "server"}, {"name": "b"}]}}
    if order == ["b", "a"]:
        live["spec"]["containers"] = [{"name": "a"}, {"name": "b"}, {"name": "server"}]
    sent = [{"name": name, "image": "2"} for name in order if name == "new"]
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order], "containers": sent}}

    assert names(merged("pods", live, patch)) == expected


def test_scalars_when_deleted_from_their_list_then_the_others_stay() -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c"],
            "finalizers": ["c"],
        }
    }

    assert sorted(merged("pods", live, patch)["metadata"]["finalizers"]) == ["b", "c"]


def test_map_when_keys_are_retained_then_no_other_stays() -> None:
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    assert merged("deployments", live, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("directive", "expected"), [("replace", {"a": "1"}), ("delete", {})], ids=["replace", "delete"]
)
def test_map_when_patch_directive_is_sent_then_it_is_followed(directive: str, expected: dict[str, str]) -> None:
    patch = {"data": {"$patch": directive, "a": "1"}}

    assert merged("configmaps", {"data": {"b": "2"}}, patch) == {"data": expected}


def test_map_when_directive_is_unknown_then_400() -> None:
    with pytest.raises(ApiProblem, match="Unknown patch type found: merge"):
        merged("configmaps", {"data": {}}, {"data": {"$patch": "merge"}})


def test_custom_type_when_patch_is_strategic_then_415() -> None:
    with pytest.raises(ApiProblem) as problem:
        patch_object({}, {"spec": {}}, STRATEGIC, CLUSTER_POLICY)
    assert problem.value.code == 415


# apply


def apply(held: Store, manager: str, spec: JsonObject, *, force: bool = False) -> JsonObject:
    config = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec}
    return held.apply(CORE["nodes"], config, manager=manager, force=force)[0]


def daemonset(**pod_spec: object) -> JsonObject:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "i"}], **pod_spec}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": spec,
    }


def test_apply_when_a_list_is_one_value_then_two_managers_conflict_about_all_of_it() -> None:
    held = Store(ManualClock())
    apply(held, "one", {"taints": [GPU]})

    with pytest.raises(ApiProblem) as problem:
        apply(held, "two", {"taints": [OLD]})

    assert problem.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.taints'
    assert apply(held, "two", {"taints": [OLD]}, force=True)["spec"]["taints"] == [OLD]


def test_apply_when_last_field_of_a_struct_is_left_out_then_the_struct_goes_too() -> None:
    held = Store(ManualClock())
    rules = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rules}}
    held.apply(CORE["daemonsets"], daemonset(affinity=affinity), manager="one")

    after, _ = held.apply(CORE["daemonsets"], daemonset(), manager="one")

    assert "affinity" not in after["spec"]["template"]["spec"]


def test_apply_when_items_have_two_keys_then_both_tell_them_apart() -> None:
    held = Store(ManualClock())
    ports = [{"containerPort": 53, "protocol": protocol, "name": protocol.lower()} for protocol in ("TCP", "UDP")]
    for manager, port in zip(("one", "two"), ports, strict=True):
        held.apply(
            CORE["daemonsets"], daemonset(containers=[{"name": "a", "image": "i", "ports": [port]}]), manager=manager
        )

    live = held.get(CORE["daemonsets"], "default", "d")

    assert live["spec"]["template"]["spec"]["containers"][0]["ports"] == ports


def test_apply_when_object_was_made_otherwise_then_its_fields_have_an_owner_before() -> None:
    held = Store(ManualClock())
    held.create(CORE["nodes"], {"metadata": {"name": "n", "labels": {"a": "1"}}, "spec": {"unschedulable": True}})

    with pytest.raises(ApiProblem, match=r'"before-first-apply" using v1: \.spec\.unschedulable'):
        apply(held, "one", {"unschedulable": False})
