"""What the emulated clouds say of machines and prices, and what they refuse, as plain HTTP and boto3 have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError

from gpukube_sandbox.eks.wire.identity import access_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.daemon import SandboxInfo

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
SKUS = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus"
GPUS = "/compute/v1/projects/ml-prod/aggregated/acceleratorTypes"
MACHINES = "/compute/v1/projects/ml-prod/aggregated/machineTypes"
ZONES = "/compute/v1/projects/ml-prod/zones"
BILLING = "/v1/services/6F81-5844-456A/skus"


RIGHT = "the sandbox's own"


def get(sandbox: SandboxInfo, cloud: str, path: str, query: Mapping[str, str], token: str = RIGHT) -> tuple[int, Any]:
    with requests.Session() as session:
        session.trust_env = False
        sent = sandbox.secret if token == RIGHT else token
        headers = {"Authorization": f"Bearer {sent}"} if sent else {}
        base = sandbox.arm_url if cloud == "arm" else sandbox.gke_url
        answer = session.get(f"{base}{path}", params=dict(query), headers=headers, timeout=60)
        return answer.status_code, answer.json()


def amazon(sandbox: SandboxInfo, service: str, region: str = "us-east-1") -> Any:  # noqa: ANN401 - boto3 makes its clients
    return boto3.client(
        service, region_name=region, endpoint_url=sandbox.aws_url, aws_access_key_id=access_key("000000000000"),
        aws_secret_access_key=sandbox.secret, config=Config(proxies={}, retries={"total_max_attempts": 1}),
    )  # type: ignore[call-overload]  # the service's name is a variable  # fmt: skip


def term(field: str, value: str) -> dict[str, str]:
    return {"Type": "TERM_MATCH", "Field": field, "Value": value}


def test_price_list_when_filtered_then_one_product_with_its_price_per_hour(sandbox: SandboxInfo) -> None:
    answer = amazon(sandbox, "pricing").get_products(
        ServiceCode="AmazonEC2", Filters=[term("instanceType", "p4d.24xlarge"), term("regionCode", "eu-west-1")]
    )
    (product,) = [json.loads(text) for text in answer["PriceList"]]
    assert product["product"]["attributes"]["regionCode"] == "eu-west-1"
    (offer,) = product["terms"]["OnDemand"].values()
    (dimension,) = offer["priceDimensions"].values()
    assert (dimension["unit"], float(dimension["pricePerUnit"]["USD"]) > 1) == ("Hrs", True)


def test_price_list_when_long_then_pages_without_repetition(sandbox: SandboxInfo) -> None:
    client, names, token = amazon(sandbox, "pricing"), [], ""
    for _ in range(20):
        more = {"NextToken": token} if token else {}
        answer = client.get_products(ServiceCode="AmazonEC2", MaxResults=10, **more)
        names += [json.loads(text)["product"]["attributes"]["instanceType"] for text in answer["PriceList"]]
        token = answer.get("NextToken", "")
        if not token:
            break
    assert len(names) == len(set(names)) > 60


@pytest.mark.parametrize(
    ("region", "arguments"),
    [
        ("eu-west-1", {"ServiceCode": "AmazonEC2"}),
        ("us-east-1", {"ServiceCode": "AmazonRDS"}),
        ("us-east-1", {"ServiceCode": "AmazonEC2", "Filters": [term("a", "b") | {"Type": "CONTAINS"}]}),
    ],
    ids=["a region without it", "another service", "another kind of filter"],
)
def test_price_list_when_it_cannot_answer_then_refused(
    region: str, arguments: dict[str, Any], sandbox: SandboxInfo
) -> None:
    with pytest.raises(ClientError) as refused:
        amazon(sandbox, "pricing", region).get_products(**arguments)
    assert refused.value.response["Error"]["Code"] == "InvalidParameterException"


def test_price_list_when_asked_for_more_then_not_emulated(sandbox: SandboxInfo) -> None:
    with pytest.raises(ClientError) as refused:
        amazon(sandbox, "pricing").describe_services()
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


def test_spot_prices_when_asked_for_then_one_per_zone_and_unknown_types_refused(sandbox: SandboxInfo) -> None:
    client = amazon(sandbox, "ec2")
    found = client.describe_spot_price_history(InstanceTypes=["g6.xlarge"], ProductDescriptions=["Linux/UNIX"])
    prices = {entry["AvailabilityZone"]: float(entry["SpotPrice"]) for entry in found["SpotPriceHistory"]}
    assert sorted(prices) == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert client.describe_spot_price_history(ProductDescriptions=["Windows"])["SpotPriceHistory"] == []
    with pytest.raises(ClientError):
        client.describe_spot_price_history(InstanceTypes=["g99.xlarge"])


def test_skus_when_listed_then_sizes_of_the_location_with_what_bars_them(sandbox: SandboxInfo) -> None:
    status, body = get(sandbox, "arm", SKUS, {"api-version": "2021-07-01", "$filter": "location eq 'westeurope'"})
    skus = {sku["name"]: sku for sku in body["value"]}
    assert status == 200
    assert {place for sku in skus.values() for place in sku["locations"]} == {"westeurope"}
    assert skus["Standard_A1_v2"]["restrictions"][0]["type"] == "Location"
    assert skus["Standard_ND96isr_H100_v5"]["restrictions"][0]["type"] == "Zone"
    for one in (  # `az vm list-skus` reads both lists of each, so that it breaks where one is missing
        restriction for sku in skus.values() for restriction in sku.get("restrictions", [])
    ):
        assert one["restrictionInfo"].keys() >= {"locations", "zones"}
    assert {c["name"]: c["value"] for c in skus["Standard_ND96asr_v4"]["capabilities"]}["GPUs"] == "8"


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        (SKUS, {"api-version": "2021-07-01", "$filter": "name eq 'x'"}, 400, "InvalidFilterInQueryString"),
        (SKUS, {}, 400, "MissingApiVersionParameter"),
        (SKUS.replace(SUBSCRIPTION, "prod"), {"api-version": "2021-07-01"}, 400, "InvalidSubscriptionId"),
        (SKUS.replace("skus", "disks"), {"api-version": "2021-07-01"}, 501, "NotEmulated"),
    ],
)
def test_skus_when_asked_wrongly_then_refused(
    path: str, query: dict[str, str], status: int, code: str, sandbox: SandboxInfo
) -> None:
    got, body = get(sandbox, "arm", path, query)
    assert (got, body["error"]["code"]) == (status, code)


def test_retail_prices_when_filtered_then_of_that_size_and_region_by_every_deal(sandbox: SandboxInfo) -> None:
    query = {
        "$filter": "armRegionName eq 'eastus' and armSkuName eq 'Standard_NC4as_T4_v3' and priceType eq 'Consumption'"
    }
    status, body = get(sandbox, "arm", "/api/retail/prices", query)
    assert (status, body["Count"], body["NextPageLink"]) == (200, 6, None)
    assert {item["armSkuName"] for item in body["Items"]} == {"Standard_NC4as_T4_v3"}
    assert sum(item["productName"].endswith(" Windows") for item in body["Items"]) == 3
    assert sum(item["skuName"].endswith(" Spot") for item in body["Items"]) == 2


def test_machine_types_when_filtered_then_by_the_whole_name_and_every_zone_is_named(sandbox: SandboxInfo) -> None:
    status, body = get(sandbox, "gke", MACHINES, {"filter": "name eq a2-.*-1g"})
    assert status == 200
    named = {item["name"] for scope in body["items"].values() for item in scope.get("machineTypes", [])}
    assert named == {"a2-highgpu-1g", "a2-ultragpu-1g"}
    assert len(body["items"]) == 6
    _, one = get(sandbox, "gke", GPUS, {"filter": "name = nvidia-b200"})
    assert [scope for scope, found in one["items"].items() if "acceleratorTypes" in found] == ["zones/us-central1-b"]


def test_compute_when_one_zone_is_asked_then_its_machines_alone(sandbox: SandboxInfo) -> None:
    zone = f"{ZONES}/us-central1-a"
    assert get(sandbox, "gke", zone, {})[1]["name"] == "us-central1-a"
    assert len(get(sandbox, "gke", ZONES, {})[1]["items"]) == 6
    _, machine = get(sandbox, "gke", f"{zone}/machineTypes/a2-highgpu-1g", {})
    assert (machine["guestCpus"], machine["accelerators"][0]["guestAcceleratorType"]) == (12, "nvidia-tesla-a100")
    _, listed = get(sandbox, "gke", f"{zone}/acceleratorTypes", {"filter": "name = nvidia-l4"})
    assert (listed["kind"], [item["name"] for item in listed["items"]]) == (
        "compute#acceleratorTypeList",
        ["nvidia-l4"],
    )


@pytest.mark.parametrize(
    ("path", "query", "token", "status"),
    [
        (MACHINES, {"filter": "name ~ x"}, RIGHT, 400),
        (MACHINES, {"pageToken": "x"}, RIGHT, 400),
        (MACHINES, {}, "real", 401),
        (MACHINES, {}, "", 401),
        (BILLING, {}, "real", 401),
        (f"{ZONES}/us-central1-z", {}, RIGHT, 400),
        (f"{ZONES}/us-central1-z/machineTypes", {}, RIGHT, 400),
        (f"{ZONES}/us-central1-a/machineTypes/a2-nonsense", {}, RIGHT, 404),
        (f"{ZONES}/us-central1-a/instances", {}, RIGHT, 501),
        ("/compute/v1/projects/ml-prod/aggregated/disks", {}, RIGHT, 501),
        ("/v1/services/0000-0000-0000/skus", {}, RIGHT, 404),
    ],
)
def test_google_when_asked_wrongly_then_refused(
    path: str, query: dict[str, str], token: str, status: int, sandbox: SandboxInfo
) -> None:
    got, body = get(sandbox, "gke", path, query, token)
    assert (got, body["error"]["code"]) == (status, status)


def test_billing_when_listed_then_pages_that_end_and_every_deal_is_there(sandbox: SandboxInfo) -> None:
    found, token = [], ""
    for _ in range(30):
        _, body = get(sandbox, "gke", BILLING, {"pageSize": "5000", "pageToken": token})
        found += body["skus"]
        token = body["nextPageToken"]
        if not token:
            break
    assert not token
    assert len({sku["skuId"] for sku in found}) == len(found)
    assert {sku["category"]["usageType"] for sku in found} == {"OnDemand", "Preemptible", "Commit1Yr"}
