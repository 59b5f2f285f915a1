"""Finds in a cluster what a pool's fast network needs: device plugins, drivers of DRA, installers of libraries.

In scope: recognizing the parts of a pool's `Fabric`, whether they run on its nodes, and the commands for what is
missing; pure. Out of scope: what a cloud's network needs (its provider), live counts (proof.fabric).

gpukube installs none of them: they serve other workloads too, and belong to whoever runs the cluster's network.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import Toleration
from gpukube.cluster.state.components import role_of
from gpukube.cluster.state.reach import Place, may_appear, reach_one
from gpukube.cluster.state.scheduling import daemon_misfits, tolerates
from gpukube.core.tolerations import as_toleration
from gpukube.errors import Finding
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.cluster.state.scheduling import Misfit
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.fabric import Fabric, FabricPart
    from gpukube.core.values import Desired, Taint

_APP_LABELS: Final = ("app", "k8s-app", "name", "app.kubernetes.io/name")
_OTHERS_DOMAINS: Final = ("feature.node.kubernetes.io/", "network.nvidia.com/")
"""Domains of labels that node feature discovery and the Network Operator set once a node is up."""
_CHARTS_OWN: Final = "CriticalAddonsOnly"
"""Key of a toleration that the charts add to those of their values."""
_MOUNTS_ALL: Final = re.compile(r"k8s-device-plugin:v?0\.19\.[0-2](\D.*)?")
_MOFED: Final = "MOFED_ENABLED"


@dataclass(frozen=True, slots=True)
class PartState:
    """One part of a fast network at one place.

    Attributes:
        choices: The parts of which any one is enough.
        there: Their DaemonSets, in the order of the choices.
        landing: Those whose pods run at the place.
        stuck: The other one that is closest to running there, and the reasons why it does not; None if there is none.
    """

    choices: tuple[FabricPart, ...]
    there: tuple[tuple[FabricPart, WorkloadView], ...]
    landing: tuple[tuple[FabricPart, WorkloadView], ...]
    stuck: tuple[FabricPart, WorkloadView, tuple[Misfit, ...]] | None

    @property
    def coming(self) -> bool:
        """Whether it only waits for labels that others set once the node's network has its driver."""
        if self.stuck is None or self.landing:
            return False
        keys = [key for misfit in self.stuck[2] for key in misfit.keys]
        return all(misfit.keys for misfit in self.stuck[2]) and all(key.startswith(_OTHERS_DOMAINS) for key in keys)

    @property
    def title(self) -> str:
        """The parts, for people."""
        return " or ".join(part.title for part in self.choices)


def nodes_place(pool: Desired) -> Place:
    """Predict a pool's nodes with all labels that its cloud sets, such as the instance type."""
    labels = load_provider(pool.target.cluster.provider).nodes.labels(pool)
    return Place(pool.target.where.source, labels, pool.effective_taints)


def part_states(fabric: Fabric, place: Place, daemonsets: Iterable[WorkloadView]) -> tuple[PartState, ...]:
    """Return what of a fast network's parts runs at a place."""
    everything = tuple(daemonsets)
    return tuple(part_state(choices, place, everything) for choices in fabric.parts)


def part_state(choices: tuple[FabricPart, ...], place: Place, daemonsets: Sequence[WorkloadView]) -> PartState:
    """Return which of some parts run at a place."""
    there = tuple((part, item) for part in choices for item in daemonsets if is_part(part, item))
    reasons = [(part, item, _misfits(item, place)) for part, item in there]
    stuck = [found for found in reasons if found[2]]
    return PartState(
        choices=choices,
        there=there,
        landing=tuple((part, item) for part, item, misfits in reasons if not misfits),
        stuck=min(stuck, key=lambda found: len(found[2]), default=None),
    )


def is_part(part: FabricPart, item: WorkloadView) -> bool:
    """Return whether a DaemonSet is a part of a fast network, whoever installed it."""
    labels = {of[key] for of in (item.pod_labels, item.labels) for key in _APP_LABELS if key in of}
    named = not labels.isdisjoint(part.apps) or item.name in part.apps
    return named or any(name in image for name in part.images for image in item.images)


def _misfits(item: WorkloadView, place: Place) -> tuple[Misfit, ...]:
    if not place.coming:
        return reach_one(place, item)
    return daemon_misfits(item.placement, place.labels, place.taints, unknown=_may_appear)


def _may_appear(key: str) -> bool:
    return may_appear(key) or key.startswith(_OTHERS_DOMAINS)


def install_command(part: FabricPart, taints: Iterable[Taint], live: WorkloadView | None = None) -> str:
    """Return the command that installs a part, or updates it, so that it tolerates some taints.

    Args:
        part: The part.
        taints: Taints of the pool's nodes.
        live: Its DaemonSet; None if there is none yet.
    """
    if live is not None and _is_by_hand(part, live):
        return _patch(live, taints)
    release = live.labels.get("app.kubernetes.io/instance", "") if live else ""
    words = {
        "release": release or part.release,
        "namespace": (live.namespace if live else "") or part.namespace,
        "tolerations": json.dumps(_tolerations(live, taints), separators=(",", ":")),
    }
    command = part.install
    for name, value in words.items():
        command = command.replace(f"{{{name}}}", value)
    return command


