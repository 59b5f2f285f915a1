"""Quotas of Azure that limit GPU sizes, and how many nodes AKS adds while it replaces a pool's nodes.

In scope: what each quota counts, and parsing Azure's response. Out of scope: the calls (`live.quotas`).

Azure counts vCPUs: regular machines by the family of their size and in the region, Spot machines in one quota for all
sizes (docs: virtual-machines/spot-vms). Family names are those of Resource SKUs: Azure/karpenter-provider-azure,
pkg/providers/instancetype/known_skus.yaml @352646f5. Comparisons of families ignore case and spaces, in which the APIs
differ.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, decimal
from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaDraw, QuotaReading, share_of
from gpukube_aks.pool.updates import find_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.values import Capacity, Change, ClusterRef, Desired, Observed
    from gpukube.gpu.catalog import Machine

_FAMILIES: Final = tuple(
    (re.compile(f"Standard_{size}"), family)
    for size, family in (
        (r"NC\d+as_T4_v3", "Standard NCASv3_T4 Family"),
        (r"NC\d+r?s_v3", "standardNCSv3Family"),
        (r"ND40rs_v2", "standardNDSv2Family"),
        (r"NC\d+ads_A100_v4", "StandardNCADSA100v4Family"),
        (r"ND96asr_v4", "Standard NDASv4_A100 Family"),
        (r"ND96amsr_A100_v4", "standard NDAMSv4_A100Family"),
        (r"NC\d+adi?s_H100_v5", "StandardNCadsH100v5Family"),
        (r"NCC\d+ads_H100_v5", "StandardNCCads2023Family"),
        (r"ND96isr?_H100_v5", "standardNDSH100v5Family"),
        (r"ND96isr_H200_v5", "standardNDISRH200V5Family"),
        (r"ND128isr_NDR_GB200_v6", "standardNDISRGB200V6NDRFamily"),
        (r"ND128isr_GB300_v6", "standardNDISRGB300V6Family"),
        (r"NV\d+adm?s_A10_v5", "StandardNVADSA10v5Family"),
        (r"NC\d+ads_A10_v4", "StandardNCADSA10v4Family"),
        (r"NC\d+l?ds_xl_RTXPRO6000BSE_v6", "StandardNCdsRTXPRO6000BSEv6XLFamily"),
    )
)
_USAGE: Final = "docs: rest/api/compute/usage/list"
_SPOT: Final = "docs: virtual-machines/spot-vms (quota)"
_RAISE: Final = (
    "az quota update --resource-name '{name}' --limit-object value={{value}} "
    "--scope /subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}"
)
"""Command of az's extension quota (Azure/azure-cli-extensions, src/quota)."""
_DEFAULT_SURGE: Final = "10%"
"""Default of AKS (SDK, AgentPoolUpgradeSettings.maxSurge)."""


def _draws(cluster: ClusterRef, location: str, machine: Machine, capacity: Capacity) -> tuple[QuotaDraw, ...]:
    family = next((family for size, family in _FAMILIES if size.fullmatch(machine.name)), "")
    if capacity.type == "spot":
        named = [("lowPriorityCores", "Total Regional Spot vCPUs", _SPOT, "")]
    else:
        listing = f"az vm list-skus -l {location} --size {machine.name}"
        unread = "" if family else f"the quota family of {machine.name} is unknown: {listing}"
        named = [
            (family or f"family of {machine.name}", "vCPUs of the size's family", _USAGE, unread),
            ("cores", "Total Regional vCPUs", _USAGE, ""),
        ]
    held = "whether nodes of a capacity reservation group count beyond the reservation is not documented"
    known = "" if machine.vcpus is not None else f"the catalog has no vCPUs of {machine.name}"
    return tuple(
        QuotaDraw(
            CloudQuota(
                provider="aks",
                name=name,
                title=title,
                unit="vCPUs",
                place=f"{cluster.identity['subscription']}/{location}",
                raise_by=_RAISE.format(name=name, location=location, subscription=cluster.identity["subscription"]),
                source=source,
                unread=known or (held if capacity.type == "reserved" else unread),
            ),
            machine.vcpus or 0,
        )
        for name, title, source, unread in named
    )


def _surge(desired: Desired, observed: Observed, changes: Sequence[Change]) -> int:
    """Return maxSurge as a number if a change recreates the nodes; 0 for Spot pools (docs: aks/spot-node-pool)."""
    rows = [find_row(change, observed) for change in changes]
    if not any(row.renews_nodes for row in rows) or desired.target.capacity.type == "spot":
        return 0
    return share_of(desired.target.upgrade.max_surge or _DEFAULT_SURGE, observed.nodes or 0)


QUOTAS: Final = CloudQuotas(draws=_draws, surge=_surge)


def read_usages(items: Iterable[Mapping[str, object]], asked: Sequence[CloudQuota]) -> dict[CloudQuota, QuotaReading]:
    """Return the requested quotas from the usages of a region, without those that are not listed."""
    rows = {_plain(str(at(item, "name", "value") or "")): item for item in items}
    found = {quota: rows[_plain(quota.name)] for quota in asked if _plain(quota.name) in rows}
    return {quota: _reading(item) for quota, item in found.items()}


def _reading(item: Mapping[str, object]) -> QuotaReading:
    limit, used = decimal(item, "limit"), decimal(item, "currentValue")
    return QuotaReading(limit, used, "" if None not in (limit, used) else "Azure's response has no numbers for it")


def _plain(name: str) -> str:
    return name.replace(" ", "").casefold()
