"""The object store: versions, selectors, patches, apply, deletion."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.http import watching
from gpukube_sandbox.kube.http.watching import WatchQuery, watch
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.patches import json_patch, merge_patch, patch_object
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.schema import check_applied, check_sent, findings
from gpukube_sandbox.kube.store.selectors import field_test, label_test, matches_selector
from gpukube_sandbox.kube.store.store import Store

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

STRATEGIC = "application/strategic-merge-patch+json"
MAPS, PODS, SETS, SPACES = (CORE[name] for name in ("configmaps", "pods", "daemonsets", "namespaces"))


def store() -> Store:
    return Store(ManualClock())


def config_map(name: str = "cm", **data: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def daemonset(image: str = "a:1", **more: object) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "ds", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "main", "image": image}], **more},
            },
        },
    }


def refusal(problem: pytest.ExceptionInfo[ApiProblem]) -> tuple[int, str]:
    return problem.value.code, problem.value.reason


def test_create_when_name_is_taken_then_409() -> None:
    held = store()
    held.create(MAPS, config_map())

    with pytest.raises(ApiProblem, match='configmaps "cm" already exists') as problem:
        held.create(MAPS, config_map())
    assert refusal(problem) == (409, "AlreadyExists")


def test_create_when_namespace_is_missing_then_404() -> None:
    with pytest.raises(ApiProblem, match='namespaces "nowhere" not found') as problem:
        store().create(MAPS, {"metadata": {"name": "a", "namespace": "nowhere"}})
    assert refusal(problem) == (404, "NotFound")


def test_create_when_dry_run_then_nothing_is_stored() -> None:
    held = store()
    held.create(MAPS, config_map(), dry_run=True)

    assert held.find(MAPS, "default", "cm") is None


def test_update_when_version_is_old_then_409_and_when_current_then_stored() -> None:
    held = store()
    first = held.create(MAPS, config_map(a="1"))
    second = held.update(MAPS, {**first, "data": {"a": "2"}})

    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    with pytest.raises(ApiProblem, match="the object has been modified"):
        held.update(MAPS, {**first, "data": {"a": "3"}})


def test_update_when_nothing_changes_then_version_stays() -> None:
    held = store()
    first = held.create(MAPS, config_map(a="1"))

    assert held.update(MAPS, first)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_generation_when_spec_changes_then_rises_and_when_status_changes_then_stays() -> None:
    held = store()
    made = held.create(SETS, daemonset())
    held.update(SETS, {**made, "status": {"numberReady": 1}}, part="status")
    held.update(SETS, {**daemonset("a:2")})
    found = held.get(SETS, "default", "ds")

    assert (found["metadata"]["generation"], found["status"]["numberReady"]) == (2, 1)


def test_update_when_selector_changes_then_422() -> None:
    held = store()
    made = held.create(SETS, daemonset())
    changed = {**made, "spec": {**made["spec"], "selector": {"matchLabels": {"app": "x", "b": "c"}}}}
    changed["spec"]["template"] = {**made["spec"]["template"], "metadata": {"labels": {"app": "x", "b": "c"}}}

    with pytest.raises(ApiProblem, match="field is immutable") as problem:
        held.update(SETS, changed)
    assert refusal(problem) == (422, "Invalid")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {"name": "Bad_Name", "namespace": "default"}}, "RFC 1123"),
        ({"metadata": {"name": "a", "namespace": "default", "labels": {"k": "not a label"}}}, "valid label"),
        ({"metadata": {"name": "a", "namespace": "default", "labels": {"k": "x" * 64}}}, "no more than 63"),
    ],
)
def test_create_when_values_break_the_rules_then_422(change: JsonObject, message: str) -> None:
    with pytest.raises(ApiProblem, match=message) as problem:
        store().create(MAPS, change)
    assert refusal(problem) == (422, "Invalid")


def test_pod_when_quantity_is_no_number_then_400_as_it_cannot_be_decoded() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "lots"}}}
    with pytest.raises(ApiProblem, match="quantities must match the regular expression") as caught:
        store().create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    assert caught.value.code == 400


def test_delete_when_objects_are_owned_then_they_go_too() -> None:
    held = store()
    owner = held.create(MAPS, config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [reference]
    held.create(MAPS, owned)
    kept = config_map("kept")
    kept["metadata"]["ownerReferences"] = [reference]
    held.create(MAPS, kept)
    held.delete(MAPS, "default", "kept")

    held.delete(MAPS, "default", "owner")

    assert held.all_of(MAPS, "default") == []


def test_delete_when_orphaning_then_owned_stay_without_owner() -> None:
    held = store()
    owner = held.create(MAPS, config_map("owner"))
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    held.create(MAPS, owned)

    held.delete(MAPS, "default", "owner", orphan=True)

    assert held.get(MAPS, "default", "owned")["metadata"]["ownerReferences"] == []


def test_delete_when_finalizers_are_set_then_object_stays_until_they_go() -> None:
    held = store()
    made = config_map()
    made["metadata"]["finalizers"] = ["example.com/wait"]
    held.create(MAPS, made)

    held.delete(MAPS, "default", "cm")
    marked = held.get(MAPS, "default", "cm")
    held.update(MAPS, {**marked, "metadata": {**marked["metadata"], "finalizers": []}})

    assert marked["metadata"]["deletionTimestamp"]
    assert held.find(MAPS, "default", "cm") is None


def test_delete_when_namespace_goes_then_its_content_goes() -> None:
    held = store()
    held.create(SPACES, {"metadata": {"name": "team"}})
    held.create(MAPS, {"metadata": {"name": "a", "namespace": "team"}})

    held.delete(SPACES, "", "team")

    assert held.all_of(MAPS, "team") == []


def test_pod_when_priority_class_or_account_is_missing_then_403() -> None:
    held = store()
    pod: JsonObject = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    with pytest.raises(ApiProblem, match="no PriorityClass with name nope"):
        held.create(PODS, {**pod, "spec": {**pod["spec"], "priorityClassName": "nope"}})
    with pytest.raises(ApiProblem, match="service account default/nope"):
        held.create(PODS, {**pod, "spec": {**pod["spec"], "serviceAccountName": "nope"}})


def test_crd_when_created_then_its_objects_can_be_stored_and_when_deleted_they_are_gone() -> None:
    held = store()
    names = {"kind": "Widget", "plural": "widgets"}
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    ]
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    held.create(CORE["customresourcedefinitions"], definition)
    kind = held.kinds["example.com", "widgets"]
    held.create(kind, {"metadata": {"name": "w", "namespace": "default"}})
    established = held.get(CORE["customresourcedefinitions"], "", "widgets.example.com")["status"]["conditions"]

    held.delete(CORE["customresourcedefinitions"], "", "widgets.example.com")

    assert {item["type"] for item in established} == {"NamesAccepted", "Established"}
    assert ("example.com", "widgets") not in held.kinds


# server-side apply


def test_apply_when_another_manager_set_the_field_then_409_as_helm_shows_it() -> None:
    held = store()
    held.apply(SETS, daemonset("a:1"), manager="helm")
    live = held.get(SETS, "default", "ds")
    held.update(
        SETS,
        patch_object(
            live, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "b:1"}]}}}}, STRATEGIC, SETS
        ),
        manager="kubectl-set",
    )

    with pytest.raises(ApiProblem) as problem:
        held.apply(SETS, daemonset("a:2"), manager="helm")

    field = '.spec.template.spec.containers[name="main"].image'
    assert problem.value.message == f'Apply failed with 1 conflict: conflict with "kubectl-set" using apps/v1: {field}'
    assert problem.value.details["causes"][0]["reason"] == "FieldManagerConflict"


def test_apply_when_forced_then_field_is_taken() -> None:
    held = store()
    held.apply(MAPS, config_map(a="1"), manager="one")
    held.apply(MAPS, config_map(a="2"), manager="two", force=True)

    with pytest.raises(ApiProblem, match='conflict with "two"'):
        held.apply(MAPS, config_map(a="3"), manager="one")


def test_apply_when_field_is_left_out_then_it_is_removed_unless_another_owns_it() -> None:
    held = store()
    held.apply(MAPS, config_map(a="1", b="1"), manager="one")
    held.apply(MAPS, config_map(b="1"), manager="two")

    obj, created = held.apply(MAPS, config_map(), manager="one")

    assert (obj["data"], created) == ({"b": "1"}, False)


def test_apply_when_list_item_is_left_out_then_it_is_removed() -> None:
    held = store()
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    held.apply(SETS, daemonset(volumes=volumes), manager="helm")

    obj, _ = held.apply(SETS, daemonset(volumes=volumes[1:]), manager="helm")

    assert [item["name"] for item in obj["spec"]["template"]["spec"]["volumes"]] == ["b"]


def test_apply_when_same_again_then_version_stays() -> None:
    held = store()
    first, created = held.apply(SETS, daemonset(), manager="helm")
    second, again = held.apply(SETS, daemonset(), manager="helm")

    assert (created, again) == (True, False)
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


# validation


def test_check_applied_when_field_is_unknown_then_text_of_the_real_server() -> None:
    with pytest.raises(
        ApiProblem, match=r"\.spec\.template\.spec\.tolerations\[0\]\.keyy: field not declared in schema"
    ):
        check_applied("apps", "DaemonSet", daemonset(tolerations=[{"keyy": "x"}]))


def test_check_applied_when_label_is_no_string_then_refused() -> None:
    obj = daemonset()
    obj["metadata"]["labels"] = {"app.kubernetes.io/instance": True}

    with pytest.raises(ApiProblem, match="expected string"):
        check_applied("apps", "DaemonSet", obj)


def test_check_sent_when_field_is_unknown_then_validation_decides() -> None:
    obj = daemonset(affinity={"nodeAfinity": {}})
    unknown = 'unknown field "spec.template.spec.affinity.nodeAfinity"'

    assert check_sent("apps", "DaemonSet", obj, "Warn") == [unknown]
    assert check_sent("apps", "DaemonSet", obj, "Ignore") == []
    with pytest.raises(ApiProblem, match="strict decoding error"):
        check_sent("apps", "DaemonSet", obj, "Strict")


def test_findings_when_object_is_good_then_none() -> None:
    assert findings("apps", "DaemonSet", daemonset(hostNetwork=True)) == []


# patches and selectors


def test_merge_patch_when_null_then_removed() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}) == {"a": {"c": 2}}


def test_json_patch_when_operations_fit_then_applied_and_when_not_then_422() -> None:
    steps: list[JsonObject] = [
        {"op": "add", "path": "/labels/a~1b", "value": "1"},
        {"op": "replace", "path": "/list/0", "value": 9},
        {"op": "remove", "path": "/gone"},
        {"op": "test", "path": "/list/0", "value": 9},
        {"op": "copy", "from": "/list/0", "path": "/copy"},
    ]

    assert json_patch({"labels": {}, "list": [1], "gone": 1}, steps) == {"labels": {"a/b": "1"}, "list": [9], "copy": 9}
    with pytest.raises(ApiProblem, match="missing path"):
        json_patch({}, [{"op": "remove", "path": "/gone"}])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owner=helm", True),
        ("owner==helm,name=nvdp", True),
        ("owner!=helm", False),
        ("owner in (helm, other)", True),
        ("owner notin (helm)", False),
        ("owner,!absent", True),
        ("absent", False),
        ("absent!=x", True),
        ("", True),
    ],
)
def test_label_test_when_selector_is_given_then_matches(text: str, expected: bool) -> None:  # noqa: FBT001 -- a column
    assert label_test(text)({"owner": "helm", "name": "nvdp"}) is expected


def test_label_test_when_unreadable_then_400() -> None:
    with pytest.raises(ApiProblem, match="unable to parse requirement"):
        label_test("a in b")


def test_field_test_when_paths_are_named_then_compared() -> None:
    pod: JsonObject = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}

    assert field_test("spec.nodeName=n,status.phase!=Failed,metadata.name=p")(pod)
    assert not field_test("spec.nodeName!=n")(pod)
    assert field_test("spec.other=")(pod)


def test_matches_selector_when_expressions_are_given_then_all_must_hold() -> None:
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}

    assert matches_selector({"a": "1", "b": ""}, selector)
    assert not matches_selector({"a": "1"}, selector)
    assert not matches_selector({"a": "1"}, None)


# watching


async def _events(held: Store, query: WatchQuery, count: int) -> list[tuple[str, str]]:
    found = []
    async for event in watch(held, MAPS, "default", query):
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
        if len(found) == count:
            break
    return found


def _query(*, version: int | None = None, initial: bool = False, selector: str = "") -> WatchQuery:
    wanted = label_test(selector)
    return WatchQuery(
        lambda obj: wanted(obj["metadata"].get("labels") or {}), version, initial, bookmarks=True, timeout_s=5
    )


def test_watch_when_initial_events_are_asked_for_then_they_end_with_a_bookmark() -> None:
    held = store()
    held.create(MAPS, config_map("a"))

    assert asyncio.run(_events(held, _query(initial=True), 2)) == [("ADDED", "a"), ("BOOKMARK", "")]


def test_watch_when_starting_at_a_version_then_only_later_changes() -> None:
    held = store()
    held.create(MAPS, config_map("a"))
    at = held.version
    held.create(MAPS, config_map("b"))
    held.delete(MAPS, "default", "b")

    assert asyncio.run(_events(held, _query(version=at), 2)) == [("ADDED", "b"), ("DELETED", "b")]


def test_watch_when_object_enters_and_leaves_the_selector_then_added_and_deleted() -> None:
    held = store()
    made = held.create(MAPS, config_map("a"))
    at = held.version
    with_label = {**made, "metadata": {**made["metadata"], "labels": {"x": "y"}, "resourceVersion": ""}}
    held.update(MAPS, with_label)
    held.update(MAPS, {**made, "metadata": {**made["metadata"], "resourceVersion": ""}})

    assert asyncio.run(_events(held, _query(version=at, selector="x=y"), 2)) == [("ADDED", "a"), ("DELETED", "a")]


def test_watch_when_a_change_comes_together_with_the_bookmark_then_it_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_BOOKMARK_EVERY_S", 0.05)
    wanted = WatchQuery(lambda _obj: True, None, initial=False, bookmarks=True, timeout_s=1)

    async def story() -> list[str]:
        held = store()
        events = watch(held, MAPS, "default", wanted)
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.06, held.create, MAPS, config_map("a"))
        time.sleep(0.2)  # noqa: ASYNC251 -- the machine stands still until both are due
        return [(await first)["type"], *[event["type"] async for event in events]]

    assert "ADDED" in asyncio.run(story())
