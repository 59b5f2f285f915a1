"""What ARM answers before AKS is asked: versions, subscriptions, groups, tokens; and the calls around pools."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from typing import TYPE_CHECKING

import httpx
import pytest

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import API, CLUSTER_PATH, GROUP, NAME, SUBSCRIPTION, T4, arm_http, trusting
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.aks.arm import Arm

SLOW = 0.001
"""Of a speed at which no bucket refills while a test runs."""
OTHER = "99999999-2222-3333-4444-555555555555"
PROVIDER = "providers/Microsoft.ContainerService/managedClusters"

MISSING: dict[str, tuple[str, int, str]] = {
    "malformed-subscription": (
        f"/subscriptions/mine/resourceGroups/{GROUP}/{PROVIDER}/{NAME}",
        400,
        "InvalidSubscriptionId",
    ),
    "unknown-subscription": (
        f"/subscriptions/{OTHER}/resourceGroups/{GROUP}/{PROVIDER}/{NAME}",
        404,
        "SubscriptionNotFound",
    ),
    "unknown-group": (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/no/{PROVIDER}/{NAME}",
        404,
        "ResourceGroupNotFound",
    ),
    "unknown-cluster": (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/{PROVIDER}/no", 404, "ResourceNotFound"),
    "pools-of-unknown-cluster": (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/{PROVIDER}/no/agentPools",
        404,
        "ResourceNotFound",
    ),
    "list-in-unknown-subscription": (f"/subscriptions/{OTHER}/{PROVIDER}", 404, "SubscriptionNotFound"),
    "list-in-unknown-group": (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/no/{PROVIDER}",
        404,
        "ResourceGroupNotFound",
    ),
    "unknown-path": ("/something", 404, "InvalidResourceType"),
    "not-emulated": (f"{CLUSTER_PATH}/runCommand", 501, "NotEmulated"),
    "another-provider": (
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/virtualNetworks",
        501,
        "NotEmulated",
    ),
    "tenants": ("/tenants", 501, "NotEmulated"),
}


@pytest.mark.parametrize("case", MISSING)
def test_get_when_something_of_the_path_is_missing_then_nested_error(arm: Arm, case: str) -> None:
    path, status, code = MISSING[case]
    answer = arm.http.get(path, params={"api-version": API})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("version", "code"), [("", "MissingApiVersionParameter"), ("2019-01-01", "NoRegisteredProviderFound")]
)
def test_get_when_the_api_version_is_missing_or_unknown_then_refused(arm: Arm, version: str, code: str) -> None:
    answer = arm.http.get(CLUSTER_PATH, params={"api-version": version} if version else {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_get_when_the_path_is_in_another_case_then_found(arm: Arm) -> None:
    assert arm.http.get(CLUSTER_PATH.upper(), params={"api-version": API}).json()["name"] == NAME


def test_put_when_the_body_is_no_json_then_refused(arm: Arm) -> None:
    path = f"{CLUSTER_PATH}/agentPools/gpu1"
    answer = arm.http.put(path, params={"api-version": API}, content=b"{")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidRequestContent")
    answer = arm.http.put(path, params={"api-version": API}, json=[1])
    assert (answer.status_code, answer.json()["code"]) == (400, "UnmarshalError")
    answer = arm.http.put(path, params={"api-version": API}, json={"propertys": {}})
    assert '"propertys"' in answer.json()["message"]


def test_token_when_it_is_not_ours_then_401(arm: Arm) -> None:
    answer = arm.request("GET", "", headers={"Authorization": "Bearer real-looking-token"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "InvalidAuthenticationToken")
    assert "www-authenticate" in answer.headers


def test_group_when_it_shall_be_made_then_not_emulated(arm: Arm) -> None:
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
    answer = arm.http.put(path, params={"api-version": API}, json={"location": "eastus"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "NotEmulated")


def test_http_when_no_token_is_sent_then_401(arm: Arm) -> None:
    answer = httpx.get(f"{arm.info.arm_url}{CLUSTER_PATH}", params={"api-version": API}, trust_env=False, timeout=60)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "AuthenticationFailed")


def test_https_when_no_token_is_sent_then_401_and_with_one_of_its_own_200(arm: Arm) -> None:
    with httpx.Client(
        base_url=arm.info.arm_tls_url, verify=trusting(arm.info), trust_env=False, timeout=PATIENCE_S
    ) as secure:
        query = {"api-version": API}
        assert secure.get(CLUSTER_PATH, params=query).json()["error"]["code"] == "AuthenticationFailed"
        token = arm.http.get(
            "/msi/token", params={"resource": "x"}, headers={"X-IDENTITY-HEADER": arm.info.secret}
        ).json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        assert secure.get(CLUSTER_PATH, params=query, headers=headers).status_code == 200
        assert secure.get("/_sandbox/status").status_code == 401


def test_managed_identity_when_asked_by_azure_identity_then_the_sdk_reads_the_token(
    arm: Arm, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.identity import ManagedIdentityCredential  # noqa: PLC0415 - slow to load, this test only

    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{arm.info.arm_url}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", arm.info.secret)
    with ManagedIdentityCredential() as credential:
        token = credential.get_token("https://management.azure.com/.default").token
    assert arm.request("GET", "", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"X-IDENTITY-HEADER": "sandbox"}])
def test_msi_when_the_header_is_missing_or_wrong_then_401(arm: Arm, headers: dict[str, str]) -> None:
    assert arm.http.get("/msi/token", params={"resource": "x"}, headers=headers).status_code == 401


def test_list_when_there_are_clusters_then_each_with_its_pools(arm: Arm) -> None:
    daemon.add_cluster(arm.info, SUBSCRIPTION, "other", "second")
    assert sorted(str(c.name) for c in arm.sdk.managed_clusters.list()) == ["second", NAME]
    assert [c.name for c in arm.sdk.managed_clusters.list_by_resource_group(GROUP)] == [NAME]
    profiles = arm.sdk.managed_clusters.get(GROUP, NAME).as_dict()["properties"]["agentPoolProfiles"]
    assert [(p["name"], p["mode"], p["count"]) for p in profiles] == [("nodepool1", "System", 1)]


def test_versions_when_asked_then_the_planes_own(arm: Arm) -> None:
    profile = arm.sdk.agent_pools.get_upgrade_profile(GROUP, NAME, "nodepool1").as_dict()["properties"]
    assert (profile["kubernetesVersion"], profile["upgrades"]) == ("1.34.2", [])
    offered = arm.sdk.agent_pools.get_available_agent_pool_versions(GROUP, NAME).as_dict()["properties"]
    assert [v["kubernetesVersion"] for v in offered["agentPoolVersions"]] == ["1.34.2"]


def test_credentials_when_asked_then_a_kubeconfig_that_works(arm: Arm) -> None:
    for call in (
        arm.sdk.managed_clusters.list_cluster_user_credentials,
        arm.sdk.managed_clusters.list_cluster_admin_credentials,
    ):
        found = call(GROUP, NAME).kubeconfigs
        assert found
        document = json.loads(bytes(found[0].value or b""))
        server = document["clusters"][0]["cluster"]["server"]
        headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}
        with httpx.Client(verify=trusting(arm.info), trust_env=False, timeout=PATIENCE_S) as client:
            assert client.get(f"{server}/api/v1/nodes", headers=headers).json()["kind"] == "NodeList"
            assert client.get(f"{server}/api/v1/nodes").status_code == 401
            assert client.get(f"{arm.info.kube_url}/clusters/a/b/c/version").status_code == 404


def test_credentials_when_local_accounts_are_off_then_admin_is_refused(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME, options={"disableLocalAccounts": True, "aad": True})
    with arm_http(sandbox) as client:
        query = {"api-version": API}
        refused = client.post(f"{CLUSTER_PATH}/listClusterAdminCredential", params=query)
        assert (refused.status_code, refused.json()["code"]) == (400, "BadRequest")
        assert refused.json()["message"].startswith("Getting static credential isn't allowed")
        user = client.post(f"{CLUSTER_PATH}/listClusterUserCredential", params=query).json()["kubeconfigs"][0]["value"]
        document = json.loads(b64decode(user))
        assert document["users"][0]["user"]["exec"]["command"] == "kubelogin"
        resource = {"resource": "6dae42f8-4368-4678-94ff-3960e28e3630"}
        asking = {"X-IDENTITY-HEADER": sandbox.secret}
        token = client.get("/msi/token", params=resource, headers=asking).json()["access_token"]
        wrong = client.get("/msi/token", params={"resource": "x"}, headers=asking).json()
    server = document["clusters"][0]["cluster"]["server"]
    with httpx.Client(verify=trusting(sandbox), trust_env=False, timeout=PATIENCE_S) as kube:
        good = kube.get(f"{server}/api/v1/nodes", headers={"Authorization": f"Bearer {token}"})
        bad = kube.get(f"{server}/api/v1/nodes", headers={"Authorization": f"Bearer {wrong['access_token']}"})
    assert (good.status_code, bad.status_code) == (200, 401)


def test_reservation_when_the_identity_of_the_cluster_is_its_own_then_refused(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, "ml", "own", options={"identity": "SystemAssigned"})
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.ContainerService/managedClusters/own"
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups/g"
    body = {"properties": {**T4, "capacityReservationGroupID": group}}
    with arm_http(sandbox) as http:
        answer = http.put(f"{path}/agentPools/gpu1", params={"api-version": API}, json=body)
        identity = http.get(path, params={"api-version": API}).json()["identity"]["type"]
    assert (answer.status_code, answer.json()["code"], identity) == (400, "BadRequest", "SystemAssigned")


def test_reservation_when_the_group_is_empty_then_the_pool_is_made_without_it(arm: Arm) -> None:
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups"
    daemon.configure(arm.info, emptyGroups=[f"{group}/Empty"])
    assert daemon.declare(arm.info, "aks", resources=[f"{group}/T4"]) == ["capacityReservationGroups/T4"]
    made = {name: arm.create(name, {**T4, "capacityReservationGroupID": f"{group}/{name}"}) for name in ("empty", "t4")}
    assert "capacityReservationGroupID" not in made["empty"]
    assert made["t4"]["capacityReservationGroupID"] == f"{group}/t4"


def test_autoscaling_when_node_provisioning_is_auto_then_refused(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME, options={"nodeProvisioningMode": "Auto"})
    body = {"properties": {**T4, "enableAutoScaling": True, "minCount": 0, "maxCount": 1}}
    with arm_http(sandbox) as client:
        answer = client.put(f"{CLUSTER_PATH}/agentPools/gpu1", params={"api-version": API}, json=body)
        assert "nodeProvisioningProfile.mode cannot be Auto" in answer.json()["message"]
        fixed = client.put(f"{CLUSTER_PATH}/agentPools/gpu1", params={"api-version": API}, json={"properties": T4})
        assert fixed.status_code == 201


def test_throttle_when_a_bucket_is_empty_then_429_with_retry_after_until_it_refills(arm: Arm) -> None:
    daemon.configure(arm.info, speed=SLOW)
    answers = [arm.put("gpu1", {"vmSize": "none", "count": 1}).status_code for _ in range(21)]
    assert answers == [400] * 20 + [429]
    refused = arm.put("gpu1", T4)
    assert (refused.json()["code"], 1 <= int(refused.headers["retry-after"]) <= 60 / SLOW) == ("Throttled", True)
    assert arm.put("gpu2", {"vmSize": "none", "count": 1}).status_code == 400  # a bucket per pool
    daemon.configure(arm.info, throttling=False)
    assert arm.put("gpu1", T4).status_code == 201


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("get-cluster", CLUSTER_PATH),
        ("other", f"{CLUSTER_PATH}/agentPools"),
        ("list-clusters", f"/subscriptions/{SUBSCRIPTION}/{PROVIDER}"),
        ("list-clusters-in-group", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/{PROVIDER}"),
    ],
)
def test_throttle_when_a_limit_is_set_then_it_holds_for_its_calls(arm: Arm, name: str, path: str) -> None:
    daemon.configure(arm.info, speed=SLOW, limits={name: [1, 0.5]})
    began = time.monotonic()
    answers = [arm.http.get(path, params={"api-version": API}) for _ in range(2)]
    lasted_s = time.monotonic() - began
    assert [answer.status_code for answer in answers] == [200, 429]
    assert 2 / SLOW - lasted_s <= int(answers[1].headers["retry-after"]) <= 2 / SLOW  # by the clock on the wall
