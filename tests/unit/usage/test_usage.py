"""Usage of five clusters by hand: counts, prices, stuck pods, layouts; its formats and its merging."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpukube.cli.formats.markdown import markdown
from gpukube.cli.formats.usage import COLUMNS, csv_lines, openmetrics_lines
from gpukube.cli.rendering.text import Table, record
from gpukube.cli.rendering.usage import render_usage
from gpukube.cli.rendering.view import View
from gpukube.core.shards import Shard
from gpukube.engine.documents.shards import shard_part
from gpukube.engine.merging import merge_documents
from gpukube.engine.plan.prepare import Filters, Prepared
from gpukube.usage.counting import usage_document
from gpukube.usage.documents import map_document
from tests.claim_cases import A100, parts, slice_of
from tests.unit.usage.clusters import EIGHT, claim, five, live, node, plan, pod, world
from tests.unit.usage.worlds import GPU, NOW, OLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]

PRICE, T4_PRICE = 27.197, 0.526
"""US dollars per hour of Standard_ND96asr_v4 and Standard_NC4as_T4_v3 in eastus, in the embedded table."""


@pytest.fixture(scope="module")
def usage() -> Json:
    found: Json = json.loads(json.dumps(usage_document(five())))
    return found


# the five clusters by hand


@pytest.mark.parametrize(
    ("group", "held", "idle"),
    [
        ("train", PRICE * 5 / 8, PRICE * 11 / 8),  # two nodes of 8, of which 5 are held
        ("slices", PRICE * 14 / 56, PRICE * 42 / 56),
        # One GPU of 8 is divided: a 3g.20gb is half of its memory, a 2g.10gb a quarter. Seven are not published.
        ("dra", PRICE * (1 / 2 + 1 / 4) / 8, PRICE * (7 + 1 / 4) / 8),
        ("t4", 0, T4_PRICE),
        ("h100", 0, 0),  # reserved: paid, but without a list price
    ],
)
def test_usage_when_counted_by_hand_then_held_and_idle_cost_that(
    usage: Json, group: str, held: float, idle: float
) -> None:
    (found,) = (one for one in usage["groups"] if one["group"] == group)
    for name, expected in (("held", held), ("idle", idle)):
        assert found["cost"][name]["min"] == found["cost"][name]["max"] == pytest.approx(expected, abs=0.0001)


def test_usage_when_counted_by_hand_then_these_sums(usage: Json) -> None:
    total = usage["summary"]
    assert (total["nodes"], total["gpus"], total["unread"], total["stuck"]) == (6, 41, 1, 2)
    assert total["cost"]["held"]["min"] == pytest.approx(PRICE * (5 / 8 + 1 / 4 + 3 / 32), abs=0.001)
    assert (total["cost"]["pricedNodes"], total["cost"]["reservedNodes"], total["cost"]["unknownNodes"]) == (5, 1, 0)
    counts = {(one["resource"], one["kind"]): (one["held"], one["free"]) for one in total["stocks"]}
    assert counts == {
        (GPU, "gpu"): (13, 11),
        (GPU, "instance"): (14, 42),
        (GPU, "share"): (0, 4),
        ("gpu.nvidia.com", "gpu"): (0, 0),
        ("mig.nvidia.com/1g.5gb", "instance"): (0, 2),
        ("mig.nvidia.com/2g.10gb", "instance"): (1, 0),
        ("mig.nvidia.com/3g.20gb", "instance"): (1, 0),
    }
    assert [(one["owner"], one["gpus"]) for one in usage["owners"]] == [("ml", 40), ("web", 1)]


def test_usage_when_counted_by_hand_then_these_namespaces(usage: Json) -> None:
    found = {one["namespace"]: one for one in usage["namespaces"]}
    assert found.keys() == {"dev", "ml", "ops"}
    assert [(one["resource"], one["kind"], one["profile"], one["count"]) for one in found["ml"]["held"]] == [
        ("mig.nvidia.com/3g.20gb", "instance", "3g.20gb", 1),
        (GPU, "gpu", "", 12),
    ]
    assert [(one["kind"], one["count"]) for one in found["ml"]["unpriced"]] == [("gpu", 8)], "of the reserved node"
    assert [(one["resource"], one["kind"], one["count"]) for one in found["dev"]["held"]][1:] == [(GPU, "instance", 14)]
    assert found["ml"]["heldUsdPerHour"]["min"] == pytest.approx(PRICE * (4 / 8 + 1 / 16), abs=0.0001)
    assert found["dev"]["heldUsdPerHour"]["min"] == pytest.approx(PRICE * (1 / 4 + 1 / 32), abs=0.0001)
    assert found["dev"]["waiting"] == {GPU: 9, "nvidia.com/mig-1g.5gb": 9}
    assert found["ops"]["heldUsdPerHour"]["min"] == pytest.approx(PRICE / 8, abs=0.0001)


def test_usage_when_pods_hold_what_they_do_not_use_then_named(usage: Json) -> None:
    found = {(one["name"], one["trouble"], one["claimOnly"]) for c in usage["clusters"] for one in c["stuck"]}
    assert found == {("loop", "CrashLoopBackOff", False), ("left", "no pod uses this claim", True)}


def test_usage_when_pods_lack_instances_then_the_fewest_gpus_that_nobody_holds(usage: Json) -> None:
    (advice,) = (one for cluster in usage["clusters"] for one in cluster["advice"])
    assert advice["instances"] == {"1g.5gb": 9}
    assert (advice["model"], advice["gpus"], advice["enough"]) == ("A100-40GB", 2, True)
    assert advice["rooms"] == [{"pool": "train", "gpus": 11}]
    assert sorted(len(layout["instances"]) * layout["gpus"] for layout in advice["layouts"]) == [2, 7]


def advised(shows: dict[str, int], *pods: Json) -> list[Json]:
    marks = {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB"}
    made = world((plan("c", [live("p", EIGHT)], [node("n", "p", shows, marks)]), pods, []))
    found: Json = json.loads(json.dumps(usage_document(made)))
    return [one for cluster in found["clusters"] for one in cluster["advice"]]


def test_layout_when_instances_are_free_then_none_is_advised() -> None:
    assert advised({"nvidia.com/mig-1g.5gb": 56}, pod("ml/w", mig__1g_5gb=56)) == []
    (advice,) = advised({"nvidia.com/mig-1g.5gb": 56}, pod("ml/w", mig__1g_5gb=57))
    assert (advice["instances"], advice["gpus"]) == ({"1g.5gb": 1}, 1)


def test_layout_when_it_is_unknown_which_gpus_are_held_then_a_divided_node_has_no_room() -> None:
    shows = {"nvidia.com/mig-1g.5gb": 56}
    (empty,) = advised(shows, pod("ml/w", mig__3g_20gb=2))
    assert (empty["rooms"], empty["enough"]) == ([{"pool": "p", "gpus": 8}], True)
    (held,) = advised(shows, pod("ml/w", mig__3g_20gb=2), pod("ml/h", "n", mig__1g_5gb=1))
    assert (held["rooms"], held["enough"]) == ([], False)


def test_usage_when_pools_are_of_one_family_then_one_row_over_all_clusters() -> None:
    made = world(
        *(
            (
                plan(key, [live(name, EIGHT, family="train")], [node(f"{name}-0", name, {GPU: 8})]),
                [pod("ml/a", f"{name}-0", gpu=held), waits],
                [],
            )
            for key, name, held, waits in (
                ("one", "train", 3, pod("ml/w", gpu=1)),
                ("two", "train-2", 5, pod("ml/v", gpu=2)),
            )
        )
    )
    (group,) = usage_document(made)["groups"]
    assert (group["group"], group["clusters"], group["nodes"], group["waiting"]) == ("train", ["one", "two"], 2, {})
    assert [(stock["held"], stock["free"]) for stock in group["stocks"]] == [(8, 8)]


def test_usage_when_a_waiting_pod_names_a_pool_then_it_counts_there() -> None:
    waits = pod("ml/w", gpu=3)
    waits["spec"]["nodeSelector"] = {"gpukube.io/pool": "b"}
    pools = [live("a", EIGHT), live("b", EIGHT)]
    nodes = [node("a-0", "a", {GPU: 8}), node("b-0", "b", {GPU: 8})]
    found = usage_document(world((plan("c", pools, nodes), [waits], [])))["groups"]
    assert {group["group"]: group["waiting"] for group in found} == {"a": {}, "b": {GPU: 3}}


# pods


def told(body: Json) -> str:
    """Return the trouble of a pod that holds a GPU."""
    made = world((plan("c", [live("p", EIGHT)], [node("n", "p", {GPU: 8})]), [body], []))
    found = [one for cluster in usage_document(made)["clusters"] for one in cluster["stuck"]]
    return found[0]["trouble"] if found else ""


def with_status(**status: object) -> Json:
    body = pod("ml/a", "n", gpu=1)
    body["status"] |= status
    return body


def waits_for(reason: str, part: str = "containerStatuses") -> Json:
    return with_status(**{part: [{"name": "main", "state": {"waiting": {"reason": reason}}}]}, phase="Pending")


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        (with_status(), ""),
        (waits_for("CrashLoopBackOff"), "CrashLoopBackOff"),
        (waits_for("ImagePullBackOff", "initContainerStatuses"), "ImagePullBackOff"),
        (waits_for("ContainerCreating"), "not running after 15 minutes"),
        (with_status(phase="Pending"), "not running after 15 minutes"),
        (with_status(phase="Pending", startTime="2026-09-21T14:10:00Z"), ""),
        (pod("ml/a", "n", phase="Succeeded", gpu=1), ""),  # it holds nothing any more
    ],
)
def test_pod_when_it_holds_a_gpu_then_this_is_its_trouble(body: Json, trouble: str) -> None:
    assert told(body) == trouble


def test_pod_when_it_should_have_ended_long_ago_then_stuck() -> None:
    body = pod("ml/a", "n", gpu=1)
    body["metadata"]["deletionTimestamp"] = "2026-09-21T14:12:00Z"
    assert told(body) == ""
    body["metadata"]["deletionTimestamp"] = OLD
    assert told(body) == "terminating, and late"


def test_pod_when_it_ended_and_its_claim_is_still_its_own_then_stuck() -> None:
    slices = five().clusters[3]
    held = next(device.name for node in slices.pools[0].nodes for device in node.devices if device.state == "free")
    published = [slice_of("p-0", parts(A100, "p-0", 0, ("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb")))]
    made = world(
        (
            plan("c", [live("dra", EIGHT)], [node("p-0", "dra", {})], published),
            [pod("ml/x", "p-0", claim="c", phase="Succeeded")],
            [claim("ml/c", held, on="p-0", users=["x"])],
        )
    )
    (found,) = usage_document(made)["clusters"][0]["stuck"]
    assert (found["name"], found["trouble"], found["claimOnly"]) == ("x", "completed", False)


def test_pod_when_a_claim_of_its_extended_resource_serves_it_then_it_counts_once() -> None:
    body = pod("ml/a", "n", gpu=1)
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "r"}
    body["status"]["extendedResourceClaimStatus"] = {"requestMappings": [mapping], "resourceClaimName": "c"}
    made = world((plan("c", [live("p", EIGHT)], [node("n", "p", {GPU: 8})]), [body], []))
    assert [stock["held"] for stock in usage_document(made)["summary"]["stocks"]] == [0]


# formats


def parsed(text: str) -> dict[str, Any]:
    """Parse with Prometheus' own parser: name of a family -> samples."""
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # it has no types
    return {family.name: family.samples for family in families}


