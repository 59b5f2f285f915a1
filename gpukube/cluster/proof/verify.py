"""Checks live nodes against the promised devices, and finds the missing step if the count is wrong.

In scope: a declared pool and one snapshot of its cluster -> PoolProof; pure. Out of scope: polling, and explaining
pods, counts, or the GPU Operator's labels (pods, counts, operator).

A successful Helm run proves nothing about GPUs: without nodes it succeeds immediately. Only nodes prove them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cluster.names import DRA_DRIVER, GPU_OPERATOR, NAMESPACE, kind_of
from gpukube.cluster.proof.checks import HINDERING, condition_details, node_checks
from gpukube.cluster.proof.claimable import (
    class_findings,
    device_checks,
    paused_findings,
    promised_counts,
    published_findings,
    relabelled_findings,
    twice_findings,
    with_stale_devices,
)
from gpukube.cluster.proof.counts import count_findings
from gpukube.cluster.proof.fabric import counted, fabric_findings, hugepage_checks, node_fabric_findings
from gpukube.cluster.proof.operator import (
    cut_findings,
    driver_findings,
    missing_labels,
    operator_findings,
)
from gpukube.cluster.proof.outcome import NodeProof, PoolProof, missing, step_of
from gpukube.cluster.proof.pods import pod_findings
from gpukube.cluster.proof.rivals import rival_findings
from gpukube.cluster.state.components import role_of, title_of
from gpukube.cluster.state.installers import missing_installer
from gpukube.cluster.state.published import NOTHING, published
from gpukube.cluster.state.reach import live_place, needed_roles, unreached
from gpukube.cluster.state.scaling import scaler_warnings
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_STATE_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.gpu.capacity import pool_capacity
from gpukube.gpu.plugin_config import plugin_config, render_config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.proof.outcome import ProofStatus
    from gpukube.cluster.state.published import Published
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Nodes, Taint
    from gpukube.errors import Finding

_APPLY = "gpukube pool create"
_MPS_PARTS = "MPS sharing needs the MPS daemon, and GPU feature discovery, whose label the daemon waits for"
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that Kubernetes and the cloud's controller set on new or unhealthy nodes, and remove again."""


def nodes_of(desired: Desired, nodes: Sequence[NodeView]) -> tuple[NodeView, ...]:
    """Return the nodes with the pool's labels, by name."""
    marks = (desired.target.owner, desired.target.pool)
    picked = [node for node in nodes if (node.labels.get(OWNER_LABEL), node.labels.get(POOL_LABEL)) == marks]
    return tuple(sorted(picked, key=lambda node: node.name))


def prove_pool(desired: Desired, seen: Snapshot) -> PoolProof:
    """Compare what a pool promises with what its nodes advertise.

    Args:
        desired: The pool; its promise, ownership, sharing, and effective taints are read.
        seen: A snapshot of its cluster.
    """
    nodes = nodes_of(desired, seen.nodes)
    requested = desired.promise.nodes
    promised = desired.promise.per_node if desired.managed else {}
    there = _published(nodes, seen)
    pool_findings = _pool_findings(desired, seen, nodes)
    per_node = tuple(_prove_node(desired, node, there.get(node.name, NOTHING), seen) for node in nodes)
    total: dict[str, int] = dict.fromkeys(promised, 0)
    for proof in per_node:
        for name, count in proof.seen.items():
            total[name] = total.get(name, 0) + count
    findings = (*pool_findings, *(finding for proof in per_node for finding in proof.findings))
    return PoolProof(
        cluster=desired.target.cluster.key,
        pool=desired.target.pool,
        status=_status(findings, nodes_seen=len(nodes), managed=desired.managed),
        nodes=requested,
        nodes_seen=len(nodes),
        per_node=per_node,
        findings=pool_findings,
        expected=pool_capacity({**promised, **_fabric_due(desired, per_node)}, requested.minimum, requested.maximum),
        total=total,
    )


def find_missing(desired: Desired, seen: Snapshot) -> list[Finding]:
    """Return only the findings of `prove_pool`: a diff of a fleet needs nothing else, and the rest is slower."""
    nodes = nodes_of(desired, seen.nodes)
    there = _published(nodes, seen)
    found = [*_pool_findings(desired, seen, nodes)]
    for node in nodes:
        found += _node_findings(desired, node, there.get(node.name, NOTHING), seen)
    return found


