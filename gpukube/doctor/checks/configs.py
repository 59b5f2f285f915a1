"""Checks of the plugin's config entries: which ones nodes select, whether they exist, and what they contain.

In scope: pure checks, and which entry a node uses. Out of scope: pods that fail because of an entry (plugins).

Source: NVIDIA/k8s-device-plugin v0.20.0 README, api/config/v1 and cmd/config-manager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import Reconcile, fault
from gpukube.core.jsontree import at, items, number, text, tree
from gpukube.core.owners import CONFIG_LABEL
from gpukube.core.values import OWNER_LABEL
from gpukube.core.yamltext import parse_yaml
from gpukube.doctor.check import APPLY, Checks
from gpukube.doctor.checks.placement import lost_labels
from gpukube.doctor.gpu_stack import entries_for, environment_of, gpu_nodes, plugins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

_STRATEGIES: Final = ("", "none", "single", "mixed")
_MOST_MPS: Final = 48
_FALLBACK: Final = "default"

_README: Final = "https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md"

CHECKS: Final = Checks(needs=("nodes", "daemonsets", "config-maps"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The config entry that a node selects.

    Attributes:
        key: Entry named by the node's label, or the plugin's default; "" if neither is set.
        labelled: Whether the label names it.
        wrong: Whether the entry does not exist.
    """

    key: str
    labelled: bool
    wrong: bool


def config_key_of(evidence: Evidence, node: NodeView, plugin: WorkloadView) -> Choice:
    """Return the plugin's config entry that a node selects, and whether it exists."""
    entries = entries_for(evidence, plugin)
    if entries is None:
        return Choice("", labelled=False, wrong=False)
    label = node.labels.get(CONFIG_LABEL, "")
    key = label or _default_of(evidence, plugin, entries)
    return Choice(key, bool(label), bool(key) and key not in entries)


def _default_of(evidence: Evidence, plugin: WorkloadView, entries: Mapping[str, str]) -> str:
    """Return the default: from the config-manager's environment, else an entry of that name, else the only entry."""
    default = environment_of(evidence.manifest(plugin)).get("DEFAULT_CONFIG", "")
    if default:
        return default
    return _FALLBACK if _FALLBACK in entries else next(iter(entries)) if len(entries) == 1 else ""


def entry_of(evidence: Evidence, node: NodeView) -> Mapping[str, object]:
    """Return the parsed config entry of a node's devices; empty if it has none."""
    for plugin in plugins(evidence):
        choice = config_key_of(evidence, node, plugin)
        if lands_on(plugin, node) and choice.key and not choice.wrong:
            return _parsed((entries_for(evidence, plugin) or {})[choice.key])
    return {}


def shares_by_mps(evidence: Evidence, node: NodeView) -> bool:
    """Return whether a node's entry uses MPS sharing."""
    return bool(tree(entry_of(evidence, node), "sharing", "mps"))


def _parsed(written: str) -> dict[str, object]:
    try:
        return tree(parse_yaml(written))
    except yaml.YAMLError:
        return {}


@CHECKS.add(
    "config-key-unknown",
    title="nodes whose label names a config entry that does not exist",
    consequence="config-manager exits: a new plugin pod stays in Init:CrashLoopBackOff, a running one keeps the "
    "old sharing",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/config-manager/main.go",
)
def _unknown_key(evidence: Evidence) -> Iterator[Fault]:
    lost = {item.node: item for item in lost_labels(evidence) if item.key == CONFIG_LABEL}
    for plugin in plugins(evidence):
        entries = entries_for(evidence, plugin) or {}
        for node in gpu_nodes(evidence):
            choice = config_key_of(evidence, node, plugin)
            if not choice.wrong or not choice.labelled or not lands_on(plugin, node) or node.name in lost:
                continue
            ours = OWNER_LABEL in node.labels
            yield fault(
                f"node {node.name}",
                f"label {CONFIG_LABEL} is {choice.key}, and {plugin} has no such config entry",
                APPLY
                if ours
                else f"kubectl label node {node.name} {CONFIG_LABEL}={next(iter(sorted(entries)), 'KEY')} --overwrite",
                (f"entries: {', '.join(sorted(entries)) or 'none'}",),
                safe_fix=Reconcile() if ours else None,
            )


@CHECKS.add(
    "config-default-unknown",
    title="a config.default that is not a config entry",
    consequence="the plugin does not start on nodes without their own label; Helm does not check it",
    link=f"{_README}#passing-configuration-to-the-plugin-via-a-configmap",
)
def _unknown_default(evidence: Evidence) -> Iterator[Fault]:
    for plugin in plugins(evidence):
        entries = entries_for(evidence, plugin)
        default = environment_of(evidence.manifest(plugin)).get("DEFAULT_CONFIG", "")
        if entries is not None and default and default not in entries:
            yield fault(
                str(plugin),
                f"its config.default is {default}, which is not one of its config entries",
                f"set config.default to one of {', '.join(sorted(entries))} in its release",
            )


