"""Usage for other programs: CSV for spreadsheets, OpenMetrics for whatever collects metrics.

Source: OpenMetrics 1.0 (prometheus/OpenMetrics specification, "Text format"): label values escape backslash, quote and
line feed; a family's samples are together; the text ends with # EOF.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.engine.documents.shapes.map import HeldPart, MapStock
    from gpukube.engine.documents.shapes.usage import UsageDocument

    Sample = tuple[dict[str, str], float]

COLUMNS: Final = (
    *("row", "cluster", "provider", "region", "owner", "group", "pool", "namespace", "resource", "kind", "profile"),
    *("total", "held", "free", "unusable", "unhealthy", "not_advertised", "waiting"),
    *("held_usd_per_hour_min", "held_usd_per_hour_max", "idle_usd_per_hour_min", "idle_usd_per_hour_max", "priced"),
)
"""Columns of the CSV. Rows of pools have one resource each, and those of namespaces too: sum one kind of rows only.

What a namespace waits for has rows of its own: nobody knows yet whether it gets GPUs, instances or shares."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that spreadsheets run as a formula."""
_STATES: Final = {
    "held": "held",
    "free": "free",
    "unusable": "unusable",
    "unhealthy": "unhealthy",
    "notAdvertised": "not_advertised",
}


def csv_lines(document: UsageDocument) -> Iterator[str]:
    """Write a row for each pool and resource, then for each namespace and resource."""
    yield ",".join(COLUMNS)
    for row in _rows(document):
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([_cell(row.get(column, "")) for column in COLUMNS])
        yield text.getvalue()


def _cell(value: object) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _rows(document: UsageDocument) -> Iterator[Mapping[str, object]]:
    for cluster in document["clusters"]:
        place = {"cluster": cluster["cluster"], "provider": cluster["provider"], "region": cluster["region"]}
        for pool in cluster["pools"]:
            mark = {"row": "pool", **place, "owner": pool["owner"], "group": pool["group"], "pool": pool["name"]}
            priced = bool(pool["nodes"]) and pool["cost"]["pricedNodes"] == pool["nodes"]
            for stock in pool["stocks"]:
                held, idle = stock["price"]["held"], stock["price"]["idle"]
                yield {
                    **mark,
                    **_what(stock),
                    "total": stock["total"],
                    "held": stock["held"],
                    "free": stock["free"],
                    "unusable": stock["unusable"],
                    "unhealthy": stock["unhealthy"],
                    "not_advertised": stock["notAdvertised"],
                    "held_usd_per_hour_min": held["min"],
                    "held_usd_per_hour_max": held["max"],
                    "idle_usd_per_hour_min": idle["min"],
                    "idle_usd_per_hour_max": idle["max"],
                    "priced": "yes" if priced else "no",
                }
        for space in cluster["namespaces"]:
            row = {"row": "namespace", **place, "namespace": space["namespace"], "held": 0, "waiting": 0}
            unpriced = [_what(part) for part in space["unpriced"]]
            for part in space["held"]:
                known = "no" if _what(part) in unpriced else "yes"
                yield {**row, **_what(part), "held": part["count"], "priced": known}
            for name, count in space["waiting"].items():
                yield {**row, "resource": name, "waiting": count}


def _what(part: MapStock | HeldPart) -> dict[str, str]:
    return {"resource": part["resource"], "kind": part["kind"], "profile": part["profile"]}


def openmetrics_lines(document: UsageDocument) -> Iterator[str]:
    """Write the document as one scrape."""
    for name, words, samples in _families(document):
        yield f"# TYPE {name} gauge"
        yield f"# HELP {name} {words}"
        for labels, value in samples:
            text = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            yield f"{name}{{{text}}} {value:g}" if float(f"{value:g}") == value else f"{name}{{{text}}} {value!r}"
    yield "# EOF"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _families(document: UsageDocument) -> Iterator[tuple[str, str, list[Sample]]]:
    clusters = document["clusters"]
    read = [
        ({"cluster": one["cluster"], "provider": one["provider"]}, float(not (one["error"] or one["unknown"])))
        for one in clusters
    ]
    yield "gpukube_cluster_read", "Whether the cluster could be read.", read
    devices: list[Sample] = []
    nodes: list[Sample] = []
    prices: list[Sample] = []
    unpriced: list[Sample] = []
    for cluster in clusters:
        for pool in cluster["pools"]:
            mark = {
                "cluster": cluster["cluster"],
                "pool": pool["name"],
                "group": pool["group"],
                "owner": pool["owner"],
            }
            nodes += [
                ({**mark, "state": "in_cluster"}, pool["nodes"]),
                ({**mark, "state": "starting"}, pool["starting"]),
            ]
            for stock in pool["stocks"]:
                counts: Mapping[str, object] = stock
                devices += [
                    ({**mark, **_what(stock), "state": state}, float(str(counts[key])))
                    for key, state in _STATES.items()
                ]
            for use, usd in (("held", pool["cost"]["held"]), ("idle", pool["cost"]["idle"])):
                prices += [({**mark, "use": use, "bound": bound}, usd[bound]) for bound in ("min", "max")]
            unpriced.append(({**mark, "why": "reserved"}, pool["cost"]["reservedNodes"]))
            unpriced.append(({**mark, "why": "unknown"}, pool["cost"]["unknownNodes"]))
    yield "gpukube_nodes", "Nodes of GPU pools.", nodes
    yield "gpukube_devices", "GPUs, MIG instances and shares by state.", devices
    yield "gpukube_usd_per_hour", "List price of nodes per hour by what pods hold of them.", prices
    yield "gpukube_unpriced_nodes", "Nodes that are in no price.", unpriced
    held: list[Sample] = []
    waiting: list[Sample] = []
    space_prices: list[Sample] = []
    stuck: list[Sample] = []
    for cluster in clusters:
        for space in cluster["namespaces"]:
            mark = {"cluster": cluster["cluster"], "namespace": space["namespace"]}
            held += [({**mark, **_what(part)}, part["count"]) for part in space["held"]]
            waiting += [({**mark, "resource": name}, count) for name, count in space["waiting"].items()]
            usd = space["heldUsdPerHour"]
            space_prices += [({**mark, "bound": bound}, usd[bound]) for bound in ("min", "max")]
        troubles: dict[tuple[str, str], int] = {}
        for pod in cluster["stuck"]:
            key = pod["namespace"], pod["trouble"]
            troubles[key] = troubles.get(key, 0) + 1
        stuck += [
            ({"cluster": cluster["cluster"], "namespace": namespace, "trouble": trouble}, count)
            for (namespace, trouble), count in troubles.items()
        ]
    yield "gpukube_namespace_held_devices", "Devices that the pods and claims of a namespace hold.", held
    yield "gpukube_namespace_waiting_devices", "Devices that the pods of a namespace wait for.", waiting
    yield "gpukube_namespace_usd_per_hour", "List price per hour of what a namespace holds.", space_prices
    yield "gpukube_stuck_pods", "Pods that hold devices and do not use them.", stuck
