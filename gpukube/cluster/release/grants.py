"""Whether we may grant what a chart's own roles allow, asked before anything is written.

In scope: trying the rendered roles on the server, and naming the rights that are missing. Out of scope: what
gpukube's policy prints (engine.permissions).

Kubernetes lets nobody create a role that allows more than they may do themselves, and says so in a dry run too
(kubernetes pkg/registry/rbac/clusterrole/policybased/storage.go; the check is not one that an access review answers: it
knows RBAC alone). A binding asks for the same rights as its role, which a dry run leaves missing, so roles say it all.
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
"""As the API server writes a rule: {APIGroups:["apps"], Resources:["daemonsets"], Verbs:["list"]}
(kubernetes pkg/registry/rbac/validation/rule.go, ConfirmNoEscalation; pkg/apis/rbac/v1 CompactString)."""


def require_grants(kube: Kube, rendered: Sequence[Tree], former: Sequence[Tree], plan: ReleasePlan) -> None:
    """Try the roles that a release is about to get on the server; nothing is written.

    Args:
        kube: The cluster.
        rendered: Objects of the chart.
        former: Objects of the live release: a role that stays as it is grants nothing.
        plan: The release.

    Raises:
        AccessError: We may not grant what they allow; names each right that is missing.
        HelmError: The server refuses one for another reason.
        ClusterError: The cluster.
    """
    roles = [obj for obj in rendered if text(obj, "kind") in _ROLES and _key(obj) not in map(_key, former)]
    if not roles:
        return
    # Whoever has rights in our namespace alone has them there: a namespace that is missing leaves those of the cluster.
    placed = kube.namespace_labels(plan.namespace) is not None
    lacking: dict[str, None] = {}
    for role in roles:
        everywhere = text(role, "kind") == "ClusterRole" or not placed
        desired = (
            _as_cluster_role(role)
            if everywhere
            else {**role, "metadata": {"name": text(role, "metadata", "name"), "namespace": plan.namespace}}
        )
        said = kube.try_object(RELEASE_TYPES[text(desired, "kind")], desired)
        if not said:
            continue
        found = list(missing_rights(said, "" if everywhere else plan.namespace))
        if not found:
            raise HelmError(
                f"the cluster refuses {text(role, 'kind')} {text(role, 'metadata', 'name')} of the chart",
                where=plan.kind.address,
                why=said,
                fix="remove what keeps it away (an admission webhook, a right that is missing); then run again",
                code="kube-refused",
            )
        lacking |= dict.fromkeys(found)
    if lacking:
        raise AccessError(
            f"not allowed in the cluster: {', '.join(lacking)}",
            where=plan.kind.address,
            why=f"roles of {plan.kind.title} allow it, and Kubernetes refuses to let you grant it",
            fix=f"get a role that allows it: {PRINT_POLICY} prints one",
            code="kube-permissions",
        )


def missing_rights(said: str, namespace: str) -> Iterator[str]:
    """Read the rights that a refusal lists, as kubectl auth can-i takes them: "patch nodes/status".

    Args:
        said: What the API server says.
        namespace: Where they are needed; "" for everywhere.
    """
    place = f" in {namespace}" if namespace else ""
    for rule in _LACKS.finditer(said):
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
    """Try every object of a release on the server, over whatever is there; nothing is written.

    Bindings are left out: they name roles that a dry run does not make.

    Raises:
        HelmError: The server refuses one, by its name.
        AccessError, ClusterError: The cluster.
    """
    for obj in rendered:
        kind = RELEASE_TYPES.get(text(obj, "kind"))
        if kind is None or text(obj, "kind").endswith("Binding"):
            continue
        place = {"namespace": plan.namespace} if kind.namespaced else {}
        if said := kube.try_object(kind, {**obj, "metadata": {**place, **tree(obj, "metadata")}}):
            raise HelmError(
                f"the cluster refuses {kind.kind} {text(obj, 'metadata', 'name')} of the chart; nothing was removed",
                where=plan.kind.address,
                why=said,
                fix="remove what keeps it away (an admission webhook, a right that is missing); then run again",
                code="kube-refused",
            )
