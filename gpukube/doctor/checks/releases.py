"""Checks of the stack's Helm releases: their status, and values without effect or with too much.

In scope: pure checks. Out of scope: gpukube's own release against a spec (cluster.release_plan).

Source: chart nvidia-device-plugin 0.15.0-0.20.0 as rendered; NVIDIA/k8s-device-plugin v0.20.0 README.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import Reconcile, fault
from gpukube.core.jsontree import at, text
from gpukube.core.yamltext import parse_yaml
from gpukube.doctor.check import Checks
from gpukube.doctor.gpu_stack import entries_for, environment_of, gpu_nodes, plugins, release_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

_PLUGIN_CHART: Final = "nvidia-device-plugin"
_MIG: Final = ("single", "mixed")

CHECKS: Final = Checks(needs=("daemonsets", "deployments", "releases"))


@CHECKS.add(
    "release-stuck",
    title="Helm releases of the stack that are pending or failed",
    consequence="Helm refuses every further upgrade while an operation is pending",
    link="https://github.com/helm/helm/issues/8987",
)
def _stuck(evidence: Evidence) -> Iterator[Fault]:
    for release in evidence.releases:
        ours = release.namespace == NAMESPACE and bool(evidence.desired)
        if release.pending:
            yield fault(
                _named(release),
                f"revision {release.revision} is {release.status}: the run that wrote it was interrupted",
                "gpukube pool apply -f SPEC"
                if release.namespace == NAMESPACE
                else f"helm rollback {release.name} --namespace {release.namespace}",
                (f"last deployed {release.deployed_at}",) if release.deployed_at else (),
                safe_fix=Reconcile() if ours else None,
            )
        elif release.status == "failed":
            yield fault(
                _named(release),
                f"revision {release.revision} failed",
                "gpukube pool apply -f SPEC"
                if release.namespace == NAMESPACE
                else f"roll it back or upgrade it: helm history {release.name} --namespace {release.namespace}",
                why="parts of the old and of the new revision may be running",
                safe_fix=Reconcile() if ours else None,
            )


def _named(release: Release) -> str:
    return f"release {release.namespace}/{release.name}"


@CHECKS.add(
    "strategy-overridden",
    title="a chart value migStrategy that overrides the config entries",
    consequence="nodes advertise devices that differ from their config entry",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#configuration-option-details",
    needs=("nodes", "daemonsets", "config-maps"),
)
def _overriding(evidence: Evidence) -> Iterator[Fault]:
    """Find a strategy in the environment that overrides a config entry's: command line, environment, file."""
    for plugin in plugins(evidence):
        forced = environment_of(evidence.manifest(plugin)).get("MIG_STRATEGY", "")
        entries = entries_for(evidence, plugin) or {}
        beaten = {key: requested for key, written in entries.items() if (requested := _strategy(written)) in _MIG}
        losing = sorted(key for key, requested in beaten.items() if forced and requested != forced)
        if losing and any(lands_on(plugin, node) for node in gpu_nodes(evidence)):
            yield fault(
                str(plugin),
                f"MIG_STRATEGY={forced} in its environment overrides {beaten[losing[0]]} of config entry {losing[0]}",
                _without_strategy(evidence, plugin, beaten[losing[0]]),
                tuple(f"entry {key} has {beaten[key]}" for key in losing),
            )


def _without_strategy(evidence: Evidence, plugin: WorkloadView, requested: str) -> str:
    """Return how to unset the variable: a chart value, a field of the operator's policy, or set by hand."""
    if {**plugin.labels, **plugin.pod_labels}.get("app.kubernetes.io/managed-by") == "gpu-operator":
        patch = json.dumps({"spec": {"mig": {"strategy": requested}}})
        return (
            f"set mig.strategy={requested} in its release's values, one for the whole cluster; to apply now: kubectl "
            f"patch clusterpolicy {CLUSTER_POLICY} --type merge --patch '{patch}'"
        )
    name = release_of(plugin)
    release = next((item for item in evidence.releases if (item.namespace, item.name) == name), None)
    if release and release.values.get("migStrategy"):
        return (
            f"helm upgrade {release.name} {release.chart} --namespace {release.namespace} --version "
            f"{release.chart_version} --repo {DEVICE_PLUGIN.repository} --reuse-values --set migStrategy=null"
        )
    return f"kubectl set env daemonset/{plugin.name} --namespace {plugin.namespace} MIG_STRATEGY-"


def _strategy(written: str) -> str:
    try:
        return text(parse_yaml(written), "flags", "migStrategy")
    except yaml.YAMLError:
        return ""


@CHECKS.add(
    "chart-value-ignored",
    title="chart values without effect",
    consequence="the release does not do what its values suggest; the chart has no schema and accepts any value",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/deployments/helm/nvidia-device-plugin/values.yaml",
    severity="warning",
)
def _idle_values(evidence: Evidence) -> Iterator[Fault]:
    for release in evidence.releases:
        for chart, path, idle, message, instead in _IDLE:
            if release.chart == chart and idle(at(release.values, *path)):
                yield fault(
                    _named(release),
                    f"value {'.'.join(path)} {message}",
                    instead,
                )


def _is_set(value: object) -> bool:
    return value not in (None, "")


_IDLE: Final[tuple[tuple[str, tuple[str, ...], Callable[[object], bool], str, str], ...]] = (
    (_PLUGIN_CHART, ("gfd", "noTimestamp"), _is_set, "is not used by any template", "set noTimestamp at the top level"),
    (
        _PLUGIN_CHART,
        ("gfd", "sleepInterval"),
        _is_set,
        "is not used by any template",
        "set sleepInterval at the top level",
    ),
    (
        _PLUGIN_CHART,
        ("gfd", "namespaceOverride"),
        _is_set,
        "is not used by any template",
        "set namespaceOverride at the top level",
    ),
    (
        _PLUGIN_CHART,
        ("failOnInitError",),
        lambda value: isinstance(value, str),
        "is a string; only a boolean has an effect",
        "set it with --set failOnInitError=false, not with --set-string",
    ),
    (
        _PLUGIN_CHART,
        ("affinity",),
        lambda value: value == {},
        "is {}, which keeps the default affinity",
        "set it with --set affinity=null",
    ),
    (
        "gpu-operator",
        ("cdi", "default"),
        lambda value: value is not None,
        "is deprecated and ignored since v25.10",
        "remove it",
    ),
)
"""Chart, path, condition for no effect, message, fix (rendered charts 0.20.0 and v26.7.0)."""
