"""The guard of sandbox mode: nothing leaves this machine. Standard library only, loads fast.

In scope: the audit hook that refuses non-loopback connections, and the environment of child processes. Out of scope:
anything about a cloud except the names of its variables.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_PROXY = "http://127.0.0.1:9"
"""The discard port: nothing listens there, so a client that honors proxies is refused at once."""

_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
_NO_PROXY = "127.0.0.1,localhost,::1"
_SECRET_PREFIXES = (
    "AWS_", "AZURE_", "ARM_", "GOOGLE_", "GCLOUD_", "CLOUDSDK_", "GCP_", "AKS_", "MSI_", "IDENTITY_", "IMDS_",
    "ACTIONS_ID_TOKEN_", "SYSTEM_OIDC", "HELM_KUBE",
)  # fmt: skip
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY")
_WATCHED = frozenset(
    {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
)

_installed: list[bool] = []


class OutsideSandbox(OSError):
    """Code in sandbox mode tried to connect beyond loopback.

    Args:
        address: The destination.
    """

    def __init__(self, address: str) -> None:
        super().__init__(f"the sandbox talks to loopback only; refused: {address}")
        self.address = address


def is_loopback(host: object) -> bool:
    """Return whether an address or name is this machine; names are not resolved, so only the usual ones count."""
    if host is None or host == "":  # getaddrinfo(None) is loopback or the wildcard for listening
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text.lower().rstrip(".") in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def refuse_non_loopback() -> None:
    """Make every non-loopback connect, datagram, or name lookup of this process raise `OutsideSandbox`.

    Python's audit hooks cannot be removed, so call it only in a process that stays in sandbox mode. C libraries with
    their own sockets (gRPC, Go) bypass the hook; they get `child_environment` or loopback addresses.
    """
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED:
        return
    host = _host_of(event, arguments)
    if host is not None and not is_loopback(host):
        raise OutsideSandbox(host.decode("ascii", "replace") if isinstance(host, bytes) else str(host))


def _host_of(event: str, arguments: tuple[object, ...]) -> object:
    """Return the host of an audit event; None for traffic that stays on the machine (Unix sockets, connected UDP)."""
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        return arguments[0]
    address = arguments[1]
    return address[0] if isinstance(address, tuple) else None


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child process in sandbox mode (helm, kubectl).

    Args:
        environment: The parent's environment.

    Returns:
        A copy without the clouds' credentials and settings. Every proxy points to a dead loopback port and loopback is
        exempt, so any other destination is refused at once.
    """
    kept = {
        key: value
        for key, value in environment.items()
        if not is_credential(key) and key.upper() not in {*_PROXIES, "NO_PROXY"}
    }
    for name in _PROXIES:
        kept[name] = kept[name.lower()] = DEAD_PROXY
    kept["NO_PROXY"] = kept["no_proxy"] = _NO_PROXY
    return kept


def is_credential(name: str) -> bool:
    """Return whether a variable's name marks it as a credential or setting of a cloud's clients."""
    return name.upper().startswith(_SECRET_PREFIXES)
