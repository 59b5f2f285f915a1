"""Machines of the emulated Google Cloud and prices of their parts: Compute Engine, Billing Catalog.

In scope: machine types, accelerator types, zones, SKUs, and invented prices; lists of Compute Engine. Out of scope:
GKE, resources of projects (`reservations`, `quotas`). Needs no Google library.

Sources: docs: compute/docs/reference/rest/v1/machineTypes and acceleratorTypes (aggregatedList, list, get), zones,
billing/docs/reference/rest/v1/services.skus/list.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, TypeVar

from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.filters import parse_filter
from gpukube_sandbox.gke.machines import all_machines
from gpukube_sandbox.gke.wire.answers import GoogleError, Json, invalid, missing
from gpukube_sandbox.gke.wire.names import exists
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube_sandbox.gke.machines import Machine

_T = TypeVar("_T")

REGIONS = ("us-central1", "europe-west4")
_ZONES = "abc"
_ZONAL_KINDS = "machineTypes|acceleratorTypes|reservations"
_AGGREGATED = re.compile(rf"/compute/v1/projects/([^/]+)/aggregated/({_ZONAL_KINDS})")
_ZONAL = re.compile(rf"/compute/v1/projects/([^/]+)/zones/([^/]+)/({_ZONAL_KINDS})(?:/([^/]+))?")
_ZONE = re.compile(r"/compute/v1/projects/([^/]+)/zones(?:/([^/]+))?")
REGION = re.compile(r"/compute/v1/projects/([^/]+)/regions/([^/]+)")
REGION_LIST = re.compile(r"/compute/v1/projects/([^/]+)/regions")
PROJECT = re.compile(r"/compute/v1/projects/([^/]+)")
INFO = re.compile(
    r"/v1/projects/([^/]+)/locations/global/services/compute\.googleapis\.com/quotaInfos/"
    r"GPUS-PER-GPU-FAMILY-per-project-region"
)
SERIES = re.compile(r"/v3/projects/([^/]+)/timeSeries")
_SKUS = "/v1/services/6F81-5844-456A/skus"
_PAGE = 40
"""Entries per page: few zones as in real responses, so that lists usually have several pages."""
_MAX_RESULTS = 500
"""Maximum from the comment on `maxResults` of every list in Compute Engine's discovery document."""
_FIELDS = {
    "machineTypes": "accelerators architecture bundledLocalSsds creationTimestamp deprecated description guestCpus id"
    " imageSpaceGb isSharedCpu kind maximumPersistentDisks maximumPersistentDisksSizeGb memoryMb name selfLink zone",
    "acceleratorTypes": "creationTimestamp deprecated description id kind maximumCardsPerInstance name selfLink zone",
    "zones": "availableCpuPlatforms creationTimestamp deprecated description id kind name region selfLink status"
    " supportsPzs",
    "regions": "creationTimestamp deprecated description id kind name quotaStatusWarning quotas selfLink status"
    " supportsPzs zones",
    "reservations": "aggregateReservation commitment creationTimestamp deleteAfterDuration deleteAtTime deploymentType"
    " description enableEmergentMaintenance id kind linkedCommitments name reservationSharingPolicy resourcePolicies"
    " resourceStatus satisfiesPzs selfLink shareSettings specificReservation specificReservationRequired status zone",
}
"""List -> fields of its resources that filters can use (the discovery document)."""
_SSDS = {"a2-ultragpu-": 1, "a3-highgpu-": 2}
"""Local SSDs per GPU of machines that include them."""

