"""The Kubernetes RBAC that gpukube and its Helm need inside a cluster.

In scope: the table, and the roles generated from it. Out of scope: the permissions of the charts' own roles
(`chart_roles`), how a cloud identity becomes a user of its clusters (`Extras.in_cluster`).

The verbs are those that `cluster.kube` calls, and those of Helm itself: its storage of releases in Secrets
(helm.sh/helm pkg/storage/driver/secrets.go), server-side apply, and waiting for hooks.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import ALL_KINDS, DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE, NAMESPACE_LABELS
from gpukube.core.permissions import EXTRAS, CloudPolicy, Permission
from gpukube.core.scaling_order import ClassOrder
from gpukube.engine.permissions.chart_roles import (
    DRA_EVERYWHERE,
    DRA_OURS,
    OPERATOR_EVERYWHERE,
    OPERATOR_OURS,
    PLUGIN_EVERYWHERE,
    PLUGIN_OURS,
    RoleRule,
)
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.core.in_cluster import KubeSubject
    from gpukube.core.permissions import ClusterPools, PolicyLevel, PolicyScope

_ADMISSION: Final = "admissionregistration.k8s.io"
_LEASES: Final = "coordination.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_API: Final = "docs: kubernetes.io/docs/reference/access-authn-authz/authorization, request verbs"
_HELM: Final = "helm.sh/helm pkg/storage/driver/secrets.go"
_CHARTS: Final = (
    "objects of the rendered charts nvidia-device-plugin 0.20.0, gpu-operator v26.7.0 and dra-driver-nvidia-gpu 0.4.1"
)
_EVICTION: Final = "docs: kubernetes.io/docs/concepts/scheduling-eviction/api-eviction"
_ESCALATION: Final = "docs: kubernetes.io/docs/reference/access-authn-authz/rbac, privilege escalation prevention"

_EXPANDER: Final = "kubernetes-sigs/cluster-autoscaler pkg/expander/priority/readme.md"
_CLASSES: Final = "docs: kubernetes-engine/concepts/about-custom-compute-classes"
SCALER_NAMESPACE: Final = "kube-system"
"""Namespace of an autoscaler, as the cloud or the usual chart installs it."""

_UNSAFE: Final = re.compile(r"[^\w.-]+")
"""Characters that file names should not contain: the key of a cluster given by address has some."""

PLUGIN: Final = "for pools with the device-plugin chart"
OPERATOR: Final = "for pools with the GPU Operator"
DRA: Final = "for pools with the DRA driver"
RELEASE: Final = "for pools with gpukube's Helm release"
CLAIMED_PROBE: Final = "with --probe, for pools with NVIDIA's DRA driver"

MAPPED: Final = "for autoscaled pools with alternatives, on EKS and AKS"
CLASSED: Final = "for autoscaled pools with alternatives, on GKE"


@dataclass(frozen=True, slots=True)
class KubeRule:
    """One rule, and why it is needed; the other attributes are those of Permission.

    Attributes:
        rule: What it allows.
        ours: Whether it applies only to gpukube's namespace instead of the whole cluster.
        place: The one namespace to which it applies instead; "" for none.
    """

    rule: RoleRule
    purpose: str
    source: str = _API
    _: KW_ONLY
    ours: bool = False
    place: str = ""
    level: PolicyLevel = "plan"
    when: str = ""
    without: str = ""


_COMPARE: Final = "to compare the objects of gpukube's release with the installed ones"
_INSTALL: Final = "to install, change, and remove the chart"
_OWNERS: Final = "to name the workloads whose pods a drain moves, and to see that the pods are recreated"
_FIRST: Final = "of an autoscaled pool with alternatives, only the first is created"
_UNREAD: Final = "the plan lists what it could not read"

_references = partial(KubeRule, purpose="to find references to a pool that is replaced", without=_UNREAD)
_here = partial(KubeRule, ours=True)  # in gpukube's own namespace
_release = partial(KubeRule, source=_CHARTS, level="apply", when=RELEASE)
_release_here = partial(_release, ours=True)
_map = partial(KubeRule, place=SCALER_NAMESPACE, source=_EXPANDER, when=MAPPED)
_class = partial(KubeRule, source=_CLASSES, when=CLASSED)

RULES: Final = (
    KubeRule(RoleRule("list", "nodes"), "to compare nodes with their pools"),
    KubeRule(RoleRule("list", "daemonsets deployments", "apps"),
        "to find drivers and device plugins, including those not installed by gpukube"),
    KubeRule(RoleRule("list", "pods"),
        "to find the pods of nodes that are replaced or drained, and pods that wait for GPUs"),
    KubeRule(RoleRule("list", "clusterpolicies", "nvidia.com"), "to find a GPU Operator"),
    KubeRule(RoleRule("list", "deviceclasses resourceslices", "resource.k8s.io"),
        "to find DRA drivers that hand out the same GPUs, and to count their devices"),
    KubeRule(RoleRule("list", "resourceclaims resourceclaimtemplates", "resource.k8s.io"),
        "to find pods whose claims stay pending, and the holders of devices",
        without="the doctor skips these checks, pool list does not show which devices are in use, and on clusters with "
        "DRA pool map shows no nodes and gpukube workload fit fails"),
    KubeRule(RoleRule("get list", "deviceclasses", "resource.k8s.io"), _COMPARE),
    KubeRule(RoleRule("get list", "validatingadmissionpolicies validatingadmissionpolicybindings", _ADMISSION),
        _COMPARE),
    KubeRule(RoleRule("get list", "clusterroles clusterrolebindings", _RBAC), _COMPARE),
    KubeRule(RoleRule("list", "poddisruptionbudgets", "policy"),
        "to find pods that cannot leave nodes that are replaced or drained"),
    _references(RoleRule("list", "statefulsets", "apps")),
    KubeRule(RoleRule("list", "replicasets", "apps"), _OWNERS, without=f"{_UNREAD}, and nothing is drained"),
    KubeRule(RoleRule("list", "replicationcontrollers"), _OWNERS, without=f"{_UNREAD}, and their pods are not drained"),
    _references(RoleRule("list", "jobs cronjobs", "batch")),
    _references(RoleRule("list", "jobsets", "jobset.x-k8s.io")),
    _references(RoleRule("list", "rayclusters", "ray.io")),
    _references(RoleRule("list", "resourceflavors", "kueue.x-k8s.io")),
    KubeRule(RoleRule("list", "resourcequotas"), "to find quotas that block GPU pods",
        without="the doctor skips its quota checks"),
    KubeRule(RoleRule("list", "runtimeclasses", "node.k8s.io"),
        "to check that the RuntimeClasses that the stack's pods name exist", without="the doctor skips that check"),
    KubeRule(RoleRule("list", "events"), "to find why pods of a plugin are not created, or GPU pods do not start",
        without="the doctor does not report the reason"),
    KubeRule(RoleRule("list", "namespaces"),
        "to see which namespaces pods may select: gpukube workload fit on live clusters",
        without="only that command fails"),
    _here(RoleRule("get", "namespaces"), "to find gpukube's namespace and its labels"),
    _here(RoleRule("list", "secrets"), "to read the state of gpukube's release, which Helm stores there", source=_HELM),
    _here(RoleRule("get list", "configmaps serviceaccounts resourcequotas pods"), _COMPARE),
    _here(RoleRule("get list", "daemonsets deployments", "apps"), _COMPARE),
    _here(RoleRule("get list", "roles rolebindings", _RBAC), _COMPARE),
    KubeRule(RoleRule("get patch", "nodes"), "to restore labels that nodes have lost, and to cordon nodes",
        level="apply"),
    KubeRule(RoleRule("create", "pods/eviction"), "to drain nodes: pool drain, delete, --replace surge",
        source=_EVICTION, level="apply"),
    _release_here(RoleRule("get create update delete", "secrets"),
        "to record the release, which Helm stores there", source=_HELM),
    _release_here(RoleRule("create patch delete", "configmaps serviceaccounts"), _INSTALL),
    _release_here(RoleRule("watch", "serviceaccounts"), "to wait for the service accounts of the charts' own jobs"),
    _release_here(RoleRule("create patch delete", "daemonsets deployments", "apps"),
        "to install, change, and remove the chart, and to restart the plugin"),
    _release_here(RoleRule("create patch delete", "roles rolebindings", _RBAC), _INSTALL),
    _release(RoleRule("create patch delete watch", "clusterroles clusterrolebindings", _RBAC),
        "to install, change, and remove the chart; these roles cannot allow more than these rules",
        source=f"{_CHARTS}; {_ESCALATION}"),
    _release(RoleRule("get list watch create patch", "customresourcedefinitions", "apiextensions.k8s.io"),
        "to install the custom resources of node-feature-discovery, the GPU Operator and the DRA driver"),
    _release_here(RoleRule("get list watch create patch delete", "jobs", "batch"),
        "to run the charts' own cleanup and upgrade jobs, and to wait for them"),
    _here(RoleRule("create patch delete", "resourcequotas"),
        "to allow the operator's critical pods in its namespace on GKE",
        source="docs: NVIDIA/cloud-native-docs, gpu-operator/google-gke (quota)", level="apply", when=OPERATOR),
    KubeRule(RoleRule("get create patch delete", "clusterpolicies", "nvidia.com"),
        "to configure the GPU Operator", source=_CHARTS, level="apply", when=OPERATOR),
    KubeRule(RoleRule("create patch delete", "deviceclasses", "resource.k8s.io"),
        "to create the classes by which pods claim GPUs", source=_CHARTS, level="apply", when=DRA),
    KubeRule(RoleRule("create patch delete", "validatingadmissionpolicies validatingadmissionpolicybindings",
        _ADMISSION), "to limit each node's driver to the devices of its node", source=_CHARTS, level="apply", when=DRA),
    _here(RoleRule("list create delete", "jobs", "batch"), "to run a probe and delete it", when=EXTRAS["probe"]),
    _here(RoleRule("get", "pods/log"), "to read the output of a probe", when=EXTRAS["probe"]),
    _here(RoleRule("create delete", "resourceclaimtemplates", "resource.k8s.io"), "to give a probe one device",
        when=CLAIMED_PROBE),
    _here(RoleRule("get", "resourceclaims", "resource.k8s.io"), "to compare its device with what the probe sees",
        when=CLAIMED_PROBE),
    _here(RoleRule("get", "leases", _LEASES), "to read which run gets a pool's nodes, and what its alternatives said",
        when=EXTRAS["alternatives"]),
    _here(RoleRule("create patch", "leases", _LEASES), "to let one run at a time get a pool's nodes, and to go on",
        level="apply", when=EXTRAS["alternatives"]),
    _map(RoleRule("get", "configmaps"), "to read the order of alternatives that an autoscaler has; where it runs in "
        "another namespace, the same there", without=_FIRST),
    _map(RoleRule("create patch", "configmaps"), "to tell an autoscaler the order of alternatives", level="apply"),
    _class(RoleRule("get list", "computeclasses", "cloud.google.com"), "to read the order of alternatives on GKE",
        without=_FIRST),
    _class(RoleRule("create patch delete", "computeclasses", "cloud.google.com"),
        "to tell GKE's autoscaler the order of alternatives", level="apply"),
)  # fmt: skip


def _chart_rows(rules: Iterable[RoleRule], title: str, when: str, *, ours: bool) -> Iterator[KubeRule]:
    for rule in rules:
        purpose, source = f"the roles that {title} creates allow the same", f"{_CHARTS}; {_ESCALATION}"
        yield KubeRule(rule, purpose, source, ours=ours, level="apply", when=when)


TABLE: Final = (
    *RULES,
    *_chart_rows(PLUGIN_EVERYWHERE, DEVICE_PLUGIN.title, PLUGIN, ours=False),
    *_chart_rows(PLUGIN_OURS, DEVICE_PLUGIN.title, PLUGIN, ours=True),
    *_chart_rows(OPERATOR_EVERYWHERE, GPU_OPERATOR.title, OPERATOR, ours=False),
    *_chart_rows(OPERATOR_OURS, GPU_OPERATOR.title, OPERATOR, ours=True),
    *_chart_rows(DRA_EVERYWHERE, DRA_DRIVER.title, DRA, ours=False),
    *_chart_rows(DRA_OURS, DRA_DRIVER.title, DRA, ours=True),
)


def cluster_policy(item: ClusterPools, scope: PolicyScope, subject: KubeSubject) -> CloudPolicy:
    """Return the roles of one cluster, their bindings, and gpukube's namespace, which namespaced roles require."""
    rows = tuple(_chosen(item, scope))
    name, file = f"gpukube-{scope.level}", f"kubernetes-{_UNSAFE.sub('-', item.cluster.key)}-{scope.level}.yaml"
    everywhere, ours = ([row.rule for row in rows if row.ours is ours and not row.place] for ours in (False, True))
    placed = [row.rule for row in rows if row.place]
    words = {**item.cluster.identity, "name": item.cluster.name, "level": scope.level}
    who = {"kind": subject.kind, "name": subject.name.format_map(words), "apiGroup": _RBAC}
    there = {"name": name, "namespace": SCALER_NAMESPACE}
    namespace: dict[str, object] = {"name": NAMESPACE, "labels": dict(NAMESPACE_LABELS)}
    documents = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace},
        _role("ClusterRole", {"name": name}, everywhere),
        _binding("ClusterRole", {"name": name}, who),
        _role("Role", {"name": name, "namespace": NAMESPACE}, ours),
        _binding("Role", {"name": name, "namespace": NAMESPACE}, who),
        *((_role("Role", there, placed), _binding("Role", there, who)) if placed else ()),
    )
    return CloudPolicy(
        title=f"Kubernetes RBAC of cluster {item.cluster.key}",
        place=item.cluster.key,
        clusters=(item.cluster.key,),
        file=file,
        documents=documents,
        commands=(f"kubectl apply -f {file}", *(command.format_map(words) for command in subject.commands)),
        permissions=tuple(rule_permission(row) for row in rows),
        notes=tuple(_notes(item, scope, subject)),
    )


