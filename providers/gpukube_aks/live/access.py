"""Credentials for Azure's API, and a complete kubeconfig for a cluster.

In scope: the choice of an Azure credential, and the three sources of a kubeconfig: AKS with local accounts, AKS with an
Entra token in place of its kubelogin call, the user's file. Out of scope: other calls of Azure.

Runs no cloud CLI, and no plugin of a kubeconfig from Azure.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError
from azure.core.rest import HttpRequest

from gpukube.core.jsontree import tree
from gpukube.endpoint import is_loopback, require_safe
from gpukube.errors import AccessError, CloudError
from gpukube.kubeconfig import KubeconfigError, parse_kubeconfig
from gpukube_aks.live.failures import explain, explained

if TYPE_CHECKING:
    from azure.identity import DefaultAzureCredential

    from gpukube.core.values import ClusterRef, KubeAccess
    from gpukube.endpoint import Endpoint
    from gpukube_aks.live.sdk import AksSdk, Credential

KUBERNETES_SCOPE: Final = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"
"""Scope of the AKS server application, the same in all clouds (docs: aks/kubelogin-authentication)."""

_STALE_S: Final = 300.0
"""Minimum remaining lifetime of a token that is used again."""
_TOOL_S: Final = 60
"""Timeout of the login tools that azure-identity runs (az, azd, PowerShell): on a busy machine its default of 10 s
expires before az has started (azure-identity, AzureCliCredential: process_timeout)."""


class AzureCredential:
    """DefaultAzureCredential in the tenant of the spec, without anything that opens a browser.

    Tokens are cached while valid: the clusters of a fleet share them, and a credential that runs `az` takes a second
    per token.

    Args:
        tenant: Entra tenant; "" for the credential's own.
        authority: Login host of the cloud in use; "" for the SDK's choice.
    """

    def __init__(self, tenant: str, authority: str) -> None:
        self._tenant = tenant
        self._authority = authority
        configured = os.environ.get("AZURE_AUTHORITY_HOST", "")
        if not authority and configured:
            # azure-identity adds https:// to a bare host, and raises a ValueError for http:// that does not name it.
            url = configured if "://" in configured else f"https://{configured}"
            require_safe(url, "AKS", source="AZURE_AUTHORITY_HOST", carries="a client secret")
        self._chain = self._sign_in()
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str | None, ...], AccessToken] = {}

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
        **_: object,
    ) -> AccessToken:
        """Return a token; the spec's tenant takes precedence over one from an Azure challenge."""
        tenant = self._tenant or tenant_id
        key = (tenant, *scopes)
        with self._lock:
            known = self._tokens.get(key)
            if known is None or claims or known.expires_on - time.time() < _STALE_S:
                known = self._chain.get_token(*scopes, claims=claims, tenant_id=tenant, enable_cae=enable_cae)
                self._tokens[key] = known
            return known

    def renew(self, refused: str) -> None:
        """Forget a token that Azure rejected; another thread's newer one stays.

        The chain is recreated: its credentials cache tokens too, and would return the same one again.
        """
        with self._lock:
            if any(known.token == refused for known in self._tokens.values()):
                self._tokens.clear()
                self._chain = self._sign_in()

    def _sign_in(self) -> DefaultAzureCredential:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - takes 90 ms, and an emulated Azure does not need it

        return DefaultAzureCredential(
            authority=self._authority or None,
            exclude_interactive_browser_credential=True,
            process_timeout=_TOOL_S,
            additionally_allowed_tenants=[self._tenant] if self._tenant else [],
        )


@cache
def shared_credential(tenant: str, authority: str) -> AzureCredential:
    """Return this process's only credential for a tenant; it lives as long as the process."""
    return AzureCredential(tenant, authority)


class EmulatedIdentity:
    """The identity of an emulated Azure: tokens from its own token endpoint, in App Service's format.

    Args:
        sdk: Client of the emulated API; it sends no credentials itself.
        endpoint: Loopback endpoint of that API.
    """

    def __init__(self, sdk: AksSdk, endpoint: Endpoint) -> None:
        self._sdk = sdk
        self._endpoint = endpoint

    def get_token(self, *scopes: str) -> AccessToken:
        """Return a token from the emulated Entra."""
        resource = scopes[0].removesuffix("/.default")
        query = {"resource": resource, "api-version": "2019-08-01"}
        address, headers = f"{self._endpoint.url}/msi/token", {"X-IDENTITY-HEADER": self._endpoint.secret}
        response = self._sdk.send_request(HttpRequest("GET", address, params=query, headers=headers))
        response.raise_for_status()
        answer = tree(response.json())
        return AccessToken(str(answer.get("access_token", "")), int(str(answer.get("expires_on", 0))))


def cloud_access(cluster: ClusterRef, sdk: AksSdk, credential: Credential) -> KubeAccess:
    """Return access with AKS's kubeconfig of the cluster; an Entra token replaces a kubelogin call in it.

    Args:
        cluster: The cluster.
        sdk: Client of the cluster's subscription.
        credential: Provides the token if the kubeconfig would call kubelogin.

    Raises:
        AccessError: The identity is not allowed to list the credential, or gets no token.
        CloudError: Azure returns no usable kubeconfig.

    Source:
        docs: aks/kubelogin-authentication; Azure/AKS#4990 (AKS always returns an exec section for Entra clusters).
    """
    with explained(cluster.key):
        answer = sdk.managed_clusters.list_cluster_user_credentials(cluster.identity["resourceGroup"], cluster.name)
    value = answer.kubeconfigs[0].value if answer.kubeconfigs else None
    try:
        entry = parse_kubeconfig(bytes(value or b"").decode(), "")
    except KubeconfigError as error:
        raise CloudError(f"AKS returned no usable kubeconfig: {error}", where=cluster.key) from error
    if entry.has_own_credentials:
        return entry.access()
    return entry.with_token(_token(cluster, entry.server, credential)).access()


def _token(cluster: ClusterRef, server: str, credential: Credential) -> str:
    if is_loopback(server) and not isinstance(credential, EmulatedIdentity):
        message = "the server in the cluster's kubeconfig is on this machine; gpukube sends no real token there"
        raise AccessError(message, where=cluster.key, fix="write clusters.*.kubeconfig", code="loopback-server")
    try:
        return credential.get_token(KUBERNETES_SCOPE).token
    except AzureError as error:
        raise explain(error, cluster.key) from error