_GPU_USD = {
    "Nvidia Tesla A100 GPU": 2.9, "Nvidia Tesla A100 80GB GPU": 3.9, "Nvidia H100 80GB GPU": 9.8, "Nvidia L4 GPU": 0.55,
    "Nvidia Tesla T4 GPU": 0.35, "Nvidia Tesla V100 GPU": 2.4, "Nvidia Tesla P100 GPU": 1.4, "Nvidia Tesla P4 GPU": 0.6,
    "RTX 6000 96GB": 3.5,
}  # fmt: skip
_PART_USD = {
    "A2 Instance Core": 0.03, "A2 Instance Ram": 0.004, "A3 Instance Core": 0.029, "A3 Instance Ram": 0.0025,
    "G2 Instance Core": 0.025, "G2 Instance Ram": 0.003, "G4 Instance Core": 0.04, "G4 Instance Ram": 0.005,
    "N1 Predefined Instance Core": 0.03, "N1 Predefined Instance Ram": 0.004,
}  # fmt: skip
_SSD_USD_MONTH = 0.08
_SSD_GB, _HOURS_A_MONTH = 375, 730
_GPUS_OF = {
    "nvidia-tesla-a100": "Nvidia Tesla A100 GPU", "nvidia-a100-80gb": "Nvidia Tesla A100 80GB GPU",
    "nvidia-h100-80gb": "Nvidia H100 80GB GPU", "nvidia-l4": "Nvidia L4 GPU", "nvidia-rtx-pro-6000": "RTX 6000 96GB",
}  # fmt: skip
"""Accelerator type that machines include -> its SKU."""
_SPOT = 0.3
_FAR = {"us-central1": 1.0, "europe-west4": 1.1}
_PLACES = {"us-central1": "Americas", "europe-west4": "Netherlands"}


def is_market(path: str) -> bool:
    """Return whether a path belongs to Compute Engine or the Billing Catalog, not to GKE."""
    return path.startswith(("/compute/", "/v1/services/"))


def is_quota(path: str) -> bool:
    """Return whether a path belongs to one of the APIs for quotas (`quotas`)."""
    return any(form.fullmatch(path) for form in (REGION, REGION_LIST, PROJECT, INFO, SERIES))


def answer_market(method: str, path: str, query: Mapping[str, str], reservations: Mapping[str, list[Json]]) -> Json:
    """Return the response to a request.

    Args:
        method: HTTP method.
        path: Without the query.
        query: The request's query parameters.
        reservations: Reservations of the project, by zone.

    Raises:
        GoogleError: Unknown list, or an invalid filter or page.
    """
    if method != "GET":
        raise GoogleError("UNIMPLEMENTED", f"The gpukube sandbox does not emulate {method} {path}.")
    if path == _SKUS:
        return _paged(_skus(), query, "skus", _size(query.get("pageSize", "")))
    if found := _ZONAL.fullmatch(path):
        project, zone, kind, name = found.groups()
        if not exists(zone):
            raise invalid(f"Invalid value for field 'zone': '{zone}'. Unknown zone.")  # inspec/inspec-gcp#301
        items = reservations.get(zone, []) if kind == "reservations" else _in_zone(kind, project, zone)
        return _listed_or_named(items, query, kind, name, f"projects/{project}/zones/{zone}/{kind}")
    if found := _ZONE.fullmatch(path):
        return _of_zones(found[1], found[2], query)
    found = _AGGREGATED.fullmatch(path)
    if found is None:
        if path.startswith("/v1/services/"):
            raise missing(path)
        raise GoogleError("UNIMPLEMENTED", f"The gpukube sandbox does not emulate GET {path}.")
    project, kind = found.groups()
    fits = parse_filter(query.get("filter", ""), _FIELDS[kind].split())
    scopes = []
    for zone in sorted({*all_zones(), *reservations}):
        items = reservations.get(zone, []) if kind == "reservations" else _in_zone(kind, project, zone)
        scopes.append((f"zones/{zone}", kind, [item for item in items if fits(item)]))
    return _aggregated(scopes, query, kind)


def all_zones() -> list[str]:
    """Return the zones that have machines here."""
    return [f"{region}-{zone}" for region in REGIONS for zone in _ZONES]


