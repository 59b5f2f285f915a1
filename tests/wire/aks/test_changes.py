"""Every field that can be edited, edited on live pools: one change, of the class its row says, and then no difference.

The edits of the portable fields are a table, which must have a line for every row of `updates.INTENT_ROWS`; those of
the native ones are made from the table of shapes, leaf by leaf. One sandbox serves the module.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import FieldPath
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Change, Disk, Nodes, Reservation, Settings, Taint, Upgrade
from gpukube.errors import Busy, Conflict, Moved
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_aks.live.client import AksCloud
from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.pool.members import native_leaves
from gpukube_aks.pool.observe import observe_pool
from gpukube_aks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.builders import CLUSTER, SUBSCRIPTION, make_target
from tests.wire.aks.lab import ADVERTISER, CONFIG, PROVIDER, Lab, desire, kube_client, properties_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Observed, Target, UpdateKind
    from gpukube_aks.pool.members import Shape
    from gpukube_sandbox.daemon import SandboxInfo

    Node = dict[str, Any]

SPEED = 4000.0
T4 = "Standard_NC4as_T4_v3"

GROUP = Reservation(
    "capacityReservationGroup",
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups/t4",
)
PLACED = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/proximityPlacementGroups/near"
PLAIN = make_target(
    T4,
    nodes=Nodes(2, 2, 2, autoscaled=False),
    labels={"team": "vision"},
    tags={"cost": "1"},
    kubernetes_version="1.33.5",
    image="Ubuntu2204",
)
BASES: Mapping[str, Target] = {
    "plain": PLAIN,
    "autoscaled": replace(PLAIN, nodes=Nodes(1, 1, 3, autoscaled=True)),
    "spot": replace(PLAIN, capacity=Capacity("spot", 0.5)),
    "mig": make_target(sharing=Sharing(MigCut("1g.5gb", "single"))),
    "managed": make_target(T4, plugin_owner="cloud"),
    "driverless": make_target(T4, driver_owner="none", plugin_owner="none"),
    "reserved": make_target(T4, capacity=Capacity("reserved", reservation=GROUP)),
    "placed": make_target(T4, placement=PLACED),
}


@dataclass(frozen=True)
class Edit:
    """One thing changed.

    Attributes:
        field: Of the change that must come of it.
        edit: What the user writes.
        kind: Where the value decides and not the row alone.
        base: The live pool.
        owned: Labels of ours that become others; None takes one away.
        live: Properties that the live pool has instead.
    """

    field: str
    edit: Callable[[Target], Target] = lambda target: target
    kind: UpdateKind | None = None
    base: str = "plain"
    owned: Mapping[str, str | None] | None = None
    live: Mapping[str, object] | None = None


def changed(**fields: object) -> Callable[[Target], Target]:
    return lambda target: replace(target, **fields)  # type: ignore[arg-type]  # a table of fields


def fixed(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


KUBELET: Mapping[str, object] = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "restricted",
    "podPidsLimit": 4096,
    "cpuCFSQuota": False,
    "cpuCFSQuotaPeriod": "50ms",
    "imageGCHighThresholdPercent": 90,
    "imageGCLowThresholdPercent": 70,
    "containerLogMaxSize": "1Gi",
    "containerLogMaxFiles": 3,
    "allowedUnsafeSysctls": ("net.core.somaxconn",),
}
INTENT: Mapping[str, tuple[Edit, ...]] = {
    "instanceType": (Edit("instanceType", changed(machine=require_machine("aks", "Standard_NC8as_T4_v3"))),),
    "nodes.count": (
        Edit("nodes.count", changed(nodes=fixed(3))),
        Edit("nodes.count", changed(nodes=fixed(1)), "disruptive"),
        Edit("nodes.count", changed(nodes=fixed(0)), "disruptive"),
    ),
    "nodes.autoscaling.min": (
        Edit("nodes.autoscaling.min", changed(nodes=Nodes(1, 0, 3, autoscaled=True)), base="autoscaled"),
        Edit("nodes.autoscaling.min", changed(nodes=Nodes(1, 2, 3, autoscaled=True)), base="autoscaled"),
    ),
    "nodes.autoscaling.max": (
        Edit("nodes.autoscaling.max", changed(nodes=Nodes(1, 1, 9, autoscaled=True)), base="autoscaled"),
    ),
    "capacity.type": (Edit("capacity.type", changed(capacity=Capacity("spot"))),),
    "capacity.maxPrice": (Edit("capacity.maxPrice", changed(capacity=Capacity("spot", 0.75)), base="spot"),),
    "capacity.reserved.aks.capacityReservationGroup": (
        Edit(
            "capacity.reserved.aks.capacityReservationGroup",
            changed(capacity=Capacity("reserved", reservation=replace(GROUP, id=f"{GROUP.id}2"))),
            base="reserved",
        ),
    ),
    "zones": (Edit("zones", changed(zones=("1", "2"))),),
    "image": (
        Edit("image", changed(image="Ubuntu2404"), "disruptive"),
        Edit("image", changed(image="AzureLinux"), "disruptive"),
    ),
    "kubernetesVersion": (
        Edit("kubernetesVersion", changed(kubernetes_version="1.34.2")),
        Edit("kubernetesVersion", changed(kubernetes_version="1.34")),
        Edit("kubernetesVersion", changed(kubernetes_version="1.32.9"), "replace"),
    ),
    "maxPodsPerNode": (Edit("maxPodsPerNode", changed(max_pods=60)),),
    "upgrade.maxSurge": (
        Edit("upgrade.maxSurge", changed(upgrade=Upgrade("2"))),
        Edit("upgrade.maxSurge", changed(upgrade=Upgrade("33%"))),
    ),
    "upgrade.maxUnavailable": (Edit("upgrade.maxUnavailable", changed(upgrade=Upgrade(None, "1"))),),
    "disk.sizeGiB": (Edit("disk.sizeGiB", changed(disk=Disk(512, None))),),
    "disk.type": (Edit("disk.type", changed(disk=Disk(None, "Managed"))),),
    "placement": (
        Edit("placement", changed(placement=PLACED)),
        Edit("placement", changed(placement="none"), base="placed"),
    ),
    "sysctls[*]": (
        Edit("sysctls[vm.swappiness]", changed(sysctls={"vm/swappiness": "10"})),
        Edit("sysctls[net.ipv4.tcp_tw_reuse]", changed(sysctls={"net.ipv4.tcp_tw_reuse": "1"})),
    ),
    **{
        f"kubelet.{name}": (Edit(f"kubelet.{name}", changed(kubelet={name: value})),) for name, value in KUBELET.items()
    },
    "sharing.mig.profile": (
        Edit("sharing.mig.profile", changed(sharing=Sharing(MigCut("2g.10gb", "single"))), base="mig"),
        Edit("sharing.mig.profile", changed(sharing=Sharing()), base="mig"),
    ),
    "labels[*]": (
        Edit("labels[team]", changed(labels={"team": "audio"})),
        Edit("labels[team]", changed(labels={})),
        Edit("labels[tier]", changed(labels={"team": "vision", "tier": ""})),
        Edit("labels[tier]", changed(labels={"team": "vision", "tier": "a"}), base="spot"),
        Edit("labels[tier]", changed(labels={"tier": "a"}), base="mig"),
        Edit("labels[tier]", changed(labels={"tier": "a"}), base="managed"),
        Edit("labels[gpukube.io/pool]", changed(pool="renamed")),
    ),
    f"labels[{CONFIG}]": (
        Edit(f"labels[{CONFIG}]", owned={CONFIG: "c-2"}),
        Edit(f"labels[{CONFIG}]", owned={CONFIG: None}),
    ),
    "labels[nvidia.com/mig.config]": (
        Edit(
            "labels[nvidia.com/mig.config]", changed(labels={"team": "vision", "nvidia.com/mig.config": "all-1g.5gb"})
        ),
    ),
    f"labels[{ADVERTISER}]": (
        Edit(f"labels[{ADVERTISER}]", owned={ADVERTISER: "operator"}, kind="disruptive"),
        Edit(f"labels[{ADVERTISER}]", owned={ADVERTISER: None}, kind="disruptive"),
    ),
    "taints": (
        Edit("taints", changed(taints=(GPU_TAINT, Taint("dedicated", "x", "NoSchedule")))),
        Edit("taints", changed(taints=(GPU_TAINT, Taint("dedicated", "x", "NoExecute"))), "disruptive"),
        Edit("taints", changed(taints=())),
        Edit("taints", changed(taints=()), base="spot"),
    ),
    "tags[*]": (
        Edit("tags[cost]", changed(tags={"cost": "2"})),
        Edit("tags[team]", changed(tags={"cost": "1", "team": "x"})),
    ),
    "deletionProtection": (Edit("deletionProtection", changed(protect=True)),),
    "driver": (
        Edit("driver", live={"gpuProfile": {"driver": "None"}}),
        Edit("driver", changed(driver_owner="none", plugin_owner="none")),
        Edit("driver", changed(driver_owner="auto"), base="driverless"),
    ),
    "devicePlugin": (
        Edit("devicePlugin", changed(plugin_owner="cloud")),
        Edit("devicePlugin", changed(plugin_owner="auto"), base="managed"),
    ),
}
"""Row of `updates.INTENT_ROWS` -> edits that it covers."""

ROLLS = ("image", "aks.enableFIPS", "aks.localDNSProfile", "aks.artifactStreamingProfile", "kubernetesVersion")
SERVICE = {"eTag", "nodeImageVersion", "currentOrchestratorVersion"}


WHOLE: Mapping[str, object] = {
    "networkProfile.nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
    "networkProfile.allowedHostPorts": [{"portStart": 80, "portEnd": 90, "protocol": "TCP"}],
    "localDNSProfile.vnetDNSOverrides": {".": {"protocol": "ForceTCP"}},
    "localDNSProfile.kubeDNSOverrides": {"cluster.local": {"queryLogging": "Log"}},
}
"""Lists and maps, which are written as a whole."""


def native_edit(path: str, shape: Shape) -> Edit:
    words: Mapping[object, object] = {"bool": True, "int": 77, "str": "x", "strings": ["x"]}
    taken = LIMITS[path].example if path in LIMITS else WHOLE.get(path) or words.get(shape)
    value = shape[-1] if isinstance(shape, tuple) else taken
    assert value is not None, path

    def edit(target: Target) -> Target:
        top, *parents = path.split(".")
        inner = value
        for name in reversed(parents):
            inner = {name: inner}
        return replace(target, native={**target.native, top: inner})

    return Edit(f"aks.{path}", edit)


EDITS = [*itertools.chain(*INTENT.values()), *(native_edit(*leaf) for leaf in native_leaves())]


def kind_of(edit: Edit) -> UpdateKind:
    if edit.kind:
        return edit.kind
    for row, edits in INTENT.items():
        if edit in edits:
            return INTENT_ROWS[FieldPath.parse(row)].kind
    return find_row(Change(FieldPath(*edit.field.split(".")), None, None)).kind


def name_of(edit: Edit) -> str:
    return f"{edit.field}-{edit.base}"


MUTABLE = [edit for edit in EDITS if kind_of(edit) in ("in-place", "disruptive")]
OTHERS = [edit for edit in EDITS if kind_of(edit) not in ("in-place", "disruptive")]


def test_edits_when_compared_with_the_tables_leave_no_row_out() -> None:
    assert {FieldPath.parse(row) for row in INTENT} == INTENT_ROWS.keys()
    natives = {FieldPath(*edit.field.split(".")) for edit in EDITS if edit.field.startswith("aks.")}
    assert {row for row in NATIVE_ROWS if not any(field.is_below(*row) for field in natives)} == set()


@pytest.fixture(scope="module")
def lab(running_sandbox: SandboxInfo) -> Iterator[Lab]:
    """Give the module a cluster whose pools stay from test to test."""
    info = emptied(running_sandbox, SPEED)
    daemon.add_cluster(info, CLUSTER.identity["subscription"], "ml", "train")
    daemon.declare(info, "aks", resources=[GROUP.id, PLACED])
    cloud = PROVIDER.connect(CLUSTER, Settings({"aks": info.arm_url}, sandbox=True, secret=info.secret))
    assert isinstance(cloud, AksCloud)
    with kube_client(cloud) as kube:
        yield Lab(info, cloud, kube, BASES)
    cloud.close()


@pytest.fixture(scope="module")
def standing(lab: Lab) -> dict[str, Observed]:
    """One pool of every base, which nobody changes."""
    return {name: lab.create(replace(target, name=name)) for name, target in BASES.items()}


@pytest.mark.parametrize("edit", OTHERS, ids=name_of)
def test_edit_when_no_put_can_do_it_then_one_change_that_says_so(edit: Edit, standing: dict[str, Observed]) -> None:
    native = standing[edit.base].native
    properties = {**properties_of(standing[edit.base]), **(edit.live or {})}
    observed = observe_pool({**native, "properties": properties})
    desired = desire(edit.edit(replace(BASES[edit.base], name=edit.base)), edit.owned)
    (change,) = diff_fields(desired.fields, observed.fields)

    assert (str(change.field), PROVIDER.update_row(change).kind) == (edit.field, kind_of(edit))


@pytest.mark.turns(3)
@pytest.mark.parametrize("edit", MUTABLE, ids=name_of)
def test_edit_when_brought_about_then_one_change_and_nothing_else_moved(edit: Edit, lab: Lab) -> None:
    target = lab.fresh(edit.base)
    before, old_nodes = lab.find(target.name), lab.settled(target.name)
    desired = desire(edit.edit(target), edit.owned)
    (change,) = lab.bring_about(desired)
    after = lab.find(target.name)

    assert (str(change.field), PROVIDER.update_row(change).kind) == (edit.field, kind_of(edit))
    assert diff_fields(desired.fields, after.fields) == ()
    assert moved(before, after) == expected_to_move(change)
    new_nodes = lab.settled(target.name)
    assert bool(old_nodes.keys() & new_nodes.keys()) == (bool(new_nodes) and not edit.field.startswith(ROLLS))
    lab.drop(target.name)


def moved(before: Observed, after: Observed) -> set[str]:
    """Leaves of the wire form that are others now; what the service itself writes left out."""
    one, two = (dict(flat(properties_of(observed))) for observed in (before, after))
    return {name for name in {*one, *two} if one.get(name) != two.get(name)} - SERVICE


def flat(value: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flat(inner, f"{prefix}{name}/")
        else:
            yield prefix + name, inner


def expected_to_move(change: Change) -> set[str]:
    key = str(change.field).partition("[")[2].removesuffix("]")
    by_start = {
        "nodes.count": {"count"},
        "nodes.autoscaling.min": {"minCount"} if change.new == 0 else {"minCount", "count"},  # the autoscaler follows
        "nodes.autoscaling.max": {"maxCount"},
        "labels[gpukube.io/pool]": {f"nodeLabels/{key}", "tags/gpukube_pool"},  # with the copy of the marks
        "labels[": {f"nodeLabels/{key}"},
        "deletionProtection": {"nodeLabels/gpukube.io/protect", "tags/gpukube_protect"},
        "tags[cost]": {f"tags/{key}"},
        "tags[": {f"tags/{key}", "tags/gpukube_tags"},  # with the record of the names
        "taints": {"nodeTaints"},
        "image": {"osSKU"},
        "kubernetesVersion": {"orchestratorVersion"},
        "upgrade.": {f"upgradeSettings/{str(change.field).removeprefix('upgrade.')}"},
        "aks.": {"/".join(change.field[1:])},
    }
    if isinstance(change.new, Mapping):
        return {name for name, _ in flat(change.new, "/".join((*change.field[1:], "")))}
    return next(names for start, names in by_start.items() if str(change.field).startswith(start))


# Several things at once, and what comes in between.


def test_edit_of_many_fields_when_nodes_roll_too_then_the_rolls_come_last_and_alone(lab: Lab) -> None:
    target = lab.fresh("plain")
    newer = replace(target, kubernetes_version="1.34", image="Ubuntu2404", upgrade=Upgrade(max_surge="2"))
    desired = desire(replace(newer, nodes=fixed(3), labels={"team": "b"}))
    sent = cast("int", daemon.requests_since(lab.info)[-1]["index"])
    lab.bring_about(desired)
    puts = [entry for entry in daemon.requests_since(lab.info, sent) if entry["method"] == "PUT"]

    assert len(puts) == 3
    assert diff_fields(desired.fields, lab.find(target.name).fields) == ()
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in lab.settled(target.name).values()} == {"v1.34.2"}
    lab.drop(target.name)


def test_autoscaler_when_switched_on_and_off_then_the_count_is_kept_and_then_ours(lab: Lab) -> None:
    target = lab.fresh("plain")
    lab.bring_about(desire(replace(target, nodes=Nodes(1, 1, 5, autoscaled=True))))
    on = properties_of(lab.find(target.name))
    daemon.tamper(lab.info, "train", target.name, count=4)
    lab.bring_about(desire(replace(target, nodes=fixed(3))))
    off = properties_of(lab.find(target.name))

    assert (on["enableAutoScaling"], on["count"], on["minCount"], on["maxCount"]) == (True, 2, 1, 5)
    assert (off["enableAutoScaling"], off["count"]) == (False, 3)
    assert not off.keys() & {"minCount", "maxCount"}
    lab.drop(target.name)


def test_update_when_repeated_or_late_then_refused_as_moved(lab: Lab) -> None:
    target = lab.fresh("plain")
    desired, observed = desire(replace(target, labels={})), lab.find(target.name)
    (request,) = PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))
    lab.finish(lab.cloud.send(request))
    with pytest.raises(Conflict) as caught:
        lab.cloud.send(request)

    assert isinstance(caught.value, Moved)
    assert diff_fields(desired.fields, lab.find(target.name).fields) == ()
    lab.drop(target.name)


def test_update_when_the_cluster_is_busy_then_said_so_by_the_code_the_engine_waits_for(lab: Lab) -> None:
    target = lab.fresh("plain")
    desired, observed = desire(replace(target, labels={})), lab.find(target.name)
    request = PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))[0]
    daemon.add_fault(lab.info, "background", cluster="train", seconds=1e9, state="Updating")
    with pytest.raises(Conflict) as caught:
        lab.cloud.send(request)
    daemon.clear_faults(lab.info)

    assert isinstance(caught.value, Busy)
    lab.finish(lab.cloud.send(request))
    lab.drop(target.name)
