"""What GKE refuses of how machines are bought and placed, and what it makes of what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, ZONE, gpu_pool, t4_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.gke.clients import Gke, Json

pytestmark = pytest.mark.turns(2)  # one of the two transports

A100, H100 = "nvidia-tesla-a100", "nvidia-h100-80gb"
NONE = {"consume_reservation_type": "NO_RESERVATION"}
KEY = "compute.googleapis.com/reservation-name"
SCALED = {"enabled": True, "max_node_count": 4}
KEPT = {"auto_upgrade": True}
QUEUED: Json = {"queued_provisioning": {"enabled": True}, "autoscaling": SCALED}
FLEX: Json = {"autoscaling": SCALED, "management": KEPT}
COMPACT: Json = {"placement_policy": {"type_": "COMPACT"}}


def flex(count: int = 0, **config: object) -> Json:
    return t4_pool("p", count, **{"flex_start": True, "reservation_affinity": NONE, **config}) | FLEX


def queued(count: int = 0, **config: object) -> Json:
    return t4_pool("p", count, **{"reservation_affinity": NONE, **config}) | QUEUED


def a100(count: int = 1, **config: object) -> Json:
    return gpu_pool("p", "a2-highgpu-1g", A100, 1, count, **config)


def reserved(*values: str) -> Json:
    return {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": KEY, "values": list(values)}


def disks(ephemeral: int = 0, block: int = 0) -> Json:
    return {
        "ephemeral_storage_local_ssd_config": {"local_ssd_count": ephemeral},
        "local_nvme_ssd_block_config": {"local_ssd_count": block},
    }


INVALID: dict[str, tuple[Json, str]] = {
    "queue that takes from reservations": (
        queued(reservation_affinity={}), "Queued_provisioning requires reservation affinity to be set to none",
    ),
    "queue of Spot": (queued(spot=True), "Queued_provisioning does not work with Spot VMs."),
    "queue of a fixed size": (
        queued() | {"autoscaling": {}}, "Queued_provisioning requires autoscaling from zero nodes.",
    ),
    "queue from one": (
        queued() | {"autoscaling": SCALED | {"min_node_count": 1}},
        "Queued_provisioning requires autoscaling from zero nodes.",
    ),
    "queue with a node": (queued(1), "Queued_provisioning requires autoscaling from zero nodes."),
    "flex start of a fixed size": (
        flex() | {"autoscaling": {}}, "Flex start requires autoscaling and does not work with Spot VMs.",
    ),
    "flex start of Spot": (flex(spot=True), "Flex start requires autoscaling and does not work with Spot VMs."),
    "flex start that takes from reservations": (
        flex(reservation_affinity={}), "Flex start requires reservation affinity to be set to none.",
    ),
    "flex start with repair": (
        flex() | {"management": KEPT | {"auto_repair": True}}, "Flex start requires auto_repair to be false.",
    ),
    "flex start of eight days": (
        flex(max_run_duration={"seconds": 8 * 86400}), "Max_run_duration must not be longer than 7 days.",
    ),
    "flex start at the edge": (
        gpu_pool("p", "a3-edgegpu-8g", H100, 8, flex_start=True, reservation_affinity=NONE)
        | FLEX
        | {"initial_node_count": 0},
        "Machine type a3-edgegpu-8g is not available with Dynamic Workload Scheduler.",
    ),
    "short-lived upgrades of others": (
        t4_pool("p") | {"upgrade_settings": {"strategy": "SHORT_LIVED"}},
        "Upgrade strategy SHORT_LIVED is for queued provisioning and flex start only.",
    ),
    "a reservation without a name": (
        t4_pool("p", reservation_affinity={"consume_reservation_type": "SPECIFIC_RESERVATION"}),
        "Reservation affinity SPECIFIC_RESERVATION requires key and values.",
    ),
    "a name without a reservation": (
        t4_pool("p", reservation_affinity={"consume_reservation_type": "ANY_RESERVATION", "key": KEY}),
        "Reservation affinity key and values are for SPECIFIC_RESERVATION only.",
    ),
    "Spot of a reservation": (
        t4_pool("p", spot=True, reservation_affinity=reserved("ours")), "Spot VMs cannot consume reservations.",
    ),
    "compact in two zones": (
        a100() | COMPACT | {"locations": ["us-central1-a", "us-central1-b"]},
        "Compact placement is only available for node pools in a single zone.",
    ),
    "compact and blue-green": (
        a100() | COMPACT | {"upgrade_settings": {"strategy": "BLUE_GREEN"}},
        "Compact placement is not supported with blue-green upgrades.",
    ),
    "compact and queued": (
        queued() | COMPACT, "Compact placement is not supported with queued provisioning.",
    ),
    "compact and flex start": (
        flex() | COMPACT, "Compact placement with flex start is not supported for n1-standard-4.",
    ),
    "compact and many": (a100(151) | COMPACT, "Compact placement of a2-highgpu-1g supports at most 150 nodes."),
    "compact and many at most": (
        a100(0) | COMPACT | {"autoscaling": {"enabled": True, "max_node_count": 151}},
        "Compact placement of a2-highgpu-1g supports at most 150 nodes.",
    ),
    "disks twice": (
        a100(1, **disks(1, 1)),
        "Only one of ephemeral_storage_local_ssd_config and local_nvme_ssd_block_config can have disks.",
    ),
    "disks that the machine has not": (
        gpu_pool("p", "a3-highgpu-8g", H100, 8, 1, **disks(4)),
        "Machine type a3-highgpu-8g does not support 4 local SSDs.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_create_when_a_rule_is_broken_then_400_with_its_text(gke: Gke, case: tuple[Json, str]) -> None:
    pool, message = case
    assert gke.refused(lambda: gke.begin(pool)) == ("INVALID_ARGUMENT", message)


@pytest.mark.parametrize(("pool", "start"), [(flex(), "Flex start requires GKE"), (queued(), "Queued_provisioning")])
def test_create_when_the_version_is_too_old_then_400(
    sandbox: SandboxInfo, any_client: Gke, pool: Json, start: str
) -> None:
    daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME, kubernetes_version="1.27.9-gke.1")
    code, text = any_client.refused(lambda: any_client.begin(pool))
    assert (code, text.startswith(start)) == ("INVALID_ARGUMENT", True)


@pytest.mark.parametrize("pool", [flex(), queued()])
def test_create_when_nodes_are_short_lived_then_so_are_their_upgrades(gke: Gke, pool: Json) -> None:
    assert gke.create(pool).upgrade_settings.strategy == wire.NodePoolUpdateStrategy.SHORT_LIVED


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("1.34", "1.34.1-gke.1829001"),
        ("1.34.1", "1.34.1-gke.1829001"),
        ("1.33", "1.33.5-gke.1080000"),
        ("1.33.7", "1.33.7-gke.1080000"),
        ("1.33.4-gke.7", "1.33.4-gke.7"),
    ],
)
def test_create_when_the_version_is_the_start_of_one_then_a_whole_one(gke: Gke, asked: str, given: str) -> None:
    assert gke.create(t4_pool("p", 0) | {"version": asked}).version == given


def test_management_when_nodes_are_flexible_then_no_repair(gke: Gke) -> None:
    gke.create(flex())
    request = {"name": f"{CLUSTER}/nodePools/p", "management": KEPT | {"auto_repair": True}}
    answer = gke.refused(lambda: gke.sdk.set_node_pool_management(request=request))
    assert answer == ("INVALID_ARGUMENT", "Flex start requires auto_repair to be false.")


OURS = {"ours": {"zone": "us-central1-a", "machineType": "a2-highgpu-1g", "count": 2}}


@pytest.fixture
def reserving(with_cluster: Callable[..., Gke]) -> Gke:
    return with_cluster(reservations=OURS)


@pytest.mark.parametrize(
    "name", ["ours", "projects/p/reservations/ours", "projects/p/reservations/ours/reservationBlocks/b"]
)
def test_create_when_the_reservation_has_room_then_made(reserving: Gke, name: str) -> None:
    assert reserving.create(a100(2, reservation_affinity=reserved(name))).initial_node_count == 2


@pytest.mark.parametrize(
    ("name", "zone"),
    [("theirs", "us-central1-a"), ("ours", "us-central1-b"), ("ours/reservationBlocks/b", "us-central1-a")],
)
def test_create_when_the_reservation_is_not_there_then_404(reserving: Gke, name: str, zone: str) -> None:
    pool = a100(reservation_affinity=reserved(name)) | {"locations": [zone]}
    says = f'Google Compute Engine: reservation "{name}" not found for node pool "p" at zone "{zone}".'
    assert reserving.refused(lambda: reserving.begin(pool)) == ("NOT_FOUND", says)


def test_create_when_the_reservation_is_too_small_or_of_other_machines_then_429(reserving: Gke) -> None:
    three = a100(3, reservation_affinity=reserved("ours"))
    other = gpu_pool("p", "a2-highgpu-2g", A100, 2, reservation_affinity=reserved("ours"))
    code, text = reserving.refused(lambda: reserving.begin(three))
    assert code == "RESOURCE_EXHAUSTED"
    assert text == (
        'Reservation does not have enough resources for the request: specific reservation "ours" is insufficient for '
        'node pool "p" at zone "us-central1-a": required 3 and short of 1 VM count of machine type a2-highgpu-1g.'
    )
    assert "short of 1 VM count of machine type a2-highgpu-2g" in reserving.refused(lambda: reserving.begin(other))[1]


def test_size_when_the_reservation_is_used_up_then_429(reserving: Gke) -> None:
    reserving.create(a100(1, reservation_affinity=reserved("ours")))
    reserving.create(a100(1, reservation_affinity=reserved("ours")) | {"name": "q"})
    size = {"name": f"{CLUSTER}/nodePools/p", "node_count": 2}
    assert reserving.refused(lambda: reserving.sdk.set_node_pool_size(request=size))[0] == "RESOURCE_EXHAUSTED"
