"""Exec plugins of kubeconfigs: runs the command in a user section and reads the credentials that it prints.

In scope: the plugin's input and output. Out of scope: when to run it (connection).

It runs the way kubectl runs it (kubernetes.io, Client Authentication v1 and v1beta1; client-go,
plugin/pkg/client/auth/exec), but without a terminal: its output is not shown while it runs.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from typing import TYPE_CHECKING, Final

from gpukube.cluster.process.child import DeadlinePassed, run_child
from gpukube.core.jsontree import items, text, tree
from gpukube.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree

_VERSIONS: Final = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_DEADLINE_S: Final = 60.0
_INFO: Final = "KUBERNETES_EXEC_INFO"
_CLUSTER: Final = (
    *("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"),
    "disable-compression",
)
_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Extension of a cluster section that is passed to the plugin as spec.cluster.config."""
_FIX: Final = "run the kubeconfig's exec command by hand, or remove kubeconfig from the spec"


def run_plugin(plugin: Tree, cluster: Tree, server: str) -> dict[str, str]:
    """Run a plugin once; return a user section with its credentials.

    Args:
        plugin: The exec section of the kubeconfig.
        cluster: The cluster's section.
        server: Address of the API, for messages.

    Raises:
        AccessError: It cannot be run, fails, or returns no credentials. The message contains none of its output.
    """
    version = text(plugin, "apiVersion")
    if version not in _VERSIONS:
        raise _error(server, f'its apiVersion is "{version}"', f"write {' or '.join(_VERSIONS[:2])}, as kubectl needs")
    name = text(plugin, "command")
    environ = os.environ | {text(pair, "name"): text(pair, "value") for pair in items(plugin, "env")}
    program = shutil.which(name, path=environ.get("PATH"))
    if program is None:
        hint = " ".join(text(plugin, "installHint").split())
        raise _error(server, f'"{name}" is not on PATH', hint or f"install {name}")
    if text(plugin, "interactiveMode") == "Always":
        raise _error(server, "it needs a terminal (interactiveMode: Always)", "use credentials that work without one")
    args = plugin.get("args")
    words = [program, *(map(str, args) if isinstance(args, list) else ())]
    environ[_INFO] = json.dumps(_info(version, plugin, cluster))
    try:
        ended = run_child(words, stdin="", environ=environ, deadline_s=_DEADLINE_S)
    except DeadlinePassed as error:
        why = f'"{name}" did not end within {_DEADLINE_S:g} s; it may wait for a login'
        raise _error(server, why, "log in with kubectl first, then run again") from error
    except OSError as error:
        raise _error(server, f'"{name}" cannot be run: {error.strerror}') from error
    if ended.code:
        output = ended.err.strip().splitlines()
        raise _error(server, f'"{name}" ended with code {ended.code}' + (f": {output[-1][:300]}" if output else ""))
    return _credentials(ended.out, version, name, server)


def _info(version: str, plugin: Tree, cluster: Tree) -> dict[str, object]:
    spec: dict[str, object] = {"interactive": False}
    if plugin.get("provideClusterInfo") is True:
        spec["cluster"] = {key: cluster[key] for key in _CLUSTER if key in cluster}
        for extension in items(cluster, "extensions"):
            if text(extension, "name") == _EXTENSION:
                spec["cluster"] |= {"config": tree(extension).get("extension")}  # type: ignore[operator]  # a dict, from above
    return {"apiVersion": version, "kind": "ExecCredential", "spec": spec}


def _credentials(output: str, version: str, name: str, server: str) -> dict[str, str]:
    try:
        answer: Mapping[str, object] = tree(json.loads(output))
    except ValueError:
        raise _error(server, f'"{name}" printed no ExecCredential in JSON') from None  # the cause would quote it
    if text(answer, "apiVersion") != version:
        raise _error(server, f'"{name}" did not answer in {version}', "write the apiVersion that it prints")
    status = tree(answer, "status")
    token = text(status, "token")
    pair = (text(status, "clientCertificateData"), text(status, "clientKeyData"))
    found = {"token": token} if token else {}
    if all(pair):
        certificate, key = (base64.b64encode(part.encode()).decode() for part in pair)
        found |= {"client-certificate-data": certificate, "client-key-data": key}
    if not found or any(pair) != all(pair):
        raise _error(server, f'"{name}" printed neither a token nor a certificate and key')
    return found


def _error(server: str, why: str, fix: str = _FIX) -> AccessError:
    return AccessError(
        "the kubeconfig's credentials are not available: its exec plugin returns none",
        where=server,
        why=why,
        fix=fix,
        code="kube-credentials",
    )
