"""The release of NVIDIA's DRA driver beside the device plugin's, from the first plan to the removal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, ResourceQuota, Secret

from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.harness import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.harness import Cluster, Gpukube

PLUGIN, DRIVER = "gpukube-nvidia-device-plugin", "gpukube-dra-driver-nvidia-gpu"
CLAIM = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
Words = tuple["str | Path", ...]


@pytest.fixture
def spec(tmp_path: Path) -> Words:
    """One pool with the plugin, and one with the DRA driver, on one cluster."""
    pool = {"clusters": ["train-aks"], "instanceType": "Standard_NC4as_T4_v3", "nodes": {"count": 1}}
    document = {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "both"},
        "clusters": {
            "train-aks": {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": "train"}
        },
        "pools": [{"name": "plugged", **pool}, {"name": "claims", **pool, "devicePlugin": {"owner": "dra"}}],
    }
    path = tmp_path / "both.yaml"
    path.write_text(yaml.safe_dump(document))
    return ("-f", path)


def releases(cluster: Cluster) -> set[str]:
    """Return gpukube's releases by their records."""
    found = cluster.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm"})
    return {(item.metadata.labels or {})["name"] for item in found if item.metadata}


def resources(text: str) -> list[Any]:
    return [item["address"] for item in json.loads(text)["resource_changes"] if item["type"] == "gpukube_release"]


FORMATS: dict[str, Callable[[str], list[Any]]] = {
    "text": lambda text: [name for name in (PLUGIN, DRIVER) if f"install  release {NAMESPACE}/{name}" in text],
    "markdown": lambda text: [name for name in (PLUGIN, DRIVER) if f"{NAMESPACE}/{name}" in text],
    "github": lambda text: [name for name in (PLUGIN, DRIVER) if f"{NAMESPACE}/{name}" in text],
    "junit": lambda text: [name for name in (PLUGIN, DRIVER) if f'name="release {NAMESPACE}/{name}"' in text],
    "terraform-json": resources,
}


@pytest.mark.parametrize("form", FORMATS)
def test_plan_when_pools_need_both_then_each_format_has_both(gpukube: Gpukube, spec: Words, form: str) -> None:
    planned = gpukube("pool", "plan", *spec, *(("-o", form) if form != "text" else ()))
    assert planned.code == 0, planned.err
    found = FORMATS[form](planned.out)
    assert len(set(found)) == 2, planned.out


def test_run_when_pools_need_both_then_one_run_brings_both_and_nothing_is_left(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    created = gpukube("pool", "create", *spec)
    assert created.code == 0, created.out + created.err
    assert "1 device of gpu.nvidia.com verified on 1 node" in created.out
    assert releases(cluster) == {PLUGIN, DRIVER}
    document = gpukube("pool", "plan", *spec, "-o", "json").json()
    (part,) = document["clusters"]
    assert (document["differs"], part["release"]["action"], part["draRelease"]["action"]) == (False, "none", "none")
    assert (part["draRelease"]["name"], part["draRelease"]["entries"]) == (DRIVER, [])


def test_apply_when_a_run_was_killed_between_the_two_then_the_next_one_does_the_rest(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    """What a run leaves that was killed after the first, and one that was killed in the second."""
    assert gpukube("pool", "create", *spec, "--pool", "plugged").code == 0
    assert releases(cluster) == {PLUGIN}
    assert gpukube("pool", "apply", *spec, "--yes").code == 0
    assert releases(cluster) == {PLUGIN, DRIVER}
    (record,) = cluster.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm", "name": DRIVER})
    assert record.metadata
    assert record.metadata.name
    cluster.client.delete(Secret, record.metadata.name, namespace=NAMESPACE)
    again = gpukube("pool", "apply", *spec, "--yes")
    assert again.code == 0, again.out + again.err
    assert releases(cluster) == {PLUGIN, DRIVER}


def test_diff_when_the_values_of_the_release_are_changed_by_hand_then_each_is_named(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    assert gpukube("pool", "create", *spec).code == 0
    cluster.patch_daemonset(
        {"spec": {"template": {"spec": {"nodeSelector": {"team": "vision"}}}}}, "dra-driver-nvidia-gpu-kubelet-plugin"
    )
    found = gpukube("pool", "plan", "diff", *spec)
    assert found.code != 0
    assert f"upgrade  release {NAMESPACE}/{DRIVER}" in found.out, found.out
    assert "nodeSelector" in found.out
    assert gpukube("pool", "apply", *spec, "--yes").code == 0
    assert gpukube("pool", "plan", "diff", *spec).code == 0


def test_remove_when_claims_have_devices_then_refused_by_name_and_else_what_nothing_needs_goes(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    assert gpukube("pool", "create", *spec).code == 0
    needed = gpukube("release", "remove", *spec, "--yes")
    assert (needed.code, "error[release-needed]" in needed.out) == (1, True)
    deleted = gpukube("pool", "delete", "claims", *spec, "--yes")
    assert f"no pool needs {NAMESPACE}/{DRIVER} now; to remove it:" in " ".join(deleted.out.split()), deleted.out
    claim = CLAIM(
        metadata=ObjectMeta(name="job-1", namespace="default"),
        spec={"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    )
    cluster.client.create(claim)
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "node-1", "device": "gpu-0"}
    allocated = {"status": {"allocation": {"devices": {"results": [result]}}}}
    cluster.client.patch(CLAIM.Status, "job-1", allocated, namespace="default")
    refused = gpukube("release", "remove", *spec, "--yes")
    assert (refused.code, "have devices of gpu.nvidia.com: default/job-1" in refused.out) == (1, True), refused.out
    cluster.client.delete(CLAIM, "job-1", namespace="default")
    removed = gpukube("release", "remove", *spec, "--yes")
    assert removed.code == 0, removed.out + removed.err
    assert releases(cluster) == {PLUGIN}
    assert gpukube("pool", "plan", "diff", *spec, "--pool", "plugged").code == 0


def test_create_when_only_the_second_release_is_not_allowed_then_neither_is_installed(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    daemon.deny_permissions(gpukube.info, "create deviceclasses.resource.k8s.io")
    refused = gpukube("pool", "create", *spec)
    assert refused.code == 5, refused.out
    assert "not allowed in the cluster: create deviceclasses" in refused.out
    assert releases(cluster) == set()


def test_create_when_a_quota_has_room_for_one_release_only_then_neither_is_installed(
    gpukube: Gpukube, cluster: Cluster, spec: Words
) -> None:
    cluster.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    quota = ResourceQuota(
        metadata=ObjectMeta(name="few", namespace=NAMESPACE), spec=ResourceQuotaSpec(hard={"pods": "5"})
    )
    cluster.client.create(quota)
    refused = gpukube("pool", "create", *spec)
    assert "ResourceQuota few allows 5 pods, 0 exist, and 6 more are needed" in refused.out
    assert releases(cluster) == set()
