"""Which endpoint of a cloud is talked to, and whether real credentials may go there.

Lives here: that decision, for every provider and wherever the address comes from: gpukube's settings, or an SDK's own
environment and configuration files. Must not live here: credentials, an SDK.

Three rules: nothing that real credentials give goes to plain http, to a loopback port, or anywhere at all in sandbox
mode. They hold for requests that a service is to act on. They do not hold for where an SDK's chain gets its credentials
(instance metadata, container credentials, managed identity: plain http on link-local or loopback addresses by design).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpukube.errors import AccessError

if TYPE_CHECKING:
    from gpukube.core.values import Settings

UNKNOWN_SECRET: Final = "unknown"  # noqa: S105 - says that there is none
"""What an emulated cloud gets whose secret nobody has told us: it refuses that, as the real one a wrong token."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go.

    Attributes:
        url: Base URL without a slash at the end; "" for the public cloud.
        is_emulated: On loopback: no credentials are read, and the secret is sent in their place.
        secret: Of the emulated cloud.
    """

    url: str = ""
    is_emulated: bool = False
    secret: str = field(default="", repr=False, compare=False)


def choose_endpoint(provider: str, settings: Settings, where: str, *, carries: str = "a token") -> Endpoint:
    """Choose the endpoint of a run.

    Args:
        provider: Name in the settings' endpoints.
        settings: Of the run.
        where: The cluster, for messages.
        carries: What would go over the wire.

    Raises:
        AccessError: Sandbox mode without a loopback endpoint, or an endpoint that is neither https nor loopback.
    """
    url = settings.endpoints.get(provider, "").rstrip("/")
    if is_loopback(url):
        return Endpoint(url, is_emulated=True, secret=settings.secret or UNKNOWN_SECRET)
    if settings.sandbox:
        raise not_loopback(f'the endpoint of {provider} is "{url or "the public cloud"}"', where, "gpukube sandbox up")
    if url:
        require_safe(url, where, source=f"GPUKUBE_{provider.upper()}_ENDPOINT", carries=carries)
    return Endpoint(url)


def require_safe(url: str, where: str, *, source: str, carries: str = "a token") -> None:
    """Refuse an address that real credentials must not go to.

    Args:
        url: Where the next request goes.
        where: The cluster, for messages.
        source: The variable or file setting that the address comes from.
        carries: What would go over the wire.

    Raises:
        AccessError: It is not https, or leads to this machine.
    """
    address = url.partition("?")[0]
    if urlsplit(url).scheme != "https":
        raise AccessError(
            f'the endpoint "{address}" is not https',
            where=where,
            fix=f"write an https:// address in {source}, or remove it",
            why=f"anyone on the way can read {carries} sent over plain http",
            code="plain-http",
        )
    if is_loopback(url):
        raise AccessError(
            f'the endpoint "{address}" leads to this machine',
            where=where,
            fix=f"remove {source}; for the emulated clouds use --sandbox",
            why=f"any program of this machine can listen there for {carries}",
            code="loopback-endpoint",
        )


def not_loopback(what: str, where: str, fix: str) -> AccessError:
    """Make the refusal of sandbox mode to leave this machine."""
    message = f"sandbox mode reaches loopback only, and {what}"
    return AccessError(message, where=where, fix=fix, code="sandbox-endpoint")


def host_of(url: str) -> str:
    """Return host and port of an address, without a name or password that may stand in it."""
    return urlsplit(url).netloc.rpartition("@")[2]


def is_loopback(url: str) -> bool:
    """Say whether a URL leads to this machine, by its host as written; no name is looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
