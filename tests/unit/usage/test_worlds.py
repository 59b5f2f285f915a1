"""Every number of the map and of usage, in generated worlds, against counts of the API's objects."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from jsonschema import Draft202012Validator

from gpukube.core.prices import PriceBook
from gpukube.engine.documents.schema import document_schema
from gpukube.usage.counting import usage_document
from gpukube.usage.documents import map_document
from gpukube.usage.pricing import with_prices
from tests.unit.usage import worlds
from tests.unit.usage.worlds import GPU, LAYOUT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.usage.worlds import Scene

    Json = dict[str, Any]

_Key = TypeVar("_Key")
WORLDS = 300
BLOCK = 20
SEEDS = [range(first, first + BLOCK) for first in range(0, WORLDS, BLOCK)]


@cache
def scene(seed: int) -> Scene:
    return worlds.scene(seed)


@cache
def drawn(seed: int) -> Json:
    found: Json = json.loads(json.dumps(map_document(with_prices(scene(seed).build(), PriceBook()))))
    return found


@cache
def used(seed: int) -> Json:
    found: Json = json.loads(json.dumps(usage_document(with_prices(scene(seed).build(), PriceBook()))))
    return found


def nodes(document: Json) -> dict[str, Json]:
    (cluster,) = document["clusters"]
    return {node["name"]: node for pool in cluster["pools"] for node in pool["nodes"]}


def expected_counts(made: Scene, node: Json) -> dict[str, Counter[str]]:
    """Count the devices of a node by resource and state."""
    name = node["metadata"]["name"]
    truth = made.truths[name]
    found: dict[str, Counter[str]] = {}
    shown = worlds.published(made).get(name, {})
    taken = {device for place, device, _ in worlds.allocations(made) if place == name}
    requested: Counter[str] = Counter()
    for pod in made.pods:
        if worlds.holds(pod) and pod["spec"]["nodeName"] == name:
            requested.update(worlds.requests(pod))
    for resource, whole in truth.items():
        if resource.startswith("nvidia.com/"):
            capacity = int(node["status"]["capacity"].get(resource, 0))
            healthy = int(node["status"]["allocatable"].get(resource, 0))
            held = requested[resource]
            sick_held = max(0, min(held, capacity) - healthy)
            found[resource] = Counter(
                held=held,
                open=max(0, healthy - held),
                unhealthy=capacity - healthy - sick_held,
                notAdvertised=whole - max(capacity, held),
                heldUnhealthy=sick_held,
            )
        else:
            own = [one for one in shown.values() if worlds.class_name(one) == resource]
            free = [one for one in own if one["name"] not in taken]
            absent = [one for one in free if not one["complete"]]
            sick_ones = [one for one in free if one["complete"] and "taints" in one]
            found[resource] = Counter(
                held=len(own) - len(free),
                open=len(free) - len(absent) - len(sick_ones),
                unhealthy=len(sick_ones),
                notAdvertised=whole - len(own) + len(absent),
                heldUnhealthy=sum("taints" in one for one in own if one["name"] in taken),
            )
    return found


def takes_pods(made: Scene, node: Json) -> bool:
    pool = next(live for _, _, live in made.pools if node in made.nodes[live.pool])
    ready = node["status"]["conditions"][0]["status"] == "True"
    leaving = bool(node["spec"]["taints"]) or pool.state == "deleting"
    shows = bool(worlds.published(made).get(node["metadata"]["name"])) or any(
        int(count) for name, count in node["status"]["capacity"].items() if name in (GPU, *LAYOUT_NAMES)
    )
    young = node["metadata"]["creationTimestamp"] == worlds.NEW
    return ready and not leaving and not node["spec"].get("unschedulable") and (shows or not young)


def namespaces(made: Scene) -> dict[str, Counter[tuple[str, str]]]:
    """Count what each namespace holds, by resource and by what one device is."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    units = {node["metadata"]["name"]: kind.unit for kind, _, live in made.pools for node in made.nodes[live.pool]}
    for pod in made.pods:
        if worlds.holds(pod) and (asked := +worlds.requests(pod)):
            own = found.setdefault(pod["metadata"]["namespace"], Counter())
            own.update({(name, units[pod["spec"]["nodeName"]]): count for name, count in asked.items()})
    shown = worlds.published(made)
    for place, device, claim in worlds.allocations(made):
        name = worlds.class_name(shown[place][device])
        kind = "gpu" if name == "gpu.nvidia.com" else "instance"
        found.setdefault(claim["metadata"]["namespace"], Counter())[name, kind] += 1
    return found


