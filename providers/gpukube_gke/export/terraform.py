"""Exports node pools as resources of the Terraform provider hashicorp/google: google_container_node_pool.

Its arguments are the fields of google.container.v1 in another spelling, except for those in `_RENAMED`
(hashicorp/terraform-provider-google website/docs/r/container_node_pool.html.markdown, and container_cluster for
node_config).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Losses
from gpukube.core.hcl import Block, Expression, block, import_block, render, resource_name
from gpukube.core.jsontree import at, leaves, number, text, texts, tree, trees
from gpukube_gke.export.request import node_pool_of
from gpukube_gke.facts.places import cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.exporting import ExportedPool
    from gpukube.core.hcl import Argument
    from gpukube.core.values import ClusterRef

POOL: Final = "google_container_node_pool"
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RENAMED: Final[Mapping[str, str]] = {
    "locations": "node_locations",
    "maxPodsConstraint.maxPodsPerNode": "max_pods_per_node",
    "config": "node_config",
    "config.accelerators": "guest_accelerator",
    "config.accelerators.acceleratorType": "type",
    "config.accelerators.acceleratorCount": "count",
    "config.taints": "taint",
    "config.loggingConfig.variantConfig.variant": "logging_variant",
    "config.linuxNodeConfig.hugepages": "hugepages_config",
    "config.linuxNodeConfig.hugepages.hugepageSize2m": "hugepage_size_2m",
    "config.linuxNodeConfig.hugepages.hugepageSize1g": "hugepage_size_1g",
    "config.soleTenantConfig.nodeAffinities": "node_affinity",
    "networkConfig.podCidrOverprovisionConfig.disable": "disabled",
}
_MAPS: Final = frozenset(
    {"config.labels", "config.resourceLabels", "config.metadata", "config.linuxNodeConfig.sysctls"}
)
"""Fields that are arguments, not blocks."""
_NUMBERS: Final = re.compile(
    r"(count|Count|Gb|Gib|maxSurge|maxUnavailable|maxPodsPerNode|threadsPerCore|PerGpu|podPidsLimit|provisioned\w+)$"
)
"""Names of fields whose 64-bit numbers are strings in google.container.v1."""
_LEFT_OUT: Final = frozenset({"name", "initialNodeCount", "autoscaling.enabled"})
_NO_ARGUMENT: Final = (
    "bestEffortProvisioning",
    "maintenancePolicy",
    "upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy",
    "config.consolidationDelay",
    "config.gpuDirectConfig",
    "config.containerdConfig.registryHosts",
    "config.kubeletConfig.crashLoopBackOff",
    "config.kubeletConfig.shutdownGracePeriod",
    *(
        f"config.linuxNodeConfig.{name}"
        for name in ("accurateTimeConfig", "customNodeInit", "diskIoScheduler", "nodeVfioConfig", "swapConfig")
    ),
)
_TAGS: Final = "config.resourceManagerTags"
_POD_NETWORKS: Final = "networkConfig.additionalPodNetworkConfigs.maxPodsPerNode"
_AS_WORDS: Final = frozenset({"insecureKubeletReadonlyPortEnabled"})
"""Switches that the provider has as "TRUE" and "FALSE", so that unset differs from false."""
_LIVE: Final = frozenset({"autoscaling", "locations", "management", "maxPodsConstraint", "placementPolicy"})
"""Members of a live pool that are exported even if a spec would not have them."""
_LIVE_CONFIG: Final = frozenset(
    {
        "bootDiskKmsKey",
        "diskSizeGb",
        "diskType",
        "ephemeralStorageLocalSsdConfig",
        "gcfsConfig",
        "gvnic",
        "imageType",
        "localNvmeSsdBlockConfig",
        "minCpuPlatform",
        "secondaryBootDisks",
        "tags",
        "workloadMetadataConfig",
    }
)
_SWITCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "management": ("autoRepair", "autoUpgrade"),
    "shieldedInstanceConfig": ("enableSecureBoot", "enableIntegrityMonitoring"),
}
"""Members that default to true in the provider, while the API omits them if they are false."""
_SYSTEM_LABELS: Final = "goog-gke-"
"""Prefix of resource labels that GKE writes and the provider ignores."""


_SERVICE: Final = frozenset(
    {
        "autoscaling",
        "conditions",
        "config",
        "etag",
        "initialNodeCount",
        "instanceGroupUrls",
        "name",
        "podIpv4CidrSize",
        "selfLink",
        "status",
        "statusMessage",
        "updateInfo",
        "version",
    }
)
"""Members of a live pool that are status, or are exported separately."""


def write_hcl(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return the resources of the pools, with import blocks for live ones."""
    losses.note(f"the provider: hashicorp/google, configured for project {cluster.identity['project']}")
    losses.note("taints: GKE adds some itself, including the GPU taint; Terraform ignores their changes")
    return render(resource for pool in pools for resource in resources_of(cluster, pool, losses))


