"""Known problems of GPU agent pools on AKS: live pools -> ailments.

In scope: checks that need only what AKS returns about its pools. Out of scope: calls, and checks inside the cluster
(gpukube.doctor).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_check import Autoscaler, CloudChecks, Diagnosis
from gpukube.core.faults import fault
from gpukube.core.fields import INSTANCE_TYPE, MOST, PLUGIN, FieldPath
from gpukube.core.jsontree import at, tree
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL, PRESENT_LABEL
from gpukube.gpu.catalog import find_machine
from gpukube_aks.facts.partitions import CUTS, can_cut
from gpukube_aks.pool.observe import pool_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.cloud_check import CloudView
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.errors import GpukubeError
    from gpukube.gpu.catalog import Machine

_GPU: Final = "nvidia.com/gpu"
_SPOT: Final = "kubernetes.azure.com/scalesetpriority"
_NO_GPU_SYSTEM: Final = "Flatcar"
"""osSKU without an NVIDIA driver (docs: aks/nvidia-gpu-operator)."""
_A10_BAD: Final = "202607.02.0"
"""Node image whose two driver parts do not match on A10 (Azure/AKS#5869)."""
_A10_FLOOR: Final = (202606, 8, 1)
"""First node image with the GRID driver that A10 sizes need since 2026-07-24 (Azure/AKS#5875)."""
_LARGEST_DISCOUNT: Final = 0.1
"""Lowest Spot price as a share of on-demand: Azure's discount is at most 90 %, so a lower maximum price never gets a
machine (Azure/AKS#4404)."""
_RETIRED_TAG: Final = "skipgpudriverinstall"

_CHECKS: Final = CloudChecks()


def _problem_of(view: CloudView, pool: Observed) -> GpukubeError | None:
    return pool_error(pool.native, view.name_of(pool))


def _expected(pool: Observed) -> Mapping[str, int] | None:
    """Return the GPUs of the VM size: AKS's autoscaler ignores sharing and MIG instances (Azure/AKS#3427)."""
    machine = _machine(pool)
    return {_GPU: machine.devices} if machine else None


def _fix_command(view: CloudView, pool: Observed, devices: Mapping[str, int]) -> str:
    """Return a command that keeps one node: the autoscaler counts devices on live nodes only."""
    del devices
    most = pool.fields.get(MOST, 1)
    return (
        f"az aks nodepool update {_names(view, pool)} --update-cluster-autoscaler --min-count 1 --max-count {most or 1}"
    )


def _show(view: CloudView, pool: Observed) -> str:
    return f"az aks nodepool show {_names(view, pool)}"


def _remove(view: CloudView, pool: Observed) -> str:
    return f"az aks nodepool delete {_names(view, pool)}"


def _upgrade(view: CloudView, pool: Observed) -> str:
    return f"az aks nodepool upgrade {_names(view, pool)} --kubernetes-version {view.facts.kubernetes_version}"


def _node_version(pool: Observed) -> str:
    properties = _properties(pool)
    return str(properties.get("currentOrchestratorVersion") or properties.get("orchestratorVersion") or "")


def _names(view: CloudView, pool: Observed) -> str:
    cluster = view.cluster
    group, subscription = cluster.identity["resourceGroup"], cluster.identity["subscription"]
    return f"--resource-group {group} --cluster-name {cluster.name} --name {pool.name} --subscription {subscription}"


def _properties(pool: Observed) -> Mapping[str, object]:
    return tree(pool.native, "properties")


def _machine(pool: Observed) -> Machine | None:
    return find_machine("aks", str(pool.fields.get(INSTANCE_TYPE) or pool.instance_type))


def _is_managed(pool: Observed) -> bool:
    return pool.fields.get(PLUGIN) == "cloud"


@_CHECKS.each_pool(
    "aks-managed-plugin",
    title="labels for gpukube's plugin on pools where AKS runs the plugin",
    consequence="two plugins register nvidia.com/gpu on one node: the count falls to 0 when either restarts",
    link="https://learn.microsoft.com/azure/aks/aks-managed-gpu-nodes",
)
def _managed_plugin(view: CloudView, pool: Observed) -> Fault | None:
    found = [key for key in (ADVERTISER_LABEL, CONFIG_LABEL, PRESENT_LABEL) if pool.labels.get(key)]
    if not _is_managed(pool) or not found:
        return None
    plugin = [key for key in found if key != CONFIG_LABEL]
    kept = _without(pool, found)
    return fault(
        view.name_of(pool),
        f"AKS runs the device plugin of this pool, and its nodes have the labels {', '.join(found)}",
        f"az aks nodepool update {_names(view, pool)} --labels {kept}",
        evidence=("gpuProfile.nvidia.managementMode=Managed", *(f"label {k}={pool.labels[k]}" for k in found)),
        severity="error" if plugin else "warning",
        why="" if plugin else "the label has no effect: AKS starts its plugin with fixed flags",
    )


@_CHECKS.each_pool(
    "aks-managed-autoscaling",
    title="autoscaling of pools whose GPUs AKS manages",
    consequence="AKS does not support the two together; the number of nodes may not follow the pods",
    link="https://learn.microsoft.com/azure/aks/aks-managed-gpu-nodes",
    severity="warning",
)
def _managed_autoscaling(view: CloudView, pool: Observed) -> Fault | None:
    if not _is_managed(pool) or not _properties(pool).get("enableAutoScaling"):
        return None
    return fault(
        view.name_of(pool),
        "the pool is autoscaled, and AKS manages its GPUs",
        f"az aks nodepool update {_names(view, pool)} --disable-cluster-autoscaler",
        evidence=("gpuProfile.nvidia.managementMode=Managed", "enableAutoScaling=true"),
    )


@_CHECKS.each_pool(
    "aks-managed-driver",
    title="a driver that is both disabled and managed",
    consequence="a driver that you install yourself conflicts with AKS's own",
    link="https://learn.microsoft.com/azure/aks/aks-managed-gpu-nodes",
    severity="warning",
)
def _managed_driver(view: CloudView, pool: Observed) -> Fault | None:
    driver = at(_properties(pool), "gpuProfile", "driver")
    if not _is_managed(pool) or driver != "None":
        return None
    return fault(
        view.name_of(pool),
        "gpuProfile.driver None has no effect: managementMode Managed installs the driver",
        "for a driver of your own create a new pool with managementMode Unmanaged and --gpu-driver none, "
        f"then {_remove(view, pool)}",
        evidence=("gpuProfile.nvidia.managementMode=Managed", "gpuProfile.driver=None"),
    )


@_CHECKS.each_pool(
    "aks-mig-size",
    title="MIG on VM sizes without it",
    consequence="nodes do not start, or advertise whole GPUs",
    link="https://learn.microsoft.com/azure/aks/gpu-multi-instance",
)
def _mig_size(view: CloudView, pool: Observed) -> Fault | None:
    value, machine = _properties(pool).get("gpuInstanceProfile"), _machine(pool)
    if not value or machine is None or can_cut(machine):
        return None
    return fault(
        view.name_of(pool),
        f"gpuInstanceProfile is {value}, but AKS has no MIG for {machine.model} ({machine.name})",
        f"create a pool of {', '.join(CUTS)} or without gpuInstanceProfile, then {_remove(view, pool)}",
        evidence=(f"gpuInstanceProfile={value}", f"vmSize={pool.instance_type}"),
    )


@_CHECKS.each_pool(
    "aks-two-cutters",
    title="GPUs whose MIG layout both AKS and a MIG manager set",
    consequence="each overwrites the other's layout, and pods lose their devices",
    link="https://learn.microsoft.com/azure/aks/gpu-multi-instance",
)
def _two_cutters(view: CloudView, pool: Observed) -> Fault | None:
    value, label = _properties(pool).get("gpuInstanceProfile"), pool.labels.get(MIG_CONFIG_LABEL)
    if not value or not label:
        return None
    kept = _without(pool, [MIG_CONFIG_LABEL])
    return fault(
        view.name_of(pool),
        f"AKS sets MIG on these GPUs ({value}), and the label {MIG_CONFIG_LABEL}={label} makes a MIG manager do so too",
        f"az aks nodepool update {_names(view, pool)} --labels {kept}",
        evidence=(f"gpuInstanceProfile={value}", f"label {MIG_CONFIG_LABEL}={label}"),
    )


@_CHECKS.each_pool(
    "aks-spot-taint",
    title="Spot pools that lost their taint",
    consequence="pods that do not tolerate evictions are scheduled there",
    link="https://github.com/Azure/AKS/issues/3152",
    severity="warning",
)
def _spot_taint(view: CloudView, pool: Observed) -> Fault | None:
    spot = _properties(pool).get("scaleSetPriority") == "Spot"
    if not spot or any(taint.key == _SPOT for taint in pool.effective_taints):
        return None
    taints = ",".join([*map(str, pool.effective_taints), f"{_SPOT}=spot:NoSchedule"])
    return fault(
        view.name_of(pool),
        f"the Spot pool lost its taint {_SPOT}=spot:NoSchedule",
        f"az aks nodepool update {_names(view, pool)} --node-taints {taints}",
        evidence=("scaleSetPriority=Spot", f"nodeTaints={','.join(map(str, pool.effective_taints)) or 'none'}"),
    )


@_CHECKS.each_pool(
    "aks-spot-price",
    title="Spot pools whose maximum price is too low",
    consequence="the pool is Succeeded and never gets a node, and an autoscaler waits for it before it tries others",
    link="https://github.com/Azure/AKS/issues/4404",
    severity="warning",
)
def _spot_price(view: CloudView, pool: Observed) -> Fault | None:
    price, machine = pool.fields.get(FieldPath("capacity", "maxPrice")), _machine(pool)
    full = machine.price_usd_h if machine else None
    if not isinstance(price, int | float) or machine is None or full is None or price >= full * _LARGEST_DISCOUNT:
        return None
    return fault(
        view.name_of(pool),
        f"spotMaxPrice {price:g} is less than a tenth of what {machine.name} costs on demand, {full:g} USD per hour",
        f"create a pool with --spot-max-price -1, then {_remove(view, pool)}",
        evidence=(f"spotMaxPrice={price:g}", f"count={pool.nodes}", f"prices of {machine.price_region}"),
    )


@_CHECKS.each_pool(
    "aks-deallocate",
    title="GPU pools that deallocate machines on scale-down",
    consequence="the GPU Operator no longer starts after about ten stops, and the machines count towards the quota",
    link="https://github.com/NVIDIA/gpu-operator/issues/729",
    severity="warning",
)
def _deallocate(view: CloudView, pool: Observed) -> Fault | None:
    if _properties(pool).get("scaleDownMode") != "Deallocate" or _machine(pool) is None:
        return None
    return fault(
        view.name_of(pool),
        "the pool deallocates machines on scale-down instead of deleting them",
        f"az aks nodepool update {_names(view, pool)} --scale-down-mode Delete",
        evidence=("scaleDownMode=Deallocate",),
    )


@_CHECKS.each_pool(
    "aks-retired-tag",
    title="the retired tag that disabled the driver",
    consequence="new nodes have AKS's driver in addition to your own",
    link="https://github.com/Azure/AKS/issues/4925",
    severity="warning",
)
def _retired_tag(view: CloudView, pool: Observed) -> Fault | None:
    tags = {path.key: value for path, value in pool.fields.items() if path.is_below("tags")}
    found = next((key for key in tags if key.casefold() == _RETIRED_TAG), "")
    if not found:
        return None
    return fault(
        view.name_of(pool),
        f"the tag {found} no longer disables AKS's driver; pools with it cannot be created again",
        f"create a pool with --gpu-driver none, then {_remove(view, pool)}",
        evidence=(f"tag {found}={tags[found]}",),
    )


@_CHECKS.each_pool(
    "aks-a10-image",
    title="node images whose driver does not work with A10",
    consequence="the driver loses its license, and the nodes advertise no GPU",
    link="https://github.com/Azure/AKS/issues/5875",
)
def _a10_image(view: CloudView, pool: Observed) -> Fault | None:
    image, machine = str(_properties(pool).get("nodeImageVersion") or ""), _machine(pool)
    version = image.rpartition("-")[2]
    if machine is None or machine.model.chip != "A10" or not re.fullmatch(r"\d{6}\.\d+\.\d+", version):
        return None
    old = tuple(map(int, version.split("."))) < _A10_FLOOR
    if not old and version != _A10_BAD:
        return None
    return fault(
        view.name_of(pool),
        f"the driver of node image {version} does not work with A10",
        f"az aks nodepool upgrade {_names(view, pool)} --node-image-only",
        evidence=(f"nodeImageVersion={image}", f"vmSize={machine.name}"),
        why="" if old else "the two parts of the driver differ, the plugin crash-loops, and there is no GPU",
    )


@_CHECKS.each_pool(
    "aks-system-without-driver",
    title="node systems without an NVIDIA driver",
    consequence="the device plugin finds no driver, and the nodes advertise no GPU",
    link="https://learn.microsoft.com/azure/aks/use-nvidia-gpu",
)
def _system_without_driver(view: CloudView, pool: Observed) -> Fault | None:
    system, machine = str(_properties(pool).get("osSKU") or ""), _machine(pool)
    arm = machine is not None and machine.arch == "arm64" and system == "AzureContainerLinux"
    if machine is None or not (system == _NO_GPU_SYSTEM or arm):
        return None
    return fault(
        view.name_of(pool),
        f"osSKU {system} has no NVIDIA driver for {machine.name}",
        f"create a pool with --os-sku Ubuntu, then {_remove(view, pool)}",
        evidence=(f"osSKU={system}", f"vmSize={machine.name}"),
    )


@_CHECKS.each_pool(
    "aks-system-mode",
    title="GPU pools of mode System",
    consequence="such a pool cannot scale to 0 nor keep other pods away by a taint, "
    "so GPUs cost money without being used",
    link="https://github.com/Azure/AKS/issues/2578",
    severity="warning",
)
def _system_mode(view: CloudView, pool: Observed) -> Fault | None:
    machine = _machine(pool)
    if _properties(pool).get("mode") != "System" or machine is None:
        return None
    return fault(
        view.name_of(pool),
        f"system pods run on {machine.name}: the pool's mode is System",
        f"once there is another System pool: az aks nodepool update {_names(view, pool)} --mode User",
        evidence=("mode=System",),
    )


@_CHECKS.each_pool(
    "aks-stopped",
    title="pools that are stopped",
    consequence="pods that request its GPUs stay Pending",
    link="https://learn.microsoft.com/azure/aks/start-stop-nodepools",
    severity="warning",
)
def _stopped(view: CloudView, pool: Observed) -> Fault | None:
    if pool.status != "Stopped":
        return None
    return fault(
        view.name_of(pool),
        "the pool is stopped: it has no nodes, and its autoscaler is off",
        f"az aks nodepool start {_names(view, pool)}",
        evidence=("powerState.code=Stopped",),
    )


def _without(pool: Observed, keys: list[str]) -> str:
    """Return the labels to keep as arguments: an update replaces all labels, and AKS adds its own again."""
    kept = (
        f"{k}={v}"
        for k, v in sorted(pool.labels.items())
        if k not in keys and not (k.startswith("kubernetes.azure.com/") or k in ("agentpool", "accelerator"))
    )
    return " ".join(kept) or '""'


DIAGNOSIS: Final = Diagnosis(
    checks=_CHECKS,
    problem_of=_problem_of,
    autoscaler=Autoscaler(_expected, _fix_command, "kubernetes.azure.com/accelerator", judged_by_rules=True),
    show=_show,
    remove=_remove,
    upgrade=_upgrade,
    node_version=_node_version,
    brought=("driver", "toolkit"),
    toolkit_from=0,
    operator_values=(
        "driver.enabled=false",
        "toolkit.enabled=false",
        "operator.runtimeClass=nvidia-container-runtime",
    ),
)
"""Operator next to AKS's own driver and toolkit: NVIDIA/gpu-operator#525. Label: docs: aks/use-labels.

A toolkit on pools without AKS's driver: NVIDIA/aicr#1688, which names no version."""
