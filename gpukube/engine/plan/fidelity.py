"""How exactly a cloud implements the features that a pool uses, by the provider's abilities. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.resolve import GPU_TAINT
from gpukube.errors import Finding
from gpukube.provider import Ability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Target
    from gpukube.provider import Provider

_APART: Final = {"topologyManagerScope", "memoryManagerPolicy"}
"""Settings of the kubelet that are features of their own, because a cloud lacks them."""
_USES: Final[tuple[tuple[str, str, Callable[[Target], bool]], ...]] = (
    ("nodes.count", "nodes.count", lambda t: not t.nodes.autoscaled),
    ("nodes.autoscaling", "nodes.autoscaling", lambda t: t.nodes.autoscaled),
    (
        "nodes.autoscaling.scope",
        "nodes.autoscaling.scope",
        lambda t: t.nodes.autoscaled and t.nodes.scope == "zone",
    ),
    ("capacity.spot", "capacity.type", lambda t: t.capacity.type == "spot"),
    ("capacity.reserved", "capacity.type", lambda t: t.capacity.type == "reserved"),
    ("zones", "zones", lambda t: bool(t.zones)),
    ("disk.size", "disk.sizeGiB", lambda t: t.disk.size_gib is not None),
    ("disk.type", "disk.type", lambda t: t.disk.type is not None),
    ("disk.iops", "disk.iops", lambda t: t.disk.iops is not None),
    ("disk.throughput", "disk.throughput", lambda t: t.disk.throughput is not None),
    ("disk.encrypted", "disk.encrypted", lambda t: t.disk.encrypted is not None),
    ("disk.kmsKey", "disk.kmsKey", lambda t: bool(t.disk.kms_key)),
    ("instanceTypes", "instanceTypes", lambda t: bool(t.machines)),
    ("network.highSpeed", "network.highSpeed", lambda t: t.high_speed),
    ("placement.compact", "placement", lambda t: t.placement == "compact"),
    ("placement.named", "placement", lambda t: t.placement not in ("", "compact", "none")),
    ("localStorage.ephemeral", "localStorage", lambda t: t.local_storage == "ephemeral"),
    ("localStorage.raw", "localStorage", lambda t: t.local_storage == "raw"),
    ("kubelet", "kubelet", lambda t: bool(t.kubelet.keys() - _APART)),
    ("kubelet.topologyManagerScope", "kubelet.topologyManagerScope", lambda t: "topologyManagerScope" in t.kubelet),
    ("kubelet.memoryManagerPolicy", "kubelet.memoryManagerPolicy", lambda t: "memoryManagerPolicy" in t.kubelet),
    ("sysctls", "sysctls", lambda t: bool(t.sysctls)),
    ("hugepages", "hugepages", lambda t: bool(t.hugepages)),
    ("confidential", "confidential", lambda t: t.confidential),
    ("image", "image", lambda t: bool(t.image)),
    ("kubernetesVersion", "kubernetesVersion", lambda t: bool(t.kubernetes_version)),
    ("upgrade.maxSurge", "upgrade.maxSurge", lambda t: t.upgrade.max_surge is not None),
    ("upgrade.maxUnavailable", "upgrade.maxUnavailable", lambda t: t.upgrade.max_unavailable is not None),
    ("maxPodsPerNode", "maxPodsPerNode", lambda t: t.max_pods is not None),
    ("driver.version", "driver.version", lambda t: bool(t.driver_version)),
    (
        "sharing.mig.single",
        "sharing.mig.strategy",
        lambda t: t.sharing.mig is not None and t.sharing.mig.strategy == "single",
    ),
    (
        "sharing.mig.mixed",
        "sharing.mig.strategy",
        lambda t: t.sharing.mig is not None and t.sharing.mig.strategy == "mixed",
    ),
    ("sharing.mig.layout", "sharing.mig.layout", lambda t: t.sharing.mig is not None and bool(t.sharing.mig.layout)),
    ("sharing.timeSlicing", "sharing.timeSlicing", lambda t: _slices(t) == "time-slicing"),
    ("sharing.mps", "sharing.mps", lambda t: _slices(t) == "mps"),
    ("taints", "taints", lambda t: any(taint != GPU_TAINT for taint in t.taints)),
    ("gpuTaint", "gpuTaint", lambda t: not t.gpu_taint),
    ("labels", "labels", lambda t: bool(t.labels)),
    ("tags", "tags", lambda t: bool(t.tags)),
    ("deletionProtection", "deletionProtection", lambda t: t.protect),
)
"""Feature (see provider.FEATURES), field of the spec, whether a target uses the feature."""

_FIELDS: Final = {feature: field for feature, field, _ in _USES}

CRITICAL: Final = (
    "nodes.", "capacity.", "sharing.", "taints", "network.", "hugepages",
    "confidential", "disk.encrypted", "disk.kmsKey",
)  # fmt: skip
"""Fields that affect devices, count, isolation, secrecy, or price: a cloud that lacks one is not an alternative."""

_USED_WITH: Final = {"sharing.mig.profile": "sharing.mig.strategy"}
"""Field -> field of its features: a profile is always used with one of the strategies."""

_MIG_MANAGER: Final = Ability("emulated", "the GPU Operator's MIG manager")
_BY_OPERATOR: Final[Mapping[str, Ability]] = {
    "driver.version": Ability("emulated", "the version of the GPU Operator's driver container"),
    "sharing.mig.single": _MIG_MANAGER,
    "sharing.mig.mixed": _MIG_MANAGER,
    "sharing.mig.layout": Ability("emulated", "the GPU Operator's MIG manager, with gpukube's configuration"),
    "sharing.timeSlicing": Ability("emulated", "the device plugin's sharing.timeSlicing"),
    "sharing.mps": Ability("emulated", "the device plugin's sharing.mps"),
}
"""Abilities on every cloud if the GPU Operator installs driver and plugin."""
_OF_PLUGIN: Final = frozenset(name for name in _BY_OPERATOR if name.startswith("sharing."))
"""Those of the abilities that the operator has if it installs only the plugin."""


def abilities_for(target: Target, provider: Provider) -> Mapping[str, Ability]:
    """Return the abilities of a pool's cloud, replaced by the GPU Operator's for what it installs."""
    owners = (target.driver_owner, target.plugin_owner)
    if "operator" not in owners:
        return provider.abilities()
    found = {
        name: ability for name, ability in _BY_OPERATOR.items() if "operator" in owners[: 1 + (name in _OF_PLUGIN)]
    }
    return {**provider.abilities(), **found}


def used_features(target: Target) -> tuple[str, ...]:
    """List the features that a pool uses."""
    return tuple(feature for feature, _, uses in _USES if uses(target))


def features_at(field: str) -> tuple[str, ...]:
    """List the features that belong to a field of a pool or to fields below it: "sharing.mig" -> two."""
    field = _USED_WITH.get(field, field)
    around = [(feature, f"{at}.") for feature, at, _ in _USES]
    return tuple(feature for feature, at in around if f"{field}.".startswith(at) or at.startswith(f"{field}."))


def inexact(target: Target, abilities: Mapping[str, Ability]) -> dict[str, Ability]:
    """Return the features used by a pool that its cloud implements differently, or not at all."""
    unset = Ability("missing", reason=f"gpukube does not set this field on {target.cluster.provider} yet")
    found = ((feature, abilities.get(feature, unset), uses) for feature, _, uses in _USES)
    return {feature: ability for feature, ability, uses in found if ability.fidelity != "exact" and uses(target)}


def check_fidelity(target: Target, abilities: Mapping[str, Ability]) -> list[Finding]:
    """Return errors for unsupported features that matter, and warnings for the others."""
    return [
        Finding(
            "missing-feature",
            target.locator.at(_FIELDS.get(feature, feature)),
            f"{target.where}: {target.cluster.provider} does not support {feature}",
            why=ability.reason,
            fix=ability.substitute or f"remove {_FIELDS.get(feature, feature)} for this cluster",
            severity="error" if feature.startswith(CRITICAL) else "warning",
        )
        for feature, ability in inexact(target, abilities).items()
        if ability.fidelity == "missing"
    ]


def _slices(target: Target) -> str:
    return target.sharing.slicing.mode if target.sharing.slicing else ""
