"""Generated workloads with disruption budgets, and whether what was foretold of their drain is what the drain met.

In scope: generating, comparing. Out of scope: clusters (draining), the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.cluster.drain.judge import blocked_gangs
from tests.draining import pod_spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from gpukube.cluster.drain.judge import Verdict
    from gpukube_sandbox.kube.store.objects import JsonObject

RULES: tuple[JsonObject, ...] = (
    {"maxUnavailable": 1}, {"maxUnavailable": 2}, {"maxUnavailable": 0}, {"maxUnavailable": "0%"},
    {"maxUnavailable": "50%"}, {"minAvailable": 0}, {"minAvailable": 1}, {"minAvailable": 2}, {"minAvailable": 9},
    {"minAvailable": "50%"}, {"minAvailable": "100%"}, {"minAvailable": "1%"},
)  # fmt: skip
SIGNS: tuple[JsonObject, ...] = (
    {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    {"labels": {"cluster.x-k8s.io/drain": "skip"}},
)


@dataclass(frozen=True)
class Workload:
    """One controller, or one bare pod, with its budgets.

    Attributes:
        pods: How many pods of it are to run.
    """

    plural: str
    obj: JsonObject
    budgets: tuple[JsonObject, ...]
    pods: int


def workloads(random: Random, pods: int) -> Iterator[Workload]:
    """Generate workloads that together have at least so many pods."""
    number = 0
    while pods > 0:
        made = _workload(random, f"w{number}")
        yield made
        pods -= made.pods
        number += 1


def _workload(random: Random, name: str) -> Workload:
    kind = random.choice(["deployments", "deployments", "statefulsets", "jobs", "pods"])
    replicas = 1 if kind == "pods" else random.randint(1, 4)
    # Of a pod that ends again and again: it runs, and is never ready.
    spec = pod_spec(terminationGracePeriodSeconds=random.choice([0, 5, 30]))
    if kind == "deployments" and random.random() < 0.2:
        spec["containers"][0]["command"] = ["nvidia-smi"]
    if random.random() < 0.1:
        spec["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    meta: JsonObject = {"labels": {"app": name}}
    for sign in SIGNS if random.random() < 0.15 else ():
        if random.random() < 0.5:
            meta = {"labels": {**meta["labels"], **sign.get("labels", {})}, "annotations": sign.get("annotations", {})}
    return Workload(
        kind, _controller(kind, name, replicas, {"metadata": meta, "spec": spec}), _budgets(random, name), replicas
    )


def _controller(kind: str, name: str, replicas: int, template: JsonObject) -> JsonObject:
    named: JsonObject = {"metadata": {"name": name, "namespace": "default"}}
    if kind == "pods":
        return {"metadata": {**template["metadata"], **named["metadata"]}, "spec": template["spec"]}
    if kind == "jobs":
        template["spec"]["restartPolicy"] = "Never"
        return {**named, "spec": {"parallelism": replicas, "completions": replicas, "template": template}}
    rules: JsonObject = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "statefulsets":
        rules |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {**named, "spec": rules}


def _budgets(random: Random, name: str) -> tuple[JsonObject, ...]:
    count = random.choice([0, 0, 1, 1, 1, 1, 1, 2])
    found = []
    for number in range(count):
        rule: JsonObject = {"selector": {"matchLabels": {"app": name}}, **random.choice(RULES)}
        if random.random() < 0.3:
            rule["unhealthyPodEvictionPolicy"] = random.choice(["AlwaysAllow", "IfHealthyBudget"])
        found.append({"metadata": {"name": f"{name}-{number}", "namespace": "default"}, "spec": rule})
    return tuple(found)


def differences(foretold: Sequence[Verdict], left: Iterable[str], refused: Iterable[tuple[str, str]]) -> list[str]:
    """Compare what was foretold of pods with what a drain has met.

    Args:
        foretold: Before the drain, with --allow-disruption.
        left: Uids of pods that are still there at its end.
        refused: (namespace/name, refusal) of all evictions that were refused.
    """
    remaining, kept = set(left), blocked_gangs(foretold)
    answers: dict[str, set[str]] = {}
    for name, refusal in refused:
        answers.setdefault(name, set()).add(refusal)
    found = []
    for verdict in foretold:
        pod, met = verdict.pod, answers.get(str(verdict.pod), set())
        stayed = pod.uid in remaining
        match verdict.way:
            case "free" if met or stayed:
                found.append(f"{pod}: foretold free, met {met or 'no answer'}{', stayed' if stayed else ''}")
            case "never" if not stayed:
                found.append(f"{pod}: foretold never ({verdict.why}), but it left")
            case "never" if pod.gang not in kept and not met:
                found.append(f"{pod}: foretold never ({verdict.why}), and was not refused")
            case "never" if (len(verdict.budgets) > 1) != ("two-budgets" in met) and met:
                found.append(f"{pod}: foretold never ({verdict.why}), met {met}")
            case "budget" if stayed and pod.gang not in kept:
                found.append(f"{pod}: foretold in turns ({verdict.budgets}), met {met}, stayed")
            case "waits" if not met and pod.gang not in kept:
                found.append(f"{pod}: foretold to wait ({verdict.why}), and did not")
    return found
