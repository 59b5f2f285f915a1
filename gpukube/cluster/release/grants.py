"""Checks before any change whether this identity may grant the permissions in a chart's roles.

In scope: applying the rendered roles in a dry run, and naming missing permissions. Out of scope: the policy that
gpukube prints (engine.permissions).

Kubernetes lets no one create a role with more permissions than their own, not even in a dry run (kubernetes
pkg/registry/rbac/clusterrole/policybased/storage.go; an access review cannot answer this: it checks only RBAC). A
binding requires the same permissions as its role, which a dry run does not create, so checking roles is enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.core.jsontree import items, text, tree
from gpukube.core.permissions import PRINT_POLICY
from gpukube.errors import AccessError, HelmError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.jsontree import Tree

_ROLES: Final = ("ClusterRole", "Role")
_LACKS: Final = re.compile(r"\{(?P<parts>[^{}]*)\}")
_PART: Final = re.compile(r"(?P<name>\w+):\[(?P<values>[^\]]*)\]")
"""A rule as the API server prints it: {APIGroups:["apps"], Resources:["daemonsets"], Verbs:["list"]}
(kubernetes pkg/registry/rbac/validation/rule.go, ConfirmNoEscalation; pkg/apis/rbac/v1 CompactString)."""


def require_grants(kube: Kube, rendered: Sequence[Tree], former: Sequence[Tree], plan: ReleasePlan) -> None:
    """Apply the roles of a planned release in a dry run.

    Args:
        kube: The cluster.
        rendered: Objects rendered from the chart.
        former: Objects of the live release: an unchanged role grants nothing new.
        plan: The release.

    Raises:
        AccessError: This identity may not grant their permissions; the message names each missing one.
        HelmError: The server rejects a role for another reason.
        ClusterError: The call failed.
    """
    roles = [obj for obj in rendered if text(obj, "kind") in _ROLES and _key(obj) not in map(_key, former)]
    if not roles:
        return
    # Permissions in gpukube's namespace alone count only there: without the namespace, cluster-wide ones are required.
    placed = kube.namespace_labels(plan.namespace) is not None
    lacking: dict[str, None] = {}
    for role in roles:
        everywhere = text(role, "kind") == "ClusterRole" or not placed
        desired = (
            _as_cluster_role(role)
            if everywhere
            else {**role, "metadata": {"name": text(role, "metadata", "name"), "namespace": plan.namespace}}
        )
        reason = kube.try_object(RELEASE_TYPES[text(desired, "kind")], desired)
        if not reason:
            continue
        found = list(missing_rights(reason, "" if everywhere else plan.namespace))
        if not found:
            raise HelmError(
                f"the cluster rejects {text(role, 'kind')} {text(role, 'metadata', 'name')} of the chart",
                where=plan.kind.address,
                why=reason,
                fix="fix what blocks it (an admission webhook, a missing permission), then run again",
                code="kube-refused",
            )
        lacking |= dict.fromkeys(found)
    if lacking:
        raise AccessError(
            f"not allowed in the cluster: {', '.join(lacking)}",
            where=plan.kind.address,
            why=f"roles of {plan.kind.title} allow it, and Kubernetes does not let you grant what you lack",
            fix=f"get a role that allows it: {PRINT_POLICY} prints one",
            code="kube-permissions",
        )


def missing_rights(reason: str, namespace: str) -> Iterator[str]:
    """Yield the permissions that a rejection lists, as arguments of kubectl auth can-i: "patch nodes/status".

    Args:
        reason: The API server's message.
        namespace: Namespace where they are needed; "" for all.
    """
    place = f" in {namespace}" if namespace else ""
    for rule in _LACKS.finditer(reason):
        parts = {
            part["name"]: [value.strip().strip('"') for value in part["values"].split(",")]
            for part in _PART.finditer(rule["parts"])
        }
        for group in parts.get("APIGroups", [""]):
            for resource in parts.get("Resources", parts.get("NonResourceURLs", [])):
                kind = f"{resource}.{group}" if group else resource
                named = "".join(f" {name}" for name in parts.get("ResourceNames", []))
                yield from (f"{verb} {kind}{named}{place}" for verb in parts.get("Verbs", []))


def _as_cluster_role(role: Tree) -> Tree:
    if text(role, "kind") == "ClusterRole":
        return role
    name = f"{text(role, 'metadata', 'name')}-trial"
    return {**role, "kind": "ClusterRole", "metadata": {"name": name}}


def _key(role: Tree) -> tuple[str, str, str]:
    return text(role, "kind"), text(role, "metadata", "name"), str(items(role, "rules"))


def try_objects(kube: Kube, rendered: Iterable[Tree], plan: ReleasePlan) -> None:
    """Apply every object of a release over the live ones in a dry run.

    Bindings are skipped: they name roles that a dry run does not create.

    Raises:
        HelmError: The server rejects an object; the message names it.
        AccessError, ClusterError: The call failed.
    """
    for obj in rendered:
        kind = RELEASE_TYPES.get(text(obj, "kind"))
        if kind is None or text(obj, "kind").endswith("Binding"):
            continue
        place = {"namespace": plan.namespace} if kind.namespaced else {}
        if reason := kube.try_object(kind, {**obj, "metadata": {**place, **tree(obj, "metadata")}}):
            raise HelmError(
                f"the cluster rejects {kind.kind} {text(obj, 'metadata', 'name')} of the chart; nothing was removed",
                where=plan.kind.address,
                why=reason,
                fix="fix what blocks it (an admission webhook, a missing permission), then run again",
                code="kube-refused",
            )
