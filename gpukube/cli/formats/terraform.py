"""A plan in the form of `terraform show -json`, for Conftest, OPA, tfplan2md and infracost.

Changes are to gpukube's own resource types, gpukube_pool and gpukube_release; planned_values contains the future pools
as resources of each cloud's Terraform provider, for which infracost knows prices.

Format 1.2: docs: terraform/internals/json-format; hashicorp/terraform internal/command/jsonplan/plan.go. It contains no
timestamp, so that the same plan produces the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from gpukube.cli.formats.data import quoted_json
from gpukube.cli.rendering.words import releases_of
from gpukube.core.hcl import resource_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.engine.documents.resources import PlannedResource, PricedPlan
    from gpukube.engine.documents.shapes.parts import NodeRange
    from gpukube.engine.documents.shapes.plan import ClusterPart, LiveState, PlanDocument, PoolPart, Release

_FORMAT: Final = "1.2"
_TERRAFORM: Final = "1.11.4"
"""The release whose format this is; readers require a version."""
_OWN: Final = "registry.terraform.io/gpukube/gpukube"
_HASHICORP: Final = "registry.terraform.io/hashicorp"
_ACTIONS: Final = {
    "create": ["create"],
    "update": ["update"],
    "replace": ["delete", "create"],
    "delete": ["delete"],
    "adopt": ["update"],
    "no-op": ["no-op"],
    "conflict": ["no-op"],
}
_RELEASE_ACTIONS: Final = {"install": ["create"], "upgrade": ["update"]}


def terraform_lines(document: PricedPlan | PlanDocument) -> Iterator[str]:
    """Return a plan as one JSON document."""
    resources = cast("Sequence[PlannedResource] | None", document.get("resources"))
    yield from quoted_json(terraform_plan(document, resources), indent=2).splitlines()


def terraform_plan(plan: PlanDocument, resources: Sequence[PlannedResource] | None) -> dict[str, object]:
    """Return a plan as Terraform would describe it.

    Args:
        plan: The document of `-o json`.
        resources: The future pools; None if only the document of a plan is left. planned_values is then omitted:
            infracost would treat an empty one as a plan without cost, and rejects a plan without it.
    """
    clusters = plan["clusters"]
    failed = any(one["error"] or one["unplanned"] for one in clusters)
    refused = any(pool["action"] == "conflict" for one in clusters for pool in one["pools"])
    planned = None if resources is None else [_planned(one) for one in resources]
    return {
        "format_version": _FORMAT,
        "terraform_version": _TERRAFORM,
        "applyable": plan["differs"] and not failed and not refused,
        "complete": not failed,
        "errored": failed or refused,
        **({} if planned is None else {"planned_values": {"root_module": {"resources": planned}}}),
        "resource_changes": _all_changes(plan),
        "output_changes": {},
        "prior_state": {"format_version": "1.0"},
        "configuration": {
            "provider_config": dict(map(_provider, resources or ())),
            "root_module": {"resources": [_configured(one) for one in resources or ()]},
        },
    }


def gitlab_lines(document: PlanDocument) -> Iterator[str]:
    """Return the three numbers of GitLab's terraform report, which a merge request shows; a replacement counts twice.

    Source: docs.gitlab.com/user/infrastructure/iac/mr_integration, whose jq computes them from resource_changes.
    """
    actions = [action for change in _all_changes(document) for action in change["change"]["actions"]]
    yield quoted_json({name: actions.count(name) for name in ("create", "update", "delete")})


def _all_changes(plan: PlanDocument) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    for cluster in plan["clusters"]:
        there = [pool for pool in cluster["pools"] if pool["action"] != "standby" or pool["live"]]
        changes += [_pool_change(cluster, pool) for pool in there]
        acting = [release for release in releases_of(cluster) if release["action"] in _RELEASE_ACTIONS]
        changes += [_release_change(cluster, release) for release in acting]
    return changes


def _planned(one: PlannedResource) -> dict[str, object]:
    return {
        **_resource(one["type"], one["name"]),
        "provider_name": f"{_HASHICORP}/{_provider_of(one)}",
        "schema_version": 0,
        "values": one["values"],
        "sensitive_values": {},
    }


def _configured(one: PlannedResource) -> dict[str, object]:
    return {
        **_resource(one["type"], one["name"]),
        "provider_config_key": _provider(one)[0],
        "expressions": {},
        "schema_version": 0,
    }


def _resource(kind: str, name: str) -> dict[str, object]:
    return {"address": f"{kind}.{name}", "mode": "managed", "type": kind, "name": name}


def _provider(one: PlannedResource) -> tuple[str, dict[str, object]]:
    """Return one provider per cluster: prices depend on its region or project."""
    name, alias = _provider_of(one), resource_name(one["cluster"])
    constants: dict[str, object] = {key: {"constant_value": value} for key, value in one["identity"].items()}
    config: dict[str, object] = {"name": name, "full_name": f"{_HASHICORP}/{name}", "alias": alias}
    return f"{name}.{alias}", {**config, "expressions": constants}


def _provider_of(one: PlannedResource) -> str:
    return one["type"].partition("_")[0]


def _is_surge(pool: PoolPart) -> bool:
    """Return whether the plan creates the new pool before it deletes the old one."""
    way = pool["replacement"]
    return pool["action"] == "replace" and way is not None and pool["requests"] == way["requests"]


def _pool_change(cluster: ClusterPart, pool: PoolPart) -> dict[str, object]:
    action = pool["action"]
    there, declared = pool["live"] is not None, action != "delete"
    common = {
        "cluster": cluster["cluster"],
        "provider": cluster["provider"],
        "pool": pool["pool"],
        "name": pool["name"],
    }
    before = {
        **common,
        **(_described(live, live.get("size")) if (live := pool["live"]) else {}),
        "fields": {change["field"]: change["old"] for change in pool["changes"]},
    }
    after = {
        **common,
        **_described(pool, pool["nodes"]),
        "fields": {change["field"]: change["new"] for change in pool["changes"]},
    }
    replaced = [["fields", change["field"]] for change in pool["changes"] if change["kind"] == "replace"]
    change: dict[str, object] = {
        "actions": ["create", "delete"] if _is_surge(pool) else _ACTIONS[action],
        "before": before if there else None,
        "after": after if declared else None,
        "after_unknown": {},
        "before_sensitive": {},
        "after_sensitive": {},
        **({"replace_paths": replaced} if action == "replace" and replaced else {}),
        **({"importing": {"id": pool["name"]}} if action == "adopt" else {}),
    }
    reasons = {"replace": "replace_because_cannot_update", "delete": "delete_because_no_resource_config"}
    name = resource_name(f"{cluster['cluster']}_{pool['name']}")
    return {
        **_resource("gpukube_pool", name),
        "provider_name": _OWN,
        "change": change,
        **({"action_reason": reasons[action]} if action in reasons else {}),
    }


def _described(one: PoolPart | LiveState, nodes: NodeRange | None) -> dict[str, object]:
    """Describe a pool; a document from an older gpukube contains less of the live one."""
    zones = one.get("zones", [])
    return {"instance_type": one.get("instanceType"), "gpu": one.get("gpu"), "nodes": nodes, "zones": zones}


def _release_change(cluster: ClusterPart, release: Release) -> dict[str, object]:
    common = {"cluster": cluster["cluster"], "name": release["name"], "namespace": release["namespace"]}
    common |= {"chart": release["chart"], "version": release["version"]}
    before = {**common, "values": {change["path"]: change["old"] for change in release["changes"]}}
    after = {**common, "values": {change["path"]: change["new"] for change in release["changes"]}}
    change = {
        "actions": _RELEASE_ACTIONS[release["action"]],
        "before": None if release["action"] == "install" else before,
        "after": after,
        "after_unknown": {},
        "before_sensitive": {},
        "after_sensitive": {},
    }
    second = "" if release == cluster["release"] else "-dra"
    name = resource_name(f"{cluster['cluster']}{second}")
    return {**_resource("gpukube_release", name), "provider_name": _OWN, "change": change}
