"""A node pool as a whole: its name, zones, size, version, upgrades, and management.

In scope: those rules, and running all rules on a pool with its defaults. Out of scope: state, changes to an existing
pool (`updates`), rules between operations (`operations`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.provisioning import check_provisioning
from gpukube_sandbox.gke.rules.labels import check_metadata
from gpukube_sandbox.gke.rules.machines import check_machines
from gpukube_sandbox.gke.rules.nodes import check_nodes
from gpukube_sandbox.gke.versions import parse_version
from gpukube_sandbox.gke.wire.answers import bad
from gpukube_sandbox.gke.wire.names import exists, region_of

if TYPE_CHECKING:
    from gpukube_sandbox.gke.rules.facts import ClusterFacts

_NAME = re.compile(r"(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)")
_PODS = range(8, 257)
_PER_ZONE = 1000
_SKEW = 2
_LONGEST_DRAIN_S = 7 * 86400


def check_pool(pool: wire.NodePool, facts: ClusterFacts) -> None:
    """Check a new pool.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    if not _NAME.fullmatch(pool.name):  # pulumi/pulumi-gcp#1510
        raise bad(
            f'Invalid value for field "node_pool.name": "{pool.name}". Must be a match of regex \'{_NAME.pattern}\' '
            "(only lowercase alphanumerics and '-' allowed, must start with a letter and end with an alphanumeric, and "
            "must be no longer than 40 characters)."
        )
    if pool.initial_node_count < 0 or pool.initial_node_count > _PER_ZONE:
        raise bad(f"Node_pool.initial_node_count must be between 0 and {_PER_ZONE}.")
    check_autoscaling(pool.autoscaling)
    check_management(pool.management, facts.channel)
    check_changeable(pool, facts)
    if pool.max_pods_constraint.max_pods_per_node not in _PODS:  # docs: kubernetes-engine/how-to/flexible-pod-cidr
        raise bad(f"Max_pods_per_node must be between {_PODS[0]} and {_PODS[-1]}.")