def _of_zones(project: str, name: str | None, query: Mapping[str, str]) -> Json:
    base = f"https://www.googleapis.com/compute/v1/projects/{project}"
    if name is not None and not exists(name):  # like regions (GoogleCloudPlatform/terraformer#1928)
        raise invalid(f"Invalid value for field 'zone': '{name}'. Unknown zone.")
    items: list[Json] = [
        {
            "kind": "compute#zone",
            "name": zone,
            "status": "UP",
            "region": f"{base}/regions/{zone[:-2]}",
            "selfLink": f"{base}/zones/{zone}",
        }
        for zone in all_zones()
    ]
    return _listed_or_named(items, query, "zones", name, f"projects/{project}/zones")


def _listed_or_named(items: list[Json], query: Mapping[str, str], kind: str, name: str | None, path: str) -> Json:
    if name is None:
        return listed(items, query, kind)
    for item in items:
        if item["name"] == name:
            return item
    raise GoogleError("NOT_FOUND", f"The resource '{path}/{name}' was not found")


def listed(items: list[Json], query: Mapping[str, str], kind: str) -> Json:
    """Return one page of a list of Compute Engine.

    Args:
        items: All entries.
        query: Parameters of the request: filter, maxResults, pageToken.
        kind: A key of `_FIELDS`.

    Raises:
        GoogleError: 400 for an invalid filter, number, or token.
    """
    fits = parse_filter(query.get("filter", ""), _FIELDS[kind].split())
    page = _paged([item for item in items if fits(item)], query, "items", _page_size(query))
    return {"kind": f"compute#{kind.removesuffix('s')}List", **page}


def _in_zone(kind: str, project: str, zone: str) -> list[Json]:
    base = f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}"
    if kind == "machineTypes":
        return [
            {**_machine(machine), "zone": zone, "selfLink": f"{base}/machineTypes/{machine.name}"}
            for machine in all_machines()
            if offers(zone, machine.accelerator)
        ]
    return [
        {
            "kind": "compute#acceleratorType",
            "name": name,
            "description": name,
            "maximumCardsPerInstance": max(accelerator.attached, default=16),
            "zone": f"{base}",
        }
        for name, accelerator in ACCELERATORS.items()
        if offers(zone, name)
    ]


def offers(zone: str, accelerator: str) -> bool:
    """Return whether a zone has an accelerator (invented): the newest GPUs are in only one US zone."""
    if accelerator in {"nvidia-b200", "nvidia-gb200", "nvidia-gb300", "nvidia-h200-141gb"}:
        return zone == "us-central1-b"
    return accelerator != "nvidia-tesla-p100" or zone.startswith("us-")


def spot_usd(machine: Machine, region: str) -> float:
    """Return the Spot price per hour of a machine with what it includes; 0 where a part has no price here."""
    start = f"{machine.family.upper()} {'Predefined ' if machine.family == 'n1' else ''}Instance"
    core, ram = _PART_USD.get(f"{start} Core"), _PART_USD.get(f"{start} Ram")
    gpu = _GPU_USD.get(_GPUS_OF.get(machine.accelerator, "")) if machine.accelerator else 0.0
    if core is None or ram is None or gpu is None:
        return 0.0
    disks = _bundled_disks(machine) * _SSD_GB * _SSD_USD_MONTH / _HOURS_A_MONTH
    usd = machine.vcpus * core + machine.memory_gib * ram + machine.gpus * gpu + disks
    return usd * _SPOT * _FAR.get(region, 1.0)


def _bundled_disks(machine: Machine) -> int:
    per_gpu = next((count for start, count in _SSDS.items() if machine.name.startswith(start)), 0)
    return 0 if machine.name.endswith("-nolssd") else per_gpu * machine.gpus


def _machine(machine: Machine) -> Json:
    gpus: Json = {
        "accelerators": [{"guestAcceleratorType": machine.accelerator, "guestAcceleratorCount": machine.gpus}]
    }
    count = _bundled_disks(machine)
    disks: Json = {"bundledLocalSsds": {"defaultInterface": "NVME", "partitionCount": count}}
    return {
        "kind": "compute#machineType",
        "name": machine.name,
        "guestCpus": machine.vcpus,
        "memoryMb": int(machine.memory_gib * 1024),
        "architecture": "ARM64" if machine.arm else "X86_64",
        **(gpus if machine.accelerator else {}),
        **(disks if count else {}),
    }


