"""RBAC authorization: Roles, ClusterRoles, and their bindings.

In scope: users, authorization, and the default roles of every cluster. Out of scope: tokens and headers (`http`).

Source: docs reference/access-authn-authz/rbac; kubernetes plugin/pkg/auth/authorizer/rbac. The user-facing roles are
shorter than the real ones: they contain only the emulated types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store import kinds
from gpukube_sandbox.kube.store.objects import namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube_sandbox.kube.store.holding import Holding
    from gpukube_sandbox.kube.store.objects import JsonObject

MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"
_ACCOUNT = "system:serviceaccount:"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class User:
    """The sender of a request."""

    name: str
    groups: tuple[str, ...]


SANDBOX_ADMIN = User("sandbox-user", (MASTERS, AUTHENTICATED))
"""User that the cluster's token authenticates."""
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def user_named(name: str, groups: Iterable[str] = ()) -> User:
    """Return the user with a name, for impersonation, including the groups that the name implies."""
    implied: list[str] = []
    if name.startswith(_ACCOUNT):
        implied = ["system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}"]
    implied.append(UNAUTHENTICATED if name == ANONYMOUS.name else AUTHENTICATED)
    return User(name, tuple(dict.fromkeys([*groups, *implied])))


@dataclass(frozen=True, slots=True)
class Access:
    """A verb on a resource ("pods", "pods/log") or a path."""

    verb: str
    resource: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def is_allowed(store: Holding, user: User, access: Access) -> bool:
    """Return whether bindings of the cluster, or of the access's namespace, allow an access."""
    return MASTERS in user.groups or any(rule_covers(rule, access) for rule in rules_of(store, user, access.namespace))


def rules_of(store: Holding, user: User, namespace: str) -> Iterator[JsonObject]:
    """Yield the rules that apply to a user in a namespace, or cluster-wide ("")."""
    if MASTERS in user.groups:
        yield {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        yield {"verbs": ["*"], "nonResourceURLs": ["*"]}
    bindings = [("", item) for item in store.all_of(kinds.CORE["clusterrolebindings"])]
    if namespace:
        bindings += [(namespace, item) for item in store.all_of(kinds.CORE["rolebindings"], namespace)]
    for place, binding in bindings:
        if any(_is_of(subject, user, namespace_of(binding)) for subject in binding.get("subjects") or ()):
            named = binding["roleRef"]
            kind = kinds.CORE["roles" if named["kind"] == "Role" else "clusterroles"]
            role = store.find(kind, place, named["name"])
            yield from (role or {}).get("rules") or ()


def _is_of(subject: JsonObject, user: User, namespace: str) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    if subject["kind"] == "ServiceAccount":
        return user.name == f"{_ACCOUNT}{subject.get('namespace') or namespace}:{subject['name']}"
    return bool(subject["name"] == user.name)


def rule_covers(rule: JsonObject, access: Access) -> bool:
    """Return whether a rule allows an access."""
    if not _has(rule.get("verbs"), access.verb):
        return False
    if access.path:
        paths = rule.get("nonResourceURLs") or ()
        return any(access.path == path or (path[-1:] == "*" and access.path.startswith(path[:-1])) for path in paths)
    named = rule.get("resourceNames") or ()
    resources = rule.get("resources") or ()
    part = access.resource.partition("/")[2]
    return (
        _has(rule.get("apiGroups"), access.group)
        and (_has(resources, access.resource) or (bool(part) and f"*/{part}" in resources))
        and (not named or access.name in named)
    )


def _has(listed: Iterable[str] | None, value: str) -> bool:
    return bool({"*", value} & set(listed or ()))


# default roles


_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_PLAIN = [
    "configmaps",
    "endpoints",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "serviceaccounts",
    "services",
]
_OTHER_GROUPS = {
    "apps": ["*"],
    "autoscaling": ["horizontalpodautoscalers"],
    "batch": ["*"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
    "resource.k8s.io": ["resourceclaims", "resourceclaimtemplates"],
}
_SHOWN = ["events", "limitranges", "namespaces", "pods/log", "pods/status", "resourcequotas"]
_ENTERED = ["pods/attach", "pods/exec", "pods/portforward"]


def _rule(verbs: list[str], group: str, resources: list[str]) -> JsonObject:
    return {"verbs": verbs, "apiGroups": [group], "resources": resources}


def _in_other_groups(verbs: list[str]) -> list[JsonObject]:
    return [_rule(verbs, group, resources) for group, resources in _OTHER_GROUPS.items()]


_VIEW = [
    _rule(_READ, "", [*_PLAIN, *_SHOWN]),
    *_in_other_groups(_READ),
    _rule(_READ, "resource.k8s.io", ["resourceclaims/status"]),
]
_EDIT = [
    *_VIEW,
    _rule([*_READ, *_WRITE], "", [*_PLAIN, "secrets", *_ENTERED]),
    _rule(["create"], "", ["pods/eviction"]),
    *_in_other_groups(_WRITE),
]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERED = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_SELF_REVIEWS = [
    _rule(["create"], "authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    _rule(["create"], "authentication.k8s.io", ["selfsubjectreviews"]),
]
_ROLES: dict[str, list[JsonObject]] = {
    "admin": [*_EDIT, _rule([*_READ, *_WRITE], _RBAC, ["roles", "rolebindings"])],
    "cluster-admin": [_rule(["*"], "*", ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "edit": _EDIT,
    "system:basic-user": _SELF_REVIEWS,
    "system:discovery": [{"verbs": ["get"], "nonResourceURLs": _DISCOVERED}],
    "system:public-info-viewer": [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}],
    "view": _VIEW,
}
_BOUND = {
    "cluster-admin": [MASTERS],
    "system:basic-user": [AUTHENTICATED],
    "system:discovery": [AUTHENTICATED],
    "system:public-info-viewer": [AUTHENTICATED, UNAUTHENTICATED],
}


def seed_roles(store: Holding) -> None:
    """Create the roles and bindings that the API server creates at startup."""
    marks = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    for name, rules in _ROLES.items():
        store.create(kinds.CORE["clusterroles"], {"metadata": {"name": name, "labels": marks}, "rules": rules})
    for name, groups in _BOUND.items():
        subjects = [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups]
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name, "labels": marks}, "roleRef": role, "subjects": subjects}
        store.create(kinds.CORE["clusterrolebindings"], binding)
