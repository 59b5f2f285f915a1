"""The life of a pool through the real SDK: created, read back, refused, repaired, deleted; faults on the way."""

from __future__ import annotations

import base64
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import httpx
import pytest
import yaml

from gpukube.core.diff import diff_fields
from gpukube.core.values import (
    Capacity,
    Disk,
    Nodes,
    Operation,
    Ownership,
    Promise,
    Request,
    Reservation,
    Settings,
    Taint,
    Upgrade,
)
from gpukube.errors import AccessError, CapacityError, CloudError, Conflict, GpukubeError, QuotaError, SpecError
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_aks import AksProvider
from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.pool.members import POOL_MEMBERS
from gpukube_aks.pool.translate import CREATE
from gpukube_sandbox import daemon
from tests.builders import CLUSTER, SUBSCRIPTION, make_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Desired, Observed, Progress, Target
    from gpukube_aks.live.client import AksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Connect = Callable[..., AksCloud]
    Follow = Callable[[AksCloud, Operation], Progress]

T4 = "Standard_NC4as_T4_v3"
PROVIDER = AksProvider()
GROUP = Reservation(
    "capacityReservationGroup",
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups/t4",
)
MIG = make_target(sharing=Sharing(MigCut("1g.5gb", "single")))
PUT = {"service": "arm", "method": "PUT", "path": "agentPools/a100mig"}
DELETE = {"service": "arm", "method": "DELETE", "path": "agentPools/a100mig"}
LIST = {"service": "arm", "method": "GET", "path": r"agentPools\?"}
OPERATION = {"service": "arm", "method": "GET", "path": "/operations/"}


def desire(target: Target) -> Desired:
    ownership = Ownership("cloud", "chart", "c-1", {"gpukube.io/advertiser": "chart"}, "")
    return PROVIDER.desired(target, ownership, Promise({}, target.nodes))


def find(cloud: AksCloud, name: str = "a100mig") -> Observed:
    (found,) = [pool for pool in cloud.pools() if pool.name == name]
    return found


def code_of(error: GpukubeError | None) -> str:
    assert error is not None
    return error.diagnostics[0].code


