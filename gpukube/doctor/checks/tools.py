"""Checks of this machine's tools: Helm, and the command that a kubeconfig runs to sign in.

In scope: the checks. Out of scope: finding the tools (local_tools).
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import kind_of
from gpukube.core.faults import fault
from gpukube.core.jsontree import at
from gpukube.doctor.check import Checks
from gpukube.kubeconfig import KubeconfigError, read_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.core.values import ClusterRef
    from gpukube.doctor.evidence import Evidence

_FLOOR: Final = (3, 6)
"""Oldest Helm version that gpukube's command lines are tested with."""
_LABELS: Final = (3, 13)
"""First Helm version with upgrade --labels, by which a run whose answer was lost finds its own revision."""
_OWN_DRIVERS: Final = ("", "secret", "secrets")
"""Values of HELM_DRIVER that store releases in the default place (helm.sh: helm env)."""

CHECKS: Final = Checks(needs=())


def access_command(cluster: ClusterRef) -> str:
    """Return the command that the spec's kubeconfig runs to sign in; "" if it needs none or cannot be read."""
    if not cluster.kubeconfig:
        return ""
    try:
        user = read_kubeconfig(cluster.kubeconfig, cluster.context).user
    except KubeconfigError:
        return ""
    return str(at(user, "exec", "command") or "")


def _needs_helm(evidence: Evidence) -> bool:
    return any(kind_of(expected.ownership.advertiser) for expected in evidence.desired)


@CHECKS.add(
    "helm-missing",
    title="no usable Helm",
    consequence="the device plugin cannot be installed or changed from this machine",
    link="https://helm.sh/docs/intro/install/",
)
def _missing(evidence: Evidence) -> Iterator[Fault]:
    tools = evidence.tools
    if tools is not None and tools.trouble is not None:
        problem = tools.trouble.diagnostics[0]
        yield fault(
            where="this machine",
            seen=problem.seen,
            fix=problem.fix,
            evidence=(problem.why,) if problem.why else (),
            severity="error" if _needs_helm(evidence) else "warning",
        )


@CHECKS.add(
    "helm-other",
    title="a command called helm that is something else",
    consequence="gpukube does not use your Helm's repositories, plugins, and registry logins",
    link="https://helm.sh/docs/intro/install/",
    severity="warning",
)
def _other(evidence: Evidence) -> Iterator[Fault]:
    tools = evidence.tools
    if tools is not None and tools.helm and tools.program and not tools.helm.endswith("on PATH"):
        yield fault(
            where="this machine",
            seen=f"{tools.program} is not Helm 3 or 4; {tools.helm} is used",
            fix="put Helm before it on PATH (https://helm.sh/docs/intro/install) to use your plugins and logins",
        )


@CHECKS.add(
    "helm-old",
    title="an outdated Helm",
    consequence="installing the device plugin may fail",
    link="https://helm.sh/docs/topics/version_skew/",
)
def _old(evidence: Evidence) -> Iterator[Fault]:
    tools = evidence.tools
    found = re.search(r"v(\d+)\.(\d+)\.\d+", tools.helm) if tools else None
    if tools is None or found is None or (int(found[1]), int(found[2])) >= _LABELS:
        return
    too_old = (int(found[1]), int(found[2])) < _FLOOR
    yield fault(
        where="this machine",
        seen=f"{tools.helm} is older than {'.'.join(map(str, _FLOOR if too_old else _LABELS))}",
        fix="install a newer Helm: https://helm.sh/docs/intro/install",
        evidence=(tools.program,),
        severity="error" if too_old and _needs_helm(evidence) else "warning",
        why="" if too_old else "after a lost answer, a run cannot recognize its own revision",
    )


@CHECKS.add(
    "helm-driver",
    title="a Helm that stores its releases elsewhere",
    consequence="gpukube does not find manually installed releases and may install a second device plugin",
    link="https://helm.sh/docs/topics/advanced/#storage-backends",
    severity="warning",
)
def _driver(evidence: Evidence) -> Iterator[Fault]:
    tools = evidence.tools
    if tools is not None and tools.driver not in _OWN_DRIVERS:
        yield fault(
            where="this machine",
            seen=f"HELM_DRIVER={tools.driver}: your helm stores releases where gpukube does not look",
            fix="unset HELM_DRIVER for GPU charts; gpukube always stores its release in Secrets",
        )


@CHECKS.add(
    "kubeconfig-command",
    title="kubeconfig commands that are not installed",
    consequence="gpukube cannot sign in to the cluster",
    link="https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins",
)
def _plugin(evidence: Evidence) -> Iterator[Fault]:
    tools, command = evidence.tools, access_command(evidence.cluster)
    if tools is not None and command and shutil.which(command, path=tools.path) is None:
        yield fault(
            where=f"cluster {evidence.cluster.key}",
            seen=f"its kubeconfig runs {command}, which is not on PATH",
            fix=f"install {command.rsplit('/')[-1]}, or remove kubeconfig from the spec: gpukube then signs in with "
            "the cloud's login",
            evidence=(f"kubeconfig {evidence.cluster.kubeconfig}",),
        )
