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
    # containers, further
    "port name": (C + "ports: [{containerPort: 1, name: A_b}]}]", "must contain only alpha-numeric characters"),
    "port name twice": (
        C + "ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]}]",
        'ports[1].name: Duplicate value: "a"',
    ),
    "key of no secret": (
        C + "env: [{name: a, valueFrom: {secretKeyRef: {name: x}}}]}]", "valueFrom.secretKeyRef.key: Required value",
    ),
    "amount": (
        C + "env: [{name: a, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]}]",
        'resourceFieldRef.resource: Unsupported value: "limits.gpu"',
    ),
    "variables of nothing": (C + "envFrom: [{}]}]", "must specify one of: `configMapRef` or `secretRef`"),
    "mount below": (
        "{volumes: [{name: v}], " + C + "volumeMounts: [{name: v, mountPath: /a, subPath: /b}]}]}",
        'volumeMounts.subPath: Invalid value: "/b": must be a relative path',
    ),
    "mount to the host": (
        "{volumes: [{name: v}], " + C + "volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]}]}",
        "Bidirectional mount propagation is available only to privileged containers",
    ),
    "block device": (
        "{volumes: [{name: v}], " + C + "volumeDevices: [{name: v, devicePath: /dev/a}]}]}",
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
    ),
    "probe's port": (
        C + "livenessProbe: {tcpSocket: {port: 99999}}}]",
        "livenessProbe.tcpSocket.port: Invalid value: 99999: must be between 1 and 65535, inclusive",
    ),
    "probe's command": (C + "livenessProbe: {exec: {}}}]", "livenessProbe.exec.command: Required value"),
    "probe's grace": (
        C + "readinessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}}]",
        "must not be set for readinessProbes",
    ),
    "hook": (C + "lifecycle: {preStop: {}}}]", "lifecycle.preStop: Required value: must specify a handler type"),
    "hook that sleeps": (
        C + "lifecycle: {preStop: {sleep: {seconds: 31}}}}]",
        "must be non-negative and less than terminationGracePeriodSeconds (30)",
    ),
    "hook of an init container": (
        "initContainers: [{name: i, image: a, lifecycle: {preStop: {exec: {command: [a]}}}}]",
        "may not be set for init containers without restartPolicy=Always",
    ),
    "resource of three parts": (C + "resources: {limits: {a.com/b/c: 1}}}]", "a valid label key must consist of"),
    # what they may do
    "escalation": (
        C + "securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false}}]",
        "`capabilities.Add` CAP_SYS_ADMIN",
    ),
    "user": ("securityContext: {runAsUser: -1}", "must be between 0 and 2147483647, inclusive"),
    "profile": (
        "securityContext: {seccompProfile: {type: Localhost}}", "must be set when seccomp type is Localhost",
    ),
    "sysctl": ('securityContext: {sysctls: [{name: a b, value: "1"}]}', "must have at most 253 characters and match"),
    # volumes, further
    "file that leads out": (
        "volumes: [{name: v, configMap: {name: a, items: [{key: a, path: ../b}]}}]", "must not contain '..'",
    ),
    "mode": ("volumes: [{name: v, secret: {secretName: a, defaultMode: 1000}}]", "between 0 and 0777 (octal)"),
    "host path": ("volumes: [{name: v, hostPath: {path: /a, type: Foo}}]", 'hostPath.type: Unsupported value: "Foo"'),
    "token": (
        "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 60}}]}}]",
        "may not specify a duration less than 10 minutes",
    ),
    "ephemeral": (
        "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}]",
        "volumeClaimTemplate.spec.resources[storage]: Required value",
    ),
    # the pod, further
    "name servers": ("dnsConfig: {nameservers: [a]}", "dnsConfig.nameservers[0]: Invalid value"),
    "ephemeral container": ("ephemeralContainers: [{name: e, image: a}]", "cannot be set on create"),
    "keys without a selector": (
        f"topologySpreadConstraints: [{ONE[:-1]}, matchLabelKeys: [x]}}]",
        "must not be specified when labelSelector is not set",
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
