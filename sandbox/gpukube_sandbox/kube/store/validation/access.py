"""Roles and their bindings.

Source: kubernetes pkg/apis/rbac/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import namespace_of
from gpukube_sandbox.kube.store.validation.fields import invalid, required, subdomain, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_GROUP = "rbac.authorization.k8s.io"


def check_role(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject rules that allow nothing, or that mix resources and paths."""
    del old
    for at, rule in enumerate(new.get("rules") or ()):
        field, paths = f"rules[{at}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{field}.verbs", "verbs must contain at least one value")
        if paths:
            if namespace_of(new):
                yield invalid(f"{field}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{field}.nonResourceURLs", paths, text)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{field}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{field}.resources", "resource rules must supply at least one resource")
    if (rule := new.get("aggregationRule")) is not None and not rule.get("clusterRoleSelectors"):
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", text)


def check_binding(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a binding without a role or with invalid subjects, and changes of its role."""
    role, namespaced = new.get("roleRef") or {}, bool(namespace_of(new))
    if role.get("apiGroup") != _GROUP:
        yield unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if role.get("kind") not in kinds:
        yield unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield required("roleRef.name")
    for at, subject in enumerate(new.get("subjects") or ()):
        yield from _subject(f"subjects[{at}]", subject, namespaced=namespaced)
    if old is not None and role != (old.get("roleRef") or {}):
        yield invalid("roleRef", role, "cannot change roleRef")


def _subject(field: str, subject: JsonObject, *, namespaced: bool) -> Iterator[Cause]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{field}.name")
    if kind == "ServiceAccount":
        if name:
            yield from subdomain(f"{field}.name", name)
        if group:
            yield unsupported(f"{field}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{field}.namespace")
    elif kind in {"User", "Group"}:
        if group != _GROUP:
            yield unsupported(f"{field}.apiGroup", group, (_GROUP,))
    else:
        yield unsupported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))
