"""Rules of the map one by one: what a device is, which state it has, who holds it, and what a pod lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cli.rendering.map import render_map
from gpukube.cli.rendering.text import Table, record
from gpukube.cli.rendering.view import View
from gpukube.core.fields import MIG_PROFILE, FieldPath
from gpukube.gpu.catalog import require_machine
from gpukube.usage.counting import usage_document
from gpukube.usage.documents import map_document
from gpukube.usage.units import Hints, unit_of
from tests.claim_cases import A100, parts, slice_of, uuid_of, whole
from tests.claim_cases import GPU as CEL
from tests.unit.usage.clusters import EIGHT, SHARED, claim, live, node, plan, pod, world
from tests.unit.usage.worlds import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.usage.world import Node, World

    Json = dict[str, Any]

MIG_1, MIG_2 = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"


def read(
    body: Json, *pods: Json, devices: Sequence[Json] = (), claims: Sequence[Json] = (), machine: str = EIGHT
) -> World:
    """Read a cluster with one pool and one node, n."""
    slices = [slice_of("n", devices)] if devices else []
    return world((plan("c", [live("p", machine)], [body], slices), pods, claims))


def only(made: World) -> Node:
    ((found,),) = (pool.nodes for pool in made.clusters[0].pools)
    return found


# what a device is


@pytest.mark.parametrize(
    ("shown", "labels", "fields", "unit"),
    [
        (8, {}, {}, ("gpu", "", 1)),
        (24, SHARED, {}, ("share", "", 4)),  # eight of 32 are missing: the label knows
        (24, {}, {FieldPath("sharing", "timeSlicing", "replicas"): 4}, ("share", "", 4)),
        (16, {}, {}, ("share", "", 2)),  # more than the machine has
        (56, {}, {MIG_PROFILE: "1g.5gb"}, ("instance", "1g.5gb", 7)),  # a cloud's own plugin
        (8, {}, {MIG_PROFILE: "1g.5gb"}, ("gpu", "", 1)),  # the layout is not applied yet
        (
            112,
            {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", f"{GPU}.replicas": "2"},
            {},
            ("share", "1g.5gb", 14),
        ),
        (8, {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"}, {}, ("instance", "1g.5gb+me", 1)),
    ],
)
def test_gpu_when_labels_or_fields_tell_then_it_is_that(
    shown: int, labels: dict[str, str], fields: Mapping[FieldPath, object], unit: tuple[str, str, int]
) -> None:
    found = unit_of(GPU, shown, Hints(require_machine("aks", EIGHT), labels, fields))
    assert (found.kind, found.profile, found.per_gpu) == unit


@pytest.mark.parametrize(
    ("resource", "kind", "profile", "weight"),
    [
        (MIG_1, "instance", "1g.5gb", 1 / 8),
        ("nvidia.com/mig-3g.20gb", "instance", "3g.20gb", 1 / 2),
        ("nvidia.com/mig-1g.5gb.me", "instance", "1g.5gb+me", 1 / 8),
        ("nvidia.com/gpu.shared", "share", "", 1 / 4),
        ("nvidia.com/mig-1g.5gb.shared", "share", "1g.5gb", 1 / 8),
        ("gpu.nvidia.com", "gpu", "", 1),
        ("mig.nvidia.com/2g.10gb", "instance", "2g.10gb", 1 / 4),
    ],
)
def test_resource_when_it_has_this_name_then_it_is_that_part_of_a_gpu(
    resource: str, kind: str, profile: str, weight: float
) -> None:
    found = unit_of(resource, 8, Hints(require_machine("aks", EIGHT), SHARED, {}))
    assert (found.kind, found.profile, found.weight) == (kind, profile, weight)


def test_gpu_when_the_machine_has_a_part_of_one_then_a_share() -> None:
    assert unit_of(GPU, 1, Hints(require_machine("aks", "Standard_NV6ads_A10_v5"), {}, {})).kind == "share"


# nodes


def test_node_when_it_keeps_a_name_of_an_earlier_sharing_then_its_gpus_count_once() -> None:
    body = node("n", "p", {GPU: 8, MIG_1: 56})
    body["status"]["allocatable"] = {GPU: "0", MIG_1: "56"}
    assert [stock.resource for stock in only(read(body)).stocks] == [MIG_1]
    assert [stock.held for stock in only(read(body, pod("ml/a", "n", gpu=2))).stocks] == [2, 0], "a pod has it"


def test_node_when_all_instances_of_one_profile_are_unhealthy_then_they_are_no_earlier_name() -> None:
    body = node("n", "p", {MIG_1: 8, MIG_2: 8})
    body["status"]["allocatable"] = {MIG_1: "8", MIG_2: "0"}
    assert [(stock.resource, stock.unhealthy) for stock in only(read(body)).stocks] == [(MIG_1, 0), (MIG_2, 8)]
    body["status"]["allocatable"] = {MIG_1: "0", MIG_2: "0"}
    assert [stock.unhealthy for stock in only(read(body)).stocks] == [8, 8]


def test_node_when_the_cloud_has_not_initialized_it_then_starting() -> None:
    body = node("n", "p", {GPU: 8})
    body["spec"]["taints"] = [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]
    assert only(read(body)).state == "starting"


def test_node_when_two_pools_have_its_labels_then_it_counts_once() -> None:
    made = world((plan("c", [live("p", EIGHT), live("p", EIGHT)], [node("n", "p", {GPU: 8})]), [], []))
    assert sum(len(pool.nodes) for pool in made.clusters[0].pools) == 1


# devices that claims name


def partitionable() -> list[Json]:
    """Return a GPU whose instances the driver would make for a claim: they have no UUID."""
    made = parts(A100, "n", 0, ("3g.20gb", "1g.5gb"))
    for device in made:
        del device["attributes"]["uuid"]
    return [whole(A100, "n", 0), *made]


def test_gpu_when_its_instances_do_not_exist_yet_then_it_is_whole() -> None:
    found = only(read(node("n", "p", {}), devices=partitionable()))
    assert [(device.resource, device.state) for device in found.devices] == [("gpu.nvidia.com", "free")]


def test_gpu_when_a_claim_has_one_of_its_instances_then_that_one_is_shown_and_the_gpu_is_not_whole() -> None:
    devices = partitionable()
    held = claim("ml/c", devices[1]["name"], on="n", users=["x"])
    found = only(read(node("n", "p", {}), pod("ml/x", "n", claim="c"), devices=devices, claims=[held]))
    assert [(one.gpu, one.profile, one.state) for one in found.devices] == [(uuid_of("n", 0), "3g.20gb", "held")]


def test_device_when_a_claim_only_observes_it_then_nobody_holds_it() -> None:
    watching = claim("ops/c", "gpu-0", on="n", users=["x"])
    watching["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    found = only(read(node("n", "p", {}), devices=[whole(A100, "n", 0)], claims=[watching]))
    assert [(one.state, one.holders) for one in found.devices] == [("free", ())]


def test_device_when_two_pods_share_a_claim_then_their_namespace_holds_one() -> None:
    shared = claim("ml/c", "gpu-0", on="n", users=["x", "y"])
    pods = [pod("ml/x", "n", claim="c"), pod("ml/y", "n", claim="c")]
    made = read(node("n", "p", {}), *pods, devices=[whole(A100, "n", 0)], claims=[shared])
    assert [holder.pod for holder in only(made).devices[0].holders] == ["x", "y"]
    (space,) = usage_document(made)["namespaces"]
    one = {"resource": "gpu.nvidia.com", "kind": "gpu", "profile": "", "count": 1}
    assert (space["held"], space["pods"]) == ([one], 2)
    document = map_document(made, by="namespace")
    text = "\n".join(record(line) for line in render_map(document, View(width=80)) if not isinstance(line, Table))
    assert "ml  holds 1 GPU by claims" in text
    assert "  c/p  ■ x 1, y 1" in text


# pods that wait


def lacking(request: Json, **status: object) -> Mapping[str, int]:
    """Return what a pod waits for whose claim has one request."""
    body = {
        "metadata": {"namespace": "ml", "name": "c"},
        "spec": {"devices": {"requests": [request]}},
        "status": status,
    }
    made = read(node("n", "p", {}), pod("ml/x", claim="c"), devices=[whole(A100, "n", 0)], claims=[body])
    waiting = made.clusters[0].waiting
    return waiting[0].devices if waiting else {}


def wanting(kind: str, expression: str = "", **more: object) -> Json:
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    return {"name": "r", "exactly": {"deviceClassName": kind, "count": 2, **selectors, **more}}


@pytest.mark.parametrize(
    ("request_", "lacks"),
    [
        (wanting("gpu.nvidia.com"), {"gpu.nvidia.com": 2}),
        (wanting("mig.nvidia.com", f"{CEL}.profile == '1g.5gb'"), {"mig.nvidia.com/1g.5gb": 2}),
        (wanting("mig.nvidia.com", f"{CEL}.profile in ['1g.5gb', '1g.10gb']"), {"mig.nvidia.com": 2}),
        (wanting("mig.nvidia.com", f"{CEL}.productName == 'x'"), {"mig.nvidia.com": 2}),  # only a node knows
        (wanting("gpu.nvidia.com", adminAccess=True), {}),
        (wanting("dra.net"), {}),
    ],
)
def test_pod_when_its_claim_is_not_allocated_then_it_waits_for_that(request_: Json, lacks: dict[str, int]) -> None:
    assert lacking(request_) == lacks


def test_pod_when_its_claim_has_devices_then_it_waits_for_none() -> None:
    assert lacking(wanting("gpu.nvidia.com"), allocation={"devices": {"results": []}}) == {}


# layouts


def advice(made: World) -> list[Any]:
    return [one for cluster in usage_document(made)["clusters"] for one in cluster["advice"]]


@pytest.mark.parametrize("shows", [{GPU: 8}, {MIG_1: 56}])
def test_layout_when_a_node_takes_no_pods_then_it_has_no_room(shows: dict[str, int]) -> None:
    body, waits = node("n", "p", shows), pod("ml/w", mig__3g_20gb=1)
    assert advice(read(body, waits))[0]["rooms"] == [{"pool": "p", "gpus": 8}]
    body["spec"]["unschedulable"] = True
    assert advice(read(body, waits))[0]["rooms"] == []


def test_layout_when_claims_name_the_devices_then_only_gpus_that_nobody_holds_have_room() -> None:
    devices = [device for minor in range(2) for device in parts(A100, "n", minor, ("1g.5gb", "1g.5gb"))]
    held = claim("ml/c", devices[0]["name"], on="n", users=["x"])
    pods = [pod("ml/x", "n", claim="c"), pod("ml/w", mig__3g_20gb=1)]
    made = read(node("n", "p", {}), *pods, devices=devices, claims=[held])
    assert advice(made)[0]["rooms"] == [{"pool": "p", "gpus": 1}]


def test_layout_when_the_cloud_does_not_allow_mig_on_the_machine_then_none() -> None:
    machine = "Standard_NC128ds_xl_RTXPRO6000BSE_v6"
    assert advice(read(node("n", "p", {GPU: 1}), pod("ml/w", mig__1g_24gb=1), machine=machine)) == []


def test_price_when_a_node_is_in_no_pool_then_unknown_and_why() -> None:
    stray = node("n", "nobody", {GPU: 8}, owner="nobody")
    made = world((plan("c", [], [stray]), [], []))
    assert "in no pool" in only(made).price.unknown
    assert usage_document(made)["summary"]["cost"]["unknownNodes"] == 1