def _aggregated(scopes: list[tuple[str, str, list[Json]]], query: Mapping[str, str], kind: str) -> Json:
    """Return one page of an aggregated list: every page names every scope, empty ones with a warning."""
    flat = [(scope, item) for scope, _, items in scopes for item in items]
    page, following = _cut(kind, flat, query, _page_size(query))
    named: Json = {}
    for scope, _, _ in scopes:
        own = [item for at, item in page if at == scope]
        empty: Json = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": f"No results for scope '{scope}'."}}
        named[scope] = {kind: own} if own else empty
    more = {"nextPageToken": following} if following else {}
    return {"kind": f"compute#{kind.removesuffix('s')}AggregatedList", "items": named, **more}


def _paged(items: list[Json], query: Mapping[str, str], key: str, size: int) -> Json:
    page, following = _cut(key, items, query, size)
    return {key: list(page), "nextPageToken": following}


def _cut(of: str, items: Sequence[_T], query: Mapping[str, str], size: int) -> tuple[Sequence[_T], str]:
    try:
        return cut(of, items, query.get("pageToken", ""), size)
    except WrongToken as error:
        raise invalid("Invalid value for field 'pageToken'.") from error


def _page_size(query: Mapping[str, str]) -> int:
    """Return the page size of a Compute Engine request."""
    requested = query.get("maxResults", "")
    if requested and not (requested.isdecimal() and int(requested) <= _MAX_RESULTS):  # the message is the sandbox's own
        raise invalid(f"Invalid value for field 'maxResults': '{requested}'. Must be between 0 and {_MAX_RESULTS}.")
    return _size(requested)


def _size(requested: str) -> int:
    return min(int(requested) or _PAGE, _PAGE) if requested.isdigit() else _PAGE


def _skus() -> list[Json]:
    """Return SKUs of machine parts: on demand, Spot, and with discounts that node pools do not get."""
    found: list[Json] = []
    for region in REGIONS:
        place = f"running in {_PLACES[region]}"
        for name, usd in _GPU_USD.items():
            found += [
                _sku(f"{name} {place}", "GPU", region, usd),
                _sku(f"{name} attached to Spot Preemptible VMs {place}", "GPU", region, usd * _SPOT, "Preemptible"),
                _sku(f"Commitment v1: {name} {place} for 1 Year", "GPU", region, usd * 0.7, "Commit1Yr"),
                _sku(f"Reserved {name} in {_PLACES[region]}", "GPU", region, usd * 0.9),
            ]
        for name, usd in _PART_USD.items():
            group = "RAM" if name.endswith("Ram") else "CPU"
            found += [
                _sku(f"{name} {place}", group, region, usd),
                _sku(f"Spot Preemptible {name} {place}", group, region, usd * _SPOT, "Preemptible"),
                _sku(f"{name.replace('Instance', 'Custom Instance')} {place}", group, region, usd * 1.05),
            ]
        found += [
            _sku(f"SSD backed Local Storage in {_PLACES[region]}", "LocalSSD", region, _SSD_USD_MONTH),
            _sku(
                "SSD backed Local Storage attached to Spot Preemptible VMs", "LocalSSD", region, _SSD_USD_MONTH * _SPOT
            ),
        ]
    return found


def _sku(text: str, group: str, region: str, usd: float, usage: str = "OnDemand") -> Json:
    units, nanos = divmod(round(usd * _FAR[region] * 1e9), 10**9)
    price = {"currencyCode": "USD", "units": str(units), "nanos": nanos}
    rate = {"usageUnit": "h", "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}]}
    return {
        "skuId": f"{zlib.crc32(f'{text} {region}'.encode()):08X}",
        "description": text,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Storage" if group == "LocalSSD" else "Compute",
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": [region],
        "pricingInfo": [{"pricingExpression": rate}],
    }