def _chosen(item: ClusterPools, scope: PolicyScope) -> Iterator[KubeRule]:
    served = [kind for kind in ALL_KINDS if any(kind.serves(pool.ownership) for pool in item.desired)]
    moves = "migrate-release" in scope.extras
    holding = {"", *(EXTRAS[extra] for extra in scope.extras)}
    holding |= {PLUGIN} if moves or DEVICE_PLUGIN in served else set()
    holding |= {OPERATOR} if moves or GPU_OPERATOR in served else set()
    holding |= {DRA} if DRA_DRIVER in served else set()
    holding |= {RELEASE} if holding & {PLUGIN, OPERATOR, DRA} else set()
    holding |= {CLAIMED_PROBE} if "probe" in scope.extras and DRA_DRIVER in served else set()
    members = [pool.target for pool in item.desired if pool.target.family]
    holding |= {EXTRAS["alternatives"]} if members else set()
    if "alternatives" in scope.extras or any(target.nodes.autoscaled for target in members):
        holding.add(CLASSED if isinstance(load_provider(item.cluster.provider).extras.order, ClassOrder) else MAPPED)
    for row in TABLE:
        if row.when in holding and (scope.level == "apply" or row.level == "plan"):
            yield row


def rule_permission(row: KubeRule) -> Permission:
    """Return a rule as a permission: verbs and resources, and each pair in the form of kubectl auth can-i."""
    rule, place = row.rule, NAMESPACE if row.ours else row.place
    where = f" in {place}" if place else ""
    kinds = [f"{resource}.{rule.group}" if rule.group else resource for resource in rule.resources.split()]
    return Permission(
        name=f"{', '.join(rule.verbs.split())} {', '.join(kinds)}{where}",
        calls=tuple(f"{verb} {kind}{where}" for verb in rule.verbs.split() for kind in kinds),
        purpose=row.purpose,
        source=row.source,
        level=row.level,
        when=row.when,
        without=row.without,
    )


