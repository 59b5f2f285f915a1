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
BASES = {
    "nodes": "{}",
    "deployments": REPLICATED,
    "daemonsets": REPLICATED,
    "statefulsets": REPLICATED,
    "jobs": f"{{spec: {{{RUN}}}}}",
    "cronjobs": f'{{spec: {{schedule: "* * * * *", jobTemplate: {{spec: {{{RUN}}}}}}}}}',
    "poddisruptionbudgets": "{spec: {selector: {matchLabels: {app: a}}}}",
    "resourcequotas": "{spec: {hard: {pods: 5}}}",
    "limitranges": "{spec: {limits: [{type: Container, max: {cpu: 4}}]}}",
    "priorityclasses": "{value: 1000}",
    "runtimeclasses": "{handler: nvidia}",
}
REFUSED = [
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
]
CHANGES = [
    ("nodes", "spec: {providerID: a}", "spec: {providerID: b}", "node updates may not change providerID"),
    ("jobs", "{}", "spec: {template: {spec: {containers: [{name: c, image: b}]}}}", "field is immutable"),
    ("jobs", "{}", "spec: {completions: 5}", "spec.completions: Invalid value: 5: field is immutable"),
    ("priorityclasses", "{}", "value: 5", "value: Forbidden: may not be changed in an update."),
    ("runtimeclasses", "{}", "handler: other", "field is immutable"),
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
