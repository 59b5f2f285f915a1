"""Finds what overrides gpukube's plugin on a node: another plugin, or a strategy forced on it.

In scope: findings for a node whose count is wrong, reported before any about its GPUs; pure. Out of scope: other
plugins that a plan rejects (state.advertisers), and the counts themselves (counts).

If a node has two plugins, the kubelet keeps the last one that registered a name, so the count is the other plugin's,
and its settings are not the pool's (NVIDIA/k8s-device-plugin#255). MIG_STRATEGY in the plugin's environment overrides
the strategy of its config entry (NVIDIA/k8s-device-plugin v0.20.0: command line, environment, file).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.proof.outcome import missing
from gpukube.cluster.state.advertisers import keep_one, remove_plugin
from gpukube.cluster.state.components import role_of
from gpukube.cluster.state.scheduling import lands_on

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_PLUGINS: Final = ("plugin", "cloud-plugin")
_STRATEGY: Final = "MIG_STRATEGY"


def rival_findings(desired: Desired, node: NodeView, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    """Return what else affects a node's devices; empty if they match the promise, or nothing does."""
    expected = desired.promise.per_node
    wrong = [name for name, count in sorted(expected.items()) if node.devices.get(name, 0) != count]
    unexpected = [name for name, count in node.devices.items() if count and name not in expected]
    if wrong:
        seen_count = f"{wrong[0]} is {node.devices.get(wrong[0], 0)}, not {expected[wrong[0]]}"
    elif unexpected:  # under strategy mixed another plugin's whole GPUs do not affect the profile counts
        seen_count = f"{unexpected[0]}: {node.devices[unexpected[0]]} is advertised too"
    else:
        return []
    return [*_others(node, seen, kind, seen_count), *_forced(desired, node, seen, kind, seen_count)][:1]


def _others(node: NodeView, seen: Snapshot, kind: ReleaseKind, count: str) -> list[Finding]:
    own = seen.plugin_of(kind)
    others = [
        item for item in seen.daemonsets if role_of(item) in _PLUGINS and item is not own and lands_on(item, node)
    ]
    return [
        missing(
            node.name,
            "count",
            "error",
            f"{count}; {item} advertises here too",
            "two plugins on one node: the kubelet keeps the last registration",
            keep_one([own, *others], seen, node.name) if own else remove_plugin(item, node.name),
        )
        for item in others[:1]
    ]


def _forced(desired: Desired, node: NodeView, seen: Snapshot, kind: ReleaseKind, count: str) -> list[Finding]:
    plugin = seen.plugin_of(kind)
    forced = next((part.env[_STRATEGY] for part in plugin.containers if part.env.get(_STRATEGY)), "") if plugin else ""
    mig = desired.target.sharing.mig
    expected = mig.strategy if mig else "none"
    if not plugin or not forced or forced == expected or (kind is not DEVICE_PLUGIN and mig is None):
        return []  # the operator sets one strategy for all; pools without MIG show the same with any
    fix = (
        f"kubectl -n {NAMESPACE} set env daemonset/{plugin.name} {_STRATEGY}-"
        if kind is DEVICE_PLUGIN
        else f"kubectl get clusterpolicy {CLUSTER_POLICY} --output yaml (spec.mig.strategy), and gpukube pool plan diff"
    )
    message = f"{count}; {_STRATEGY}={forced} is set on DaemonSet {plugin.name}"
    means = f"the environment overrides the config entry, which has {expected}"
    return [missing(node.name, "count", "error", message, means, fix)]
