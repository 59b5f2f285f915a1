"""Pools of GKE whose machines are not available: half an hour of attempts, ERROR, and machines that come later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox import daemon
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.faults import FaultBook
from gpukube_sandbox.gke.autoscaling import GkeGroups
from gpukube_sandbox.gke.making import GkeRequest, make_cluster
from gpukube_sandbox.gke.reservations import reservations_of
from gpukube_sandbox.gke.service import GkeService
from gpukube_sandbox.gke.steering import declare
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.kube.autoscaler.groups import Failure
from gpukube_sandbox.stock import Entry, Place, Stock
from sandbox_tests.gke.clients import gpu_pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.pools import Pool
    from sandbox_tests.gke.clients import Gke

ZONE = "us-central1-a"
CLUSTER = f"projects/ml-prod/locations/{ZONE}/clusters/train"
POOL = f"{CLUSTER}/nodePools/gpu"
MACHINE = "a2-highgpu-1g"
MINUTE_S = 60.0
SCALED = {"enabled": True, "max_node_count": 3}
NONE = {"consume_reservation_type": "NO_RESERVATION"}
RESERVED = {
    "consume_reservation_type": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["ours"],
}


class Bench:
    """One cluster on a clock turned by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.stock = Stock(self.clock)
        self.service = GkeService(self.clock, FaultBook(), self.stock)
        self.cluster: Cluster

    @property
    def pool(self) -> Pool:
        return self.cluster.pools["gpu"]

    @property
    def state(self) -> str:
        return str(self.pool.wire.status.name)

    @property
    def conditions(self) -> list[str]:
        return [condition.code.name for condition in self.pool.wire.conditions]

    def limit(self, *steps: tuple[float, int], kind: str = "*") -> None:
        """Limit the machines: seconds from now, and how many there are from then on."""
        self.stock.put(Entry(Place.of("gke", ZONE, MACHINE, kind), steps))

    @property
    def taken(self) -> object:
        (entry,) = self.stock.wire()
        return entry["taken"]

    def create(self, count: int = 1, *, scaled: bool = False, **config: Any) -> str:  # noqa: ANN401 - fields of any type
        """Begin a creation; gives the operation's name."""
        pool = gpu_pool("gpu", MACHINE, "nvidia-tesla-a100", 1, count, **config)
        pool["management"] = {"auto_upgrade": True, "auto_repair": "flex_start" not in config}
        pool["autoscaling"] = SCALED if scaled else {}
        request = wire.CreateNodePoolRequest(parent=CLUSTER, node_pool=pool)
        return str(self.service.create_node_pool(request).name)

    async def create_empty(self, *, scaled: bool = True, **config: Any) -> None:  # noqa: ANN401 - as above
        self.create(0, scaled=scaled, **config)
        await self.clock.advance(5 * MINUTE_S)
        assert self.state == "RUNNING"

    def resize(self, count: int) -> str:
        request = wire.SetNodePoolSizeRequest(name=POOL, node_count=count)
        return str(self.service.set_node_pool_size(request).name)

    def delete(self) -> str:
        return str(self.service.delete_node_pool(wire.DeleteNodePoolRequest(name=POOL)).name)

    def operation(self, name: str) -> wire.Operation:
        request = wire.GetOperationRequest(name=f"projects/ml-prod/locations/{ZONE}/operations/{name}")
        return self.service.get_operation(request)

    async def grow(self, count: int) -> tuple[Failure | None, float]:
        """Scale up as the autoscaler does; gives the failure, and how long it took."""
        groups = GkeGroups(self.cluster, self.clock, FaultBook(), self.service.quotas)
        (group,) = groups.listed()
        began, growth = self.clock.now(), asyncio.ensure_future(groups.grow(group.name, count))
        while not growth.done():
            await self.clock.advance(10)
        return growth.result(), self.clock.now() - began

    def in_use(self) -> str:
        (found,) = reservations_of("ml-prod", self.service.things, self.service.clusters, self.stock)[ZONE]
        return str(found["specificReservation"]["inUseCount"])  # type: ignore[index]  # JSON


