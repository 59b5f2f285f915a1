"""Compares the devices that an autoscaler expects of future nodes with the devices they will advertise.

Pure. In scope: the comparison, and the findings for a pool before it is created. Out of scope: how one cloud's
autoscaler decides (its package's diagnose.py), and live nodes (doctor).

An autoscaler plans with a template node. If the pool has a node, that node is the template; if it is empty, the
template comes from the instance type, which lists physical GPUs but neither MIG instances nor replicas
(kubernetes/autoscaler, cluster-autoscaler/cloudprovider: aws_manager.go, azure_template.go). A node that has the
cloud's accelerator label and no nvidia.com/gpu counts as not ready, whatever else it advertises
(kubernetes/autoscaler#8095).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.core.values import Observed
from gpukube.errors import Finding
from gpukube.gpu.capacity import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.cloud_check import Autoscaler
    from gpukube.core.values import Desired


@dataclass(frozen=True, slots=True)
class TemplateMismatch:
    """A template node that differs from the real one.

    Attributes:
        expected: Devices that the autoscaler expects, per node.
        real: Devices that a node advertises.
    """

    expected: Mapping[str, int]
    real: Mapping[str, int]

    @property
    def wrong(self) -> dict[str, int]:
        """Devices whose expected number is wrong -> the real number."""
        return {name: count for name, count in self.real.items() if self.expected.get(name) != count}

    @property
    def unknown(self) -> tuple[str, ...]:
        """Devices that the autoscaler does not know."""
        return tuple(name for name in self.wrong if name not in self.expected)

    @property
    def never_scales(self) -> bool:
        """Whether the autoscaler never starts a node for pods that request some of these devices."""
        return any(not self.expected.get(name) for name in self.wrong)


def compare(real: Mapping[str, int], expected: Mapping[str, int]) -> TemplateMismatch | None:
    """Compare what a node advertises with what the autoscaler expects; return None if they match."""
    mismatch = TemplateMismatch(expected, real)
    return mismatch if mismatch.wrong else None


def find_mismatch(desired: Desired, scaler: Autoscaler | None) -> TemplateMismatch | None:
    """Return the mismatch between the autoscaler's template and a declared pool while the pool is empty.

    Args:
        desired: The pool.
        scaler: The cloud's autoscaler; None if it knows all devices.

    Returns:
        None if they match, or if the template is never used: fixed-size pools and pools that are never empty.
    """
    if scaler is None or not desired.target.nodes.autoscaled or desired.target.nodes.minimum:
        return None
    expected = scaler.expected(_as_live(desired))
    return None if expected is None else compare(desired.promise.per_node, expected)


def expected_devices(desired: Desired, scaler: Autoscaler | None) -> Mapping[str, int]:
    """Return the devices that the autoscaler expects per node while the pool is empty."""
    return desired.promise.per_node if scaler is None else scaler.expected(_as_live(desired)) or {}


def check_template(desired: Desired, scaler: Autoscaler | None) -> list[Finding]:
    """Warn of a pool whose template node is wrong, unless the provider's own rules check it."""
    if scaler is None or scaler.judged_by_rules or not desired.target.nodes.autoscaled:
        return []
    return [*_misled(desired, scaler), *_unready(desired, scaler)]


def devices_text(devices: Mapping[str, int]) -> str:
    """Format devices: "nvidia.com/gpu: 8"."""
    return ", ".join(f"{name}: {count}" for name, count in sorted(devices.items())) or "no devices"


def _misled(desired: Desired, scaler: Autoscaler) -> Iterator[Finding]:
    mismatch = find_mismatch(desired, scaler)
    if mismatch is None:
        return
    most = desired.target.nodes.maximum
    yield Finding(
        "autoscaler-misled",
        desired.target.locator.at("nodes.autoscaling.min"),
        f"{desired.target.where}: a node has {devices_text(mismatch.real)}, but while the pool is empty the autoscaler "
        f"expects {devices_text(mismatch.expected)}",
        why="pods that request these devices start no node"
        if mismatch.never_scales
        else "it starts the wrong number of nodes until the first one is ready",
        fix="write min: 1 or more" + ("" if mismatch.never_scales else f", or keep max low (now {most})"),
        severity="error" if mismatch.never_scales else "warning",
    )


def _unready(desired: Desired, scaler: Autoscaler) -> Iterator[Finding]:
    if GPU_RESOURCE in desired.promise.per_node or scaler.accelerator_label not in desired.labels:
        return
    sharing = desired.target.sharing
    ways = ["strategy: single"] if sharing.mig and sharing.mig.strategy == "mixed" else []
    ways += ["renameByDefault: false"] if sharing.slicing and sharing.slicing.rename else []
    alike = [] if sharing.mig and len(sharing.mig.profiles) > 1 else [" and ".join(ways)]
    yield Finding(
        "autoscaler-unready",
        desired.target.locator.at("nodes.autoscaling"),
        f"{desired.target.where}: its nodes have {devices_text(desired.promise.per_node)} and no {GPU_RESOURCE}: the "
        "autoscaler treats them as not ready",
        why="it knows GPUs by that name only, starts more nodes, and stops scaling after three such nodes "
        "(kubernetes/autoscaler#7050, #8095)",
        fix=f"write {', or '.join([*alike, 'a fixed nodes.count'])}",
        severity="warning",
    )


def _as_live(desired: Desired) -> Observed:
    """Return the pool as its cloud would report it right after creation, while empty."""
    target = desired.target
    return Observed(
        name=target.name,
        owner=target.owner,
        pool=target.pool,
        protected=target.protect,
        state="ready",
        status="",
        failure="",
        fields=desired.fields,
        nodes=0,
        labels=desired.labels,
        effective_taints=desired.effective_taints,
        instance_type=target.machine.name,
        etag="",
        native={},
    )
