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


def test_quota_when_scoped_to_priority_classes_then_they_are_named() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    quota = quota_of(
        {
            "metadata": {"name": "q", "namespace": "gpukube-system"},
            "spec": {"hard": {"pods": "100"}, "scopeSelector": {"matchExpressions": [scope]}},
            "status": {"used": {"pods": "7"}},
        }
    )
    assert (quota.hard, quota.used, quota.priority_classes) == (
        {"pods": "100"},
        {"pods": "7"},
        ("system-node-critical",),
    )
    assert str(quota) == "ResourceQuota gpukube-system/q"
