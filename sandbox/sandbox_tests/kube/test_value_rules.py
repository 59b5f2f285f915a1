"""What the API server refuses in nodes, workloads, budgets, quotas and classes: the words are those of a real 1.36."""

from __future__ import annotations

import pytest
import yaml

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.patches import merge_patch
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store

TEMPLATE = "template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: a}]}}"
REPLICATED = f"{{spec: {{selector: {{matchLabels: {{app: a}}}}, {TEMPLATE}}}}}"
RUN = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: a}]}}"
SERVICE = "{service: {name: a, port: {number: 80}}}"
BASES = {
    "nodes": "{}",
    "deployments": REPLICATED,
    "daemonsets": REPLICATED,
    "statefulsets": REPLICATED,
    "jobs": f"{{spec: {{{RUN}}}}}",
    "cronjobs": f'{{spec: {{schedule: "* * * * *", jobTemplate: {{spec: {{{RUN}}}}}}}}}',
    "poddisruptionbudgets": "{spec: {selector: {matchLabels: {app: a}}}}",
    "resourcequotas": "{spec: {hard: {pods: 5}}}",
    "leases": "{spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z'}}",
    "limitranges": "{spec: {limits: [{type: Container, max: {cpu: 4}}]}}",
    "priorityclasses": "{value: 1000}",
    "runtimeclasses": "{handler: nvidia}",
    "configmaps": "{data: {a.b-c_d: e}}",
    "secrets": "{data: {a: Yw==}}",
    "services": "{spec: {selector: {app: a}, ports: [{name: web, port: 80}, {name: metrics, port: 81}]}}",
    "ingresses": f"{{spec: {{defaultBackend: {SERVICE}}}}}",
    "roles": "{metadata: {namespace: default}, rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]}",
    "clusterroles": "{rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}",
    "clusterrolebindings": "{roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: a}]}",
    "persistentvolumeclaims": "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
    "storageclasses": "{provisioner: example.com/Disk}",
}
REFUSED = [
    ("nodes", "status: {capacity: {nvidia.com/gpu: 500m}}", "must be an integer"),
    ("deployments", "spec: {selector: {matchLabels: null}}", "empty selector is invalid for deployment"),
    ("deployments", "spec: {revisionHistoryLimit: -1}", "must be greater than or equal to 0"),
    (
        "deployments",
        "spec: {template: {spec: {ephemeralContainers: [{name: e, image: a}]}}}",
        "not allowed in pod template",
    ),
    ("statefulsets", "spec: {updateStrategy: {rollingUpdate: {partition: -1}}}", "must be greater than or equal to 0"),
    ("statefulsets", "spec: {serviceName: A b}", "spec.serviceName: Invalid value"),
    ("statefulsets", "spec: {volumeClaimTemplates: [{spec: {}}]}", "at least 1 access mode is required"),
    ("jobs", "spec: {backoffLimitPerIndex: 1}", "requires indexed completion mode"),
    (
        "jobs",
        "spec: {completionMode: Indexed, completions: 200000, parallelism: 200000}",
        "less than or equal to 100000",
    ),
    ("jobs", "spec: {podReplacementPolicy: Foo}", 'podReplacementPolicy: Unsupported value: "Foo"'),
    (
        "jobs",
        "spec: {podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [0]}}]}}",
        "must not be 0 for the In operator",
    ),
    (
        "jobs",
        "spec: {podFailurePolicy: {rules: []}, template: {spec: {restartPolicy: OnFailure}}}",
        'only "Never" is supported when podFailurePolicy is specified',
    ),
    ("cronjobs", 'spec: {schedule: "30-10 * * * *"}', "beginning of range (30) beyond end of range (10): 30-10"),
    ("cronjobs", 'spec: {schedule: "*/0 * * * *"}', "step of range should be a positive number: */0"),
    ("cronjobs", 'spec: {schedule: "0 9 * * FOO"}', "failed to parse int from FOO"),
    ("cronjobs", f"metadata: {{name: {'a' * 53}}}", "must be no more than 52 characters"),
    ("resourcequotas", "spec: {hard: {cpu: 1}, scopes: [BestEffort]}", "unsupported scope applied to resource"),
    (
        "resourcequotas",
        "spec: {scopeSelector: {matchExpressions: [{scopeName: Terminating, operator: In, values: [a]}]}}",
        "must be 'Exists' when scope is any of",
    ),
    (
        "leases",
        "spec: {leaseDurationSeconds: 0}",
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    ),
    ("leases", "spec: {leaseTransitions: -1}", "must be greater than or equal to 0"),
    ("leases", "spec: {strategy: Newest}", 'Unsupported value: "Newest": supported values: "OldestEmulationVersion"'),
    ("leases", "spec: {strategy: a/b/c}", "spec.strategy.strategy: Invalid value"),
    ("leases", "spec: {preferredHolder: b}", "may only be specified if `strategy` is defined"),
    ("limitranges", "spec: {limits: [{max: {cpu: 8}}]}", "spec.limits[0].type: Invalid value"),
    (
        "limitranges",
        "spec: {limits: [{type: PersistentVolumeClaim, max: {cpu: 1}}]}",
        "either minimum or maximum storage",
    ),
    (
        "limitranges",
        "spec: {limits: [{type: Container, default: {a.b/gpu: 2}, defaultRequest: {a.b/gpu: 1}}]}",
        "default value 2 must equal to defaultRequest value 1 in a.b/gpu",
    ),
    ("runtimeclasses", "{overhead: {podFixed: {gpu: 1}}}", "must be a standard resource for containers"),
    ("runtimeclasses", "{scheduling: {tolerations: [{key: a, operator: Foo}]}}", "scheduling.tolerations[0].operator"),
    ("services", "spec: {clusterIP: abc}", "must be a valid IP address"),
    ("services", "spec: {externalTrafficPolicy: Local}", "may only be set for externally-accessible services"),
    (
        "services",
        "spec: {type: NodePort, ports: [{port: 80, nodePort: 80}]}",
        "The range of valid ports is 30000-32767",
    ),
    ("nodes", "spec: {taints: [{key: a, effect: Never}]}", 'metadata.taints[0].effect: Unsupported value: "Never"'),
    ("nodes", "spec: {taints: [{key: a, value: b c, effect: NoSchedule}]}", "metadata.taints[0].value: Invalid value"),
    ("nodes", "spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}", "Duplicate value"),
    ("nodes", "spec: {podCIDRs: [here]}", "must be a valid CIDR value"),
    ("deployments", "spec: {replicas: -1}", "spec.replicas: Invalid value: -1"),
    ("deployments", "spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}}", "may not be 0 when"),
    ("deployments", "spec: {strategy: {rollingUpdate: {maxSurge: lots}}}", "a valid percent string must be"),
    ("deployments", "spec: {strategy: {rollingUpdate: {maxUnavailable: 101%}}}", "must not be greater than 100%"),
    ("deployments", "spec: {template: {spec: {restartPolicy: Never}}}", 'restartPolicy: Unsupported value: "Never"'),
    (
        "deployments",
        "spec: {template: {spec: {tolerations: [{key: a, effect: Never}]}}}",
        "spec.template.spec.tolerations",
    ),
    ("daemonsets", "spec: {updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}}", "may not be set when"),
    ("statefulsets", "spec: {podManagementPolicy: Any}", "must be 'OrderedReady' or 'Parallel'"),
    ("jobs", "spec: {template: {spec: {restartPolicy: Always}}}", 'valid values: "OnFailure", "Never"'),
    (
        "jobs",
        "spec: {completions: 2, successPolicy: {rules: [{succeededCount: 1}]}}",
        "requires indexed completion mode",
    ),
    ("cronjobs", "spec: {schedule: every day}", "expected exactly 5 fields, found 2: [every day]"),
    ("cronjobs", 'spec: {schedule: "61 * * * *"}', "end of range (61) above maximum (59): 61"),
    ("cronjobs", "spec: {timeZone: Mars/Base}", "unknown time zone Mars/Base"),
    ("poddisruptionbudgets", "spec: {minAvailable: 1, maxUnavailable: 1}", "cannot be both set"),
    ("poddisruptionbudgets", "spec: {minAvailable: -1}", "must be greater than or equal to 0"),
    ("poddisruptionbudgets", "spec: {maxUnavailable: abc}", "a valid percent string must be"),
    ("resourcequotas", "spec: {hard: {pods: -1}}", "spec.hard[pods]: Invalid value"),
    ("resourcequotas", "spec: {hard: {things: 1}}", "must be a standard resource for quota"),
    ("resourcequotas", "spec: {hard: {limits.nvidia.com/gpu: 500m}}", "must be an integer"),
    ("limitranges", "spec: {limits: [{type: Container, min: {cpu: 8}, max: {cpu: 4}}]}", "is greater than max value 4"),
    ("priorityclasses", "value: 2000000001", "maximum allowed value of a user defined priority is 1000000000"),
    ("priorityclasses", "metadata: {name: system-x}", "reserved for system use only"),
    ("runtimeclasses", "handler: Bad_H", "a lowercase RFC 1123 label must consist"),
    ("runtimeclasses", "overhead: {podFixed: {cpu: -1}}", "must be greater than or equal to 0"),
    ("configmaps", "data: {a b: c}", "data[a b]: Invalid value"),
    ("configmaps", "data: {..a: c}", "must not start with '..'"),
    ("configmaps", "binaryData: {a.b-c_d: Yw==}", "duplicate of key present in binaryData"),
    ("configmaps", f"data: {{a: {'c' * (1 << 20)}}}", "Too long: may not be more than 1048576 bytes"),
    ("secrets", f"data: {{a: {'YWFh' * 350_000}}}", "data: Too long"),
    ("secrets", "data: {a/b: Yw==}", "data[a/b]: Invalid value"),
    ("secrets", "type: kubernetes.io/tls", "data[tls.crt]: Required value"),
    ("secrets", "type: kubernetes.io/dockerconfigjson", "data[.dockerconfigjson]: Required value"),
    ("secrets", "type: kubernetes.io/basic-auth", "data[username]: Required value"),
    (
        "secrets",
        "type: kubernetes.io/service-account-token",
        "annotations[kubernetes.io/service-account.name]: Required",
    ),
    ("services", "spec: {ports: null}", "spec.ports: Required value"),
    ("services", "spec: {ports: [{port: 70000}]}", "must be between 1 and 65535, inclusive"),
    ("services", "spec: {ports: [{port: 80}, {port: 81}]}", "spec.ports[0].name: Required value"),
    ("services", "spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}", "spec.ports[1]: Duplicate value"),
    ("services", "spec: {ports: [{name: a, port: 80}, {name: a, port: 81}]}", "spec.ports[1].name: Duplicate value"),
    ("services", "spec: {ports: [{port: 80, protocol: HTTP}]}", 'spec.ports[0].protocol: Unsupported value: "HTTP"'),
    ("services", "spec: {ports: [{port: 80, nodePort: 30001}]}", "may not be used when `type` is 'ClusterIP'"),
    ("services", "spec: {type: Magic}", 'spec.type: Unsupported value: "Magic"'),
    ("services", "spec: {type: ExternalName}", "spec.externalName: Required value"),
    ("services", "spec: {type: NodePort, clusterIP: None}", "may not be set to 'None' for NodePort services"),
    ("services", "spec: {selector: {a b: c}}", "spec.selector: Invalid value"),
    ("services", "spec: {sessionAffinity: Sometimes}", 'spec.sessionAffinity: Unsupported value: "Sometimes"'),
    ("ingresses", "spec: {defaultBackend: null}", "either `defaultBackend` or `rules` must be specified"),
    ("ingresses", "spec: {defaultBackend: {service: {port: null}}}", "port name or number is required"),
    ("ingresses", "spec: {defaultBackend: {service: {name: ''}}}", "spec.defaultBackend.service.name: Required value"),
    ("ingresses", "spec: {defaultBackend: {service: null}}", "resource or service backend is required"),
    ("ingresses", f"spec: {{rules: [{{http: {{paths: [{{backend: {SERVICE}}}]}}}}]}}", "pathType must be specified"),
    (
        "ingresses",
        f"spec: {{rules: [{{http: {{paths: [{{path: a, pathType: Prefix, backend: {SERVICE}}}]}}}}]}}",
        "must be an absolute path",
    ),
    ("ingresses", "spec: {rules: [{http: {paths: []}}]}", "spec.rules[0].http.paths: Required value"),
    ("roles", "rules: [{apiGroups: [''], resources: [pods]}]", "verbs must contain at least one value"),
    ("roles", "rules: [{verbs: [get], resources: [pods]}]", "must supply at least one api group"),
    ("roles", "rules: [{verbs: [get], apiGroups: ['']}]", "must supply at least one resource"),
    ("roles", "rules: [{verbs: [get], nonResourceURLs: [/a]}]", "cannot apply to non-resource URLs"),
    ("clusterroles", "rules: [{verbs: [get], resources: [pods], nonResourceURLs: [/a]}]", "cannot apply to both"),
    ("clusterroles", "aggregationRule: {}", "at least one clusterRoleSelector required"),
    ("clusterrolebindings", "roleRef: {kind: Role}", 'roleRef.kind: Unsupported value: "Role"'),
    ("clusterrolebindings", "subjects: [{kind: ServiceAccount, name: a}]", "subjects[0].namespace: Required value"),
    ("clusterrolebindings", "subjects: [{kind: Pod, name: a}]", 'subjects[0].kind: Unsupported value: "Pod"'),
    ("persistentvolumeclaims", "spec: {accessModes: []}", "at least 1 access mode is required"),
    ("persistentvolumeclaims", "spec: {accessModes: [WriteAlways]}", 'Unsupported value: "WriteAlways"'),
    ("persistentvolumeclaims", "spec: {accessModes: [ReadWriteOncePod, ReadWriteMany]}", "with other access modes"),
    ("persistentvolumeclaims", "spec: {resources: {requests: {storage: 0}}}", "must be greater than zero"),
    ("persistentvolumeclaims", "spec: {resources: null}", "spec.resources[storage]: Required value"),
    ("storageclasses", "provisioner: null", "provisioner: Required value"),
    ("storageclasses", "volumeBindingMode: Later", 'volumeBindingMode: Unsupported value: "Later"'),
]
CHANGES = [
    ("nodes", "spec: {providerID: a}", "spec: {providerID: b}", "node updates may not change providerID"),
    ("jobs", "{}", "spec: {template: {spec: {containers: [{name: c, image: b}]}}}", "field is immutable"),
    ("jobs", "{}", "spec: {completions: 5}", "spec.completions: Invalid value: 5: field is immutable"),
    ("priorityclasses", "{}", "value: 5", "value: Forbidden: may not be changed in an update."),
    ("runtimeclasses", "{}", "handler: other", "field is immutable"),
    ("configmaps", "immutable: true", "data: {a: c}", "data: Forbidden: field is immutable when `immutable` is set"),
    ("secrets", "immutable: true", "immutable: false", "immutable: Forbidden: field is immutable when"),
    ("secrets", "{}", "type: example.com/other", "type: Invalid value"),
    ("clusterrolebindings", "{}", "roleRef: {name: edit}", "cannot change roleRef"),
    ("storageclasses", "{}", "provisioner: example.com/other", "provisioner: Invalid value"),
]


