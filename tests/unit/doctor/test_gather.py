"""What Pods, claims, classes and ResourceQuotas say to the doctor."""

from __future__ import annotations

from gpukube.doctor.gather import claim_facts, class_facts, pod_facts, quota_of


def test_pod_facts_when_containers_ask_then_the_most_of_one_is_kept_beside_the_sum() -> None:
    ask = [{"resources": {"limits": {"nvidia.com/gpu": str(count)}}} for count in (1, 2)]
    pod = {
        "metadata": {"name": "a", "namespace": "team"},
        "spec": {"containers": ask, "initContainers": [{"resources": {"requests": {"nvidia.com/gpu": "3"}}}]},
        "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "too large"},
    }
    facts = pod_facts(pod)
    assert (facts.view.devices, facts.most) == ({"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 3})
    assert (str(facts), facts.reason, facts.message) == ("team/a", "UnexpectedAdmissionError", "too large")


def test_quota_when_read_then_its_limits_and_use_are_named() -> None:
    quota = quota_of(
        {
            "metadata": {"name": "q", "namespace": "gpukube-system"},
            "spec": {"hard": {"pods": "100"}},
            "status": {"used": {"pods": "7"}},
        }
    )
    assert (quota.hard, quota.used) == ({"pods": "100"}, {"pods": "7"})
    assert str(quota) == "ResourceQuota gpukube-system/q"


POD_WITH_CLAIMS = {
    "metadata": {"name": "train-0", "namespace": "team"},
    "spec": {
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
            {"name": "shared", "resourceClaimName": "shared-gpu"},
        ]
    },
    "status": {
        "phase": "Pending",
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-0-gpu-x7"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "train-0-extended-resources-y1"},
    },
}


def test_pod_when_it_claims_devices_then_its_claims_are_those_that_exist_and_those_it_names() -> None:
    facts = pod_facts(POD_WITH_CLAIMS)
    assert facts.claims == ("shared-gpu", "train-0-extended-resources-y1", "train-0-gpu-x7")
    assert (facts.templates, facts.claiming, bool(facts.spec)) == (("one-gpu",), True, True)


def test_claim_when_allocated_then_its_devices_but_not_those_it_only_observes() -> None:
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    results = [result, {**result, "device": "gpu-1", "adminAccess": True}]
    facts = claim_facts(
        {
            "metadata": {"name": "c", "namespace": "team", "deletionTimestamp": "2026-11-01T09:00:00Z"},
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "gpu", "firstAvailable": [{"deviceClassName": "mig.nvidia.com"}]},
                        {"name": "big", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
                    ]
                }
            },
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "u"}],
            },
        }
    )
    assert facts.classes == ("gpu.nvidia.com", "mig.nvidia.com")
    assert facts.devices == (("gpu.nvidia.com", "n1", "gpu-0"),)
    assert (facts.pods, facts.allocated, bool(facts.deleted)) == (("train-0",), True, True)


def test_class_when_helm_installed_it_then_its_release() -> None:
    notes = {"meta.helm.sh/release-name": "mydra", "meta.helm.sh/release-namespace": "dra"}
    facts = class_facts(
        {
            "metadata": {"name": "gpu.nvidia.com", "annotations": notes},
            "spec": {"extendedResourceName": "nvidia.com/gpu"},
        }
    )
    assert (facts.release, facts.extended) == (("dra", "mydra"), "nvidia.com/gpu")
