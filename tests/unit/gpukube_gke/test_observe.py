"""What GKE answers -> Observed: server defaults are no drift, and everything that a spec names is read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.diff import diff_fields
from gpukube.core.fields import COUNT, LEAST, MOST, SCOPE, FieldPath
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Disk, Nodes, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.pool.importing import chosen_fields
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.pool.purchase import FORM_FIELD, RUN_FIELD
from gpukube_gke.pool.updates import find_row
from tests.builders import make_observed
from tests.unit.gpukube_gke.targets import ZONAL, desire, gke_target, reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

A, B = "us-central1-a", "us-central1-b"
FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)


def as_answered(desired: Desired, **more: object) -> dict[str, object]:
    """The pool as GKE would give it: through the protobufs, with what the service fills in."""
    request = wire.CreateNodePoolRequest.from_json(json.dumps(desired.create.params))
    native = cast("dict[str, object]", MessageToDict(wire.NodePool.pb(request.node_pool)))
    config = cast("dict[str, object]", native["config"])
    filled = {"imageType": "COS_CONTAINERD", "diskSizeGb": 100, "diskType": "pd-balanced", "serviceAccount": "default"}
    native["config"] = {
        **filled,
        **config,
        "metadata": {"disable-legacy-endpoints": "true"},
        "resourceLabels": {**cast("dict[str, str]", config.get("resourceLabels", {})), "goog-gke-node": ""},
        "taints": [
            *cast("list[object]", config.get("taints", [])),
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
            {"key": "kubernetes.io/arch", "value": "arm64", "effect": "NO_SCHEDULE"},
        ],
    }
    return {"locations": [A], **native, "status": "RUNNING", "version": "1.34.1-gke.1", "etag": "e1", **more}


TARGETS: dict[str, Target] = {
    "plain": gke_target(cluster=ZONAL),
    "MIG": gke_target(cluster=ZONAL, sharing=Sharing(MigCut("1g.5gb", "single"))),
    "MIG and time-sharing": gke_target(
        cluster=ZONAL, sharing=Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 3))
    ),
    "MPS": gke_target("g2-standard-8", cluster=ZONAL, sharing=Sharing(None, Slicing("mps", 8))),
    "T4 on N1": gke_target("n1-standard-8", ("T4", 2), cluster=ZONAL),
    "Spot from zero": gke_target(cluster=ZONAL, capacity=Capacity("spot"), nodes=Nodes(0, 0, 3, autoscaled=True)),
    "no nodes": gke_target(cluster=ZONAL, nodes=Nodes(0, 0, 0, autoscaled=False)),
    "two zones": gke_target(zones=(B, A), nodes=Nodes(4, 4, 4, autoscaled=False)),
    "two zones, autoscaled": gke_target(zones=(B, A), nodes=Nodes(2, 2, 7, autoscaled=True)),
    "two zones, autoscaled each": gke_target(zones=(B, A), nodes=Nodes(2, 2, 8, autoscaled=True, scope="zone")),
    "a zone left open": gke_target(),
    "taints, labels, tags": gke_target(
        cluster=ZONAL,
        taints=(GPU_TAINT, Taint("a", "", "PreferNoSchedule")),
        labels={"team": "ml"},
        tags={"env": "dev"},
        protect=True,
    ),
    "disk and image": gke_target(cluster=ZONAL, disk=Disk(200, "pd-ssd"), image="UBUNTU_CONTAINERD"),
    "another plugin": gke_target(cluster=ZONAL, plugin_owner="none"),
    "native": gke_target(
        cluster=ZONAL,
        native={
            "management": {"autoUpgrade": False},
            "upgradeSettings": {"strategy": "BLUE_GREEN"},
            "config": {
                "gvnic": {"enabled": True},
                "tags": ["gpu"],
                "shieldedInstanceConfig": {"enableSecureBoot": False},
                "reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
                "maxRunDuration": "7200s",
            },
        },
    ),
    "reservation": gke_target(cluster=ZONAL, capacity=reserved("reservation", "projects/lender/reservations/ours")),
    "flex-start": gke_target(cluster=ZONAL, nodes=FROM_ZERO, capacity=reserved("flexStart")),
    "flex-start for an hour": gke_target(cluster=ZONAL, nodes=FROM_ZERO, capacity=reserved("flexStart", run_s=3600)),
    "flex-start for as long as can be": gke_target(
        cluster=ZONAL, nodes=FROM_ZERO, capacity=reserved("flexStart", run_s=604800)
    ),
    "flex-start with queued provisioning": gke_target(
        cluster=ZONAL, nodes=FROM_ZERO, capacity=reserved("flexStartQueued", run_s=86400)
    ),
    "queued": gke_target(cluster=ZONAL, nodes=FROM_ZERO, capacity=reserved("queued", run_s=86400)),
    "no surge": gke_target(cluster=ZONAL, upgrade=Upgrade("0", "1")),
    "pods": gke_target(cluster=ZONAL, max_pods=32),
    "a minor version": gke_target(cluster=ZONAL, kubernetes_version="1.34"),
    "a version": gke_target(cluster=ZONAL, kubernetes_version="1.34.1-gke.1"),
    "the newest driver": gke_target(cluster=ZONAL, driver_version="latest"),
    "the usual driver": gke_target(cluster=ZONAL, driver_version="default"),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_observe_when_gke_filled_in_its_defaults_no_difference(target: Target) -> None:
    desired = desire(target)
    observed = observe_pool(as_answered(desired))

    assert diff_fields(desired.fields, observed.fields) == ()
    assert (observed.owner, observed.pool, observed.protected) == ("ml-platform", "a100mig", target.protect)
    assert (observed.state, observed.etag, observed.instance_type) == ("ready", "e1", target.machine.name)


def changed(**config: object) -> Mapping[str, object]:
    native = as_answered(desire(TARGETS["MIG"]))
    return {**native, "config": {**cast("dict[str, object]", native["config"]), **config}}


def gpu(**more: object) -> list[dict[str, object]]:
    return [{"acceleratorCount": "1", "acceleratorType": "nvidia-tesla-a100", "gpuPartitionSize": "1g.5gb", **more}]


@pytest.mark.parametrize(
    ("native", "fields"),
    [
        (changed(machineType="a2-highgpu-2g"), {"instanceType"}),
        (changed(accelerators=gpu(acceleratorCount="2")), {"gpu"}),
        (changed(accelerators=gpu(gpuPartitionSize="2g.10gb")), {"sharing.mig.profile"}),
        (changed(accelerators=gpu(gpuPartitionSize="")), {"sharing.mig.profile"}),
        (
            changed(accelerators=gpu(gpuSharingConfig={"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "2"})),
            {"sharing.mps.replicas"},
        ),
        (
            changed(accelerators=gpu(gpuDriverInstallationConfig={"gpuDriverVersion": "INSTALLATION_DISABLED"})),
            {"driver"},
        ),
        (changed(accelerators=gpu()), set()),
        (changed(spot=True), {"capacity.type"}),
        (changed(taints=[{"key": "x", "value": "y", "effect": "NO_EXECUTE"}]), {"taints"}),
        (changed(taints=[]), set()),
        (changed(labels={"gpukube.io/owner": "ml-platform", "gpukube.io/pool": "a100mig", "x": "y"}), {"labels[x]"}),
        (changed(resourceLabels={"cost": "1"}), set()),
        ({**changed(), "initialNodeCount": 3}, {"nodes.count"}),
        ({**changed(), "locations": [A, B]}, {"nodes.count"}),
        (
            {**changed(), "autoscaling": {"enabled": True, "maxNodeCount": 2}},
            {"nodes.count", "nodes.autoscaling.min", "nodes.autoscaling.max", "nodes.autoscaling.scope"},
        ),
    ],
)
def test_observe_when_something_was_changed_shows_that_and_no_more(
    native: Mapping[str, object], fields: set[str]
) -> None:
    changes = diff_fields(desire(TARGETS["MIG"]).fields, observe_pool(native).fields)

    assert {str(change.field) for change in changes} == fields


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("PROVISIONING", "busy"),
        ("RUNNING", "ready"),
        ("RUNNING_WITH_ERROR", "ready"),
        ("RECONCILING", "busy"),
        ("STOPPING", "deleting"),
        ("ERROR", "failed"),
        ("", "busy"),
        ("42", "busy"),
    ],
)
def test_status_when_read_is_one_of_four_states(status: str, state: str) -> None:
    assert observe_pool({"name": "p", "status": status}).state == state


def by_number(**members: object) -> Mapping[str, object]:
    """A pool whose enums came as numbers that this version of the SDK has no names for, as gRPC gives them."""
    pool = wire.NodePool.from_json(json.dumps({"name": "p", **members}))
    return cast("Mapping[str, object]", MessageToDict(wire.NodePool.pb(pool)))


def test_status_when_it_came_as_an_unknown_number_is_busy_and_named() -> None:
    observed = observe_pool(by_number(status=42))

    assert (observed.state, observed.status) == ("busy", "42")


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        (
            {"accelerators": gpu(gpuSharingConfig={"gpuSharingStrategy": 42, "maxSharedClientsPerGpu": "2"})},
            "sharing.strategy",
            "42",
        ),
        ({"accelerators": gpu(gpuDriverInstallationConfig={"gpuDriverVersion": 42})}, "driver", "42"),
        ({"taints": [{"key": "x", "value": "y", "effect": 42}]}, "taints", ("x=y:42",)),
        ({"taints": [{"key": "x", "value": "y"}]}, "taints", ("x=y:EFFECT_UNSPECIFIED",)),
    ],
)
def test_word_when_nobody_knows_it_is_shown_as_it_came_and_never_overwritten(
    config: dict[str, object], field: str, value: object
) -> None:
    native = as_answered(desire(TARGETS["MIG"]))
    odd = by_number(config=config)["config"]
    live = {**native, "config": {**cast("Mapping[str, object]", native["config"]), **cast("dict[str, object]", odd)}}
    (change,) = diff_fields(desire(TARGETS["MIG"]).fields, observe_pool(live).fields)

    assert (str(change.field), change.old) == (field, value)
    assert find_row(change).kind == "refused"


def test_failure_when_the_pool_has_a_condition_is_its_code_and_text() -> None:
    native = {"name": "p", "status": "ERROR", "conditions": [{"code": "GCE_STOCKOUT", "message": "none left"}]}

    assert observe_pool(native).failure == "GCE_STOCKOUT: none left"
    assert observe_pool({"name": "p", "statusMessage": "broken"}).failure == "broken"
    assert observe_pool({"name": "p"}).failure == ""


@pytest.mark.parametrize(
    ("scaling", "bounds"),
    [
        ({"enabled": True, "minNodeCount": 1, "maxNodeCount": 3}, (2, 6, "zone")),
        ({"enabled": True, "maxNodeCount": 3}, (0, 6, "zone")),
        ({"enabled": True, "totalMinNodeCount": 1, "totalMaxNodeCount": 5}, (1, 5, "pool")),
        ({"enabled": True, "totalMaxNodeCount": 9}, (0, 9, "pool")),
    ],
)
def test_bounds_when_per_zone_or_in_total_are_read_in_total_with_their_scope(
    scaling: dict[str, object], bounds: tuple[int, int, str]
) -> None:
    fields = observe_pool({"name": "p", "locations": [A, B], "autoscaling": scaling, "initialNodeCount": 9}).fields

    assert tuple(fields[path] for path in (LEAST, MOST, SCOPE)) == bounds
    assert COUNT not in fields


def test_nodes_when_autoscaled_are_not_known() -> None:
    assert observe_pool({"name": "p", "autoscaling": {"enabled": True}, "initialNodeCount": 2}).nodes is None
    assert observe_pool({"name": "p", "locations": [A, B], "initialNodeCount": 2}).nodes == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["config", "autoscaling", "locations", "conditions", "status"]), JSON))
def test_observe_when_the_answer_is_strange_does_not_break(native: dict[str, object]) -> None:
    assert observe_pool(native).fields


def test_pool_when_it_is_flex_and_queued_then_imported_with_one_duration() -> None:
    fields = {FORM_FIELD: "flexStartQueued", RUN_FIELD: "86400s"}
    found = chosen_fields(make_observed(desire(gke_target()), fields=fields))
    assert found[FieldPath(*FORM_FIELD, "flexStart")] == {"maxRunDuration": "86400s"}
    assert found[FieldPath(*FORM_FIELD, "queued")] == {}
