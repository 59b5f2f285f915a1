"""The live half against a fake of the SDK: which calls are made, in which order, what follows from their answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.fields import DISK_SIZE
from gpukube.core.values import Capacity, Operation, Request, Reservation, Settings
from gpukube.endpoint import Endpoint
from gpukube.errors import AccessError, CloudError, Conflict, SpecError, StockOut
from gpukube_eks import EksProvider
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.translate import with_place
from tests.unit.gpukube_eks.fakes import FakeAws, refusal
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

DESIRED = with_place(desired_of(eks_target("g4dn.xlarge", name="t4", pool="t4")), "arn:role", ("subnet-a",))
TEMPLATE = "gpukube/train/t4"
MARKS = {
    "gpukube.io/owner": "ml-platform",
    "gpukube.io/pool": "t4",
    "gpukube.io/cluster": "train",
    "gpukube.io/nodegroup": "t4",
}


@pytest.fixture
def aws() -> FakeAws:
    return FakeAws()


@pytest.fixture
def cloud(aws: FakeAws) -> EksCloud:
    return EksCloud(CLUSTER, Settings(), Endpoint(), aws)


def test_identify_when_the_account_is_another_stops_before_the_cluster(aws: FakeAws, cloud: EksCloud) -> None:
    aws.account = "999999999999"

    with pytest.raises(AccessError, match="to account 999999999999, not 111122223333"):
        cloud.identify()

    assert aws.calls == ["get_caller_identity"]


@pytest.mark.parametrize(
    ("status", "ready"), [("ACTIVE", True), ("UPDATING", True), ("CREATING", False), ("FAILED", False)]
)
def test_identify_when_the_cluster_is_there_says_whether_it_takes_work(
    aws: FakeAws, cloud: EksCloud, status: str, ready: bool  # noqa: FBT001 - a table's column
) -> None:  # fmt: skip
    aws.cluster["status"] = status

    facts = cloud.identify()

    assert (facts.location, facts.kubernetes_version, facts.ready) == ("us-east-1", "1.34", ready)


def test_pools_when_there_are_pages_are_all_read(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups = {f"g{n}": {"nodegroupName": f"g{n}", "instanceTypes": ["t3.large"]} for n in range(5)}

    assert sorted(pool.name for pool in cloud.pools()) == ["g0", "g1", "g2", "g3", "g4"]
    assert aws.calls.count("list_nodegroups") == 3


def test_pools_when_one_goes_meanwhile_lists_the_others(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups = {"a": {"nodegroupName": "a"}, "b": {"nodegroupName": "b"}}
    aws.raises["describe_nodegroup"] = refusal("ResourceNotFoundException")

    assert len(cloud.pools()) == 1


def test_pools_when_foreign_cost_no_template(aws: FakeAws, cloud: EksCloud) -> None:
    template = {"id": "lt-1", "name": "x", "version": "1"}
    aws.groups["a"] = {"nodegroupName": "a", "instanceTypes": ["t3.large"], "launchTemplate": template}

    cloud.pools()

    assert "describe_launch_template_versions" not in aws.calls


def test_pools_when_read_again_ask_for_no_template_version_twice(aws: FakeAws, cloud: EksCloud) -> None:
    cloud.send(DESIRED.create)
    aws.groups["t4"] |= {"status": "ACTIVE", "launchTemplate": {"id": TEMPLATE, "name": TEMPLATE, "version": "1"}}

    first, second = cloud.pools(), cloud.pools()

    assert first == second
    assert first[0].fields[DISK_SIZE] == 100
    assert aws.calls.count("describe_launch_template_versions") == 1


def test_pools_when_a_template_lost_its_group_show_it(aws: FakeAws, cloud: EksCloud) -> None:
    aws.templates[TEMPLATE] = MARKS, [{}]
    aws.templates["gpukube/train/other"] = {**MARKS, "gpukube.io/nodegroup": "elsewhere"}, [{}]

    (found,) = cloud.pools()

    assert (found.name, found.status, found.owner) == ("t4", "LeftoverTemplate", "ml-platform")
    assert EksProvider().requests.recreate(DESIRED, found) == DESIRED.create


def test_pools_when_templates_fill_pages_show_every_lost_one(aws: FakeAws, cloud: EksCloud) -> None:
    for number in range(5):
        aws.templates[f"gpukube/train/g{number}"] = {**MARKS, "gpukube.io/nodegroup": f"g{number}"}, [{}]

    assert [pool.name for pool in cloud.pools()] == ["g0", "g1", "g2", "g3", "g4"]


def test_create_when_new_makes_the_template_first(aws: FakeAws, cloud: EksCloud) -> None:
    operation = cloud.send(DESIRED.create)

    assert operation == Operation("t4", "create")
    assert aws.calls == ["describe_nodegroup", "create_launch_template", "create_nodegroup"]
    assert aws.groups["t4"]["launchTemplate"] == {"name": TEMPLATE, "version": "1"}


def test_create_when_the_group_is_there_touches_nothing(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups["t4"] = {"nodegroupName": "t4"}

    with pytest.raises(Conflict) as caught:
        cloud.send(DESIRED.create)

    assert caught.value.diagnostics[0].code == "exists"
    assert aws.calls == ["describe_nodegroup"]


def test_create_when_the_template_is_there_reuses_it(aws: FakeAws, cloud: EksCloud) -> None:
    cloud.send(DESIRED.create)
    aws.groups.clear()

    cloud.send(DESIRED.create)

    assert len(aws.templates[TEMPLATE][1]) == 1
    assert aws.groups["t4"]["launchTemplate"] == {"name": TEMPLATE, "version": "1"}


def test_create_when_the_template_says_otherwise_adds_a_version(aws: FakeAws, cloud: EksCloud) -> None:
    aws.templates[TEMPLATE] = MARKS, [{"EbsOptimized": True}]

    cloud.send(DESIRED.create)

    assert aws.groups["t4"]["launchTemplate"] == {"name": TEMPLATE, "version": "2"}


@pytest.mark.parametrize("tags", [{}, {**MARKS, "gpukube.io/owner": "others"}])
def test_create_when_the_template_is_foreign_is_refused(aws: FakeAws, cloud: EksCloud, tags: dict[str, str]) -> None:
    aws.templates[TEMPLATE] = tags, [{}]

    with pytest.raises(Conflict) as caught:
        cloud.send(DESIRED.create)

    assert caught.value.diagnostics[0].code == "foreign-template"
    assert "create_nodegroup" not in aws.calls


def test_create_when_the_group_is_refused_leaves_a_template_that_is_found(aws: FakeAws, cloud: EksCloud) -> None:
    aws.raises["create_nodegroup"] = refusal("ResourceLimitExceededException")

    with pytest.raises(Exception, match="quota"):
        cloud.send(DESIRED.create)

    assert [pool.status for pool in cloud.pools()] == ["LeftoverTemplate"]


def test_delete_when_the_group_is_gone_takes_the_template(aws: FakeAws, cloud: EksCloud) -> None:
    cloud.send(DESIRED.create)
    (observed,) = cloud.pools()

    operation = cloud.send(EksProvider().requests.delete(CLUSTER, observed))
    progress = cloud.poll(operation)

    assert progress.done
    assert aws.templates == {}


def test_delete_when_the_template_is_foreign_leaves_it(aws: FakeAws, cloud: EksCloud) -> None:
    aws.templates[TEMPLATE] = {}, [{}]

    assert cloud.poll(Operation("t4", "delete")).done
    assert TEMPLATE in aws.templates


def test_delete_when_somebody_else_took_the_template_is_done(aws: FakeAws, cloud: EksCloud) -> None:
    aws.templates[TEMPLATE] = MARKS, [{}]
    aws.raises["delete_launch_template"] = refusal("InvalidLaunchTemplateName.NotFoundException")

    assert cloud.poll(Operation("t4", "delete")).done


def test_delete_when_it_is_being_deleted_already_is_followed(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups["t4"] = {"nodegroupName": "t4", "status": "DELETING"}
    aws.raises["delete_nodegroup"] = refusal("ResourceInUseException", "currently in DELETING State")
    request = Request("eks", "delete_nodegroup", {"nodegroup": {"nodegroupName": "t4"}})

    operation = cloud.send(request)

    assert not cloud.poll(operation).done


def test_delete_when_the_group_is_busy_waits(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups["t4"] = {"nodegroupName": "t4", "status": "CREATING"}
    aws.raises["delete_nodegroup"] = refusal("ResourceInUseException", "currently in CREATING State")

    with pytest.raises(Conflict) as caught:
        cloud.send(Request("eks", "delete_nodegroup", {"nodegroup": {"nodegroupName": "t4"}}))

    assert caught.value.diagnostics[0].code == "busy"


NO_CAPACITY = {"issues": [{"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity - none"}]}


@pytest.mark.parametrize(
    ("verb", "status", "done", "error"),
    [
        ("create", "CREATING", False, None),
        ("create", "ACTIVE", True, None),
        ("create", "UPDATING", False, None),
        ("create", "CREATE_FAILED", False, StockOut),
        ("create", "DEGRADED", False, StockOut),
        ("update", "DEGRADED", True, None),
        ("delete", "DELETING", False, None),
        ("delete", "ACTIVE", False, None),
        ("delete", "CREATE_FAILED", False, None),
        ("delete", "DELETE_FAILED", False, StockOut),
    ],
)
def test_poll_when_following_the_group_reads_its_status(  # noqa: PLR0913, PLR0917 - a table
    aws: FakeAws, cloud: EksCloud, verb: str, status: str, done: bool, error: type[Exception] | None  # noqa: FBT001
) -> None:  # fmt: skip
    aws.groups["t4"] = {"nodegroupName": "t4", "status": status, "health": NO_CAPACITY}

    progress = cloud.poll(Operation("t4", verb))  # type: ignore[arg-type]  # one of the three

    assert (progress.done, progress.status.partition(",")[0]) == (done, status)
    assert (type(progress.error) if progress.error else None) == error


def test_poll_when_the_group_is_already_ill_says_so_while_it_is_made(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups["t4"] = {"nodegroupName": "t4", "status": "CREATING", "health": NO_CAPACITY}

    assert cloud.poll(Operation("t4", "create")).status == "CREATING, AsgInstanceLaunchFailures"


def test_poll_when_the_group_went_away_says_so(cloud: EksCloud) -> None:
    error = cloud.poll(Operation("t4", "create")).error

    assert isinstance(error, CloudError)
    assert error.diagnostics[0].code == "pool-gone"


@pytest.mark.parametrize("code", ["", "UnauthorizedOperation"])
def test_release_when_the_tags_of_the_template_may_not_change_then_a_warning_and_the_labels_go(
    aws: FakeAws, cloud: EksCloud, code: str
) -> None:
    aws.groups["t4"] = {"nodegroupName": "t4", "status": "ACTIVE"}
    aws.templates[TEMPLATE] = dict(MARKS), [{}]
    if code:
        aws.raises["delete_tags"] = refusal(code, "not allowed")

    path = {"clusterName": "train", "nodegroupName": "t4"}
    params = {"nodegroup": path, "expects": {}, "releasedTemplate": {"LaunchTemplateName": TEMPLATE}}
    operation = cloud.send(Request("eks", "update_nodegroup_config", params))

    assert aws.calls[-2:] == ["delete_tags", "update_nodegroup_config"]
    assert operation.warning.startswith(f"the launch template {TEMPLATE} keeps gpukube's tags" if code else "")
    assert bool(operation.warning) is bool(code)


@pytest.mark.parametrize(
    ("status", "done", "failed"),
    [("InProgress", False, False), ("Successful", True, False), ("Failed", False, True), ("Cancelled", False, True)],
)
def test_update_when_followed_is_told_by_itself_and_not_by_its_group(
    aws: FakeAws, cloud: EksCloud, status: str, done: bool, failed: bool  # noqa: FBT001 - a table's columns
) -> None:  # fmt: skip
    aws.groups["t4"] = {"nodegroupName": "t4", "status": "ACTIVE"}
    aws.updates["u-config"] = {"status": status, "errors": [{"errorCode": "PodEvictionFailure", "errorMessage": "x"}]}

    path = {"clusterName": "train", "nodegroupName": "t4"}
    operation = cloud.send(Request("eks", "update_nodegroup_config", {"nodegroup": path, "expects": {}}))
    progress = cloud.poll(operation)

    assert operation.handle == "u-config"
    assert (progress.done, progress.error is not None) == (done, failed)


def test_send_when_the_operation_is_unknown_is_refused(cloud: EksCloud) -> None:
    with pytest.raises(CloudError, match="no operation dance"):
        cloud.send(Request("eks", "dance", {}))


def system(**changes: object) -> dict[str, object]:
    group = {"nodegroupName": "system", "status": "ACTIVE", "nodeRole": "arn:nodes", "subnets": ["subnet-a"]}
    return {**group, **changes}


def fill(aws: FakeAws) -> None:
    aws.subnets = [{"SubnetId": "subnet-a", "AvailabilityZone": "us-east-1a", "MapPublicIpOnLaunch": False}]
    aws.offered = ["us-east-1a"]
    aws.cluster |= {"roleArn": "arn:cluster", "resourcesVpcConfig": {"subnetIds": ["subnet-a"]}}


def test_complete_when_open_takes_what_the_other_groups_have(aws: FakeAws, cloud: EksCloud) -> None:
    fill(aws)
    aws.groups["system"] = system()

    group = cloud.complete(desired_of(eks_target("g4dn.xlarge"))).create.params["nodegroup"]

    assert isinstance(group, dict)
    assert (group["nodeRole"], group["subnets"]) == ("arn:nodes", ["subnet-a"])
    assert "list_roles" not in aws.calls


def test_complete_when_no_group_is_there_looks_for_a_documented_role(aws: FakeAws, cloud: EksCloud) -> None:
    fill(aws)
    aws.roles = [{"RoleName": "admin", "Arn": "arn:admin"}, {"RoleName": "AmazonEKSNodeRole", "Arn": "arn:found"}]

    group = cloud.complete(desired_of(eks_target("g4dn.xlarge"))).create.params["nodegroup"]

    assert isinstance(group, dict)
    assert group["nodeRole"] == "arn:found"


def test_complete_when_roles_may_not_be_listed_asks_the_user(aws: FakeAws, cloud: EksCloud) -> None:
    fill(aws)
    aws.raises["list_roles"] = refusal("AccessDenied")

    with pytest.raises(SpecError, match="no role"):
        cloud.complete(desired_of(eks_target("g4dn.xlarge")))


def test_complete_when_the_pool_is_there_keeps_its_place(aws: FakeAws, cloud: EksCloud) -> None:
    aws.groups["a100mig"] = system(nodegroupName="a100mig", nodeRole="arn:own", subnets=["subnet-own"])

    group = cloud.complete(desired_of(eks_target("g4dn.xlarge"))).create.params["nodegroup"]

    assert isinstance(group, dict)
    assert (group["nodeRole"], group["subnets"]) == ("arn:own", ["subnet-own"])


RESERVED = Capacity("reserved", reservation=Reservation("capacityReservation", "cr-1"))
IN_B: dict[str, object] = {
    "CapacityReservationId": "cr-1",
    "AvailabilityZone": "us-east-1b",
    "InstanceType": "g4dn.xlarge",
}


def test_complete_when_reserved_goes_to_the_zone_of_the_reservation(aws: FakeAws, cloud: EksCloud) -> None:
    aws.offered = ["us-east-1a", "us-east-1b"]
    aws.subnets = [{"SubnetId": f"subnet-{zone}", "AvailabilityZone": f"us-east-1{zone}"} for zone in "ab"]
    aws.groups["other"] = {"nodegroupName": "other", "nodeRole": "nodes", "subnets": ["subnet-a", "subnet-b"]}
    aws.reservations = [IN_B]

    group = cloud.complete(desired_of(eks_target("g4dn.xlarge", capacity=RESERVED))).create.params["nodegroup"]

    assert isinstance(group, dict)
    assert group["subnets"] == ["subnet-b"]


def test_complete_when_the_reservation_may_not_be_read_leaves_it_to_eks(aws: FakeAws, cloud: EksCloud) -> None:
    aws.raises["describe_capacity_reservations"] = refusal("UnauthorizedOperation")
    native = {"nodeRole": "nodes", "subnets": ["subnet-a"]}
    desired = desired_of(eks_target("g4dn.xlarge", capacity=RESERVED, native=native))

    assert cloud.complete(desired) == desired


def living(aws: FakeAws, cloud: EksCloud, capacity: Capacity, zone: str) -> None:
    """Make the pool, and let it run in a subnet of a zone."""
    aws.offered = ["us-east-1a", "us-east-1b"]
    aws.subnets = [{"SubnetId": f"subnet-{one}", "AvailabilityZone": f"us-east-1{one}"} for one in "ab"]
    native = {"nodeRole": "nodes", "subnets": [f"subnet-{zone}"]}
    cloud.send(desired_of(eks_target("g4dn.xlarge", capacity=capacity, native=native)).create)
    template = {"id": "gpukube/train/a100mig", "version": "1"}  # the fake finds templates by their names
    aws.groups["a100mig"] |= {"status": "ACTIVE", "launchTemplate": template}
    aws.calls.clear()


def test_complete_when_the_pool_has_its_reservation_does_not_look_at_it(aws: FakeAws, cloud: EksCloud) -> None:
    living(aws, cloud, RESERVED, "b")

    cloud.complete(desired_of(eks_target("g4dn.xlarge", capacity=RESERVED)))

    assert "describe_capacity_reservations" not in aws.calls


@pytest.mark.parametrize(("zone", "fits"), [("a", False), ("b", True)])
def test_complete_when_a_live_pool_shall_change_to_a_reservation_looks_where_it_is(
    aws: FakeAws, cloud: EksCloud, zone: str, fits: bool  # noqa: FBT001 - a table's column
) -> None:  # fmt: skip
    living(aws, cloud, Capacity("on-demand"), zone)
    aws.reservations = [IN_B]
    desired = desired_of(eks_target("g4dn.xlarge", capacity=RESERVED))

    if fits:
        assert cloud.complete(desired) != desired
    else:
        with pytest.raises(SpecError, match=r"is in us-east-1b, but .* in us-east-1a"):
            cloud.complete(desired)


def test_complete_when_a_block_takes_the_place_of_a_live_pool_goes_to_its_zone(aws: FakeAws, cloud: EksCloud) -> None:
    living(aws, cloud, Capacity("on-demand"), "a")
    aws.reservations = [{**IN_B, "ReservationType": "capacity-block"}]
    block = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-1"))
    aws.cluster["resourcesVpcConfig"] = {"subnetIds": ["subnet-a", "subnet-b"]}

    group = cloud.complete(desired_of(eks_target("g4dn.xlarge", capacity=block))).create.params["nodegroup"]

    assert isinstance(group, dict)
    assert group["subnets"] == ["subnet-b"]


def test_complete_when_the_version_is_not_the_clusters_refuses(aws: FakeAws, cloud: EksCloud) -> None:
    with pytest.raises(SpecError, match=r"the cluster has 1\.34"):
        cloud.complete(desired_of(eks_target("g4dn.xlarge", kubernetes_version="1.33")))


def test_complete_when_nothing_is_open_asks_nobody(aws: FakeAws, cloud: EksCloud) -> None:
    assert cloud.complete(DESIRED) == DESIRED
    assert aws.calls == []


def test_kube_access_when_the_endpoint_is_on_this_machine_gets_no_real_token(aws: FakeAws, cloud: EksCloud) -> None:
    aws.cluster |= {"endpoint": "https://127.0.0.1:6443", "certificateAuthority": {"data": "Q0E="}}

    with pytest.raises(AccessError) as caught:
        cloud.kube_access()

    assert caught.value.diagnostics[0].code == "loopback-server"


def test_kube_access_when_the_cluster_has_an_endpoint_is_complete(aws: FakeAws, cloud: EksCloud) -> None:
    aws.cluster |= {"endpoint": "https://x.eks.amazonaws.com", "certificateAuthority": {"data": "Q0E="}, "arn": "arn"}

    access = cloud.kube_access()

    for part in ("https://x.eks.amazonaws.com", "Q0E=", "token-of-train", "current-context: arn"):
        assert part in access.kubeconfig
    assert "token-of-train" not in repr(access)


def test_kube_access_when_the_cluster_is_being_made_says_so(cloud: EksCloud) -> None:
    with pytest.raises(CloudError, match="no Kubernetes endpoint yet"):
        cloud.kube_access()


def test_kube_access_when_the_spec_names_a_file_asks_aws_nothing(aws: FakeAws) -> None:
    cluster = replace(CLUSTER, kubeconfig="/nowhere/kubeconfig")
    cloud = EksCloud(cluster, Settings(), Endpoint(), aws)

    with pytest.raises(AccessError, match="cannot be read"):
        cloud.kube_access()

    assert aws.calls == []
