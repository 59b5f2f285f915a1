"""Nothing leaves this machine: the guard of sandbox mode. Standard library only, loads in a moment.

In scope: the audit hook that refuses non-loopback connections, and the environment of child processes. Out of scope:
anything that knows a cloud beyond the names of its variables.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_PROXY = "http://127.0.0.1:9"
"""The discard port: nothing listens there, so a client that honors proxies gets a refusal at once."""

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
    """Something in sandbox mode wanted to reach beyond loopback.

    Args:
        address: What it wanted to reach.
    """

    def __init__(self, address: str) -> None:
        super().__init__(f"the sandbox talks to loopback only; refused: {address}")
        self.address = address


def is_loopback(host: object) -> bool:
    """Whether an address or name is of this machine; names are not resolved, so only the usual ones are."""
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
    """From now on every non-loopback connect, datagram or name look-up of this process raises `OutsideSandbox`.

    Python's audit hooks cannot be taken away again: call it only in a process that is in sandbox mode for good. C
    libraries with sockets of their own (gRPC, Go) are not seen; they get `child_environment` or loopback addresses.
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
    """The host an audit event is about; None for what stays on the machine (Unix sockets, connected datagrams)."""
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        return arguments[0]
    address = arguments[1]
    return address[0] if isinstance(address, tuple) else None


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child process in sandbox mode (helm, kubectl).

    Args:
        environment: The parent's.

    Returns:
        A copy without credentials and settings of the clouds, with every proxy at a dead loopback port and loopback
        exempt from it: what is not on loopback is refused at once.
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
    """Whether a variable is a credential or a setting of a cloud's clients, by its name."""
    return name.upper().startswith(_SECRET_PREFIXES)
