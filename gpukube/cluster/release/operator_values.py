"""Values of the GPU Operator's chart for the pools it serves, and which nodes its operands would reach.

In scope: pools and live values -> chart values; pure. Out of scope: whether this chart is the cluster's release (plan),
and what the charts share (shared_values).

What the values ensure (NVIDIA/gpu-operator v26.7.0, chart, controllers/object_controls.go, state_manager.go):
- The device plugin is off in the whole cluster if the operator serves pools of the DRA driver, for MIG or the driver:
  labels that keep single operands off a node are removed until NFD has seen it (nodelabeling_controller.go).
- Driver and toolkit are off unless the pools' owner is the operator (their ownership's own values): it installs both on
  all nodes that it serves or on none, so a release switches between the two only while it serves no node.
- `mig.strategy` becomes an environment variable of plugin and feature discovery that overrides every config entry.
  Omitting it ("") would render `mig:` as null, which server-side apply, and so Helm 4, rejects (#478): it is the
  strategy of all pools with MIG. Pools without MIG look the same with either, but MPS does not work with mixed.
- `daemonsets.tolerations` replaces the list of every operand; it does not apply to NFD or to the operator itself.
- The operator manages every node on which NFD has detected an NVIDIA PCI device. A bundled NFD runs only on gpukube's
  nodes; with labels of another NFD it would manage all, except those labeled nvidia.com/gpu.deploy.operands=false.
- On A100 and A30 in a virtual machine the MIG mode changes only with a reboot: WITH_REBOOT (NVIDIA/gpu-operator#668,
  #1606; NVIDIA/mig-parted reconfigure-mig.sh).
- `operator.upgradeCRD` runs a job before each upgrade and would wait for a node; it is on if the version changes.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.names import DRA_DRIVER, GPU_OPERATOR
from gpukube.cluster.release.chart_settings import lay_over, requested_values
from gpukube.cluster.release.mig_layouts import put_layouts
from gpukube.cluster.release.shared_values import (
    CONTROL_PLANE,
    DEFAULT_KEY,
    GPU_TAINTS,
    cover_taints,
    merged_entries,
    put,
    served_names,
)
from gpukube.core.jsontree import at, text, texts, tree
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.core.yamltext import parse_yaml
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.views import NodeView, Toleration
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.shared_values import ReleaseContext
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed

REBOOT: Final = {"name": "WITH_REBOOT", "value": "true"}
"""Environment variable of the MIG manager."""
_NFD: Final = GPU_OPERATOR.nfd
_TOLERATION_LISTS: Final[tuple[tuple[tuple[str, ...], tuple[Toleration, ...]], ...]] = (
    (("daemonsets", "tolerations"), (GPU_TAINTS,)),
    (("operator", "tolerations"), (CONTROL_PLANE, GPU_TAINTS)),
    ((_NFD, "worker", "tolerations"), (CONTROL_PLANE, GPU_TAINTS)),
    ((_NFD, "master", "tolerations"), (CONTROL_PLANE, GPU_TAINTS)),
    ((_NFD, "gc", "tolerations"), (GPU_TAINTS,)),
)
"""Every list of tolerations that must cover the pools' taints, with the entries of the chart's own default (plus
nvidia.com/gpu for components that can run anywhere: a cluster may have no other nodes)."""
_FIXED: Final[tuple[tuple[tuple[str, ...], object], ...]] = (
    (("driver", "enabled"), False),
    (("toolkit", "enabled"), False),
    (("gfd", "enabled"), True),
    (("migManager", "enabled"), True),
    (("clusterPolicy", "deployCR"), True),
    (("gpuCluster", "deployCR"), False),
    (("sandboxWorkloads", "enabled"), False),
)
_OF_DRIVER: Final = (
    ("hostPaths", "driverInstallDir"),
    ("toolkit", "installDir"),
    ("toolkit", "env"),
    ("extraObjects",),
)
"""Values that belong to a driver installation; the operator then installs the toolkit too."""
_BANNED: Final = ("nameOverride", "fullnameOverride")
"""Values that would break gpukube's (the operands' managed-by label contains the name): removed from live values,
rejected in a spec."""
_ANYWHERE_BUT_GPUS: Final = [
    {
        "weight": 1,
        "preference": {
            "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "In", "values": [""]}]
        },
    },
    {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": ADVERTISER_LABEL, "operator": "DoesNotExist"}]},
    },
]
"""Affinity of the operator itself: the chart's own preference, and if possible not where a MIG change reboots its
node."""
_SEEN_BY_NFD: Final = tuple(
    f"feature.node.kubernetes.io/{name}.present" for name in ("pci-10de", "pci-0302_10de", "pci-0300_10de")
)
"""Labels by which the operator recognizes a GPU node (state_manager.go, gpuNodeLabels)."""
_OPT_OUT: Final = "nvidia.com/gpu.deploy.operands"
_MOST_NAMED: Final = 3


def operator_values(pools: Sequence[Desired], context: ReleaseContext) -> dict[str, object]:
    """Merge what these pools need into the live values; deterministic, and independent of the pools' order."""
    values = copy.deepcopy(dict(context.live))
    advertised = [pool for pool in pools if pool.ownership.advertiser == GPU_OPERATOR.advertiser]
    lay_over(values, requested_values(advertised))
    for name in _BANNED:
        values.pop(name, None)
    if at(values, "toolkit", "enabled") is True:
        _forget_driver_values(values)
    for path, value in _FIXED:
        put(values, path, new=copy.deepcopy(value))
    put(values, ("devicePlugin", "enabled"), new=not _is_claimed(pools))
    advertiser = DRA_DRIVER.advertiser if _is_claimed(pools) else GPU_OPERATOR.advertiser
    put(values, (_NFD, "worker", "nodeSelector"), new={ADVERTISER_LABEL: advertiser})
    config = {
        "create": True,
        "name": GPU_OPERATOR.config_map,
        "default": DEFAULT_KEY,
        "data": merged_entries(advertised, context, GPU_OPERATOR.entries),
    }
    put(values, ("devicePlugin", "config"), new=config)
    # "single" leaves whole GPUs unchanged where no MIG is configured.
    put(values, ("mig", "strategy"), new=min(mig_strategies(pools, context), default="single"))
    put(values, ("migManager", "env"), new=_with_reboot(context))
    put_layouts(values, pools, context)
    put(values, ("nfd", "enabled"), new=context.bundle_nfd)
    preferred = ("operator", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    put(values, preferred, new=copy.deepcopy(_ANYWHERE_BUT_GPUS))
    moved_before = tree(context.live, "operator").get("upgradeCRD") is True
    put(values, ("operator", "upgradeCRD"), new=context.moves or moved_before)
    cover_taints(values, _TOLERATION_LISTS, pools, context)
    for pool in pools:
        beside = pool.ownership.operator_values
        for name, own in (pool.ownership.values if beside is None else beside).items():
            put(values, tuple(name.split(".")), new=own)
    return values


def _is_claimed(pools: Sequence[Desired]) -> bool:
    """Return whether the operator serves pools of the DRA driver; the solver refuses others beside them."""
    return any(pool.ownership.advertiser == DRA_DRIVER.advertiser for pool in pools)


def _forget_driver_values(values: dict[str, object]) -> None:
    """Remove the values of a driver installation; the pools provide their own, and a release may switch."""
    for path in _OF_DRIVER:
        branch = tree(values, *path[:-1])
        if path[-1] in branch:
            del branch[path[-1]]
            if path[:-1]:
                put(values, path[:-1], branch)
            else:
                del values[path[-1]]


def mig_strategies(pools: Sequence[Desired], context: ReleaseContext) -> frozenset[str]:
    """Return the strategies of all pools with MIG: these, and those whose live entries other pools and nodes name.

    A strategy says how a plugin names MIG devices, so pools of the DRA driver have none.
    """
    if _is_claimed(pools):
        return frozenset()
    requested = {pool.target.sharing.mig.strategy for pool in pools if pool.target.sharing.mig}
    live = texts(context.live, *GPU_OPERATOR.entries)
    named = {_strategy_of(live[key]) for key in context.by_others if key in live}
    return frozenset(requested | named) - {"", "none"}


def _strategy_of(entry: str) -> str:
    try:
        return text(parse_yaml(entry), "flags", "migStrategy")
    except yaml.YAMLError:  # edited manually; the plugin logs it on its node
        return ""


def check_declared_strategies(pools: Sequence[Desired]) -> list[Finding]:
    """Report declared pools that one MIG strategy cannot serve, each at its place in the spec.

    Args:
        pools: Pools of one cluster that the operator serves.
    """
    if _is_claimed(pools):
        return []
    cut = [pool.target for pool in pools if pool.target.sharing.mig]
    found = []
    for target in cut[1:]:
        first, mine = cut[0].sharing.mig, target.sharing.mig
        if first and mine and first.strategy != mine.strategy:
            where = target.locator.at("sharing.mig.strategy")
            message = f"{target.where} has MIG strategy {mine.strategy}, but {cut[0].where} has {first.strategy}"
            found.append(_one_strategy(where, message, f"write strategy: {first.strategy}"))
    mixed = next((target for target in cut if target.sharing.mig and target.sharing.mig.strategy == "mixed"), None)
    for target in (pool.target for pool in pools):
        if mixed and target.sharing.slicing and target.sharing.slicing.mode == "mps":
            message = f"{target.where} is shared by MPS, but {mixed.where} has MIG strategy mixed"
            fix = f"write sharing.timeSlicing here, or strategy: single for {mixed.where}"
            found.append(_one_strategy(target.locator.at("sharing.mps"), message, fix))
    return found


def check_strategies(pools: Sequence[Desired], context: ReleaseContext, where: Where) -> list[Finding]:
    """Report pools that one MIG strategy for the whole cluster cannot serve.

    Args:
        pools: Pools that the operator serves.
        context: The live release, and the entries that other pools name.
        where: The cluster, for the message.
    """
    strategies = mig_strategies(pools, context)
    if len(strategies) > 1:
        message = "the cluster has pools with MIG strategies single and mixed"
        return [_one_strategy(where, message, "write one sharing.mig.strategy for all its pools")]
    slicings = {pool.target.pool: pool.target.sharing.slicing for pool in pools}
    shared = sorted(name for name, slicing in slicings.items() if slicing and slicing.mode == "mps")
    if shared and "mixed" in strategies:
        message = f"{', '.join(shared)} is shared by MPS, but the cluster has a pool with MIG strategy mixed"
        return [_one_strategy(where, message, "write strategy: single for the MIG pools")]
    return []


def check_drivers(
    pools: Sequence[Desired], seen: Snapshot, live_pools: Sequence[Observed], where: Where
) -> list[Finding]:
    """Report a live operator that would start or stop installing the driver while it serves nodes, and mixed systems.

    Args:
        pools: Pools that the operator serves.
        seen: The cluster.
        live_pools: All pools of the cluster.
        where: The cluster, for the messages.
    """
    brings = pools[0].ownership.driver == "operator"
    images = sorted({pool.target.image or "the default image" for pool in pools}) if brings else []
    found = [_one_system(where, images)] if len(images) > 1 else []
    release = seen.release_of(GPU_OPERATOR)
    served = served_names(seen, live_pools, GPU_OPERATOR.carries)
    if release and served and (at(release.values, "driver", "enabled") is True) != brings:
        does = "does not install the driver" if brings else "installs the driver"
        found.append(
            Finding(
                "operator-driver",
                where,
                f"the GPU Operator of the cluster {does}, and serves {_some(served)}",
                why="it installs driver and container toolkit on all its nodes or on none, and existing nodes "
                "would get a second driver or lose theirs",
                fix="delete the pools that it serves first (gpukube pool delete), or use another cluster",
            )
        )
    return found


def check_plugin(
    pools: Sequence[Desired], seen: Snapshot, live_pools: Sequence[Observed], where: Where
) -> list[Finding]:
    """Report a live operator whose device plugin would be turned on or off while it serves nodes that it should not.

    Args:
        pools: Pools that the operator serves.
        seen: The cluster.
        live_pools: All pools of the cluster.
        where: The cluster, for the messages.
    """
    release = seen.release_of(GPU_OPERATOR)
    if release is None:
        return []
    off = _is_claimed(pools)
    harmed = GPU_OPERATOR if off else DRA_DRIVER
    served = served_names(
        seen,
        live_pools,
        lambda labels: GPU_OPERATOR.carries(labels) and labels.get(ADVERTISER_LABEL) == harmed.advertiser,
    )
    loses = (
        "its nodes would advertise no GPUs"
        if off
        else "NVIDIA's DRA driver publishes their GPUs already, and pods would get the same GPU twice"
    )
    if not served or off == (at(release.values, "devicePlugin", "enabled") is False):
        return []
    return [
        Finding(
            "operator-plugin",
            where,
            f"the device plugin of the cluster's GPU Operator would be turned {'off' if off else 'on'}, and it serves "
            f"{_some(served)}",
            why=f"the plugin is on or off on all of its nodes: {loses}",
            fix="delete the pools that it serves first (gpukube pool delete), or use another cluster",
        )
    ]


def _one_system(where: Where, images: Sequence[str]) -> Finding:
    return Finding(
        "operator-driver",
        where,
        f"the GPU Operator would install the driver on pools of {' and of '.join(images)}",
        why="it builds the driver for one operating system of a cluster "
        "(NVIDIA/cloud-native-docs, gpu-driver-configuration)",
        fix="write the same image for all of them, or move them to another cluster",
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _one_strategy(where: Where, message: str, fix: str) -> Finding:
    why = "the GPU Operator's chart sets one MIG strategy for the plugin on all nodes, and MPS does not work with mixed"
    return Finding("operator-strategy", where, message, why=why, fix=f"{fix}, or move them to another cluster")


def _with_reboot(context: ReleaseContext) -> list[object]:
    """Return the MIG manager's environment with the reboot; keep live and overwritten settings, each name once."""
    others = {text(item, "name"): item for item in context.listed(("migManager", "env"))}
    others.pop(REBOOT["name"], None)
    return [dict(REBOOT), *(others[name] for name in sorted(others))]


def check_unserved_nodes(seen: Snapshot, where: Where, served: Sequence[Desired] = ()) -> list[Finding]:
    """Report nodes that the operator's operands would reach although gpukube does not serve them.

    Args:
        seen: The cluster.
        where: The cluster, for the message.
        served: Declared pools: their nodes are served, whichever release their labels still name.
    """
    served_marks = {(pool.target.owner, pool.target.pool) for pool in served}
    claimed = _is_claimed(served)
    strays = [
        node
        for node in seen.nodes
        if _is_unserved(node, DRA_DRIVER if claimed else GPU_OPERATOR)
        # The release changes before labels of pools, and its plugin must not start on nodes of the DRA driver.
        and (
            (node.labels.get(OWNER_LABEL, ""), node.labels.get(POOL_LABEL, "")) not in served_marks
            or (node.labels.get(ADVERTISER_LABEL) == DRA_DRIVER.advertiser and not claimed)
        )
    ]
    if not strays:
        return []
    names = [node.name for node in strays]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [
        Finding(
            "operator-strays",
            where,
            f"the GPU Operator would also serve {', '.join(names[:_MOST_NAMED])}{more}, outside its pools",
            why="it serves every node on which node-feature-discovery found an NVIDIA device, which adds a second "
            "plugin where one is already running",
            fix=f"exclude them: kubectl label node {' '.join(names)} {_OPT_OUT}=false (and in their pools, for "
            "new nodes); or move the MIG pools to another cluster",
        )
    ]


def _is_unserved(node: NodeView, kind: ReleaseKind) -> bool:
    return (
        node.labels.get(ADVERTISER_LABEL) != kind.advertiser
        and any(node.labels.get(key) == "true" for key in _SEEN_BY_NFD)
        and node.labels.get(_OPT_OUT) != "false"
    )
