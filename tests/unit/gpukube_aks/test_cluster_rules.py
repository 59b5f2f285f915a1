"""What a live cluster excludes; versions beside that of the control plane have their cases with the images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Nodes, Reservation
from gpukube_aks.codes import FAILURE_CODES
from gpukube_aks.rules.cluster import ClusterState, check_cluster, read_cluster
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube.core.values import Target

GROUP = Reservation("capacityReservationGroup", "/subscriptions/s/g")
PLAIN = make_target()
AUTOSCALED = make_target(nodes=Nodes(1, 1, 3, autoscaled=True))
RESERVED = make_target(capacity=Capacity("reserved", reservation=GROUP))
NEWER = make_target(kubernetes_version="1.35")


@pytest.mark.parametrize(
    ("target", "state", "codes"),
    [
        (AUTOSCALED, ClusterState("1.34.2", provisions_nodes=True, identity=""), ["node-auto-provisioning"]),
        (RESERVED, ClusterState("1.34.2", provisions_nodes=False, identity="SystemAssigned"), ["reservation-identity"]),
        (NEWER, ClusterState("1.34.2", provisions_nodes=False, identity=""), ["version-skew"]),
        (PLAIN, ClusterState("1.30.0", provisions_nodes=True, identity="SystemAssigned"), []),
        (AUTOSCALED, ClusterState("1.34.2", provisions_nodes=False, identity=""), []),
        (RESERVED, ClusterState("1.34.2", provisions_nodes=True, identity="UserAssigned"), []),
        (RESERVED, ClusterState("1.34.2", provisions_nodes=True, identity=""), []),
    ],
)
def test_pool_when_the_cluster_excludes_it_is_refused_with_what_to_do(
    target: Target, state: ClusterState, codes: list[str]
) -> None:
    found = check_cluster(target, state)

    assert [problem.code for problem in found] == codes
    assert all(problem.fix and problem.why and problem.severity == "error" for problem in found)
    assert all("train-aks" in problem.seen for problem in found)
    assert set(codes) <= FAILURE_CODES.keys()


@pytest.mark.parametrize(
    ("native", "state"),
    [
        ({}, ClusterState("", provisions_nodes=False, identity="")),
        ({"properties": None, "identity": []}, ClusterState("", provisions_nodes=False, identity="")),
        (
            {"properties": {"kubernetesVersion": "1.34"}, "identity": {"type": None}},
            ClusterState("1.34", provisions_nodes=False, identity=""),
        ),
        (
            {
                "properties": {
                    "kubernetesVersion": "1.34",
                    "currentKubernetesVersion": "1.34.2",
                    "nodeProvisioningProfile": {"mode": "Auto"},
                },
                "identity": {"type": "UserAssigned"},
            },
            ClusterState("1.34.2", provisions_nodes=True, identity="UserAssigned"),
        ),
        (
            {"properties": {"nodeProvisioningProfile": {"mode": "Manual"}}},
            ClusterState("", provisions_nodes=False, identity=""),
        ),
    ],
)
def test_cluster_when_read_gives_what_it_tells(native: dict[str, object], state: ClusterState) -> None:
    assert read_cluster(native) == state
