"""Node pools as resources of the Terraform provider hashicorp/google: google_container_node_pool.

Its arguments are the fields of google.container.v1 in another spelling, but for those in `_RENAMED`
(hashicorp/terraform-provider-google website/docs/r/container_node_pool.html.markdown, and container_cluster for
node_config).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Losses
from gpukube.core.hcl import Block, Expression, block, import_block, render, resource_name
from gpukube.core.jsontree import at, leaves, number, texts, tree, trees
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
}
_MAPS: Final = frozenset({"config.labels", "config.resourceLabels"})
"""Fields that are arguments, not blocks."""
_NUMBERS: Final = re.compile(r"(count|Count|Gb|maxSurge|maxUnavailable|maxPodsPerNode|threadsPerCore|PerGpu)$")
"""Names of fields whose numbers google.container.v1 writes as texts, 64 bits wide."""
_LEFT_OUT: Final = frozenset({"name", "initialNodeCount", "autoscaling.enabled"})
_NO_ARGUMENT: Final = (
    "bestEffortProvisioning",
    "config.consolidationDelay",
    "config.gpuDirectConfig",
)
_LIVE: Final = frozenset(
    {
        "autoscaling",
        "locations",
        "management",
        "maxPodsConstraint",
        "nodeDrainConfig",
        "placementPolicy",
        "queuedProvisioning",
    }
)
"""Members of a live pool that are written beside its nodes' own."""
_LIVE_CONFIG: Final = frozenset(
    {
        "accelerators",
        "bootDiskKmsKey",
        "diskSizeGb",
        "diskType",
        "ephemeralStorageLocalSsdConfig",
        "flexStart",
        "gcfsConfig",
        "gvnic",
        "imageType",
        "labels",
        "localNvmeSsdBlockConfig",
        "machineType",
        "maxRunDuration",
        "minCpuPlatform",
        "oauthScopes",
        "reservationAffinity",
        "resourceLabels",
        "secondaryBootDisks",
        "serviceAccount",
        "spot",
        "tags",
        "workloadMetadataConfig",
    }
)


def write_hcl(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Write the resources of the pools, with import blocks for live ones."""
    losses.note(f"the provider: hashicorp/google, configured for project {cluster.identity['project']}")
    losses.note("taints: GKE adds some by itself, the GPU taint too; their changes are ignored")
    return render(resource for pool in pools for resource in resources_of(cluster, pool, losses))


def resource_of(cluster: ClusterRef, pool: ExportedPool) -> Block:
    """Give the block that is the pool."""
    return resources_of(cluster, pool, Losses())[-1]


def resources_of(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> list[Block]:
    """Give the blocks of one pool, the import included."""
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
    return [*([import_block(POOL, name, place)] if pool.live else []), resource]


def _live(pool: ExportedPool) -> dict[str, object]:
    """Give what is live: of most fields another value would replace the pool. Versions are left to the service."""
    native = tree(pool.live.native) if pool.live else {}
    kept = {name: value for name, value in native.items() if name in _LIVE and value not in (None, [], {})}
    if not at(kept, "autoscaling", "enabled"):
        kept.pop("autoscaling", None)
    config = {name: value for name, value in tree(native, "config").items() if name in _LIVE_CONFIG}
    return {**kept, "initialNodeCount": native.get("initialNodeCount"), "config": config}


def _items(pool: ExportedPool, members: Mapping[str, object], above: str, losses: Losses) -> Iterator[Block | Argument]:
    """Write arguments, then blocks."""
    blocks: list[Block] = []
    for key, value in members.items():
        path = f"{above}{key}"
        name = _RENAMED.get(path) or _CAPITAL.sub("_", key).lower()
        if path in _LEFT_OUT or value is None:
            continue
        if path.startswith(_NO_ARGUMENT):
            losses.note(f"{pool.name}: {path}: the provider has no argument for it")
        elif path in _MAPS:
            yield name, texts(value)
        elif path in ("maxPodsConstraint", "config.loggingConfig"):
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
    return int(value) if isinstance(value, str) and value.isdecimal() and _NUMBERS.search(path[-1]) else value
