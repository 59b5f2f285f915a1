"""What `gpukube doctor --print-policy` prints, as sets, compared with what the sandbox has seen.

In scope: reading the printed documents as the clouds and Kubernetes read them, and both comparisons. Out of scope:
running anything (conftest, tests), the product's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpukube.engine import offline
from gpukube.engine.permissions.policies import describe_policies
from gpukube.engine.plan.prepare import prepare
from gpukube_sandbox.kube.store.rbac import Access, rule_covers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.permissions import PolicyLevel

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = Path(__file__).parent / "everything.yaml"
EXTRAS = ("alternatives", "capacity", "catalog", "live-prices", "probe", "upgrade")
Json = dict[str, Any]  # any document of a policy


@dataclass(frozen=True)
class Printed:
    """The policies of one level.

    Attributes:
        clouds: Names of the clouds' permissions.
        rules: Rules of Kubernetes, with the namespace of their Role; "" of a ClusterRole.
        objects: What `kubectl apply` makes of them, by cluster.
    """

    clouds: frozenset[str]
    rules: tuple[tuple[str, Json], ...]
    objects: tuple[tuple[str, Json], ...]

    def covers(self, used: str) -> bool:
        """Whether a permission that was used is allowed."""
        if is_of_kubernetes(used):
            access = _access(used)
            return any(rule_covers(rule, access) and _holds(place, access) for place, rule in self.rules)
        return any(fnmatchcase(used.lower(), name.lower()) for name in self.clouds)

    def singles(self) -> Iterator[tuple[str, Json]]:
        """Every single right of Kubernetes that is printed, with its namespace."""
        for place, rule in self.rules:
            for verb in rule.get("verbs", []):
                for group in rule.get("apiGroups", []):
                    for resource in rule.get("resources", []):
                        yield place, {"verbs": [verb], "apiGroups": [group], "resources": [resource]}

    def unused(self, used: Iterable[str]) -> list[str]:
        """What is printed, and was never used."""
        names = {name.lower() for name in used}
        found = [name for name in self.clouds if name.lower() not in names]
        accesses = [_access(name) for name in used if is_of_kubernetes(name)]
        for place, rule in self.singles():
            if rule["verbs"][0] in _GRANTING or "nonResourceURLs" in rule:
                continue
            if not any(rule_covers(rule, access) and _holds(place, access) for access in accesses):
                verb, group, resource = rule["verbs"][0], rule["apiGroups"][0], rule["resources"][0]
                found.append(f"{verb} {resource}{f'.{group}' if group else ''}{f' in {place}' if place else ''}")
        return sorted(set(found))


_GRANTING = ("bind", "escalate")
"""Verbs that no request has: the API server asks for them beside the right to write a Role or a binding."""
_OTHERS = frozenset({"default", "kube-system", "gmp-system"})
"""Namespaces that are not gpukube's in any spec."""


NOT_PRINTED = frozenset(
    {
        *("create namespaces", "create namespaces in dra", "create namespaces in gpu-operator"),
        "patch namespaces in gpukube-system",
        *("create jobs.batch in default", "delete jobs.batch in default", "get pods/log in default"),
        "list secrets",
    }
)
"""What is not printed on purpose: what gpukube does only where the release's namespace is missing, which the document
makes (it makes it itself, and probes in another); reading the Secrets of all namespaces, to look for releases of others
(--adopt-release); and what only the tests do that install the operator or the DRA driver by hand."""


def printed_for_all() -> Printed:
    """Put together what is printed for every spec of the tests here and of the examples."""
    specs = [SPEC, *sorted(EXAMPLES.glob("*.yaml"))]
    found = [printed("apply", *EXTRAS, spec=spec) for spec in specs if "kind: GPUNodePools" in spec.read_text()]
    clouds = frozenset().union(*(one.clouds for one in found))
    return Printed(clouds, tuple(rule for one in found for rule in one.rules), ())


def printed(level: PolicyLevel, *extras: str, spec: Path = SPEC) -> Printed:
    """Work out the policies of a spec, as the command does it."""
    document = describe_policies(prepare(offline.load([str(spec)])), level, extras)  # type: ignore[arg-type]
    clouds: set[str] = set()
    rules: list[tuple[str, Json]] = []
    objects: list[tuple[str, Json]] = []
    for policy in document["policies"]:
        for content in policy["documents"]:
            found: Json = dict(content)
            if "kind" in found and "apiVersion" in found:
                objects.append((policy["clusters"][0], found))
                place = found["metadata"].get("namespace", "")
                rules += [(place, rule) for rule in found.get("rules") or []]
            else:
                clouds.update(_names(found))
    return Printed(frozenset(clouds), tuple(rules), tuple(objects))


def _names(policy: Json) -> list[str]:
    """The permissions of a document as its cloud reads it."""
    if "Statement" in policy:
        return [name for statement in policy["Statement"] for name in statement["Action"]]
    return list(policy.get("Actions") or policy["includedPermissions"])


def is_of_kubernetes(permission: str) -> bool:
    """Whether the sandbox has written a permission of a Kubernetes API."""
    return " " in permission


def _access(text: str) -> Access:
    words, _, namespace = text.partition(" in ")
    verb, _, named = words.partition(" ")
    resource, _, group = named.partition(".")
    return Access(verb, resource, group, namespace)


def _holds(place: str, access: Access) -> bool:
    """Whether a rule of a Role holds where something was done: tests put the release into other namespaces, too."""
    return not place or access.namespace == place or bool(access.namespace and access.namespace not in _OTHERS)
