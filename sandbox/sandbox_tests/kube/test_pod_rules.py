"""What the API server refuses in pods, and in changes of live ones: the words are those of a real 1.36."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.patches import merge_patch
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store

PODS = CORE["pods"]
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "a"}]}}
C = "containers: [{name: c, image: a, "
AFFINITY = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
ONE = "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}"
REFUSED = {
    # containers
    "no image": ("containers: [{name: c}]", "spec.containers[0].image: Required value"),
    "same name": (
        "containers: [{name: c, image: a}, {name: c, image: b}]", 'spec.containers[1].name: Duplicate value: "c"',
    ),
    "dots": (
        "containers: [{name: c.d, image: a}]",
        'spec.containers[0].name: Invalid value: "c.d": must not contain dots',
    ),
    "pull policy": (C + "imagePullPolicy: Maybe}]", 'imagePullPolicy: Unsupported value: "Maybe"'),
    "port": (C + "ports: [{containerPort: 70000}]}]", "ports[0].containerPort: Invalid value: 70000"),
    "host port twice": (
        C + "ports: [{containerPort: 1, hostPort: 5}, {containerPort: 2, hostPort: 5}]}]",
        "ports[1].hostPort: Duplicate value",
    ),
    "variable": (C + "env: [{name: a=b}]}]", 'env[0].name: Invalid value: "a=b"'),
    "mount of nothing": (
        C + "volumeMounts: [{name: v, mountPath: /a}]}]", 'volumeMounts[0].name: Not found: "v"',
    ),
    "probe without handler": (C + "livenessProbe: {}}]", "livenessProbe: Required value: must specify a handler type"),
    "privileged": (
        C + "securityContext: {privileged: true, allowPrivilegeEscalation: false}}]",
        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    ),
    "huge pages": (C + "resources: {limits: {hugepages-2Mi: 4Mi}}}]", "HugePages require cpu or memory"),
    "claim": (C + "resources: {claims: [{name: gpu}]}}]", 'resources.claims[0]: Not found: "gpu"'),
    # the pod
    "restart policy": ("restartPolicy: Sometimes", "spec.restartPolicy: Unsupported value"),
    "two sources": (
        "volumes: [{name: v, emptyDir: {}, configMap: {name: a}}]", "may not specify more than 1 volume type",
    ),
    "gates": ("schedulingGates: [{name: a/b}, {name: a/b}]", 'schedulingGates[1].name: Duplicate value: "a/b"'),
    "gate and node": (
        "{nodeName: n, schedulingGates: [{name: a/b}]}", "cannot be set until all schedulingGates have been cleared",
    ),
    "claim of both": (
        "resourceClaims: [{name: a, resourceClaimName: b, resourceClaimTemplateName: c}]",
        "spec.resourceClaims[0]: Invalid value",
    ),
    "deadline": ("activeDeadlineSeconds: 0", "must be between 1 and 2147483647, inclusive"),
    # where it may go
    "operator": ("tolerations: [{key: a, operator: Equals}]", 'tolerations[0].operator: Unsupported value: "Equals"'),
    "exists": (
        "tolerations: [{key: a, operator: Exists, value: b}]", "value must be empty when `operator` is 'Exists'",
    ),
    "effect": ("tolerations: [{key: a, effect: Never}]", 'tolerations[0].effect: Unsupported value: "Never"'),
    "empty key": ("tolerations: [{operator: Equal, value: b}]", "operator must be Exists when `key` is empty"),
    "seconds": (
        "tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]",
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    "no terms": (AFFINITY + "[]}}}", "must have at least one node selector term"),
    "no values": (
        AFFINITY + "[{matchExpressions: [{key: a, operator: In}]}]}}}",
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "weight": (
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{preference: {}}]}}",
        "must be in the range 1-100",
    ),
    "topology": (
        "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}",
        "topologyKey: Required value: can not be empty",
    ),
    "skew": (
        "topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule}]",
        "maxSkew: Invalid value: 0: must be greater than zero",
    ),
    "spread twice": (
        f"topologySpreadConstraints: [{ONE}, {ONE}]",
        "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value",
    ),
}  # fmt: skip
KEYS = {"labels": "a b", "annotations": "a b"}
FIXED = "pod updates may not change fields other than"
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "node": ({}, {"nodeName": "n2"}, FIXED),
    "selector": ({}, {"nodeSelector": {"a": "b"}}, FIXED),
    "restart policy": ({}, {"restartPolicy": "Never"}, FIXED),
    "devices": (
        {}, {"containers": [{"name": "c", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, FIXED,
    ),
    "tolerations gone": (
        {"tolerations": [{"key": "a", "operator": "Exists"}]}, {"tolerations": []}, "existing toleration can not be",
    ),
    "gate added": ({}, {"schedulingGates": [{"name": "a/b"}]}, "only deletion is allowed"),
    "selector widened": (
        {"schedulingGates": [{"name": "a/b"}], "nodeSelector": {"a": "b"}}, {"nodeSelector": None},
        "only additions to spec.nodeSelector are allowed",
    ),
    "deadline later": (
        {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 9}, "must be less than or equal to previous value",
    ),
    "image": ({}, {"containers": [{"name": "c", "image": "b"}]}, ""),
    "a toleration more": ({}, {"tolerations": [{"key": "a", "operator": "Exists"}]}, ""),
    "selector narrowed while gated": ({"schedulingGates": [{"name": "a/b"}]}, {"nodeSelector": {"a": "b"}}, ""),
    "gate lifted": ({"schedulingGates": [{"name": "a/b"}]}, {"schedulingGates": []}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_pod_when_a_value_is_wrong_then_422_with_its_field(text: str, words: str) -> None:
    with pytest.raises(ApiProblem) as caught:
        Store(ManualClock()).create(PODS, merge_patch(POD, {"spec": yaml.safe_load(text)}))
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert words in caught.value.message
    assert any(words in f"{cause['field']}: {cause['message']}" for cause in caught.value.details["causes"])


@pytest.mark.parametrize("part", KEYS)
def test_object_when_a_key_of_its_marks_is_none_then_422(part: str) -> None:
    with pytest.raises(ApiProblem, match="name part must consist of"):
        Store(ManualClock()).create(PODS, merge_patch(POD, {"metadata": {part: {KEYS[part]: "x"}}}))


@pytest.mark.parametrize(("before", "change", "words"), CHANGES.values(), ids=CHANGES)
def test_live_pod_when_changed_then_only_what_may_change_does(
    before: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    store = Store(ManualClock())
    made = store.create(PODS, merge_patch(POD, {"spec": before}))
    changed = merge_patch(made, {"spec": change})
    if words:
        with pytest.raises(ApiProblem) as caught:
            store.update(PODS, changed)
        assert (caught.value.code, words in caught.value.message) == (422, True)
    else:
        assert store.update(PODS, changed)["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
