"""Sending changes over a fake SDK: what goes out, what is compared before, and what refusals become."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import Aborted, AlreadyExists, FailedPrecondition, NotFound

from gpukube.core.values import Nodes, Operation, Request
from gpukube.errors import CloudError, Conflict, Moved
from tests.builders import make_observed
from tests.unit.gpukube_gke.live import NAME, Live, code_of
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire, gke_target


def test_send_when_the_pool_to_delete_is_missing_is_done(live: Live) -> None:
    live.sdk.failure = NotFound("no such pool")  # type: ignore[no-untyped-call]  # ships no types
    request = PROVIDER.requests.delete(CLUSTER, make_observed(desire(gke_target())))

    assert live.cloud.poll(live.cloud.send(request)).done


def test_send_when_a_pool_is_there_or_the_cluster_is_busy_is_a_conflict(live: Live) -> None:
    request = desire(gke_target()).create
    for failure, code in (
        (AlreadyExists("there"), "exists"),  # type: ignore[no-untyped-call]  # ships no types
        (FailedPrecondition("Cluster is running incompatible operation x."), "busy"),  # type: ignore[no-untyped-call]  # ships no types
    ):
        live.sdk.failure = failure
        with pytest.raises(Conflict) as caught:
            live.cloud.send(request)
        assert code_of(caught.value) == code


def test_send_when_taints_are_updated_sends_the_list_and_the_etag(live: Live) -> None:
    desired = desire(gke_target())
    request = PROVIDER.requests.follow_up(desired, make_observed(desired, effective_taints=(), etag="e7"))
    assert request is not None
    operation = live.cloud.send(request)

    assert operation == Operation("a100mig", "update", "operation-1")
    (call, sent) = live.sdk.calls[-1]
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    assert (call, sent) == (
        "update_node_pool",
        {"name": f"{NAME}/nodePools/a100mig", "taints": {"taints": [taint]}, "etag": "e7"},
    )


SIZES = [
    ("set_node_pool_size", Nodes(3, 3, 3, autoscaled=False), {"nodeCount": 3}),
    (
        "set_node_pool_autoscaling",
        Nodes(0, 0, 3, autoscaled=True),
        {"autoscaling": {"enabled": True, "totalMaxNodeCount": 3}},
    ),
]


@pytest.mark.parametrize(("call", "nodes", "body"), SIZES)
@pytest.mark.parametrize("etag", ["e7", ""])
def test_send_when_sized_compares_the_etag_and_keeps_it_to_itself(
    live: Live, call: str, nodes: Nodes, body: dict[str, object], etag: str
) -> None:
    observed = make_observed(desire(gke_target()), etag=etag, native={"locations": ["us-central1-a"]})
    live.sdk.pools["a100mig"] = {"name": "a100mig", "etag": "e7"}
    request = PROVIDER.requests.scale(CLUSTER, observed, nodes)
    operation = live.cloud.send(request)

    assert (request.operation, operation) == (call, Operation("a100mig", "update", "operation-1"))
    assert live.sdk.calls[-1] == (call, {"name": f"{NAME}/nodePools/a100mig", **body})
    assert [name for name, _ in live.sdk.calls] == (["get_node_pool", call] if etag else [call])


@pytest.mark.parametrize(("call", "nodes"), [case[:2] for case in SIZES])
def test_send_when_the_pool_moved_sends_no_size(live: Live, call: str, nodes: Nodes) -> None:
    observed = make_observed(desire(gke_target()), etag="e7")
    live.sdk.pools["a100mig"] = {"name": "a100mig", "etag": "e8"}
    with pytest.raises(Conflict) as caught:
        live.cloud.send(PROVIDER.requests.scale(CLUSTER, observed, nodes))

    assert isinstance(caught.value, Moved)
    assert call not in {name for name, _ in live.sdk.calls}


def test_send_when_the_etag_no_longer_fits_is_told_as_moved(live: Live) -> None:
    live.sdk.failure = Aborted("Etag mismatch.")  # type: ignore[no-untyped-call]  # ships no types
    with pytest.raises(Conflict) as caught:
        live.cloud.send(Request("gke", "update_node_pool", {"name": f"{NAME}/nodePools/p", "etag": "e7"}))

    assert isinstance(caught.value, Moved)


def test_send_when_the_pool_to_change_is_gone_is_told(live: Live) -> None:
    live.sdk.failure = NotFound("no such pool")  # type: ignore[no-untyped-call]  # ships no types
    with pytest.raises(CloudError) as caught:
        live.cloud.send(Request("gke", "update_node_pool", {"name": f"{NAME}/nodePools/p"}))

    assert code_of(caught.value) == "no-cluster"


def test_pool_when_read_alone_asks_once(live: Live) -> None:
    live.sdk.pools["p"] = {"name": "p", "status": "STOPPING"}
    found = live.cloud.pool("p")

    assert found is not None
    assert (found.name, found.state) == ("p", "deleting")
    assert live.cloud.pool("other") is None
    assert [name for name, _ in live.sdk.calls] == ["get_node_pool", "get_node_pool"]


def test_send_when_the_operation_is_unknown_is_refused(live: Live) -> None:
    with pytest.raises(CloudError, match="no operation"):
        live.cloud.send(Request("gke", "rollback", {"name": "x"}))
