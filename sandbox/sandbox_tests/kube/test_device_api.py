"""The API of dynamic resource allocation: which version serves what of it, and what clients see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from sandbox_tests.kube.conftest import TOKEN
from sandbox_tests.kube.test_real_api import Emulated

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

GROUP = "/apis/resource.k8s.io/v1"
CLASS = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
RESULT = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


def server(version: str = "1.36.2") -> Emulated:
    emulated = Emulated()
    emulated.cluster = KubeCluster("c", ScaledClock(1.0), TOKEN, version)
    emulated._app = make_app(emulated.cluster)
    return emulated


def slice_of(node: str, driver: str = "gpu.nvidia.com", **device: Any) -> JsonObject:  # noqa: ANN401 - fields
    spec = {"driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": {**spec, "devices": [{"name": "gpu-0", **device}]}}


def test_group_when_the_cluster_is_older_than_1_34_then_it_does_not_exist_until_the_upgrade() -> None:
    old = server("1.33.5")

    assert old.request("GET", f"{GROUP}/resourceslices").status_code == 404
    groups = [group["name"] for group in old.request("GET", "/apis").json()["groups"]]
    assert "resource.k8s.io" not in groups

    old.cluster.kubernetes_version = "1.34.1-gke.1829001"

    assert old.request("GET", f"{GROUP}/resourceslices").json()["items"] == []


def test_pod_when_the_cluster_is_older_than_1_34_then_its_claims_are_dropped() -> None:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resourceClaims": claims}}

    old, new = (
        server(version).request("POST", "/api/v1/namespaces/default/pods", json=body).json()["spec"]
        for version in ("1.33.5", "1.34.2")
    )

    assert (old.get("resourceClaims"), old["containers"][0]["resources"]) == (None, {})
    assert (new["resourceClaims"], new["containers"][0]["resources"]) == (claims, {"claims": [{"name": "gpu"}]})


@pytest.mark.parametrize(("version", "kept"), [("1.34.2", False), ("1.35.7", False), ("1.36.2", True)])
def test_class_when_its_field_s_gate_is_off_then_a_dry_run_shows_it_dropped(version: str, *, kept: bool) -> None:
    made = server(version).request("POST", f"{GROUP}/deviceclasses?dryRun=All", json=CLASS)

    assert made.status_code == 201
    assert made.json()["spec"].get("extendedResourceName") == ("nvidia.com/gpu" if kept else None)


def test_class_when_it_has_the_field_from_a_newer_version_then_it_keeps_it() -> None:
    cluster = server()
    cluster.request("POST", f"{GROUP}/deviceclasses", json=CLASS).raise_for_status()

    cluster.cluster.kubernetes_version = "1.35.7"
    change = {"metadata": {"labels": {"a": "b"}}}
    kept = cluster.request("PATCH", f"{GROUP}/deviceclasses/gpu.nvidia.com", json=change, headers=MERGE).json()

    assert kept["spec"]["extendedResourceName"] == "nvidia.com/gpu"


def test_slice_when_taints_are_not_known_then_they_are_dropped() -> None:
    taint = {"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}

    old, new = (
        server(version).request("POST", f"{GROUP}/resourceslices", json=slice_of("n1", taints=[taint])).json()
        for version in ("1.35.7", "1.36.2")
    )

    assert "taints" not in old["spec"]["devices"][0]
    (found,) = new["spec"]["devices"][0]["taints"]
    assert found["timeAdded"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["n1-dra.net", "n1-gpu.nvidia.com"]),
        ("spec.driver=gpu.nvidia.com,spec.nodeName=n2", ["n2-gpu.nvidia.com"]),
        ("spec.driver!=gpu.nvidia.com", ["n1-dra.net"]),
    ],
)
def test_slices_when_selected_by_node_and_driver_then_only_those_are_listed(selector: str, expected: list[str]) -> None:
    cluster = server()
    for item in (slice_of("n1"), slice_of("n2"), slice_of("n1", "dra.net")):
        cluster.request("POST", f"{GROUP}/resourceslices", json=item).raise_for_status()

    listed = cluster.request("GET", f"{GROUP}/resourceslices?fieldSelector={selector}").json()["items"]

    assert [item["metadata"]["name"] for item in listed] == expected


def test_claim_when_listed_then_its_state_is_kubectl_s() -> None:
    cluster = server()
    made = {"metadata": {"name": "c", "finalizers": ["resource.kubernetes.io/delete-protection"]}, "spec": CLAIM}
    cluster.request("POST", CLAIMS, json=made).raise_for_status()
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    def state() -> str:
        return str(cluster.request("GET", CLAIMS, headers=table).json()["rows"][0]["cells"][1])

    seen = [state()]
    for status in (
        {"allocation": {"devices": {"results": [RESULT]}}},
        {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
    ):
        cluster.request("PATCH", f"{CLAIMS}/c/status", json={"status": status}, headers=MERGE).raise_for_status()
        seen.append(state())
    cluster.request("DELETE", f"{CLAIMS}/c").raise_for_status()
    seen.append(state())

    assert seen == ["pending", "allocated", "allocated,reserved", "deleted,allocated,reserved"]


def test_claim_when_two_managers_apply_consumers_then_each_keeps_its_own() -> None:
    cluster = server()
    cluster.request("POST", CLAIMS, json={"metadata": {"name": "c"}, "spec": CLAIM}).raise_for_status()
    base = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    allocation = {"allocation": {"devices": {"results": [RESULT]}}}
    cluster.request("PATCH", f"{CLAIMS}/c/status", json={"status": allocation}, headers=MERGE).raise_for_status()
    for name in ("one", "two"):
        status = {"reservedFor": [{"resource": "pods", "name": name, "uid": name}]}
        path = f"{CLAIMS}/c/status?fieldManager={name}"
        cluster.request("PATCH", path, json={**base, "status": status}, headers=APPLY).raise_for_status()

    found = cluster.request("GET", f"{CLAIMS}/c").json()

    assert [item["name"] for item in found["status"]["reservedFor"]] == ["one", "two"]


@pytest.mark.parametrize(("labels", "code"), [({}, 422), ({"resource.kubernetes.io/admin-access": "true"}, 201)])
def test_claim_when_it_has_admin_access_then_the_namespace_must_allow_it(labels: dict[str, str], code: int) -> None:
    cluster = server()
    cluster.request("POST", "/api/v1/namespaces", json={"metadata": {"name": "ops", "labels": labels}})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "adminAccess": True}}

    made = cluster.request(
        "POST",
        f"{GROUP}/namespaces/ops/resourceclaims",
        json={"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}},
    )

    assert made.status_code == code
    assert ("admin access to devices requires" in made.text) is (code == 422)
