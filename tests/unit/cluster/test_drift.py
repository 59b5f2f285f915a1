"""What of a live object is drift, and what the API server or a controller may do to it."""

from __future__ import annotations

import copy

import pytest
import yaml

from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.state.release_drift import Drift, describe_drift, find_drift, manifest_objects

MANIFEST = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, labels: {team: gpu}, annotations: null}
spec:
  selector: {matchLabels: {app: plugin}}
  updateStrategy: {type: RollingUpdate}
  template:
    metadata: {labels: {app: plugin}, annotations: {checksum/config: abc}}
    spec:
      affinity: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      serviceAccountName: plugin
      hostNetwork: false
      securityContext: {runAsUser: null}
      initContainers: [{name: init, image: i:1}]
      containers:
      - name: main
        image: plugin:1
        command: [run, --all]
        env:
        - {name: CONFIG, value: /config}
        - {name: EMPTY, value: ""}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        resources: {limits: {cpu: 1000m, memory: 1Gi}}
        volumeMounts: [{name: config, mountPath: /config}, {name: config, mountPath: /other}]
      volumes: [{name: config, hostPath: {path: /x}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: configs, namespace: gpukube-system}
data: {c-1: "version: v1"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: role}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: account}
---
apiVersion: batch/v1
kind: Job
metadata: {name: not-compared}
"""
WANTED = manifest_objects(MANIFEST)
PLUGIN, ENTRIES, ROLE = "DaemonSet plugin", "ConfigMap configs", "ClusterRole role"
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers[main]"
CPU = f"{CONTAINER}.resources.limits.cpu"
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]


def live() -> list[dict[str, object]]:
    """Make the objects as an API server gives them: defaults filled in, empty fields dropped, a status."""
    found = [copy.deepcopy(dict(obj)) for obj in WANTED]
    daemonset = found[0]
    daemonset["metadata"] = {
        "name": "plugin",
        "namespace": NAMESPACE,
        "labels": {"team": "gpu", "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"deprecated.daemonset.template.generation": "1"},
        "resourceVersion": "7",
    }
    daemonset["status"] = {"numberReady": 0}
    spec = change(daemonset, "spec")
    spec["revisionHistoryLimit"] = 10
    pod = change(daemonset, "spec", "template", "spec")
    del pod["hostNetwork"], pod["securityContext"]
    pod.update(dnsPolicy="ClusterFirst", restartPolicy="Always", serviceAccount="plugin")
    (main,) = pod["containers"]
    main.update(imagePullPolicy="IfNotPresent", terminationMessagePath="/dev/termination-log")
    main["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    del main["env"][1]["value"]
    main["env"][2]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    pod["volumes"][0]["hostPath"]["type"] = ""
    found[3]["secrets"] = [{"name": "token"}]
    return found


def change(obj: dict[str, object], *path: str) -> dict:  # type: ignore[type-arg]  # a tree to be edited
    at: object = obj
    for key in path:
        assert isinstance(at, dict)
        at = at[key]
    assert isinstance(at, dict)
    return at


def test_drift_when_the_server_filled_in_its_defaults_then_none() -> None:
    assert find_drift(WANTED, live()) == ()


def test_drift_when_other_objects_are_there_then_they_do_not_matter() -> None:
    other = {"kind": "ConfigMap", "metadata": {"name": "other", "namespace": NAMESPACE}, "data": {"a": "b"}}
    elsewhere = {"kind": "ConfigMap", "metadata": {"name": "configs", "namespace": "default"}, "data": {"a": "b"}}
    assert find_drift(WANTED, [*live(), other, elsewhere]) == ()


@pytest.mark.parametrize("at", range(4))
def test_drift_when_an_object_is_gone_then_named(at: int) -> None:
    there = live()
    gone = there.pop(at)
    (found,) = find_drift(WANTED, there)
    assert (found.object, found.gone, found.live) == (f"{gone['kind']} {change(gone, 'metadata')['name']}", True, None)


EDITS: dict[str, tuple[str, tuple[str, object, object]]] = {
    "image": ("main.image = plugin:2", (f"{CONTAINER}.image", "plugin:1", "plugin:2")),
    "command": ("main.command = [run]", (f"{CONTAINER}.command", ["run", "--all"], ["run"])),
    "args where the chart sends none": ("main.args = [x]", (f"{CONTAINER}.args", None, ["x"])),
    "resources": ("main.resources = {limits: {cpu: 2, memory: 1Gi}}", (CPU, "1000m", 2)),
    "a node selector": ("pod.nodeSelector = {a: b}", (f"{POD}.nodeSelector", None, {"a": "b"})),
    "host network": ("pod.hostNetwork = true", (f"{POD}.hostNetwork", False, True)),
    "another account": ("pod.serviceAccountName = x", (f"{POD}.serviceAccountName", "plugin", "x")),
    "no tolerations": (
        "pod.tolerations = null",
        (f"{POD}.tolerations", [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], None),
    ),
    "an init container less": (
        "pod.initContainers = null",
        (f"{POD}.initContainers", [{"name": "init", "image": "i:1"}], None),
    ),
    "pod affinity besides": ("affinity.podAffinity = {x: y}", (f"{POD}.affinity.podAffinity", None, {"x": "y"})),
    "another entry": ("data.mine = 'version: v1'", ("data[mine]", None, "version: v1")),
    "an edited entry": ("data.c-1 = 'version: v2'", ("data[c-1]", "version: v1", "version: v2")),
    "an entry less": ("data.c-1 = null", ("data[c-1]", "version: v1", None)),
    "a label less": ("labels.team = null", ("metadata.labels[team]", "gpu", None)),
    "update strategy": (
        "spec.updateStrategy = {type: OnDelete}",
        ("spec.updateStrategy.type", "RollingUpdate", "OnDelete"),
    ),
    "a checksum": (
        "annotations.checksum/config = x",
        ("spec.template.metadata.annotations[checksum/config]", "abc", "x"),
    ),
    "rules": ("role.rules = []", ("rules", RULES, [])),
}
PLACES = {
    "main": (0, "spec", "template", "spec", "containers"),
    "pod": (0, "spec", "template", "spec"),
    "affinity": (0, "spec", "template", "spec", "affinity"),
    "annotations": (0, "spec", "template", "metadata", "annotations"),
    "labels": (0, "metadata", "labels"),
    "spec": (0, "spec"),
    "data": (1, "data"),
    "role": (2,),
}


def edited(edit: str) -> list[dict[str, object]]:
    """Make the live objects with one edit: "place.key = YAML", null removes."""
    target, _, value = edit.partition(" = ")
    place, _, key = target.partition(".")
    objects = live()
    at, *path = PLACES[place]
    assert isinstance(at, int)
    if place == "main":
        (tree,) = change(objects[at], "spec", "template", "spec")["containers"]
    else:
        tree = change(objects[at], *map(str, path))
    new = yaml.safe_load(value)
    if new is None:
        del tree[key]
    else:
        tree[key] = new
    return objects


@pytest.mark.parametrize("case", EDITS)
def test_drift_when_something_was_edited_then_that_alone(case: str) -> None:
    edit, desired = EDITS[case]
    (found,) = find_drift(WANTED, edited(edit))
    assert (found.field, found.desired, found.live) == desired


def test_drift_when_items_of_lists_differ_then_named_by_their_key_and_found_by_their_place() -> None:
    objects = live()
    (main,) = change(objects[0], "spec", "template", "spec")["containers"]
    main["env"] = [{"name": "MINE", "value": "x"}, *main["env"][1:]]
    main["volumeMounts"][1]["name"] = "else"
    change(objects[0], "spec", "template", "spec")["containers"].append({"name": "spy", "image": "s"})
    found = find_drift(WANTED, objects)
    start = ("spec", "template", "spec", "containers")
    assert [(item.field, item.live is None, item.path) for item in found] == [
        (f"{CONTAINER}.env[CONFIG]", True, (*start, 0, "env", 3)),
        (f"{CONTAINER}.env[MINE]", False, (*start, 0, "env", 0)),
        (f"{CONTAINER}.volumeMounts[/other].name", False, (*start, 0, "volumeMounts", 1, "name")),
        (f"{POD}.containers[spy]", False, (*start, 1)),
    ]


NO_DRIFT = {
    "a restart": ("annotations.kubectl.kubernetes.io/restartedAt = 2026", "DaemonSet"),
    "a label of others": ("labels.cost-centre = x", "DaemonSet"),
    "an order of the entries": ("data.c-1 = 'version: v1'", "ConfigMap"),
}


@pytest.mark.parametrize("case", NO_DRIFT)
def test_drift_when_others_add_what_changes_nothing_then_none(case: str) -> None:
    assert find_drift(WANTED, edited(NO_DRIFT[case][0])) == ()


QUANTITIES = [("1000m", "1"), ("0.5", "500m"), (2, "2"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1k", 1000)]


@pytest.mark.parametrize(("sent", "kept"), QUANTITIES)
def test_drift_when_the_server_rewrites_a_quantity_then_none(sent: object, kept: object) -> None:
    desired = [{"kind": "ConfigMap", "metadata": {"name": "x"}, "spec": {"cpu": sent}}]
    assert find_drift(desired, [{**desired[0], "spec": {"cpu": kept}}]) == ()
    assert len(find_drift(desired, [{**desired[0], "spec": {"cpu": "3"}}])) == 1


def test_manifest_when_it_is_no_yaml_then_nothing() -> None:
    assert manifest_objects("a: [") == ()


def test_say_when_many_fields_differ_then_a_line_per_object() -> None:
    fields = [f"{POD}.{name}" for name in ("a", "b", "c", "d")]
    found = [*(Drift("DaemonSet x", name, 1, 2) for name in fields), Drift("ConfigMap y", "", "the object", None)]
    assert describe_drift(found) == ["DaemonSet x: a, b, c and 1 more differ", "ConfigMap y is missing"]


def test_drift_when_the_api_server_drops_a_field_whose_feature_is_off_then_none_but_another_value_is() -> None:
    """Before Kubernetes 1.36, a DeviceClass has no extended resource name."""
    spec = {"selectors": [{"cel": {"expression": "true"}}]}
    desired = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {**spec, "extendedResourceName": "a/gpu"}}
    assert find_drift([desired], [{**desired, "spec": spec}]) == ()
    (found,) = find_drift([desired], [{**desired, "spec": {**spec, "extendedResourceName": "b/gpu"}}])
    assert (found.field, found.live) == ("spec.extendedResourceName", "b/gpu")
