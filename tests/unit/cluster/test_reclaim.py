"""What is patched before Helm runs, so that its next change sets every field again."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpukube.cluster.release.reclaim import _operations
from gpukube.cluster.state.release_drift import find_drift
from gpukube_sandbox.kube.store.patches import json_patch

Body = dict[str, Any]  # an object as the API has it
POLICY: Body = {
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy", "labels": {"app": "gpu-operator"}},
    "spec": {
        "mig": {"strategy": "single"},
        "daemonsets": {"tolerations": [{"key": "sku", "operator": "Exists"}]},
        "migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}, {"name": "A", "value": "b"}]},
    },
}
EDITS: dict[str, Body] = {
    "another value": {"mig": {"strategy": "mixed"}},
    "a value taken away": {"mig": {}},
    "a part taken away": {"mig": None},
    "a list emptied": {"daemonsets": {"tolerations": []}},
    "an item changed and one gone": {"migManager": {"env": [{"name": "A", "value": "c"}]}},
    "an item more": {
        "migManager": {
            "env": [
                {"name": "X", "value": "y"},
                {"name": "WITH_REBOOT", "value": "false"},
                {"name": "A", "value": "b"},
            ]
        }
    },
}


def edited(change: Body) -> Body:
    live = copy.deepcopy(POLICY)
    live["spec"] = {key: value for key, value in {**live["spec"], **change}.items() if value is not None}
    return live


@pytest.mark.parametrize("case", EDITS)
def test_custom_resource_when_edited_under_helm_3_then_as_the_manifest_says_again(case: str) -> None:
    live = edited(EDITS[case])
    assert find_drift([POLICY], [live])
    mended = json_patch(live, [dict(step) for step in _operations(POLICY, live, manager="")])
    assert find_drift([POLICY], [mended]) == ()


@pytest.mark.parametrize(("kind", "manager"), [("ClusterPolicy", "helm"), ("DaemonSet", "")])
def test_values_when_helm_looks_at_the_live_object_then_left_for_it_to_write(kind: str, manager: str) -> None:
    live = edited(EDITS["another value"])
    paths = [step["path"] for step in _operations({**POLICY, "kind": kind}, {**live, "kind": kind}, manager)]
    assert "/spec/mig/strategy" not in paths
