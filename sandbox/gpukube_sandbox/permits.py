"""Permissions that gpukube's calls have needed, and permissions that are denied.

In scope: recording both, and how clients are identified. Out of scope: which permissions a call needs and how a cloud
words its refusal (`permissions` of each cloud), Roles and bindings (`kube.store.rbac`).

A cloud's permission has the cloud's own format: eks:CreateNodegroup,
Microsoft.ContainerService/managedClusters/agentPools/write, container.clusters.update. A Kubernetes permission is a
verb and a resource, with the group after a dot: "create pods/eviction", "list daemonsets.apps". If it was used in a
namespace, that follows: "get secrets in gpukube-system".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GPUKUBE = re.compile(r"\bgpukube/|^Helm/\d+\.\d+$")
"""User agents of gpukube's clients and of its embedded Helm, whose version has no patch number, unlike the `helm`
command's."""
_AGENTS = (b"user-agent", b"x-goog-api-client")
_ACCESS = re.compile(r"[a-z*]+ [a-z*]+(/[a-z]+)?(\.[a-z0-9.-]+)?")


@dataclass(frozen=True, slots=True)
class Need:
    """One permission that a call needs.

    Attributes:
        permission: The permission, in its cloud's format.
        resource: The resource that the cloud's refusal names; "" for none.
        by: Permission of the call itself if this one is needed in addition; "" if this is that permission.
        at: Resource of the call itself.
    """

    permission: str
    resource: str = ""
    by: str = ""
    at: str = ""


@dataclass(slots=True)
class PermitBook:
    """Permissions of one sandbox.

    Attributes:
        used: Permissions that gpukube's calls have needed since the start, regardless of resets.
        denied: Denied permissions.
        allowed: Patterns of the only allowed permissions of clouds; None allows all. In a cluster, Roles define the
            permissions (`KubeCluster.user`).
    """

    used: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    allowed: tuple[str, ...] | None = None

    def reset(self) -> None:
        """Allow everything; keep `used`."""
        self.denied.clear()
        self.allowed = None

    def note(self, permissions: Iterable[str], headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Record the permissions that a call needs, if gpukube sent it."""
        if is_from_gpukube(headers):
            self.used.update(permissions)

    def missing(self, needs: Sequence[Need], headers: Sequence[tuple[bytes, bytes]]) -> Need | None:
        """Record what a call needs, and return the first denied permission, if any."""
        self.note((need.permission for need in needs), headers)
        if not self.denied and self.allowed is None:
            return None
        return next((need for need in needs if self._refuses(need.permission)), None)

    def _refuses(self, permission: str) -> bool:
        """Return whether a permission is denied, ignoring case as AWS and Azure do."""
        name = permission.lower()
        if any(fnmatchcase(name, pattern.lower()) for pattern in self.denied):
            return True
        return self.allowed is not None and not any(fnmatchcase(name, pattern.lower()) for pattern in self.allowed)

    def denied_accesses(self) -> set[tuple[str, str]]:
        """Return the (verb, resource) pairs that are denied in every cluster."""
        return {(verb, resource) for verb, _, resource in (text.partition(" ") for text in self.denied) if resource}


def is_from_gpukube(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether gpukube or its embedded Helm sent a request."""
    return any(_GPUKUBE.search(value.decode("latin-1")) for name, value in headers if name in _AGENTS)


def access_name(verb: str, resource: str, group: str, namespace: str = "") -> str:
    """Format a Kubernetes permission."""
    return f"{verb} {resource}{f'.{group}' if group else ''}{f' in {namespace}' if namespace else ''}"


def is_access(text: str) -> bool:
    """Return whether a text is a Kubernetes permission, such as "create pods/eviction"."""
    return _ACCESS.fullmatch(text) is not None