def _role(kind: str, metadata: Mapping[str, str], rules: Sequence[RoleRule]) -> dict[str, object]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": [
            {
                "apiGroups": [group],
                "resources": list(resources),
                **({"resourceNames": list(names)} if names else {}),
                "verbs": list(verbs),
            }
            for (group, resources, names), verbs in _merged(rules)
        ],
    }


def _merged(rules: Sequence[RoleRule]) -> list[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], tuple[str, ...]]]:
    """Merge the verbs of each resource, then the resources of a group that have the same verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for rule in rules:
        for resource in rule.resources.split():
            verbs.setdefault((rule.group, resource, rule.names), set()).update(rule.verbs.split())
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), some in verbs.items():
        resources.setdefault((group, names, tuple(sorted(some))), []).append(resource)
    return sorted(((group, tuple(sorted(some)), names), found) for (group, names, found), some in resources.items())


def _binding(kind: str, metadata: Mapping[str, str], who: Mapping[str, str]) -> dict[str, object]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "subjects": [dict(who)],
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
    }


def _notes(item: ClusterPools, scope: PolicyScope, subject: KubeSubject) -> Iterator[str]:
    if subject.note:
        yield subject.note
    if scope.level != "apply":
        return
    if not item.desired:
        yield "no pool is declared here: permissions for gpukube's Helm release are not included"
    if versions := sorted({pool.target.chart_version for pool in item.desired if pool.target.chart_version}):
        yield (
            f"the rules for the charts' own roles match {', '.join(kind.version for kind in ALL_KINDS)}: "
            f"compare them with chart {', '.join(versions)}"
        )
    if any(GPU_OPERATOR.serves(pool.ownership) for pool in item.desired):
        yield "whoever installs the GPU Operator can do almost everything in the cluster, as its own role can"
