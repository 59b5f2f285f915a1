"""The live half against a fake of the SDK's protocol: what is sent, what is followed, what is never told a token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError

from gpukube.core.values import ClusterRef, Operation, Ownership, Promise, Request, Settings
from gpukube.endpoint import Endpoint
from gpukube.errors import AccessError, CapacityError, CloudError, Conflict, SpecError, StockOut
from gpukube_aks import AksProvider
from gpukube_aks.live.access import EmulatedIdentity
from gpukube_aks.live.client import AksCloud
from gpukube_aks.pool.observe import observe_pool
from tests.builders import CLUSTER, SUBSCRIPTION, make_target
from tests.unit.gpukube_aks.fakes import FakeAnswer, FakeSdk

if TYPE_CHECKING:
    from gpukube.core.values import Desired

BASE = "https://management.azure.com"
HANDLE = f"{BASE}/subscriptions/s/providers/Microsoft.ContainerService/locations/eastus/operations/1?t=x"
TENANT = "00000000-0000-0000-0000-0000000000aa"
TARGET = make_target()
DESIRED = AksProvider().desired(TARGET, Ownership("cloud", "chart", "c", {}, ""), Promise({}, TARGET.nodes))
CREATE = Operation("a100mig", "create", HANDLE)
UPDATE = Operation("a100mig", "update", HANDLE)
DELETE = Operation("a100mig", "delete", HANDLE)


def connect(sdk: FakeSdk, cluster: ClusterRef = CLUSTER) -> AksCloud:
    return AksCloud(cluster, Settings(), Endpoint(), sdk, EmulatedIdentity(sdk, Endpoint(BASE)))


def live(state: str, **properties: object) -> dict[str, dict[str, object]]:
    return {"a100mig": {"name": "a100mig", "properties": {"provisioningState": state, **properties}}}


def cluster_wire(**properties: object) -> dict[str, object]:
    return {
        "id": f"/subscriptions/{SUBSCRIPTION.upper()}/resourcegroups/ml/providers/x/managedClusters/train",
        "location": "eastus",
        "identity": {"tenantId": TENANT},
        "properties": {"provisioningState": "Succeeded", "currentKubernetesVersion": "1.34.2", **properties},
    }


def test_create_when_sent_is_conditional_and_not_waited_for() -> None:
    sdk = FakeSdk(operation=HANDLE)

    assert connect(sdk).send(DESIRED.create) == CREATE
    body = DESIRED.create.params["body"]
    assert sdk.calls == [("put", "ml/train/a100mig", body, None, MatchConditions.IfMissing, False)]


def test_repair_when_sent_is_guarded_and_is_an_update() -> None:
    sdk = FakeSdk(operation=HANDLE)
    body = DESIRED.create.params["body"]
    assert isinstance(body, dict)
    failed = {**body["properties"], "eTag": "e1", "provisioningState": "Failed"}
    request = AksProvider().requests.recreate(DESIRED, observe_pool({"name": "a100mig", "properties": failed}))

    assert request is not None
    assert connect(sdk).send(request).verb == "update"
    assert sdk.calls[0][3:] == ("e1", MatchConditions.IfNotModified, False)


def test_operation_when_its_address_is_on_another_host_is_not_followed() -> None:
    sdk = FakeSdk(operation="https://evil.example/operations/1", pools=live("Succeeded"))
    cloud = connect(sdk)
    operation = cloud.send(DESIRED.create)

    assert operation.handle == ""
    assert cloud.poll(operation).done
    assert [call[0] for call in sdk.calls] == ["put", "get"]


def test_request_when_unknown_is_refused() -> None:
    with pytest.raises(CloudError, match=r"no operation agent_pools\.explode"):
        connect(FakeSdk()).send(Request("aks", "agent_pools.explode", {"pool": "p"}))


def test_pool_when_read_alone_is_one_call_and_none_when_missing() -> None:
    sdk = FakeSdk(pools=live("Deleting", vmSize="Standard_ND96asr_v4"))
    cloud = connect(sdk)
    found = cloud.pool("a100mig")

    assert found is not None
    assert (found.state, found.status) == ("deleting", "Deleting")
    assert cloud.pool("other") is None
    assert sdk.calls == [("get", "ml/train/a100mig"), ("get", "ml/train/other")]


def wanting(version: str) -> Desired:
    target = make_target(kubernetes_version=version)
    return AksProvider().desired(target, Ownership("cloud", "chart", "c", {}, ""), Promise({}, target.nodes))


@pytest.mark.parametrize("version", ["", "1.34", "1.32.5"])
def test_pool_when_it_goes_with_the_cluster_is_left_as_it_is_after_one_look_at_it(version: str) -> None:
    sdk = FakeSdk(cluster=cluster_wire())
    cloud, desired = connect(sdk), wanting(version)

    assert cloud.complete(desired) is desired
    assert cloud.complete(desired) is desired
    assert [call[0] for call in sdk.calls] == ["cluster"]


@pytest.mark.parametrize("version", ["1.35", "1.34.3", "1.31"])
def test_version_when_it_does_not_go_with_the_cluster_is_refused_before_any_write(version: str) -> None:
    sdk = FakeSdk(cluster=cluster_wire())
    cloud = connect(sdk)
    cloud.identify()
    with pytest.raises(SpecError) as caught:
        cloud.complete(wanting(version))

    assert [problem.code for problem in caught.value.diagnostics] == ["version-skew"]
    assert [call[0] for call in sdk.calls] == ["cluster"]


@pytest.mark.parametrize(
    ("answer", "done", "status", "wait"),
    [
        (FakeAnswer({"status": "InProgress"}, headers={"Retry-After": "15"}), False, "InProgress", 15.0),
        (FakeAnswer({"status": "Upgrading"}, headers={"Retry-After": "soon"}), False, "Upgrading", None),
        (FakeAnswer({}), False, "InProgress", None),
        (FakeAnswer({"status": "Succeeded"}), True, "Succeeded", None),
    ],
)
def test_operation_when_looked_at_tells_its_state(
    answer: FakeAnswer,
    done: bool,  # noqa: FBT001 - a table of cases
    status: str,
    wait: float | None,
) -> None:
    progress = connect(FakeSdk(answers=[answer])).poll(CREATE)

    assert (progress.done, progress.status, progress.retry_after_s) == (done, status, wait)
    assert progress.error is None


def test_operation_when_failed_carries_our_error() -> None:
    error = {"code": "X", "message": "x", "details": [{"code": "AllocationFailed", "message": "no room"}]}
    progress = connect(FakeSdk(answers=[FakeAnswer({"status": "Failed", "error": error})])).poll(CREATE)

    assert not progress.done
    assert isinstance(progress.error, CapacityError)


def test_operation_when_canceled_carries_a_conflict() -> None:
    progress = connect(FakeSdk(answers=[FakeAnswer({"status": "Canceled"})])).poll(CREATE)

    assert isinstance(progress.error, Conflict)


def test_operation_when_forgotten_by_azure_is_followed_by_the_pool() -> None:
    sdk = FakeSdk(answers=[FakeAnswer({}, 404)], pools=live("Creating"))
    progress = connect(sdk).poll(CREATE)

    assert (progress.done, progress.status) == (False, "Creating")


def test_operation_when_the_identity_may_not_read_it_is_followed_by_the_pool() -> None:
    """It belongs to the subscription: a role on the cluster's resource group does not reach it."""
    answers = [FakeAnswer({"error": {"code": "AuthorizationFailed"}}, 403)]
    progress = connect(FakeSdk(answers=answers, pools=live("Creating"))).poll(CREATE)

    assert (progress.done, progress.status) == (False, "Creating")


