"""The custom roles of Google Cloud that specs need: one for a project, one for the nodes' service accounts.

In scope: which permissions apply, and where their roles are granted. Out of scope: the permissions themselves
(`facts.permissions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.core.permissions import CloudPolicy
from gpukube_gke.facts.permissions import FAMILY, GLOBAL, OPEN_ZONES, PERMISSIONS, REGIONAL, RESERVED
from gpukube_gke.pool.purchase import reserved_name
from gpukube_gke.pool.translate import needs_zone
from gpukube_gke.rules.quotas import ALL_REGIONS, BY_FAMILY, QUOTAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.permissions import ClusterPools, Permission, PolicyScope

_DEFAULT: Final = "PROJECT_NUMBER-compute@developer.gserviceaccount.com"
"""Service account of nodes whose pool sets none (docs: kubernetes-engine/docs/how-to/service-accounts)."""
_GRANT: Final = "--member IDENTITY --role projects/{project}/roles/{role}"
_DOMAIN: Final = ".iam.gserviceaccount.com"


def write_policies(scope: PolicyScope) -> tuple[CloudPolicy, ...]:
    """Return the roles of each project."""
    places = scope.by("project").items()
    return tuple(policy for place, clusters in places for policy in _policies(place, clusters, scope))


def _policies(project: str, clusters: Sequence[ClusterPools], scope: PolicyScope) -> Iterator[CloudPolicy]:
    chosen = scope.choose(PERMISSIONS, _circumstances(clusters))
    keys = tuple(item.cluster.key for item in clusters)
    role, file = f"gpukube_{scope.level}", f"gke-{project}-{scope.level}.yaml"
    made = f"gcloud iam roles create {{role}} --project {project} --file {{file}}"
    rows = tuple(row for row in chosen if row.scope == "project")
    yield CloudPolicy(
        title=f"custom role for project {project}",
        place=project,
        clusters=keys,
        file=file,
        documents=(_role(f"gpukube {scope.level}", rows),),
        commands=(
            made.format(role=role, file=file),
            f"gcloud projects add-iam-policy-binding {project} {_GRANT.format(project=project, role=role)}",
        ),
        permissions=rows,
        notes=tuple(_notes(clusters)),
    )
    nodes = tuple(row for row in chosen if row.scope == "nodes")
    if not nodes:
        return
    accounts = _accounts(clusters)
    role, file = f"{role}_nodes", f"gke-{project}-{scope.level}-nodes.yaml"
    grant = _GRANT.format(project=project, role=role)
    yield CloudPolicy(
        title=f"custom role for the nodes' service accounts, project {project}",
        place=project,
        clusters=keys,
        file=file,
        documents=(_role(f"gpukube {scope.level}, nodes", nodes),),
        commands=(
            made.format(role=role, file=file),
            *(f"gcloud iam service-accounts add-iam-policy-binding {account} {grant}" for account in accounts),
        ),
        permissions=nodes,
        notes=tuple(_account_notes(project, accounts)),
    )


def _role(title: str, rows: Sequence[Permission]) -> Mapping[str, object]:
    return {
        "title": title,
        "description": "What gpukube needs in Google Cloud; Kubernetes RBAC covers what it does inside clusters",
        "stage": "GA",
        "includedPermissions": sorted({row.name for row in rows}),
    }


def _circumstances(clusters: Sequence[ClusterPools]) -> set[str]:
    found = {OPEN_ZONES for item in clusters for pool in item.desired if needs_zone(pool)}
    found |= {RESERVED for item in clusters for pool in item.desired if reserved_name(pool.fields) != ("", "")}
    for item in clusters:
        for pool in item.desired:
            target = pool.target
            draws = QUOTAS.draws(item.cluster, item.cluster.identity["location"], target.machine, target.capacity)
            found |= {_kind(draw.quota.name) for draw in draws if not draw.quota.unread}
    return found


def _kind(quota: str) -> str:
    if quota == ALL_REGIONS:
        return GLOBAL
    return FAMILY if quota.startswith(BY_FAMILY) else REGIONAL


def _accounts(clusters: Sequence[ClusterPools]) -> list[str]:
    """List the nodes' service accounts; for clusters whose pools set none it is the project's default."""
    named = {
        str(at(pool.target.native, "config", "serviceAccount") or "default")
        for item in clusters
        for pool in item.desired
    }
    return sorted(_DEFAULT if account == "default" else account for account in named or {"default"})


def _notes(clusters: Sequence[ClusterPools]) -> Iterator[str]:
    yield "a custom role is granted on the project, so it applies to all of its clusters"
    yield "add container.clusters.connect for clusters with access through their DNS endpoint"
    if accounts := sorted({name for item in clusters if (name := item.cluster.identity.get("impersonate", ""))}):
        yield (
            f"grant it to {', '.join(accounts)}, which gpukube impersonates; the identity that runs gpukube needs only "
            "roles/iam.serviceAccountTokenCreator on it"
        )


def _account_notes(project: str, accounts: Sequence[str]) -> Iterator[str]:
    if _DEFAULT in accounts:
        yield (
            f"PROJECT_NUMBER: gcloud projects describe {project} --format 'value(projectNumber)'; or write "
            "gke.config.serviceAccount"
        )
    if foreign := [name for name in accounts if name.endswith(_DOMAIN) and not name.endswith(f"@{project}{_DOMAIN}")]:
        yield (
            f"grant roles/iam.serviceAccountUser on {', '.join(foreign)}: a custom role of {project} does not apply in "
            "another project"
        )
