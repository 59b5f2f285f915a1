"""An identity in the sandbox that may do what was printed and nothing else, in the clouds and in their clusters.

In scope: making the printed objects as an administrator, and becoming the identity. Out of scope: what is
printed (`policies`).
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import httpx

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.permissions.policies import Json, Printed

USER = "IDENTITY"
"""Stands in what is printed where a cloud knows its users by names of its own."""
_PLURALS = {
    "Namespace": ("api/v1", "namespaces"),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Deployment": ("apis/apps/v1", "deployments"),
}


def grant(info: SandboxInfo, printed: Printed) -> None:
    """Make the printed objects in each cluster, and be from now on who they are for, with only what is printed."""
    for cluster, found in printed.objects:
        make(info, cluster, found)
    become(info, printed)
    daemon.allow_only(info, printed.clouds)


def become(info: SandboxInfo, printed: Printed) -> None:
    """Be who the printed bindings are for, in all clusters."""
    subjects = [subject for _, found in printed.objects for subject in found.get("subjects") or ()]
    daemon.become(info, USER, *sorted({subject["name"] for subject in subjects if subject["kind"] == "Group"}))


def make(info: SandboxInfo, cluster: str, found: Json) -> None:
    """Make an object as an administrator of a cluster; one that is there stays."""
    daemon.become(info, "")
    group, plural = _PLURALS[found["kind"]]
    place = found["metadata"].get("namespace")
    path = f"{group}/namespaces/{place}/{plural}" if place else f"{group}/{plural}"
    with _client(info, cluster) as client:
        answer = client.post(path, json=found)
    assert answer.status_code in {httpx.codes.CREATED, httpx.codes.CONFLICT}, answer.text


def daemonsets(info: SandboxInfo, cluster: str) -> list[str]:
    """Name the DaemonSets of gpukube's namespace."""
    with _client(info, cluster) as client:
        found = client.get("apis/apps/v1/namespaces/gpukube-system/daemonsets").json()
    return [item["metadata"]["name"] for item in found["items"]]


def _client(info: SandboxInfo, cluster: str) -> httpx.Client:
    """A client of a cluster of the spec, by the sandbox's own kubeconfig."""
    document: Any = kubeconfig(info)["kubeconfig"]
    kind = cluster.partition("-")[2]
    context = next(entry for entry in document["contexts"] if _cloud_of(entry["name"]) == kind)["context"]
    server = _named(document["clusters"], context["cluster"])["cluster"]
    token = _named(document["users"], context["user"])["user"]["token"]
    trusted = ssl.create_default_context(cadata=b64decode(server["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(
        base_url=server["server"] + "/", headers=headers, verify=trusted, trust_env=False, timeout=PATIENCE_S
    )


def _cloud_of(context: str) -> str:
    return "gke" if context.startswith("gke_") else "eks" if "eks" in context else "aks"


def _named(entries: Iterator[Json] | list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)
