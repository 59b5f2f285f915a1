"""API discovery: version, groups, resources.

In scope: discovery documents built from the table of types. Out of scope: requests on objects, OpenAPI
(`openapi_v2`, `openapi_v3`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""Content type of aggregated discovery; without it, discovery takes seconds under Helm's rate limit."""

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_READS = ["get", "list", "watch"]
_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_IN_ALL = frozenset({
    "pods", "services", "daemonsets", "deployments", "replicasets", "statefulsets", "jobs", "horizontalpodautoscalers",
})  # fmt: skip
"""Resources that `kubectl get all` lists."""
_SUBRESOURCES: dict[str, tuple[str, list[str]]] = {
    "status": ("", ["get", "patch", "update"]),
    "scale": ("Scale", ["get", "patch", "update"]),
    "log": ("Pod", ["get"]),
    "eviction": ("Eviction", ["create"]),
    "binding": ("Binding", ["create"]),
    "exec": ("PodExecOptions", ["create", "get"]),
    "attach": ("PodAttachOptions", ["create", "get"]),
    "portforward": ("PodPortForwardOptions", ["create", "get"]),
    "token": ("TokenRequest", ["create"]),
}


def version_info(version: str) -> JsonObject:
    """Answer /version for a version without "v" ("1.34.2")."""
    major, minor, *_ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.24",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def paths(kinds: Iterable[Kind]) -> JsonObject:
    """Answer /: the available paths."""
    found = {"/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
    for group, versions in versions_by_group(kinds).items():
        found |= {f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)} if group else {"/api/v1"}
    return {"paths": sorted(found)}


def core_versions() -> JsonObject:
    """Answer /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def versions_by_group(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    """Map each group to its served versions."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        versions = found.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return found


def group_list(kinds: Iterable[Kind], only: str = "") -> JsonObject:
    """Answer /apis, or /apis/<group> if a group is named (empty if it does not exist)."""
    groups = []
    for group, versions in versions_by_group(kinds).items():
        named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
        if group:
            groups.append({"name": group, "versions": named, "preferredVersion": named[0]})
    if only:
        found = next((group for group in groups if group["name"] == only), None)
        return {"kind": "APIGroup", "apiVersion": "v1", **found} if found else {}
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def resource_list(kinds: Iterable[Kind], group: str, version: str) -> JsonObject:
    """Answer /api/v1 and /apis/<group>/<version>; empty if no such version exists."""
    resources: list[JsonObject] = []
    for kind in kinds:
        if (kind.group, kind.version) != (group, version):
            continue
        entry: JsonObject = {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["create"] if group in _REVIEWS else _READS if kind.idle else _VERBS,
        }
        if kind.short:
            entry["shortNames"] = list(kind.short)
        if kind.plural in _IN_ALL:
            entry["categories"] = ["all"]
        resources.append(entry)
        for part in kind.subresources:
            other, verbs = _SUBRESOURCES[part]
            below = {"name": f"{kind.plural}/{part}", "singularName": "", "namespaced": kind.namespaced, "verbs": verbs}
            resources.append(below | {"kind": other or kind.kind} | _foreign(part))
    if not resources:
        return {}
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def aggregated(kinds: Collection[Kind], *, core: bool) -> JsonObject:
    """Answer /api or /apis in one document (apidiscovery.k8s.io/v2)."""
    items = []
    for group, versions in versions_by_group(kinds).items():
        if core is (group == ""):
            described = [
                {"version": version, "freshness": "Current", "resources": _described(kinds, group, version)}
                for version in versions
            ]
            items.append({"metadata": {"name": group}, "versions": described})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _described(kinds: Iterable[Kind], group: str, version: str) -> list[JsonObject]:
    found: dict[str, JsonObject] = {}
    for entry in resource_list(kinds, group, version)["resources"]:
        name, _, part = entry["name"].partition("/")
        identity = {"group": entry.get("group", group), "version": entry.get("version", version), "kind": entry["kind"]}
        if part:
            below = {"subresource": part, "responseKind": identity, "verbs": entry["verbs"]}
            found[name].setdefault("subresources", []).append(below)
            continue
        found[name] = {
            "resource": name,
            "responseKind": identity,
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
            "shortNames": entry.get("shortNames", []),
            "categories": entry.get("categories", []),
        }
    return list(found.values())


def _foreign(part: str) -> dict[str, str]:
    if part == "scale":
        return {"group": "autoscaling", "version": "v1"}
    if part == "token":
        return {"group": "authentication.k8s.io", "version": "v1"}
    return {"group": "policy", "version": "v1"} if part == "eviction" else {}
