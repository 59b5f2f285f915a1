"""The map as people see it: signs, folding, orders, filters, hostile names, and states of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cli.rendering.map import render_map
from gpukube.cli.rendering.text import Hung, Text, record
from gpukube.cli.rendering.view import View
from gpukube.usage.documents import map_document
from gpukube.visible import visible_tree
from tests.claim_cases import A100, XID, slice_of, whole
from tests.unit.usage.clusters import EIGHT, T4, five, live, node, plan, pod, world
from tests.unit.usage.worlds import GPU, NEW

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.map import MapDocument
    from gpukube.usage.world import World

    Json = dict[str, Any]


WIDE = View(width=200)


def drawn(made: World, view: View = WIDE, **options: Any) -> str:  # noqa: ANN401 - options of the document
    """Draw a map as text."""
    return "\n".join(map(line_text, render_map(map_document(made, **options), view)))


def line_text(line: object) -> str:
    assert isinstance(line, str | Text | Hung)
    return record(line)


def one_pool(*nodes: Json, pods: tuple[Json, ...] = (), count: int | None = None, **more: Any) -> World:  # noqa: ANN401 - of the live pool
    return world((plan("c", [live("p", EIGHT, count or len(nodes), **more)], nodes), pods, []))


def test_map_when_drawn_then_a_cell_for_each_device() -> None:
    text = drawn(five())
    assert "w-0  ■■■■■□□□ 5/8 GPUs  ml/a 4, ops/loop 1 (CrashLoopBackOff)" in text
    assert "s-0  ■x14 □x42  14/56 1g.5gb  dev/a 14" in text
    assert "t-0  □□□□ 0/4 shares, 4 per GPU" in text
    assert "p-0@ [□□ 1g.5gb ■ 2g.10gb ■ 3g.20gb]  ??????? 0/7 GPUs" in text
    assert "Cells are counts of a node, not positions" in text


def test_map_when_the_stream_has_no_such_signs_then_ascii() -> None:
    text = drawn(five(), View(width=80, signs=False))
    assert "w-0  #####ooo 5/8 GPUs" in text
    assert text.isascii()


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        ({"status": {"allocatable": {GPU: "6"}}}, "■■□□□□✗✗"),
        ({"status": {"capacity": {GPU: "6"}, "allocatable": {GPU: "6"}}}, "■■□□□□??"),
        ({"spec": {"unschedulable": True}}, "■■▒▒▒▒▒▒ 2/8 GPUs  cordoned"),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "■■▒▒▒▒▒▒ 2/8 GPUs  not ready"),
        (
            {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}},
            "■■▒▒▒▒▒▒ 2/8 GPUs  leaving: ToBeDeletedByClusterAutoscaler",
        ),
    ],
)
def test_node_when_in_a_state_then_its_sign_and_its_word(change: dict[str, Json], cells: str) -> None:
    body = node("n", "p", {GPU: 8})
    for part, values in change.items():
        body[part] |= values
    assert f"n  {cells}" in drawn(one_pool(body, pods=(pod("ml/a", "n", gpu=2),)))


def test_node_when_young_and_its_driver_is_not_ready_then_starting() -> None:
    body = node("n", "p", {})
    body["metadata"]["creationTimestamp"] = NEW
    made = one_pool(body, count=3)
    text = drawn(made)
    assert f"n  {'…' * 8} 0/8 GPUs  starting: nothing advertises its GPUs yet" in text
    assert "… 2 nodes starting: not in the cluster yet" in text
    del body["metadata"]["creationTimestamp"]
    assert "n  ???????? 0/8 GPUs" in drawn(one_pool(body))


def test_pool_when_it_is_deleted_then_its_nodes_leave() -> None:
    going = replace(live("p", EIGHT), state="deleting")
    text = drawn(world((plan("c", [going], [node("n", "p", {GPU: 8})]), [], [])))
    assert "▒▒▒▒▒▒▒▒ 0/8 GPUs  leaving: its pool is being deleted" in text


def test_nodes_when_many_are_alike_then_folded_on_a_terminal_and_whole_in_a_pipe() -> None:
    nodes = [node(f"n-{number:03}", "p", {GPU: 8}) for number in range(400)]
    pods = tuple(pod(f"ml/t-{number}", f"n-{number:03}", gpu=8) for number in range(37))
    made = one_pool(*nodes, pods=pods)
    text = drawn(made, View(width=80))
    assert "n-000  ■■■■■■■■ 8/8 GPUs  x 37 nodes like this  ml 8 each" in text
    assert "n-037  □□□□□□□□ 0/8 GPUs  x 363 nodes like this" in text
    assert len(text.splitlines()) < 14
    assert sum(line.startswith("    n-") for line in drawn(made, View(width=0)).splitlines()) == 400
    assert sum(line.startswith("    n-") for line in drawn(made, View(verbose=True, width=80)).splitlines()) == 400


def test_map_when_only_free_devices_are_wanted_then_only_their_nodes() -> None:
    text = drawn(five(), free=True)
    assert "w-1  □□□□□□□□ 0/8" in text
    assert "r-0" not in text
    assert "no free devices" in text
    assert "waits" not in text


def test_map_when_a_pool_is_chosen_then_a_cluster_without_it_does_not_seem_empty() -> None:
    document = map_document(five())
    assert "no GPU pools" not in "\n".join(map(line_text, render_map(document, WIDE)))
    quiet = map_document(world((plan("c", [], []), [], [])))
    assert "  no GPU pools" in map(line_text, render_map(quiet, WIDE))
    quiet["scope"] = {"owners": ["ml"], "filters": ["--cluster=c*", "--pool=h100"]}
    assert "  no GPU pools that match --pool=h100" in map(line_text, render_map(quiet, WIDE))


def test_map_when_the_scheduler_tells_of_preemption_then_only_why_the_pod_waits() -> None:
    waits = pod("ml/w", gpu=8)
    reason = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu"
    for more in ("", ". preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."):
        condition = {"type": "PodScheduled", "status": "False", "message": f"{reason}{more}"}
        waits["status"] = {"phase": "Pending", "conditions": [condition]}
        text = drawn(one_pool(node("n", "p", {GPU: 8}), pods=(waits,)))
        assert f"waits: ml/w for 8 gpu: {reason}\n" in text
    document = map_document(one_pool(node("n", "p", {GPU: 8}), pods=(waits,)))
    assert document["clusters"][0]["waiting"][0]["why"].endswith("incoming pod."), "for programs: all of it"


def test_map_when_two_resources_are_called_the_same_then_both_have_their_full_name() -> None:
    shares = node("s", "p", {"nvidia.com/gpu.shared": 16}, {"nvidia.com/gpu.replicas": "2"})
    plain = node("t", "p", {GPU: 16}, {f"{GPU}.replicas": "2"})
    text = drawn(one_pool(shares, plain))
    assert "  shares of GPUs (nvidia.com/gpu): 0 of 16 held, 16 free" in text
    assert "  shares of GPUs (nvidia.com/gpu.shared): 0 of 16 held, 16 free" in text


def test_pool_when_its_nodes_have_prices_then_what_is_held_and_idle() -> None:
    text = drawn(five())
    assert "  USD per hour: 26.35 held, 82.97 idle; 1 node reserved: paid, without a list price" in text
    assert "2 nodes, USD/h: 17.00 held, 37.40 idle" in text
    assert "1 node, 1 node reserved: paid, without a list price" in text
    assert "note: list prices of machines of 2026-06-18, not a bill" in text


def test_map_when_by_namespace_then_who_holds_what_and_who_waits() -> None:
    text = drawn(five(), by="namespace")
    assert "ml  holds 1 x 3g.20gb by claims, 12 GPUs, USD/h: 15.30 + 8 GPUs without a price" in text
    assert "dev  holds 1 x 2g.10gb by claims, 14 x 1g.5gb, USD/h: 7.65; waits for 9 gpu, 9 mig-1g.5gb" in text
    assert "  parts/dra  ■ claim left 1 (no pod uses this claim)" in text
    assert "lost: error[" in text


HOSTILE = "\u202etxt.exe\x1b[31m</script>" + "x" * 10_000


def test_map_when_names_are_hostile_then_they_are_text() -> None:
    body = pod("ml/a", "n", gpu=1)
    body["metadata"]["name"] = HOSTILE
    waits = pod("ml/b", gpu=9)
    waits["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": HOSTILE}]
    made = one_pool(node("n", "p", {GPU: 8}), pods=(body, waits), family=HOSTILE)
    document: MapDocument = visible_tree(map_document(made))  # as the output does
    text = "\n".join(map(line_text, render_map(document, View(width=80))))
    assert "</script>" in text
    assert not {"\u202e", "\x1b"} & {*text}


def test_nodes_when_in_no_pool_then_shown_at_the_end_without_a_price() -> None:
    stray = node("karpenter-1", "nobody", {GPU: 4}, owner="nobody")
    made = world((plan("c", [live("t4", T4)], [node("t", "t4", {GPU: 1}), stray]), [], []))
    (cluster,) = made.clusters
    assert [pool.name for pool in cluster.pools] == ["t4", ""]
    assert (cluster.pools[1].nodes[0].price.usd, bool(cluster.pools[1].nodes[0].price.unknown)) == (None, True)
    assert "nodes of no pool  1 node" in drawn(made)


def test_node_when_a_claimed_gpu_is_tainted_or_its_slices_are_missing_then_not_free() -> None:
    sick = [whole(A100, "n", 0, taints=[XID]), whole(A100, "n", 1)]
    made = world((plan("c", [live("p", EIGHT)], [node("n", "p", {})], [slice_of("n", sick)]), [], []))
    assert "n@ ✗□  ?????? 0/8 GPUs" in drawn(made)
    (stock,) = made.clusters[0].pools[0].nodes[0].stocks
    assert (stock.unhealthy, stock.free, stock.not_advertised) == (1, 1, 6)
    part = world((plan("c", [live("p", EIGHT)], [node("n", "p", {})], [slice_of("n", sick, of=2)]), [], []))
    (stock,) = part.clusters[0].pools[0].nodes[0].stocks
    assert (stock.unhealthy, stock.free, stock.not_advertised) == (0, 0, 8)
