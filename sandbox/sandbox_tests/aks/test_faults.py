"""Every kind of fault, seen by a client."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from azure.core.exceptions import HttpResponseError

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.failures import FAILURES
from sandbox_tests.aks.arm import API, CLUSTER_PATH, GROUP, MIG, NAME, SUBSCRIPTION, T4, trusting
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

POOLS = "/agentPools$|/agentPools\\?"


HASTE = httpx.Timeout(PATIENCE_S, read=0.15)
"""Connects however late the other side is; gives up on an answer that never comes."""


def last_entry(arm: Arm) -> dict[str, object]:
    """The newest request of the log, {} before the first."""
    return (daemon.requests_since(arm.info) or [{}])[-1]


def pool_names(arm: Arm) -> list[str]:
    """Names of the live pools, past any fault."""
    daemon.clear_faults(arm.info)
    return [str(pool.name) for pool in arm.sdk.agent_pools.list(GROUP, NAME)]


@pytest.mark.parametrize(
    ("status", "code"), [(429, "TooManyRequests"), (500, "InternalServerError"), (503, "ServiceUnavailable")]
)
def test_status_when_it_strikes_then_answered_without_reaching_the_service(arm: Arm, status: int, code: str) -> None:
    headers = {"Retry-After": "7"}
    daemon.add_fault(arm.info, "status", method="PUT", status=status, code=code, headers=headers)
    answer = arm.put("gpu1", T4)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["retry-after"] == "7"
    assert pool_names(arm) == ["nodepool1"]


def test_status_when_a_whole_body_is_given_then_sent_as_it_is(arm: Arm) -> None:
    daemon.add_fault(arm.info, "status", status=409, body={"code": "AnotherOperationInProgress", "message": "m"})
    assert arm.request("GET", "").json() == {"code": "AnotherOperationInProgress", "message": "m"}


def test_nth_and_times_when_given_then_only_those_requests_are_struck(arm: Arm) -> None:
    daemon.add_fault(arm.info, "status", path=POOLS, nth=2, times=2, status=500)
    assert [arm.request("GET", "/agentPools").status_code for _ in range(4)] == [200, 500, 500, 200]
    assert arm.request("GET", "").status_code == 200
    daemon.add_fault(arm.info, "status", service="arm", times=0, status=503)
    assert {arm.request("GET", "").status_code for _ in range(5)} == {503}


def test_drop_before_when_it_strikes_then_no_answer_and_no_pool(arm: Arm) -> None:
    daemon.add_fault(arm.info, "drop-before", method="PUT")
    with pytest.raises(httpx.TransportError):
        arm.put("gpu1", T4)
    assert pool_names(arm) == ["nodepool1"]


def test_drop_after_when_it_strikes_then_no_answer_but_a_pool(arm: Arm) -> None:
    daemon.add_fault(arm.info, "drop-after", method="PUT")
    with pytest.raises(httpx.TransportError):
        arm.put("gpu1", T4)
    assert pool_names(arm) == ["nodepool1", "gpu1"]


def test_drop_when_over_tls_on_the_kubernetes_port_then_cut_too(arm: Arm) -> None:
    daemon.add_fault(arm.info, "drop-before", service="kube")
    with httpx.Client(verify=trusting(arm.info), trust_env=False, timeout=PATIENCE_S) as client:
        address = f"{arm.info.kube_url}/clusters/{SUBSCRIPTION}/{GROUP}/{NAME}/version"
        with pytest.raises(httpx.TransportError):
            client.get(address)
        assert client.get(address).status_code in {200, 401}


KUBE: dict[str, tuple[dict[str, Any], int, str]] = {
    "broken": ({"status": 500}, 500, "InternalError"),
    "throttles": ({"status": 429}, 429, "TooManyRequests"),
    "forbids": ({"status": 403}, 403, "Forbidden"),
    "by its own reason": ({"status": 409, "code": "AlreadyExists"}, 409, "AlreadyExists"),
}


def test_status_when_injected_into_the_kubernetes_api_then_a_status_object(arm: Arm) -> None:
    told = {}
    with httpx.Client(verify=trusting(arm.info), trust_env=False, timeout=PATIENCE_S) as client:
        for case, (fault, _, _) in KUBE.items():
            daemon.add_fault(arm.info, "status", service="kube", **fault)
            answer = client.get(f"{arm.info.kube_url}/clusters/{SUBSCRIPTION}/{GROUP}/{NAME}/api/v1/nodes")
            status = answer.json()
            told[case] = (fault, answer.status_code, status["reason"])
            assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.status_code)
    assert told == KUBE


def test_drop_after_when_the_answer_is_a_stream_then_cut_as_well(arm: Arm) -> None:
    found = arm.sdk.managed_clusters.list_cluster_user_credentials(GROUP, NAME).kubeconfigs
    assert found
    document = json.loads(bytes(found[0].value or b""))
    headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}
    daemon.add_fault(arm.info, "drop-after", service="kube")
    with httpx.Client(verify=trusting(arm.info), trust_env=False, headers=headers, timeout=PATIENCE_S) as client:
        address = f"{document['clusters'][0]['cluster']['server']}/api/v1/nodes?watch=1"
        with pytest.raises(httpx.TransportError):
            client.get(address)
        daemon.add_fault(arm.info, "hang-after", service="kube")
        with pytest.raises(httpx.ReadTimeout):
            client.get(address, timeout=HASTE)


def test_delay_when_it_strikes_then_the_answer_comes_later(arm: Arm) -> None:
    daemon.add_fault(arm.info, "delay", seconds=0.2)
    assert arm.request("GET", "").elapsed.total_seconds() >= 0.2


def test_delay_when_another_fault_strikes_too_then_both(arm: Arm) -> None:
    daemon.add_fault(arm.info, "delay", seconds=0.1, times=0)
    daemon.add_fault(arm.info, "status", status=503)
    answer = arm.request("GET", "")
    assert (answer.status_code, answer.elapsed.total_seconds() >= 0.1) == (503, True)
    entry = daemon.requests_since(arm.info)[0]
    assert (entry["fault"], float(str(entry["seconds"])) >= 0.1) == ("delay+status", True)


@pytest.mark.parametrize(("action", "made"), [("hang", False), ("hang-after", True)])
def test_hang_when_the_client_gives_up_then_processed_only_if_it_hung_afterwards(
    arm: Arm, action: str, *, made: bool
) -> None:
    daemon.add_fault(arm.info, action, method="PUT")
    arm.http.timeout = HASTE
    with pytest.raises(httpx.ReadTimeout):
        arm.put("gpu1", T4)
    wait_for(lambda: last_entry(arm).get("seconds"))  # it has noticed that nobody waits any more
    assert ("gpu1" in pool_names(arm)) is made


def test_hang_when_released_then_answered(arm: Arm) -> None:
    daemon.add_fault(arm.info, "hang", method="PUT")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(arm.put, "gpu1", T4)
        wait_for(lambda: last_entry(arm).get("fault") == "hang")
        assert not answer.done()
        daemon.clear_faults(arm.info)
        assert answer.result().status_code == 201


EARLY = sorted(code for code, failure in FAILURES.items() if failure.status)
LATE = sorted(code for code, failure in FAILURES.items() if not failure.status)


@pytest.mark.parametrize("code", EARLY)
def test_operation_failure_when_the_service_notices_at_once_then_no_pool(arm: Arm, code: str) -> None:
    daemon.add_fault(arm.info, "operation", pool="^gpu1$", code=code)
    with pytest.raises(HttpResponseError) as caught:
        arm.create("gpu1", MIG)
    assert caught.value.status_code == FAILURES[code].status
    assert caught.value.error is not None
    assert caught.value.error.code == code
    assert pool_names(arm) == ["nodepool1"]


@pytest.mark.parametrize("code", LATE)
def test_operation_failure_when_it_shows_late_then_the_pool_stays_failed(arm: Arm, code: str) -> None:
    daemon.add_fault(arm.info, "operation", kind="Creating", code=code)
    with pytest.raises(HttpResponseError) as caught:
        arm.create("gpu1", MIG)
    assert (caught.value.status_code, caught.value.error is not None) == (200, True)
    status = arm.get("gpu1")["status"]
    assert isinstance(status, dict)
    error = status["provisioningError"]
    assert error["code"] == code.replace("LowPriorityQ", "Q").replace("RegionalQ", "Q")
    assert error["details"][0]["message"] in error["message"]
    assert not re.search(r"[{}]", error["message"])
    assert arm.get("gpu1")["provisioningState"] == "Failed"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("QuotaExceeded", "exceeding approved Standard NDASv4_A100 Family Cores quota"),
        ("QuotaExceeded", "Additional Required: 96, (Minimum) New Limit Required: 96."),
        ("LowPriorityQuotaExceeded", "exceeding approved LowPriorityCores quota"),
        ("RegionalQuotaExceeded", "exceeding approved Total Regional Cores quota"),
        ("SkuNotAvailable", "Standard_ND96asr_v4' is currently not available in location 'eastus'"),
        ("VMExtensionProvisioningError", "exit status=84"),
    ],
)
def test_operation_failure_when_it_is_known_then_worded_as_the_service_does(arm: Arm, code: str, text: str) -> None:
    daemon.add_fault(arm.info, "operation", code=code)
    with pytest.raises(HttpResponseError, match=re.escape(text)):
        arm.create("gpu1", MIG)


def test_operation_failure_when_deleting_then_the_pool_is_still_there(arm: Arm) -> None:
    arm.create("gpu1", T4)
    daemon.add_fault(arm.info, "operation", kind="Deleting", code="NodesNotReady", message="stuck")
    with pytest.raises(HttpResponseError, match="stuck"):
        arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu1").result()
    assert arm.get("gpu1")["provisioningState"] == "Failed"


def test_slow_operation_when_asked_for_then_it_takes_longer_and_succeeds(arm: Arm) -> None:
    daemon.add_fault(arm.info, "operation", seconds=1_000_000)
    arm.put("gpu1", T4)
    assert arm.get("gpu1")["provisioningState"] == "Creating"
    daemon.configure(arm.info, speed=50_000_000)
    wait_for(lambda: arm.get("gpu1")["provisioningState"] == "Succeeded", lambda: arm.get("gpu1"))


def test_log_when_requests_came_then_method_path_status_body_and_fault_but_no_token(arm: Arm) -> None:
    token = arm.http.get("/msi/token", params={"resource": "x"}, headers={"X-IDENTITY-HEADER": arm.info.secret}).json()[
        "access_token"
    ]
    daemon.add_fault(arm.info, "drop-after", method="DELETE")
    arm.put("gpu1", T4, headers={"Authorization": f"Bearer {token}", "If-None-Match": "*"})
    with pytest.raises(httpx.TransportError):
        arm.request("DELETE", "/agentPools/none")
    log = daemon.requests_since(arm.info)
    assert [(r["index"], r["method"], r["status"], r["fault"]) for r in log] == [
        (1, "PUT", 201, ""),
        (2, "DELETE", 0, "drop-after"),
    ]
    assert log[0]["path"] == f"{CLUSTER_PATH}/agentPools/gpu1"
    assert (log[0]["query"], log[0]["body"]) == ({"api-version": API}, {"properties": T4})
    headers = log[0]["headers"]
    assert isinstance(headers, dict)
    assert headers["if-none-match"] == "*"
    assert token not in str(log)
    assert [r["index"] for r in daemon.requests_since(arm.info, after=1)] == [2]


def test_fault_when_it_cannot_be_read_then_refused(arm: Arm) -> None:
    with pytest.raises(daemon.SandboxError, match="there is no service 'typo'"):
        daemon.add_fault(arm.info, "status", service="typo")


def test_tamper_when_a_pool_is_deleted_then_it_is_gone_with_its_nodes(arm: Arm) -> None:
    arm.create("gpu1", T4)
    daemon.tamper(arm.info, NAME, "gpu1", delete=True)
    assert pool_names(arm) == ["nodepool1"]
    clusters = daemon.status(arm.info)["clusters"]
    assert isinstance(clusters, list)
    assert clusters[0]["readyNodes"] == 1


def test_tamper_when_properties_are_set_then_shown_with_a_new_etag_and_on_the_nodes(arm: Arm) -> None:
    before = arm.create("gpu1", {**T4, "nodeLabels": {"a": "b"}})
    daemon.tamper(arm.info, NAME, "gpu1", nodeLabels={"c": "d"}, nodeTaints=["x=y:NoSchedule"], count=2, tags=None)
    after = arm.get("gpu1")
    assert (after["nodeLabels"], after["nodeTaints"], after["count"]) == ({"c": "d"}, ["x=y:NoSchedule"], 2)
    assert after["eTag"] != before["eTag"]
    with pytest.raises(daemon.SandboxError):
        daemon.tamper(arm.info, NAME, "none", delete=True)