def test_openmetrics_when_parsed_by_prometheus_then_the_numbers_of_the_document(usage: Json) -> None:
    text = "".join(f"{line}\n" for line in openmetrics_lines(usage))  # type: ignore[arg-type]  # as read from JSON
    families = parsed(text)
    devices = families["gpukube_devices"]
    for state, key in (("held", "held"), ("free", "free"), ("not_advertised", "notAdvertised")):
        counted = sum(sample.value for sample in devices if sample.labels["state"] == state)
        assert counted == sum(stock[key] for stock in usage["summary"]["stocks"])
    spent = [one for one in families["gpukube_usd_per_hour"] if one.labels["bound"] == "max"]
    for use in ("held", "idle"):
        total = sum(one.value for one in spent if one.labels["use"] == use)
        assert total == pytest.approx(usage["summary"]["cost"][use]["max"], abs=0.01)
    assert {one.labels["cluster"]: one.value for one in families["gpukube_cluster_read"]}["lost"] == 0
    waiting = {one.labels["resource"]: one.value for one in families["gpukube_namespace_waiting_devices"]}
    assert waiting == usage["summary"]["waiting"]
    assert sum(one.value for one in families["gpukube_stuck_pods"]) == usage["summary"]["stuck"]


HOSTILE: Final = 'a"\\\n{}= #EOF</script>'


