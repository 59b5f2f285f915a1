"""Which operations exclude each other, over both transports."""

from __future__ import annotations

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, NAME, Gke, t4_pool

BUSY = "FAILED_PRECONDITION"


@pytest.fixture
def slow(gke: Gke) -> Gke:
    """Operations that do not end while the test looks."""
    daemon.configure(gke.info, gkePace={"accept_s": 1e9, "note_s": 1e9})
    return gke


def test_pools_when_they_differ_then_side_by_side_up_to_five(slow: Gke) -> None:
    for number in range(5):
        slow.begin(t4_pool(f"p{number}"))
    answer = slow.refused(lambda: slow.begin(t4_pool("p5")))
    text = f'Too many operations: cluster "{NAME}" hits the concurrent operations quota 5, please try again later.'
    assert answer == ("RESOURCE_EXHAUSTED", text)
    assert "p5" not in slow.names()


def test_pool_when_it_is_at_work_then_no_second_operation(slow: Gke) -> None:
    operation = slow.begin(t4_pool("p"))
    name = f"{CLUSTER}/nodePools/p"
    text = f"Cluster is running incompatible operation {operation.name}."
    calls = (
        lambda: slow.sdk.delete_node_pool(name=name),
        lambda: slow.update("p", labels={"labels": {"a": "b"}}),
        lambda: slow.sdk.set_node_pool_size(request={"name": name, "node_count": 2}),
        lambda: slow.sdk.set_node_pool_autoscaling(
            request={"name": name, "autoscaling": {"enabled": True, "max_node_count": 2}}
        ),
    )
    assert [slow.refused(call) for call in calls] == [(BUSY, text)] * len(calls)
    management = {"name": name, "management": {"auto_upgrade": True}}
    assert slow.sdk.set_node_pool_management(request=management).operation_type.name == "SET_NODE_POOL_MANAGEMENT"


def test_pool_when_it_goes_then_the_refusal_says_so(slow: Gke) -> None:
    operation = slow.sdk.delete_node_pool(name=f"{CLUSTER}/nodePools/default-pool")
    answer = slow.refused(lambda: slow.sdk.delete_node_pool(name=f"{CLUSTER}/nodePools/default-pool"))
    text = (
        f"Operation {operation.name} is currently deleting a node pool for cluster {NAME}. Please wait and try again "
    )
    assert answer == (BUSY, f"{text}once it is done.")


def test_cluster_when_the_service_works_on_it_then_no_pool_may_change(gke: Gke) -> None:
    daemon.add_fault(gke.info, "background", cluster=NAME, seconds=1e9, state="operation-17-master")
    assert gke.sdk.get_cluster(name=CLUSTER).status.name == "RECONCILING"
    answer = gke.refused(lambda: gke.begin(t4_pool("p")))
    assert answer == (BUSY, "Cluster is running incompatible operation operation-17-master.")
    daemon.clear_faults(gke.info)
    gke.create(t4_pool("p"))