def resource_of(cluster: ClusterRef, pool: ExportedPool) -> Block:
    """Return the resource block of the pool."""
    return resources_of(cluster, pool, Losses())[-1]


def resources_of(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> list[Block]:
    """Return the blocks of one pool, including the import."""
    name, wire = resource_name(pool.name), _live(pool) if pool.live else node_pool_of(pool)
    scaled = bool(at(wire, "autoscaling", "enabled"))
    moved = ["node_config[0].taint", "initial_node_count"]
    moved += ["node_count"] if scaled else []
    moved += [] if wire.get("version") else ["version"]
    body: list[Block | Argument] = [
        ("name", pool.name),
        ("cluster", cluster_name(cluster)),
        ("node_count", None if scaled else number(wire, "initialNodeCount")),
        *_items(pool, wire, "", losses),
        block("lifecycle", ("ignore_changes", [Expression(one) for one in moved])),
    ]
    place = f"{cluster.identity['project']}/{cluster.identity['location']}/{cluster.name}/{pool.name}"
    resource = Block("resource", (POOL, name), body)
    if pool.live:
        native = tree(pool.live.native)
        losses.note_unwritten(pool, native, wire.keys() | _SERVICE)
        losses.note_unwritten(pool, tree(native, "config"), tree(wire, "config").keys() | {"taints"}, "config.")
    return [*([import_block(POOL, name, place)] if pool.live else []), resource]


def _live(pool: ExportedPool) -> dict[str, object]:
    """Return the live members that a spec would set, and others, since a different value usually replaces the pool.

    The service manages versions; taints are those that a spec has.
    """
    native, written = tree(pool.live.native) if pool.live else {}, node_pool_of(pool)
    config, chosen = tree(native, "config"), tree(written, "config")
    found = {name: native[name] for name in sorted(_LIVE | written.keys()) if native.get(name) not in (None, [], {})}
    nodes = {name: config[name] for name in sorted(_LIVE_CONFIG | chosen.keys()) if name in config}
    nodes |= {name: chosen[name] for name in ("taints",) if name in chosen}
    for part in (found, nodes):
        for name in _SWITCHES.keys() & part.keys():
            part[name] = {**dict.fromkeys(_SWITCHES[name], False), **tree(part, name)}
    if not at(found, "autoscaling", "enabled"):
        found.pop("autoscaling", None)
    tags = texts(nodes, "resourceLabels")
    nodes["resourceLabels"] = {key: tags[key] for key in sorted(tags) if not key.startswith(_SYSTEM_LABELS)}
    found.pop("version", None)
    return {**found, "initialNodeCount": native.get("initialNodeCount"), "config": nodes}


def _items(pool: ExportedPool, members: Mapping[str, object], above: str, losses: Losses) -> Iterator[Block | Argument]:
    """Yield arguments, then blocks."""
    blocks: list[Block] = []
    for key, value in members.items():
        path = f"{above}{key}"
        name = _RENAMED.get(path) or _CAPITAL.sub("_", key).lower()
        if path in _LEFT_OUT or value is None:
            continue
        if path.startswith(_NO_ARGUMENT):
            losses.note(f"{pool.name}: {path}: the provider has no argument for it")
        elif path in _MAPS:
            yield name, dict(sorted(texts(value).items()))
        elif path == _TAGS:
            yield name, dict(sorted(texts(value, "tags").items()))
        elif path in ("maxPodsConstraint", "config.loggingConfig", _POD_NETWORKS):
            ((inner, below),) = leaves({key: value})
            yield _RENAMED.get(f"{above}{'.'.join(inner)}", name), _scalar(inner, below)
        elif isinstance(value, dict):
            blocks += [block(name, *_items(pool, value, f"{path}.", losses))]
        elif trees(value):
            blocks += [block(name, *_items(pool, one, f"{path}.", losses)) for one in trees(value)]
        else:
            yield name, _scalar((key,), value)
    yield from blocks


def _scalar(path: Sequence[str], value: object) -> object:
    if path[-1] in _AS_WORDS:
        return text(value).upper()
    return int(value) if isinstance(value, str) and value.isdecimal() and _NUMBERS.search(path[-1]) else value