def check_changeable(pool: wire.NodePool, facts: ClusterFacts) -> None:
    """Check the properties that UpdateNodePool can change.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    _check_zones(pool, facts)
    check_metadata(pool.config)
    _check_upgrade_settings(pool)
    _check_network(pool.network_config)
    _check_version(pool.version, facts.version)
    check_nodes(pool.config)
    check_machines(pool.config, facts)
    check_provisioning(pool, facts.version)


def _check_zones(pool: wire.NodePool, facts: ClusterFacts) -> None:
    """Check zones: they exist, are in the cluster's region, occur once, and have the GPUs.

    The first message is seen in terraform-google-modules/terraform-google-kubernetes-engine#444.
    """
    region = region_of(facts.location)
    for zone in pool.locations:
        if not exists(zone):
            raise bad(f'Location "{zone}" does not exist.')
    for zone in pool.locations:
        if region_of(zone) != region or zone == region:
            raise bad(f"Location {zone!r} is not a zone in region {region!r} of the cluster.")
    if len(set(pool.locations)) != len(pool.locations):
        raise bad("Node_pool.locations holds a zone twice.")
    for zone in pool.locations:
        _check_zone_has(pool.config, zone, facts)


def _check_zone_has(config: wire.NodeConfig, zone: str, facts: ClusterFacts) -> None:
    for accelerator in config.accelerators:
        zones = facts.accelerator_zones.get(accelerator.accelerator_type)
        if zones is not None and zone not in zones:
            raise bad(f'Accelerator type "{accelerator.accelerator_type}" does not exist in zone {zone}.')


def check_autoscaling(scaling: wire.NodePoolAutoscaling) -> None:
    """Check autoscaling: one pair of limits, per zone or in total, with a maximum above zero."""
    total = scaling.total_min_node_count or scaling.total_max_node_count
    if total and (scaling.min_node_count or scaling.max_node_count):
        raise bad("Total node limits and per-zone node limits are mutually exclusive in node_pool_autoscaling.")
    if not scaling.enabled:
        return
    if not scaling.max_node_count and not scaling.total_max_node_count:
        raise bad(  # terraform-google-modules/terraform-google-kubernetes-engine#1554
            "Node_pool_autoscaling.max_node_count and node_pool_autoscaling.total_max_node_count cannot be both set to "
            "zero."
        )
    low, high = scaling.min_node_count, scaling.max_node_count
    if total:
        low, high = scaling.total_min_node_count, scaling.total_max_node_count
    if low < 0 or low > high:
        raise bad(f"Node_pool_autoscaling minimum {low} is greater than maximum {high}.")


def check_management(management: wire.NodeManagement, channel: str) -> None:
    """Require auto-upgrade on a release channel (the message is seen in many public Terraform runs)."""
    if channel and not management.auto_upgrade:
        raise bad(f"Auto_upgrade must be true when release_channel {channel} is set.")


def _check_version(version: str, plane: str) -> None:
    """Check that nodes are not newer than their control plane, and at most two minor versions older.

    Source:
        docs: kubernetes-engine/versioning (skew); hashicorp/terraform-provider-google#14389 (newer minor) and
        jetstack/terraform-google-gke-cluster#28 (unsupported) for the messages; which one a newer patch gets, and
        that an old one gets the second, is unconfirmed.
    """
    nodes, own = parse_version(version), parse_version(plane)
    if nodes[:2] > own[:2]:
        raise bad(f'Node version "{version}" must not have a greater minor version than master version "{plane}".')
    if nodes > own or nodes[0] != own[0] or nodes[1] < own[1] - _SKEW:
        raise bad(f'Node version "{version}" is unsupported.')


def _check_network(network: wire.NodeNetworkConfig) -> None:
    """Check the networks of accelerators: GKE makes them, or the pool names them.

    Source: the comment on NodeNetworkConfig.accelerator_network_profile; docs:
    ai-hypercomputer/docs/create/gke-ai-hypercompute-custom-a4x-max; messages unconfirmed.
    """
    profile = network.accelerator_network_profile
    if profile not in ("", "auto"):
        raise bad(f"Invalid value for accelerator_network_profile: {profile!r}; allowed is auto.")
    if profile and network.additional_node_network_configs:
        raise bad("Accelerator_network_profile and additional_node_network_configs are mutually exclusive.")


def _check_upgrade_settings(pool: wire.NodePool) -> None:
    """Check upgrade settings: a surge needs a node more or less, blue-green needs a batch size.

    Source: the comments on UpgradeSettings, StandardRolloutPolicy and AutoscaledRolloutPolicy.
    """
    settings = pool.upgrade_settings
    blue_green = settings.blue_green_settings
    standard = blue_green.standard_rollout_policy
    if "batch_percentage" in standard and not 0 < standard.batch_percentage <= 1:
        raise bad("Batch_percentage must be greater than 0.0 and at most 1.0.")
    longest = blue_green.autoscaled_rollout_policy.wait_for_drain_duration.total_seconds()
    if not 0 <= longest <= _LONGEST_DRAIN_S:
        raise bad("Wait_for_drain_duration must be between 0 and 7 days.")
    if "autoscaled_rollout_policy" in blue_green and not pool.autoscaling.enabled:
        raise bad("Autoscaled_rollout_policy requires node pool autoscaling to be enabled.")
    if not 0 <= blue_green.node_pool_soak_duration.total_seconds() <= _LONGEST_DRAIN_S:
        raise bad("Node_pool_soak_duration must be between 0 and 7 days.")
    if settings.strategy in (wire.NodePoolUpdateStrategy.BLUE_GREEN, wire.NodePoolUpdateStrategy.SHORT_LIVED):
        return
    if settings.max_surge < 0 or settings.max_unavailable < 0:
        raise bad("Max_surge and max_unavailable must not be negative.")
    if not settings.max_surge + settings.max_unavailable:
        raise bad("At least one of max_surge and max_unavailable must be greater than zero.")


def check_size(count: int) -> None:
    """Check the number of nodes per zone."""
    if not 0 <= count <= _PER_ZONE:
        raise bad(f"Node count must be between 0 and {_PER_ZONE} per zone; {count} was requested.")
