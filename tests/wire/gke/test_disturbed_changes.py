"""Changes of a living pool that meet others, faults, and a run that is killed in between."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpukube.core.diff import diff_fields
from gpukube.core.fields import COUNT, FieldPath
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Disk, Nodes, Operation, Taint, Upgrade
from gpukube.errors import Busy, CapacityError, CloudError, Conflict, GpukubeError, Moved, SpecError
from gpukube.gpu.sharing import Sharing, Slicing
from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import signed_channel
from tests.unit.gpukube_gke.edits import BASE, EDITS
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire
from tests.wire.gke.living import bring_about, create, find, finish, first_request, machines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

POOL = "projects/ml-prod/locations/us-central1/clusters/train/nodePools/edited"
EACH_CALL = ("labels, another", "taints", "nodes.count", "nodes.autoscaling.max", "gke.management.autoRepair", "image")
"""One edit for each call, and for each of the sets that a call replaces."""


@pytest.fixture
def other(edited_sandbox: SandboxInfo) -> Iterator[wire.ClusterManagerClient]:
    """Somebody else's client."""
    with signed_channel(edited_sandbox) as channel:
        yield wire.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))


def code_of(error: Conflict | CloudError) -> str:
    return error.diagnostics[0].code


@pytest.mark.parametrize("name", EACH_CALL)
def test_change_when_it_is_sent_twice_is_done_once(living: GkeCloud, name: str) -> None:
    create(living, EDITS[name].base)
    desired = desire(EDITS[name].target)
    request = first_request(living, desired)
    operation = living.send(request)
    with pytest.raises(Conflict) as caught:
        living.send(request)
    finish(living, operation)

    assert isinstance(caught.value, Busy | Moved)
    assert diff_fields(desired.fields, find(living).fields) == ()


@pytest.mark.parametrize("name", EACH_CALL)
@pytest.mark.parametrize("action", ["drop-before", "drop-after"])
def test_change_when_its_answer_is_lost_is_found_by_the_next_look(
    edited_sandbox: SandboxInfo, living: GkeCloud, name: str, action: str
) -> None:
    create(living, EDITS[name].base)
    desired = desire(EDITS[name].target)
    request = first_request(living, desired)
    method = "PUT" if request.operation == "update_node_pool" else "POST"
    daemon.add_fault(edited_sandbox, action, service="gke", method=method, path="nodePools/edited")
    if action == "drop-before":
        living.send(request)  # sent again: it had no effect
    else:
        with suppress(GpukubeError):  # sent again it does not fit any more, or meets the operation of the first
            living.send(request)
    if find(living).state == "busy":
        finish(living, Operation("edited", "update"))
    bring_about(living, desired)

    assert plan_pool(PROVIDER, desired, living.pools()).action == "no-op"


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("labels, another", {"autoRepair": False}),
        ("nodes.count", {"autoRepair": False}),
        ("nodes.autoscaling.max", {"autoRepair": False}),
        ("gke.management.autoUpgrade", {"autoRepair": False}),
    ],
)
def test_change_when_somebody_was_quicker_leaves_theirs_alone(
    living: GkeCloud, other: wire.ClusterManagerClient, name: str, theirs: dict[str, bool]
) -> None:
    create(living, EDITS[name].base)
    desired = desire(EDITS[name].target)
    request = first_request(living, desired)
    management = {"auto_upgrade": True, "auto_repair": theirs["autoRepair"]}
    started = other.set_node_pool_management(request={"name": POOL, "management": management}, timeout=60)
    finish(living, Operation("edited", "update", started.name))
    with pytest.raises(Conflict) as caught:
        living.send(request)
    assert isinstance(caught.value, Moved)

    bring_about(living, desired)
    assert find(living).fields[FieldPath.parse("gke.management.autoRepair")] is False


def test_change_when_the_pool_is_at_work_is_busy(edited_sandbox: SandboxInfo, living: GkeCloud) -> None:
    create(living, BASE)
    daemon.configure(edited_sandbox, speed=0.01)
    living.send(first_request(living, desire(EDITS["image"].target)))
    assert find(living).state == "busy"
    with pytest.raises(Conflict) as caught:
        living.send(first_request(living, desire(EDITS["labels, another"].target)))
    assert isinstance(caught.value, Busy)


