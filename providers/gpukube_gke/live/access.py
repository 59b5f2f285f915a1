"""Credentials for Google's API, and a complete kubeconfig for a cluster.

In scope: choosing credentials, and the two sources of a kubeconfig: endpoint, CA, and access token, or the user's file.
Out of scope: other calls to Google.

Neither gcloud nor gke-gcloud-auth-plugin is run; the plugin would use the same token.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

import google.auth
import requests
from google.auth import impersonated_credentials
from google.auth.transport.requests import Request

from gpukube import __version__
from gpukube.core.jsontree import at, tree
from gpukube.endpoint import is_loopback
from gpukube.errors import AccessError, CloudError
from gpukube.kubeconfig import Entry
from gpukube_gke.live.failures import explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.auth.credentials import Credentials

    from gpukube.core.values import ClusterRef, KubeAccess
    from gpukube_gke.live.sdk import Identity

AGENT: Final = f"gpukube/{__version__}"
"""User agent in Google's audit logs, next to the client library."""
_Session = TypeVar("_Session", bound=requests.Session)
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope that both the API and the clusters accept (docs: kubernetes-engine/how-to/api-server-authentication)."""


def named(session: _Session) -> _Session:
    """Set the user agent of a REST session."""
    session.headers["User-Agent"] = AGENT
    return session


class GoogleIdentity:
    """Application Default Credentials, or a service account that they impersonate.

    Args:
        impersonate: E-mail of the service account; "" for none.
    """

    def __init__(self, impersonate: str) -> None:
        self._impersonate = impersonate
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None

    def credentials(self) -> Credentials:
        """Return the credentials, loaded once."""
        with self._lock:
            if self._credentials is None:
                self._credentials = self._find()
            return self._credentials

    def token(self) -> str:
        """Return an access token that is valid for at least some minutes."""
        credentials = self.credentials()
        with self._lock:
            if not credentials.valid or credentials.token_state.name != "FRESH":
                credentials.refresh(Request())  # type: ignore[no-untyped-call]  # google-auth has no types
            return str(credentials.token)

    def renew(self) -> None:
        """Get a new access token after one was refused.

        Raises:
            google.auth.exceptions.GoogleAuthError: The credentials cannot be refreshed.
        """
        credentials = self.credentials()
        with self._lock:
            credentials.refresh(Request())  # type: ignore[no-untyped-call]  # google-auth has no types

    def _find(self) -> Credentials:
        found, _ = google.auth.default(scopes=[SCOPE])
        if not self._impersonate:
            return found
        made = impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]  # google-auth has no types
            source_credentials=found, target_principal=self._impersonate, target_scopes=[SCOPE]
        )
        return cast("Credentials", made)


@cache
def shared_identity(impersonate: str) -> GoogleIdentity:
    """Return the process-wide identity for a service account."""
    return GoogleIdentity(impersonate)


class EmulatedIdentity:
    """The identity of an emulated Google Cloud.

    Args:
        secret: Its access token.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def token(self) -> str:
        """Return the secret."""
        return self._secret

    def renew(self) -> None:
        """Do nothing: the secret does not expire."""


def cloud_access(cluster: ClusterRef, native: Mapping[str, object], identity: Identity) -> KubeAccess:
    """Return a kubeconfig with the cluster's endpoint and an access token.

    Args:
        cluster: The cluster.
        native: The cluster as GKE returns it.
        identity: Source of the token.

    Raises:
        AccessError: No token is available, or it would be sent to a port on this machine.
        CloudError: The cluster has no usable endpoint.
    """
    section = _server(cluster, native)
    if is_loopback(str(section["server"])) and not isinstance(identity, EmulatedIdentity):
        message = "the cluster's endpoint is on this machine; gpukube sends no real token there"
        raise AccessError(message, where=cluster.key, fix="write clusters.*.kubeconfig", code="loopback-server")
    with explained(cluster.key):
        token = identity.token()
    location = cluster.identity["location"]
    name = f"gke_{cluster.identity['project']}_{location}_{cluster.name}"
    return Entry(name, section, {"token": token}).access()


def _server(cluster: ClusterRef, native: Mapping[str, object]) -> dict[str, object]:
    """Choose like gcloud: the IP endpoint with its CA, else the DNS endpoint, which has a public certificate."""
    endpoints = tree(native, "controlPlaneEndpointsConfig")
    by_ip, by_dns = tree(endpoints, "ipEndpointsConfig"), tree(endpoints, "dnsEndpointConfig")
    address = str(native.get("endpoint") or "")
    ca = str(at(native, "masterAuth", "clusterCaCertificate") or "")
    if address and by_ip.get("enabled", True):
        return {"server": f"https://{address}", "certificate-authority-data": ca}
    if by_dns.get("endpoint") and by_dns.get("allowExternalTraffic"):
        return {"server": f"https://{by_dns['endpoint']}"}
    raise CloudError(
        "the cluster has no Kubernetes endpoint that this machine can use",
        where=cluster.key,
        fix="enable its IP endpoint, or the DNS endpoint with external traffic, or write clusters.*.kubeconfig",
        code="kube-endpoint",
    )
