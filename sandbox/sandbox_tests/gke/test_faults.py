"""What goes wrong on demand, over both transports."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import cast

import pytest
from google.api_core.exceptions import GoogleAPICallError, RetryError

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, NAME, ZONE, Gke, mig_pool, t4_pool
from sandbox_tests.waiting import wait_for

POOL = f"{CLUSTER}/nodePools/p"
CREATE = {"service": "gke", "method": "POST", "path": "nodePools"}


@pytest.mark.parametrize(
    ("status", "code", "wanted"),
    [
        (429, "", "RESOURCE_EXHAUSTED"),
        (503, "", "UNAVAILABLE"),
        (403, "", "PERMISSION_DENIED"),
        (400, "FAILED_PRECONDITION", "FAILED_PRECONDITION"),
        (500, "", "INTERNAL"),
    ],
)
def test_status_when_injected_then_once_and_in_the_words_of_google(
    gke: Gke, status: int, code: str, wanted: str
) -> None:
    daemon.add_fault(gke.info, "status", status=status, code=code, message="not now", **CREATE)
    assert gke.refused(lambda: gke.begin(t4_pool("p"))) == (wanted, "not now")
    assert gke.names() == ["default-pool"]
    gke.create(t4_pool("p"))


def test_unavailable_when_reading_then_the_client_tries_again_by_itself(gke: Gke) -> None:
    daemon.add_fault(gke.info, "status", service="gke", method="GET", status=503)
    assert gke.names() == ["default-pool"]
    statuses = [entry["status"] for entry in daemon.requests_since(gke.info) if entry["service"] == "gke"]
    assert statuses == [503, 200]


@pytest.mark.parametrize(("action", "there"), [("drop-before", False), ("drop-after", True)])
def test_drop_when_creating_then_the_pool_is_there_only_if_it_came_late(gke: Gke, action: str, there: bool) -> None:  # noqa: FBT001 - a case
    daemon.add_fault(gke.info, action, **CREATE)
    with pytest.raises((GoogleAPICallError, OSError)):
        gke.begin(t4_pool("p"))
    wait_for(lambda: _is_readable(gke))
    assert ("p" in gke.names()) == there
    entry = next(one for one in daemon.requests_since(gke.info) if one["fault"] == action)
    assert str(entry["path"]).endswith("/nodePools")


def _is_readable(gke: Gke) -> bool:
    try:
        gke.names()
    except (GoogleAPICallError, OSError):
        return False
    return True


def _struck(gke: Gke) -> int:
    """How many requests the only fault has struck."""
    (fault,) = cast("list[dict[str, int]]", daemon.call(gke.info, "GET", "faults")["faults"])
    return fault["struck"]


def _give_up(gke: Gke) -> None:
    """Ask for a pool and wait for the answer for an instant only; the sandbox has seen all of it that it will see.

    What goes by REST is sent in any case; a call by gRPC that was sent came before the next one of its connection.
    """
    before = _struck(gke)
    with pytest.raises((GoogleAPICallError, RetryError, OSError)):
        gke.sdk.create_node_pool(request={"parent": CLUSTER, "node_pool": t4_pool("p")}, timeout=0.3, retry=None)
    if gke.transport == "grpc":
        gke.names()
    else:
        wait_for(lambda: _struck(gke) > before)


def test_hang_when_released_then_it_goes_on(gke: Gke) -> None:
    daemon.add_fault(gke.info, "hang", service="gke", method="GET", path="nodePools")
    let_go = threading.Event()

    def release() -> None:
        wait_for(lambda: _struck(gke))
        time.sleep(0.2)  # an answer that does not hang is there before
        let_go.set()
        daemon.clear_faults(gke.info)

    releasing = threading.Thread(target=release)
    releasing.start()
    assert gke.names() == ["default-pool"]
    assert let_go.is_set()
    releasing.join()


def test_hang_when_the_client_gives_up_then_a_deadline_and_no_pool(gke: Gke) -> None:
    daemon.add_fault(gke.info, "hang", times=0, **CREATE)

    def is_struck() -> bool:
        _give_up(gke)
        return _struck(gke) > 0

    wait_for(is_struck)
    daemon.clear_faults(gke.info)
    assert gke.names() == ["default-pool"]


def test_hang_after_when_the_client_gives_up_then_the_pool_is_there(gke: Gke) -> None:
    daemon.add_fault(gke.info, "hang-after", times=0, **CREATE)

    def is_made() -> bool:
        _give_up(gke)
        return "p" in gke.names()

    wait_for(is_made)
    daemon.clear_faults(gke.info)
    assert "p" in gke.names()


def test_delay_when_injected_then_it_takes_longer(gke: Gke) -> None:
    daemon.add_fault(gke.info, "delay", service="gke", seconds=0.2)
    begun = time.monotonic()
    gke.names()
    assert time.monotonic() - begun > 0.15


def test_log_when_called_then_both_transports_look_alike(gke: Gke) -> None:
    gke.begin(t4_pool("p"))
    entry = next(one for one in daemon.requests_since(gke.info) if one["method"] == "POST")
    assert entry["path"] == f"/v1/{CLUSTER}/nodePools"
    body = entry["body"]
    assert isinstance(body, dict)
    assert body["nodePool"]["name"] == "p"
    assert entry["status"] == 200


@pytest.mark.parametrize(("count", "come", "state"), [(2, 0, "ERROR"), (3, 2, "RUNNING_WITH_ERROR")])
def test_stockout_when_injected_then_the_operation_is_done_and_failed(
    gke: Gke, count: int, come: int, state: str
) -> None:
    daemon.add_fault(gke.info, "operation", code="GCE_STOCKOUT", kind="CREATE_NODE_POOL", pool="p", afterNodes=come)
    operation = gke.begin(mig_pool("p", count))
    ended = gke.wait(operation)
    assert ended.status_message.startswith("Google Compute Engine: Not all instances running in IGM after 35m")
    assert f"Expected {count}, running {come}, transitioning {count - come}." in ended.status_message
    assert f"zones/{ZONE}' does not have enough resources" in ended.status_message
    assert (ended.error.code, ended.error.message) == (8, ended.status_message)
    assert [one.code.name for one in ended.nodepool_conditions] == ["GCE_STOCKOUT"]
    pool = gke.pool("p")
    assert pool.status.name == state
    assert [(one.code.name, one.canonical_code) for one in pool.conditions] == [("GCE_STOCKOUT", 8)]
    assert len(gke.nodes("p")) == come
    gke.succeed(gke.sdk.delete_node_pool(name=POOL))


def test_stockout_when_it_is_not_given_up_then_the_pool_cannot_be_deleted(gke: Gke) -> None:
    daemon.configure(gke.info, gkePace={"stockout_s": 1_000_000})
    daemon.add_fault(gke.info, "operation", code="GCE_STOCKOUT")
    gke.begin(mig_pool("p"))
    code, text = gke.refused(lambda: gke.sdk.delete_node_pool(name=POOL))
    assert (code, text.partition(" operation-")[0]) == (
        "FAILED_PRECONDITION",
        "Cluster is running incompatible operation",
    )


def test_quota_when_injected_late_or_at_once_then_both_ways(gke: Gke) -> None:
    daemon.add_fault(gke.info, "operation", code="GCE_QUOTA_EXCEEDED", pool="p")
    ended = gke.wait(gke.begin(mig_pool("p")))
    assert "Quota 'NVIDIA_A100_GPUS' exceeded." in ended.status_message
    assert [one.code.name for one in gke.pool("p").conditions] == ["GCE_QUOTA_EXCEEDED"]
    daemon.add_fault(gke.info, "operation", code="INSUFFICIENT_QUOTA", pool="q")
    code, text = gke.refused(lambda: gke.begin(mig_pool("q")))
    assert code == "PERMISSION_DENIED"
    assert text.startswith('Insufficient regional quota to satisfy request: resource "NVIDIA_A100_GPUS"')


def test_operation_when_it_shall_be_refused_then_at_once(gke: Gke) -> None:
    daemon.add_fault(gke.info, "operation", code="PERMISSION_DENIED", message="who are you", cluster=NAME)
    assert gke.refused(lambda: gke.begin(t4_pool("p"))) == ("PERMISSION_DENIED", "who are you")


def test_operation_when_an_update_or_a_delete_fails_then_the_pool_shows_it(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    for kind in ("UPGRADE_NODES", "DELETE_NODE_POOL"):
        daemon.add_fault(gke.info, "operation", code="BROKEN", kind=kind, message=f"{kind} broke")
    begin = {"name": POOL, "machine_type": "n1-standard-8"}
    ended = gke.wait(gke.sdk.update_node_pool(request=begin))
    assert (ended.error.code, ended.status_message) == (2, "UPGRADE_NODES broke")
    assert gke.pool("p").status.name == "RUNNING_WITH_ERROR"
    assert gke.wait(gke.sdk.delete_node_pool(name=POOL)).status_message == "DELETE_NODE_POOL broke"
    assert "p" in gke.names()


def test_operation_when_it_only_takes_longer_then_it_succeeds(gke: Gke) -> None:
    daemon.add_fault(gke.info, "operation", seconds=3000, kind="CREATE_NODE_POOL")
    ended = gke.succeed(gke.begin(t4_pool("p")))
    begun, done = (datetime.fromisoformat(moment) for moment in (ended.start_time, ended.end_time))
    assert (done - begun).total_seconds() > 3000


def test_tamper_when_somebody_changes_a_pool_then_it_and_its_nodes_show_it(gke: Gke) -> None:
    gke.create(t4_pool("p", labels={"a": "b"}))
    daemon.tamper(gke.info, NAME, "p", initialNodeCount=2, config={"labels": {"c": "d"}}, status="ERROR")
    pool = gke.pool("p")
    assert (pool.initial_node_count, dict(pool.config.labels), pool.status.name) == (2, {"a": "b", "c": "d"}, "ERROR")
    daemon.tamper(gke.info, NAME, "p", config={"labels": {"a": None}})
    assert dict(gke.pool("p").config.labels) == {"c": "d"}
    with pytest.raises(daemon.SandboxError, match="colour"):
        daemon.tamper(gke.info, NAME, "p", colour="red")
    daemon.tamper(gke.info, NAME, "p", delete=True)
    assert gke.names() == ["default-pool"]
    assert gke.nodes("p") == []
