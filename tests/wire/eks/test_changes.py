"""Every row of the updatability table, tried: one edit of a live pool is one change of its class, then all is quiet.

A row without an edit here is a failure, and so is a native member without one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import FieldPath
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.plan import plan_pool
from gpukube.core.values import Capacity, Change, Disk, Nodes, Reservation, Settings, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from gpukube_eks.pool.fields import RESOURCE_FIELD, RESOURCE_TAG, UNTAG, UPDATE_VERSION
from gpukube_eks.pool.native import EXCLUSIVE, LAUNCH, NATIVE, field_of
from gpukube_eks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from sandbox_tests.waiting import wait_for
from tests.builders import by_text
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Desired, Observed, Request, Target, UpdateKind
    from gpukube.provider import Cloud
    from gpukube_sandbox.daemon import SandboxInfo

PROVIDER = EksProvider()
SPEED = 4000.0
CALLS = 5
ROLE = f"arn:aws:iam::{ACCOUNT}:role/another"

T4 = eks_target("g4dn.xlarge", labels={"team": "vision"}, tags={"cost": "a"}, disk=Disk(100, "gp3"))
SLICED = replace(T4, sharing=Sharing(None, Slicing("time-slicing", 4)))
CUT = eks_target(sharing=Sharing(MigCut("1g.5gb", "single")))
ROCKET = replace(T4, image="bottlerocket")
ROCKET_CUT = eks_target(image="bottlerocket", sharing=Sharing(MigCut("1g.5gb", "single")))
GPU_TAG = f"{RESOURCE_TAG}nvidia.com/gpu"
GPU_FIELD = f"{'.'.join(RESOURCE_FIELD)}[nvidia.com/gpu]"


@dataclass(frozen=True)
class Edit:
    """One edit: of the spec, or of the live pool by somebody else.

    Attributes:
        kind: What it must be classified as.
        field: The field that changes; the row's own name when empty.
        before, after: The pool as made, and as declared next.
        tamper: What somebody changes in the live pool in between.
        along: Fields that follow from this one, as a tag tells the autoscaler of what sharing makes.
        call: The last operation where it is not the row's: a tag is taken away by another one.
    """

    kind: UpdateKind
    before: Target
    after: Target
    field: str = ""
    tamper: Mapping[str, object] | None = None
    along: tuple[str, ...] = ()
    call: str = ""


def fixed(count: int) -> Target:
    return replace(T4, nodes=Nodes(count, count, count, autoscaled=False))


def ranged(least: int, most: int) -> Target:
    return replace(T4, nodes=Nodes(1, least, most, autoscaled=True))


def tainted(*taints: Taint) -> Target:
    return replace(T4, taints=(*T4.taints, *taints))


def sliced(mode: str, replicas: int, *, rename: bool = False, one: bool | None = None) -> Target:
    slicing = Slicing(mode, replicas, rename=rename, fail_requests_greater_than_one=one)  # type: ignore[arg-type]  # literals
    return replace(ROCKET, sharing=Sharing(None, slicing))


def upgraded(surge: str | None, unavailable: str | None) -> Target:
    return replace(T4, upgrade=Upgrade(surge, unavailable))


def reserved(identity: str) -> Target:
    return replace(T4, capacity=Capacity("reserved", reservation=Reservation("capacityReservation", identity)))


def blocked(identity: str) -> Target:
    capacity = Capacity("reserved", reservation=Reservation("capacityBlock", identity))
    return replace(eks_target("p5.48xlarge"), capacity=capacity)


def native(name: str, old: object, new: object, kind: UpdateKind = "in-place") -> Edit:
    """One native member changes, among others that stay; whichever field it is shown under."""
    top, _, inner = name.partition(".")
    before, after = ({inner: value} if inner else value for value in (old, new))
    return Edit(kind, replace(T4, native={top: before}), replace(T4, native={top: after}))


def imaged(image: str) -> Target:
    return replace(T4, image="al2023", native={"imageId": image})


EFA = replace(eks_target("g6e.8xlarge"), zones=("us-east-1a",))
KEYS, SECURITY = ("alias/a", "alias/b"), ("sg-0123456789abcdef0", "sg-0fedcba9876543210")
GROUP = "arn:aws:resource-groups:us-east-1:111122223333:group/t4"
FIRST, SECOND = "cr-00000000000000a10", "cr-00000000000000a20"
ROOM = {"type": "g4dn.xlarge", "zone": "a", "count": 20}
BLOCK = {"id": "cr-00000000000000b10", "type": "p5.48xlarge", "zone": "a", "count": 20, "block": True}
RESERVATIONS = [{**ROOM, "id": FIRST}, {**ROOM, "id": SECOND, "groups": [GROUP]}, BLOCK]
"""Those of the account; reserved pools go to their zone."""
DEDICATED = Taint("dedicated", "vision", "NoSchedule")
FIVE = {"minSize": 1, "maxSize": 5}
REPAIR = "nodeRepairConfig"
OVERRIDE = {
    "nodeMonitoringCondition": "AcceleratedHardwareReady",
    "nodeUnhealthyReason": "NvidiaXID13Error",
    "minRepairWaitTimeMins": 5,
    "repairAction": "Reboot",
}

IN_PLACE: Mapping[str, Edit] = {
    "nodes.count": Edit("in-place", fixed(1), fixed(3)),
    "nodes.count|fewer": Edit("disruptive", fixed(3), fixed(1)),
    "nodes.autoscaling.min": Edit("in-place", ranged(1, 5), ranged(3, 5)),
    "nodes.autoscaling.min|lower": Edit("in-place", ranged(1, 5), ranged(0, 5)),
    "nodes.autoscaling.max": Edit("in-place", ranged(1, 3), ranged(1, 5)),
    "nodes.autoscaling.max|lower": Edit(
        "disruptive", ranged(1, 5), ranged(1, 2), tamper={"scalingConfig": {**FIVE, "desiredSize": 4}}
    ),
    "nodes.autoscaling.resources[*]": Edit(
        "in-place", SLICED, SLICED, GPU_FIELD, tamper={"tags": {"cost": "a", GPU_TAG: "9"}}
    ),
    "nodes.autoscaling.resources[*]|left behind": Edit(
        "in-place", T4, T4, GPU_FIELD, tamper={"tags": {"cost": "a", GPU_TAG: "9"}}, call=UNTAG
    ),
    "labels[*]": Edit("in-place", T4, replace(T4, labels={"team": "speech"}), "labels[team]"),
    "labels[*]|added": Edit("in-place", T4, replace(T4, labels={**T4.labels, "tier": "gold"}), "labels[tier]"),
    "labels[*]|removed": Edit("in-place", T4, replace(T4, labels={}), "labels[team]"),
    f"labels[{CONFIG_LABEL}]": Edit("disruptive", SLICED, replace(SLICED, sharing=Sharing(
        None, Slicing("time-slicing", 4, fail_requests_greater_than_one=True))
    )),
    f"labels[{MIG_CONFIG_LABEL}]": Edit("disruptive", CUT, CUT, tamper={"label": (MIG_CONFIG_LABEL, "all-balanced")}),
    f"labels[{ADVERTISER_LABEL}]": Edit("in-place", T4, T4, tamper={"label": (ADVERTISER_LABEL, None)}),
    f"labels[{ADVERTISER_LABEL}]|another": Edit("disruptive", T4, T4, tamper={"label": (ADVERTISER_LABEL, "x")}),
    "taints": Edit("in-place", T4, tainted(DEDICATED)),
    "taints|evicts": Edit("disruptive", T4, tainted(replace(DEDICATED, effect="NoExecute"))),
    "taints|another value": Edit("in-place", tainted(DEDICATED), tainted(replace(DEDICATED, value="speech"))),
    "taints|removed": Edit("in-place", tainted(DEDICATED), T4),
    "tags[*]": Edit("in-place", T4, replace(T4, tags={"cost": "b"}), "tags[cost]"),
    "tags[*]|added": Edit("in-place", T4, replace(T4, tags={"cost": "a", "team": "x"}), "tags[team]"),
    "deletionProtection": Edit("in-place", T4, replace(T4, protect=True)),
    "deletionProtection|off": Edit("in-place", replace(T4, protect=True), T4),
    "disk.sizeGiB": Edit("disruptive", T4, replace(T4, disk=Disk(200, "gp3"))),
    "disk.sizeGiB|on Bottlerocket": Edit(
        "disruptive", ROCKET, replace(ROCKET, disk=Disk(200, "gp3")), "disk.sizeGiB"
    ),
    "disk.type": Edit("disruptive", T4, replace(T4, disk=Disk(100, "gp2"))),
    "disk.iops": Edit("disruptive", T4, replace(T4, disk=Disk(None, None, 4000))),
    "disk.throughput": Edit("disruptive", T4, replace(T4, disk=Disk(None, None, None, 200))),
    "disk.encrypted": Edit("disruptive", T4, replace(T4, disk=Disk(None, None, encrypted=True))),
    "disk.encrypted|on Bottlerocket": Edit(
        "disruptive", ROCKET, replace(ROCKET, disk=Disk(None, None, encrypted=True))
    ),
    "disk.kmsKey": Edit(
        "disruptive", replace(T4, disk=Disk(None, None, kms_key=KEYS[0])),
        replace(T4, disk=Disk(None, None, kms_key=KEYS[1])),
    ),
    "network.highSpeed": Edit("disruptive", EFA, replace(EFA, high_speed=True)),
    "network.highSpeed|off": Edit("disruptive", replace(EFA, high_speed=True), EFA),
    "placement": Edit("disruptive", EFA, replace(EFA, placement="compact")),
    "placement|named": Edit("disruptive", replace(EFA, placement="compact"), replace(EFA, placement="ring")),
    "placement|none": Edit("disruptive", replace(EFA, placement="ring"), replace(EFA, placement="none")),
    "eks.ebsOptimized": Edit("disruptive", T4, replace(T4, native={"ebsOptimized": True})),
    "eks.monitoring.enabled": native("monitoring.enabled", *(True, False), kind="disruptive"),
    "eks.metadataOptions.httpTokens": native("metadataOptions.httpTokens", "required", "optional", "disruptive"),
    "eks.metadataOptions.httpPutResponseHopLimit": native(
        "metadataOptions.httpPutResponseHopLimit", 1, 3, "disruptive"
    ),
    "eks.metadataOptions.instanceMetadataTags": native(
        "metadataOptions.instanceMetadataTags", "disabled", "enabled", "disruptive"
    ),
    "eks.keyName": native("keyName", "ops", "dev", "disruptive"),
    "eks.securityGroups": native("securityGroups", [SECURITY[0]], [SECURITY[1]], "disruptive"),
    "eks.imageId": Edit("disruptive", imaged("ami-0123456789abcdef0"), imaged("ami-0fedcba9876543210")),
    "sharing.*": Edit(
        "disruptive", sliced("time-slicing", 4, one=False), sliced("time-slicing", 4, one=True),
        "sharing.timeSlicing.failRequestsGreaterThanOne",
    ),
    "sharing.*|replicas": Edit(
        "disruptive", sliced("time-slicing", 4), sliced("time-slicing", 8), "sharing.timeSlicing.replicas",
        along=(GPU_FIELD,),
    ),
    "sharing.*|renamed": Edit(
        "disruptive", sliced("mps", 4), sliced("mps", 4, rename=True), "sharing.mps.renameByDefault",
        along=(GPU_FIELD, f"{GPU_FIELD[:-1]}.shared]"),
    ),
    "sharing.*|profile": Edit(
        "disruptive", ROCKET_CUT, replace(ROCKET_CUT, sharing=Sharing(MigCut("2g.10gb", "single"))),
        "sharing.mig.profile", along=(GPU_FIELD,),
    ),
    "sharing.*|no more": Edit(
        "disruptive", ROCKET_CUT, replace(ROCKET_CUT, sharing=Sharing()), "sharing.mig.profile", along=(GPU_FIELD,)
    ),
    "eks.releaseVersion": native("releaseVersion", "1.34.2-20260401", "1.34.2-20260714", "disruptive"),
    "upgrade.maxUnavailable": Edit("in-place", upgraded(None, "1"), upgraded(None, "3")),
    "upgrade.maxUnavailable|a share": Edit("in-place", upgraded(None, "10%"), upgraded(None, "20%")),
    "upgrade.maxUnavailable|a share for a number": Edit("in-place", upgraded("0", "2"), upgraded("0", "33%")),
    "upgrade.maxUnavailable|natively": native("updateConfig.maxUnavailable", 1, 3),
    "upgrade.maxUnavailable|natively a share": native("updateConfig.maxUnavailablePercentage", 10, 20),
    "upgrade.maxUnavailable|natively for a share": Edit(
        "in-place", replace(T4, native={"updateConfig": {"maxUnavailablePercentage": 10}}),
        replace(T4, native={"updateConfig": {"maxUnavailable": 2}}),
    ),
    "upgrade.maxSurge": Edit("in-place", upgraded("0", "2"), upgraded("1", "2")),
    "upgrade.maxSurge|natively": Edit(
        "in-place", replace(T4, native={"updateConfig": {"maxUnavailable": 2, "updateStrategy": "MINIMAL"}}),
        replace(T4, native={"updateConfig": {"updateStrategy": "DEFAULT"}}),
    ),
    "maxPodsPerNode": Edit("disruptive", T4, replace(T4, max_pods=60)),
    "maxPodsPerNode|another number": Edit("disruptive", replace(T4, max_pods=60), replace(T4, max_pods=100)),
    "maxPodsPerNode|on Bottlerocket": Edit(
        "disruptive", replace(sliced("time-slicing", 4), max_pods=60), replace(sliced("time-slicing", 4), max_pods=100)
    ),
    "kubelet.*": Edit(
        "disruptive", replace(T4, kubelet={"cpuManagerPolicy": "static"}),
        replace(T4, kubelet={"cpuManagerPolicy": "static", "podPidsLimit": 4096}), "kubelet.podPidsLimit",
    ),
    "kubelet.*|a list on Bottlerocket": Edit(
        "disruptive", ROCKET, replace(ROCKET, kubelet={"allowedUnsafeSysctls": ["net.core.somaxconn"]}),
        "kubelet.allowedUnsafeSysctls",
    ),
    "sysctls[*]": Edit(
        "disruptive", T4, replace(T4, sysctls={"net.core.somaxconn": "4096"}), "sysctls[net.core.somaxconn]"
    ),
    "sysctls[*]|on Bottlerocket": Edit(
        "disruptive", replace(ROCKET, sysctls={"net.core.somaxconn": "1024"}),
        replace(ROCKET, sysctls={"net.core.somaxconn": "4096"}), "sysctls[net.core.somaxconn]",
    ),
    "hugepages.*": Edit(
        "disruptive", replace(T4, hugepages={"2Mi": 128}), replace(T4, hugepages={"2Mi": 256}), "hugepages.2Mi"
    ),
    "hugepages.*|on Bottlerocket": Edit(
        "disruptive", ROCKET, replace(ROCKET, hugepages={"2Mi": 256}), "hugepages.2Mi"
    ),
    "localStorage": Edit("disruptive", T4, replace(T4, local_storage="ephemeral")),
    "localStorage|left to pods": Edit(
        "disruptive", replace(T4, local_storage="ephemeral"), replace(T4, local_storage="raw")
    ),
    "localStorage|on Bottlerocket": Edit("disruptive", ROCKET, replace(ROCKET, local_storage="ephemeral")),
    "kubernetesVersion": Edit(
        "disruptive", replace(T4, kubernetes_version="1.34"), replace(T4, kubernetes_version="1.34"),
        tamper={"version": "1.33", "releaseVersion": "1.33.5-20260714"},
    ),
    "capacity.reserved.eks.capacityReservation": Edit("disruptive", reserved(FIRST), reserved(SECOND)),
    "capacity.reserved.eks.capacityReservation|a group of them": Edit("disruptive", reserved(FIRST), reserved(GROUP)),
    "capacity.type|a reservation": Edit(
        "disruptive", T4, reserved(SECOND), "capacity.type", along=("capacity.reserved.eks.capacityReservation",)
    ),
    "capacity.type|no reservation": Edit(
        "disruptive", reserved(FIRST), T4, "capacity.type", along=("capacity.reserved.eks.capacityReservation",)
    ),
    f"eks.{REPAIR}.enabled": native(f"{REPAIR}.enabled", *(False, True)),
    f"eks.{REPAIR}.maxUnhealthyNodeThresholdCount": native(f"{REPAIR}.maxUnhealthyNodeThresholdCount", 1, 2),
    f"eks.{REPAIR}.maxUnhealthyNodeThresholdPercentage": native(f"{REPAIR}.maxUnhealthyNodeThresholdPercentage", 1, 2),
    f"eks.{REPAIR}.maxParallelNodesRepairedCount": native(f"{REPAIR}.maxParallelNodesRepairedCount", 1, 2),
    f"eks.{REPAIR}.maxParallelNodesRepairedPercentage": native(f"{REPAIR}.maxParallelNodesRepairedPercentage", 1, 2),
    f"eks.{REPAIR}.nodeRepairConfigOverrides": native(
        f"{REPAIR}.nodeRepairConfigOverrides", [OVERRIDE], [{**OVERRIDE, "repairAction": "Replace"}]
    ),
}  # fmt: skip
"""Row, and after a bar which way it is edited -> the edit."""

SUBNETS = ["subnet-0123456789abcdef0"]
OTHERWISE: Mapping[str, Edit] = {
    "instanceType": Edit("replace", T4, replace(T4, machine=eks_target("g4dn.2xlarge").machine)),
    "instanceTypes": Edit("replace", T4, replace(T4, machines=(T4.machine, eks_target("g4dn.2xlarge").machine))),
    "image": Edit("replace", T4, ROCKET),
    "devicePlugin": Edit("replace", replace(ROCKET, plugin_owner="dra"), ROCKET),
    "image|an own one": Edit("replace", T4, imaged("ami-0123456789abcdef0")),
    "capacity.type": Edit("replace", T4, replace(T4, capacity=Capacity("spot"))),
    "capacity.reserved.eks.capacityBlock": Edit(
        "replace", blocked("cr-00000000000000b10"), blocked("cr-00000000000000b20")
    ),
    "kubernetesVersion|older": Edit(
        "refused", replace(T4, kubernetes_version="1.34"), replace(T4, kubernetes_version="1.33")
    ),
    "zones": Edit("replace", replace(T4, zones=("us-east-1a",)), replace(T4, zones=("us-east-1b",))),
    "eks.subnets": Edit("replace", T4, replace(T4, native={"subnets": SUBNETS})),
    "eks.nodeRole": Edit("replace", T4, replace(T4, native={"nodeRole": ROLE})),
    "eks.releaseVersion|older": native("releaseVersion", "1.34.2-20260714", "1.34.2-20260401", "replace"),
}
"""Likewise, of what does not change in place."""


@pytest.fixture(scope="module")
def running(running_sandbox: SandboxInfo) -> SandboxInfo:
    info = emptied(running_sandbox, SPEED)
    daemon.add_eks_cluster(info, ACCOUNT, REGION, "train", options={"groupQuota": 500, "reservations": RESERVATIONS})
    daemon.declare(
        info, "eks", account=ACCOUNT, region=REGION, keyPairs=["ops", "dev"], kmsKeys=list(KEYS),
        securityGroups=list(SECURITY), placementGroups=[{"name": "ring"}],
    )  # fmt: skip
    return info


@pytest.fixture(scope="module")
def cloud(running: SandboxInfo) -> Iterator[Cloud]:
    cloud = PROVIDER.connect(CLUSTER, Settings({"eks": running.aws_url}, sandbox=True, secret=running.secret))
    yield cloud
    cloud.close()


def named(target: Target, edit: str, table: Mapping[str, Edit]) -> Target:
    name = f"e{list(table).index(edit)}{'i' if table is IN_PLACE else 'o'}"
    return replace(target, name=name, pool=name)


def find(cloud: Cloud, target: Target) -> Observed:
    found = cloud.pool(target.name)
    assert found is not None
    return found


def finish(cloud: Cloud, request: Request) -> None:
    operation = cloud.send(request)

    def is_done() -> bool:
        progress = cloud.poll(operation)
        assert progress.error is None, progress.error
        return progress.done

    wait_for(is_done, lambda: cloud.poll(operation))


def nodes(info: SandboxInfo, target: Target) -> list[str]:
    clusters = cast("list[dict[str, list[dict[str, object]]]]", daemon.status(info)["clusters"])
    (pool,) = [pool for pool in clusters[0]["pools"] if pool["name"] == target.name]
    return cast("list[str]", pool["nodes"])


def tampered(info: SandboxInfo, cloud: Cloud, edit: Edit, target: Target) -> None:
    """Change the live pool behind our back, as the edit says."""
    for member, value in (edit.tamper or {}).items():
        if member == "label":
            key, given = cast("tuple[str, str | None]", value)
            labels = {**find(cloud, target).labels, key: given}
            daemon.tamper(info, "train", target.name, labels={k: v for k, v in labels.items() if v is not None})
        else:
            change = {"cluster": "train", "pool": target.name, "delete": False, "set": {member: value}}
            daemon.call(info, "POST", "tamper", change)


def made(info: SandboxInfo, cloud: Cloud, edit: Edit, target: Target) -> Observed:
    """Make the pool as it is before the edit; its diff is empty until somebody meddles."""
    desired = cloud.complete(desired_of(target))
    finish(cloud, desired.create)
    assert diff_fields(desired.fields, find(cloud, target).fields) == ()
    tampered(info, cloud, edit, target)
    return find(cloud, target)


def bring_about(cloud: Cloud, desired: Desired) -> list[str]:
    """Do what the engine does until nothing differs; gives the operations."""
    sent: list[str] = []
    while changes := diff_fields(desired.fields, find(cloud, desired.target).fields):
        assert len(sent) < CALLS, changes
        request = PROVIDER.requests.update(desired, find(cloud, desired.target), changes)[0]
        finish(cloud, request)
        sent.append(request.operation)
    return sent


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", IN_PLACE)
def test_field_when_edited_is_one_change_of_its_class_and_then_quiet(
    running: SandboxInfo, cloud: Cloud, name: str
) -> None:
    edit = IN_PLACE[name]
    before = made(running, cloud, edit, named(edit.before, name, IN_PLACE))
    desired = desired_of(named(edit.after, name, IN_PLACE))
    machines = nodes(running, desired.target)

    changes = diff_fields(desired.fields, before.fields)

    field = edit.field or name.partition("|")[0]
    assert sorted(str(change.field) for change in changes) == sorted((field, *edit.along))
    row = find_row(next(change for change in changes if str(change.field) == field), changes)
    assert row.kind == edit.kind
    assert plan_pool(PROVIDER, desired, [before]).action == "update"

    sent = bring_about(cloud, desired)

    after = find(cloud, desired.target)
    assert sent[-1] == (edit.call or row.call)
    assert edit.along or len(sent) == 1
    gone = {str(field_of(one)) for pair in EXCLUSIVE for one in pair if str(field_of(one)) != field}
    gone |= {"eks.releaseVersion"} if field in {"kubernetesVersion", "eks.imageId"} else set()
    assert others(after, {field, *edit.along, *gone}) == others(before, {field, *edit.along, *gone})
    check_nodes(nodes(running, desired.target), machines, field, rolled=row.call == UPDATE_VERSION)


def others(observed: Observed, names: set[str]) -> dict[str, object]:
    return {name: value for name, value in by_text(observed.fields).items() if name not in names}


def check_nodes(now: list[str], before: list[str], field: str, *, rolled: bool) -> None:
    """Machines are other ones after a new version, and the same ones after anything else but another size."""
    if rolled:
        assert len(now) == len(before)
        assert not set(now) & set(before)
    elif not field.startswith(("nodes.count", "nodes.autoscaling.m")):
        assert now == before


@pytest.mark.parametrize("name", OTHERWISE)
def test_field_when_it_cannot_change_in_place_is_classified_so(running: SandboxInfo, cloud: Cloud, name: str) -> None:
    edit = OTHERWISE[name]
    before = made(running, cloud, edit, named(edit.before, name, OTHERWISE))
    desired = desired_of(named(edit.after, name, OTHERWISE))

    plan = plan_pool(PROVIDER, desired, [before])

    (classified,) = [one for one in plan.changes if str(one.change.field) == name.partition("|")[0]]
    assert classified.row.kind == edit.kind
    if edit.kind == "replace":
        assert [request.operation for request in plan.requests] == ["delete_nodegroup", "create_nodegroup"]
    else:
        assert (plan.requests, [problem.code for problem in plan.diagnostics]) == ((), ["refused-change"])


def test_member_when_unknown_is_refused() -> None:
    assert find_row(Change(FieldPath.parse("eks.surprise"), 1, 2)).kind == "refused"


def test_rows_when_counted_have_an_edit_each() -> None:
    members = {field_of(path) for path in (*NATIVE, *LAUNCH)}
    tried = {FieldPath.parse(name.partition("|")[0]) for name in (*IN_PLACE, *OTHERWISE)}

    assert {FieldPath(*member[:2]) for member in members} - INTENT_ROWS.keys() == NATIVE_ROWS.keys()
    assert tried == INTENT_ROWS.keys() | members, "write an edit for the row above, or take it away"