def test_operation_when_the_credentials_are_refused_is_an_access_error() -> None:
    with pytest.raises(AccessError):
        connect(FakeSdk(answers=[FakeAnswer({"error": {"code": "ExpiredAuthenticationToken"}}, 401)])).poll(CREATE)


def test_delete_when_succeeded_is_done_once_the_pool_is_gone() -> None:
    sdk = FakeSdk(answers=[FakeAnswer({"status": "Succeeded"})] * 2, pools=live("Deleting"))
    cloud = connect(sdk)
    before = cloud.poll(DELETE)
    sdk.pools.clear()
    after = cloud.poll(DELETE)

    assert (before.done, before.status) == (False, "Deleting")
    assert after.done


@pytest.mark.parametrize(
    ("state", "operation", "done", "error"),
    [
        ("Succeeded", CREATE, True, None),
        ("Updating", UPDATE, False, None),
        ("Deleting", DELETE, False, None),
        ("Succeeded", DELETE, False, None),
        ("Failed", CREATE, False, CapacityError),
        ("Canceled", CREATE, False, Conflict),
    ],
)
def test_pool_when_followed_itself_tells_its_state(
    state: str,
    operation: Operation,
    done: bool,  # noqa: FBT001 - a table of cases
    error: type[Exception] | None,
) -> None:
    failure = {"provisioningError": {"code": "ZonalAllocationFailed", "message": "no room"}}
    sdk = FakeSdk(pools=live(state, status=failure))
    progress = connect(sdk).poll(replace(operation, handle=""))

    assert (progress.done, progress.status) == (done, state)
    assert isinstance(progress.error, error) if error else progress.error is None


def test_pool_when_it_vanishes_while_it_is_made_is_an_error() -> None:
    progress = connect(FakeSdk()).poll(replace(CREATE, handle=""))

    assert progress.error is not None
    assert progress.error.diagnostics[0].code == "pool-gone"