def made(store: Store, plural: str, text: str) -> dict[str, object]:
    base = merge_patch({"metadata": {"name": "x"}}, yaml.safe_load(BASES[plural]))
    return store.create(CORE[plural], merge_patch(base, yaml.safe_load(text)))


@pytest.mark.parametrize(("plural", "text", "words"), REFUSED)
def test_object_when_a_value_is_wrong_then_422_in_the_words_of_a_real_server(
    plural: str, text: str, words: str
) -> None:
    store = Store(ManualClock())
    with pytest.raises(ApiProblem) as caught:
        made(store, plural, text)
    assert (caught.value.code, caught.value.reason, words in caught.value.message) == (422, "Invalid", True)


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
def test_object_when_its_bytes_are_not_base64_then_400(plural: str) -> None:
    with pytest.raises(ApiProblem, match="illegal base64 data") as caught:
        made(Store(ManualClock()), plural, "{binaryData: {b: '***'}, data: {b: '***'}}")
    assert caught.value.code == 400


@pytest.mark.parametrize("plural", BASES)
def test_object_when_it_is_right_then_taken(plural: str) -> None:
    assert made(Store(ManualClock()), plural, "{}")["metadata"]


@pytest.mark.parametrize(("plural", "before", "change", "words"), CHANGES)
def test_object_when_what_is_fixed_changes_then_422(plural: str, before: str, change: str, words: str) -> None:
    store = Store(ManualClock())
    old = made(store, plural, before)
    with pytest.raises(ApiProblem) as caught:
        store.update(CORE[plural], merge_patch(old, yaml.safe_load(change)))
    assert (caught.value.code, words in caught.value.message) == (422, True)
