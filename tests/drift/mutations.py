"""The catalog of what somebody may change, each with what a plan must find of it: no more, no less.

In scope: mutations of pool APIs and of clusters, and how each is undone. Out of scope: drawing them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sandbox_tests.aks.arm import make_sdk, pool_of
from tests.drift.world import CONFIG_MAP, PLUGIN, POOLS, Wire, World, edited_values

if TYPE_CHECKING:
    from collections.abc import Callable

GFD = f"{PLUGIN}-gpu-feature-discovery"
WORKER = f"{PLUGIN}-node-feature-discovery-worker"
MAIN = "nvidia-device-plugin-ctr"
POD = "spec.template.spec"
WITH_RELEASE = ("aks", "eks")


@dataclass(frozen=True)
class Done:
    """A mutation that was made.

    Attributes:
        found: What a plan must say of it; {} for what is nobody's drift.
        undo: Takes it back; pools are reset together, so theirs does nothing.
    """

    found: frozenset[str]
    undo: Callable[[], None]


@dataclass(frozen=True)
class Mutation:
    """One change by another hand.

    Attributes:
        slot: What it touches: two of one slot do not go together.
        make: Makes it; changes of a pool's API are sent by `World.settle`.
        in_pool: Whether it is one of a pool's API, which hands labels and taints to its nodes: those go first.
    """

    name: str
    slot: str
    make: Callable[[World], Done]
    in_pool: bool = False


def nothing() -> None:
    """Undo what the common reset undoes."""


# The pools' APIs


def labels_of(cloud: str, wire: Wire) -> dict[str, str]:
    found = {"aks": lambda: wire["nodeLabels"], "eks": lambda: wire["labels"], "gke": lambda: wire["config"]["labels"]}
    labels: dict[str, str] = found[cloud]()
    return labels


def pool_label(key: str, value: str | None, cloud: str, world: World) -> Done:
    labels = labels_of(cloud, world.wire[cloud])
    if value is None:
        del labels[key]
    else:
        labels[key] = value
    return Done(frozenset({f"{cloud}: {POOLS[cloud]} labels[{key}]"}), nothing)


def pool_taint(cloud: str, world: World) -> Done:
    wire = world.wire[cloud]
    taint = {"key": "mine", "value": "yes", "effect": "NO_SCHEDULE"}
    if cloud == "aks":
        wire["nodeTaints"].append("mine=yes:NoSchedule")
    else:
        (wire if cloud == "eks" else wire["config"])["taints"].append(taint)
    return Done(frozenset({f"{cloud}: {POOLS[cloud]} taints"}), nothing)


def pool_fields(fields: tuple[str, ...], changes: Wire, cloud: str, world: World) -> Done:
    for key, value in changes.items():
        old = world.wire[cloud].get(key)
        world.wire[cloud][key] = {**old, **value} if isinstance(old, dict) else value
    return Done(frozenset(f"{cloud}: {POOLS[cloud]} {name}" for name in fields), nothing)


BOUNDS = ("nodes.autoscaling.max", "nodes.autoscaling.min", "nodes.count")
SIZES: dict[str, tuple[str, tuple[str, ...], Wire]] = {
    "count": ("aks", ("nodes.count",), {"count": 3}),
    "autoscaling": ("aks", BOUNDS, {"enableAutoScaling": True, "minCount": 1, "maxCount": 4}),
    "bounds": ("eks", BOUNDS, {"scalingConfig": {"maxSize": 5}}),
    "all bounds": ("eks", ("nodes.count",), {"scalingConfig": {"minSize": 3, "maxSize": 3, "desiredSize": 3}}),
}
TAGS: dict[str, Wire] = {"tag changed": {"tags": {"cost": "play"}}, "tag of others": {"tags": {"department": "7"}}}


def foreign_pool(world: World) -> Done:
    """Somebody's own pool of CPUs beside ours, made with the cloud's SDK."""
    sdk = make_sdk(world.info)
    machine = pool_of({"count": 1, "vmSize": "Standard_D4s_v5", "mode": "User"})
    sdk.agent_pools.begin_create_or_update("ml", "drift-aks", "theirs", machine).result()

    def undo() -> None:
        sdk.agent_pools.begin_delete("ml", "drift-aks", "theirs").result()
        sdk.close()

    return Done(frozenset(), undo)


# Nodes


def node_label(key: str, value: str | None, at: int, cloud: str, world: World) -> Done:
    name = world.nodes(cloud)[at]
    old = world.node(cloud, name)["metadata"]["labels"][key]
    patch = partial(world.patch_node, cloud, name)
    patch({"metadata": {"labels": {key: value}}})
    undo = partial(patch, {"metadata": {"labels": {key: old}}})
    return Done(frozenset({f"{cloud}: {name} labels[{key}]"}), undo)


def node_taint(key: str, cloud: str, world: World) -> Done:
    name = world.nodes(cloud)[0]
    taints = world.node(cloud, name)["spec"]["taints"]
    patch = partial(world.patch_node, cloud, name)
    patch({"spec": {"taints": [taint for taint in taints if taint["key"] != key]}})
    return Done(frozenset({f"{cloud}: {name} taints[{key}:NoSchedule]"}), partial(patch, {"spec": {"taints": taints}}))


def node_noise(cloud: str, world: World) -> Done:
    """What kubelets, autoscalers and NVIDIA's own parts write."""
    name = world.nodes(cloud)[1]
    ours = {
        "kubernetes.io/beat": "7",
        "nvidia.com/gpu.count": "9",
        "nvidia.com/mig.config.state": "pending",
        "mine": "x",
    }
    taints = world.node(cloud, name)["spec"]["taints"]
    theirs = [{"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}]
    patch = partial(world.patch_node, cloud, name)
    patch({"metadata": {"labels": ours}, "spec": {"taints": [*taints, *theirs]}})
    gone = dict.fromkeys(ours)
    return Done(frozenset(), partial(patch, {"metadata": {"labels": gone}, "spec": {"taints": taints}}))


def health(change: Wire, cloud: str, world: World) -> Done:
    """What only a status shows."""
    name = world.nodes(cloud)[1]
    status = world.node(cloud, name)["status"]
    patch = partial(world.patch_node, cloud, name, status=True)
    patch({"status": change})
    return Done(frozenset(), partial(patch, {"status": {key: status[key] for key in change}}))


NOT_READY = {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}
FEWER = {"allocatable": {"nvidia.com/gpu": "1"}, "capacity": {"nvidia.com/gpu": "1"}}


# The release


def pod_field(name: str, change: Wire, fields: tuple[str, ...], cloud: str, world: World) -> Done:
    old = world.daemonset(cloud, name)["spec"]["template"]["spec"]
    world.patch_daemonset(cloud, change, name)
    if "containers" in change:
        back: Wire = {"containers": [{"name": MAIN, "image": old["containers"][0]["image"]}]}
    else:
        back = {key: old.get(key) for key in change}
    found = frozenset(f"{cloud}: DaemonSet {name} {POD}.{field}" for field in fields)
    return Done(found, partial(world.patch_daemonset, cloud, back, name))


def daemonset_gone(name: str, cloud: str, world: World) -> Done:
    obj = world.daemonset(cloud, name)
    world.delete_daemonset(cloud, name)
    return Done(frozenset({f"{cloud}: DaemonSet {name}"}), partial(world.create_daemonset, cloud, obj))


def entry(key: int | str, content: str | None, cloud: str, world: World) -> Done:
    """Edit, remove or add a config entry; a number means one of those there are."""
    there = world.entries(cloud)
    named = sorted(there)[key] if isinstance(key, int) else key
    world.patch_entries(cloud, {named: content})
    found = frozenset({f"{cloud}: ConfigMap {CONFIG_MAP} data[{named}]"})
    return Done(found, partial(world.patch_entries, cloud, {named: there.get(named)}))


def values_edited(cloud: str, world: World) -> Done:
    """Another set of values, as `helm upgrade --set` or a rollback leaves it."""
    name, payload = world.release(cloud)
    world.write_release(cloud, name, edited_values(payload, gfd={"enabled": False}))
    return Done(frozenset({f"{cloud}: value gfd.enabled"}), partial(world.write_release, cloud, name, payload))


def each(
    name: str, slot: str, make: Callable[[str, World], Done], clouds: tuple[str, ...] = ("aks", "eks", "gke")
) -> list[Mutation]:
    """Make one mutation for each cloud."""
    return [Mutation(f"{cloud}: {name}", f"{cloud} {slot}", partial(make, cloud)) for cloud in clouds]


def of_pools(
    name: str, slot: str, make: Callable[[str, World], Done], clouds: tuple[str, ...] = ("aks", "eks", "gke")
) -> list[Mutation]:
    """Make one mutation of its pool's API for each cloud."""
    return [replace(mutation, in_pool=True) for mutation in each(name, slot, make, clouds)]


def sizes(name: str, cloud: str, fields: tuple[str, ...], wire: Wire) -> list[Mutation]:
    return of_pools(name, "size", partial(pool_fields, fields, wire), (cloud,))


ENTRY_LABEL = "nvidia.com/device-plugin.config"
IMAGE: Wire = {"containers": [{"name": MAIN, "image": "mine:1"}]}

_ALL = [
    *of_pools("pool label added", "pool extra", partial(pool_label, "extra", "x")),
    *of_pools("pool label changed", "team", partial(pool_label, "team", "audio")),
    *of_pools("pool label removed", "tier", partial(pool_label, "tier", None)),
    *of_pools("pool taint added", "taints", pool_taint),
    *(one for name, (cloud, fields, wire) in SIZES.items() for one in sizes(name, cloud, fields, wire)),
    *of_pools("tag changed", "tags", partial(pool_fields, ("tags[cost]",), TAGS["tag changed"]), WITH_RELEASE),
    *of_pools("tag of others", "tags", partial(pool_fields, (), TAGS["tag of others"]), WITH_RELEASE),
    Mutation("aks: foreign pool", "aks foreign", foreign_pool),
    *each("node label removed", "tier", partial(node_label, "tier", None, 0)),
    *each("node label changed", "team", partial(node_label, "team", "audio", 1)),
    *each("node lost our mark", "owner", partial(node_label, "gpukube.io/owner", None, 1)),
    *each("node lost its entry", "node entry", partial(node_label, ENTRY_LABEL, None, 0), WITH_RELEASE),
    *each("node taint removed", "taints", partial(node_taint, "dedicated")),
    *each("GPU taint removed", "taints", partial(node_taint, "nvidia.com/gpu")),
    *each("label noise", "noise", node_noise),
    *each("condition", "health", partial(health, NOT_READY)),
    *each("allocatable", "health", partial(health, FEWER)),
    *each("image", PLUGIN, partial(pod_field, PLUGIN, IMAGE, (f"containers[{MAIN}].image",)), WITH_RELEASE),
    *each("tolerations", PLUGIN, partial(pod_field, PLUGIN, {"tolerations": []}, ("tolerations",)), WITH_RELEASE),
    *each("node selector", GFD, partial(pod_field, GFD, {"nodeSelector": {"a": "b"}}, ("nodeSelector",)), WITH_RELEASE),
    *each("GFD gone", GFD, partial(daemonset_gone, GFD), WITH_RELEASE),
    *each("NFD worker gone", WORKER, partial(daemonset_gone, WORKER), WITH_RELEASE),
    *each("plugin gone", PLUGIN, partial(daemonset_gone, PLUGIN), WITH_RELEASE),
    *each("entry edited", "entry 0", partial(entry, 0, "version: v2"), WITH_RELEASE),
    *each("entry removed", "entry 1", partial(entry, 1, None), WITH_RELEASE),
    *each("entry added", "entry new", partial(entry, "mine", "version: v1"), WITH_RELEASE),
    *each("values edited", "values", values_edited, WITH_RELEASE),
]  # fmt: skip
MUTATIONS = {mutation.name: mutation for mutation in _ALL}
