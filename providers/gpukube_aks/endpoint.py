"""Which Azure is talked to, and whether real credentials may go there.

Lives here: that decision, from settings alone. Must not live here: credentials, the SDK.

Three rules: a real token goes to no plain http, to no loopback port, and nowhere at all in sandbox mode.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpukube.errors import AccessError

if TYPE_CHECKING:
    from gpukube.core.values import Settings

__all__ = ["Endpoint", "choose_endpoint", "is_loopback", "is_same_origin"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go.

    Attributes:
        url: Base URL without a slash at the end; "" for the public cloud.
        is_emulated: On loopback: no credentials are read or sent.
    """

    url: str = ""
    is_emulated: bool = False


def choose_endpoint(settings: Settings, where: str) -> Endpoint:
    """Choose the endpoint of a run.

    Raises:
        AccessError: Sandbox mode without a loopback endpoint, or an endpoint that is neither https nor loopback.
    """
    url = settings.endpoints.get("aks", "").rstrip("/")
    if is_loopback(url):
        return Endpoint(url, is_emulated=True)
    if settings.sandbox:
        raise AccessError(
            f'sandbox mode reaches loopback only, and the endpoint of aks is "{url or "the public cloud"}"',
            where=where,
            fix="gpukube sandbox up",
            code="sandbox-endpoint",
        )
    if url and urlsplit(url).scheme != "https":
        raise AccessError(
            f'the endpoint "{url}" is not https',
            where=where,
            fix="write an https:// endpoint, or leave it out",
            why="a token that goes out over plain http can be read by anyone on the way",
            code="plain-http",
        )
    return Endpoint(url)


def is_loopback(url: str) -> bool:
    """Say whether a URL leads to this machine, by its host as written; no name is looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_same_origin(url: str, base: str) -> bool:
    """Say whether a URL has scheme, host and port of another, so that a token for the one may go to the other."""
    return _origin(url) == _origin(base)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