def test_change_when_the_nodes_do_not_come_is_told_and_the_pool_is_left_alone(
    edited_sandbox: SandboxInfo, living: GkeCloud
) -> None:
    create(living, BASE)
    old = machines(edited_sandbox)
    daemon.add_fault(edited_sandbox, "operation", code="GCE_STOCKOUT", pool="edited", kind="UPGRADE_NODES")
    desired = desire(EDITS["image"].target)
    with pytest.raises(CapacityError):
        finish(living, living.send(first_request(living, desired)))
    plan = plan_pool(PROVIDER, desired, living.pools())

    assert machines(edited_sandbox) == old
    assert (find(living).status, plan.requests) == ("RUNNING_WITH_ERROR", ())

    finish(living, Operation("edited", "update"))
    bring_about(living, desire(replace(EDITS["image"].target, labels={"team": "speech"})))
    assert find(living).status == "RUNNING"


def test_change_when_it_takes_long_is_waited_for(edited_sandbox: SandboxInfo, living: GkeCloud) -> None:
    create(living, BASE)
    daemon.add_fault(edited_sandbox, "operation", seconds=1e7, pool="edited", kind="UPGRADE_NODES")
    operation = living.send(first_request(living, desire(EDITS["labels, another"].target)))
    assert not living.poll(operation).done
    daemon.configure(edited_sandbox, speed=1e8)
    finish(living, operation)

    assert find(living).labels["team"] == "speech"


def test_pool_when_it_is_going_is_seen_as_such(edited_sandbox: SandboxInfo, living: GkeCloud) -> None:
    create(living, BASE)
    daemon.configure(edited_sandbox, speed=0.01)
    living.send(PROVIDER.requests.delete(CLUSTER, find(living)))

    assert find(living).state == "deleting"
    with pytest.raises(Conflict) as caught:
        living.send(first_request(living, desire(EDITS["labels, another"].target)))
    assert isinstance(caught.value, Busy | Moved)


def test_taint_of_the_service_when_others_change_survives(living: GkeCloud) -> None:
    base = replace(BASE, taints=(GPU_TAINT, Taint("a", "1", "NoSchedule"), Taint("b", "1", "NoExecute")))
    create(living, base)
    for taints in ((Taint("c", "1", "NoSchedule"),), (), (Taint("a", "2", "NoSchedule"),)):
        bring_about(living, desire(replace(base, taints=(GPU_TAINT, *taints))))
        assert set(find(living).effective_taints) == {GPU_TAINT, *taints}


def test_label_of_somebody_when_it_is_drift_goes_and_ours_stay(
    living: GkeCloud, other: wire.ClusterManagerClient
) -> None:
    desired = create(living, BASE)
    labels = {**find(living).labels, "theirs": "1"}
    del labels["team"]
    started = other.update_node_pool(request={"name": POOL, "labels": {"labels": labels}}, timeout=60)
    finish(living, Operation("edited", "update", started.name))
    calls = bring_about(living, desired)

    assert [call.operation for call in calls] == ["update_node_pool"]
    assert dict(find(living).labels) == dict(desired.labels)


def test_tag_when_the_spec_drops_it_goes_and_those_of_others_stay(
    living: GkeCloud, other: wire.ClusterManagerClient
) -> None:
    create(living, replace(BASE, tags={"env": "dev"}))
    ours = find(living).native["config"]["resourceLabels"]  # type: ignore[index] # JSON of the API
    started = other.update_node_pool(
        request={"name": POOL, "resource_labels": {"labels": {**ours, "theirs": "1"}}}, timeout=60
    )
    finish(living, Operation("edited", "update", started.name))
    calls = bring_about(living, desire(BASE))

    assert [call.operation for call in calls] == ["update_node_pool"]
    assert plan_pool(PROVIDER, desire(BASE), living.pools()).action == "no-op"
    assert {"env", "theirs"} & set(find(living).native["config"]["resourceLabels"]) == {"theirs"}  # type: ignore[index] # as above


def test_autoscaler_when_it_comes_and_goes_leaves_the_declared_size(living: GkeCloud) -> None:
    create(living, BASE)
    scaled = desire(replace(BASE, nodes=Nodes(1, 1, 3, autoscaled=True)))
    assert [call.operation for call in bring_about(living, scaled)] == ["set_node_pool_autoscaling"]

    calls = bring_about(living, desire(replace(BASE, nodes=Nodes(2, 2, 2, autoscaled=False))))
    assert [call.operation for call in calls] == ["set_node_pool_autoscaling", "set_node_pool_size"]
    assert find(living).fields[COUNT] == 2


def test_sharing_when_its_kind_changes_takes_one_call(living: GkeCloud) -> None:
    create(living, replace(BASE, sharing=Sharing(None, Slicing("time-slicing", 4))))
    calls = bring_about(living, desire(replace(BASE, sharing=Sharing(None, Slicing("mps", 8)))))

    assert len(calls) == 1
    assert find(living).fields[FieldPath.parse("sharing.mps.replicas")] == 8


