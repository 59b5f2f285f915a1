"""Checks before any change that the pods that a pool's devices depend on will run on its nodes.

In scope: planned values or a rendered manifest, and declared pools -> findings; pure. Out of scope: the prediction
itself (state.reach), the values (plugin_values, operator_values, dra_values).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import WorkloadView, placement_of
from gpukube.cluster.names import DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.state.components import Role, daemonsets_of, title_of
from gpukube.cluster.state.reach import coming_place, needed_roles, unreached
from gpukube.core.jsontree import at, tree
from gpukube.errors import Finding, HelmError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.cluster.state.reach import Place, Reach
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired

_DEPLOY: Final = "nvidia.com/gpu.deploy."
_APPS: Final[Mapping[Role, str]] = {
    "plugin": "nvidia-device-plugin-daemonset",
    "gfd": "gpu-feature-discovery",
    "mps": "nvidia-device-plugin-mps-control-daemon",
    "nfd-worker": "nfd-worker",
    "mig-manager": "nvidia-mig-manager",
    "dra": DRA_DRIVER.plugin,
}
_PARTS: Final[Mapping[ReleaseKind, tuple[tuple[Role, tuple[str, ...], Mapping[str, str]], ...]]] = {
    DEVICE_PLUGIN: (
        ("plugin", (), {}),
        ("gfd", (), {}),
        ("mps", (), {"nvidia.com/mps.capable": "true"}),
        ("nfd-worker", ("nfd", "worker"), {}),
    ),
    GPU_OPERATOR: (
        ("plugin", ("daemonsets",), {f"{_DEPLOY}device-plugin": "true"}),
        ("gfd", ("daemonsets",), {f"{_DEPLOY}gpu-feature-discovery": "true"}),
        ("mps", ("daemonsets",), {f"{_DEPLOY}device-plugin": "true", "nvidia.com/mps.capable": "true"}),
        ("mig-manager", ("daemonsets",), {f"{_DEPLOY}mig-manager": "true"}),
        ("nfd-worker", ("node-feature-discovery", "worker"), {}),
    ),
    DRA_DRIVER: (("dra", ("kubeletPlugin",), {}),),
}
"""Role, path of its placement in the values, and the node selector that the chart or the operator adds (rendered charts
nvidia-device-plugin 0.20.0, gpu-operator v26.7.0 and dra-driver-nvidia-gpu 0.4.1; NVIDIA/gpu-operator
assets/state-*)."""


def planned_daemonsets(plan: ReleasePlan) -> tuple[WorkloadView, ...]:
    """Return the DaemonSets that a release will have, with name and placement only."""
    bundled = _features_are_bundled(plan)
    return tuple(
        _workload(role, tree(plan.values, *path), selector)
        for role, path, selector in _PARTS[plan.kind]
        if bundled or role != "nfd-worker"
    )


def _workload(role: Role, values: Tree, selector: Mapping[str, str]) -> WorkloadView:
    placement = placement_of({**values, "nodeSelector": {**tree(values, "nodeSelector"), **selector}})
    labels = {"app": _APPS[role]}
    return WorkloadView(
        kind="DaemonSet",
        name=_APPS[role],
        namespace=NAMESPACE,
        labels=labels,
        pod_labels=labels,
        placement=placement,
        containers=(),
        desired=0,
        ready=0,
    )


def check_reach(plan: ReleasePlan, pools: Iterable[Desired]) -> list[Finding]:
    """Report pools that a planned release would not reach; skip a plan that is a conflict or unknown.

    A foreign NFD on which the release relies is checked separately (nfd).
    """
    if plan.action in ("conflict", "unknown") or not plan.values:
        return []
    return _diagnostics(pools, planned_daemonsets(plan), plan)


def check_rendered_reach(objects: Iterable[Tree], plan: ReleasePlan, pools: Iterable[Desired]) -> list[Finding]:
    """Like check_reach, for the DaemonSets in the manifest that a dry run rendered.

    The GPU Operator creates its DaemonSets later, so those are checked by the values.
    """
    made = planned_daemonsets(plan) if plan.kind is GPU_OPERATOR else ()
    later = tuple(item for item in made if item.name != _APPS["nfd-worker"])
    return _diagnostics(pools, (*daemonsets_of(objects, NAMESPACE), *later), plan)


def require_reach(objects: Iterable[Tree], plan: ReleasePlan, pools: Iterable[Desired]) -> None:
    """Check that a release's rendered pods would run where devices depend on them.

    Raises:
        HelmError: They would not; has a finding for each pool and component.
    """
    stuck = [found for found in check_rendered_reach(objects, plan, pools) if found.severity == "error"]
    if stuck:
        raise HelmError.of(stuck)


def _diagnostics(pools: Iterable[Desired], daemonsets: Sequence[WorkloadView], plan: ReleasePlan) -> list[Finding]:
    features = _features_are_bundled(plan)
    return [
        _finding(pool, found, plan)
        for pool in pools
        if plan.kind.serves(pool.ownership)
        for found in unreached(pool, [_place(pool, bundled=features)], daemonsets)
    ]


def _features_are_bundled(plan: ReleasePlan) -> bool:
    return at(plan.values, "nfd", "enabled") is not False


def _place(pool: Desired, *, bundled: bool) -> Place:
    """Predict a pool's nodes, including the labels of NFD's workers if others run NFD."""
    place = coming_place(pool)
    return place if bundled else replace(place, labels={**place.written["nfd-worker"], **place.labels})


def _finding(pool: Desired, found: Reach, plan: ReleasePlan) -> Finding:
    message = f"{title_of(found.role)} would not run on these nodes: {found.why_not}"
    where = pool.target.where
    if needed_roles(pool)[found.role]:
        why = "the promised devices depend on it"
        return Finding("reach", where, message, why=why, fix=_fix(plan))
    why = "these nodes would get no feature labels (their GPUs are advertised)"
    return Finding("reach-features", where, message, why=why, fix=_fix(plan), severity="warning")


def _fix(plan: ReleasePlan) -> str:
    return f"helm get values {plan.name} --namespace {NAMESPACE} shows the added values; remove them there"
