"""What a Pod and a ResourceQuota say to the doctor."""

from __future__ import annotations

from gpukube.doctor.gather import pod_facts, quota_of


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