def test_bounds_when_somebody_makes_them_those_of_each_zone_show_it_and_are_put_right(
    living: GkeCloud, other: wire.ClusterManagerClient
) -> None:
    base = replace(BASE, nodes=Nodes(0, 0, 4, autoscaled=True), zones=("us-central1-a", "us-central1-b"))
    create(living, base)
    scaling = {"enabled": True, "max_node_count": 2}
    started = other.set_node_pool_autoscaling(request={"name": POOL, "autoscaling": scaling}, timeout=60)
    finish(living, Operation("edited", "update", started.name))
    plan = plan_pool(PROVIDER, desire(base), living.pools())

    assert [(str(one.change.field), one.change.old, one.change.new) for one in plan.changes] == [
        ("nodes.autoscaling.scope", "zone", "pool")
    ]
    assert [call.operation for call in bring_about(living, desire(base))] == ["set_node_pool_autoscaling"]
    assert find(living).native["autoscaling"] == {"enabled": True, "totalMaxNodeCount": 4}
    finish(living, living.send(PROVIDER.requests.scale(CLUSTER, find(living), Nodes(1, 1, 5, autoscaled=True))))
    assert find(living).native["autoscaling"] == {"enabled": True, "totalMinNodeCount": 1, "totalMaxNodeCount": 5}


@pytest.mark.parametrize(("total", "code"), [(3, "gke-zones-divide"), (2002, "gke-node-count")])
def test_scale_when_the_zones_cannot_have_it_says_what_to_ask_for(living: GkeCloud, total: int, code: str) -> None:
    create(living, replace(BASE, nodes=Nodes(2, 2, 2, autoscaled=False), zones=("us-central1-a", "us-central1-b")))
    with pytest.raises(SpecError) as caught:
        PROVIDER.requests.scale(CLUSTER, find(living), Nodes(total, total, total, autoscaled=False))

    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].fix


TARGETS = st.builds(
    lambda **changes: replace(BASE, **changes),
    labels=st.dictionaries(st.sampled_from(["team", "tier"]), st.sampled_from(["a", "b"])),
    protect=st.booleans(),
    taints=st.lists(
        st.sampled_from([Taint("d", "1", "NoSchedule"), Taint("d", "2", "NoSchedule"), Taint("e", "", "NoExecute")]),
        unique_by=lambda taint: taint.key,
    ).map(lambda own: (GPU_TAINT, *own)),
    nodes=st.one_of(
        st.sampled_from([0, 2, 4]).map(lambda count: Nodes(count, count, count, autoscaled=False)),
        st.sampled_from([2, 3]).map(lambda high: Nodes(0, 0, high, autoscaled=True)),
        st.sampled_from([2, 4]).map(lambda high: Nodes(0, 0, high, autoscaled=True, scope="zone")),
    ),
    zones=st.sampled_from([("us-central1-a",), ("us-central1-b",), ("us-central1-a", "us-central1-b")]),
    sharing=st.sampled_from([Sharing(), Sharing(None, Slicing("time-slicing", 4)), Sharing(None, Slicing("mps", 8))]),
    driver_owner=st.sampled_from(["auto", "none"]),
    image=st.sampled_from(["", "COS_CONTAINERD", "UBUNTU_CONTAINERD"]),
    kubernetes_version=st.sampled_from(["", "1.33", "1.34"]),
    upgrade=st.sampled_from([Upgrade(), Upgrade("0", "1"), Upgrade("2")]),
    disk=st.sampled_from([Disk(None, None), Disk(200, "pd-ssd")]),
    tags=st.dictionaries(st.just("env"), st.sampled_from(["dev", "prod"])),
    native=st.fixed_dictionaries(
        {},
        optional={
            "management": st.booleans().map(lambda on: {"autoRepair": on}),
            "upgradeSettings": st.sampled_from(["SURGE", "BLUE_GREEN"]).map(lambda name: {"strategy": name}),
            "config": st.booleans().map(lambda on: {"gvnic": {"enabled": on}, "fastSocket": {"enabled": on}}),
        },
    ),
)


@given(before=TARGETS, after=TARGETS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_pools_when_many_things_change_at_once_converge(
    edited_sandbox: SandboxInfo, living: GkeCloud, before: Target, after: Target
) -> None:
    create(living, before)
    bring_about(living, desire(after))

    assert plan_pool(PROVIDER, desire(after), living.pools()).action == "no-op"
    assert GPU_TAINT in find(living).effective_taints
    assert len(machines(edited_sandbox)) == after.nodes.count or after.nodes.autoscaled
    daemon.tamper(edited_sandbox, "train", "edited", delete=True)
