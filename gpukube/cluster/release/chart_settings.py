"""Chart settings in pools: the version, and values in addition to gpukube's own.

In scope: pools -> version and values; pure. Out of scope: gpukube's own values (plugin_values, operator_values,
dra_values).

A cluster has one release of a device plugin and one of the DRA driver, so the pools of each must agree; gpukube's own
values follow from the pools, so a different value for one of them would be overwritten silently. Both are rejected
before any call.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DEVICE_PLUGIN, DRA_DRIVER, kind_of
from gpukube.core.jsontree import at, leaves
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import Desired


def requested_version(pools: Sequence[Desired]) -> str:
    """Return the chart version that the pools of one cluster request; "" if none does."""
    return next((pool.target.chart_version for pool in pools if pool.target.chart_version), "")


def requested_values(pools: Sequence[Desired]) -> dict[str, object]:
    """Merge the additional values of the pools of one cluster."""
    merged: dict[str, object] = {}
    for pool in pools:
        lay_over(merged, pool.target.chart_values)
    return merged


def lay_over(values: dict[str, object], over: Mapping[str, object]) -> None:
    """Merge values over others, key by key; like in Helm, lists and scalars are replaced."""
    for key, value in over.items():
        below = values.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            values[key] = below = dict(below)
            lay_over(below, value)
        else:
            values[key] = copy.deepcopy(value)


def check_served(pools: Sequence[Desired]) -> list[Finding]:
    """Report chart settings of pools that no chart serves."""
    return [
        Finding(
            "chart-not-ours",
            pool.target.locator.at(f"devicePlugin.{field}"),
            f"{pool.target.where}: devicePlugin.{field} is set, but no chart of gpukube serves the pool",
            why=pool.ownership.reason,
            fix="remove it",
        )
        for pool in pools
        if kind_of(pool.ownership.advertiser) is None
        for field, requested in (("version", pool.target.chart_version), ("values", pool.target.chart_values))
        if requested
    ]


_OLDEST_CHART: Final = (0, 17, 1)
"""Charts 0.16.0 to 0.17.0 render a value of the plugin's environment as a boolean, which the API server rejects
(NVIDIA/k8s-device-plugin, charts of gh-pages); earlier ones lack values that gpukube sets."""
_VERSION: Final = re.compile(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]+)?")
"""A chart's semantic version, as Helm requires; names such as latest are for images (docs: helm.sh, charts)."""
_LEAP: Final = 10
"""Minor versions beyond the chart that gpukube installs; anything newer is a typo."""


def check_age(pools: Sequence[Desired]) -> list[Finding]:
    """Warn about versions of the plugin's chart that are too old for gpukube's values, or that cannot exist yet."""
    known = _chart_version(DEVICE_PLUGIN.version)
    found = []
    for pool in pools:
        version = pool.target.chart_version
        kind = kind_of(pool.ownership.advertiser)
        if kind and version and not _VERSION.fullmatch(version):
            found.append(
                Finding(
                    "chart-version",
                    pool.target.locator.at("devicePlugin.version"),
                    f"{pool.target.where}: devicePlugin.version is {version}, which is not a chart version",
                    fix=f"write a version such as {kind.version}, or remove it to use that",
                )
            )
        requested = _chart_version(version)
        if pool.ownership.advertiser != DEVICE_PLUGIN.advertiser or not requested or not known:
            continue
        is_old = requested < _OLDEST_CHART
        if is_old or requested > (known[0], known[1] + _LEAP, known[2]):
            oldest = ".".join(map(str, _OLDEST_CHART))
            found.append(
                Finding(
                    "chart-version",
                    pool.target.locator.at("devicePlugin.version"),
                    f"{pool.target.where}: devicePlugin.version is {pool.target.chart_version}, "
                    + ("older than gpukube supports" if is_old else "newer than any existing chart"),
                    fix=f"write {oldest} or newer, or remove it to use {DEVICE_PLUGIN.version}",
                    severity="warning",
                )
            )
    return found


def _chart_version(text: str) -> tuple[int, ...]:
    """Parse the three numbers of a version; return () for any other format."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def check_agreement(pools: Sequence[Desired]) -> list[Finding]:
    """Report pools of one release that request different versions, or different values at one path."""
    first: dict[tuple[bool, str], tuple[object, Desired]] = {}
    found = []
    for pool in pools:
        for path, value in _requested(pool):
            is_claimed = pool.ownership.advertiser == DRA_DRIVER.advertiser  # the cluster's other release
            known, other = first.setdefault((is_claimed, path), (value, pool))
            if known != value:
                found.append(
                    Finding(
                        "chart-twice",
                        pool.target.locator.at(path),
                        f"{pool.target.where}: {path} is {value}, but pool {other.target.pool} has {known}",
                        why="one release serves all pools of a cluster" + (" of the DRA driver" if is_claimed else ""),
                        fix="write the same in both, or in only one of them",
                    )
                )
    return found


def _requested(pool: Desired) -> Iterator[tuple[str, object]]:
    if pool.target.chart_version:
        yield "devicePlugin.version", pool.target.chart_version
    for path, value in leaves(pool.target.chart_values):
        yield f"devicePlugin.values.{'.'.join(path)}", value


def check_own_values(pools: Sequence[Desired], values: Mapping[str, object]) -> list[Finding]:
    """Report values that conflict with those that gpukube sets itself.

    Args:
        pools: Pools of one cluster that its release serves.
        values: Values that the release would get.
    """
    requested = requested_values(pools)
    return [
        Finding(
            "chart-value-ours",
            pool.target.locator.at(f"devicePlugin.values.{'.'.join(path)}"),
            f"{pool.target.where}: devicePlugin.values.{'.'.join(path)} is set by gpukube",
            why="its value follows from sharing, taints and the other plugins of the cluster",
            fix="remove it",
        )
        for pool in pools
        for path, _value in leaves(pool.target.chart_values)
        if at(values, *path) != at(requested, *path)
    ]
