"""Reads the user's kubeconfig: picks one context and embeds the files that it names.

Kubeconfigs that a cloud generates belong to its provider.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.core.jsontree import items, tree
from gpukube.core.values import KubeAccess
from gpukube.core.yamltext import dump_yaml, parse_yaml
from gpukube.endpoint import is_loopback, not_loopback
from gpukube.errors import AccessError

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef

_FILES: Final = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
"""Keys that name a file -> the key with its contents in base64."""
_PLUGINS: Final = ("exec", "auth-provider")


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used; `fix` tells the user what to write."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Entry:
    """One context with its cluster and user.

    Attributes:
        name: Name of the context.
        cluster, user: The two sections.
        namespace: Namespace of the context; "" if it names none.
    """

    name: str
    cluster: Mapping[str, object]
    user: Mapping[str, object] = field(repr=False)
    namespace: str = ""

    @property
    def server(self) -> str:
        """URL of the Kubernetes API."""
        return str(self.cluster.get("server", ""))

    @property
    def has_own_credentials(self) -> bool:
        """Whether the user section works without a plugin: a certificate, a token, a password."""
        return bool(self.user) and not any(key in self.user for key in _PLUGINS)

    def with_token(self, token: str) -> Entry:
        """Return a copy whose user section is a bearer token."""
        return replace(self, user={"token": token})

    def document(self) -> dict[str, object]:
        """Return a kubeconfig with only this context."""
        context = {"cluster": self.name, "user": self.name}
        context |= {"namespace": self.namespace} if self.namespace else {}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": dict(self.cluster)}],
            "users": [{"name": self.name, "user": dict(self.user)}],
            "contexts": [{"name": self.name, "context": context}],
            "current-context": self.name,
        }

    def access(self) -> KubeAccess:
        """Return the kubeconfig as the engine expects it."""
        return KubeAccess(dump_yaml(self.document()))


def file_access(cluster: ClusterRef, *, sandbox: bool) -> KubeAccess:
    """Read one context of the user's kubeconfig, with all files embedded.

    Raises:
        AccessError: No such file or context; in sandbox mode, a server that is not on loopback; otherwise, credentials
            for a plain http server.
    """
    try:
        entry = _first_with(cluster.context, _files(cluster.kubeconfig))
    except KubeconfigError as error:
        raise AccessError(str(error), where=cluster.key, fix=error.fix, code="kubeconfig") from error
    if sandbox and not is_loopback(entry.server):
        fix = f"remove clusters.{cluster.key}.kubeconfig and context"
        raise not_loopback(f'the kubeconfig points to "{entry.server}"', cluster.key, fix)
    # Without credentials, as with `kubectl proxy`, there is nothing to protect; https on loopback is a tunnel whose far
    # end is authenticated by the CA in the file.
    if not sandbox and entry.user and not entry.server.startswith("https://"):
        raise AccessError(
            f'the kubeconfig sends credentials to "{entry.server}"',
            where=cluster.key,
            fix="write the cluster's https:// address, or remove the user if a proxy authenticates",
            why="anyone on the network path can read plain http",
            code="plain-http",
        )
    return entry.access()


def _files(written: str) -> list[str]:
    """Return the spec's file, else kubectl's: those in $KUBECONFIG, or the default."""
    if written:
        return [written]
    listed = [file for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    return listed or ["~/.kube/config"]


def _first_with(context: str, files: list[str]) -> Entry:
    *others, last = files
    for file in others:
        try:
            return read_kubeconfig(file, context)
        except KubeconfigError:
            continue
    return read_kubeconfig(last, context)


def read_kubeconfig(path: str, context: str) -> Entry:
    """Read one context of a file ("" for the current one) and embed the files that it names.

    Raises:
        KubeconfigError: A file cannot be read, is not a kubeconfig, or has no such context.
    """
    file = Path(path).expanduser()
    entry = parse_kubeconfig(_read(file), context)
    folder = file.parent
    return replace(entry, cluster=_embed(entry.cluster, folder), user=_embed(entry.user, folder))


def parse_kubeconfig(text: str, context: str) -> Entry:
    """Parse one context; "" for the current one.

    Raises:
        KubeconfigError: The text is not a kubeconfig, or has no such context.
    """
    try:
        document = parse_yaml(text)
    except yaml.YAMLError as error:
        raise KubeconfigError("the kubeconfig is not YAML") from error
    root = tree(document)
    contexts = _named(root, "contexts", "context")
    name = context or str(root.get("current-context") or "")
    if name not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        raise KubeconfigError(f'the kubeconfig has no context "{name}"', f"choose one of its contexts: {known}")
    chosen = contexts[name]
    cluster = _named(root, "clusters", "cluster").get(str(chosen.get("cluster")), {})
    user = _named(root, "users", "user").get(str(chosen.get("user")), {})
    if not cluster.get("server"):
        raise KubeconfigError(f'the context "{name}" has no cluster with a server')
    return Entry(name, cluster, user, str(chosen.get("namespace") or ""))


def _embed(section: Mapping[str, object], folder: Path) -> dict[str, object]:
    embedded = {key: value for key, value in section.items() if key not in (*_FILES, "tokenFile")}
    for key, data_key in _FILES.items():
        if section.get(key) and data_key not in section:
            embedded[data_key] = base64.b64encode(_read_bytes(folder / str(section[key]))).decode()
    if section.get("tokenFile") and "token" not in section:
        embedded["token"] = _read(folder / str(section["tokenFile"])).strip()
    if isinstance(section.get("exec"), Mapping):
        embedded["exec"] = _with_whole_path(tree(section, "exec"), folder)
    return embedded


def _with_whole_path(plugin: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Resolve a command with a slash relative to the file (docs: kubernetes.io, client-go credential plugins)."""
    command = str(plugin.get("command", ""))
    return {**plugin, "command": str((folder / command).absolute())} if "/" in command else dict(plugin)


def _read(file: Path) -> str:
    return _read_bytes(file).decode(errors="replace")


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{file} cannot be read: {error.strerror}", "check the path") from error


def _named(root: Mapping[str, object], plural: str, singular: str) -> dict[str, Mapping[str, object]]:
    entries = [tree(item) for item in items(root, plural)]
    return {str(entry.get("name")): tree(entry, singular) for entry in entries}
