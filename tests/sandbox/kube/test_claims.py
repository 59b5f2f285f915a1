"""Who owns which field, and what goes when an owner sends a field no more."""

from __future__ import annotations

from gpukube.sandbox.kube.store.apply import apply_config, record_update

TIME = "2026-11-01T00:00:00Z"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


def test_update_when_it_drops_others_from_the_book_then_their_fields_can_be_applied() -> None:
    live = apply_config(None, {**CONFIG, "data": {"a": "1"}}, "helm", force=False, time=TIME)
    edited = {**live, "metadata": dict(live["metadata"]), "data": {"a": "2"}}
    record_update(live, edited, "kubectl-edit", TIME)
    assert {entry["manager"] for entry in edited["metadata"]["managedFields"]} == {"kubectl-edit"}
    helms = live["metadata"]["managedFields"]
    freed = {**edited, "metadata": {**edited["metadata"], "managedFields": helms}, "data": {"a": "2", "b": "3"}}
    record_update(edited, freed, "gpukube", TIME)
    assert [entry["manager"] for entry in freed["metadata"]["managedFields"]] == ["helm", "gpukube"]
    applied = apply_config(freed, {**CONFIG, "data": {"a": "4"}}, "helm", force=False, time=TIME)
    assert applied["data"] == {"a": "4", "b": "3"}


def probed(**probe: object) -> dict[str, object]:
    pod = {"containers": [{"name": "worker", "image": "nfd", "livenessProbe": probe}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "x"},
        "spec": {"template": {"spec": pod}},
    }


def test_apply_when_a_struct_is_sent_no_more_then_what_the_server_filled_in_goes_with_it() -> None:
    made = apply_config(None, probed(grpc={"port": 8082}), "helm", force=False, time=TIME)
    probe = made["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    probe["grpc"]["service"] = ""
    probe["periodSeconds"] = 10
    applied = apply_config(made, probed(httpGet={"path": "/healthz", "port": "http"}), "helm", force=False, time=TIME)
    probe = applied["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    assert probe == {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10}


def test_apply_when_another_owns_a_field_of_the_struct_then_it_stays() -> None:
    made = apply_config(None, {**CONFIG, "data": {"a": "1"}}, "helm", force=False, time=TIME)
    shared = apply_config(made, {**CONFIG, "data": {"b": "2"}}, "other", force=False, time=TIME)
    assert apply_config(shared, CONFIG, "helm", force=False, time=TIME)["data"] == {"b": "2"}
    alone = apply_config(made, CONFIG, "helm", force=False, time=TIME)
    assert ("data" in alone, alone["metadata"]["name"]) == (False, "x")