@CHECKS.add(
    "config-map-missing",
    title="a ConfigMap that the plugin mounts but that does not exist",
    consequence="new pods of the plugin stay in ContainerCreating",
    link="https://kubernetes.io/docs/concepts/configuration/configmap/#optional-configmaps",
)
def _missing_map(evidence: Evidence) -> Iterator[Fault]:
    for plugin in plugins(evidence):
        pod = tree(evidence.manifest(plugin), "spec", "template", "spec")
        for volume in items(pod, "volumes"):
            name = text(volume, "configMap", "name")
            optional = text(volume, "configMap", "optional") == "true"
            if not name or optional or (plugin.namespace, name) in evidence.config_maps:
                continue
            ours = any(OWNER_LABEL in node.labels and lands_on(plugin, node) for node in evidence.nodes)
            yield fault(
                str(plugin),
                f"it mounts ConfigMap {name}, which does not exist",
                APPLY
                if ours
                else f"upgrade its release with config.map, or create {name} in namespace {plugin.namespace}",
                safe_fix=Reconcile() if ours else None,
            )


def _rewrite(plugin: WorkloadView, otherwise: str) -> str:
    """Return the fix for a config entry; gpukube writes those of its own release."""
    return APPLY if plugin.namespace == NAMESPACE else otherwise


@CHECKS.add(
    "config-entry-refused",
    title="config entries that the plugin rejects",
    consequence="the plugin exits on every node that names the entry",
    link=f"{_README}#shared-access-to-gpus",
)
def _rejected(evidence: Evidence) -> Iterator[Fault]:
    for plugin in plugins(evidence):
        for key, written in sorted((entries_for(evidence, plugin) or {}).items()):
            for message in _errors_in(written):
                yield fault(
                    str(plugin),
                    f"config entry {key}: {message}",
                    _rewrite(plugin, f"correct config.map.{key} in its release"),
                    safe_fix=Reconcile() if key.startswith("c-") and evidence.desired else None,
                )


def _errors_in(written: str) -> Iterator[str]:
    """Yield the reasons why the plugin would exit with this entry."""
    try:
        entry: object = parse_yaml(written)
    except yaml.YAMLError:
        yield "the entry is not valid YAML"
        return
    if text(entry, "version") not in ("", "v1"):
        yield f'version "{text(entry, "version")}" is unknown; write v1'
    strategy = text(entry, "flags", "migStrategy")
    if strategy not in _STRATEGIES:
        yield f'migStrategy "{strategy}" is not one of none, single, mixed'
    for kind in ("timeSlicing", "mps"):
        if at(entry, "sharing", kind) is not None:
            resources = items(entry, "sharing", kind, "resources")
            if not resources:
                yield f"sharing.{kind} has no resources"
            for resource in resources:
                replicas = number(resource, "replicas")
                if replicas < 2:  # noqa: PLR2004 - "number of replicas must be >= 2"
                    yield f"{text(resource, 'name')} has {replicas} replicas; the minimum is 2"
                if kind == "mps" and replicas > _MOST_MPS:
                    yield f"{text(resource, 'name')} has {replicas} replicas; MPS allows at most {_MOST_MPS}"
    if strategy == "mixed" and tree(entry, "sharing", "mps"):
        yield "mps cannot be combined with migStrategy mixed"


@CHECKS.add(
    "config-entry-ignored",
    title="config entry settings without effect",
    consequence="devices are not shared or named as the entry suggests",
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/628",
    severity="warning",
)
def _ineffective(evidence: Evidence) -> Iterator[Fault]:
    for plugin in plugins(evidence):
        for key, written in sorted((entries_for(evidence, plugin) or {}).items()):
            for message in _ignored_settings(_parsed(written)):
                yield fault(
                    str(plugin),
                    f"config entry {key}: {message}",
                    f"remove it from config.map.{key} in its release",
                )


def _ignored_settings(entry: Mapping[str, object]) -> Iterator[str]:
    """Yield the settings that the plugin ignores."""
    strategy = text(entry, "flags", "migStrategy")
    if tree(entry, "resources"):
        yield "resources.gpus and resources.mig have no effect"
    if tree(entry, "sharing", "mps") and tree(entry, "sharing", "timeSlicing"):
        yield "mps and timeSlicing are both set; mps wins"
    for kind in ("timeSlicing", "mps"):
        for resource in items(entry, "sharing", kind, "resources"):
            name = text(resource, "name")
            yield from (
                f"{field} of {name} has no effect" for field in ("rename", "devices") if at(resource, field) is not None
            )
            if "mig-" in name and strategy != "mixed":
                yield f"{name} matches nothing under migStrategy {strategy or 'none'}; write nvidia.com/gpu"


@CHECKS.add(
    "config-entry-unused",
    title="config entries that nothing uses",
    consequence="they mislead readers of the release",
    link=f"{_README}#multiple-config-file-example",
    severity="warning",
    needs=("nodes", "daemonsets", "config-maps", "pools"),
)
def _unused(evidence: Evidence) -> Iterator[Fault]:
    named = {node.labels.get(CONFIG_LABEL, "") for node in evidence.nodes}
    named |= {pool.labels.get(CONFIG_LABEL, "") for pool in evidence.live}
    named |= {expected.ownership.config_key for expected in evidence.desired}
    for plugin in plugins(evidence):
        entries = entries_for(evidence, plugin) or {}
        default = _default_of(evidence, plugin, entries)
        for key in sorted(set(entries) - named - {default}):
            yield fault(
                str(plugin),
                f"config entry {key} is not used by any node or pool",
                _rewrite(plugin, "remove it from config.map in its release"),
            )
