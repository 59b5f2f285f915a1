"""Checks in a dry run's output whether the chart applied its values, before anything costs money.

In scope: parsing the rendered manifest and comparing it with the plan; pure. Out of scope: running Helm.

A chart ignores unknown values, and a chart directory whose dependencies were not downloaded silently renders without
NFD, so a successful dry run proves little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.kube.views import placement_of, workload_view
from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, OPERATOR_NAME
from gpukube.cluster.release.dra_values import ROOT
from gpukube.cluster.release.operator_values import REBOOT
from gpukube.cluster.state.manifest import documents
from gpukube.core.jsontree import at, items, text, texts, tree
from gpukube.errors import HelmError
from gpukube.gpu.claims import GPU_CLASS, MIG_CLASS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.cluster.kube.views import Placement
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.jsontree import Tree

_OLDEST: Final = {DEVICE_PLUGIN: "0.17.4", GPU_OPERATOR: "v26.7.0", DRA_DRIVER: "0.4.1"}
_CLASSES: Final = (GPU_CLASS, MIG_CLASS)
_FIX: Final = "use the complete chart {chart} {oldest} or newer (from helm pull, not a bare source tree)"


def read_manifest(manifest: str, plan: ReleasePlan) -> list[Tree]:
    """Split a plan's rendered manifest into objects.

    Raises:
        HelmError: It is not YAML.
    """
    try:
        return list(documents(manifest))
    except yaml.YAMLError as error:
        raise HelmError(
            "the chart does not render valid YAML",
            where=plan.kind.address,
            why=str(error).splitlines()[0],
            fix=_fix(plan),
            code="chart-rendered",
        ) from error


def require_rendered(manifest: str, plan: ReleasePlan) -> None:
    """Check that the rendered objects do what the plan's values require.

    Raises:
        HelmError: They do not; the message names the first difference.
    """
    objects = read_manifest(manifest, plan)
    found = [one for check in _CHECKS[plan.kind] for one in check(objects, plan)]
    if found:
        raise HelmError(
            f"the chart ignores a value: {found[0]}",
            where=plan.kind.address,
            why="charts ignore unknown values",
            fix=_fix(plan),
            code="chart-rendered",
        )


def _fix(plan: ReleasePlan) -> str:
    return _FIX.format(chart=plan.chart, oldest=_OLDEST[plan.kind])


def _missing_plugin(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    plugin = _named(objects, "DaemonSet", plan.kind.plugin)
    if plugin is None:
        return [f"it renders no DaemonSet {plan.kind.plugin}"]
    found = _misplaced(plugin, placement_of(plan.values))
    names = (
        text(env, "name")
        for part in items(plugin, "spec", "template", "spec", "containers")
        for env in items(part, "env")
    )
    return [*found, "it sets MIG_STRATEGY for all entries"] if "MIG_STRATEGY" in names else found


def _misplaced(plugin: Tree, desired: Placement) -> list[str]:
    got = workload_view(plugin, "DaemonSet").placement
    found = [] if got.affinity == desired.affinity else ["the plugin's affinity is not the planned one"]
    lost = set(desired.tolerations) - set(got.tolerations)
    return [*found, *(f"the plugin lacks the toleration for {item.key}" for item in sorted(lost))]


def _missing_driver(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    """Check the DaemonSet of the DRA driver, and the classes that pods claim."""
    plugin = _named(objects, "DaemonSet", plan.kind.plugin)
    if plugin is None:
        return [f"it renders no DaemonSet {plan.kind.plugin}"]
    parts = {text(part, "name"): part for part in items(plugin, "spec", "template", "spec", "containers")}
    if list(parts) != [plan.kind.container]:
        return [f"its containers are {', '.join(parts)}, not {plan.kind.container}"]
    root = text(plan.values, ROOT)
    roots = [env for env in items(parts[plan.kind.container], "env") if text(env, "name") == "NVIDIA_DRIVER_ROOT"]
    found = [] if [text(env, "value") for env in roots] == [root] else [f"the plugin's driver root is not {root}"]
    found += [f"it renders no DeviceClass {name}" for name in _CLASSES if _named(objects, "DeviceClass", name) is None]
    return [*_misplaced(plugin, placement_of(tree(plan.values, "kubeletPlugin"))), *found]


def _missing_operator(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    """Check the ClusterPolicy, which configures the operator, and the operator itself."""
    policy = tree(_named(objects, "ClusterPolicy", CLUSTER_POLICY), "spec")
    if not policy:
        return [f"it renders no ClusterPolicy {CLUSTER_POLICY}"]
    found = [
        f"ClusterPolicy {'.'.join(path)} is {text(policy, *path) or 'absent'}, not {desired or 'absent'}"
        for path, desired in _policy(plan)
        if text(policy, *path) != desired
    ]
    if REBOOT not in [texts(item) for item in items(policy, "migManager", "env")]:
        found.append(f"ClusterPolicy migManager.env lacks {REBOOT['name']}")
    operands = placement_of(tree(policy, "daemonsets"))
    lost = set(placement_of(tree(plan.values, "daemonsets")).tolerations) - set(operands.tolerations)
    found += [f"the operands lack the toleration for {item.key}" for item in sorted(lost)]
    return [*found, *_missing_deployment(objects, plan), *_missing_extra(objects, plan)]


def _policy(plan: ReleasePlan) -> tuple[tuple[tuple[str, ...], str], ...]:
    return (
        (("driver", "enabled"), text(plan.values, "driver", "enabled")),
        (("toolkit", "enabled"), text(plan.values, "toolkit", "enabled")),
        (("devicePlugin", "enabled"), text(plan.values, "devicePlugin", "enabled")),
        (("gfd", "enabled"), "true"),
        (("migManager", "enabled"), "true"),
        (("mig", "strategy"), text(plan.values, "mig", "strategy")),
        (("devicePlugin", "config", "name"), plan.kind.config_map),
        (("devicePlugin", "config", "default"), text(plan.values, "devicePlugin", "config", "default")),
    )


def _missing_extra(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    """Check the additional objects that nodes need; charts before v26.3 do not have the value."""
    desired = [(text(item, "kind"), text(item, "metadata", "name")) for item in items(plan.values, "extraObjects")]
    return [f"it renders no {kind} {name}" for kind, name in desired if _named(objects, kind, name) is None]


def _missing_deployment(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    operator = _named(objects, "Deployment", OPERATOR_NAME)
    if operator is None:
        return [f"it renders no Deployment {OPERATOR_NAME}"]
    got = workload_view(operator, "Deployment").placement.tolerations
    lost = set(placement_of(tree(plan.values, "operator")).tolerations) - set(got)
    return [f"the operator lacks the toleration for {item.key}" for item in sorted(lost)]


def _missing_entries(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    config_map = _named(objects, "ConfigMap", plan.kind.config_map)
    desired = texts(plan.values, *plan.kind.entries)
    if config_map is None:
        return [f"it renders no ConfigMap {plan.kind.config_map}"]
    got = texts(config_map, "data")
    return [
        f"config entry {key} is missing" for key in sorted(desired) if got.get(key, "").strip() != desired[key].strip()
    ]


def _missing_nfd(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    worker = next((item for item in objects if _is_nfd_worker(item)), None)
    requested = at(plan.values, "nfd", "enabled") is True
    if requested and worker is None:
        return ["nfd.enabled is true, but it renders no node-feature-discovery (its dependency is missing)"]
    if not requested:
        return [] if worker is None else ["nfd.enabled is false, but it renders node-feature-discovery"]
    desired = placement_of(tree(plan.values, plan.kind.nfd, "worker")).tolerations
    lost = set(desired) - set(workload_view(worker or {}, "DaemonSet").placement.tolerations)
    return [f"the NFD workers lack the toleration for {item.key}" for item in sorted(lost)]


def _is_nfd_worker(item: Tree) -> bool:
    name = text(item, "metadata", "name")
    return text(item, "kind") == "DaemonSet" and "node-feature-discovery" in name and name.endswith("worker")


def _named(objects: Sequence[Tree], kind: str, name: str) -> Tree | None:
    desired = (kind, name)
    return next((item for item in objects if (text(item, "kind"), text(item, "metadata", "name")) == desired), None)


_CHECKS: Final[Mapping[ReleaseKind, tuple[Callable[[Sequence[Tree], ReleasePlan], list[str]], ...]]] = {
    DEVICE_PLUGIN: (_missing_plugin, _missing_entries, _missing_nfd),
    GPU_OPERATOR: (_missing_operator, _missing_entries, _missing_nfd),
    DRA_DRIVER: (_missing_driver,),
}
