"""Profiles of a pool beyond GPUs and kubelet: its network, its local DNS, artifact streaming.

In scope: rules over their contents. Out of scope: their names and types (`schema`), other rules (`rules`).

Source: docstrings of azure-mgmt-containerservice 41.8.0 (PortRange, AgentPoolNetworkProfile); docs:
aks/artifact-streaming. Codes and messages are unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.aks.answers import bad_parameter

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json

_PORTS: Final = (1, 65_535)
_PROTOCOLS: Final = ("TCP", "UDP")


def check_profiles(pool: Json) -> None:
    """Reject profiles that a pool cannot have.

    Raises:
        ArmError: 400 InvalidParameter.
    """
    network, streaming = _object(pool.get("networkProfile")), _object(pool.get("artifactStreamingProfile"))
    for ports in _objects(network.get("allowedHostPorts")):
        first, last = ports.get("portStart"), ports.get("portEnd")
        is_range = isinstance(first, int) and isinstance(last, int) and _PORTS[0] <= first <= last <= _PORTS[1]
        if not is_range or ports.get("protocol", "TCP") not in _PROTOCOLS:
            shown = f"{first}-{last}/{ports.get('protocol', 'TCP')}"
            details = f"{shown} must be a range of ports from {_PORTS[0]} to {_PORTS[1]} with protocol TCP or UDP"
            raise _invalid("networkProfile.allowedHostPorts", details)
    if _objects(network.get("nodePublicIPTags")) and not pool.get("enableNodePublicIP"):
        raise _invalid("networkProfile.nodePublicIPTags", "the nodes have no public IPs")
    if streaming.get("enabled") and pool["osType"] == "Windows":
        raise _invalid("artifactStreamingProfile", "artifact streaming is not supported on Windows agent pools")
    if streaming.get("enabled") and pool.get("workloadRuntime") == "KataVmIsolation":
        raise _invalid("artifactStreamingProfile", "artifact streaming is not supported with pod sandboxing")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _invalid(path: str, details: str) -> Exception:
    target = f"agentPoolProfile.{path}"
    return bad_parameter(f"The value of parameter {target} is invalid. Error details: {details}.", target)
