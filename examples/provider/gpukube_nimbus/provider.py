"""Nimbus for gpukube: the pure half.

Loaded wherever clouds are listed, so what only some commands need is imported by the method that needs it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.values import NodeStack
from gpukube.errors import Finding
from gpukube.provider import FEATURES, Ability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.exporting import Exporter
    from gpukube.core.fields import FieldPath
    from gpukube.core.in_cluster import InClusterFacts
    from gpukube.core.managers import Manager
    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.permissions import CloudPolicy, PolicyScope
    from gpukube.core.values import (
        Change,
        ClusterRef,
        Desired,
        Nodes,
        Observed,
        Ownership,
        Promise,
        Request,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.gpu.cloud_machines import CloudMachines
    from gpukube.provider import Cloud, Provider
    from gpukube.spec.cloud import CloudSpec

_NAME_LENGTH: Final = 30
_MISSING: Final = {
    "capacity.spot": "Nimbus sells no spot machines",
    "capacity.reserved": "Nimbus sells no reserved machines",
    "sharing.mig.mixed": "its plugin shows nvidia.com/gpu only",
    "sharing.mig.layout": "it cuts all GPUs of a pool alike",
    "sharing.timeSlicing": "its plugin shares no GPUs",
    "sharing.mps": "its plugin shares no GPUs",
    "zones": "a site has no zones",
    "disk.size": "its disks have one size",
    "disk.type": "it has one type of disk",
    "image": "it has one node image",
    "kubernetesVersion": "nodes have the version of their cluster",
    "upgrade.maxSurge": "it replaces nodes one by one",
    "upgrade.maxUnavailable": "it replaces nodes one by one",
    "maxPodsPerNode": "the number is fixed",
    "driver.version": "the driver is the one of its image",
}


class NimbusProvider:
    """A made-up cloud: one file holds all its clusters."""

    name = "nimbus"
    pools_at_once = 4
    tolerates_resources = True
    diagnosis = None
    catalog = None
    quotas = None
    durations = None
    exporters: Mapping[str, Exporter] = MappingProxyType({})  # `gpukube pool export` has no target for Nimbus
    upgrades = None

    @property
    def spec(self) -> CloudSpec:
        """Clusters and native fields of Nimbus."""
        from gpukube_nimbus.spec import SPEC

        return SPEC

    @property
    def machines(self) -> CloudMachines:
        """What Nimbus sells."""
        from gpukube_nimbus.machines import MACHINES

        return MACHINES

    @property
    def in_cluster(self) -> InClusterFacts:
        """By what its nodes are known."""
        from gpukube_nimbus.in_cluster import IN_CLUSTER

        return IN_CLUSTER

    @property
    def nodes(self) -> NodeFacts:
        """What its nodes are like for pods."""
        from gpukube_nimbus.nodes import NODES

        return NODES

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """What `check` may find: each rule with its number and title."""
        return {
            "nimbus-name": ("NIM101", "The name of a pool is too long for Nimbus."),
            "nimbus-native": ("NIM102", "Nimbus has no such field."),
        }

    def policies(self, scope: PolicyScope) -> tuple[CloudPolicy, ...]:
        """Whoever may write the file may do everything: there is nothing to grant."""
        del scope
        return ()

    def chosen_fields(self, observed: Observed) -> Mapping[FieldPath, object]:
        """Leave out the tag that Nimbus gives to every pool."""
        from gpukube.core.fields import tag

        return {path: value for path, value in observed.fields.items() if path != tag("made-by")}

    def managers(self, observed: Observed) -> tuple[Manager, ...]:
        """Look for the tag of Nimbus' own template service."""
        from gpukube_nimbus.pool import find_templates

        return find_templates(observed)

    def abilities(self) -> Mapping[str, Ability]:
        """Everything that is not missing is exact."""
        return {
            feature: Ability("missing", reason=_MISSING[feature]) if feature in _MISSING else Ability("exact")
            for feature in FEATURES
        }

    def check(self, target: Target) -> list[Finding]:
        """Find what Nimbus would refuse."""
        from gpukube_nimbus.pool import NATIVE

        found = []
        if len(target.name) > _NAME_LENGTH:
            message = f'{target.where}: "{target.name}" has more than {_NAME_LENGTH} characters'
            found.append(Finding("nimbus-name", target.locator.at("name"), message, fix="write a shorter name"))
        for key in target.native:
            if key not in NATIVE:
                message, fix = f'{target.where}: nimbus has no field "{key}"', f"write one of {', '.join(NATIVE)}"
                found.append(Finding("nimbus-native", target.locator.at(f"nimbus.{key}"), message, fix=fix))
        return found

    def stack(self, target: Target) -> NodeStack:
        """Describe what nodes bring: driver and plugin are in the image, and it cuts by a field of the pool."""
        return NodeStack(
            driver="cloud",
            advertiser="cloud",
            cut_by="cloud" if target.sharing.mig else "none",
            source="docs: nimbus.example/images",
            image="NimbusOS",
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_nimbus.pool import translate_pool

        return translate_pool(target, ownership, promise)

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Delete by name."""
        from gpukube_nimbus.pool import request_for

        return request_for(cluster, "delete_pool", name=observed.name)

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: a pool that failed must be deleted first."""
        del desired, observed
        return None

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: the creation carries everything."""
        del desired, observed
        return None

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Describe what changing this field does."""
        from gpukube_nimbus.pool import find_row

        del beside, live
        return find_row(change)

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """Make one call for all changes."""
        from gpukube_nimbus.pool import update_pool

        return update_pool(desired, observed, changes)

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """Set the size, or the bounds."""
        from gpukube_nimbus.pool import scale_pool

        return scale_pool(cluster, observed, nodes)

    def release_requests(self, cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
        """Take marks and copy off in one call."""
        from gpukube_nimbus.pool import release_pool

        return release_pool(cluster, observed)

    def copy_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Write the tags."""
        from gpukube_nimbus.pool import write_copy

        return write_copy(cluster, observed)

    def freeze_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Turn the autoscaler off."""
        from gpukube_nimbus.pool import freeze_pool

        return freeze_pool(cluster, observed)

    def check_coexistence(self, successor: Desired, observed: Observed) -> list[Finding]:
        """Nimbus sells no reservations: nothing speaks against two pools."""
        del successor, observed
        return []

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half. A real cloud imports its SDK here, within `gpukube.provider.importing_sdk`."""
        from gpukube_nimbus.client import connect_cluster

        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = NimbusProvider
