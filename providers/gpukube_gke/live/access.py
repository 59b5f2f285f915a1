"""Credentials: for Google's API, and a complete kubeconfig for a cluster's.

In scope: the choice of credentials, and the two ways to a kubeconfig: endpoint, CA and access token; a file of the
user's. Out of scope: other calls of Google.

No cloud command line tool is run, and neither is gke-gcloud-auth-plugin: its token is the same.
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
"""What Google's audit logs show beside the client library."""
_Session = TypeVar("_Session", bound=requests.Session)
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The one scope that both the API and the clusters take (docs: kubernetes-engine/how-to/api-server-authentication)."""


def named(session: _Session) -> _Session:
    """Let a session for plain REST tell who calls."""
    session.headers["User-Agent"] = AGENT
    return session


class GoogleIdentity:
    """The application default credentials, or a service account that they may impersonate.

    Args:
        impersonate: E-mail of the service account; "" for none.
    """

    def __init__(self, impersonate: str) -> None:
        self._impersonate = impersonate
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None

    def credentials(self) -> Credentials:
        """Find the credentials, once."""
        with self._lock:
            if self._credentials is None:
                self._credentials = self._find()
            return self._credentials

    def token(self) -> str:
        """Get an access token that is good for some minutes at least."""
        credentials = self.credentials()
        with self._lock:
            if not credentials.valid or credentials.token_state.name != "FRESH":
                credentials.refresh(Request())  # type: ignore[no-untyped-call]  # google-auth has no types
            return str(credentials.token)

    def renew(self) -> None:
        """Get a new access token in place of one that was refused.

        Raises:
            google.auth.exceptions.GoogleAuthError: These credentials cannot.
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
    """Return the one identity of this process for a service account; it lives as long as the process."""
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
        """Nothing is to be done: the secret is as good the second time."""


def cloud_access(cluster: ClusterRef, native: Mapping[str, object], identity: Identity) -> KubeAccess:
    """Make a kubeconfig of the cluster's endpoint and an access token.

    Args:
        cluster: Which.
        native: The cluster as GKE answers it.
        identity: Asked for the token.

    Raises:
        AccessError: No token, or one that would go to a port of this machine.
        CloudError: The cluster has no endpoint that can be used.
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
    """Choose as gcloud does: the IP endpoint with its CA, else the DNS endpoint, whose certificate is a public one."""
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