def told(spaces: list[Json]) -> dict[str, dict[tuple[str, str], int]]:
    """Return what a document says that namespaces hold."""
    return {
        space["namespace"]: {(part["resource"], part["kind"]): part["count"] for part in space["held"]}
        for space in spaces
        if space["held"]
    }


def waiting(made: Scene) -> dict[tuple[str, str], Counter[str]]:
    """Count what each waiting pod lacks."""
    found: dict[tuple[str, str], Counter[str]] = {}
    claims = {claim["metadata"]["name"]: claim for claim in made.claims}
    for pod in made.pods:
        if pod["spec"].get("nodeName"):
            continue
        lacks = +worlds.requests(pod)
        for reference in pod["spec"].get("resourceClaims", ()):
            (request,) = claims[reference["resourceClaimName"]]["spec"]["devices"]["requests"]
            body = request["exactly"]
            selectors = body.get("selectors", ())
            profile = f"/{selectors[0]['cel']['expression'].split(chr(39))[-2]}" if selectors else ""
            lacks[body["deviceClassName"] + profile] += body["count"]
        if lacks:
            found[pod["metadata"]["namespace"], pod["metadata"]["name"]] = lacks
    return found


def added(counts: Iterator[Counter[_Key]]) -> Counter[_Key]:
    total: Counter[_Key] = Counter()
    for one in counts:
        total.update(one)
    return total


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_map_when_worlds_are_generated_then_every_count_is_that_of_the_objects(seeds: range) -> None:
    for seed in seeds:
        made, found = scene(seed), nodes(drawn(seed))
        assert found.keys() == {node["metadata"]["name"] for node in made.all_nodes}
        for node in made.all_nodes:
            name = node["metadata"]["name"]
            open_to_pods = "free" if takes_pods(made, node) else "unusable"
            shut = "unusable" if open_to_pods == "free" else "free"
            stocks = {stock["resource"]: stock for stock in found[name]["stocks"]}
            expected = expected_counts(made, node)
            assert stocks.keys() == expected.keys(), (seed, name)
            for resource, counts in expected.items():
                stock = stocks[resource]
                states = {"held", "unhealthy", "notAdvertised", "heldUnhealthy"}
                assert {key: stock[key] for key in states} == {key: counts[key] for key in states}, (seed, name)
                assert (stock[open_to_pods], stock[shut]) == (counts["open"], 0), (seed, name)
                assert stock["total"] == made.truths[name][resource], (seed, name)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_map_when_worlds_are_generated_then_only_what_claims_publish_is_attributed(seeds: range) -> None:
    for seed in seeds:
        made = scene(seed)
        shown = worlds.published(made)
        for name, node in nodes(drawn(seed)).items():
            assert (node["attribution"] == "devices") == bool(shown.get(name)) == bool(node["devices"])
            said = {
                (device["name"], holder["namespace"], holder["pod"], holder["claim"])
                for device in node["devices"]
                for holder in device["holders"]
            }
            written = {
                (device, claim["metadata"]["namespace"], user, claim["metadata"]["name"])
                for place, device, claim in worlds.allocations(made)
                if place == name
                for user in [one["name"] for one in claim["status"]["reservedFor"]] or [""]
            }
            assert said == written, (seed, name)
            assert {device["name"] for device in node["devices"]} == set(shown.get(name, ()))
            pods = {(pod["namespace"], pod["name"]): pod["devices"] for pod in node["pods"] if not pod["claimOnly"]}
            for pod in made.pods:
                key = pod["metadata"]["namespace"], pod["metadata"]["name"]
                if worlds.holds(pod) and pod["spec"]["nodeName"] == name and (asked := +worlds.requests(pod)):
                    assert pods[key] == dict(asked), (seed, key)


