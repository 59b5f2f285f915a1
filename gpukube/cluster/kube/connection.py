"""The connection to one cluster's API, and the credentials it goes with: made when first needed, renewed when refused.

In scope: kubeconfig -> client of lightkube. Out of scope: calls.

Keys of a kubeconfig lie in files only while TLS reads them, in a directory of ours: lightkube's own temporary files
outlive an error, and nobody would know whose they are.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import ssl
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
import msgspec
import yaml
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ConfigError

from gpukube import __version__
from gpukube.cluster.kube.failures import brief
from gpukube.cluster.kube.plugin import run_plugin
from gpukube.cluster.process.scratch import Scratch
from gpukube.core.jsontree import Tree, items, text, tree
from gpukube.core.yamltext import parse_yaml
from gpukube.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gpukube.core.values import KubeAccess

_AGENT: Final = f"gpukube/{__version__}"
_FILES: Final = {
    "certificate-authority-data": "certificate-authority",
    "client-certificate-data": "client-certificate",
    "client-key-data": "client-key",
}
_MISMATCH: Final = "KEY_VALUES_MISMATCH"
"""OpenSSL's word (crypto/x509/x509err.h) for a key that is not the certificate's."""


def server_of(access: KubeAccess) -> str:
    """Read the API's address from a kubeconfig; "the cluster" when it has none."""
    try:
        config: object = parse_yaml(access.kubeconfig)
    except yaml.YAMLError:
        return "the cluster"
    return next((text(entry, "cluster", "server") for entry in items(config, "clusters")), "") or "the cluster"


class Connection:
    """A client that goes on with new credentials when the old ones are refused. Thread-safe.

    Args:
        access: A complete kubeconfig with a current context. Nothing else is read: no KUBECONFIG, no home directory.
        timeout_s: For connecting, and for each wait on the server.
        renewed: Gets the kubeconfig anew, with credentials that may be others; None where that cannot be.

    Raises:
        AccessError: The kubeconfig cannot be used. Whether an exec plugin gives credentials shows the first call.
    """

    def __init__(self, access: KubeAccess, timeout_s: float, renewed: Callable[[], KubeAccess] | None = None) -> None:
        self.server = server_of(access)
        self._access = access
        self._timeout_s = timeout_s
        self._renewed = renewed
        self._lock = threading.Lock()
        self._made: list[Client] = []
        if not _plugin_of(access):
            self._made.append(self._connect())

    @property
    def client(self) -> Client:
        """The client with the newest credentials.

        Raises:
            AccessError: There are none.
        """
        with self._lock:
            if not self._made:
                self._made.append(self._connect())
            return self._made[-1]

    def renew(self, refused: Client) -> bool:
        """Get other credentials; False where there are none.

        Siblings may be in the middle of a call with the same client: it stays open until the connection is closed. Who
        comes late with a client that another thread has replaced already changes nothing.

        Raises:
            AccessError, CloudError: As who makes the kubeconfig.
        """
        with self._lock:
            if self._made[-1] is not refused:
                return True
            if self._renewed is not None:
                access = self._renewed()
                if access == self._access and not _plugin_of(access):
                    return False
                self._access = access
            elif not _plugin_of(self._access):
                return False
            self._made.append(self._connect())
            return True

    def close(self) -> None:
        """Close all clients."""
        for client in self._made:
            client.close()

    def _connect(self) -> Client:
        try:
            with Scratch("kube") as folder:
                config = KubeConfig.from_dict(_with_files(self._access, folder, self.server))
                # As Go's clients do: a proxy of the environment is never used for loopback.
                timeout = httpx2.Timeout(self._timeout_s)
                client = Client(config, timeout=timeout, trust_env=not _is_loopback(self.server))
        except (
            ConfigError,
            yaml.YAMLError,
            msgspec.MsgspecError,
            KeyError,
            TypeError,
            AttributeError,
            OSError,
            ValueError,
        ) as error:
            why, fix = _useless(error)
            raise AccessError(
                "the kubeconfig for this cluster cannot be used",
                where=self.server,
                why=why,
                fix=fix,
                code="kubeconfig",
            ) from error
        # what audit logs of API servers show
        client._client._client.headers["User-Agent"] = _AGENT  # noqa: SLF001 -- lightkube has no option for it
        return client


def _useless(error: Exception) -> tuple[str, str]:
    """Explain why a kubeconfig is no use, and what to write."""
    if isinstance(error, ssl.SSLError):
        if error.reason == _MISMATCH:
            return "its client certificate and its client key do not belong together", "write both anew: log in again"
        why = "its certificate authority, client certificate or client key is no valid PEM"
        return f"{why} ({error.reason or 'SSLError'})", "write the authority and the pair anew: log in again"
    if isinstance(error, binascii.Error):
        return "one of its ...-data fields is no base64", "write the authority and the pair anew: log in again"
    why = brief(error) if isinstance(error, ConfigError) else type(error).__name__
    return why, "it needs a current context, a cluster with server and CA, and one user"


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plugin_of(access: KubeAccess) -> Tree:
    """Return the exec section of a kubeconfig; empty where it has none."""
    try:
        users = items(parse_yaml(access.kubeconfig), "users")
    except yaml.YAMLError:
        return {}
    return next((tree(user, "user", "exec") for user in users), {})


def _with_files(access: KubeAccess, folder: Path, server: str) -> dict[str, object]:
    """Return a kubeconfig with its plugin's credentials, whose certificates and keys are files."""
    config: dict[str, object] = dict(tree(parse_yaml(access.kubeconfig)))
    cluster = next((tree(entry, "cluster") for entry in items(config, "clusters")), {})
    for plural, singular in (("clusters", "cluster"), ("users", "user")):
        if plural not in config:
            continue
        entries = []
        for number, entry in enumerate(items(config, plural)):
            section = dict(tree(entry, singular))
            if plugin := tree(section, "exec"):
                section = {key: value for key, value in section.items() if key != "exec"}
                section |= run_plugin(plugin, cluster, server)
            entries.append({**tree(entry), singular: _filed(section, folder, str(number))})
        config[plural] = entries
    return config


def _filed(section: Mapping[str, object], folder: Path, number: str) -> dict[str, object]:
    filed = {key: value for key, value in section.items() if key not in _FILES}
    for key, name in _FILES.items():
        if isinstance(data := section.get(key), str) and data:
            file = folder / f"{name}-{number}"
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
                written.write(base64.b64decode(data))
            filed[name] = str(file)
    return filed
