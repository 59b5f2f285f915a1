"""Compares a node with what the spec expects, whether or not a difference does any harm.

In scope: labels, taints, conditions, the plugin's pod, and the other components, as pairs of expected and observed
values; pure. Out of scope: what a difference means and what causes it (verify and its modules).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import kind_of
from gpukube.cluster.proof.outcome import Check
from gpukube.cluster.state.components import role_of, title_of
from gpukube.cluster.state.reach import live_place, needed_roles, unreached
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired

_TROUBLES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
"""Conditions that are False on a healthy node; clouds add their own."""
HINDERING: Final = ("DiskPressure", "NetworkUnavailable")
"""Conditions that block every new pod while True: the controllers taint the node (Kubernetes documentation, "Taints and
Tolerations", Taint Nodes by Condition)."""
_SOFT: Final = "PreferNoSchedule"


def node_checks(desired: Desired, node: NodeView, seen: Snapshot) -> tuple[Check, ...]:
    """Compare everything on a node except its devices."""
    return (
        *_conditions(node),
        *_labels(desired, node),
        *_taints(desired, node),
        *_plugin_pod(desired, node, seen),
        *_parts(desired, node, seen),
    )


def _conditions(node: NodeView) -> Iterator[Check]:
    ready = node.conditions.get("Ready", "")
    yield Check("condition Ready", "True", ready, holds=node.ready)
    for name in (*_TROUBLES, *(name for facts in in_cluster_facts() for name in facts.conditions)):
        if node.conditions.get(name, "False") != "False":
            yield Check(f"condition {name}", "False", node.conditions[name], holds=False)


def condition_details(node: NodeView, condition: str) -> str:
    """Return since when a node's condition holds, and its reason and message; "" if the node reports neither."""
    details = node.condition_views.get(condition)
    if details is None:
        return ""
    return (f" since {details.since}" if details.since else "") + (f" ({details})" if str(details) else "")


def _labels(desired: Desired, node: NodeView) -> Iterator[Check]:
    for key, expected in sorted(desired.ownership.labels.items()):
        value = node.labels.get(key, "")
        yield Check(f"label {key}", expected, value, holds=value == expected)


def _taints(desired: Desired, node: NodeView) -> Iterator[Check]:
    """Compare taints; unexpected ones count only if they block pods."""
    for taint in sorted(desired.effective_taints):
        there = taint in node.taints
        yield Check(f"taint {taint}", "present", "present" if there else "", holds=there)
    for taint in sorted(node.taints):
        if taint not in desired.effective_taints and taint.effect != _SOFT:
            yield Check(f"taint {taint}", "", "present", holds=False)


def _plugin_pod(desired: Desired, node: NodeView, seen: Snapshot) -> Iterator[Check]:
    kind = kind_of(desired.ownership.advertiser)
    if kind is None:
        return
    here = [pod for pod in seen.pods if pod.node == node.name and pod.owner == kind.plugin and not pod.terminating]
    state = "" if not here else "ready" if here[-1].ready else here[-1].phase
    yield Check("plugin pod", "ready", state, holds=state == "ready")


def _parts(desired: Desired, node: NodeView, seen: Snapshot) -> Iterator[Check]:
    """Compare whether the pods of the other components can run here; skip components that do not exist."""
    place = live_place(node)
    needed = needed_roles(desired)
    stuck = {found.role: found for found in unreached(desired, [place], seen.daemonsets)}
    there = {role_of(item) for item in seen.daemonsets}
    for role in needed:
        if role not in ("plugin", "dra") and role in there:
            result = stuck[role].why_not if role in stuck else "schedulable"
            yield Check(title_of(role).removeprefix("the "), "schedulable", result, holds=role not in stuck)
