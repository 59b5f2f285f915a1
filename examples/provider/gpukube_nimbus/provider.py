"""The pure half of the Nimbus provider.

It is loaded wherever clouds are listed, so methods import what only some commands need.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.provider_parts import Extras
from gpukube.core.values import NodeStack
from gpukube.errors import Finding
from gpukube.provider import FEATURES, Ability, part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.provider_parts import PoolRequests
    from gpukube.core.values import (
        Change,
        ClusterRef,
        Desired,
        Observed,
        Ownership,
        Promise,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.gpu.cloud_machines import CloudMachines
    from gpukube.provider import Cloud, Provider
    from gpukube.spec.cloud import CloudSpec

_NAME_LENGTH: Final = 30
_MISSING: Final = {
    "capacity.spot": "Nimbus has no spot machines",
    "capacity.reserved": "Nimbus has no reserved machines",
    "sharing.mig.mixed": "its plugin advertises only nvidia.com/gpu",
    "sharing.mig.layout": "it partitions all GPUs of a pool the same way",
    "sharing.timeSlicing": "its plugin shares no GPUs",
    "sharing.mps": "its plugin shares no GPUs",
    "zones": "a site has no zones",
    "disk.size": "its disks have one size",
    "disk.type": "it has one type of disk",
    "disk.iops": "it has one type of disk",
    "disk.throughput": "it has one type of disk",
    "disk.encrypted": "its disks are always encrypted",
    "disk.kmsKey": "it has no keys of users",
    "instanceTypes": "a pool has one type",
    "network.highSpeed": "its machines have one network",
    "placement.compact": "it has no placement groups",
    "placement.named": "it has no placement groups",
    "localStorage.ephemeral": "its machines have no disks of their own",
    "localStorage.raw": "its machines have no disks of their own",
    "kubelet": "its kubelets have one configuration",
    "kubelet.topologyManagerScope": "its kubelets have one configuration",
    "kubelet.memoryManagerPolicy": "its kubelets have one configuration",
    "sysctls": "its nodes have one configuration",
    "hugepages": "its nodes have one configuration",
    "confidential": "it has no confidential machines",
    "image": "it has one node image",
    "kubernetesVersion": "nodes have their cluster's version",
    "upgrade.maxSurge": "it replaces nodes one by one",
    "upgrade.maxUnavailable": "it replaces nodes one by one",
    "maxPodsPerNode": "the number is fixed",
    "driver.version": "the driver is part of its image",
}


class NimbusExtras(Extras):
    """Nimbus's optional parts: no catalog, quotas, upgrades, exports, or policies."""

    pools_at_once = 4
    tolerates_resources = True
    in_cluster = part(".in_cluster:IN_CLUSTER")
    managers = part(".pool:find_templates")
    chosen_fields = part(".pool:chosen_fields")


class NimbusProvider:
    """A made-up cloud: one file stores all its clusters."""

    name = "nimbus"
    spec: CloudSpec = part(".spec:SPEC")
    machines: CloudMachines = part(".machines:MACHINES")
    nodes: NodeFacts = part(".nodes:NODES")
    requests: PoolRequests = part(".pool:REQUESTS")
    extras = NimbusExtras()
    codes: Mapping[str, tuple[str, str]] = MappingProxyType(
        {
            "nimbus-name": ("NIM101", "The name of a pool is too long for Nimbus."),
            "nimbus-native": ("NIM102", "Nimbus has no such field."),
        }
    )

    def abilities(self) -> Mapping[str, Ability]:
        """Return the abilities: everything that is not missing is exact."""
        return {
            feature: Ability("missing", reason=_MISSING[feature]) if feature in _MISSING else Ability("exact")
            for feature in FEATURES
        }

    def check(self, target: Target) -> list[Finding]:
        """Return what Nimbus would reject."""
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
        """Return the nodes' components: the image has driver and plugin, and a field of the pool configures MIG."""
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

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return the effect of changing this field."""
        from gpukube_nimbus.pool import find_row

        del beside, live
        return find_row(change)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Return the live half. A real cloud imports its SDK here, within `gpukube.provider.importing_sdk`."""
        from gpukube_nimbus.client import connect_cluster

        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = NimbusProvider
