"""Chooses the GKE endpoint and protocol, and decides whether real credentials may be sent there.

In scope: that decision, from settings only. Out of scope: credentials, the SDK.

Google's own endpoint uses gRPC. `endpoints["gke"]` is a URL and selects REST; `endpoints["gke-grpc"]` is
host:port on loopback and selects gRPC without TLS. A real token is never sent to an unencrypted port or a loopback
port, and in sandbox mode nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.endpoint import UNKNOWN_SECRET, is_loopback, not_loopback, require_safe

if TYPE_CHECKING:
    from gpukube.core.values import Settings


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Destination of requests.

    Attributes:
        url: Base URL for REST without a slash at the end; "" for Google's own endpoint.
        grpc: host:port for gRPC without TLS; "" for none. Takes precedence over url.
        is_emulated: Whether it is on loopback: then requests send the secret, and credentials are not read.
        secret: Secret of the emulated cloud.
    """

    url: str = ""
    grpc: str = ""
    is_emulated: bool = False
    secret: str = field(default="", repr=False, compare=False)


def choose_endpoint(settings: Settings, where: str) -> Endpoint:
    """Return the endpoint of a run.

    Raises:
        AccessError: Sandbox mode without a loopback endpoint, or an endpoint that is neither encrypted nor loopback.
    """
    url, grpc = settings.endpoints.get("gke", "").rstrip("/"), settings.endpoints.get("gke-grpc", "")
    given = [one for one in (url, f"grpc://{grpc}" if grpc else "") if one]
    if given and all(is_loopback(one) for one in given):
        return Endpoint(url, grpc, is_emulated=True, secret=settings.secret or UNKNOWN_SECRET)
    if settings.sandbox:
        named = grpc or url or "the public cloud"
        raise not_loopback(f'the endpoint of gke is "{named}"', where, "gpukube sandbox up")
    if grpc:
        require_safe(f"grpc://{grpc}", where, source="GPUKUBE_GKE-GRPC_ENDPOINT")
    if url:
        require_safe(url, where, source="GPUKUBE_GKE_ENDPOINT")
    return Endpoint(url)