def test_openmetrics_when_names_are_hostile_then_they_are_labels() -> None:
    made = world((plan("c", [live("p", EIGHT, owner=HOSTILE)], [node("n", "p", {GPU: 8}, owner=HOSTILE)]), [], []))
    text = "".join(f"{line}\n" for line in openmetrics_lines(usage_document(made)))
    families = parsed(text)
    assert {one.labels["owner"] for one in families["gpukube_devices"]} == {HOSTILE}


def test_csv_when_read_by_a_reader_then_the_rows_of_the_document(usage: Json) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(f"{line}\n" for line in csv_lines(usage)))))  # type: ignore[arg-type]  # as read from JSON
    assert tuple(rows[0]) == COLUMNS
    pools = [row for row in rows if row["row"] == "pool"]
    assert sum(int(row["held"]) for row in pools) == sum(stock["held"] for stock in usage["summary"]["stocks"])
    spent = sum(float(row["held_usd_per_hour_max"]) for row in pools)
    assert spent == pytest.approx(usage["summary"]["cost"]["held"]["max"], abs=0.01)
    assert {row["pool"]: row["priced"] for row in pools}["h100"] == "no"
    spaces = [row for row in rows if row["row"] == "namespace"]
    assert sum(int(row["waiting"]) for row in spaces) == sum(usage["summary"]["waiting"].values())


