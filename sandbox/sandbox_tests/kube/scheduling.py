"""Generated nodes and pods, on which the emulated scheduler and a real one are to agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TAINTS = (
    {"key": GPU, "value": "present", "effect": "NoSchedule"},
    {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "soft", "value": "x", "effect": "PreferNoSchedule"},
)
TOLERATIONS = (
    {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
    {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    {"key": "sku", "value": "cpu"},
    {"key": "maintenance", "operator": "Exists"},
    {"operator": "Exists"},
)
CLASSES = {"polite": (1000, "Never"), "rude": (1000, "PreemptLowerPriority"), "low": (-10, "PreemptLowerPriority")}
APPS = ("web", "train", "db")


def some(random: Random, choices: tuple[Any, ...], chance: float) -> list[Any]:
    return [item for item in choices if random.random() < chance]


def node(random: Random, name: str) -> dict[str, Any]:
    marks = {HOST: name, "generation": str(random.randint(1, 5))}
    if random.random() < 0.85:
        marks[ZONE] = random.choice("abc")
    if random.random() < 0.5:
        marks["pool"] = random.choice(("gpu", "cpu"))
    room = {"cpu": f"{random.choice((1000, 3920, 7900))}m", "memory": random.choice(("4Gi", "15Gi"))}
    room |= {"pods": str(random.choice((3, 8, 110))), "ephemeral-storage": random.choice(("2Gi", "100Gi"))}
    if random.random() < 0.5:
        room[random.choice((GPU, SLICE))] = str(random.choice((1, 4, 8)))
    spec: dict[str, Any] = {"taints": some(random, TAINTS, 0.2)}
    if random.random() < 0.1:
        spec["unschedulable"] = True
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": marks}, "spec": spec, "status": status}


def pod(random: Random, name: str) -> dict[str, Any]:
    limits: dict[str, str] = {}
    if random.random() < 0.4:
        limits[random.choice((GPU, GPU, SLICE))] = str(random.choice((0, 1, 2, 4, 16)))
    requests = {"cpu": random.choice(("0", "100m", "1", "2500m", "9"))}
    requests |= {"memory": random.choice(("0", "512Mi", "6Gi"))}
    requests |= {"ephemeral-storage": "3Gi"} if random.random() < 0.2 else {}
    container: dict[str, Any] = {"name": "main", "image": "i"}
    container["resources"] = {"limits": limits, "requests": {**requests, **limits}}
    if random.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: dict[str, Any] = {"containers": [container], "tolerations": some(random, TOLERATIONS, 0.25)}
    if random.random() < 0.2:
        asked = {"requests": {"cpu": random.choice(("3", "50m"))}}
        stays = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
        spec["initContainers"] = [{"name": "before", "image": "i", "resources": asked, **stays}]
    if random.random() < 0.2:
        spec["nodeSelector"] = {"pool": random.choice(("gpu", "cpu"))}
    if random.random() < 0.25:
        spec["topologySpreadConstraints"] = [spread(random)]
    affinity: dict[str, Any] = {}
    if random.random() < 0.3:
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": some_terms(random)}}
    for kind in ("podAffinity", "podAntiAffinity"):
        if random.random() < 0.15:
            affinity[kind] = {REQUIRED: [company(random)]}
    spec["affinity"] = affinity
    if random.random() < 0.2:
        spec["priorityClassName"] = random.choice(tuple(CLASSES))
    marks = {"app": random.choice(APPS), "tier": random.choice("xy")}
    return {"metadata": {"name": name, "namespace": "default", "labels": marks}, "spec": spec}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def some_terms(random: Random) -> list[dict[str, Any]]:
    tests: tuple[dict[str, Any], ...] = (
        {"key": "pool", "operator": "In", "values": ["gpu", "none"]},
        {"key": "pool", "operator": "NotIn", "values": ["cpu"]},
        {"key": "pool", "operator": "Exists"},
        {"key": ZONE, "operator": "DoesNotExist"},
        {"key": "generation", "operator": "Gt", "values": ["2"]},
        {"key": "generation", "operator": "Lt", "values": ["4"]},
    )
    found = [{"matchExpressions": [random.choice(tests) for _ in range(random.randint(1, 2))]} for _ in range(2)]
    if random.random() < 0.3:
        named = {"key": "metadata.name", "operator": "In", "values": [f"node-{random.randint(0, 14)}"]}
        return [{"matchFields": [named]}]
    return found[: random.randint(1, 2)]


def spread(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"maxSkew": random.randint(1, 2), "topologyKey": random.choice((ZONE, HOST))}
    found["whenUnsatisfiable"] = random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    found["labelSelector"] = {"matchLabels": {"app": random.choice(APPS)}}
    if found["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
        found["minDomains"] = random.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if random.random() < 0.3:
            found[policy] = random.choice(("Honor", "Ignore"))
    if random.random() < 0.2:
        found["matchLabelKeys"] = ["tier"]
    return found


def company(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"topologyKey": random.choice((ZONE, HOST))}
    found["labelSelector"] = {"matchLabels": {"app": random.choice(APPS)}}
    if random.random() < 0.3:
        found["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "none"}}))
    return found