def _is_by_hand(part: FabricPart, live: WorkloadView) -> bool:
    """Return whether a DaemonSet does not belong to the release that the command would create beside it."""
    return "{release}" in part.install and "app.kubernetes.io/instance" not in live.labels


def _tolerations(live: WorkloadView | None, taints: Iterable[Taint]) -> list[dict[str, str]]:
    """Return the tolerations of a DaemonSet and those that it lacks: a chart's value replaces the whole list."""
    old = [item for item in live.placement.tolerations if item.key != _CHARTS_OWN] if live else []
    new = [taint for taint in taints if taint.effect != "PreferNoSchedule" and not tolerates(old, taint)]
    return [_written(item) for item in (*old, *map(_tolerating, new))]


def _tolerating(taint: Taint) -> Toleration:
    made = as_toleration(taint)
    return Toleration(made.key, made.operator, made.value, made.effect)


def _written(item: Toleration) -> dict[str, str]:
    fields = {"key": item.key, "operator": item.operator, "value": item.value, "effect": item.effect}
    return {name: value for name, value in fields.items() if value}


def _patch(live: WorkloadView, taints: Iterable[Taint]) -> str:
    path = "/spec/template/spec/tolerations"
    new = [taint for taint in taints if not tolerates(live.placement.tolerations, taint)]
    added: list[dict[str, object]] = [
        {"op": "add", "path": f"{path}/-", "value": _written(_tolerating(taint))} for taint in new
    ]
    if not live.placement.tolerations:
        added = [{"op": "add", "path": path, "value": [item["value"] for item in added]}]
    operations = json.dumps(added, separators=(",", ":"))
    return f"kubectl patch daemonset {live.name} --namespace {live.namespace} --type json --patch '{operations}'"


def remedy(state: PartState, taints: Iterable[Taint]) -> str:
    """Return the command that makes a part run at a place whose taints these are."""
    if state.stuck is None:
        return install_command(state.choices[0], taints)
    part, item, misfits = state.stuck
    if _is_by_hand(part, item) and not all(misfit.taint for misfit in misfits):
        # Its selector is as old as its manifest.
        return f"kubectl delete daemonset {item.name} --namespace {item.namespace} && {install_command(part, taints)}"
    return install_command(part, taints, item)


def why_not_there(state: PartState) -> str:
    """Describe why no part of a group runs at a place."""
    if state.stuck is None:
        return f"the cluster has no {state.title.removeprefix('the ').replace(' or the ', ' or ')}"
    _, item, misfits = state.stuck
    return f"{item} does not run on these nodes: {'; '.join(_short(misfit.message) for misfit in misfits)}"


def _short(message: str) -> str:
    """Shorten the text of an affinity that lists hundreds of instance types."""
    return re.sub(r"\[([^\]]{60})[^\]]*\]", lambda found: f"[{found[1].rpartition(',')[0]},...]", message)


def check_fabrics(seen: Snapshot, pools: Iterable[Desired]) -> list[Finding]:
    """Warn of what pools' fast networks lack in a cluster; GPUs work without it."""
    return [found for pool in pools if pool.fabric for found in _check(pool.fabric, pool, seen)]


def _check(fabric: Fabric, pool: Desired, seen: Snapshot) -> Iterator[Finding]:
    place, where = nodes_place(pool), pool.target.where
    for state in part_states(fabric, place, seen.daemonsets):
        if not state.landing:
            yield Finding(
                "fabric-missing",
                where,
                f"nothing makes {fabric.title} available to pods on these nodes: {why_not_there(state)}",
                fix=remedy(state, place.taints),
                why="pods that request it stay Pending; others communicate over TCP",
                severity="warning",
            )
        if twice := allocators(state):
            yield Finding("fabric-twice", where, twice, fix=one_allocator(state), why=TWICE, severity="warning")


TWICE: Final = "both allocate the same network devices, each without knowing of the other's pods"
MOUNTED: Final = "the network's own device plugin also allocates them, to other pods (NVIDIA/k8s-device-plugin#1837)"
UNMOUNT: Final = "use chart 0.19.3 or newer, or set its value mofedEnabled to false"


def allocators(state: PartState) -> str:
    """Return which two parts would allocate the same devices; "" if only one does."""
    plugins = [item for part, item in state.landing if part.advertises]
    drivers = [item for part, item in state.landing if part.driver]
    return f"{plugins[0]} and {drivers[0]} both run on these nodes" if plugins and drivers else ""


def one_allocator(state: PartState) -> str:
    """Return the command that leaves one of two parts that allocate the same devices."""
    item = next(item for part, item in state.landing if part.driver)
    release = item.labels.get("app.kubernetes.io/instance", "")
    command = f"helm uninstall {release}" if release else f"kubectl delete daemonset {item.name}"
    return f"remove one of them: {command} --namespace {item.namespace}"


def is_mounting_all(item: WorkloadView) -> bool:
    """Return whether a plugin of NVIDIA mounts all RDMA devices of a node into each container with a GPU.

    Source:
        NVIDIA/k8s-device-plugin v0.19.0 to v0.19.2 cmd/nvidia-device-plugin/main.go: mofed-enabled is true by default;
        0.19.3 reverted it (#1837).
    """
    return role_of(item) == "plugin" and any(
        _MOUNTS_ALL.search(container.image)
        and container.env.get(_MOFED, "").lower() != "false"
        and "--mofed-enabled=false" not in container.command
        for container in item.containers
    )
