"""The connection to one cluster's API, with its credentials: created on first use, renewed when refused.

In scope: turning a kubeconfig into a lightkube client. Out of scope: calls.

Keys of a kubeconfig exist as files only while TLS reads them, in a scratch directory: lightkube's own temporary files
outlive an error, with nothing to identify their owner.
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
"""OpenSSL's name (crypto/x509/x509err.h) for a key that does not match the certificate."""


def server_of(access: KubeAccess) -> str:
    """Return the API's address from a kubeconfig; "the cluster" if it has none."""
    try:
        config: object = parse_yaml(access.kubeconfig)
    except yaml.YAMLError:
        return "the cluster"
    return next((text(entry, "cluster", "server") for entry in items(config, "clusters")), "") or "the cluster"


class Connection:
    """A client that switches to new credentials when the old ones are refused. Thread-safe.

    Args:
        access: A complete kubeconfig with a current context. Nothing else is read: no KUBECONFIG, no home directory.
        timeout_s: Limit for connecting, and for each wait on the server.
        renewed: Reads the kubeconfig again, possibly with new credentials; None if that is impossible.

    Raises:
        AccessError: The kubeconfig cannot be used. An exec plugin without credentials fails only at the first call.
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
        """The client with the most recent credentials.

        Raises:
            AccessError: There are no credentials.
        """
        with self._lock:
            if not self._made:
                self._made.append(self._connect())
            return self._made[-1]

    def renew(self, refused: Client) -> bool:
        """Get other credentials; return False if there are none.

        Other threads may be in the middle of a call with the same client: it stays open until the connection is closed.
            If another thread has already replaced the client, nothing changes.

        Raises:
            AccessError, CloudError: Raised by whatever creates the kubeconfig.
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
                # Like Go's clients, never use the environment's proxy for loopback.
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
        # shown in the API server's audit log
        client._client._client.headers["User-Agent"] = _AGENT  # noqa: SLF001 -- lightkube has no option for it
        return client


def _useless(error: Exception) -> tuple[str, str]:
    """Explain why a kubeconfig is unusable, and how to fix it."""
    if isinstance(error, ssl.SSLError):
        if error.reason == _MISMATCH:
            return "its client certificate and client key do not match", "log in again to write both"
        why = "its certificate authority, client certificate or client key is not valid PEM"
        return f"{why} ({error.reason or 'SSLError'})", "log in again to write all three"
    if isinstance(error, binascii.Error):
        return "one of its ...-data fields is not base64", "log in again to write all three"
    why = brief(error) if isinstance(error, ConfigError) else type(error).__name__
    return why, "it needs a current context, a cluster with server and CA, and one user"


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plugin_of(access: KubeAccess) -> Tree:
    """Return the exec section of a kubeconfig; empty if it has none."""
    try:
        users = items(parse_yaml(access.kubeconfig), "users")
    except yaml.YAMLError:
        return {}
    return next((tree(user, "user", "exec") for user in users), {})


def _with_files(access: KubeAccess, folder: Path, server: str) -> dict[str, object]:
    """Return a kubeconfig with its plugin's credentials, and with certificates and keys in files."""
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
