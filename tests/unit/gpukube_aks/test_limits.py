"""Ranges and forms of native values: each has an example that is taken, and neighbors that are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.pool.members import MEMBERS
from gpukube_aks.pool.native import check_native
from gpukube_aks.pool.settings import SYSCTLS
from gpukube_aks.rules.fabric import check_placement
from gpukube_aks.rules.settings import check_kubelet, check_sysctls
from tests.builders import make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target
    from gpukube.errors import Finding

SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
REFUSED: Mapping[str, tuple[object, ...]] = {
    "messageOfTheDay": ("not base64!", ""),
    "networkProfile.allowedHostPorts.portStart": (0, 65536),
    "networkProfile.allowedHostPorts.portEnd": (0, 65536),
    "networkProfile.applicationSecurityGroups": ([SUBNET],),
    "vnetSubnetID": ("default", f"{SUBNET}/", SUBNET.replace("subnets", "subnet"), SUBNET.rpartition("/subnets")[0]),
    "podSubnetID": (SUBNET[1:],),
    "nodePublicIPPrefixID": (SUBNET,),
    "proximityPlacementGroupID": (SUBNET,),
    "hostGroupID": (SUBNET,),
    "creationData.sourceResourceId": (SUBNET,),
    "upgradeSettings.drainTimeoutInMinutes": (4, 1441),
    "upgradeSettings.nodeSoakDurationInMinutes": (-1, 31),
    "kubeletConfig.allowedUnsafeSysctls": (["vm.swappiness"], ["net.core.somaxconn", "kernel.panic"]),
    "linuxOSConfig.swapFileSizeMB": (0,),
    "linuxOSConfig.sysctls.netCoreSomaxconn": (4095, 3240001),
    "linuxOSConfig.sysctls.netCoreNetdevMaxBacklog": (999, 3240001),
    "linuxOSConfig.sysctls.netCoreRmemDefault": (212991, 134217729),
    "linuxOSConfig.sysctls.netCoreRmemMax": (212991, 134217729),
    "linuxOSConfig.sysctls.netCoreWmemDefault": (212991, 134217729),
    "linuxOSConfig.sysctls.netCoreWmemMax": (212991, 134217729),
    "linuxOSConfig.sysctls.netCoreOptmemMax": (20479, 4194305),
    "linuxOSConfig.sysctls.netIpv4TcpMaxSynBacklog": (127, 3240001),
    "linuxOSConfig.sysctls.netIpv4TcpMaxTwBuckets": (7999, 1440001),
    "linuxOSConfig.sysctls.netIpv4TcpFinTimeout": (4, 121),
    "linuxOSConfig.sysctls.netIpv4TcpKeepaliveTime": (29, 432001),
    "linuxOSConfig.sysctls.netIpv4TcpKeepaliveProbes": (0, 16),
    "linuxOSConfig.sysctls.netIpv4TcpkeepaliveIntvl": (9, 91),
    "linuxOSConfig.sysctls.netIpv4IpLocalPortRange": (
        "1023 60000",
        "61000 65000",
        "32000 32767",
        "32000 65536",
        "50000 40000",
        "40000 40000",
        "32000-60000",
    ),
    "linuxOSConfig.sysctls.netIpv4NeighDefaultGcThresh1": (127, 80001),
    "linuxOSConfig.sysctls.netIpv4NeighDefaultGcThresh2": (511, 90001),
    "linuxOSConfig.sysctls.netIpv4NeighDefaultGcThresh3": (1023, 100001),
    "linuxOSConfig.sysctls.netNetfilterNfConntrackMax": (131071, 2097153),
    "linuxOSConfig.sysctls.netNetfilterNfConntrackBuckets": (65535, 524289),
    "linuxOSConfig.sysctls.fsInotifyMaxUserWatches": (781249, 2097153),
    "linuxOSConfig.sysctls.fsFileMax": (8191, 9223372036854775808),
    "linuxOSConfig.sysctls.fsAioMaxNr": (65535, 6553501),
    "linuxOSConfig.sysctls.fsNrOpen": (8191, 20000501),
    "linuxOSConfig.sysctls.kernelThreadsMax": (19, 513786),
    "linuxOSConfig.sysctls.vmMaxMapCount": (65529, 262145),
    "linuxOSConfig.sysctls.vmSwappiness": (-1, 101),
    "linuxOSConfig.sysctls.vmVfsCachePressure": (0, 101),
}
"""Path -> values of the right type that AKS does not take: for a range, those beside its ends."""


FIELD_OF: Mapping[str, str] = {wire: name for name, wire in SYSCTLS.items()}
LISTS = ("nodePublicIPTags", "allowedHostPorts")


def target_with(path: str, value: object) -> Target:
    """Make a pool with a member of the API: by its field of the spec if there is one, else under `aks:`."""
    name = path.rpartition(".")[2]
    if path == "proximityPlacementGroupID":
        return make_target(placement=value)
    if path == "kubeletConfig.allowedUnsafeSysctls":
        return make_target(kubelet={name: value})
    if path.startswith("linuxOSConfig.sysctls."):
        return make_target(sysctls={FIELD_OF[name]: str(value)})
    for step in reversed(path.split(".")):
        value = {step: [value] if step in LISTS else value}
    return make_target(native=value)


def place_of(path: str) -> str:
    name = path.rpartition(".")[2]
    if path.startswith("linuxOSConfig.sysctls."):
        return f'sysctls["{FIELD_OF[name]}"]'
    named = {"proximityPlacementGroupID": "placement", "kubeletConfig.allowedUnsafeSysctls": f"kubelet.{name}"}
    return named.get(path) or "aks." + re.sub(rf"\b({'|'.join(LISTS)})\.", r"\1[0].", path)


def problems(path: str, value: object) -> list[Finding]:
    target = target_with(path, value)
    return [*check_native(target), *check_kubelet(target), *check_sysctls(target), *check_placement(target)]


def test_values_when_compared_with_the_limits_have_some_for_each() -> None:
    assert REFUSED.keys() == LIMITS.keys()


@pytest.mark.parametrize("path", LIMITS)
def test_limit_when_read_is_of_a_member_that_a_spec_may_hold(path: str) -> None:
    assert MEMBERS.get(path) or MEMBERS.get(path.rpartition(".")[0])
    assert LIMITS[path].source
    assert problems(path, LIMITS[path].example) == []


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in REFUSED.items() for value in values])
def test_value_when_out_of_its_limit_is_refused_where_it_stands(path: str, value: object) -> None:
    (found,) = problems(path, value)

    assert (str(found.where), found.severity) == (f"spec.{place_of(path)}", "error")
    assert LIMITS[path].expected in found.fix
    assert found.why == LIMITS[path].source


@pytest.mark.parametrize(("path", "values"), REFUSED.items())
def test_range_when_its_ends_are_written_takes_them(path: str, values: tuple[object, ...]) -> None:
    if all(isinstance(value, int) for value in values):
        ends = (values[0] + 1, values[-1] - 1) if len(values) > 1 else (values[0] + 1,)  # type: ignore[operator]  # numbers
        assert all(LIMITS[path].allows(end) for end in ends)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("vnetSubnetID", SUBNET.upper()),
        ("kubeletConfig.allowedUnsafeSysctls", ["kernel.shm*", "kernel.msgmax", "kernel.sem", "fs.mqueue.*", "net.*"]),
        ("kubeletConfig.allowedUnsafeSysctls", []),
        ("linuxOSConfig.sysctls.netIpv4IpLocalPortRange", "1024 65535"),
        ("linuxOSConfig.sysctls.netIpv4IpLocalPortRange", "60999 61000"),
        ("linuxOSConfig.sysctls.netIpv4IpLocalPortRange", "1024 32768"),
    ],
)
def test_value_when_of_another_right_form_is_taken(path: str, value: object) -> None:
    assert problems(path, value) == []
