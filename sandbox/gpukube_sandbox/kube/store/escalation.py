"""Privilege escalation prevention: nobody may grant permissions that they lack.

In scope: the check of roles and bindings, and its message. Out of scope: who may write them (`rbac`).

Source: kubernetes pkg/registry/rbac (role, clusterrole, rolebinding and clusterrolebinding policybased/storage.go) and
validation/rule.go, ConfirmNoEscalation; docs reference/access-authn-authz/rbac, privilege escalation prevention.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store import kinds
from gpukube_sandbox.kube.store.problems import ApiProblem, escalation, not_found
from gpukube_sandbox.kube.store.rbac import MASTERS, Access, User, is_allowed, rule_covers, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store

_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"roles", "clusterroles"})
"""Role types; the other types of the group are bindings."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The permissions that an object grants.

    Attributes:
        without: Access that allows a user to grant permissions that they lack.
        rights: Single permissions, each with one verb, one resource or path, and one name.
        problem: Why the permissions are unknown: the role that a binding names does not exist.
    """

    without: Access
    rights: tuple[JsonObject, ...]
    problem: ApiProblem | None = None

    def accesses(self) -> Iterator[Access]:
        """Yield the accesses that its writer needs, in the namespace of the object."""
        for right in self.rights:
            yield replace(_as_access(right), namespace=self.without.namespace)


def grant_of(store: Store, kind: Kind, new: JsonObject, old: JsonObject | None) -> Grant | None:
    """Return what a new or changed object grants; None if it grants nothing new.

    Args:
        store: Contains the role that a binding names.
        kind: The object's type; types of other groups grant nothing.
        new: The new object, with name and namespace.
        old: The current object; None if it is created.
    """
    if kind.group != _GROUP:
        return None
    name, namespace = new["metadata"]["name"], new["metadata"].get("namespace", "")
    if kind.plural in _ROLES:
        granted = new.get("rules") or []
        if old is not None and granted == (old.get("rules") or []):
            return None
        return Grant(Access("escalate", kind.plural, _GROUP, namespace, name), tuple(_singles(granted)))
    reference = new["roleRef"]
    if old is not None and (reference, new.get("subjects")) == (old["roleRef"], old.get("subjects")):
        return None
    of = kinds.CORE["roles" if reference["kind"] == "Role" else "clusterroles"]
    without = Access("bind", of.plural, _GROUP, namespace, reference["name"])
    role = store.find(of, namespace if reference["kind"] == "Role" else "", reference["name"])
    if role is None:
        return Grant(without, (), not_found(of.plural, reference["name"], of.group))
    return Grant(without, tuple(_singles(role.get("rules") or ())))


def check_grant(store: Store, user: User, kind: Kind, name: str, grant: Grant) -> None:
    """Reject an object that grants permissions that its writer lacks.

    Raises:
        ApiProblem: 403; 404 for a missing role, but only if the writer may not bind any role.
    """
    if MASTERS in user.groups or is_allowed(store, user, grant.without):
        return
    if grant.problem:
        raise grant.problem
    held = list(rules_of(store, user, grant.without.namespace))
    lacking = [right for right in grant.rights if not any(rule_covers(own, _as_access(right)) for own in held)]
    if lacking:
        raise escalation(kind.plural, name, kind.group, _message(user, lacking))


def _as_access(single: JsonObject) -> Access:
    """Return the access of a single permission; without resource names, it is access to all names."""
    verb, (path,) = single["verbs"][0], single.get("nonResourceURLs") or ("",)
    (group,), (resource,) = single.get("apiGroups") or ("",), single.get("resources") or ("",)
    (name,) = single.get("resourceNames") or ("",)
    return Access(verb, resource, group, "", name, path)


def _singles(rules: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Split rules into single permissions: one verb, one resource or path, and one name."""
    for rule in rules:
        of_types = product(*(rule.get(key) or () for key in ("verbs", "apiGroups", "resources")))
        for (verb, group, resource), name in product(of_types, rule.get("resourceNames") or [""]):
            named = {"resourceNames": [name]} if name else {}
            yield {"apiGroups": [group], "resources": [resource], **named, "verbs": [verb]}
        for verb, path in product(rule.get("verbs") or (), rule.get("nonResourceURLs") or ()):
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _message(user: User, lacking: list[JsonObject]) -> str:
    compact: dict[str, JsonObject] = {}
    for rule in lacking:  # verbs on one resource are combined, as in CompactRules
        key = json.dumps({**rule, "verbs": []}, sort_keys=True)
        verbs = compact.setdefault(key, {**rule, "verbs": []})["verbs"]
        verbs += [verb for verb in rule["verbs"] if verb not in verbs]
    rows = sorted(_written(rule) for rule in compact.values())
    return (
        f'user "{user.name}" (groups={_quoted(user.groups)}) is attempting to grant RBAC permissions not currently '
        "held:\n" + "\n".join(rows)
    )


_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def _written(rule: JsonObject) -> str:
    parts = [f"{title}:{_quoted(rule[key])}" for title, key in _PARTS if rule.get(key)]
    return "{" + ", ".join(parts) + "}"


def _quoted(texts: Iterable[str]) -> str:
    """Format a list like Go's %q."""
    return "[" + " ".join(json.dumps(text) for text in texts) + "]"
