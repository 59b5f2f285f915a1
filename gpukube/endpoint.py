"""Decides which cloud endpoint to call, and whether real credentials may be sent there.

The decision is the same for every provider and for every source of the address: gpukube's settings, or an SDK's own
environment and configuration files. No credentials and no SDK here.

Real credentials are never sent over plain http, to a loopback port, or anywhere at all in sandbox mode. This applies to
requests that a service acts on. It does not apply to where an SDK's credential chain gets its credentials (instance
metadata, container credentials, managed identity: plain http on link-local or loopback addresses by design).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpukube.errors import AccessError

if TYPE_CHECKING:
    from gpukube.core.values import Settings

UNKNOWN_SECRET: Final = "unknown"  # noqa: S105 - stands for no secret
"""Sent to an emulated cloud whose secret is unknown; it refuses this as the real cloud refuses a wrong token."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The destination of requests.

    Attributes:
        url: Base URL without a trailing slash; "" for the public cloud.
        is_emulated: On loopback: no credentials are read, and the secret is sent instead.
        secret: The emulated cloud's secret.
    """

    url: str = ""
    is_emulated: bool = False
    secret: str = field(default="", repr=False, compare=False)


def choose_endpoint(provider: str, settings: Settings, where: str, *, carries: str = "a token") -> Endpoint:
    """Choose the endpoint of a run.

    Args:
        provider: Its key in `settings.endpoints`.
        settings: Settings of the run.
        where: The cluster, for messages.
        carries: What the request would carry, for messages.

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
    """Raise if real credentials must not be sent to an address.

    Args:
        url: Where the next request goes.
        where: The cluster, for messages.
        source: The variable or setting that the address comes from.
        carries: What the request would carry, for messages.

    Raises:
        AccessError: The address is not https, or is on this machine.
    """
    address = url.partition("?")[0]
    if urlsplit(url).scheme != "https":
        raise AccessError(
            f'the endpoint "{address}" is not https',
            where=where,
            fix=f"write an https:// address in {source}, or remove it",
            why=f"anyone on the network path can read {carries} sent over plain http",
            code="plain-http",
        )
    if is_loopback(url):
        raise AccessError(
            f'the endpoint "{address}" is on this machine',
            where=where,
            fix=f"remove {source}; for the emulated clouds use --sandbox",
            why=f"any program on this machine can listen there for {carries}",
            code="loopback-endpoint",
        )


def not_loopback(what: str, where: str, fix: str) -> AccessError:
    """Return the error for a request that would leave this machine in sandbox mode."""
    message = f"sandbox mode reaches loopback only, and {what}"
    return AccessError(message, where=where, fix=fix, code="sandbox-endpoint")


def host_of(url: str) -> str:
    """Return the host and port of an address, without a user name or password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def is_loopback(url: str) -> bool:
    """Return whether the URL's host, as written, is this machine; names are not resolved."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
