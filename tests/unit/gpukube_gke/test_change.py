"""Changes -> calls: what goes together, what is kept of the live pool, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import label
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Nodes, Taint, Upgrade
from gpukube.errors import SpecError
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.pool.taints import merged_taints
from gpukube_gke.pool.updates import find_row
from tests.unit.gpukube_gke.edits import BASE, EDITS, changes_of, live_of
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire

if TYPE_CHECKING:
    from gpukube.core.values import Observed, Request, Target

OWN = Taint("dedicated", "ml", "NoSchedule")
FIXED = Nodes(2, 2, 2, autoscaled=False)
SCALED = Nodes(0, 0, 4, autoscaled=True)
MUTABLE = [name for name, edit in EDITS.items() if edit.kind in ("in-place", "disruptive")]


def calls(target: Target, live: Observed) -> tuple[Request, ...]:
    desired = desire(target)
    return PROVIDER.requests.update(desired, live, diff_fields(desired.fields, live.fields))


def bodies(target: Target, live: Observed) -> list[dict[str, object]]:
    """What the calls carry besides name and etag."""
    kept = [
        {key: value for key, value in call.params.items() if key not in ("name", "etag")}
        for call in calls(target, live)
    ]
    assert all(call.params["name"] == f"{POOL}" for call in calls(target, live))
    return kept


POOL = "projects/ml-prod/locations/us-central1/clusters/train/nodePools/edited"


def changed(live: Observed, **config: object) -> Observed:
    """The pool with other fields of its node config."""
    old = live.native["config"]
    assert isinstance(old, dict)
    return observe_pool({**live.native, "config": {**old, **config}})


@pytest.mark.parametrize("name", MUTABLE)
def test_edit_when_made_into_calls_begins_with_the_one_of_its_row(name: str) -> None:
    edit = EDITS[name]
    (change,) = changes_of(edit)
    requests = PROVIDER.requests.update(desire(edit.target), live_of(edit.base), (change,))

    assert requests[0].operation == find_row(change).call
    assert all(request.params["etag"] == "e1" for request in requests)


def test_calls_when_the_pool_has_no_etag_carry_none() -> None:
    live = live_of(BASE, etag="")
    requests = (
        *calls(replace(BASE, labels={}), live),
        *calls(replace(BASE, nodes=FIXED), live),
        *calls(replace(BASE, native={"management": {"autoRepair": False}}), live),
    )

    assert [request.params.get("etag") for request in requests] == [None, None, None]


def test_calls_when_nothing_changes_are_none() -> None:
    assert PROVIDER.requests.update(desire(BASE), live_of(BASE), ()) == ()


def test_labels_when_one_changes_keep_those_that_nobody_declared() -> None:
    live = changed(live_of(BASE), labels={**live_of(BASE).labels, "team": "vision", "theirs": "1"})
    desired = desire(replace(BASE, labels={"team": "speech"}))
    (change,) = [c for c in diff_fields(desired.fields, live.fields) if c.field == label("team")]
    (request,) = PROVIDER.requests.update(desired, live, [change])

    assert request.params["labels"] == {"labels": {**desired.labels, "theirs": "1"}}


@pytest.mark.parametrize(
    ("live", "declared", "sent"),
    [
        ((GPU_TAINT,), (GPU_TAINT, OWN), [GPU_TAINT, OWN]),
        ((OWN, GPU_TAINT), (GPU_TAINT,), [GPU_TAINT]),
        ((), (GPU_TAINT, OWN), [OWN]),
        ((GPU_TAINT,), (), [GPU_TAINT]),
        (
            (
                Taint("kubernetes.io/arch", "arm64", "NoSchedule"),
                Taint("cloud.google.com/gke-queued", "", "NoSchedule"),
            ),
            (OWN,),
            [
                Taint("kubernetes.io/arch", "arm64", "NoSchedule"),
                Taint("cloud.google.com/gke-queued", "", "NoSchedule"),
                OWN,
            ],
        ),
        (
            (OWN,),
            (replace(OWN, value="x"), Taint("a", "", "NoExecute")),
            [Taint("a", "", "NoExecute"), replace(OWN, value="x")],
        ),
    ],
)
def test_taints_when_merged_keep_those_of_the_service(
    live: tuple[Taint, ...], declared: tuple[Taint, ...], sent: list[Taint]
) -> None:
    merged = merged_taints(live, declared)

    assert [(one["key"], one["value"]) for one in merged] == [(taint.key, taint.value) for taint in sent]


def test_tags_when_one_changes_keep_others_but_not_those_of_google() -> None:
    live = changed(live_of(BASE), resourceLabels={"theirs": "1", "goog-gke-node-pool-provisioning-model": "on-demand"})

    assert bodies(replace(BASE, tags={"env": "dev"}), live) == [
        {"resourceLabels": {"labels": {"env": "dev", "theirs": "1"}}}
    ]


def test_management_when_one_flag_changes_sends_the_other_as_it_is() -> None:
    assert bodies(replace(BASE, native={"management": {"autoRepair": False}}), live_of(BASE)) == [
        {"management": {"autoUpgrade": True, "autoRepair": False}}
    ]


def test_upgrade_settings_when_one_changes_keep_the_rest() -> None:
    live = observe_pool({**live_of(BASE).native, "upgradeSettings": {"maxSurge": 2, "strategy": "SURGE"}})

    assert bodies(replace(BASE, upgrade=Upgrade(None, "1")), live) == [
        {"upgradeSettings": {"maxSurge": 2, "strategy": "SURGE", "maxUnavailable": 1}}
    ]


def test_message_when_a_part_of_it_changes_keeps_the_rest() -> None:
    drain = {"respectPdbDuringNodePoolDeletion": True, "pdbTimeoutDuration": "600s"}
    live = observe_pool({**live_of(BASE).native, "nodeDrainConfig": drain})
    target = replace(BASE, native={"nodeDrainConfig": {"pdbTimeoutDuration": "60s"}})

    assert bodies(target, live) == [{"nodeDrainConfig": {**drain, "pdbTimeoutDuration": "60s"}}]


def test_message_when_it_lies_in_others_is_sent_with_them() -> None:
    target = replace(BASE, native={"config": {"loggingConfig": {"variantConfig": {"variant": "MAX_THROUGHPUT"}}}})

    assert bodies(target, live_of(BASE)) == [{"loggingConfig": {"variantConfig": {"variant": "MAX_THROUGHPUT"}}}]


def test_version_when_the_image_changes_is_sent_as_it_is() -> None:
    live = live_of(BASE)

    assert bodies(replace(BASE, image="UBUNTU_CONTAINERD"), live) == [
        {"imageType": "UBUNTU_CONTAINERD", "nodeVersion": live.native["version"]}
    ]


def test_accelerators_when_the_driver_is_the_server_s_keep_their_silence() -> None:
    live = live_of(replace(BASE, sharing=EDITS["sharing.mps.replicas"].base.sharing))
    bare = {"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}
    target = EDITS["sharing.mps.replicas"].target

    assert bodies(target, changed(live, accelerators=[bare])) == [
        {"accelerators": [{**bare, "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "8"}}]}
    ]


def network(*, gvnic: bool, fast: bool) -> Target:
    return replace(BASE, native={"config": {"gvnic": {"enabled": gvnic}, "fastSocket": {"enabled": fast}}})


def test_fast_socket_when_it_comes_or_goes_never_stands_without_gvnic() -> None:
    on, off = network(gvnic=True, fast=True), network(gvnic=False, fast=False)

    assert [next(iter(body)) for body in bodies(on, live_of(off))] == ["gvnic", "fastSocket"]
    assert [next(iter(body)) for body in bodies(off, live_of(on))] == ["fastSocket", "gvnic"]


def test_driver_when_it_is_latest_comes_after_the_image_and_goes_before() -> None:
    cos = replace(BASE, image="COS_CONTAINERD", driver_version="latest")
    ubuntu = replace(BASE, image="UBUNTU_CONTAINERD", driver_version="default")

    assert [next(iter(body)) for body in bodies(cos, live_of(ubuntu))] == ["imageType", "accelerators"]
    assert [next(iter(body)) for body in bodies(ubuntu, live_of(cos))] == ["accelerators", "imageType"]


def test_zones_when_they_change_come_before_the_size_that_follows_from_them() -> None:
    zones = ("us-central1-a", "us-central1-b")

    assert bodies(replace(BASE, zones=zones, nodes=Nodes(4, 4, 4, autoscaled=False)), live_of(BASE)) == [
        {"locations": list(zones)},
        {"nodeCount": 2},
    ]
    assert bodies(replace(BASE, zones=zones, nodes=FIXED), live_of(BASE)) == [{"locations": list(zones)}]


def test_bounds_when_the_zones_are_others_of_the_same_number_are_not_sent() -> None:
    base = replace(BASE, nodes=SCALED)

    assert bodies(replace(base, zones=("us-central1-b",)), live_of(base)) == [{"locations": ["us-central1-b"]}]


def test_policy_when_it_changes_keeps_the_bounds() -> None:
    policy = {"autoscaling": {"locationPolicy": "ANY"}}
    base, each = replace(BASE, nodes=SCALED), replace(BASE, nodes=replace(SCALED, scope="zone"))

    assert bodies(replace(base, native=policy), live_of(base)) == [
        {"autoscaling": {"locationPolicy": "ANY", "enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}}
    ]
    assert bodies(replace(each, native=policy), live_of(each)) == [
        {"autoscaling": {"locationPolicy": "ANY", "enabled": True, "minNodeCount": 0, "maxNodeCount": 4}}
    ]


def test_scope_when_it_changes_replaces_the_other_pair_of_bounds() -> None:
    zones = ("us-central1-a", "us-central1-b", "us-central1-c")
    total = replace(BASE, zones=zones, nodes=Nodes(0, 0, 9, autoscaled=True))
    each = replace(total, nodes=replace(total.nodes, scope="zone"))

    assert bodies(total, live_of(each)) == [
        {"autoscaling": {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 9}}
    ]
    assert bodies(each, live_of(total)) == [{"autoscaling": {"enabled": True, "minNodeCount": 0, "maxNodeCount": 3}}]


def test_policy_when_the_bounds_change_is_sent_again() -> None:
    live = {**live_of(replace(BASE, nodes=SCALED)).native}
    live["autoscaling"] = {"enabled": True, "totalMaxNodeCount": 4, "locationPolicy": "ANY"}

    assert bodies(replace(BASE, nodes=Nodes(0, 0, 6, autoscaled=True)), observe_pool(live)) == [
        {"autoscaling": {"locationPolicy": "ANY", "enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 6}}
    ]


def test_size_when_the_live_zones_do_not_divide_it_says_what_to_ask_for() -> None:
    live = observe_pool({**live_of(replace(BASE, zones=(), native={})).native, "locations": ["a", "b"]})
    target = replace(BASE, zones=(), nodes=Nodes(3, 3, 3, autoscaled=False))
    with pytest.raises(SpecError) as caught:
        calls(target, live)

    assert caught.value.diagnostics[0].fix == "request 2 or 4"


@pytest.mark.parametrize(
    ("total", "zones", "fix"),
    [(3, ["a", "b"], "request 2 or 4"), (1, ["a", "b"], "request 2"), (1001, ["a"], "at most 1000")],
)
def test_scale_when_it_cannot_be_names_what_can(total: int, zones: list[str], fix: str) -> None:
    live = observe_pool({**live_of(BASE).native, "locations": zones})
    for nodes in (Nodes(total, total, total, autoscaled=False), Nodes(0, 0, total, autoscaled=True, scope="zone")):
        with pytest.raises(SpecError) as caught:
            PROVIDER.requests.scale(CLUSTER, live, nodes)
        assert fix in caught.value.diagnostics[0].fix
