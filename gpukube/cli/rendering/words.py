"""The facts of a plan in words, the same on the terminal, in Markdown, and in GitHub annotations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import gpu_words, number, plural, short, value_words
from gpukube.cluster.proof.outcome import NOT_MANAGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.engine.documents.shapes.parts import Toleration
    from gpukube.engine.documents.shapes.plan import (
        ClusterPart,
        Devices,
        Drift,
        Loss,
        NodeRepair,
        Order,
        PlanDocument,
        PoolPart,
        Release,
        UnplannedPool,
    )

PODS_SHOWN: Final = 6


def releases_of(cluster: ClusterPart) -> list[Release]:
    """Return what a cluster has or gets as releases, the device plugin's first; older documents have no other."""
    first, second = cluster["release"], cluster.get("draRelease")
    is_there = first is not None and (first["action"] != "none" or bool(first["entries"]))
    return [release for release in (first if is_there else None, second) if release]


def release_acts(release: Release) -> bool:
    """Return whether the plan changes the release."""
    return release["action"] in ("install", "upgrade")


def drift_words(drift: Drift) -> str:
    """Describe how an object differs from what the release created."""
    if not drift["field"]:
        return f"{drift['object']} is missing"
    return f"{drift['object']}: {drift['field']}: {value_words(drift['old'])} -> {value_words(drift['new'])}"


def orders_of(cluster: ClusterPart) -> list[Order]:
    """Return the orders of families that the plan writes."""
    return [order for order in cluster.get("orders", ()) if order["action"] in ("create", "update")]


def order_words(order: Order) -> str:
    """Return for which families an order is written."""
    return f"order of {', '.join(order['families'])}: {order['why']}"


def family_words(pool: PoolPart) -> str:
    """Return the place of a pool among its alternatives, and how it differs from the first; "" without alternatives."""
    if (family := pool.get("family")) is None:
        return ""
    differs = f": {'; '.join(family['differs'])}" if family["differs"] else ""
    return f"alternative {family['rank']} of {family['of']}{differs}"


def family_wait(pool: PoolPart) -> str:
    """Return the longest time that a run may wait for machines of a family; "" if it has nodes."""
    family = pool.get("family")
    if family is None or family["mostWaitSeconds"] is None:
        return ""
    return f"at most {family['mostWaitSeconds'] / 60:g} min for machines, over all {family['of']} alternatives"


def repair_words(repair: NodeRepair) -> str:
    """Return which label or taint a node has lost."""
    return f"{repair['field']}: {value_words(repair['old'])} -> {value_words(repair['new'])}"


def cost_words(loss: Loss, *, whole: bool = False) -> str:
    """Describe what is lost: nodes, GPUs, pods (the first few by name, all if `whole`)."""
    parts = [
        "an unknown number of nodes"
        if loss["nodes"] is None
        else plural(loss["nodes"], "node")
        if loss["of"] is None
        else f"{loss['nodes']} of {plural(loss['of'], 'node')}",
        "an unknown number of GPUs" if loss["gpus"] is None else plural(loss["gpus"], "GPU"),
    ]
    if loss["pods"] is None:
        return ", ".join([*parts, "pods unknown"])
    shown = loss["pods"] if whole else loss["pods"][:PODS_SHOWN]
    more = len(loss["pods"]) - len(shown)
    names = ", ".join(shown) + (f" and {more} more" if more else "")
    pods = plural(len(loss["pods"]), "running pod") if loss["pods"] else "no running pods"
    if loss["pods"] and loss["of"] is not None:
        pods = f"some of {pods}"
    return ", ".join([*parts, pods]) + (f": {names}" if names else "")


def device_change(pool: PoolPart | UnplannedPool) -> str:
    """Return the devices that the pool shows now, if they will change, and after."""
    devices = pool["devices"]
    if not pool["managed"]:
        shown = ", ".join(f"{name}: {count}" for name, count in (devices["now"] or {}).items() if count)
        return f"not managed: your own plugin advertises {shown}" if shown else NOT_MANAGED
    words = [
        f"{name}: {_from(devices, name)}{devices['perNode'][name]} per node, {_total(devices, name)} in all"
        for name in devices["perNode"]
    ]
    words += [f"{name}: {count} now, none after" for name, count in _leaving(devices)]
    gpus = gpu_words(pool["gpu"])
    return (", ".join(words) or "none") + (f" ({gpus})" if gpus else "")


