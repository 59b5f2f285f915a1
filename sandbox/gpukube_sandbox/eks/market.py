"""Machine prices of the emulated AWS: the price list and the history of spot prices.

In scope: GetProducts of AWS's price list, DescribeSpotPriceHistory. Out of scope: HTTP (`routes`), the prices
(`prices`), the machines themselves (`instances`).

Sources: botocore pricing/2017-10-15 and ec2/2016-11-15; docs: awsaccountbilling/latest/aboutv2/price-list-query-api.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.filters import filtered
from gpukube_sandbox.eks.instances import TYPES, InstanceType, zone_id
from gpukube_sandbox.eks.prices import SPOT, price_of
from gpukube_sandbox.eks.wire.answers import AwsError, Json, objects_in
from gpukube_sandbox.eks.wire.query import numbered, when
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.identity import Caller

PRICE_LIST = "AWSPriceListService."
"""Prefix of the operation in X-Amz-Target."""
_ENDPOINTS = {"us-east-1", "eu-central-1", "ap-south-1"}
"""Regions with the price list (botocore endpoints)."""
_MAX_RESULTS = 100


def get_products(caller: Caller, body: object) -> Json:
    """Return one page of products, each as JSON in a string.

    Raises:
        AwsError: 400 for a service other than EC2, or an unsupported filter.
    """
    request = body if isinstance(body, dict) else {}
    if caller.region not in _ENDPOINTS:
        message = f"Could not connect: the price list has no endpoint in {caller.region}"
        raise AwsError("InvalidParameterException", message)
    if request.get("ServiceCode") != "AmazonEC2":
        raise AwsError("InvalidParameterException", "The sandbox has prices for AmazonEC2 only")
    terms: dict[str, str] = {}
    for entry in objects_in(request.get("Filters")):
        if entry.get("Type") != "TERM_MATCH":
            raise AwsError("InvalidParameterException", f"Filter type {entry.get('Type')} is not supported")
        terms[str(entry.get("Field"))] = str(entry.get("Value"))
    region = terms.get("regionCode", "us-east-1")
    found = [product for one in TYPES.values() if (product := _product(one, region)) and _fits(product, terms)]
    size = min(_number(request.get("MaxResults"), _MAX_RESULTS), _MAX_RESULTS)
    try:
        page, following = cut("GetProducts", found, str(request.get("NextToken") or ""), size)
    except WrongToken as error:
        raise AwsError("InvalidNextTokenException", "The pagination token is invalid. Try again without it.") from error
    more = {"NextToken": following} if following else {}
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product) for product in page], **more}


def _product(entry: InstanceType, region: str) -> Json:
    is_metal = entry.name.endswith(".metal")
    sku, usd = f"SKU{entry.name.upper().replace('.', '')}", price_of(entry, region)
    dimension = {"unit": "Hrs", "description": f"${usd} per On Demand Linux {entry.name} Instance Hour"}
    term = {"priceDimensions": {f"{sku}.JRTCKXETXF.6YS6EN2CT7": {**dimension, "pricePerUnit": {"USD": f"{usd:.10f}"}}}}
    return {
        "product": {
            "productFamily": "Compute Instance (bare metal)" if is_metal else "Compute Instance",
            "sku": sku,
            "attributes": {
                "instanceType": entry.name,
                "regionCode": region,
                "operatingSystem": "Linux",
                "preInstalledSw": "NA",
                "capacitystatus": "Used",
                "marketoption": "OnDemand",
                "tenancy": "Dedicated" if is_metal else "Shared",
            },
        },
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
    }


def _fits(product: Json, terms: Mapping[str, str]) -> bool:
    inside = product["product"]
    attributes = inside["attributes"] if isinstance(inside, dict) else {}
    known = {**attributes, "productFamily": inside["productFamily"] if isinstance(inside, dict) else ""}
    return all(known.get(field) == value for field, value in terms.items())


def _spot_history(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    names, systems = numbered(params, "InstanceType"), numbered(params, "ProductDescription")
    if unknown := [name for name in names if name not in TYPES]:
        raise AwsError("InvalidParameterValue", f"Invalid instance type: {unknown[0]}")
    entries: list[Json] = [
        {
            "instanceType": entry.name,
            "productDescription": "Linux/UNIX",
            "spotPrice": f"{price_of(entry, caller.region) * SPOT.get(zone, 0.5):.6f}",
            "timestamp": when(service.clock.now()),
            "availabilityZone": f"{caller.region}{zone}",
            "availabilityZoneId": zone_id(caller.region, zone),
        }
        for entry in (TYPES[name] for name in names or TYPES)
        if entry.gpu and "p6" not in entry.family
        for zone in entry.zones
    ]
    if systems and "Linux/UNIX" not in systems:
        entries = []
    for parameter, member in (("AvailabilityZone", "availabilityZone"), ("AvailabilityZoneId", "availabilityZoneId")):
        entries = [entry for entry in entries if params.get(parameter, entry[member]) == entry[member]]
    entries = filtered(params, entries, _SPOT_FILTERS)
    try:
        page, following = cut(
            "DescribeSpotPriceHistory", entries, params.get("NextToken", ""), _number(params.get("MaxResults"), 1000)
        )
    except WrongToken as error:
        raise AwsError("InvalidNextToken", "The token is not valid.") from error
    return {"spotPriceHistorySet": {"item": list(page)}, "nextToken": following}


_SPOT_FILTERS = {
    "availability-zone": "availabilityZone", "availability-zone-id": "availabilityZoneId",
    "instance-type": "instanceType", "product-description": "productDescription", "spot-price": "spotPrice",
    "timestamp": "timestamp",
}  # fmt: skip


def _number(value: object, usual: int) -> int:
    text = str(value or "")
    return int(text) if text.isdigit() else usual


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "DescribeSpotPriceHistory": _spot_history,
}
"""Additional actions of EC2, next to those of `ec2`."""
