"""Nimbus's nodes as pods see them: allocatable resources, and labels at creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.node_facts import GIB, NodeFacts, Reserved, Room, common_labels, room_left
from gpukube_nimbus.in_cluster import POOL_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

_PODS: Final = 110
_SYSTEM_PODS: Final = Room(cpu=200, memory=GIB // 4, pods=4)
"""Requests of the system pods: network, proxy, metrics, and disks."""


def _room(target: Target) -> Room | None:
    reserved = Reserved(cpu=500, memory=2 * GIB, kernel=0.05, pods=_SYSTEM_PODS)
    return room_left(target.machine, target.max_pods or _PODS, reserved)


def _labels(desired: Desired) -> Mapping[str, str]:
    return {**common_labels(desired.target.machine), **desired.labels, **_selector(desired)}


def _selector(desired: Desired) -> Mapping[str, str]:
    return {POOL_LABEL: desired.target.name}


NODES: Final = NodeFacts(room=_room, labels=_labels, selector=_selector)