def _published(nodes: Sequence[NodeView], seen: Snapshot) -> Mapping[str, Published]:
    return published(seen.slices, {node.name for node in nodes}) if seen.slices else {}


def _fabric_due(desired: Desired, nodes: Sequence[NodeProof]) -> dict[str, int]:
    """Return the devices of the fast network that each node must have; those with names from the cluster if short."""
    fabric = desired.fabric
    if fabric is None or (nodes and not any(fabric.resource in node.expected for node in nodes)):
        return {}
    return {fabric.resource: fabric.count}


def _pool_findings(desired: Desired, seen: Snapshot, nodes: Sequence[NodeView]) -> tuple[Finding, ...]:
    return (
        *_cluster_findings(desired, seen, len(nodes)),
        *_number_findings(desired, len(nodes)),
        *_scaler_findings(desired, seen),
        *fabric_findings(desired, nodes, seen),
    )


def _status(findings: Sequence[Finding], *, nodes_seen: int, managed: bool) -> ProofStatus:
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "broken"
    if "warning" in severities:
        return "waiting"
    if any(step_of(finding) == "fabric" for finding in findings):
        return "no-fabric"
    if not managed:
        return "unmanaged"
    return "proven" if nodes_seen else "empty"


def _number_findings(desired: Desired, present: int) -> list[Finding]:
    expected: Nodes = desired.promise.nodes
    where = desired.target.where.source
    if present < expected.minimum:
        return [missing(where, "node", "warning", f"{present} of {expected.minimum} nodes are in the cluster")]
    if present > expected.maximum:
        seen = f"{present} nodes are in the cluster, at most {expected.maximum} expected"
        return [missing(where, "node", "hint", seen, "a surge node of an upgrade, or the pool was scaled by hand")]
    return []


def _scaler_findings(desired: Desired, seen: Snapshot) -> list[Finding]:
    """Find an autoscaled pool whose nodes nothing starts; existing nodes work regardless."""
    return [
        missing(found.where.source, "node", "hint", found.seen, found.why, found.fix)
        for found in scaler_warnings(seen, [desired])
    ]


def _cluster_findings(desired: Desired, seen: Snapshot, nodes: int) -> list[Finding]:
    """Find what the cluster lacks before any node exists; verifies a pool that scales from zero."""
    kind = kind_of(desired.ownership.advertiser)
    if kind is None:
        return []
    operator = operator_findings(seen, nodes=nodes) if GPU_OPERATOR.serves(desired.ownership) else []
    if kind is DRA_DRIVER:
        return [
            *operator,
            *_installer_findings(desired, seen),
            *_driver_release_findings(seen),
            *class_findings(desired, seen),
        ]
    release = operator if kind is GPU_OPERATOR else _release_findings(desired, seen, kind)
    return [*release, *_entry_findings(desired, seen, kind)]


def _installer_findings(desired: Desired, seen: Snapshot) -> list[Finding]:
    found = missing_installer(seen, desired)
    return [missing(found.where.source, "driver", found.severity, found.seen, found.why, found.fix)] if found else []


def _driver_release_findings(seen: Snapshot) -> list[Finding]:
    if seen.plugin_of(DRA_DRIVER) is not None:
        return []
    message, means = f"{DRA_DRIVER.title} has no DaemonSet", "the release is not installed, or it was deleted"
    return [missing(f"{NAMESPACE}/{DRA_DRIVER.plugin}", "placement", "error", message, means, _APPLY)]


