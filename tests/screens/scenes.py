"""Clusters with everything that can happen to a pool, made by hand, so that the screens of them are stable.

In scope: plans, live views and reports as the engine would hand them over. Out of scope: assertions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import NodeView
from gpukube.cluster.proof.outcome import NodeProof, PoolProof, missing
from gpukube.cluster.release.plan import ReleasePlan, ValueChange
from gpukube.cluster.state.node_drift import NodeRepair
from gpukube.cluster.state.release_drift import Drift
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import LEAST, MOST, FieldPath
from gpukube.core.values import (
    OWNER_LABEL,
    POOL_LABEL,
    Change,
    ClassifiedChange,
    ClusterFacts,
    Desired,
    Loss,
    Nodes,
    Observed,
    Ownership,
    PoolPlan,
    Promise,
    Replacement,
    Request,
    UpdateRow,
)
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CapacityError, CloudError, ClusterError, Finding, Where
from gpukube.gpu.sharing import MigCut, Sharing
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Action, Obstacle, UpdateKind

ND, T4 = "Standard_ND96asr_v4", "Standard_NC4as_T4_v3"
FACTS: Final = ClusterFacts("westeurope", "1.34.2", ready=True, status="Succeeded")
SECOND: Final = replace(CLUSTER, key="batch-aks", name="batch")
THIRD: Final = replace(CLUSTER, key="lost-aks", name="lost")
OURS: Final = Ownership("cloud", "chart", "c-1a2b3c4d5e", {}, "no cloud plugin runs on AKS: the chart advertises")
UPDATE: Final = "agent_pools.begin_create_or_update"
WARNINGS: Final = (
    Finding(
        "aks-name-length",
        Where("pools.yaml", 9, 11),
        '"trainingpool" has no room for a suffix',
        why="a replacement needs one",
        fix="write a name of at most 10 characters",
        severity="warning",
    ),
)


class Written:
    """A locator that knows the lines of a file of the user's."""

    def __init__(self, line: int) -> None:
        self._line = line

    def at(self, path: str) -> Where:
        return Where("pools.yaml", self._line + len(path) % 7, 5)


def wanted(name: str, machine: str = T4, devices: Mapping[str, int] | None = None, **changes: object) -> Desired:
    target = make_target(machine, pool=name, name=name, locator=Written(10), **changes)
    body = {"properties": {"vmSize": machine, "count": target.nodes.count}}
    call = Request("aks", UPDATE, {"resource_group_name": "ml", "agent_pool_name": name, "body": body})
    return Desired(target, OURS, Promise(devices or {"nvidia.com/gpu": 1}, target.nodes), {}, {}, (), call)


def live(name: str, machine: str = T4, nodes: int | None = 1, **changes: object) -> Observed:
    found = Observed(
        name, "ml-platform", name, False, "ready", "Succeeded", "", {}, nodes, {}, (), machine, "1", {}  # noqa: FBT003
    )  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]  # test data


def change(field: str, old: object, new: object, kind: UpdateKind, sentence: str) -> ClassifiedChange:
    return ClassifiedChange(
        Change(FieldPath.parse(field), old, new), UpdateRow(FieldPath.parse(field), kind, sentence, UPDATE, "docs")
    )


def node(name: str, pool: str, devices: Mapping[str, str], *, ready: bool = True) -> NodeView:
    labels = {OWNER_LABEL: "ml-platform", POOL_LABEL: pool}
    conditions = {"Ready": "True" if ready else "False"}
    return NodeView(name, labels, (), devices, devices, conditions, "Ubuntu 24.04", "2026-11-21T10:00:00Z")


def pool(  # noqa: PLR0913, PLR0917 - the parts of a plan
    action: Action,
    why: str,
    desired: Desired | None,
    observed: Observed | None = None,
    changes: tuple[ClassifiedChange, ...] = (),
    diagnostics: tuple[Finding, ...] = (),
    loss: Loss | None = None,
    capacity: Mapping[str, int] | None = None,
    obstacle: Obstacle | None = None,
    replacement: Replacement | None = None,
) -> PoolPlan:
    name = observed.name if observed else desired.target.name if desired else ""
    body = {"properties": {"nodeLabels": {"note": "a `tick` | a pipe"}}}
    calls = {
        "create": (desired.create,) if desired else (),
        "update": (Request("aks", UPDATE, {"agent_pool_name": name, "etag": "1", "body": body}),),
        "delete": (Request("aks", "agent_pools.begin_delete", {"agent_pool_name": name, "etag": "1"}),),
    }
    return PoolPlan(
        cluster=CLUSTER,
        pool=name,
        name=name,
        action=action,
        why=why,
        desired=desired,
        observed=observed,
        changes=changes,
        requests=calls.get(action, ()),
        diagnostics=diagnostics,
        loss=loss,
        capacity=capacity,
        obstacle=obstacle,
        replacement=replacement,
    )