@pytest.mark.parametrize("failure", [None, ResourceNotFoundError("gone")])
def test_delete_when_the_pool_is_missing_is_done(failure: Exception | None) -> None:
    cloud = connect(FakeSdk(failure=failure))
    operation = cloud.send(AksProvider().requests.delete(CLUSTER, observe_pool({"name": "a100mig"})))

    assert operation == Operation("a100mig", "delete")
    assert cloud.poll(operation).done


def guarded_delete() -> Request:
    return AksProvider().requests.delete(
        CLUSTER, observe_pool({"name": "a100mig", "properties": {"eTag": "e1", "provisioningState": "Succeeded"}})
    )


def precondition_failed() -> ResourceModifiedError:
    answer = FakeAnswer({"code": "PreConditionFailed", "message": "eTag"}, 412)
    return ResourceModifiedError(response=answer)  # type: ignore[arg-type]  # all that is read is there


def test_delete_when_the_guard_fails_on_a_missing_pool_is_done() -> None:
    cloud = connect(FakeSdk(failure=precondition_failed()))

    assert cloud.poll(cloud.send(guarded_delete())).done


def test_delete_when_the_pool_changed_meanwhile_is_a_conflict() -> None:
    cloud = connect(FakeSdk(failure=precondition_failed(), pools=live("Succeeded")))

    with pytest.raises(Conflict) as caught:
        cloud.send(guarded_delete())

    assert caught.value.diagnostics[0].code == "changed"
    assert str(caught.value.diagnostics[0].where) == "train-aks/a100mig"


def test_write_when_refused_is_our_error_with_the_sdks_as_its_cause() -> None:
    answer = FakeAnswer({"code": "OperationNotAllowed", "message": "Another operation is in progress"}, 409)
    failure = HttpResponseError(response=answer)  # type: ignore[arg-type]  # all that is read is there

    with pytest.raises(Conflict) as caught:
        connect(FakeSdk(failure=failure)).send(DESIRED.create)

    assert caught.value.diagnostics[0].code == "busy"
    assert caught.value.__cause__ is failure


STOCK_OUT = {"code": "ReconcileVMSSAgentPoolFailed", "details": [{"code": "AllocationFailed", "message": "none left"}]}


@pytest.mark.parametrize(
    ("state", "kind"),
    [("Failed", StockOut), ("Canceled", Conflict), ("Creating", type(None)), ("Succeeded", type(None))],
)
def test_launches_when_the_pool_was_read_are_its_last_failure(state: str, kind: type[object]) -> None:
    native = {"name": "p", "properties": {"provisioningState": state, "status": {"provisioningError": STOCK_OUT}}}

    found = connect(FakeSdk()).launches(observe_pool(native))

    assert type(found.failure) is kind
    assert (found.failed_at, found.launched_at) == (None, None)


@pytest.mark.parametrize(
    ("properties", "ready", "status"),
    [
        ({}, True, "Succeeded"),
        ({"provisioningState": "Updating"}, True, "Updating"),
        ({"provisioningState": "Failed"}, True, "Failed"),
        ({"provisioningState": "Creating"}, False, "Creating"),
        ({"provisioningState": "Deleting"}, False, "Deleting"),
        ({"powerState": {"code": "Stopped"}}, False, "Stopped"),
    ],
)
def test_cluster_when_identified_says_whether_it_takes_work(
    properties: dict[str, object],
    ready: bool,  # noqa: FBT001 - a table of cases
    status: str,
) -> None:
    facts = connect(FakeSdk(cluster=cluster_wire(**properties))).identify()

    assert (facts.location, facts.kubernetes_version, facts.ready, facts.status) == ("eastus", "1.34.2", ready, status)


@pytest.mark.parametrize(
    ("field", "value"),
    [("subscription", "99999999-2222-3333-4444-555555555555"), ("tenant", "99999999-0000-0000-0000-0000000000aa")],
)
def test_cluster_when_of_another_identity_is_an_access_error(field: str, value: str) -> None:
    cluster = replace(CLUSTER, identity={**CLUSTER.identity, field: value})

    with pytest.raises(AccessError) as caught:
        connect(FakeSdk(cluster=cluster_wire()), cluster).identify()

    (found,) = caught.value.diagnostics
    assert (found.code, found.fix) == (field, f"check clusters.train-aks.{field}")


@pytest.mark.parametrize("tenant", [TENANT, TENANT.upper(), "corp.example"])
def test_tenant_when_it_is_the_same_or_a_domain_passes(tenant: str) -> None:
    cluster = replace(CLUSTER, identity={**CLUSTER.identity, "tenant": tenant})

    assert connect(FakeSdk(cluster=cluster_wire()), cluster).identify().ready


def test_pools_when_listed_are_all_read() -> None:
    sdk = FakeSdk(pools={"a": {"name": "a", "properties": {}}, "b": {"name": "b", "properties": {}}})

    assert [pool.name for pool in connect(sdk).pools()] == ["a", "b"]


def test_cloud_when_closed_closes_the_client() -> None:
    sdk = FakeSdk()
    connect(sdk).close()

    assert sdk.closed