def short_devices(pool: PoolPart | UnplannedPool) -> str:
    """Return the device change for a table cell: `gpu 8 -> 56`."""
    devices = pool["devices"]
    if not pool["managed"]:
        return "not managed"
    if not any((*devices["max"].values(), *(devices["now"] or {}).values())):
        return "-"
    now = devices["now"]
    words = [
        f"{short(name)} {'?' if now is None else now.get(name, 0)} -> {_total(devices, name)}"
        for name in devices["perNode"]
    ]
    words += [f"{short(name)} {count} -> 0" for name, count in _leaving(devices)]
    return ", ".join(words) or "-"


def gpu_line(document: PlanDocument) -> str:
    """Return the total physical GPUs before and after, for the clusters that could be read."""
    gpus = document["summary"]["gpus"]
    unread = [cluster["cluster"] for cluster in document["clusters"] if cluster["error"]]
    if unread and len(unread) == len(document["clusters"]):
        return "GPUs: unknown"
    low, high = number(gpus["min"]), number(gpus["max"])
    before = "unknown" if gpus["before"] is None else number(gpus["before"])
    without = f", not counting {', '.join(unread)}" if unread else ""
    return f"GPUs: {before} now, {low if low == high else f'{low} to {high}'} after{without}"


def toleration_lines(tolerations: Sequence[Toleration]) -> Iterator[str]:
    """Return the tolerations that pods need as lines of YAML to paste."""
    if tolerations:
        yield "tolerations:"
    for one in tolerations:
        value = f"value: {json.dumps(one['value'])}, " if one["value"] else ""
        yield f"- {{key: {one['key']}, operator: {one['operator']}, {value}effect: {one['effect']}}}"


def unread_line(document: PlanDocument) -> str:
    """Return the clusters of the spec that were not read; "" if all were."""
    keys = document["notRead"]
    it = "it" if len(keys) == 1 else "them"
    return f"not read: {', '.join(keys)} (no pool of this plan is on {it})" if keys else ""


def outcome_of_diff(document: PlanDocument) -> str:
    """Return whether anything differs, qualified if not everything could be read."""
    summary = document["summary"]
    if document["differs"]:
        return "differs from the spec"
    part = summary["clustersFailed"] or summary["clustersUnknown"]
    return "no differences in what could be read" if part else "no differences"


def needs_line(document: PlanDocument) -> str:
    """Return the flags that apply needs for the whole plan; "" if it needs none."""
    pools = [pool for cluster in document["clusters"] for pool in cluster["pools"]]
    flags = dict.fromkeys(flag for pool in pools for flag in pool["needs"])
    if "--replace surge" in flags:  # a run replaces in one way; it reports the pools that cannot surge
        flags.pop("--replace recreate", None)
    what = "what can be applied" if stuck_line(document) else "all of it"
    return f"to apply {what}, add: {' '.join(flags)}" if flags else ""


def _is_adoptable(pool: PoolPart) -> bool:
    """Return whether --adopt would adopt the pool that is in the way."""
    nobodys = pool["live"] is not None and not pool["live"]["owner"]
    return nobodys and any(found["code"] == "foreign-pool" for found in pool["diagnostics"])


def stuck_line(document: PlanDocument) -> str:
    """Return the pools that no flag applies, and those that another tool must give up first; "" if there are none."""
    stuck: list[str] = []
    managed: list[str] = []
    for cluster in document["clusters"]:
        for pool in cluster["pools"]:
            errors = {found["code"] for found in pool["diagnostics"] if found["severity"] == "error"}
            if errors and not _is_adoptable(pool):
                into = managed if errors == {"managed-pool"} else stuck
                into.append(f"{cluster['cluster']}/{pool['pool']}")
    parts = [f"no flag applies {', '.join(stuck)}: see its error"] if stuck else []
    parts += [f"another tool manages {', '.join(managed)}: see its error"] if managed else []
    return "; ".join(parts)


def _leaving(devices: Devices) -> Iterator[tuple[str, int]]:
    for name, count in (devices["now"] or {}).items():
        if name not in devices["perNode"] and count:
            yield name, count


def _total(devices: Devices, name: str) -> str:
    low, high = devices["min"][name], devices["max"][name]
    return str(low) if low == high else f"{low} to {high}"


def _from(devices: Devices, name: str) -> str:
    """Describe the current devices; "" if there are none, or already as many as desired."""
    now = (devices["now"] or {}).get(name, 0)
    return f"{now} now -> " if now and str(now) != _total(devices, name) else ""
