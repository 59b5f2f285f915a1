"""Exports agent pools as Azure CLI commands: the properties of gpukube's create request, option by option.

Options: docs: cli/azure/aks/nodepool (az aks nodepool add), and Azure/azure-cli
src/azure-cli/azure/cli/command_modules/acs/_params.py.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import shell_command
from gpukube.core.jsontree import leaves, strings, text, texts, tree, trees
from gpukube_aks.export.request import properties_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.exporting import ExportedPool, Losses
    from gpukube.core.values import ClusterRef

_VALUES: Final[Mapping[str, str]] = {
    "count": "--node-count",
    "vmSize": "--node-vm-size",
    "mode": "--mode",
    "osType": "--os-type",
    "type": "--vm-set-type",
    "minCount": "--min-count",
    "maxCount": "--max-count",
    "scaleSetPriority": "--priority",
    "spotMaxPrice": "--spot-max-price",
    "scaleSetEvictionPolicy": "--eviction-policy",
    "capacityReservationGroupID": "--crg-id",
    "gpuInstanceProfile": "--gpu-instance-profile",
    "gpuProfile.driver": "--gpu-driver",
    "osDiskSizeGB": "--node-osdisk-size",
    "osDiskType": "--node-osdisk-type",
    "osSKU": "--os-sku",
    "orchestratorVersion": "--kubernetes-version",
    "maxPods": "--max-pods",
    "upgradeSettings.maxSurge": "--max-surge",
    "upgradeSettings.maxUnavailable": "--max-unavailable",
    "upgradeSettings.drainTimeoutInMinutes": "--drain-timeout",
    "upgradeSettings.nodeSoakDurationInMinutes": "--node-soak-duration",
    "upgradeSettings.undrainableNodeBehavior": "--undrainable-node-behavior",
    "vnetSubnetID": "--vnet-subnet-id",
    "podSubnetID": "--pod-subnet-id",
    "podIPAllocationMode": "--pod-ip-allocation-mode",
    "scaleDownMode": "--scale-down-mode",
    "nodePublicIPPrefixID": "--node-public-ip-prefix-id",
    "proximityPlacementGroupID": "--ppg",
    "hostGroupID": "--host-group-id",
    "creationData.sourceResourceId": "--snapshot-id",
}
_SWITCHES: Final[Mapping[str, str]] = {
    "enableAutoScaling": "--enable-cluster-autoscaler",
    "enableNodePublicIP": "--enable-node-public-ip",
    "enableEncryptionAtHost": "--enable-encryption-at-host",
    "enableUltraSSD": "--enable-ultra-ssd",
    "enableFIPS": "--enable-fips-image",
    "securityProfile.enableVTPM": "--enable-vtpm",
    "securityProfile.enableSecureBoot": "--enable-secure-boot",
    "artifactStreamingProfile.enabled": "--enable-artifact-streaming",
}
"""Boolean properties, false without the option."""
_LISTS: Final[Mapping[str, str]] = {
    "nodeLabels": "--labels",
    "nodeTaints": "--node-taints",
    "availabilityZones": "--zones",
    "tags": "--tags",
}
_FILES: Final[Mapping[str, str]] = {
    "kubeletConfig": "--kubelet-config",
    "linuxOSConfig": "--linux-os-config",
    "localDNSProfile": "--localdns-config",
}
"""Properties that the command reads from a JSON file, with the names of the API."""
_MESSAGE: Final = "messageOfTheDay"
_MANAGED: Final = "gpuProfile.nvidia.managementMode"


def write_script(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return a script that creates the agent pools, one after the other: AKS creates one at a time."""
    commands = [_commands(cluster, pool, losses) for pool in pools]
    return "set -eu\n\n" + "\n".join(commands)


def _commands(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> str:
    properties = properties_of(pool)
    named = {path for path in properties if path in {*_LISTS, *_FILES, _MESSAGE, "networkProfile"}}
    others = {name: value for name, value in properties.items() if name not in named}
    lines: list[tuple[str, ...]] = [
        ("az", "aks", "nodepool", "add"),
        ("--subscription", cluster.identity["subscription"]),
        ("--resource-group", cluster.identity["resourceGroup"]),
        ("--cluster-name", cluster.name),
        ("--name", pool.name),
    ]
    for path, value in ((".".join(path), value) for path, value in leaves(others)):
        if path in _VALUES:
            lines.append((_VALUES[path], text(value).lower() if path == "gpuProfile.driver" else text(value)))
        elif path in _SWITCHES:
            lines += [(_SWITCHES[path],)] if value else []
        elif path == _MANAGED:
            losses.refuse(
                pool,
                "devicePlugin.owner",
                "az aks nodepool add has no option for AKS-managed GPU nodes (gpuProfile.nvidia.managementMode)",
                "remove devicePlugin.owner, or create the pool with gpukube",
            )
        else:
            losses.note(f"{pool.name}: {path} ({text(value)}): az aks nodepool add has no option for it")
    lines += [(option, *_list_words(properties, name)) for name, option in _LISTS.items() if name in properties]
    lines += _network(tree(properties, "networkProfile"))
    if strings(properties, "networkProfile", "applicationSecurityGroups") and not trees(
        properties, "networkProfile", "allowedHostPorts"
    ):
        losses.note(
            f"{pool.name}: networkProfile.applicationSecurityGroups: az takes them with allowed host ports only"
        )
    files = ""
    for name, option in _FILES.items():
        if name in properties:
            file = f"{pool.name}-{name}.json"
            files += f"cat > {shlex.quote(file)} <<'EOF'\n{json.dumps(properties[name], indent=2)}\nEOF\n"
            lines.append((option, file))
    if _MESSAGE in properties:
        file = f"{pool.name}-{_MESSAGE}.txt"
        files += f"printf %s {shlex.quote(text(properties, _MESSAGE))} | base64 -d > {shlex.quote(file)}\n"
        lines.append(("--message-of-the-day", file))
    return files + shell_command(*lines)


def _network(profile: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Return the options of a network profile; the command takes security groups together with ports only."""
    ports = [_ports(one) for one in trees(profile, "allowedHostPorts")]
    tags = [f"{text(one, 'ipTagType')}={text(one, 'tag')}" for one in trees(profile, "nodePublicIPTags")]
    words = {
        "--allowed-host-ports": ports,
        "--asg-ids": strings(profile, "applicationSecurityGroups") if ports else (),
        "--node-public-ip-tags": tags,
    }
    managed = text(profile, "dranet", "mode") == "Managed"
    lines: list[tuple[str, ...]] = [(option, *some) for option, some in words.items() if some]
    return [*lines, *([("--enable-managed-dranet",)] if managed else [])]


def _ports(one: Mapping[str, object]) -> str:
    """Return a range as the command reads it: 80/tcp or 8000-9000/udp."""
    first, last = one.get("portStart"), one.get("portEnd")
    return f"{first if first == last else f'{first}-{last}'}/{text(one, 'protocol').lower()}"


def _list_words(properties: Mapping[str, object], name: str) -> list[str]:
    if name == "nodeTaints":
        return [",".join(strings(properties, name))]
    if tree(properties, name):
        return [f"{key}={value}" for key, value in texts(properties, name).items()]
    return list(strings(properties, name))
