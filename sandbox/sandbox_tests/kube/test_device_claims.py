"""Claims of devices in an emulated cluster: allocated, shared, prepared, and given back.

The devices are network cards, whose driver DRANET needs no chart. Which devices a pod gets is compared with a real
scheduler in tests/wire/cluster/test_real_claims.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox.kube.controllers.deviceclaims import FINALIZER
from gpukube_sandbox.kube.scheduler.devices import results_of
from gpukube_sandbox.kube.store.objects import meta, name_of, spec, status
from sandbox_tests.kube.test_fabric import add, daemonset
from sandbox_tests.kube.test_life import Bench, life
from sandbox_tests.kube.test_workloads import messages

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

DRANET = daemonset("dranet", "registry.k8s.io/networking/dranet:v1.0.0")
CLASS: JsonObject = {
    "metadata": {"name": "nic"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'dra.net'"}}]},
}
GENERATED = "resource.kubernetes.io/pod-claim-name"
NEVER_HELPS = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def cards(count: int = 1, **more: Any) -> JsonObject:  # noqa: ANN401 - fields of a request
    return {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": "nic", "count": count, **more}}]}}


def pod(name: str, *, template: str = "", claim: str = "", seconds: str = "infinity", node: str = "") -> JsonObject:
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    container = {"name": "c", "image": "i", "command": ["sleep", seconds], "resources": {"claims": [{"name": "nic"}]}}
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "nic", **source}],
            "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
        },
    }


async def prepared(bench: Bench, *nodes: str, runs: bool = True) -> None:
    """Nodes with two cards each, whose driver runs or only did, a class, and a template for one card."""
    for node in nodes or ("n1",):
        await add(bench, node, {"efa": 2})
    bench.put("deviceclasses", CLASS)
    bench.put("resourceclaimtemplates", {"metadata": {"name": "one"}, "spec": {"spec": cards()}})
    bench.put("daemonsets", DRANET)
    await bench.wait(60)
    if not runs:
        kept = bench.all_of("resourceslices")
        bench.cluster.store.delete(bench.cluster.store.kinds["apps", "daemonsets"], "default", "dranet")
        await bench.wait(60)
        for item in kept:
            bench.put("resourceslices", {"metadata": {"name": name_of(item)}, "spec": spec(item)})


def claim_of(bench: Bench, name: str) -> JsonObject:
    return next(claim for claim in bench.all_of("resourceclaims") if name_of(claim).startswith(name))


def phase(bench: Bench, name: str) -> str:
    return str(status(bench.get("pods", name))["phase"])


def reason(bench: Bench, name: str) -> str:
    found = status(bench.get("pods", name))["conditions"]
    return next(str(one.get("message", "")) for one in found if one["type"] == "PodScheduled")


def test_pod_when_it_names_a_template_then_it_runs_with_a_claim_of_its_own() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        bench.put("pods", pod("a", template="one"))
        await bench.wait(20)
        (claim,) = bench.all_of("resourceclaims")
        found = bench.get("pods", "a")
        assert phase(bench, "a") == "Running"
        assert name_of(claim).startswith("a-nic-")
        assert status(found)["resourceClaimStatuses"] == [{"name": "nic", "resourceClaimName": name_of(claim)}]
        assert meta(claim)["annotations"] == {GENERATED: "nic"}
        assert meta(claim)["finalizers"] == [FINALIZER]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": meta(found)["uid"], "controller": True}
        assert meta(claim)["ownerReferences"] == [owner]
        assert status(claim)["reservedFor"] == [{"resource": "pods", "name": "a", "uid": meta(found)["uid"]}]
        (result,) = results_of(claim)
        assert (result["request"], result["driver"], result["pool"]) == ("nic", "dra.net", "n1")
        (term,) = status(claim)["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}

    life(story)


def test_pod_when_another_ends_then_it_gets_the_device_and_the_claim_is_gone() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        for name in ("a", "b"):
            bench.put("pods", pod(name, template="one", seconds="60"))
        bench.put("pods", pod("late", template="one"))
        await bench.wait(20)
        waiting = [name for name in ("a", "b", "late") if phase(bench, name) == "Pending"]
        assert len(waiting) == 1
        refusal = f"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, {NEVER_HELPS}"
        assert reason(bench, waiting[0]) == refusal
        assert messages(bench, "FailedScheduling") == {refusal}
        await bench.wait(80)
        assert phase(bench, waiting[0]) != "Pending"
        assert all(not name_of(claim).startswith(("a-", "b-")) for claim in bench.all_of("resourceclaims")) or (
            waiting[0] != "late"
        )

    life(story)


def test_claim_when_its_pod_is_deleted_then_it_goes_with_the_pod() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        bench.put("pods", pod("a", template="one"))
        await bench.wait(20)
        bench.cluster.store.delete(bench.cluster.store.kinds["", "pods"], "default", "a")
        await bench.wait(60)
        assert bench.all_of("resourceclaims") == []

    life(story)


def test_claim_when_pods_share_it_then_it_is_kept_until_the_last_of_them_is_gone() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench, "n1", "n2")
        bench.put("resourceclaims", {"metadata": {"name": "shared"}, "spec": cards(2)})
        for name, seconds in (("a", "30"), ("b", "120")):
            bench.put("pods", pod(name, claim="shared", seconds=seconds))
        await bench.wait(20)
        nodes = {spec(bench.get("pods", name))["nodeName"] for name in ("a", "b")}
        assert len(nodes) == 1
        assert {one["name"] for one in status(bench.get("resourceclaims", "shared"))["reservedFor"]} == {"a", "b"}
        await bench.wait(40)
        assert [one["name"] for one in status(bench.get("resourceclaims", "shared"))["reservedFor"]] == ["b"]
        await bench.wait(100)
        claim = bench.get("resourceclaims", "shared")
        assert status(claim) == {}
        assert not meta(claim).get("finalizers")

    life(story)


def test_claim_when_it_is_deleted_in_use_then_it_stays_until_its_pod_is_gone() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        bench.put("resourceclaims", {"metadata": {"name": "mine"}, "spec": cards()})
        bench.put("pods", pod("a", claim="mine", seconds="60"))
        await bench.wait(20)
        bench.cluster.store.delete(bench.cluster.store.kinds["resource.k8s.io", "resourceclaims"], "default", "mine")
        await bench.wait(10)
        assert meta(bench.get("resourceclaims", "mine"))["deletionTimestamp"]
        bench.put("pods", pod("late", claim="mine"))
        await bench.wait(10)
        assert not status(bench.get("pods", "late")).get("conditions"), "the scheduler does not try it"
        await bench.wait(60)
        assert bench.all_of("resourceclaims") == []

    life(story)


def test_pod_when_its_template_comes_late_then_an_event_tells_what_is_missing() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        bench.put("pods", pod("a", template="two"))
        await bench.wait(20)
        missing = 'resource claim template "two": resourceclaimtemplate.resource.k8s.io "two" not found'
        assert messages(bench, "FailedResourceClaimCreation") == {f"PodResourceClaim nic: {missing}"}
        assert not status(bench.get("pods", "a")).get("conditions")
        bench.put("resourceclaimtemplates", {"metadata": {"name": "two"}, "spec": {"spec": cards(2)}})
        await bench.wait(20)
        assert phase(bench, "a") == "Running"
        assert len(list(results_of(claim_of(bench, "a-nic-")))) == 2

    life(story)


def test_pod_when_the_driver_is_not_registered_then_it_waits_for_it() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench, runs=False)
        bench.put("pods", pod("a", template="one"))
        await bench.wait(20)
        failed = "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver dra.net is not registered"
        assert messages(bench, "FailedPrepareDynamicResources") == {failed}
        (container,) = status(bench.get("pods", "a"))["containerStatuses"]
        assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
        bench.put("daemonsets", DRANET)
        await bench.wait(20)
        assert phase(bench, "a") == "Running"

    life(story)


def test_claim_when_nobody_uses_it_and_it_is_on_another_node_then_it_is_allocated_anew() -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench, "n1", "n2")
        bench.put("resourceclaims", {"metadata": {"name": "mine"}, "spec": cards()})
        bench.put("pods", pod("a", claim="mine", node="n1"))
        await bench.wait(20)
        claim = bench.get("resourceclaims", "mine")
        bench.cluster.store.update(
            bench.cluster.store.kinds["resource.k8s.io", "resourceclaims"],
            {**claim, "status": {"allocation": status(claim)["allocation"]}},
            part="status",
        )
        bench.cluster.store.delete(bench.cluster.store.kinds["", "pods"], "default", "a", grace_s=0)
        bench.put("pods", pod("b", claim="mine", node="n2"))
        await bench.wait(20)
        assert phase(bench, "b") == "Running"
        assert [result["pool"] for result in results_of(bench.get("resourceclaims", "mine"))] == ["n2"]

    life(story)


def test_pod_when_the_cluster_is_upgraded_then_its_claims_and_its_class_s_resource_are_served() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", {"efa": 2})
        bench.put("daemonsets", DRANET)
        await bench.wait(60)
        assert bench.all_of("resourceslices") == []
        bench.cluster.kubernetes_version = "1.36.2"
        named = {**spec(CLASS), "extendedResourceName": "example.com/nic"}
        bench.put("deviceclasses", {"metadata": {"name": "nic"}, "spec": named})
        bench.put("resourceclaimtemplates", {"metadata": {"name": "one"}, "spec": {"spec": cards()}})
        bench.put("pods", pod("a", template="one"))
        container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/nic": "1"}}}
        bench.put("pods", {"metadata": {"name": "b"}, "spec": {"containers": [container]}})
        await bench.wait(30)
        assert (phase(bench, "a"), phase(bench, "b")) == ("Running", "Running")

    life(story, "1.33.5")


@pytest.mark.parametrize("version", ["1.35.7", "1.36.2"])
def test_pod_when_it_requests_a_resource_that_a_class_serves_then_it_gets_devices_from_1_36(version: str) -> None:
    async def story(bench: Bench) -> None:
        await prepared(bench)
        named = {**spec(CLASS), "extendedResourceName": "example.com/nic"}
        bench.put("deviceclasses", {"metadata": {"name": "by-name"}, "spec": named})
        container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/nic": "2"}}}
        bench.put("pods", {"metadata": {"name": "a"}, "spec": {"containers": [container]}})
        await bench.wait(20)
        if version < "1.36":
            refusal = f"1 Insufficient example.com/nic. no new claims to deallocate, {NEVER_HELPS}"
            assert reason(bench, "a") == f"0/1 nodes are available: {refusal}"
            return
        assert phase(bench, "a") == "Running"
        claim = claim_of(bench, "a-extended-resources-")
        assert meta(claim)["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        exactly = {"deviceClassName": "by-name", "allocationMode": "ExactCount", "count": 2}
        assert spec(claim)["devices"]["requests"] == [{"name": "container-0-request-0", "exactly": exactly}]
        mapping = {
            "containerName": "c",
            "resourceName": "example.com/nic",
            "requestName": "container-0-request-0",
        }
        used = {"requestMappings": [mapping], "resourceClaimName": name_of(claim)}
        assert status(bench.get("pods", "a"))["extendedResourceClaimStatus"] == used
        assert len(list(results_of(claim))) == 2
        assert "example.com/nic" not in status(bench.get("nodes", "n1"))["allocatable"]
        bench.put("pods", {"metadata": {"name": "b"}, "spec": {"containers": [container]}})
        await bench.wait(20)
        refusal = f"1 cannot allocate all claims. still not schedulable, {NEVER_HELPS}"
        assert reason(bench, "b") == f"0/1 nodes are available: {refusal}"

    life(story, version)