def test_csv_when_a_cell_looks_like_a_formula_then_it_is_text() -> None:
    made = world((plan("c", [live("p", EIGHT, owner="=1+1")], [node("n", "p", {GPU: 8}, owner="=1+1")]), [], []))
    _, row = csv.reader(csv_lines(usage_document(made)))
    assert row[COLUMNS.index("owner")] == "'=1+1"


@pytest.mark.parametrize("width", [0, 80, 200])
def test_usage_when_shown_to_people_then_sums_pools_namespaces_and_troubles(usage: Json, width: int) -> None:
    lines = list(render_usage(usage, View(width=width)))  # type: ignore[arg-type]  # as read from JSON
    text = "\n".join(record(line) for line in lines if not isinstance(line, Table))
    assert "41 GPUs on 6 nodes of 6 clusters" in text
    assert "26.35 held, 82.97 idle; 1 node reserved: paid, without a list price" in text
    assert "ops/loop holds 1 gpu on whole/train: CrashLoopBackOff" in text
    assert "whole: pods lack 9 x 1g.5gb on A100-40GB: 1 GPU as 7 x 1g.5gb; 1 GPU as 2 x 1g.5gb would do" in text
    pools, spaces = (line for line in lines if isinstance(line, Table))
    assert ("OWNER" in pools.titles) == (width != 80)
    assert len(spaces.rows) == 3


def test_usage_when_written_as_markdown_then_tables(usage: Json) -> None:
    text = "\n".join(markdown(usage))
    assert "| train | ml | GPUs | 5 | 11 | 0 |" in text
    assert "stuck: ops/loop" in text


# shards


def sharded(document: Json, keys: Sequence[str], index: int) -> Json:
    """Describe a part of a run as its shard does."""
    places = {cluster: place for place, cluster in enumerate(EVERY, 1) if cluster in keys}
    prepared = Prepared((), {}, {}, (), Filters(shard=Shard(index, 2)), places=places, of=len(EVERY))
    return {**document, "shard": {**shard_part(prepared, (), 0), "spec": "sha256:0"}}


EVERY: Final = ("whole", "single", "shares", "parts", "reserved", "lost")


@pytest.mark.parametrize("kind", ["Usage", "Map"])
def test_merge_when_shards_are_merged_then_the_document_of_one_run(kind: str) -> None:
    make: Any = usage_document if kind == "Usage" else map_document
    all_of = five()
    halves = []
    for index, keys in enumerate((EVERY[::2], EVERY[1::2]), 1):
        own = tuple(one for one in all_of.clusters if one.cluster.key in keys)
        halves.append((f"{index}.json", sharded(make(replace(all_of, clusters=own)), keys, index)))
    merged = merge_documents(halves)
    assert merged.pop("merged")
    assert merged == make(all_of)


def test_world_when_read_then_the_time_of_reading(usage: Json) -> None:
    assert five().read_at == NOW
    assert usage["readAt"] == "2026-09-21T14:13:20Z"
