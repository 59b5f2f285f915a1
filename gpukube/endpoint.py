"""Which endpoint of a cloud is talked to, and whether real credentials may go there.

Lives here: that decision, from settings alone, for every provider. Must not live here: credentials, an SDK.

Three rules: nothing that real credentials give goes to plain http, to a loopback port, or anywhere at all in sandbox
mode.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpukube.errors import AccessError

if TYPE_CHECKING:
    from gpukube.core.values import Settings

__all__ = ["Endpoint", "choose_endpoint", "is_loopback", "not_loopback"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go.

    Attributes:
        url: Base URL without a slash at the end; "" for the public cloud.
        is_emulated: On loopback: no credentials are read or sent.
    """

    url: str = ""
    is_emulated: bool = False


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
        return Endpoint(url, is_emulated=True)
    if settings.sandbox:
        raise not_loopback(f'the endpoint of {provider} is "{url or "the public cloud"}"', where, "gpukube sandbox up")
    if url and urlsplit(url).scheme != "https":
        raise AccessError(
            f'the endpoint "{url}" is not https',
            where=where,
            fix="write an https:// endpoint, or leave it out",
            why=f"{carries} that goes out over plain http can be read by anyone on the way",
            code="plain-http",
        )
    return Endpoint(url)


def not_loopback(what: str, where: str, fix: str) -> AccessError:
    """Make the refusal of sandbox mode to leave this machine."""
    said = f"sandbox mode reaches loopback only, and {what}"
    return AccessError(said, where=where, fix=fix, code="sandbox-endpoint")


def is_loopback(url: str) -> bool:
    """Say whether a URL leads to this machine, by its host as written; no name is looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
