"""The live half over a fake SDK: what is asked, and what becomes of the answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from google.cloud import container_v1 as wire

from gpukube.core.values import Operation, Settings
from gpukube.errors import AccessError, CapacityError, CloudError, GpukubeError, QuotaError, SpecError, StockOut
from gpukube_gke.facts.endpoint import Endpoint
from gpukube_gke.live.client import GkeCloud, connect_cluster
from gpukube_gke.pool.observe import observe_pool
from tests.unit.gpukube_gke.live import NAME, PLACE, STANDARD, Live, code_of
from tests.unit.gpukube_gke.targets import CLUSTER, desire, gke_target

if TYPE_CHECKING:
    from pathlib import Path

STOCKOUT = {"code": "GCE_STOCKOUT", "message": "[GCE_STOCKOUT]: none left"}


def test_identify_when_the_cluster_is_there_gives_its_facts(live: Live) -> None:
    facts = live.cloud.identify()

    assert (facts.location, facts.kubernetes_version, facts.ready, facts.status) == (
        "us-central1",
        "1.34.1",
        True,
        "RUNNING",
    )
    assert live.sdk.calls == [("get_cluster", {"name": NAME})]


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ("RUNNING", True),
        ("RECONCILING", True),
        ("DEGRADED", True),
        ("PROVISIONING", False),
        ("STOPPING", False),
        ("ERROR", False),
    ],
)
def test_identify_when_the_cluster_is_in_a_state_says_whether_it_takes_work(
    live: Live,
    status: str,
    ready: bool,  # noqa: FBT001 - a case
) -> None:
    live.sdk.cluster = {**STANDARD, "status": status}

    assert live.cloud.identify().ready is ready


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({"selfLink": STANDARD["selfLink"].replace("ml-prod", "other")}, AccessError, "project"),  # type: ignore[attr-defined]  # a text
        ({"autopilot": {"enabled": True}}, CloudError, "autopilot"),
    ],
)
def test_identify_when_the_cluster_is_another_one_is_refused(
    live: Live, changes: dict[str, object], error: type[GpukubeError], code: str
) -> None:
    live.sdk.cluster = {**STANDARD, **changes}

    with pytest.raises(error) as caught:
        live.cloud.identify()
    assert code_of(caught.value) == code


def test_identify_when_the_link_has_the_number_of_the_project_is_content(live: Live) -> None:
    live.sdk.cluster = {**STANDARD, "selfLink": f"https://x/v1/{NAME.replace('ml-prod', '123456')}"}

    assert live.cloud.identify().ready


def test_send_when_created_follows_the_operation_by_its_name(live: Live) -> None:
    desired = live.cloud.complete(desire(gke_target()))
    operation = live.cloud.send(desired.create)
    live.sdk.operations["operation-1"] = {"status": "RUNNING", "detail": "1 out of 2 nodes done."}

    assert operation == Operation("a100mig", "create", "operation-1")
    assert live.cloud.poll(operation).status == "RUNNING, 1 out of 2 nodes done"
    live.sdk.operations["operation-1"] = {"status": "DONE"}
    assert live.cloud.poll(operation).done
    assert live.sdk.calls[-1] == ("get_operation", {"name": f"{PLACE}/operations/operation-1"})


@pytest.mark.parametrize(
    ("native", "error", "code"),
    [
        ({"statusMessage": "it broke"}, CloudError, "failed"),
        ({"error": {"code": 8, "message": "[GCE_STOCKOUT]: x"}}, CapacityError, "capacity"),
        ({"error": {"code": 2, "message": "x"}, "nodepoolConditions": [STOCKOUT]}, CapacityError, "capacity"),
        ({"error": {"code": 7, "message": "no"}}, CloudError, "failed"),
    ],
)
def test_poll_when_the_operation_is_done_and_failed_tells_why(
    live: Live, native: dict[str, object], error: type[GpukubeError], code: str
) -> None:
    live.sdk.operations["operation-1"] = {"status": "DONE", **native}
    progress = live.cloud.poll(Operation("p", "create", "operation-1"))

    assert not progress.done
    assert isinstance(progress.error, error)
    assert code_of(progress.error) == code


@pytest.mark.parametrize(
    ("verb", "status", "done", "code"),
    [
        ("create", "PROVISIONING", False, ""),
        ("create", "RUNNING", True, ""),
        ("create", "RECONCILING", False, ""),
        ("create", "ERROR", False, "capacity"),
        ("create", "RUNNING_WITH_ERROR", False, "capacity"),
        ("update", "RECONCILING", False, ""),
        ("update", "RUNNING", True, ""),
        ("update", "RUNNING_WITH_ERROR", True, ""),
        ("update", "ERROR", True, ""),
        ("update", "STOPPING", False, ""),
        ("update", None, False, "pool-gone"),
        ("delete", "STOPPING", False, ""),
        ("delete", "ERROR", False, ""),
        ("create", None, False, "pool-gone"),
        ("delete", None, True, ""),
    ],
)
def test_poll_when_there_is_no_handle_follows_the_pool(
    live: Live,
    verb: str,
    status: str | None,
    done: bool,  # noqa: FBT001 - a case
    code: str,
) -> None:
    if status is not None:
        live.sdk.pools["p"] = {"name": "p", "status": status, "conditions": [STOCKOUT]}
    for handle in ("", "operation-forgotten"):
        progress = live.cloud.poll(Operation("p", verb, handle))  # type: ignore[arg-type]  # one of the verbs

        assert progress.done is done
        assert (code_of(progress.error) if progress.error else "") == code


@pytest.mark.parametrize(
    ("status", "condition", "kind"),
    [
        ("RUNNING", STOCKOUT, StockOut),  # a resize goes on for half an hour while the pool already tells
        ("ERROR", STOCKOUT, StockOut),
        ("RUNNING_WITH_ERROR", {"code": "GCE_QUOTA_EXCEEDED", "message": "x"}, QuotaError),
        ("ERROR", {"code": "UNKNOWN", "message": "x"}, CloudError),
        ("RUNNING", {"code": "CA_EXPIRING", "message": "x"}, None),
        ("RUNNING", {}, None),
    ],
)
def test_launches_when_the_pool_was_read_are_its_condition(
    live: Live, status: str, condition: dict[str, object], kind: type[GpukubeError] | None
) -> None:
    native = {"name": "p", "status": status, "conditions": [condition] if condition else []}

    found = live.cloud.launches(observe_pool(native))

    assert (type(found.failure) if found.failure else None) is kind
    assert (found.failed_at, found.launched_at) == (None, None)


def test_complete_when_the_zone_is_open_takes_the_first_of_the_cluster(live: Live) -> None:
    assert zone_of(live) == ["us-central1-f"]


def test_complete_when_the_zone_is_written_asks_nothing(live: Live) -> None:
    desired = desire(gke_target(zones=("us-central1-b",)))

    assert live.cloud.complete(desired) is desired
    assert live.sdk.calls == []


@pytest.mark.parametrize(
    ("plane", "code"),
    [("1.34.1-gke.1829001", ""), ("1.33.9-gke.1", "kubernetes-version"), ("", "")],
)
def test_complete_when_a_version_is_written_compares_it_with_the_control_plane(
    live: Live, plane: str, code: str
) -> None:
    live.sdk.cluster = {**STANDARD, "currentMasterVersion": plane}
    desired = desire(gke_target(zones=("us-central1-b",), kubernetes_version="1.34"))
    if code:
        with pytest.raises(SpecError) as caught:
            live.cloud.complete(desired)
        assert code_of(caught.value) == code
    else:
        assert live.cloud.complete(desired) is desired
    assert [call for call, _ in live.sdk.calls] == ["get_cluster"]


A100 = "nvidia-tesla-a100"


def pool(name: str, zone: str, accelerator: str) -> dict[str, object]:
    gpu = {"acceleratorType": accelerator, "acceleratorCount": "1"}
    return {"name": name, "locations": [zone, "us-central1-z"], "config": {"accelerators": [gpu]}}


@pytest.mark.parametrize(
    ("pools", "zone"),
    [
        ([pool("other", "us-central1-c", A100)], "us-central1-c"),
        ([pool("other", "us-central1-c", "nvidia-l4")], "us-central1-f"),
        ([pool("other", "us-central1-c", A100), pool("a100mig", "us-central1-b", A100)], "us-central1-b"),
        ([pool("other", "us-central1-c", A100), pool("a100mig", "us-central1-b", "nvidia-l4")], "us-central1-c"),
        ([pool("a100mig", "us-central1-b", "nvidia-l4")], "us-central1-b"),
    ],
)
def test_complete_when_a_pool_shows_where_the_gpu_is_goes_there(
    live: Live, pools: list[dict[str, object]], zone: str
) -> None:
    live.sdk.cluster = {**STANDARD, "nodePools": pools}

    assert zone_of(live) == [zone]


def test_complete_when_the_cluster_names_no_zone_asks_the_user(live: Live) -> None:
    live.sdk.cluster = {"name": "train"}

    with pytest.raises(SpecError) as caught:
        zone_of(live)
    assert code_of(caught.value) == "no-zone"


@pytest.mark.parametrize(
    ("offered", "zone"),
    [
        (set(), "us-central1-f"),
        ({"us-central1-a", "us-central1-b"}, "us-central1-a"),
        ({"us-central1-a", "us-central1-f"}, "us-central1-f"),
    ],
)
def test_complete_when_it_is_known_where_the_gpu_is_offered_goes_there(
    live: Live, offered: set[str], zone: str
) -> None:
    live.offered = frozenset(offered)

    assert zone_of(live) == [zone]


def test_complete_when_no_zone_of_the_cluster_has_the_gpu_names_those_that_do(live: Live) -> None:
    live.offered = frozenset({"us-central1-c", "us-central1-b", "europe-west4-a"})

    with pytest.raises(SpecError) as caught:
        zone_of(live)
    assert caught.value.diagnostics[0].fix == "write zones: [us-central1-b, us-central1-c]"


def zone_of(live: Live) -> list[str]:
    params = live.cloud.complete(desire(gke_target())).create.params
    return list(wire.CreateNodePoolRequest.from_json(json.dumps(params)).node_pool.locations)


@pytest.mark.parametrize(
    ("changes", "server", "has_ca"),
    [
        ({}, "https://34.1.2.3", True),
        (
            {
                "controlPlaneEndpointsConfig": {
                    "ipEndpointsConfig": {"enabled": False},
                    "dnsEndpointConfig": {"endpoint": "gke-1.gke.goog", "allowExternalTraffic": True},
                }
            },
            "https://gke-1.gke.goog",
            False,
        ),
        (
            {
                "endpoint": "",
                "controlPlaneEndpointsConfig": {
                    "dnsEndpointConfig": {"endpoint": "gke-1.gke.goog", "allowExternalTraffic": True}
                },
            },
            "https://gke-1.gke.goog",
            False,
        ),
    ],
)
def test_kube_access_when_the_cluster_has_an_endpoint_is_complete(
    live: Live,
    changes: dict[str, object],
    server: str,
    has_ca: bool,  # noqa: FBT001 - a case
) -> None:
    live.sdk.cluster = {**STANDARD, **changes}
    document = yaml.safe_load(live.cloud.kube_access().kubeconfig)

    (cluster,), (user,) = document["clusters"], document["users"]
    assert cluster["cluster"]["server"] == server
    assert ("certificate-authority-data" in cluster["cluster"]) is has_ca
    assert user["user"] == {"token": "ya29.token"}
    assert document["current-context"] == "gke_ml-prod_us-central1_train"


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({"endpoint": ""}, CloudError, "kube-endpoint"),
        ({"endpoint": "127.0.0.1:6443"}, AccessError, "loopback-server"),
    ],
)
def test_kube_access_when_the_endpoint_is_none_for_a_token_asks_for_no_token(
    live: Live, changes: dict[str, object], error: type[GpukubeError], code: str
) -> None:
    live.sdk.cluster = {**STANDARD, **changes}

    with pytest.raises(error) as caught:
        live.cloud.kube_access()
    assert code_of(caught.value) == code
    assert live.identity.asked == 0


KUBECONFIG = """
contexts: [{name: mine, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}]
users: [{name: u, user: {token: t}}]
"""


def test_kube_access_when_the_spec_names_a_file_takes_its_context(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    cluster = replace(CLUSTER, kubeconfig=str(file), context="mine")
    cloud = GkeCloud(cluster, Settings(), Endpoint(), lambda: live.sdk, live.identity)

    assert yaml.safe_load(cloud.kube_access().kubeconfig)["clusters"][0]["cluster"]["server"] == "https://10.0.0.1"
    assert (live.sdk.calls, live.identity.asked) == ([], 0)
    sandboxed = GkeCloud(cluster, Settings(sandbox=True), Endpoint(), lambda: live.sdk, live.identity)
    with pytest.raises(AccessError) as caught:
        sandboxed.kube_access()
    assert code_of(caught.value) == "sandbox-endpoint"


def test_kube_access_when_the_file_has_no_such_context_says_so(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    cluster = replace(CLUSTER, kubeconfig=str(file), context="yours")
    cloud = GkeCloud(cluster, Settings(), Endpoint(), lambda: live.sdk, live.identity)

    with pytest.raises(AccessError, match='no context "yours"'):
        cloud.kube_access()


def test_connect_when_made_looks_for_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    cloud = connect_cluster(CLUSTER, Settings())
    cloud.close()

    with pytest.raises(AccessError) as caught:
        connect_cluster(CLUSTER, Settings()).identify()
    assert code_of(caught.value) == "no-credentials"


def test_close_when_a_call_was_made_closes_the_connections(live: Live) -> None:
    cloud = live.cloud
    cloud.identify()
    cloud.close()

    assert live.sdk.transport.closed
