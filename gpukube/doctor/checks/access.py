"""Checks of identity and permissions: in the cloud, and in the Kubernetes API.

In scope: pure checks of failed readings and missing rights. Out of scope: the requests (gather, rights).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.faults import fault
from gpukube.core.permissions import PRINT_POLICY
from gpukube.doctor.check import Check, Checks
from gpukube.doctor.rights import rights_for
from gpukube.errors import AccessError, ClusterError, GpukubeError, NoCluster, NotAllowed, WrongAccount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence, Reading
    from gpukube.errors import Severity

_CLOUD: Final[tuple[Reading, ...]] = ("cloud", "pools")
_CORE_READING: Final[Reading] = "nodes"
"""Reading without which a cluster's API counts as unreachable."""

CHECKS: Final = Checks(needs=())


def _refused_by_cloud(
    evidence: Evidence, kind: type[GpukubeError], *, other_than: tuple[type[GpukubeError], ...] = ()
) -> Iterator[Fault]:
    """Yield the cloud's first refusal, if it is of this class; other checks report classes in `other_than`."""
    error = next((evidence.troubles[name] for name in _CLOUD if name in evidence.troubles), None)
    if isinstance(error, kind) and not isinstance(error, other_than):
        refusal, cluster = error.diagnostics[0], evidence.cluster
        identity = ", ".join(f"{name}={value}" for name, value in cluster.identity.items())
        yield fault(
            where=f"cluster {cluster.key}",
            seen=refusal.seen,
            fix=refusal.fix,
            evidence=tuple(line for line in (f"{cluster.provider} {cluster.name}: {identity}", refusal.why) if line),
        )


def _refused_inside(evidence: Evidence, kind: type[GpukubeError]) -> Iterator[Fault]:
    """Yield why the Kubernetes API could not be read at all, if the error is of this class.

    If the cluster is accessed through the cloud's login and the cloud refuses that, only the cloud's check reports it.
    """
    error, cloud = evidence.troubles.get(_CORE_READING), evidence.troubles.get("cloud")
    if isinstance(error, kind) and (cloud is None or evidence.cluster.kubeconfig):
        refusal = error.diagnostics[0]
        yield fault(
            where=f"Kubernetes API of cluster {evidence.cluster.key}",
            seen=refusal.seen,
            fix=refusal.fix,
            evidence=tuple(line for line in (str(refusal.where), refusal.why) if line),
        )


CHECKS.extend((
    Check("cloud-credentials", "missing, expired or refused credentials",
        "nothing in this cloud can be read or changed",
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/",
        find=partial(_refused_by_cloud, kind=AccessError, other_than=(WrongAccount, NotAllowed))),
    Check("cloud-identity", "another account, subscription or project than the spec names",
        "pools would be created in the wrong place, so gpukube stops",
        "https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html",
        find=partial(_refused_by_cloud, kind=WrongAccount)),
    Check("cloud-permission", "missing cloud permissions",
        "pools cannot be read or changed",
        "https://docs.aws.amazon.com/eks/latest/userguide/security-iam.html",
        find=partial(_refused_by_cloud, kind=NotAllowed)),
    Check("cloud-no-cluster", "clusters that do not exist or cannot have node pools",
        "the spec's pools cannot be created",
        "https://kubernetes.io/docs/concepts/architecture/",
        find=partial(_refused_by_cloud, kind=NoCluster)),
    Check("cloud-unreachable", "clouds that do not answer",
        "nothing in this cloud can be read or changed",
        "https://kubernetes.io/docs/concepts/architecture/",
        find=partial(_refused_by_cloud, kind=GpukubeError, other_than=(AccessError, NoCluster))),
    Check("kube-access", "clusters that refuse access",
        "drivers, plugins and nodes cannot be examined, and the device plugin cannot be installed",
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/",
        find=partial(_refused_inside, kind=AccessError)),
    Check("kube-unreachable", "clusters whose API does not answer",
        "drivers, plugins and nodes cannot be examined, and the device plugin cannot be installed",
        "https://kubernetes.io/docs/tasks/debug/debug-cluster/",
        find=partial(_refused_inside, kind=ClusterError)),
))  # fmt: skip


@CHECKS.add(
    "kube-blind-spot",
    title="parts of a cluster that your identity may not read",
    consequence="the checks that need them are skipped",
    link="https://kubernetes.io/docs/reference/access-authn-authz/rbac/",
    severity="warning",
)
def _unreadable_parts(evidence: Evidence) -> Iterator[Fault]:
    if _CORE_READING in evidence.troubles:
        return
    for reading, error in evidence.troubles.items():
        if reading not in _CLOUD and isinstance(error, AccessError):
            refusal = error.diagnostics[0]
            yield fault(
                where=f"Kubernetes API of cluster {evidence.cluster.key}",
                seen=f"cannot read {reading}: {refusal.seen}",
                fix=refusal.fix,
                evidence=(refusal.why,) if refusal.why else (),
            )


@CHECKS.add(
    "kube-rights",
    title="missing permissions to install the device plugin",
    consequence="pool create and apply stop before they change anything",
    link="https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access",
    needs=("rights",),
)
def _rights(evidence: Evidence) -> Iterator[Fault]:
    # An identity with none of these rights is a read-only one, such as a plan pipeline's: that is not a problem.
    only_reads = bool(evidence.denied) and {*rights_for(evidence.desired)} == {*evidence.denied}
    severity: Severity = "warning" if only_reads else "error"
    for purpose in dict.fromkeys(right.purpose for right in evidence.denied):
        missing = [right for right in evidence.denied if right.purpose == purpose]
        yield fault(
            where=f"Kubernetes API of cluster {evidence.cluster.key}",
            seen=f"not allowed: {', '.join(f'{right.verb} {right.resource}' for right in missing)}",
            fix=f"request a role that allows it: {PRINT_POLICY} prints one; to check: kubectl auth can-i {missing[0]}",
            evidence=(purpose,),
            severity=severity,
        )
