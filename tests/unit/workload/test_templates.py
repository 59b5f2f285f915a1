"""Pod templates are found in every kind, with their roles and numbers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from gpukube.workload.manifests import read_manifests
from gpukube.workload.templates import ENDLESS, Replicas, pod_templates
from tests.manifests import objects, only

POD = "{spec: {containers: [{name: c}]}}"

FOUND = {
    "pod": ("v1", "Pod", "spec: {containers: []}", [("", "pod", (1, 1), 0)]),
    "pod template": ("v1", "PodTemplate", f"template: {POD}", [("template", "pod", (0, 0), 0)]),
    "deployment": ("apps/v1", "Deployment", f"spec: {{template: {POD}}}", [("spec.template", "replica", (1, 1), 1)]),
    "deployment of nine": (
        "apps/v1",
        "Deployment",
        f"spec: {{replicas: 9, template: {POD}}}",
        [("spec.template", "replica", (9, 9), 3)],
    ),
    "recreated": (
        "apps/v1",
        "Deployment",
        f"spec: {{replicas: 9, strategy: {{type: Recreate}}, template: {POD}}}",
        [("spec.template", "replica", (9, 9), 0)],
    ),
    "surge": (
        "apps/v1",
        "Deployment",
        f"spec: {{replicas: 9, strategy: {{rollingUpdate: {{maxSurge: 50%}}}}, template: {POD}}}",
        [("spec.template", "replica", (9, 9), 5)],
    ),
    "stateful set": (
        "apps/v1",
        "StatefulSet",
        f"spec: {{replicas: 2, template: {POD}}}",
        [("spec.template", "replica", (2, 2), 0)],
    ),
    "daemon set": ("apps/v1", "DaemonSet", f"spec: {{template: {POD}}}", [("spec.template", "daemon", (0, 0), 0)]),
    "job": (
        "batch/v1",
        "Job",
        f"spec: {{parallelism: 5, completions: 3, template: {POD}}}",
        [("spec.template", "job", (3, 3), 0)],
    ),
    "cron job": (
        "batch/v1",
        "CronJob",
        f"spec: {{jobTemplate: {{spec: {{template: {POD}}}}}}}",
        [("spec.jobTemplate.spec.template", "job", (1, 1), 0)],
    ),
    "job set": (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        f"spec: {{replicatedJobs: [{{replicas: 2, template: {{spec: {{parallelism: 3, template: {POD}}}}}}}]}}",
        [("spec.replicatedJobs[0].template.spec.template", "job", (6, 6), 0)],
    ),
    "ray cluster": (
        "ray.io/v1",
        "RayCluster",
        (
            f"spec: {{headGroupSpec: {{template: {POD}}}, "
            f"workerGroupSpecs: [{{replicas: 9, maxReplicas: 4, template: {POD}}}]}}"
        ),
        [
            ("spec.headGroupSpec.template", "ray-head", (1, 1), 0),
            ("spec.workerGroupSpecs[0].template", "ray-worker", (4, 4), 0),
        ],
    ),
    "ray cluster that scales": (
        "ray.io/v1",
        "RayCluster",
        (
            f"spec: {{enableInTreeAutoscaling: true, workerGroupSpecs: "
            f"[{{minReplicas: 1, maxReplicas: 4, numOfHosts: 2, template: {POD}}}, {{template: {POD}}}]}}"
        ),
        [
            ("spec.workerGroupSpecs[0].template", "ray-worker", (2, 8), 0),
            ("spec.workerGroupSpecs[1].template", "ray-worker", (0, ENDLESS), 0),
        ],
    ),
    "suspended": (
        "ray.io/v1",
        "RayCluster",
        f"spec: {{workerGroupSpecs: [{{replicas: 2, suspend: true, template: {POD}}}]}}",
        [("spec.workerGroupSpecs[0].template", "ray-worker", (0, 0), 0)],
    ),
    "ray job": (
        "ray.io/v1",
        "RayJob",
        f"spec: {{rayClusterSpec: {{headGroupSpec: {{template: {POD}}}}}, submitterPodTemplate: {POD}}}",
        [
            ("spec.rayClusterSpec.headGroupSpec.template", "ray-head", (1, 1), 0),
            ("spec.submitterPodTemplate", "ray-submitter", (1, 1), 0),
        ],
    ),
    "ray service": (
        "ray.io/v1",
        "RayService",
        (
            f"spec: {{rayClusterConfig: {{headGroupSpec: {{template: {POD}}}, "
            f"workerGroupSpecs: [{{replicas: 2, template: {POD}}}]}}}}"
        ),
        [
            ("spec.rayClusterConfig.headGroupSpec.template", "ray-head", (1, 1), 1),
            ("spec.rayClusterConfig.workerGroupSpecs[0].template", "ray-worker", (2, 2), 2),
        ],
    ),
    "unknown kind": ("acme.io/v1", "Trainer", f"spec: {{template: {POD}}}", [("spec.template", "replica", (1, 1), 0)]),
    "kind without pods": ("v1", "ConfigMap", "data: {a: b}", []),
    "list for a mapping": ("apps/v1", "Deployment", "spec: [template]", []),
    "numbers that are none": (
        "apps/v1",
        "Deployment",
        f"spec: {{replicas: many, template: {POD}}}",
        [("spec.template", "replica", (1, 1), 1)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_templates_when_looked_for_then_path_role_and_numbers_are_known(name: str) -> None:
    version, kind, rest, expected = FOUND[name]
    manifest = only(f"apiVersion: {version}\nkind: {kind}\n{rest}\n")
    found = [(manifest.positions.path(one.path), one.role, one.replicas, one.surge) for one in pod_templates(manifest)]
    assert found == [(path, role, Replicas(*counts), surge) for path, role, counts, surge in expected]


@settings(max_examples=40)
@given(objects())
def test_object_when_it_is_anything_then_templates_are_found_without_a_traceback(found: object) -> None:
    for manifest in read_manifests(json.dumps(found), "m.yaml").manifests:
        for one in pod_templates(manifest):
            assert one.replicas.least <= one.replicas.most
            assert str(one)
