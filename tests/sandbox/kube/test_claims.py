"""A write may bring a book of owners of its own, as moves to server-side apply do."""

from __future__ import annotations

from gpukube.sandbox.kube.apply import apply_config, record_update

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
