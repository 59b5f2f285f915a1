"""The life of a pool through the real SDK, by gRPC and by REST: created, read back, refused, tainted, deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest
import yaml

from gpukube.core.diff import diff_fields
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Disk, Nodes, Operation, Settings, Taint, Upgrade
from gpukube.errors import AccessError, CapacityError, CloudError, Conflict, GpukubeError, SpecError
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.live.client import connect_cluster
from gpukube_sandbox import daemon
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire, gke_target, reserved

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Desired, Observed, Progress, Target
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Connect = Callable[..., GkeCloud]
    Follow = Callable[[GkeCloud, Operation], Progress]

pytestmark = pytest.mark.turns(2)  # one of the two transports

A, B, C = (f"us-central1-{letter}" for letter in "abc")
FROM_ZERO = Nodes(0, 0, 3, autoscaled=True)
CREATE = {"service": "gke", "method": "POST", "path": "/nodePools"}


def find(cloud: GkeCloud, name: str = "a100mig") -> Observed:
    (found,) = [pool for pool in cloud.pools() if pool.name == name]
    return found


def create(cloud: GkeCloud, target: Target, follow: Follow) -> tuple[Desired, Progress]:
    desired = cloud.complete(desire(target))
    return desired, follow(cloud, cloud.send(desired.create))


def code_of(error: GpukubeError | None) -> str:
    assert error is not None
    return error.diagnostics[0].code


TARGETS = {
    "MIG, a zone left open": gke_target(sharing=Sharing(MigCut("1g.5gb", "single"))),
    "MIG and time-sharing": gke_target(
        "a2-megagpu-16g", sharing=Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 3))
    ),
    "time-sharing in two zones": gke_target(
        "g2-standard-8",
        zones=(B, A),
        nodes=Nodes(4, 4, 4, autoscaled=False),
        sharing=Sharing(None, Slicing("time-slicing", 4)),
    ),
    "MPS": gke_target("g2-standard-12", sharing=Sharing(None, Slicing("mps", 8)), disk=Disk(200, "pd-ssd")),
    "T4 on N1, Spot from zero": gke_target(
        "n1-standard-8", ("T4", 2), capacity=Capacity("spot"), nodes=Nodes(0, 0, 3, autoscaled=True)
    ),
    "autoscaled in three zones": gke_target("g2-standard-8", zones=(A, B, C), nodes=Nodes(3, 0, 6, autoscaled=True)),
    "taints, labels, tags": gke_target(
        taints=(GPU_TAINT, Taint("dedicated", "ml", "NoSchedule")),
        labels={"team": "ml"},
        tags={"env": "dev"},
        protect=True,
    ),
    "no nodes": gke_target(nodes=Nodes(0, 0, 0, autoscaled=False)),
    "another plugin": gke_target(plugin_owner="none"),
    "arm64": gke_target(
        "a4x-highgpu-4g", zones=(A,), capacity=reserved("reservation", "ours"), upgrade=Upgrade("0", "1")
    ),
    "Ubuntu": gke_target(image="UBUNTU_CONTAINERD"),
    "native": gke_target(
        native={
            "upgradeSettings": {"strategy": "BLUE_GREEN"},
            "config": {
                "gvnic": {"enabled": True},
                "tags": ["gpu"],
                "reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
            },
        }
    ),
    "reservation": gke_target(zones=(A,), capacity=reserved("reservation", "ours"), upgrade=Upgrade("0", "1")),
    "flex-start": gke_target(nodes=FROM_ZERO, capacity=reserved("flexStart", run_s=3600)),
    "queued": gke_target(nodes=FROM_ZERO, capacity=reserved("queued")),
    "flex-start, queued": gke_target(nodes=FROM_ZERO, capacity=reserved("flexStartQueued", run_s=3600)),
    "minor version, pods, driver": gke_target(kubernetes_version="1.33", max_pods=32, driver_version="latest"),
    "the cluster's minor version": gke_target(kubernetes_version="1.34"),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_pool_when_created_settles_and_has_no_differences(
    target: Target, sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow
) -> None:
    daemon.declare(sandbox, "gke", request=dict(desire(target).create.params))
    desired, progress = create(cloud, target, follow)

    assert progress.done, progress
    observed = find(cloud)
    assert diff_fields(desired.fields, observed.fields) == ()
    assert observed.state == "ready"
    assert PROVIDER.requests.follow_up(desired, observed) is None


@pytest.mark.parametrize(("zone", "message"), [(B, "no such reservation"), (A, "too few machines left")])
def test_reservation_when_it_is_elsewhere_or_used_up_is_explained(
    sandbox: SandboxInfo, connect: Connect, zone: str, message: str
) -> None:
    ours = {"zone": A, "machineType": "a2-highgpu-1g", "count": 1}
    daemon.add_gke_cluster(sandbox, "ml-prod", "us-central1", "reserving", options={"reservations": {"ours": ours}})
    cluster = replace(CLUSTER, name="reserving")
    two = Nodes(2, 2, 2, autoscaled=False)
    target = gke_target(cluster=cluster, zones=(zone,), nodes=two, capacity=reserved("reservation", "ours"))

    with pytest.raises(CapacityError, match=message) as caught:
        connect(cluster).send(desire(target).create)
    assert code_of(caught.value) == "reservation"


@pytest.mark.parametrize(
    "changes", [{"kubernetes_version": "1.35"}, {"machine": require_machine("gke", "g4-standard-6")}]
)
def test_version_when_the_control_plane_is_older_stops_before_any_call(
    cloud: GkeCloud, changes: dict[str, object]
) -> None:
    with pytest.raises(SpecError) as caught:
        cloud.complete(desire(gke_target(**changes)))
    assert code_of(caught.value) == "kubernetes-version"
    assert [pool.name for pool in cloud.pools()] == ["default-pool"]


def test_taint_when_the_cluster_has_only_gpus_is_added_by_an_update(
    sandbox: SandboxInfo, connect: Connect, follow: Follow
) -> None:
    options = {"cpuPool": False}
    daemon.add_gke_cluster(sandbox, "ml-prod", "us-central1-a", "gpus", options=options)
    cluster = replace(CLUSTER, name="gpus", identity={"project": "ml-prod", "location": "us-central1-a"})
    cloud = connect(cluster)
    own = Taint("dedicated", "ml", "NoSchedule")
    desired, _ = create(cloud, gke_target(cluster=cluster, taints=(GPU_TAINT, own)), follow)
    assert find(cloud).effective_taints == (own,)

    request = PROVIDER.requests.follow_up(desired, find(cloud))
    assert request is not None
    assert follow(cloud, cloud.send(request)).done
    assert set(find(cloud).effective_taints) == {own, GPU_TAINT}
    assert PROVIDER.requests.follow_up(desired, find(cloud)) is None
    assert diff_fields(desired.fields, find(cloud).fields) == ()
    with pytest.raises(Conflict) as caught:
        cloud.send(request)
    assert code_of(caught.value) == "changed"


def test_taint_when_it_is_not_wanted_is_no_drift_either_way(cloud: GkeCloud, follow: Follow) -> None:
    desired, _ = create(cloud, gke_target(taints=(), gpu_taint=False), follow)

    assert GPU_TAINT in find(cloud).effective_taints
    assert diff_fields(desired.fields, find(cloud).fields) == ()
    assert PROVIDER.requests.follow_up(desired, find(cloud)) is None


def test_stockout_when_no_node_came_is_made_again_after_a_deletion(
    sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow
) -> None:
    daemon.configure(sandbox, speed=100000.0)
    daemon.add_fault(sandbox, "operation", code="GCE_STOCKOUT", pool="a100mig", kind="CREATE")
    desired, progress = create(cloud, gke_target(), follow)

    assert isinstance(progress.error, CapacityError)
    assert "zones" in progress.error.diagnostics[0].fix
    plan = plan_pool(PROVIDER, desired, cloud.pools())
    assert (plan.action, [request.operation for request in plan.requests]) == (
        "create",
        ["delete_node_pool", "create_node_pool"],
    )
    for request in plan.requests:
        assert follow(cloud, cloud.send(request)).done
    assert plan_pool(PROVIDER, desired, cloud.pools()).action == "no-op"


def test_stockout_when_some_nodes_came_is_told_and_left_alone(
    sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow
) -> None:
    daemon.configure(sandbox, speed=100000.0)
    daemon.add_fault(sandbox, "operation", code="GCE_STOCKOUT", pool="a100mig", after_nodes=1)
    desired, progress = create(cloud, gke_target(nodes=Nodes(2, 2, 2, autoscaled=False)), follow)

    assert isinstance(progress.error, CapacityError)
    assert find(cloud).status == "RUNNING_WITH_ERROR"
    assert plan_pool(PROVIDER, desired, cloud.pools()).action == "no-op"
    assert isinstance(cloud.poll(Operation("a100mig", "create")).error, CapacityError)


def test_six_pools_when_sent_at_once_are_refused_as_busy_beyond_five(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.configure(sandbox, speed=0.01)
    refused = []
    for number in range(6):
        desired = cloud.complete(desire(gke_target("g2-standard-8", name=f"p{number}", pool=f"p{number}")))
        try:
            cloud.send(desired.create)
        except Conflict as error:
            refused.append(code_of(error))
    assert refused == ["busy"]


def test_pool_when_it_is_being_made_is_busy_for_a_deletion(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.configure(sandbox, speed=0.01)
    cloud.send(cloud.complete(desire(gke_target())).create)

    with pytest.raises(Conflict) as caught:
        cloud.send(PROVIDER.requests.delete(CLUSTER, find(cloud)))
    assert code_of(caught.value) == "busy"


def test_creation_when_its_answer_is_lost_is_looked_for_and_not_sent_again(
    sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow
) -> None:
    desired = cloud.complete(desire(gke_target()))
    daemon.add_fault(sandbox, "drop-after", **CREATE)
    mark = len(daemon.requests_since(sandbox))
    with pytest.raises(Conflict) as caught:
        cloud.send(desired.create)

    assert code_of(caught.value) == "exists"
    assert [r["method"] for r in daemon.requests_since(sandbox, mark) if r["service"] == "gke"] == ["POST", "GET"]
    assert plan_pool(PROVIDER, desired, cloud.pools()).action == "no-op"
    assert follow(cloud, Operation("a100mig", "create")).done


@pytest.mark.parametrize("fault", [{"action": "drop-before"}, {"action": "status", "status": 500}], ids=["drop", "500"])
def test_creation_when_it_did_not_arrive_is_sent_again(
    sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow, fault: dict[str, object]
) -> None:
    desired = cloud.complete(desire(gke_target()))
    daemon.add_fault(sandbox, **fault, **CREATE)  # type: ignore[arg-type]  # parts of a fault
    operation = cloud.send(desired.create)

    assert follow(cloud, operation).done
    assert plan_pool(PROVIDER, desired, cloud.pools()).action == "no-op"


def test_read_when_the_service_fails_once_is_repeated(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.add_fault(sandbox, "status", service="gke", status=500)

    assert cloud.identify().ready


@pytest.mark.parametrize(
    "strike",
    [{}, {"method": "GET", "path": "/nodePools"}, CREATE, {"path": "/operations"}],
    ids=["first", "list", "create", "poll"],
)
def test_call_when_its_token_ran_out_then_made_once_more(
    sandbox: SandboxInfo, cloud: GkeCloud, follow: Follow, strike: dict[str, str]
) -> None:
    daemon.add_fault(sandbox, "status", status=401, code="UNAUTHENTICATED", **{"service": "gke", **strike})

    assert cloud.identify().ready
    assert cloud.pools()
    assert create(cloud, gke_target(), follow)[1].done
    assert [fault["struck"] for fault in daemon.list_faults(sandbox)] == [1]


def test_call_when_every_token_is_refused_then_an_access_error(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.add_fault(sandbox, "status", service="gke", status=401, times=0)

    with pytest.raises(AccessError) as caught:
        cloud.identify()
    assert code_of(caught.value) == "access"


def test_zone_when_it_lacks_the_gpu_is_told_with_the_remedy(
    sandbox: SandboxInfo, connect: Connect, follow: Follow
) -> None:
    options = {"acceleratorZones": {"nvidia-tesla-a100": [C]}}
    daemon.add_gke_cluster(sandbox, "ml-prod", "us-central1", "scarce", options=options)
    cluster = replace(CLUSTER, name="scarce")
    cloud = connect(cluster)
    with pytest.raises(CapacityError) as caught:
        create(cloud, gke_target(cluster=cluster), follow)
    assert code_of(caught.value) == "zone-not-offered"

    create(cloud, gke_target(cluster=cluster, zones=(C,)), follow)
    second, progress = create(connect(cluster), gke_target(cluster=cluster, name="p2", pool="p2"), follow)
    assert progress.done
    assert second.create.params["nodePool"]["locations"] == [C]  # type: ignore[index]  # a mapping


def test_cluster_when_it_is_missing_or_autopilot_is_told(sandbox: SandboxInfo, connect: Connect) -> None:
    daemon.add_gke_cluster(sandbox, "ml-prod", "us-central1", "auto", options={"autopilot": True})
    for name, code in (("auto", "autopilot"), ("nowhere", "no-cluster")):
        with pytest.raises(CloudError) as caught:
            connect(replace(CLUSTER, name=name)).identify()
        assert code_of(caught.value) == code


def test_kube_access_when_asked_reaches_the_cluster(cloud: GkeCloud) -> None:
    document = yaml.safe_load(cloud.kube_access().kubeconfig)
    (cluster,), (user,) = document["clusters"], document["users"]
    server, token = cluster["cluster"]["server"], user["user"]["token"]

    assert server.startswith("https://127.0.0.1:")
    assert cluster["cluster"]["certificate-authority-data"]
    answer = httpx.get(f"{server}/api/v1/nodes", headers={"Authorization": f"Bearer {token}"}, verify=False, timeout=60)  # noqa: S501 - the CA is checked by the engine's client
    assert (answer.status_code, answer.json()["kind"]) == (200, "NodeList")


def test_credentials_when_emulated_are_neither_read_nor_sent(
    sandbox: SandboxInfo, cloud: GkeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    monkeypatch.setenv("HTTP_PROXY", "http://10.255.255.1:3128")
    monkeypatch.setenv("http_proxy", "http://10.255.255.1:3128")

    assert cloud.identify().ready
    assert cloud.pools()
    assert "token" in cloud.kube_access().kubeconfig


def test_endpoint_when_nothing_listens_is_told_soon(transport: str, sandbox: SandboxInfo) -> None:
    key = "gke-grpc" if transport == "grpc" else "gke"
    address = "127.0.0.1:1" if transport == "grpc" else "http://127.0.0.1:1"
    cloud = connect_cluster(CLUSTER, Settings({key: address}, sandbox=True, request_timeout_s=60.0))
    with pytest.raises(CloudError) as caught:
        cloud.identify()
    cloud.close()

    assert code_of(caught.value) == "unreachable"


def test_permission_when_lacking_is_an_access_error(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.add_fault(sandbox, "status", service="gke", status=403)

    with pytest.raises(AccessError) as caught:
        cloud.identify()
    assert code_of(caught.value) == "permission"
