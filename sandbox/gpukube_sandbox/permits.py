"""Permissions: which of them the calls of gpukube have needed, and which are refused from now on.

In scope: the book of both, and how clients are told apart. Out of scope: what a call needs and how a cloud
words its refusal (`permissions` of each cloud), Roles and bindings (`kube.store.rbac`).

A cloud's permission is written as that cloud writes it: eks:CreateNodegroup,
Microsoft.ContainerService/managedClusters/agentPools/write, container.clusters.update. One of a Kubernetes API is a
verb and a resource, with the group behind a dot: "create pods/eviction", "list daemonsets.apps"; where it was used in
a namespace, that follows: "get secrets in gpukube-system".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OURS = re.compile(r"\bgpukube/|^Helm/\d+\.\d+$")
"""What gpukube's own clients send, and the Helm that is embedded in it, whose version has no patch number; the command
`helm` has one."""
_AGENTS = (b"user-agent", b"x-goog-api-client")
_ACCESS = re.compile(r"[a-z*]+ [a-z*]+(/[a-z]+)?(\.[a-z0-9.-]+)?")


@dataclass(frozen=True, slots=True)
class Need:
    """One permission that a call needs.

    Attributes:
        permission: As its cloud writes it.
        resource: On what, as the cloud's refusal names it; "" where it names nothing.
        by: Permission of the call itself, where this one is needed beside it; "" for that one.
        at: Resource of that one.
    """

    permission: str
    resource: str = ""
    by: str = ""
    at: str = ""


@dataclass(slots=True)
class PermitBook:
    """Permissions of one sandbox.

    Attributes:
        used: What calls of gpukube have needed, since the process runs: a reset leaves it.
        denied: What is refused.
        allowed: Patterns of a cloud's permissions, all others are refused; None: everything is allowed. Who may do what
            in a cluster is said by Roles (`KubeCluster.user`).
    """

    used: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    allowed: tuple[str, ...] | None = None

    def reset(self) -> None:
        """Allow everything; what was used is kept."""
        self.denied.clear()
        self.allowed = None

    def note(self, permissions: Iterable[str], headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Remember what a call needs, if gpukube has sent it."""
        if is_ours(headers):
            self.used.update(permissions)

    def missing(self, needs: Sequence[Need], headers: Sequence[tuple[bytes, bytes]]) -> Need | None:
        """Note what a call needs, and give the first of it that is refused."""
        self.note((need.permission for need in needs), headers)
        if not self.denied and self.allowed is None:
            return None
        return next((need for need in needs if self._refuses(need.permission)), None)

    def _refuses(self, permission: str) -> bool:
        """Neither AWS nor Azure minds the case of letters."""
        name = permission.lower()
        if any(fnmatchcase(name, pattern.lower()) for pattern in self.denied):
            return True
        return self.allowed is not None and not any(fnmatchcase(name, pattern.lower()) for pattern in self.allowed)

    def denied_accesses(self) -> set[tuple[str, str]]:
        """The (verb, resource) pairs that are refused in every cluster."""
        return {(verb, resource) for verb, _, resource in (text.partition(" ") for text in self.denied) if resource}


def is_ours(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether gpukube or its embedded Helm has sent a request."""
    return any(_OURS.search(value.decode("latin-1")) for name, value in headers if name in _AGENTS)


def access_name(verb: str, resource: str, group: str, namespace: str = "") -> str:
    """Write a permission of a Kubernetes API."""
    return f"{verb} {resource}{f'.{group}' if group else ''}{f' in {namespace}' if namespace else ''}"


def is_access(text: str) -> bool:
    """Whether a text is a permission of a Kubernetes API, "create pods/eviction"."""
    return _ACCESS.fullmatch(text) is not None
