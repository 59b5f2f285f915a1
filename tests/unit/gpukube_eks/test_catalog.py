"""What EC2 and AWS's price list say, read; EC2's own type data, as moto ships it, is the referee."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.errors import AccessError, CloudError
from gpukube.gpu.machines import find_machine, machines
from gpukube.gpu.models import parse_model
from gpukube_eks.catalog import CATALOG
from gpukube_eks.facts.fabric import efa_cards
from gpukube_eks.facts.images import SYSTEMS, find_image
from gpukube_eks.facts.listings import price_filters, read_price, read_spot, read_spot_zones, read_type
from gpukube_eks.live.market import fetch, read_offers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.gpu.machine import Machine

INQUIRY = Inquiry("eks", "eu-west-1", Account(), Settings())


def _ec2_data() -> dict[str, dict[str, Any]]:
    spec = find_spec("moto")
    if spec is None or spec.origin is None:
        return {}
    file = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return found


EC2 = _ec2_data()
NVIDIA = {
    name
    for name, item in EC2.items()
    if any(gpu["Manufacturer"] == "NVIDIA" for gpu in item.get("GpuInfo", {}).get("Gpus", []))
}


@pytest.mark.parametrize("machine", machines("eks"), ids=lambda m: str(m.name))
def test_status_when_no_image_has_the_driver_then_says_so(machine: Machine) -> None:
    has_image = any(find_image(system, machine) for system in SYSTEMS)
    assert (machine.status == "no-image") == (not has_image)


@pytest.mark.skipif(not EC2, reason="moto is not installed")
@pytest.mark.parametrize("name", sorted(NVIDIA))
def test_type_when_ec2_describes_it_then_read_as_the_embedded_table_has_it(name: str) -> None:
    offer = read_type(EC2[name])
    machine = find_machine("eks", name)
    assert offer is not None
    if machine is None:  # older GPUs than gpukube drives
        assert name.partition(".")[0] in {"p2", "g2", "g3", "g3s"}
        return
    assert parse_model(offer.model) == machine.model
    assert machine.has_gpus(offer.gpus or 0)
    assert (offer.vcpus, offer.memory_gib, offer.arch) == (machine.vcpus, machine.memory_gib, machine.arch)
    assert offer.efa_cards == tuple(efa_cards(machine))


@pytest.mark.skipif(not EC2, reason="moto is not installed")
def test_types_when_without_nvidia_gpus_then_none() -> None:
    assert {name for name in EC2 if read_type(EC2[name])} == NVIDIA
    known = {m.name for m in machines("eks")} - {"p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p6e-gb200.36xlarge"}
    assert known <= NVIDIA


def ec2_item(name: str, mib: int = 0, count: int = 8, **more: object) -> dict[str, object]:
    memory = {"MemoryInfo": {"SizeInMiB": mib}} if mib else {}
    return {"GpuInfo": {"Gpus": [{"Name": name, "Manufacturer": "NVIDIA", "Count": count, **memory, **more}]}}


@pytest.mark.parametrize(
    ("item", "model", "gpus", "status"),
    [
        (ec2_item("A100", 40960), "A100-40GB", 8, "current"),
        (ec2_item("A100", 81920) | {"CurrentGeneration": False}, "A100-80GB", 8, "legacy"),
        (ec2_item("L4", 2861, 0, LogicalGpuCount=1, GpuPartitionSize=0.125), "L4-24GB", 0.125, "current"),
        (ec2_item("Z9"), "Z9", 8, "current"),
        (ec2_item("A100"), "A100", 8, "current"),
    ],
)
def test_type_when_a_chip_has_two_sizes_then_told_by_its_memory(
    item: dict[str, object], model: str, gpus: float, status: str
) -> None:
    offer = read_type({"InstanceType": "x", **item})
    assert offer is not None
    assert (offer.model, offer.gpus, offer.status) == (model, gpus, status)


@pytest.mark.parametrize(
    "item", [{}, {"GpuInfo": {}}, {"GpuInfo": {"Gpus": []}}, {"GpuInfo": {"Gpus": [{"Manufacturer": "AMD"}]}}]
)
def test_type_when_it_has_no_gpu_of_nvidia_then_none(item: dict[str, object]) -> None:
    assert read_type({"InstanceType": "x", **item}) is None


def product(name: str = "g6.xlarge", usd: object = "0.8048000000") -> str:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    terms = {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (product(), ("g6.xlarge", 0.8048)),
        (product(usd="0.0000000000"), None),
        (product(usd="free"), None),
        (product(usd=None), None),
        (product(name=""), None),
        ("{}", None),
        ("[]", None),
        ("no json", None),
        ('{"terms": {"OnDemand": {"A": {"priceDimensions": []}}}}', None),
    ],
)
def test_price_when_read_then_type_and_dollars_or_nothing(text: str, read: tuple[str, float] | None) -> None:
    assert read_price(text) == read


def test_price_filters_when_bare_metal_then_dedicated() -> None:
    shared, metal = (
        {entry["Field"]: entry["Value"] for entry in price_filters("eu-west-1", bare_metal=bare)}
        for bare in (False, True)
    )
    assert shared == {
        "regionCode": "eu-west-1", "operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used",
        "marketoption": "OnDemand", "tenancy": "Shared", "productFamily": "Compute Instance",
    }  # fmt: skip
    assert metal == shared | {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}
    assert {entry["Type"] for entry in price_filters("x", bare_metal=True)} == {"TERM_MATCH"}


def test_spot_of_zones_when_a_zone_has_several_then_the_newest() -> None:
    def entry(usd: str, zone: str, hour: int, name: str = "g6.xlarge") -> dict[str, object]:
        time = datetime(2026, 11, 22, hour, tzinfo=UTC)
        return {"InstanceType": name, "SpotPrice": usd, "AvailabilityZone": zone, "Timestamp": time}

    items = [
        entry("0.4", "a", 9),
        entry("0.5", "a", 11),
        entry("0.6", "a", 10),
        entry("0.3", "b", 1),
        entry("x", "c", 1),
    ]
    assert read_spot_zones(items) == {("g6.xlarge", "a"): 0.5, ("g6.xlarge", "b"): 0.3}


def test_spot_when_zones_differ_then_the_lowest() -> None:
    items = [
        {"InstanceType": "g6.xlarge", "SpotPrice": "0.4"},
        {"InstanceType": "g6.xlarge", "SpotPrice": "0.3"},
        {"InstanceType": "g5.xlarge", "SpotPrice": "x"},
    ]
    assert read_spot(items) == {"g6.xlarge": 0.3}


class FakeAws:
    """EC2 and the price list, with canned pages; a page that is an error is raised."""

    def __init__(self, **pages: list[object]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, Mapping[str, object]]] = []

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, object]]:
        def call(**arguments: object) -> Mapping[str, object]:
            self.asked.append((name, arguments))
            at = int(str(arguments.get("NextToken") or 0))
            page = self.pages[name][at]
            if isinstance(page, Exception):
                raise page
            assert isinstance(page, dict)
            more = {"NextToken": str(at + 1)} if at + 1 < len(self.pages[name]) else {}
            return {**page, **more}

        return call


def type_item(name: str) -> dict[str, object]:
    gpu = {"Name": "L4", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 22888}}
    return {"InstanceType": name, "GpuInfo": {"Gpus": [gpu]}}


DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no pricing:GetProducts"}}, "GetProducts")
REFUSED = ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeInstanceTypes")
TYPES: list[object] = [{"InstanceTypes": [type_item("g6.xlarge")]}, {"InstanceTypes": [type_item("g6.2xlarge")]}]
SPOT: list[object] = [{"SpotPriceHistory": [{"InstanceType": "g6.xlarge", "SpotPrice": "0.3"}]}]


def fake(products: list[object], spot: list[object] = SPOT, types: list[object] = TYPES) -> FakeAws:
    return FakeAws(describe_instance_types=types, describe_spot_price_history=spot, get_products=products)


def test_ask_when_all_answers_come_in_pages_then_all_are_read() -> None:
    aws = fake([{"PriceList": [product()]}, {"PriceList": [product("g6.2xlarge", "1.1"), product("m5.large", "0.1")]}])
    found = read_offers(aws, aws, INQUIRY)
    assert [(o.name, o.price_usd_h, o.spot_usd_h) for o in found.offers] == [
        ("g6.xlarge", 0.8048, 0.3), ("g6.2xlarge", 1.1, None),
    ]  # fmt: skip
    assert (found.priced, found.notes) == (True, ())
    calls = [name for name, _ in aws.asked]
    assert calls == ["describe_instance_types"] * 2 + ["get_products"] * 4 + ["describe_spot_price_history"]
    assert aws.asked[0][1]["Filters"] == [{"Name": "instance-type", "Values": ["p*", "g*"]}]


def test_ask_when_prices_are_denied_then_types_and_a_note() -> None:
    aws = fake([DENIED])
    found = read_offers(aws, aws, INQUIRY)
    assert ([o.name for o in found.offers], found.priced) == (["g6.xlarge", "g6.2xlarge"], False)
    (note,) = found.notes
    assert note.startswith("prices could not be read and are unchanged: ")


def test_ask_when_spot_prices_are_denied_then_a_note_and_the_others_count() -> None:
    aws = fake([{"PriceList": [product()]}], spot=[DENIED])
    found = read_offers(aws, aws, INQUIRY)
    assert found.priced
    assert [note.partition(":")[0] for note in found.notes] == ["spot prices could not be read and are unchanged"]


def test_ask_when_the_region_has_no_price_list_then_said() -> None:
    aws = fake([])
    found = read_offers(aws, None, INQUIRY)
    assert (found.priced, len(found.notes)) == (False, 1)
    assert "get_products" not in [name for name, _ in aws.asked]


def test_ask_when_types_are_refused_then_no_answer_at_all() -> None:
    aws = fake([], types=[REFUSED])
    with pytest.raises(AccessError):
        read_offers(aws, aws, INQUIRY)


def test_ask_when_a_list_does_not_end_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpukube_eks.live.market._MOST_PAGES", 1)
    aws = fake([])
    with pytest.raises(CloudError, match="more than 1 pages"):
        read_offers(aws, aws, INQUIRY)


def test_facts_when_no_image_fits_then_said() -> None:
    (g7,) = [m for m in machines("eks") if m.name == "g7.2xlarge"]
    assert CATALOG.facts(g7)[0].text == "EKS has no image with an NVIDIA driver for the family g7"
    (g5g,) = [m for m in machines("eks") if m.name == "g5g.xlarge"]
    assert "al2023 (AL2023_ARM_64_NVIDIA), bottlerocket (BOTTLEROCKET_ARM_64_NVIDIA)" in CATALOG.facts(g5g)[0].text


@pytest.mark.parametrize(
    ("region", "endpoint", "asks_prices"),
    [
        ("eu-west-1", "", True),
        ("cn-north-1", "", False),
        ("us-gov-west-1", "", False),
        ("eu-west-1", "https://vpce.example.com", False),
        ("eu-west-1", "http://127.0.0.1:9", True),
    ],
)
def test_fetch_when_the_price_list_knows_the_region_then_asked_in_its_own(
    region: str,
    endpoint: str,
    asks_prices: bool,  # noqa: FBT001 - a table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aws, regions = fake([{"PriceList": []}]), []

    def connect(region: str, *_: object) -> SimpleNamespace:
        regions.append(region)
        return SimpleNamespace(types=aws, pricing=aws)

    monkeypatch.setattr("gpukube_eks.live.market.connect_region", connect)
    settings = Settings({"eks": endpoint} if endpoint else {})
    assert fetch(Inquiry("eks", region, Account(), settings)).priced is asks_prices
    assert regions == ([region, "us-east-1"] if asks_prices else [region])