MIG: Final = wanted("a100mig", ND, {"nvidia.com/gpu": 56}, sharing=Sharing(MigCut("1g.5gb", "single")))
ELASTIC: Final = wanted("t4elastic", nodes=Nodes(1, 0, 5, autoscaled=True), zones=("1", "2"))
FOREIGN: Final = Finding(
    "foreign-pool",
    Where("train-aks/found"),
    'a pool named "found" exists on train-aks and is not marked as ours',
    fix="choose another name for the pool (names: {aks: ...}), or take it over with --adopt",
    why="gpukube changes and deletes only pools of the spec's owner",
)
MANY_PODS: Final = tuple(f"research/train-{n}" for n in range(9))
POOLS: Final = (
    pool("create", "the pool does not exist", MIG),
    pool(
        "update",
        "differs in labels[team]",
        wanted("t4label"),
        live("t4label"),
        (change("labels[team]", "vision", "audio | video", "in-place", "changes at once; running pods stay"),),
        capacity={"nvidia.com/gpu": 1},
    ),
    pool(
        "update",
        "differs in kubernetesVersion",
        wanted("t4new", nodes=Nodes(2, 2, 2, autoscaled=False)),
        live("t4new", nodes=2),
        (change("kubernetesVersion", "1.33", "1.34", "disruptive", "makes every node again, one after the other"),),
        loss=Loss(2, 2.0, ("research/notebook-0",)),
        capacity={"nvidia.com/gpu": 2},
    ),
    pool(
        "replace",
        "differs in sharing.mig.profile; sharing.mig.profile cannot change on a live pool",
        wanted("a100cut", ND, {"nvidia.com/mig-2g.10gb": 24}),
        live("a100cut", ND, 2),
        (
            change(
                "sharing.mig.profile", "1g.5gb", "2g.10gb", "replace", "AKS sets gpuInstanceProfile at creation only"
            ),
        ),
        loss=Loss(2, 16.0, MANY_PODS),
        capacity={"nvidia.com/mig-1g.5gb": 112},
        replacement=Replacement("a100cutb", wanted("a100cutb", ND, {"nvidia.com/mig-2g.10gb": 24})),
    ),
    pool(
        "delete",
        'belongs to "ml-platform", which no longer declares it',
        None,
        live("t4old", nodes=3),
        loss=Loss(3, 3.0, ()),
        capacity={"nvidia.com/gpu": 3},
    ),
    pool(
        "adopt",
        "it has no gpukube.io/owner label and matches the spec; adopted",
        wanted("t4mine"),
        live("t4mine", owner="", pool=""),
    ),
    pool(
        "conflict",
        FOREIGN.seen,
        wanted("found"),
        live("found", owner="", pool=""),
        diagnostics=(FOREIGN,),
        obstacle="foreign",
    ),
    pool("no-op", "matches the spec", ELASTIC, live("t4elastic", nodes=1), capacity={"nvidia.com/gpu": 0}),
)
RELEASE: Final = ReleasePlan(
    action="upgrade",
    reason="2 values differ",
    values={"config": {"map": {"c-1a2b3c4d5e": "version: v1", "default": "version: v1"}}},
    old_values={},
    changes=(
        ValueChange("config.map.c-1a2b3c4d5e", None, "version: v1\nflags:\n  migStrategy: single\n"),
        ValueChange("gfd.enabled", False, True),  # noqa: FBT003 - a value
    ),
    revision=3,
    drift=(
        Drift("ConfigMap gpukube-nvidia-device-plugin-configs", "data[c-1a2b3c4d5e]", "version: v1\n", "version: v2\n"),
        Drift("DaemonSet gpukube-nvidia-device-plugin-gpu-feature-discovery", "", {"kind": "DaemonSet"}, None),
    ),
)
REPAIRS: Final = (
    NodeRepair("aks-t4elastic-0", "t4elastic", "label", "nvidia.com/device-plugin.config", "c-1a2b3c4d5e", None),
    NodeRepair("aks-t4elastic-0", "t4elastic", "taint", "nvidia.com/gpu", "present", "absent", "NoSchedule"),
)
SEEN: Final = Snapshot(
    nodes=(
        node("aks-t4elastic-0", "t4elastic", {"nvidia.com/gpu": "0"}, ready=False),
        node("aks-t4label-0", "t4label", {"nvidia.com/gpu": "1"}),
        node("aks-t4new-0", "t4new", {"nvidia.com/gpu": "1"}),
        node("aks-t4new-1", "t4new", {"nvidia.com/gpu": "1"}),
    )
)
UNREACHABLE: Final = ClusterError("the API server did not answer in 20 s", where="batch-aks")
PLANS: Final = (
    ClusterPlan(
        CLUSTER,
        FACTS,
        POOLS,
        undeclared=(live("t4stray"),),
        seen=SEEN,
        release=RELEASE,
        repairs=REPAIRS,
        diagnostics=(
            Finding(
                "foreign-advertiser",
                Where("train-aks"),
                "DaemonSet kube-system/nvidia-device-plugin-daemonset could land on nodes of a100mig",
                why="two plugins on one node advertise every GPU twice",
                fix="kubectl -n kube-system delete daemonset nvidia-device-plugin-daemonset",
            ),
        ),
    ),
    ClusterPlan(
        SECOND,
        FACTS,
        (replace(pool("no-op", "matches the spec", wanted("t4"), live("t4")), cluster=SECOND),),
        unknown="the API server did not answer in 20 s",
        unreachable=UNREACHABLE,
    ),
    ClusterPlan(
        THIRD,
        error=CloudError(
            'no cluster "lost" in resource group ml', where="lost-aks", fix="check its name", code="no-cluster"
        ),
        desired=(wanted("t4lost", nodes=Nodes(0, 0, 4, autoscaled=True)),),
    ),
)
SAME: Final = (
    ClusterPlan(CLUSTER, FACTS, (pool("no-op", "matches the spec", wanted("t4"), live("t4")),), seen=Snapshot()),
)

