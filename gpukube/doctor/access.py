"""Checks of who we are and what we may do: in the cloud, and inside the cluster.

Lives here: pure checks of what could not be read, and of rights that were asked for. Must not live here: asking
(gather, rights).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.faults import fault
from gpukube.doctor.check import Check
from gpukube.errors import AccessError, ClusterError, GpukubeError, NoCluster, NotAllowed, WrongAccount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence, Reading

_CLOUD: Final[tuple[Reading, ...]] = ("cloud", "pools")
_HEART: Final[Reading] = "nodes"
"""The reading without which the inside of a cluster counts as not reached."""


def _asked_cloud(
    wanted: type[GpukubeError], other_than: tuple[type[GpukubeError], ...] = ()
) -> Callable[[Evidence], Iterator[Fault]]:
    """Make a check of the first refusal of the cloud, by its class; those of `other_than` are left to other checks."""

    def find(evidence: Evidence) -> Iterator[Fault]:
        error = next((evidence.troubles[name] for name in _CLOUD if name in evidence.troubles), None)
        if isinstance(error, wanted) and not isinstance(error, other_than):
            yield _told(evidence, error)

    return find


def _told(evidence: Evidence, error: GpukubeError) -> Fault:
    told, cluster = error.diagnostics[0], evidence.cluster
    asked = ", ".join(f"{name}={value}" for name, value in cluster.identity.items())
    return fault(
        where=f"cluster {cluster.key}",
        seen=told.seen,
        fix=told.fix,
        evidence=tuple(line for line in (f"{cluster.provider} {cluster.name}: {asked}", told.why) if line),
    )


def _inside(wanted: type[GpukubeError]) -> Callable[[Evidence], Iterator[Fault]]:
    """Make a check of why the inside of the cluster could not be read at all.

    Where the way in is the cloud's own and the cloud refuses us, that is told once, by the cloud's check.
    """

    def find(evidence: Evidence) -> Iterator[Fault]:
        error, cloud = evidence.troubles.get(_HEART), evidence.troubles.get("cloud")
        if isinstance(error, wanted) and (cloud is None or evidence.cluster.kubeconfig):
            told = error.diagnostics[0]
            yield fault(
                where=f"the inside of cluster {evidence.cluster.key}",
                seen=told.seen,
                fix=told.fix,
                evidence=tuple(line for line in (str(told.where), told.why) if line),
            )

    return find


def _blind_spots(evidence: Evidence) -> Iterator[Fault]:
    if _HEART in evidence.troubles:
        return
    for reading, error in evidence.troubles.items():
        if reading not in _CLOUD and isinstance(error, AccessError):
            told = error.diagnostics[0]
            yield fault(
                where=f"the inside of cluster {evidence.cluster.key}",
                seen=f"{reading} cannot be read: {told.seen}",
                fix=told.fix,
                evidence=(told.why,) if told.why else (),
                severity="warning",
            )


def _rights(evidence: Evidence) -> Iterator[Fault]:
    for purpose in dict.fromkeys(right.purpose for right in evidence.denied):
        missing = [right for right in evidence.denied if right.purpose == purpose]
        yield fault(
            where=f"the inside of cluster {evidence.cluster.key}",
            seen=f"not allowed: {', '.join(f'{right.verb} {right.resource}' for right in missing)}",
            fix="ask for a role that allows it (on AKS: Azure Kubernetes Service RBAC Cluster Admin); to ask again: "
            f"kubectl auth can-i {missing[0]}",
            evidence=(purpose,),
        )


CHECKS: Final = (
    Check(
        "cloud-credentials",
        "credentials that are missing, expired or refused",
        "nothing of this cloud can be seen or changed",
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/",
        _asked_cloud(AccessError, other_than=(WrongAccount, NotAllowed)),
        needs=(),
    ),
    Check(
        "cloud-identity",
        "another account, subscription or project than the spec names",
        "pools would be made where they are not meant to be, so nothing is done",
        "https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html",
        _asked_cloud(WrongAccount),
        needs=(),
    ),
    Check(
        "cloud-permission",
        "permissions that the cloud does not give us",
        "pools cannot be seen, or not be changed",
        "https://docs.aws.amazon.com/eks/latest/userguide/security-iam.html",
        _asked_cloud(NotAllowed),
        needs=(),
    ),
    Check(
        "cloud-no-cluster",
        "clusters that are not there or take no pools",
        "the spec's pools cannot be made",
        "https://kubernetes.io/docs/concepts/architecture/",
        _asked_cloud(NoCluster),
        needs=(),
    ),
    Check(
        "cloud-unreachable",
        "clouds that do not answer",
        "nothing of this cloud can be seen or changed",
        "https://kubernetes.io/docs/concepts/architecture/",
        _asked_cloud(GpukubeError, other_than=(AccessError, NoCluster)),
        needs=(),
    ),
    Check(
        "kube-access",
        "clusters that do not let us in",
        "drivers, plugins and nodes cannot be examined, and the device plugin cannot be installed",
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/",
        _inside(AccessError),
        needs=(),
    ),
    Check(
        "kube-unreachable",
        "clusters whose API does not answer",
        "drivers, plugins and nodes cannot be examined, and the device plugin cannot be installed",
        "https://kubernetes.io/docs/tasks/debug/debug-cluster/",
        _inside(ClusterError),
        needs=(),
    ),
    Check(
        "kube-blind-spot",
        "parts of a cluster that we may not read",
        "the checks that need it are not made",
        "https://kubernetes.io/docs/reference/access-authn-authz/rbac/",
        _blind_spots,
        needs=(),
    ),
    Check(
        "kube-rights",
        "rights that installing the device plugin takes",
        "pool create and apply stop before they change anything",
        "https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access",
        _rights,
        needs=("rights",),
    ),
)