def play(story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench()
        wanted = GkeRequest("ml-prod", ZONE, "train")
        bench.cluster = await make_cluster(bench.service, wanted, "https://kube", b"authority", None)
        await bench.clock.advance(MINUTE_S)
        try:
            await story(bench)
        finally:
            await bench.service.reset()
            await bench.cluster.kube.stop()

    asyncio.run(main())


def test_create_when_there_is_no_machine_then_35_minutes_and_error() -> None:
    async def story(bench: Bench) -> None:
        bench.limit((0, 0))
        name = bench.create(2)
        await bench.clock.advance(35 * MINUTE_S)
        assert (bench.operation(name).status.name, bench.state) == ("RUNNING", "PROVISIONING")
        with pytest.raises(GoogleError, match="incompatible operation") as refused:
            bench.delete()
        assert refused.value.status == 400
        await bench.clock.advance(MINUTE_S)
        ended = bench.operation(name)
        assert (ended.status.name, bench.state, bench.conditions) == ("DONE", "ERROR", ["GCE_STOCKOUT"])
        assert "Expected 2, running 0, transitioning 2. Current errors: [GCE_STOCKOUT]" in ended.error.message
        assert f"zones/{ZONE}' does not have enough resources" in bench.pool.wire.status_message

    play(story)


def test_create_when_machines_come_meanwhile_then_taken_at_the_next_attempt() -> None:
    async def story(bench: Bench) -> None:
        bench.limit((0, 0), (10 * MINUTE_S, 1))
        name = bench.create()
        await bench.clock.advance(12 * MINUTE_S)
        assert bench.pool.all_nodes() == []
        await bench.clock.advance(MINUTE_S)  # the attempt after 12 minutes and what comes before the first
        assert len(bench.pool.all_nodes()) == 1
        await bench.clock.advance(2 * MINUTE_S)
        assert (bench.operation(name).status.name, bench.state) == ("DONE", "RUNNING")

    play(story)


@pytest.mark.parametrize("count", [1, 2])
def test_error_when_machines_come_later_then_the_pool_recovers_by_itself(count: int) -> None:
    async def story(bench: Bench) -> None:
        bench.limit((0, count - 1))
        name = bench.create(count)
        await bench.clock.advance(40 * MINUTE_S)
        assert bench.state == ("RUNNING_WITH_ERROR" if count > 1 else "ERROR")
        assert f"Expected {count}, running {count - 1}" in bench.operation(name).error.message
        etag = bench.pool.wire.etag
        bench.limit((0, 1))
        await bench.clock.advance(6 * MINUTE_S)
        assert (bench.state, bench.conditions, len(bench.pool.all_nodes())) == ("RUNNING", [], count)
        assert (bench.pool.wire.status_message, bench.pool.wire.etag == etag) == ("", False)
        nodes = [node["metadata"]["name"] for node in await bench.cluster.kube.api.list("nodes")]
        assert set(bench.pool.all_nodes()) <= set(nodes)
        assert "GCE_STOCKOUT" in bench.operation(name).error.message  # what has ended stays so

    play(story)


@pytest.mark.parametrize("by", ["delete", "resize"])
def test_error_when_given_up_then_no_machine_comes(by: str) -> None:
    async def story(bench: Bench) -> None:
        bench.limit((0, 0))
        bench.create()
        await bench.clock.advance(40 * MINUTE_S)
        if by == "delete":
            bench.delete()
        else:
            bench.resize(0)
        await bench.clock.advance(2 * MINUTE_S)
        bench.limit((0, 5))
        await bench.clock.advance(20 * MINUTE_S)
        assert bench.taken == 0
        assert "gpu" not in bench.cluster.pools if by == "delete" else bench.state == "RUNNING"

    play(story)


def test_resize_when_there_is_no_machine_then_as_long_as_its_own_pace() -> None:
    async def story(bench: Bench) -> None:
        await bench.create_empty(scaled=False)
        bench.limit((0, 1))
        bench.service.pace.resize_stockout_s = 10 * MINUTE_S
        name = bench.resize(2)
        await bench.clock.advance(10 * MINUTE_S)
        assert (bench.operation(name).status.name, bench.state, bench.taken) == ("RUNNING", "RECONCILING", 1)
        await bench.clock.advance(2 * MINUTE_S)
        assert (bench.operation(name).status.name, bench.state) == ("DONE", "RUNNING_WITH_ERROR")
        assert "[GCE_STOCKOUT]" in bench.operation(name).error.message
        bench.resize(0)
        await bench.clock.advance(5 * MINUTE_S)
        assert (bench.state, bench.taken) == ("RUNNING", 0)

    play(story)


def test_upgrade_when_there_is_no_machine_for_the_surge_then_the_old_one_stays() -> None:
    async def story(bench: Bench) -> None:
        bench.create()
        await bench.clock.advance(10 * MINUTE_S)
        before = bench.pool.all_nodes()
        bench.limit((0, 0))
        image = wire.UpdateNodePoolRequest(name=POOL, image_type="UBUNTU_CONTAINERD")
        name = bench.service.update_node_pool(image).name
        await bench.clock.advance(40 * MINUTE_S)
        assert "[GCE_STOCKOUT]" in bench.operation(str(name)).error.message
        assert (bench.state, bench.pool.all_nodes()) == ("RUNNING_WITH_ERROR", before)

    play(story)


def test_kinds_when_only_one_is_limited_then_the_other_has_machines() -> None:
    async def story(bench: Bench) -> None:
        bench.limit((0, 0), kind="on-demand")
        bench.create(spot=True)
        await bench.clock.advance(10 * MINUTE_S)
        assert (bench.state, bench.taken) == ("RUNNING", 0)

    play(story)


def test_autoscaler_when_there_are_too_few_then_it_sees_at_once_and_no_operation_waits() -> None:
    async def story(bench: Bench) -> None:
        await bench.create_empty()
        bench.limit((0, 1))
        failure, took = await bench.grow(3)
        assert failure == Failure("GCE out of resources", 2, "machines")
        assert took <= 3 * MINUTE_S
        assert (bench.state, len(bench.pool.all_nodes()), bench.taken) == ("RUNNING", 1, 1)
        assert not any(operation.is_running for operation in bench.service.operations.values())

    play(story)


@pytest.mark.parametrize(("after_s", "came"), [(100.0, 1), (1000.0, 0)])
def test_flex_when_there_is_no_machine_then_waited_for_three_minutes(after_s: float, came: int) -> None:
    async def story(bench: Bench) -> None:
        await bench.create_empty(flex_start=True, reservation_affinity=NONE)
        bench.limit((0, 0), (after_s, 1), kind="flex")
        failure, took = await bench.grow(1)
        assert (failure is None, len(bench.pool.all_nodes())) == (bool(came), came)
        assert came or took >= 3 * MINUTE_S

    play(story)


def reserve(bench: Bench, **fields: object) -> None:
    ours = {"name": "ours", "zone": ZONE, "machineType": MACHINE, "count": 1, **fields}
    declare(bench.service, {"project": "ml-prod", "reservations": [ours]})


def test_reservation_when_used_then_no_stock_is_and_the_count_follows_the_machines() -> None:
    async def story(bench: Bench) -> None:
        reserve(bench, count=3, inUseByOthers=1)
        bench.limit((0, 0), kind="on-demand")
        bench.create(2, reservation_affinity=RESERVED)
        assert bench.in_use() == "1"
        await bench.clock.advance(10 * MINUTE_S)
        assert (bench.state, bench.taken, bench.in_use()) == ("RUNNING", 0, "3")
        bench.delete()
        await bench.clock.advance(5 * MINUTE_S)
        assert bench.in_use() == "1"

    play(story)


def test_reservation_when_full_then_refused_or_seen_by_the_autoscaler_with_its_own_error() -> None:
    async def story(bench: Bench) -> None:
        reserve(bench, count=2, inUseByOthers=1)
        with pytest.raises(GoogleError, match='"ours" is insufficient for node pool "gpu"') as refused:
            bench.create(2, reservation_affinity=RESERVED)
        assert refused.value.code == "RESOURCE_EXHAUSTED"
        await bench.create_empty(reservation_affinity=RESERVED)
        failure, _ = await bench.grow(2)
        assert failure is not None
        assert "Specified reservation 'ours' does not have available resources for the request." in failure.message
        assert (failure.missing, bench.in_use()) == (1, "2")

    play(story)


def test_reservation_when_the_stock_limits_it_then_fewer_are_assured_and_more_refused() -> None:
    async def story(bench: Bench) -> None:
        reserve(bench, count=3)
        bench.limit((0, 1), kind="reserved")
        (found,) = reservations_of("ml-prod", bench.service.things, bench.service.clusters, bench.stock)[ZONE]
        counts = found["specificReservation"]
        assert isinstance(counts, dict)
        assert (counts["count"], counts["assuredCount"]) == ("3", "1")
        with pytest.raises(GoogleError, match="short of 1 VM count"):
            bench.create(2, reservation_affinity=RESERVED)
        bench.create(1, reservation_affinity=RESERVED)
        await bench.clock.advance(5 * MINUTE_S)
        assert (bench.state, bench.taken, bench.in_use()) == ("RUNNING", 1, "1")
        bench.resize(1)  # needs no more than the pool has
        await bench.clock.advance(5 * MINUTE_S)
        with pytest.raises(GoogleError, match="short of 1 VM count"):
            bench.resize(2)

    play(story)


def test_reservation_when_not_ready_then_the_operation_tells_after_its_attempts() -> None:
    async def story(bench: Bench) -> None:
        reserve(bench, status="CREATING")
        name = bench.create(reservation_affinity=RESERVED)
        await bench.clock.advance(40 * MINUTE_S)
        error = bench.operation(name).error.message
        assert 'reservation with status: "CREATING", as it requires reservation to be in READY state.' in error
        assert (bench.state, "GCE_STOCKOUT" in error) == ("ERROR", False)

    play(story)


def test_create_when_seen_by_a_client_then_error_and_recovery(gke: Gke) -> None:
    daemon.set_stock(gke.info, "gke", 0, type=MACHINE)
    ended = gke.wait(gke.begin(gpu_pool("gpu", MACHINE, "nvidia-tesla-a100", 1)))
    assert "[GCE_STOCKOUT]" in ended.error.message
    assert gke.pool("gpu").status.name == "ERROR"
    daemon.clear_stock(gke.info)
    gke.devices("gpu", 1)
    assert gke.pool("gpu").status.name == "RUNNING"