def _release_findings(desired: Desired, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    """Find missing DaemonSets that the devices depend on."""
    if seen.plugin_of(kind) is None:
        return [
            missing(
                f"{NAMESPACE}/{kind.plugin}",
                "placement",
                "error",
                "the device plugin has no DaemonSet",
                "the release is not installed, or its DaemonSet was deleted",
                _APPLY,
            )
        ]
    there = {role_of(item) for item in seen.daemonsets if item.namespace == NAMESPACE}
    return [
        missing(NAMESPACE, "features", "error", f"{title_of(role)} has no DaemonSet", _MPS_PARTS, _APPLY)
        for role, vital in needed_roles(desired).items()
        if vital and role not in there
    ]


def _entry_findings(desired: Desired, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    key = desired.ownership.config_key
    entries = seen.entries_of(kind) or {}
    where = f"{NAMESPACE}/{kind.config_map}"
    if key not in entries:
        has = ", ".join(sorted(entries)) or "none"
        means = "a node label that names a missing entry makes the plugin exit on that node"
        return [missing(where, "config-entry", "error", f"there is no entry {key}, only {has}", means, _APPLY)]
    if entries[key].strip() != render_config(plugin_config(desired.target.sharing)).strip():
        means = "it was edited by hand, and the plugin uses it"
        return [missing(where, "config-entry", "error", f"entry {key} differs from this pool's sharing", means, _APPLY)]
    return []


def _prove_node(desired: Desired, node: NodeView, there: Published, seen: Snapshot) -> NodeProof:
    promised = desired.promise.per_node if desired.managed else {}
    due, network = counted(desired, node)
    devices = {**node.devices, **promised_counts(desired, there)}
    shown = {name: count for name, count in devices.items() if count or name in promised}
    findings = tuple(_node_findings(desired, node, there, seen))
    checks = (*node_checks(desired, node, seen), *hugepage_checks(desired, node), *device_checks(there))
    return NodeProof(node.name, {**promised, **due}, {**shown, **network}, findings, checks)


def _node_findings(desired: Desired, node: NodeView, there: Published, seen: Snapshot) -> list[Finding]:
    """Check the steps in order; the first missing one explains those after it, so only it is reported."""
    if not node.ready:
        seen_state = node.conditions.get("Ready", "not reported")
        cutting = node.labels.get(MIG_STATE_LABEL) == "rebooting"
        means = "it reboots to apply MIG" if cutting else "it boots, or reboots to apply MIG"
        message = f"the node's Ready condition is {seen_state}{condition_details(node, 'Ready')}"
        fix = f"kubectl describe node {node.name}" if "Ready" in node.condition_views else ""
        return [missing(node.name, "ready", "warning", message, means, fix)]
    hindered = [name for name in HINDERING if node.conditions.get(name) == "True"]
    if hindered:
        conditions = " and ".join(f"{name}{condition_details(node, name)}" for name in hindered)
        means = "no new pod starts there"
        return [
            missing(node.name, "ready", "warning", f"it has {conditions}", means, f"kubectl describe node {node.name}")
        ]
    found = _device_findings(desired, node, there, seen) if desired.managed else []
    if any(finding.severity != "hint" for finding in found):
        return found
    return [*found, *node_fabric_findings(desired, node, seen)]


def _device_findings(desired: Desired, node: NodeView, there: Published, seen: Snapshot) -> list[Finding]:
    if others := [*relabelled_findings(desired, node), *twice_findings(desired, node, there, seen)]:
        return others[:1]
    kind = kind_of(desired.ownership.advertiser)
    before = _steps_before_count(desired, node, seen, kind) if kind else _clouds_steps(desired, node, seen)
    hard = [finding for finding in before if finding.severity != "hint"]
    if hard and kind is DRA_DRIVER:
        return [with_stale_devices(hard[0], node, there, seen)]
    return hard[:1] or [*before, *_wrong_devices(desired, node, there, seen)]


def _wrong_devices(desired: Desired, node: NodeView, there: Published, seen: Snapshot) -> list[Finding]:
    kind = kind_of(desired.ownership.advertiser)
    if kind is DRA_DRIVER:
        return published_findings(desired, node, there)
    rivals = rival_findings(desired, node, seen, kind) if kind else []
    return rivals or count_findings(desired, node)


def _steps_before_count(desired: Desired, node: NodeView, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    plugin = seen.plugin_of(kind)
    operated, claimed = GPU_OPERATOR.serves(desired.ownership), kind is DRA_DRIVER
    cut = cut_findings(desired, node) if operated else []
    # While it applies a layout, the manager removes the plugin's pod; the DRA driver's starts only once it is done.
    begun = [finding for finding in cut if claimed or step_of(finding) != "features"]
    return [
        *_label_findings(desired, node, seen, kind),
        *begun,
        *_part_findings(desired, node, seen),
        *(missing_labels(node) if kind is GPU_OPERATOR else ()),
        *(driver_findings(desired, node, seen.pods) if operated else ()),
        *(paused_findings(node) if claimed and operated else ()),
        *(_placement_findings(desired, node, plugin) if plugin else ()),
        *pod_findings(desired, node, seen, kind),
        *(finding for finding in cut if finding not in begun),
    ]


def _clouds_steps(desired: Desired, node: NodeView, seen: Snapshot) -> list[Finding]:
    """Find what keeps the cloud's own plugin off a node without devices; skip a plugin without a DaemonSet."""
    if any(node.devices.values()):
        return []
    return [
        missing(
            node.name,
            "placement",
            "error",
            f"{title_of(stuck.role)} cannot run here: {stuck.why_not}",
            "a label of the node or its pool excludes the plugin",
            f"kubectl get node {node.name} --show-labels, and gpukube pool plan diff",
        )
        for stuck in unreached(desired, [live_place(node)], seen.daemonsets)
    ]


def _label_findings(desired: Desired, node: NodeView, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    found = []
    advertiser = node.labels.get(ADVERTISER_LABEL, "")
    if advertiser != kind.advertiser:
        means = "the release selects its nodes by it; nodes get the pool's labels at creation"
        message = f"label {ADVERTISER_LABEL} is {advertiser or 'absent'}, not {kind.advertiser}"
        expected = f"{ADVERTISER_LABEL}={kind.advertiser}"
        fix = f"kubectl label node {node.name} {expected} --overwrite, and gpukube pool plan diff"
        found.append(missing(node.name, "advertiser-label", "error", message, means, fix))
    key, expected = node.labels.get(CONFIG_LABEL, ""), desired.ownership.config_key
    if expected and key != expected:
        known = key in (seen.entries_of(kind) or {})
        means = (
            "without it the node advertises whole GPUs"
            if not key
            else "the node uses other sharing"
            if known
            else "there is no such entry: the plugin exits on this node"
        )
        message = f"label {CONFIG_LABEL} is {key}, not {expected}" if key else f"no label {CONFIG_LABEL}"
        fix = f"kubectl label node {node.name} {CONFIG_LABEL}={expected} --overwrite, and gpukube pool plan diff"
        found.append(missing(node.name, "config-label", "error", message, means, fix))
    return found


def _part_findings(desired: Desired, node: NodeView, seen: Snapshot) -> list[Finding]:
    """Find components that a taint keeps away; a label they wait for is reported where it is missing."""
    found = []
    vital = needed_roles(desired)
    for stuck in unreached(desired, [live_place(node)], seen.daemonsets):
        taints = [str(taint) for taint in stuck.taints if not _passes(taint)]
        if stuck.role in ("plugin", "dra") or not taints:  # the driver's own placement follows
            continue
        message = f"{title_of(stuck.role)} cannot run here: {stuck.why_not}"
        means = (
            "without it no device is advertised" if vital[stuck.role] else "without it only feature labels are missing"
        )
        fix = _tolerated(desired, node, stuck.taints)
        found.append(missing(node.name, "features", "error" if vital[stuck.role] else "hint", message, means, fix))
    return found


def _tolerated(desired: Desired, node: NodeView, taints: Sequence[Taint]) -> str:
    """Return the command for taints that keep a component away; the release tolerates those of the pool."""
    foreign = [taint for taint in taints if taint not in desired.effective_taints and not _passes(taint)]
    return f"kubectl taint node {node.name} {' '.join(f'{taint}-' for taint in foreign)}" if foreign else _APPLY


def _passes(taint: Taint) -> bool:
    return taint.key.startswith(_PASSING)


def _placement_findings(desired: Desired, node: NodeView, plugin: WorkloadView) -> list[Finding]:
    reasons = daemon_misfits(plugin.placement, node.labels, node.taints, name=node.name)
    if not reasons:
        return []
    if all(reason.taint and _passes(reason.taint) for reason in reasons):
        names = ", ".join(str(reason.taint) for reason in reasons)
        return [
            missing(node.name, "ready", "warning", f"the node still has {names}", "Kubernetes removes it automatically")
        ]
    taints = [str(reason.taint) for reason in reasons if reason.taint]
    seen = "; ".join(reason.message for reason in reasons)
    if taints:
        means = f"the release does not tolerate {', '.join(taints)}; it tolerates only taints in the spec"
        fix = _tolerated(desired, node, [reason.taint for reason in reasons if reason.taint])
    else:
        means, fix = "the DaemonSet was edited by hand", _APPLY
    return [missing(node.name, "placement", "error", f"the plugin cannot run here: {seen}", means, fix)]
