"""Who owns which field, and what goes when an owner sends a field no more."""

from __future__ import annotations

from gpukube_sandbox.kube.store.apply import Write, apply_config, record_update
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.structure import structure_of

TIME = "2026-11-01T00:00:00Z"
MAP, SET = structure_of(CORE["configmaps"]), structure_of(CORE["daemonsets"])
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


def test_update_when_it_drops_others_from_the_book_then_their_fields_can_be_applied() -> None:
    live = apply_config(None, {**CONFIG, "data": {"a": "1"}}, Write("helm", MAP, TIME), force=False)
    edited = {**live, "metadata": dict(live["metadata"]), "data": {"a": "2"}}
    record_update(live, edited, Write("kubectl-edit", MAP, TIME))
    assert {entry["manager"] for entry in edited["metadata"]["managedFields"]} == {"kubectl-edit"}
    helms = live["metadata"]["managedFields"]
    freed = {**edited, "metadata": {**edited["metadata"], "managedFields": helms}, "data": {"a": "2", "b": "3"}}
    record_update(edited, freed, Write("gpukube", MAP, TIME))
    assert [entry["manager"] for entry in freed["metadata"]["managedFields"]] == ["helm", "gpukube"]
    applied = apply_config(freed, {**CONFIG, "data": {"a": "4"}}, Write("helm", MAP, TIME), force=False)
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
    made = apply_config(None, probed(grpc={"port": 8082}), Write("helm", SET, TIME), force=False)
    probe = made["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    probe["grpc"]["service"] = ""
    probe["periodSeconds"] = 10
    applied = apply_config(
        made, probed(httpGet={"path": "/healthz", "port": "http"}), Write("helm", SET, TIME), force=False
    )
    probe = applied["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    assert probe == {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10}


def test_apply_when_another_owns_a_field_of_the_struct_then_it_stays() -> None:
    made = apply_config(None, {**CONFIG, "data": {"a": "1"}}, Write("helm", MAP, TIME), force=False)
    shared = apply_config(made, {**CONFIG, "data": {"b": "2"}}, Write("other", MAP, TIME), force=False)
    assert apply_config(shared, CONFIG, Write("helm", MAP, TIME), force=False)["data"] == {"b": "2"}
    alone = apply_config(made, CONFIG, Write("helm", MAP, TIME), force=False)
    assert ("data" in alone, alone["metadata"]["name"]) == (False, "x")
