"""Who we are and what we may do, and the tools of this machine."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR
from gpukube.doctor.check import examine
from gpukube.doctor.checks import access, tools
from gpukube.doctor.checks.tools import access_command
from gpukube.doctor.local_tools import Tools, look_at_tools
from gpukube.doctor.rights import Right, check_rights, rights_for
from gpukube.engine.change.release import NEEDED
from gpukube.errors import (
    AccessError,
    CloudError,
    ClusterError,
    GpukubeError,
    MissingExtra,
    NoCluster,
    NotAllowed,
    WrongAccount,
)
from gpukube.gpu.sharing import MigCut, Sharing
from tests.unit.cluster.builders import claimed
from tests.unit.doctor.live_pools import CLUSTERS, evidence_of
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.kube.client import Kube
    from gpukube.doctor.check import Found
    from gpukube.doctor.evidence import Evidence

CHECKS = (*tools.CHECKS, *access.CHECKS)
POOL = desired_of(eks_target("g4dn.xlarge"))
CUT = desired_of(eks_target("p4d.24xlarge", sharing=Sharing(MigCut("1g.5gb", "single"))))
HELM = "helm v3.17.0 on PATH"
DENIED = Right("create", "daemonsets", "apps", "gpukube-system", "the chart is installed")


def found_in(evidence: Evidence) -> list[Found]:
    return list(examine(evidence, CHECKS).found)


def refusal(kind: type[GpukubeError], code: str) -> GpukubeError:
    return kind("refused", where="train-eks", fix="do this", why="because", code=code)


def troubled(reading: str, kind: type[GpukubeError], code: str) -> Evidence:
    return evidence_of("eks", troubles={reading: refusal(kind, code)})


def equipped(*, needed: bool = False, **changes: object) -> Evidence:
    """A cluster seen from a machine with these tools."""
    have = replace(Tools(HELM, "/usr/bin/helm"), **changes)  # type: ignore[arg-type]  # test data
    return evidence_of("eks", tools=have, desired=(POOL,) if needed else ())


NO_HELM = MissingExtra("no Helm", fix="install it", code="missing-helm")
HEALTHY = {
    "nothing looked at": evidence_of("eks"),
    "a good Helm": equipped(driver="secret"),
    "the first Helm with labels": equipped(helm="helm v3.13.0 on PATH"),
    "a newer Helm": equipped(helm="helm v4.0.1 on PATH"),
    "the embedded Helm alone": equipped(helm="embedded Helm v4.0.0", program=""),
    "all rights": evidence_of("eks", desired=(POOL,)),
}
ILL: dict[str, tuple[Evidence, str, str]] = {
    "no credentials": (troubled("cloud", AccessError, "no-credentials"), "cloud-credentials", "error"),
    "expired credentials": (troubled("cloud", AccessError, "access"), "cloud-credentials", "error"),
    "another account": (troubled("cloud", WrongAccount, "account"), "cloud-identity", "error"),
    "another subscription": (troubled("cloud", WrongAccount, "subscription"), "cloud-identity", "error"),
    "another project": (troubled("cloud", WrongAccount, "project"), "cloud-identity", "error"),
    "no permission to list pools": (troubled("pools", NotAllowed, "permission"), "cloud-permission", "error"),
    "no such cluster": (troubled("cloud", NoCluster, "no-cluster"), "cloud-no-cluster", "error"),
    "an Autopilot cluster": (troubled("cloud", NoCluster, "autopilot"), "cloud-no-cluster", "error"),
    "a cloud that is silent": (troubled("cloud", CloudError, "unreachable"), "cloud-unreachable", "error"),
    "a cluster that knows nobody": (troubled("nodes", AccessError, "kube-unauthorized"), "kube-access", "error"),
    "a cluster that is silent": (troubled("nodes", ClusterError, "cluster-unreachable"), "kube-unreachable", "error"),
    "no right to see Secrets": (troubled("releases", AccessError, "kube-forbidden"), "kube-blind-spot", "warning"),
    "no right to install": (evidence_of("eks", denied=(DENIED,)), "kube-rights", "error"),
    "no Helm": (equipped(helm="", program="", trouble=NO_HELM), "helm-missing", "warning"),
    "no Helm where one is needed": (
        equipped(helm="", program="", trouble=NO_HELM, needed=True),
        "helm-missing",
        "error",
    ),
    "another helm": (equipped(helm="embedded Helm v4.0.0"), "helm-other", "warning"),
    "a Helm without labels": (equipped(helm="helm v3.12.3 on PATH", needed=True), "helm-old", "warning"),
    "an ancient Helm": (equipped(helm="helm v3.5.4 on PATH", needed=True), "helm-old", "error"),
    "an ancient Helm that is not needed": (equipped(helm="helm v3.5.4 on PATH"), "helm-old", "warning"),
    "the oldest Helm that will do": (equipped(helm="helm v3.6.0 on PATH", needed=True), "helm-old", "warning"),
    "records elsewhere": (equipped(driver="configmap"), "helm-driver", "warning"),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_access_when_there_then_nothing_is_found(case: str) -> None:
    assert found_in(HEALTHY[case]) == []


@pytest.mark.parametrize("case", ILL)
def test_access_when_missing_then_exactly_that_is_found(case: str) -> None:
    evidence, check, severity = ILL[case]
    (found,) = found_in(evidence)
    assert (found.check.id, found.finding.severity) == (check, severity)
    assert found.finding.fix
    assert found.finding.why


def test_checks_when_listed_then_each_has_a_case() -> None:
    cases = {check for _, check, _ in ILL.values()} | {"kubeconfig-command"}
    assert {check.id for check in CHECKS} == cases, "each check of CHECKS needs a case in ILL"


def test_cluster_when_the_cloud_itself_refuses_then_it_is_told_once() -> None:
    error = refusal(AccessError, "access")
    (found,) = found_in(evidence_of("eks", troubles={"cloud": error, "pools": error, "nodes": error}))
    assert found.check.id == "cloud-credentials"
    assert found.finding.evidence[0] == "eks train: account=111122223333, region=us-east-1"


def test_cluster_when_it_has_a_kubeconfig_of_its_own_then_both_refusals_are_told() -> None:
    error = refusal(AccessError, "access")
    evidence = evidence_of("eks", troubles={"cloud": error, "nodes": error})
    evidence = replace(evidence, cluster=replace(evidence.cluster, kubeconfig="/nowhere"))
    assert [item.check.id for item in found_in(evidence)] == ["cloud-credentials", "kube-access"]


def test_rights_when_missing_then_the_question_can_be_asked_again_by_hand() -> None:
    (found,) = found_in(evidence_of("eks", denied=(DENIED, replace(DENIED, resource="secrets", group=""))))
    assert found.finding.seen == "not allowed: create daemonsets, create secrets"
    assert "kubectl auth can-i create daemonsets.apps --namespace gpukube-system" in found.finding.fix


@pytest.mark.parametrize(("left", "severity"), [(0, "warning"), (1, "error")])
def test_rights_when_there_are_none_at_all_then_the_identity_is_one_that_reads(left: int, severity: str) -> None:
    denied = rights_for((POOL,))[left:]
    found = found_in(evidence_of("eks", desired=(POOL,), denied=denied))
    assert {(item.check.id, item.finding.severity) for item in found} == {("kube-rights", severity)}


def test_rights_when_the_reviews_are_refused_then_the_check_is_not_made() -> None:
    evidence = evidence_of("eks", troubles={"rights": refusal(AccessError, "kube-forbidden")})
    examination = examine(evidence, access.CHECKS)
    assert [item.check.id for item in examination.skipped] == ["kube-rights"]


def test_rights_when_nothing_is_declared_then_none_are_needed() -> None:
    assert rights_for(()) == ()


def test_rights_when_the_operator_is_the_release_then_those_of_its_chart() -> None:
    plain, operated = rights_for((POOL,)), rights_for((CUT,))
    assert len(plain) == len(NEEDED[DEVICE_PLUGIN]) + 1
    assert len(operated) == len(NEEDED[GPU_OPERATOR]) + 1
    assert {right.resource for right in rights_for((claimed(),))} >= {"deviceclasses", "validatingadmissionpolicies"}
    assert plain[0].resource == "nodes"
    assert DEVICE_PLUGIN.title in plain[1].purpose


class AskedKube:
    """A cluster that allows reading only, or refuses to be asked."""

    def __init__(self, error: GpukubeError | None = None) -> None:
        self._error = error

    def may(self, verb: str, resource: str, *, group: str = "", namespace: str = "") -> bool:
        del resource, group, namespace
        if self._error:
            raise self._error
        return verb != "create"


def asked(error: GpukubeError | None = None) -> Kube:
    return AskedKube(error)  # type: ignore[return-value]  # the one call that is made


def test_rights_when_asked_then_those_that_are_missing() -> None:
    rights = rights_for((POOL,))
    assert check_rights(asked(), rights) == rights[1:]


def test_rights_when_the_answer_is_an_error_then_it_is_raised() -> None:
    with pytest.raises(ClusterError):
        check_rights(asked(ClusterError("no answer")), rights_for((POOL,)))


def helm_in(folder: Path, message: str) -> dict[str, str]:
    """Put a command called helm on PATH."""
    program = folder / "helm"
    program.write_text(f"#!/bin/sh\necho '{message}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": str(folder), "HELM_DRIVER": "sql"}


def test_tools_when_helm_is_on_path_then_it_is_named_with_its_version(tmp_path: Path) -> None:
    have = look_at_tools(helm_in(tmp_path, "v3.17.3"))
    assert (have.helm, have.program, have.driver) == ("helm v3.17.3 on PATH", str(tmp_path / "helm"), "sql")


def test_tools_when_helm_is_something_else_then_the_embedded_one_is_told_or_none(tmp_path: Path) -> None:
    have = look_at_tools(helm_in(tmp_path, "an editor"))
    assert not have.helm.endswith("on PATH")
    assert bool(have.helm) != bool(have.trouble)


def test_tools_when_there_is_no_helm_at_all_then_the_trouble_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "helm_python", None)
    have = look_at_tools({"PATH": str(tmp_path)})
    assert (have.helm, have.program) == ("", "")
    assert have.trouble is not None
    assert have.trouble.diagnostics[0].code == "missing-helm"


def kubeconfig(folder: Path, user: dict[str, object]) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1"}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_kubeconfig_when_its_command_is_missing_then_it_is_found(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, {"exec": {"command": "kubelogin", "apiVersion": "client.authentication.k8s.io/v1"}})
    cluster = replace(CLUSTERS["aks"], kubeconfig=file)
    evidence = replace(equipped(path=str(tmp_path)), cluster=cluster)
    (found,) = found_in(evidence)
    assert (found.check.id, "kubelogin" in found.finding.seen) == ("kubeconfig-command", True)
    (tmp_path / "kubelogin").write_text("#!/bin/sh\n")
    (tmp_path / "kubelogin").chmod(0o755)
    assert found_in(evidence) == []


def test_kubeconfig_when_it_runs_nothing_or_cannot_be_read_then_nothing_is_found(tmp_path: Path) -> None:
    plain = replace(CLUSTERS["aks"], kubeconfig=kubeconfig(tmp_path, {"token": "t"}))
    assert access_command(plain) == ""
    assert access_command(replace(plain, kubeconfig=str(tmp_path / "none"))) == ""
    assert access_command(CLUSTERS["aks"]) == ""
