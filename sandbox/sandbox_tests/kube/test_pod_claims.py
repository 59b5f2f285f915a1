"""Pods that claim volumes and devices: who waits, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.kube.store.objects import conditions, name_of, spec, status
from sandbox_tests.kube.test_life import Bench, life
from sandbox_tests.kube.test_workloads import EVER, messages, pod, template

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
HOPELESS = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def mounting(name: str) -> JsonObject:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


# What kube-scheduler 1.36.2 says of the same pods on one node.
HELD: dict[str, tuple[JsonObject, str]] = {
    "no such volume claim": (mounting("nope"), 'persistentvolumeclaim "nope" not found. not found'),
    "a claim of a class that is not there": (
        mounting("stuck"),
        "pod has unbound immediate PersistentVolumeClaims. not found",
    ),
    "no such claim of devices": ({"resourceClaims": [{"name": "g", "resourceClaimName": "nope"}]}, ""),
    "no such template": ({"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "nope"}]}, ""),
    "no such class of devices": (
        {"resourceClaims": [{"name": "g", "resourceClaimName": "unknown"}]},
        f"request gpu: device class nope does not exist. no new claims to deallocate, {HOPELESS}",
    ),
    "no devices": (
        {"resourceClaims": [{"name": "g", "resourceClaimName": "known"}]},
        f"1 cannot allocate all claims. still not schedulable, {HOPELESS}",
    ),
}


@pytest.mark.parametrize("case", HELD)
def test_pod_when_what_it_claims_is_not_there_then_it_is_held_as_by_the_real_scheduler(case: str) -> None:
    more, words = HELD[case]

    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        bench.put("persistentvolumeclaims", {"metadata": {"name": "stuck"}, "spec": SIZE | {"storageClassName": "no"}})
        bench.put("deviceclasses", {"metadata": {"name": "gpu.example.com"}, "spec": {}})
        bench.put("resourceclaims", {"metadata": {"name": "known"}, "spec": DEVICES})
        other = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "nope"}}]}}
        bench.put("resourceclaims", {"metadata": {"name": "unknown"}, "spec": other})
        bench.put("pods", pod("one", template(*EVER, **more)))
        await bench.wait(30)
        found = bench.get("pods", "one")
        assert not spec(found).get("nodeName")
        assert messages(bench, "FailedScheduling") == ({f"0/1 nodes are available: {words}"} if words else set())
        assert conditions(found) == ({"PodScheduled": "False"} if words else {})
        assert messages(bench, "ProvisioningFailed") == {'storageclass.storage.k8s.io "no" not found'}

    life(story)


@pytest.mark.parametrize("named", [{}, {"storageClassName": "fast"}], ids=["default class", "own class"])
def test_pod_when_its_volume_claims_can_be_bound_then_it_runs(named: JsonObject) -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        late = {"name": "late", "ephemeral": {"volumeClaimTemplate": {"spec": SIZE | named}}}
        volumes = [*mounting("data")["volumes"], late]
        bench.put("pods", pod("one", template(*EVER, volumes=volumes)))
        await bench.wait(10)
        assert status(bench.get("pods", "one"))["phase"] == "Pending"
        bench.put("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": SIZE | named})
        bench.put("storageclasses", {"metadata": {"name": "fast"}, "provisioner": "disk.example.com"})
        await bench.wait(20)
        assert status(bench.get("pods", "one"))["phase"] == "Running"
        claims = {name_of(item): spec(item)["volumeName"] for item in bench.all_of("persistentvolumeclaims")}
        assert sorted(claims) == ["data", "one-late"]
        assert sorted(claims.values()) == [name_of(item) for item in bench.all_of("persistentvolumes")]

    life(story)