LIVE: Final = (
    ClusterPlan(
        CLUSTER,
        FACTS,
        live=(
            live("a100mig", ND, 2),
            live("t4shared", nodes=2, fields={LEAST: 0, MOST: 5}, protected=True),
            live("broken", state="failed", status="Failed", failure="SkuNotAvailable: no T4 in zone 1"),
            live("theirs", ND, 1, owner="another-team", pool="theirs"),
            live("unmarked", owner="", pool=""),
        ),
        seen=Snapshot(
            nodes=(
                node("aks-a100mig-0", "a100mig", {"nvidia.com/gpu": "56"}),
                node("aks-a100mig-1", "a100mig", {"nvidia.com/gpu": "56"}),
                node("aks-t4shared-0", "t4shared", {"nvidia.com/gpu": "4"}),
                node("aks-t4shared-1", "t4shared", {"nvidia.com/gpu": "4"}, ready=False),
            )
        ),
    ),
    ClusterPlan(SECOND, FACTS, live=(live("t4"),), unknown="the API server did not answer in 20 s"),
    PLANS[2],
)
USAGE: Final = {"train-aks": {"aks-a100mig-0": {"nvidia.com/gpu": 50}, "aks-t4shared-0": {"nvidia.com/gpu": 3}}}

RESUME: Final = "gpukube pool apply -f pools.yaml --yes"
PROVEN: Final = PoolProof(
    "train-aks",
    "a100mig",
    "proven",
    Nodes(1, 1, 1, autoscaled=False),
    1,
    (NodeProof("aks-a100mig-0", {"nvidia.com/gpu": 56}, {"nvidia.com/gpu": 56}, ()),),
    (),
    {"nvidia.com/gpu": (56, 56)},
    {"nvidia.com/gpu": 56},
)
UNPROVEN: Final = replace(
    PROVEN,
    pool="t4bad",
    status="broken",
    per_node=(
        NodeProof(
            "aks-t4bad-0",
            {"nvidia.com/gpu": 4},
            {"nvidia.com/gpu": 1},
            (missing("aks-t4bad-0", "config-label", "error", "the node names no configuration"),),
        ),
    ),
    expected={"nvidia.com/gpu": (4, 4)},
    total={"nvidia.com/gpu": 1},
)
NO_ROOM: Final = CapacityError(
    "no Standard_ND96asr_v4 in westeurope (AllocationFailed)",
    where="train-aks/a100big",
    fix="add zones [2, 3], or capacity.type: spot",
)
REPORTS: Final = (
    ClusterReport(
        CLUSTER,
        (
            PoolReport("a100mig", "a100mig", "done", "created", proof=PROVEN),
            PoolReport("t4", "t4", "unchanged", "as declared"),
            PoolReport(
                "t4slow",
                "t4slow",
                "started",
                "requested; no longer watched",
                resume="gpukube pool wait -f pools.yaml",
            ),
            PoolReport("t4label", "t4label", "differs", "is ours and differs", changes=POOLS[1].changes),
            PoolReport("a100big", "a100big", "failed", "could not be created", error=NO_ROOM, resume=RESUME),
            PoolReport(
                "t4bad",
                "t4bad",
                "failed",
                "differs",
                proof=UNPROVEN,
                error=ClusterError("4 promised, 1 seen", where="train-aks/t4bad", code="unproven"),
            ),
            PoolReport("t4late", "t4late", "not-attempted", "no request was sent", resume=RESUME),
            PoolReport("t4lost", "t4lost", "unknown", "create: a call was in flight", resume=RESUME),
        ),
        "release gpukube-system/gpukube-nvidia-device-plugin: upgraded to revision 4",
    ),
    ClusterReport(THIRD, (), error=PLANS[2].error),
)