@pytest.mark.parametrize("seeds", SEEDS[:3], ids=str)
def test_map_when_no_spec_declares_the_pools_then_the_same_devices_as_far_as_they_are_shown(seeds: range) -> None:
    for seed in seeds:
        made = scene(seed)
        found = nodes(json.loads(json.dumps(map_document(made.build(declared=False)))))
        for node in made.all_nodes:
            name = node["metadata"]["name"]
            stocks = {stock["resource"]: stock for stock in found[name]["stocks"]}
            for resource, counts in expected_counts(made, node).items():
                if shown := sum(counts[state] for state in ("held", "open", "unhealthy")):
                    stock = stocks[resource]
                    assert (stock["held"], stock["free"] + stock["unusable"]) == (counts["held"], counts["open"])
                    assert stock["unhealthy"] == counts["unhealthy"]
                    assert stock["total"] >= shown, (seed, name)
            if not any(stock["total"] > stock["notAdvertised"] for stock in stocks.values()):
                # Without a spec, only the machine and labels tell what a node that shows nothing has.
                whole = sum(made.truths[name].values())
                assert sum(stock["notAdvertised"] for stock in stocks.values()) in (1, 8, whole), (seed, name)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_usage_when_worlds_are_generated_then_its_sums_are_those_of_the_objects(seeds: range) -> None:
    for seed in seeds:
        made, found = scene(seed), used(seed)
        spaces, waits = namespaces(made), waiting(made)
        assert told(found["namespaces"]) == told(drawn(seed)["namespaces"]) == spaces, seed
        (cluster,) = found["clusters"]
        assert {(pod["namespace"], pod["name"]): pod["devices"] for pod in cluster["waiting"]} == waits, seed
        assert found["summary"]["waiting"] == dict(added(iter(waits.values()))), seed
        held: Counter[tuple[str, str]] = Counter()
        for stock in found["summary"]["stocks"]:
            held[stock["resource"], stock["kind"]] += stock["held"]
        assert +held == added(iter(spaces.values())), seed
        assert found["summary"]["starting"] == sum(
            max(0, (live.nodes or 0) - len(made.nodes[live.pool]))
            for _, _, live in made.pools
            if live.state != "deleting"
        )
        assert found["summary"]["stocks"] == [
            {**stock, "price": found["summary"]["stocks"][place]["price"]}
            for place, stock in enumerate(drawn(seed)["summary"]["stocks"])
        ], seed


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_usage_when_worlds_are_generated_then_held_and_idle_are_the_price_of_the_nodes(seeds: range) -> None:
    prices = {"Standard_ND96asr_v4": 27.197, "Standard_NC4as_T4_v3": 0.526}
    for seed in seeds:
        made, found = scene(seed), used(seed)
        total = sum(prices[kind.machine] * len(made.nodes[live.pool]) for kind, _, live in made.pools)
        cost = found["summary"]["cost"]
        assert drawn(seed)["summary"]["cost"] == cost, seed
        assert cost["held"]["min"] + cost["idle"]["min"] == pytest.approx(total, abs=0.01), seed
        spent = sum(space["heldUsdPerHour"]["max"] for space in found["namespaces"])
        assert spent == pytest.approx(cost["held"]["max"], abs=0.01), seed
        for part in ("groups", "owners"):
            assert sum(one["cost"]["held"]["max"] for one in found[part]) == pytest.approx(
                cost["held"]["max"], abs=0.01
            )
        assert cost["pricedNodes"] == len(made.all_nodes)


def test_documents_when_worlds_are_generated_then_they_fit_their_schemas() -> None:
    for name, documents in (("map", map(drawn, range(40))), ("usage", map(used, range(40)))):
        validator = Draft202012Validator(document_schema(name))
        for document in documents:
            assert list(validator.iter_errors(document)) == []


def test_worlds_when_generated_then_they_show_every_state() -> None:
    seen: Counter[str] = Counter()
    for seed in range(WORLDS):
        for node in nodes(drawn(seed)).values():
            seen[node["state"]] += 1
            for stock in node["stocks"]:
                seen.update({key: count for key, count in stock.items() if isinstance(count, int) and count})
        (cluster,) = used(seed)["clusters"]
        seen["stuck"] += len(cluster["stuck"])
        seen["waiting"] += len(cluster["waiting"])
        seen["advice"] += len(cluster["advice"])
    wanted = {"ready", "starting", "cordoned", "leaving", "notReady", "held", "free", "unusable", "unhealthy"}
    wanted |= {"notAdvertised", "heldUnhealthy", "stuck", "waiting", "advice"}
    assert {name for name in wanted if seen[name] < 10} == set()
