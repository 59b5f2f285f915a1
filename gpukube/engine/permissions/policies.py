"""The policies that specs need, for all their clouds, built without any call.

In scope: collecting them, the document, the text of their files. Out of scope: their content (the providers'
`policies`, and `in_cluster`).
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

import yaml

from gpukube.core.permissions import ClusterPools, PolicyScope
from gpukube.engine.permissions.in_cluster import cluster_policy
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpukube.core.permissions import CloudPolicy, Extra, PolicyLevel
    from gpukube.engine.documents.shapes.permissions import PermissionPart, PermissionsDocument, PolicyPart
    from gpukube.engine.plan.prepare import Prepared


def describe_policies(
    prepared: Prepared, level: PolicyLevel, extras: Collection[Extra], directory: str = ""
) -> PermissionsDocument:
    """Return every policy needed for what gpukube does with these specs, and nothing more.

    Args:
        prepared: What the specs declare, or only addresses of clusters.
        level: plan for commands that only read, apply for those that also change something.
        extras: Additional commands.
        directory: Directory of the files; "" for none.
    """
    ordered = sorted(prepared.clusters.values(), key=lambda cluster: cluster.provider)
    found: list[PolicyPart] = []
    inside: list[PolicyPart] = []
    for name, group in groupby(ordered, key=lambda cluster: cluster.provider):
        clusters = tuple(ClusterPools(cluster, prepared.desired[cluster.key]) for cluster in group)
        scope = PolicyScope(level, frozenset(extras), clusters)
        provider = load_provider(name)
        found += [_part(name, policy) for policy in provider.extras.policies(scope)]
        inside += [
            _part("kubernetes", cluster_policy(item, scope, provider.extras.in_cluster.subject)) for item in clusters
        ]
    return {
        "schemaVersion": 1,
        "kind": "Permissions",
        "level": level,
        "extras": sorted(extras),
        "directory": directory,
        "policies": [*found, *inside],
    }


def file_text(name: str, documents: Sequence[Mapping[str, object]]) -> str:
    """Return the text of a policy file by its extension: JSON, or YAML with any number of documents."""
    if name.endswith(".json"):
        return json.dumps(documents[0], indent=2) + "\n"
    return yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=None, width=100)


def _part(cloud: str, policy: CloudPolicy) -> PolicyPart:
    rows: list[PermissionPart] = [
        {
            "name": row.name,
            "calls": list(row.calls),
            "purpose": row.purpose,
            "level": row.level,
            "when": row.when,
            "without": row.without,
            "source": row.source,
        }
        for row in policy.permissions
    ]
    return {
        "cloud": cloud,
        "place": policy.place,
        "title": policy.title,
        "clusters": list(policy.clusters),
        "file": policy.file,
        "documents": [dict(document) for document in policy.documents],
        "commands": list(policy.commands),
        "permissions": rows,
        "notes": list(policy.notes),
    }
