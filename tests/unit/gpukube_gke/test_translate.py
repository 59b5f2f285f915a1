"""From a target to GKE's words: what is sent, what is compared, and what is left to an update."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from google.cloud import container_v1 as wire

from gpukube.core.fields import COUNT, DRIVER, DRIVER_VERSION, GPU, IMAGE, TAINTS, ZONES, FieldPath
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Disk, Nodes, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.pool.effects import UPDATE
from gpukube_gke.pool.fields import ARM_TAINT, OPT_OUT_LABEL
from gpukube_gke.pool.marks import FORM
from gpukube_gke.pool.translate import CREATE, DELETE, needs_zone, with_zones
from tests.builders import by_text, make_observed
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, ZONAL, desire, gke_target, reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target

A, B = "us-central1-a", "us-central1-b"
OWN = Taint("dedicated", "ml", "NoExecute")


def pool_of(target: Target) -> dict[str, object]:
    return dict(cast("Mapping[str, object]", desire(target).create.params["nodePool"]))


def config_of(target: Target) -> dict[str, object]:
    return cast("dict[str, object]", pool_of(target)["config"])


def accelerator_of(target: Target) -> dict[str, object]:
    (found,) = cast("list[dict[str, object]]", config_of(target)["accelerators"])
    return found


@pytest.mark.parametrize(
    ("machine", "gpu", "kind", "count"),
    [
        ("a2-highgpu-8g", None, "nvidia-tesla-a100", "8"),
        ("a2-ultragpu-1g", None, "nvidia-a100-80gb", "1"),
        ("a3-megagpu-8g", None, "nvidia-h100-mega-80gb", "8"),
        ("g2-standard-24", None, "nvidia-l4", "2"),
        ("g2-standard-32", None, "nvidia-l4", "1"),
        ("g4-standard-6", None, "nvidia-rtx-pro-6000", "1"),
        ("n1-standard-8", ("T4", 2), "nvidia-tesla-t4", "2"),
        ("n1-highmem-32", ("V100-16GB", 8), "nvidia-tesla-v100", "8"),
    ],
)
def test_accelerators_when_sent_are_those_of_the_machine(
    machine: str, gpu: tuple[str, int] | None, kind: str, count: str
) -> None:
    target = gke_target(machine, gpu)

    assert (accelerator_of(target)["acceleratorType"], accelerator_of(target)["acceleratorCount"]) == (kind, count)
    assert config_of(target)["machineType"] == machine
    assert desire(target).fields[GPU] == f"{count} x {kind}"


@pytest.mark.parametrize(
    ("sharing", "sent", "field"),
    [
        (Sharing(MigCut("1g.5gb", "single")), {"gpuPartitionSize": "1g.5gb"}, ("sharing.mig.profile", "1g.5gb")),
        (
            Sharing(None, Slicing("time-slicing", 4)),
            {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "4"}},
            ("sharing.timeSlicing.replicas", 4),
        ),
        (
            Sharing(None, Slicing("mps", 48)),
            {"gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "48"}},
            ("sharing.mps.replicas", 48),
        ),
    ],
)
def test_sharing_when_sent_is_part_of_the_accelerator(
    sharing: Sharing, sent: dict[str, object], field: tuple[str, object]
) -> None:
    target = gke_target(sharing=sharing)

    assert accelerator_of(target).items() >= sent.items()
    assert field in by_text(desire(target).fields).items()


@pytest.mark.parametrize(
    ("changes", "version", "owner", "label"),
    [
        ({}, "DEFAULT", "cloud", False),
        ({"driver_owner": "none"}, "INSTALLATION_DISABLED", "none", False),
        ({"plugin_owner": "none"}, "INSTALLATION_DISABLED", "none", True),
    ],
)
def test_driver_when_sent_goes_with_the_plugin(
    changes: dict[str, object],
    version: str,
    owner: str,
    label: bool,  # noqa: FBT001 - a case
) -> None:
    target = gke_target(**changes)

    assert accelerator_of(target)["gpuDriverInstallationConfig"] == {"gpuDriverVersion": version}
    assert desire(target).fields[DRIVER] == desire(target).ownership.driver == owner
    assert (OPT_OUT_LABEL in desire(target).labels) is label
    assert desire(target).ownership.advertiser == ("none" if label else "cloud")


def test_scopes_when_sent_are_those_of_gcloud_with_and_without_an_account() -> None:
    account = {"config": {"serviceAccount": "sa@p.iam.gserviceaccount.com"}}

    assert len(cast("list[str]", config_of(gke_target())["oauthScopes"])) == 6
    assert config_of(gke_target(native=account))["oauthScopes"] == [
        "https://www.googleapis.com/auth/cloud-platform",
        "https://www.googleapis.com/auth/userinfo.email",
    ]


def test_management_when_sent_is_explicit() -> None:
    pool = pool_of(gke_target())

    assert pool["management"] == {"autoRepair": True, "autoUpgrade": True}
    assert pool["upgradeSettings"] == {"maxSurge": 1}


@pytest.mark.parametrize(
    ("changes", "zones", "count"),
    [
        ({"cluster": ZONAL}, [A], 4),
        ({"zones": (B, A)}, [A, B], 2),
        ({"cluster": ZONAL, "zones": (B,)}, [B], 4),
    ],
)
def test_count_when_sent_is_per_zone(changes: dict[str, object], zones: list[str], count: int) -> None:
    target = gke_target(nodes=Nodes(4, 4, 4, autoscaled=False), **changes)

    assert (pool_of(target)["locations"], pool_of(target)["initialNodeCount"]) == (zones, count)
    assert desire(target).fields[COUNT] == 4


@pytest.mark.parametrize(
    ("scope", "sent"),
    [
        ("pool", {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 6}),
        ("zone", {"enabled": True, "minNodeCount": 0, "maxNodeCount": 3}),
    ],
)
def test_bounds_when_sent_are_of_their_scope_and_compared_in_total(
    scope: Literal["pool", "zone"], sent: dict[str, object]
) -> None:
    target = gke_target(zones=(A, B), nodes=Nodes(2, 0, 6, autoscaled=True, scope=scope))

    assert pool_of(target)["autoscaling"] == sent
    assert pool_of(target)["initialNodeCount"] == 1
    assert {name: value for name, value in by_text(desire(target).fields).items() if name.startswith("nodes.")} == {
        "nodes.autoscaling.min": 0,
        "nodes.autoscaling.max": 6,
        "nodes.autoscaling.scope": scope,
    }


def test_zone_when_left_open_on_a_regional_cluster_is_for_the_live_half() -> None:
    desired = desire(gke_target())

    assert needs_zone(desired)
    assert ZONES not in desired.fields
    chosen = with_zones(desired, [B])
    assert not needs_zone(chosen)
    assert cast("Mapping[str, object]", chosen.create.params["nodePool"])["locations"] == [B]
    assert (chosen.fields, chosen.target.zones) == (desired.fields, (B,))


def test_taints_when_created_are_sent_without_that_of_gke() -> None:
    target = gke_target(taints=(GPU_TAINT, OWN))

    assert config_of(target)["taints"] == [{"key": "dedicated", "value": "ml", "effect": "NO_EXECUTE"}]
    assert desire(target).fields[TAINTS] == ("dedicated=ml:NoExecute",)
    assert desire(target).effective_taints == (GPU_TAINT, OWN)
    assert "taints" not in config_of(gke_target())


def test_taints_when_the_machine_is_arm_include_that_of_the_architecture() -> None:
    assert desire(gke_target("a4x-highgpu-4g", capacity=reserved("reservation", "ours"))).effective_taints == (
        GPU_TAINT,
        ARM_TAINT,
    )


@pytest.mark.parametrize(
    ("wanted", "live", "state", "sent"),
    [
        ((GPU_TAINT, OWN), (OWN,), "ready", True),
        ((GPU_TAINT,), (), "ready", True),
        ((GPU_TAINT,), (GPU_TAINT,), "ready", False),
        ((GPU_TAINT,), (Taint("nvidia.com/gpu", "", "NoSchedule"),), "ready", False),
        ((), (), "ready", False),
        ((GPU_TAINT,), (), "failed", False),
        ((GPU_TAINT,), (), "busy", False),
    ],
)
def test_follow_up_when_gke_added_no_taint_adds_it_to_the_live_ones(
    wanted: tuple[Taint, ...],
    live: tuple[Taint, ...],
    state: str,
    sent: bool,  # noqa: FBT001 - a case
) -> None:
    desired = desire(gke_target(taints=wanted))
    observed = make_observed(desired, effective_taints=live, state=state, etag="7")
    request = PROVIDER.requests.follow_up(desired, observed)

    assert (request is not None) is sent
    if request is not None:
        taints = cast("dict[str, list[dict[str, str]]]", request.params["taints"])["taints"]
        assert [taint["key"] for taint in taints] == [*(taint.key for taint in live), "nvidia.com/gpu"]
        assert (request.operation, request.params["etag"]) == (UPDATE, "7")
        assert request.params["name"] == "projects/ml-prod/locations/us-central1/clusters/train/nodePools/a100mig"


def test_options_when_written_are_sent() -> None:
    config = config_of(
        gke_target(
            capacity=Capacity("spot"),
            disk=Disk(200, "pd-ssd"),
            image="COS_CONTAINERD",
            tags={"b": "2", "a": "1"},
            labels={"team": "ml"},
            protect=True,
        )
    )

    assert config["spot"] is True
    assert (config["diskSizeGb"], config["diskType"], config["imageType"]) == (200, "pd-ssd", "COS_CONTAINERD")
    assert config["resourceLabels"] == {
        "a": "1",
        "b": "2",
        "gpukube_owner": "ml-platform",
        "gpukube_place": FORM.encode("ml-prod/us-central1/train/a100mig"),
        "gpukube_pool": "a100mig",
        "gpukube_protect": "true",
        "gpukube_tags": FORM.record(["a", "b"]),
    }
    assert config["labels"] == {
        "team": "ml",
        "gpukube.io/owner": "ml-platform",
        "gpukube.io/pool": "a100mig",
        "gpukube.io/protect": "true",
    }


def test_native_when_written_is_merged_last() -> None:
    native = {
        "upgradeSettings": {"strategy": "SURGE"},
        "management": {"autoUpgrade": False},
        "config": {
            "gvnic": {"enabled": True},
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        },
    }
    target = gke_target(native=native)
    pool = pool_of(target)

    assert pool["upgradeSettings"] == {"maxSurge": 1, "strategy": "SURGE"}
    assert pool["management"] == {"autoRepair": True, "autoUpgrade": False}
    assert config_of(target)["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]


NOT_RESERVED = {"consumeReservationType": "NO_RESERVATION"}
FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)
AUTOSCALING = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
ASKED: dict[str, tuple[Target, dict[str, object]]] = {
    "reservation": (
        gke_target(zones=("us-central1-a",), capacity=reserved("reservation", "ours")),
        {
            "config.reservationAffinity": {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["ours"],
            },
            "management": {"autoRepair": True, "autoUpgrade": True},
            "upgradeSettings": {"maxSurge": 1},
            "queuedProvisioning": None,
        },
    ),
    "flex-start": (
        gke_target(nodes=FROM_ZERO, capacity=reserved("flexStart", run_s=3600)),
        {
            "config.flexStart": True,
            "config.maxRunDuration": "3600s",
            "config.reservationAffinity": NOT_RESERVED,
            "config.spot": None,
            "management": {"autoRepair": False, "autoUpgrade": True},
            "autoscaling": {**AUTOSCALING, "locationPolicy": "ANY"},
            "upgradeSettings": None,
            "queuedProvisioning": None,
        },
    ),
    "queued": (
        gke_target(nodes=FROM_ZERO, capacity=reserved("queued")),
        {
            "queuedProvisioning": {"enabled": True},
            "config.flexStart": None,
            "config.maxRunDuration": None,
            "config.reservationAffinity": NOT_RESERVED,
            "management": {"autoRepair": False, "autoUpgrade": True},
            "autoscaling": {**AUTOSCALING, "locationPolicy": "ANY"},
            "upgradeSettings": None,
        },
    ),
    "flex-start with queued provisioning": (
        gke_target(nodes=FROM_ZERO, capacity=reserved("flexStartQueued", run_s=3600)),
        {
            "queuedProvisioning": {"enabled": True},
            "config.flexStart": True,
            "config.maxRunDuration": "3600s",
            "config.reservationAffinity": NOT_RESERVED,
            "management": {"autoRepair": False, "autoUpgrade": True},
            "autoscaling": {**AUTOSCALING, "locationPolicy": "ANY"},
            "upgradeSettings": None,
        },
    ),
    "another policy than that of flex-start": (
        gke_target(
            nodes=FROM_ZERO,
            capacity=reserved("flexStart"),
            native={"autoscaling": {"locationPolicy": "BALANCED"}},
        ),
        {"autoscaling": {**AUTOSCALING, "locationPolicy": "BALANCED"}},
    ),
    "on-demand": (
        gke_target(nodes=FROM_ZERO),
        {
            "config.reservationAffinity": None,
            "config.flexStart": None,
            "queuedProvisioning": None,
            "version": None,
            "maxPodsConstraint": None,
            "autoscaling": AUTOSCALING,
            "upgradeSettings": {"maxSurge": 1},
        },
    ),
    "placed by a policy": (
        gke_target("a3-megagpu-8g", placement="near"), {"placementPolicy": {"type": "COMPACT", "policyName": "near"}},
    ),
    "placed by GKE's own policy": (
        gke_target("a3-megagpu-8g", placement="compact"), {"placementPolicy": {"type": "COMPACT"}},
    ),
    "secure boot beside the switch that is on by default": (
        gke_target(native={"config": {"shieldedInstanceConfig": {"enableSecureBoot": True}}}),
        {"config.shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True}},
    ),
    "integrity monitoring off": (
        gke_target(native={"config": {"shieldedInstanceConfig": {"enableIntegrityMonitoring": False}}}),
        {"config.shieldedInstanceConfig": {"enableIntegrityMonitoring": False}},
    ),
    "version": (gke_target(kubernetes_version="1.34"), {"version": "1.34"}),
    "pods": (gke_target(max_pods=32), {"maxPodsConstraint": {"maxPodsPerNode": "32"}}),
    "no surge": (gke_target(upgrade=Upgrade("0", "1")), {"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1}}),
    "unavailable too": (
        gke_target(upgrade=Upgrade(None, "2")), {"upgradeSettings": {"maxSurge": 1, "maxUnavailable": 2}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_field_when_asked_for_is_in_the_body_as_google_has_it(name: str) -> None:
    target, wanted = ASKED[name]
    pool = pool_of(target)
    config = cast("Mapping[str, object]", pool["config"])

    found = {path: (config if "." in path else pool).get(path.removeprefix("config.")) for path in wanted}
    assert found == wanted
    wire.CreateNodePoolRequest.from_json(json.dumps(desire(target).create.params))


@pytest.mark.parametrize(("asked", "sent"), [("", "DEFAULT"), ("default", "DEFAULT"), ("latest", "LATEST")])
def test_driver_version_when_asked_for_is_sent(asked: str, sent: str) -> None:
    target = gke_target(driver_version=asked)

    assert accelerator_of(target)["gpuDriverInstallationConfig"] == {"gpuDriverVersion": sent}
    assert desire(target).fields.get(DRIVER_VERSION) == (asked if sent == "LATEST" else None)


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("ours", "ours"),
        ("projects/lender/reservations/theirs", "projects/lender/reservations/theirs"),
        ("ours/reservationBlocks/b1", "projects/ml-prod/reservations/ours/reservationBlocks/b1"),
        ("projects/l/reservations/x/reservationBlocks/b", "projects/l/reservations/x/reservationBlocks/b"),
    ],
)
def test_reservation_when_a_block_is_asked_for_is_named_in_full(asked: str, sent: str) -> None:
    target = gke_target(zones=("us-central1-a",), capacity=reserved("reservation", asked))
    affinity = cast("Mapping[str, object]", config_of(target)["reservationAffinity"])

    assert affinity["values"] == [sent]
    assert desire(target).fields[FieldPath.parse("capacity.reserved.gke")] == f"reservation {sent}"


def test_queued_pool_when_translated_expects_the_taint_that_gke_adds() -> None:
    taint = Taint("cloud.google.com/gke-queued", "true", "NoSchedule")
    queued, flex = (gke_target(nodes=FROM_ZERO, capacity=reserved(form)) for form in ("queued", "flexStart"))

    assert taint in desire(queued).effective_taints
    assert taint not in desire(flex).effective_taints
    assert "taints" not in config_of(queued)


def test_requests_when_made_name_the_cluster_by_project_and_location() -> None:
    desired = desire(gke_target())
    deletion = PROVIDER.requests.delete(CLUSTER, make_observed(desired, name="old"))

    assert (desired.create.operation, desired.create.params["parent"]) == (
        CREATE,
        "projects/ml-prod/locations/us-central1/clusters/train",
    )
    assert (deletion.operation, deletion.params) == (
        DELETE,
        {"name": "projects/ml-prod/locations/us-central1/clusters/train/nodePools/old"},
    )
    assert PROVIDER.requests.recreate(desired, make_observed(desired, state="failed")) is None


def test_promise_when_the_pool_is_shared_goes_by_the_one_name_gke_has() -> None:
    shared = Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 3))
    desired = desire(gke_target("a2-megagpu-16g", sharing=shared, nodes=Nodes(1, 1, 1, autoscaled=False)))

    assert desired.promise.per_node == {"nvidia.com/gpu": 336}
    assert replace(desired.promise).total(2) == {"nvidia.com/gpu": 672}


def test_image_when_written_as_gcloud_does_then_is_sent_and_compared_as_gke_answers_it() -> None:
    target = gke_target(image="ubuntu_containerd")

    assert config_of(target)["imageType"] == "UBUNTU_CONTAINERD"
    assert desire(target).fields[IMAGE] == "UBUNTU_CONTAINERD"


def test_pools_of_an_autoscaled_family_have_label_and_taint_of_its_class_from_birth() -> None:
    key, scaled = "cloud.google.com/compute-class", Nodes(0, 0, 2, autoscaled=True)
    found = desire(gke_target(pool="h200", name="h200", family="h100", rank=1, nodes=scaled))
    config = cast("Mapping[str, Any]", found.create.params["nodePool"])["config"]
    assert config["labels"][key] == found.fields[FieldPath("labels", key)] == "h100"
    assert config["taints"] == [{"key": key, "value": "h100", "effect": "NO_SCHEDULE"}]
    assert Taint(key, "h100", "NoSchedule") in found.effective_taints
    for other in (
        gke_target(family="h100", nodes=Nodes(2, 2, 2, autoscaled=False)),
        gke_target(nodes=scaled),
    ):
        assert key not in desire(other).labels
        assert all(taint.key != key for taint in desire(other).effective_taints)