TARGETS = {
    "MIG": MIG,
    "Spot, autoscaled": make_target(T4, capacity=Capacity("spot"), nodes=Nodes(1, 1, 3, autoscaled=True)),
    "Spot with a price": make_target(T4, capacity=Capacity("spot", 0.25)),
    "zones, disk, tags": make_target(T4, zones=("2", "1"), disk=Disk(256, "Managed"), tags={"cost": "1"}),
    "no nodes, own taint": make_target(
        T4, nodes=Nodes(0, 0, 0, autoscaled=False), taints=(Taint("sku", "gpu", "NoSchedule"),), gpu_taint=False
    ),
    "from zero": make_target(T4, nodes=Nodes(0, 0, 2, autoscaled=True)),
    "protected": make_target(T4, protect=True, labels={"team": "vision", "node.kubernetes.io/x": ""}),
    "managed by AKS": make_target(T4, plugin_owner="cloud"),
    "reserved, newer nodes, few pods": make_target(
        T4,
        capacity=Capacity("reserved", reservation=GROUP),
        image="AzureLinux",
        kubernetes_version="1.34",
        max_pods=60,
        upgrade=Upgrade("0", "1"),
    ),
    "settings": make_target(
        T4,
        kubelet={
            "cpuManagerPolicy": "static",
            "containerLogMaxSize": "1Gi",
            "cpuCFSQuotaPeriod": "50ms",
            "allowedUnsafeSysctls": ("net.core.somaxconn",),
        },
        sysctls={"vm.max_map_count": "262144", "net.ipv4.tcp_tw_reuse": "0"},
    ),
    "native": make_target(
        T4,
        native={
            "upgradeSettings": {"drainTimeoutInMinutes": 60},
            "messageOfTheDay": "aGk=",
            "networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 90, "protocol": "TCP"}]},
            "localDNSProfile": {"mode": "Required", "kubeDNSOverrides": {"cluster.local": {"protocol": "ForceTCP"}}},
            "artifactStreamingProfile": {"enabled": True},
        },
    ),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_pool_when_created_settles_and_has_no_differences(target: Target, cloud: AksCloud, follow: Follow) -> None:
    assert not [found for found in PROVIDER.check(target) if found.severity == "error"]
    desired = desire(target)
    progress = follow(cloud, cloud.send(desired.create))
    observed = find(cloud)

    assert (progress.done, progress.error) == (True, None)
    assert (observed.state, observed.owner, observed.pool) == ("ready", "ml-platform", "a100mig")
    assert diff_fields(desired.fields, observed.fields) == ()
    assert set(observed.effective_taints) == set(desired.effective_taints)
    assert observed.protected == target.protect
    assert observed.etag


def test_cluster_when_identified_tells_its_facts(cloud: AksCloud) -> None:
    facts = cloud.identify()

    assert (facts.location, facts.kubernetes_version, facts.ready) == ("eastus", "1.34.2", True)


@pytest.mark.parametrize("version", ["1.35", "1.34.3", "1.31.9"])
def test_version_when_it_does_not_go_with_the_cluster_is_refused_by_us_as_by_aks(version: str, cloud: AksCloud) -> None:
    desired = desire(make_target(T4, kubernetes_version=version))
    with pytest.raises(SpecError) as ours:
        cloud.complete(desired)
    with pytest.raises(CloudError) as theirs:
        cloud.send(desired.create)

    assert code_of(ours.value) == "version-skew"
    assert "NodePoolMcVersionIncompatible" in str(theirs.value)


def test_reservation_when_its_group_is_empty_is_a_difference_of_the_pool_that_aks_makes(
    cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    """AKS makes it all the same, from machines that nobody reserved (docs: aks/use-capacity-reservation-groups)."""
    daemon.configure(sandbox, emptyGroups=[GROUP.id.upper()])
    desired = desire(make_target(T4, capacity=Capacity("reserved", reservation=GROUP)))
    assert follow(cloud, cloud.send(desired.create)).done
    changes = diff_fields(desired.fields, find(cloud).fields)

    assert {str(change.field) for change in changes} == {
        "capacity.type",
        "capacity.reserved.aks.capacityReservationGroup",
    }
    assert {PROVIDER.update_row(change).kind for change in changes} == {"replace"}


@pytest.mark.parametrize(
    ("options", "target", "code"),
    [
        ({"nodeProvisioningMode": "Auto"}, {"nodes": Nodes(1, 1, 3, autoscaled=True)}, "node-auto-provisioning"),
        ({"identity": "SystemAssigned"}, {"capacity": Capacity("reserved", reservation=GROUP)}, "reservation-identity"),
    ],
    ids=["auto-provisioning", "identity"],
)
def test_pool_when_its_cluster_excludes_it_is_refused_by_us_as_by_aks(
    options: dict[str, str], target: dict[str, object], code: str, connect: Connect, sandbox: SandboxInfo
) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, "ml", "other", options=options)
    cloud = connect(replace(CLUSTER, key="other", name="other"))
    desired = desire(make_target(T4, cluster=replace(CLUSTER, key="other", name="other"), **target))
    with pytest.raises(SpecError) as ours:
        cloud.complete(desired)
    with pytest.raises(CloudError):
        cloud.send(desired.create)

    assert code_of(ours.value) == code


@pytest.mark.parametrize(
    "fields",
    [
        {"placement": LIMITS["proximityPlacementGroupID"].example},
        {"native": {"hostGroupID": LIMITS["hostGroupID"].example}},
        {"native": {"enableUltraSSD": True}},
    ],
    ids=str,
)
def test_reservation_when_something_excludes_it_is_refused_by_us_as_by_azure(
    fields: dict[str, object], cloud: AksCloud
) -> None:
    target = make_target(T4, capacity=Capacity("reserved", reservation=GROUP), **fields)
    with pytest.raises(CloudError) as caught:
        cloud.send(desire(target).create)

    assert "aks-reservation-excludes" in {found.code for found in PROVIDER.check(target)}
    assert "BadRequest" in str(caught.value)


@pytest.mark.parametrize("priority", ["Regular", "Spot"])
@pytest.mark.parametrize("size", [T4, "Standard_ND96asr_v4", "Standard_NV36ads_A10_v5"])
def test_members_when_nobody_chose_any_are_those_of_every_pool(
    size: str, priority: str, cloud: AksCloud, follow: Follow
) -> None:
    """The table of what AKS fills in agrees with what it reads back."""
    properties = {"count": 1, "vmSize": size, "scaleSetPriority": priority}
    params = {"resource_group": "ml", "cluster": "train", "pool": "plain", "body": {"properties": properties}}
    follow(cloud, cloud.send(Request("aks", CREATE, params)))
    found = POOL_MEMBERS.chosen(next(pool for pool in cloud.pools() if pool.name == "plain"))

    of_every_pool = {"nodes.count": 1, "instanceType": size}
    spot = {"capacity.type": "Spot"} if priority == "Spot" else {}
    assert {one.path: one.value for one in found} == {**of_every_pool, **spot}


def test_system_pool_when_listed_is_nobodys(cloud: AksCloud) -> None:
    (pool,) = cloud.pools()

    assert (pool.name, pool.owner, pool.state) == ("nodepool1", "", "ready")


def test_create_when_repeated_is_a_conflict_and_makes_one_pool(cloud: AksCloud, follow: Follow) -> None:
    desired = desire(MIG)
    follow(cloud, cloud.send(desired.create))

    with pytest.raises(Conflict) as caught:
        cloud.send(desired.create)

    assert code_of(caught.value) == "exists"
    assert sorted(pool.name for pool in cloud.pools()) == ["a100mig", "nodepool1"]


def test_operation_when_its_handle_is_lost_is_followed_by_the_pool(cloud: AksCloud, follow: Follow) -> None:
    operation = cloud.send(desire(MIG).create)

    assert operation.handle
    assert follow(cloud, replace(operation, handle="")).done


def test_delete_when_sent_ends_with_the_pool_gone_and_again_succeeds(cloud: AksCloud, follow: Follow) -> None:
    follow(cloud, cloud.send(desire(MIG).create))
    request = PROVIDER.requests.delete(CLUSTER, find(cloud))

    assert follow(cloud, cloud.send(request)).done
    assert [pool.name for pool in cloud.pools()] == ["nodepool1"]
    assert follow(cloud, cloud.send(request)).done


def test_delete_when_the_pool_changed_since_it_was_read_is_refused(
    cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    follow(cloud, cloud.send(desire(MIG).create))
    request = PROVIDER.requests.delete(CLUSTER, find(cloud))
    daemon.tamper(sandbox, "train", "a100mig", tags={"owner": "somebody"})

    with pytest.raises(Conflict) as caught:
        cloud.send(request)

    assert code_of(caught.value) == "changed"


def test_second_pool_when_the_cluster_is_busy_is_a_conflict(cloud: AksCloud, sandbox: SandboxInfo) -> None:
    daemon.configure(sandbox, speed=0.01)
    cloud.send(desire(MIG).create)

    with pytest.raises(Conflict) as caught:
        cloud.send(desire(make_target(T4, name="other", pool="other")).create)

    assert code_of(caught.value) == "busy"


def test_cluster_when_a_background_job_runs_is_busy(cloud: AksCloud, sandbox: SandboxInfo) -> None:
    daemon.add_fault(sandbox, "background", cluster="train", seconds=1e9, state="Updating")

    assert cloud.identify().ready
    with pytest.raises(Conflict):
        cloud.send(desire(MIG).create)


FAILURES: dict[str, type[GpukubeError]] = {
    "AllocationFailed": CapacityError,
    "ZonalAllocationFailed": CapacityError,
    "OverconstrainedAllocationRequest": CapacityError,
    "SkuNotAvailable": CapacityError,
    "QuotaExceeded": QuotaError,
    "LowPriorityQuotaExceeded": QuotaError,
    "RegionalQuotaExceeded": QuotaError,
}


@pytest.mark.parametrize("code", FAILURES)
def test_operation_when_it_fails_late_is_our_error_and_the_pool_is_repaired(
    code: str, cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "operation", code=code, pool="a100mig")
    desired = desire(make_target(T4, capacity=Capacity("spot")))
    progress = follow(cloud, cloud.send(desired.create))
    failed = find(cloud)
    lost = cloud.poll(Operation("a100mig", "create"))

    assert isinstance(progress.error, FAILURES[code])
    assert isinstance(lost.error, FAILURES[code])
    assert failed.state == "failed"
    assert failed.failure

    repair = PROVIDER.requests.recreate(desired, failed)
    assert repair is not None
    assert follow(cloud, cloud.send(repair)).done
    assert diff_fields(desired.fields, find(cloud).fields) == ()
    assert find(cloud).state == "ready"
    assert set(find(cloud).effective_taints) == set(desired.effective_taints)


def test_autoscaled_pool_when_node_auto_provisioning_is_on_is_explained(
    connect: Callable[..., AksCloud], sandbox: SandboxInfo
) -> None:
    subscription = CLUSTER.identity["subscription"]
    daemon.add_cluster(sandbox, subscription, "ml", "nap", options={"nodeProvisioningMode": "Auto"})
    target = make_target(T4, cluster=replace(CLUSTER, name="nap"), nodes=Nodes(1, 1, 2, autoscaled=True))

    with pytest.raises(CloudError) as caught:
        connect(target.cluster).send(desire(target).create)

    assert code_of(caught.value) == "node-auto-provisioning"


def test_size_when_not_in_this_zone_is_a_capacity_error(cloud: AksCloud) -> None:
    with pytest.raises(CapacityError) as caught:
        cloud.send(desire(make_target("Standard_ND96isr_H100_v5", zones=("3",))).create)

    assert code_of(caught.value) == "zone-not-offered"


@pytest.mark.parametrize(
    ("changes", "code", "kind"),
    [
        ({"name": "nothere"}, "no-cluster", CloudError),
        ({"resourceGroup": "nothere"}, "no-resource-group", CloudError),
        ({"subscription": "99999999-2222-3333-4444-555555555555"}, "subscription", AccessError),
        ({"tenant": "99999999-0000-0000-0000-0000000000aa"}, "tenant", AccessError),
    ],
)
def test_identity_when_wrong_is_found_before_anything_else(
    changes: dict[str, str], code: str, kind: type[GpukubeError], connect: Callable[..., AksCloud]
) -> None:
    name = changes.pop("name", CLUSTER.name)
    cluster = replace(CLUSTER, name=name, identity={**CLUSTER.identity, **changes})

    with pytest.raises(kind) as caught:
        connect(cluster).identify()

    assert code_of(caught.value) == code
    assert caught.value.diagnostics[0].fix


def test_endpoint_when_nobody_listens_is_unreachable() -> None:
    cloud = PROVIDER.connect(CLUSTER, Settings({"aks": "http://127.0.0.1:9"}, sandbox=True))

    with pytest.raises(CloudError) as caught:
        cloud.identify()
    cloud.close()

    assert code_of(caught.value) == "unreachable"


ONCE: dict[str, dict[str, object]] = {
    "throttled": {"action": "status", "status": 429, "headers": {"Retry-After": "0"}},
    "server error": {"action": "status", "status": 503},
    "connection lost before": {"action": "drop-before"},
    "connection lost after": {"action": "drop-after"},
}


def strike_once(sandbox: SandboxInfo, fault: str, requests: Mapping[str, object]) -> None:
    parts = {**ONCE[fault], **requests}
    daemon.add_fault(sandbox, str(parts.pop("action")), **parts)


def send_or_meet(cloud: AksCloud, request: Request) -> tuple[Operation, str]:
    """Send as the engine does: a conflict after a lost answer means to look at the pool."""
    verb: Literal["create", "delete"] = "create" if "body" in request.params else "delete"
    try:
        return cloud.send(request), ""
    except Conflict as conflict:
        return Operation("a100mig", verb), code_of(conflict)


@pytest.mark.parametrize("requests", [LIST, OPERATION], ids=["list", "operation"])
@pytest.mark.parametrize("fault", ONCE)
def test_read_when_it_fails_once_is_repeated_unseen(
    fault: str, requests: dict[str, object], cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    strike_once(sandbox, fault, requests)

    assert follow(cloud, cloud.send(desire(MIG).create)).done
    assert find(cloud).state == "ready"


@pytest.mark.parametrize("fault", ONCE)
def test_create_when_it_fails_once_converges_to_one_pool(
    fault: str, cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    """A PUT that was carried out and whose answer was lost is repeated by the SDK: the guard answers "exists"."""
    strike_once(sandbox, fault, PUT)
    desired = desire(MIG)
    operation, conflict = send_or_meet(cloud, desired.create)

    assert conflict == ("exists" if fault == "connection lost after" else "")
    assert follow(cloud, operation).done
    assert sorted(pool.name for pool in cloud.pools()) == ["a100mig", "nodepool1"]
    assert diff_fields(desired.fields, find(cloud).fields) == ()


@pytest.mark.parametrize("fault", ONCE)
def test_delete_when_it_fails_once_converges(fault: str, cloud: AksCloud, follow: Follow, sandbox: SandboxInfo) -> None:
    follow(cloud, cloud.send(desire(MIG).create))
    request = PROVIDER.requests.delete(CLUSTER, find(cloud))
    strike_once(sandbox, fault, DELETE)
    operation, conflict = send_or_meet(cloud, request)

    assert conflict in ({"", "changed"} if fault == "connection lost after" else {""})
    assert follow(cloud, operation).done
    assert [pool.name for pool in cloud.pools()] == ["nodepool1"]


@pytest.mark.parametrize("strike", [{"service": "arm"}, LIST, PUT, OPERATION], ids=["first", "list", "put", "poll"])
def test_call_when_its_token_ran_out_then_made_once_more(
    strike: dict[str, str], cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "status", status=401, code="ExpiredAuthenticationToken", **strike)

    assert cloud.identify().ready
    assert cloud.pools()
    assert follow(cloud, cloud.send(desire(MIG).create)).done
    assert [fault["struck"] for fault in daemon.list_faults(sandbox)] == [1]


@pytest.mark.parametrize(
    ("status", "code", "ours"),
    [(401, "InvalidAuthenticationToken", "access"), (403, "AuthorizationFailed", "permission")],
)
def test_identity_when_azure_refuses_it_is_an_access_error(
    status: int, code: str, ours: str, cloud: AksCloud, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "status", service="arm", status=status, code=code, times=0)

    with pytest.raises(AccessError) as caught:
        cloud.identify()

    assert code_of(caught.value) == ours


def test_read_when_it_fails_for_good_is_our_error(cloud: AksCloud, sandbox: SandboxInfo) -> None:
    daemon.add_fault(sandbox, "status", times=0, status=500, code="InternalServerError", **LIST)

    with pytest.raises(CloudError) as caught:
        cloud.pools()

    assert "InternalServerError" in caught.value.render()
    assert "request " in caught.value.render()


def test_answer_when_it_never_comes_ends_with_the_time_out(
    connect: Callable[..., AksCloud], sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "hang", times=0, **LIST)

    with pytest.raises(CloudError) as caught:
        connect(timeout_s=0.1).pools()

    assert code_of(caught.value) == "no-answer"


def test_kubeconfig_when_local_accounts_are_on_works_as_it_is(cloud: AksCloud) -> None:
    document = yaml.safe_load(cloud.kube_access().kubeconfig)

    (user,) = document["users"]
    assert document["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert "exec" not in user["user"]


@pytest.mark.parametrize("options", [{"aad": True}, {"aad": True, "disableLocalAccounts": True}])
def test_kubeconfig_when_the_cluster_is_of_entra_has_a_token_and_no_plugin(
    options: dict[str, object], connect: Callable[..., AksCloud], sandbox: SandboxInfo
) -> None:
    daemon.add_cluster(sandbox, CLUSTER.identity["subscription"], "ml", "entra", options=options)
    document = yaml.safe_load(connect(replace(CLUSTER, name="entra")).kube_access().kubeconfig)

    (user,) = document["users"]
    assert user["user"].keys() == {"token"}
    assert get_nodes(document) == 200


def test_kubeconfig_when_used_reaches_the_cluster(cloud: AksCloud) -> None:
    assert get_nodes(yaml.safe_load(cloud.kube_access().kubeconfig)) == 200


def get_nodes(document: dict[str, list[dict[str, dict[str, str]]]]) -> int:
    """Ask for the nodes with a kubeconfig's server, authority and token; the HTTP status."""
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    headers = {"Authorization": f"Bearer {user['token']}"}
    return httpx.get(
        f"{cluster['server']}/api/v1/nodes", headers=headers, verify=context, trust_env=False, timeout=60
    ).status_code
