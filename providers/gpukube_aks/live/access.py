"""Credentials: for Azure's API, and a complete kubeconfig for a cluster's.

In scope: the choice of an Azure credential, and the three ways to a kubeconfig: AKS's own with local accounts,
AKS's own with an Entra token in place of its kubelogin call, a file of the user's. Out of scope: other calls of
Azure.

No cloud command line tool is run, and no plugin of a kubeconfig that came from Azure.
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
"""A token with less left than this is not begun with."""
_TOOL_S: Final = 60
"""For the login tools that azure-identity runs (az, azd, PowerShell): its own 10 s are over on a busy machine before
az has begun (azure-identity, AzureCliCredential: process_timeout)."""


class AzureCredential:
    """DefaultAzureCredential in the tenant of the spec, without anything that opens a browser.

    Tokens are kept for as long as they are good: the clusters of a fleet share them, and a credential that runs `az`
    needs a second for each one.

    Args:
        tenant: Entra tenant; "" for the credential's own.
        authority: Host that signs in, of the cloud in use; "" for the SDK's choice.
    """

    def __init__(self, tenant: str, authority: str) -> None:
        self._tenant = tenant
        self._authority = authority
        elsewhere = os.environ.get("AZURE_AUTHORITY_HOST", "")
        if not authority and elsewhere:
            # azure-identity adds https:// to a bare host, and answers http:// with a ValueError without saying where.
            url = elsewhere if "://" in elsewhere else f"https://{elsewhere}"
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
        """Get a token; a tenant that Azure asks for by a challenge counts less than the spec's."""
        tenant = self._tenant or tenant_id
        key = (tenant, *scopes)
        with self._lock:
            known = self._tokens.get(key)
            if known is None or claims or known.expires_on - time.time() < _STALE_S:
                known = self._chain.get_token(*scopes, claims=claims, tenant_id=tenant, enable_cae=enable_cae)
                self._tokens[key] = known
            return known

    def renew(self, refused: str) -> None:
        """Forget a token that Azure refused; another thread's newer one stays.

        The chain is made anew: the credentials in it keep tokens in memory too, and would give the same one again.
        """
        with self._lock:
            if any(known.token == refused for known in self._tokens.values()):
                self._tokens.clear()
                self._chain = self._sign_in()

    def _sign_in(self) -> DefaultAzureCredential:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - 90 ms that an emulated Azure has no use for

        return DefaultAzureCredential(
            authority=self._authority or None,
            exclude_interactive_browser_credential=True,
            process_timeout=_TOOL_S,
            additionally_allowed_tenants=[self._tenant] if self._tenant else [],
        )


@cache
def shared_credential(tenant: str, authority: str) -> AzureCredential:
    """Return the one credential of this process for a tenant; it lives as long as the process."""
    return AzureCredential(tenant, authority)


class EmulatedIdentity:
    """The identity of an emulated Azure: tokens from its own token endpoint, in the form of App Service.

    Args:
        sdk: Client of the emulated API; it sends no credentials itself.
        endpoint: Of that API, on loopback.
    """

    def __init__(self, sdk: AksSdk, endpoint: Endpoint) -> None:
        self._sdk = sdk
        self._endpoint = endpoint

    def get_token(self, *scopes: str) -> AccessToken:
        """Get a token of the emulated Entra."""
        resource = scopes[0].removesuffix("/.default")
        query = {"resource": resource, "api-version": "2019-08-01"}
        address, headers = f"{self._endpoint.url}/msi/token", {"X-IDENTITY-HEADER": self._endpoint.secret}
        response = self._sdk.send_request(HttpRequest("GET", address, params=query, headers=headers))
        response.raise_for_status()
        answer = tree(response.json())
        return AccessToken(str(answer.get("access_token", "")), int(str(answer.get("expires_on", 0))))


def cloud_access(cluster: ClusterRef, sdk: AksSdk, credential: Credential) -> KubeAccess:
    """Get AKS's kubeconfig of the cluster; where it would call kubelogin, an Entra token stands in.

    Args:
        cluster: Which.
        sdk: Client of the cluster's subscription.
        credential: Asked for a token where the kubeconfig would call kubelogin.

    Raises:
        AccessError: The identity may not list the credential, or gets no token.
        CloudError: Azure gives no kubeconfig.

    Source:
        docs: aks/kubelogin-authentication; Azure/AKS#4990 (AKS always answers Entra clusters with an exec section).
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
