"""Which GKE is talked to, by which protocol, and whether real credentials may go there.

In scope: that decision, from settings alone. Out of scope: credentials, the SDK.

Google's own endpoint is spoken to by gRPC. `endpoints["gke"]` is a URL and selects REST; `endpoints["gke-grpc"]` is
host:port on loopback and selects gRPC without TLS. A real token goes to no unencrypted port, to no loopback port, and
nowhere at all in sandbox mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.endpoint import UNKNOWN_SECRET, is_loopback, not_loopback, require_safe

if TYPE_CHECKING:
    from gpukube.core.values import Settings


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go.

    Attributes:
        url: Base URL for REST without a slash at the end; "" for Google's own endpoint.
        grpc: host:port for gRPC without TLS; "" for none. Wins over url.
        is_emulated: On loopback: no credentials are read, and the secret is sent in their place.
        secret: Of the emulated cloud.
    """

    url: str = ""
    grpc: str = ""
    is_emulated: bool = False
    secret: str = field(default="", repr=False, compare=False)


def choose_endpoint(settings: Settings, where: str) -> Endpoint:
    """Choose the endpoint of a run.

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
