"""Helm's words as our errors."""

from __future__ import annotations

import pytest

from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.cluster.names import RELEASE_KINDS, ReleaseKind
from gpukube.errors import (
    AccessError,
    ChartNotFound,
    ClusterError,
    Conflict,
    FieldConflict,
    GpukubeError,
    HelmError,
    HelmTimeout,
    Where,
)

WORDS = {"namespace": "ns", "name": "rel", "chart": "c", "version": "1", "source": "c --repo https://repo"}

SAID: dict[str, tuple[str, type[GpukubeError], str]] = {
    "bad token": (
        "kubernetes cluster unreachable: the server has asked for the client to provide credentials",
        AccessError,
        "kube-unauthorized",
    ),
    "rbac": (
        'Error: query: failed: secrets is forbidden: User "x" cannot list resource "secrets" in API group ""',
        AccessError,
        "kube-forbidden",
    ),
    "refused": (
        'kubernetes cluster unreachable: Get "https://127.0.0.1:1/version": dial tcp: connect: connection refused',
        ClusterError,
        "cluster-unreachable",
    ),
    "under way": (
        "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        Conflict,
        "release-busy",
    ),
    "lost race": (
        'create: failed to create: secrets "sh.helm.release.v1.rel.v2" already exists',
        Conflict,
        "release-moved",
    ),
    "name in use": ("Error: INSTALLATION FAILED: cannot re-use a name that is still in use", Conflict, "release-moved"),
    "edited by hand": (
        'Apply failed with 1 conflict: conflict with "kubectl-set" using apps/v1: .spec.template.spec.containers',
        FieldConflict,
        "helm-field-conflict",
    ),
    "owned by another": (
        'ClusterRole "x" exists and cannot be imported into the current release: invalid ownership metadata',
        HelmError,
        "helm-ownership",
    ),
    "no dependency": (
        "Error: found in Chart.yaml, but missing in charts/ directory: node-feature-discovery",
        HelmError,
        "chart-dependency",
    ),
    "no such version": (
        'Error: chart "nvidia-device-plugin" version "9.9" not found in https://repo repository',
        ChartNotFound,
        "no-chart-version",
    ),
    "no repository": (
        'looks like "http://127.0.0.1:1/x" is not a valid chart repository or cannot be reached: connection refused',
        HelmError,
        "chart-not-found",
    ),
    "no registry": (
        'failed to perform "FetchReference" on source: Get "https://127.0.0.1:1/v2/": connection refused',
        HelmError,
        "chart-not-found",
    ),
    "old templates": (
        "Error: template: c/t.yaml:770:11: at <ne .Values.a nil>: error calling ne: incompatible types for comparison",
        HelmError,
        "helm-old",
    ),
    "old templates, no short cut": (
        "Error: template: c/t.yaml:561:53: executing at <.Values.a.name>: nil pointer evaluating interface {}.name",
        HelmError,
        "helm-old",
    ),
    "gave up": ("context deadline exceeded", HelmTimeout, "helm-timeout"),
    "unknown field": ("field not declared in schema", HelmError, "chart-values"),
    "template": (
        "execution error at (nvidia-device-plugin/templates/validation.yml:1:4): Running in the 'default' namespace",
        HelmError,
        "chart-values",
    ),
    "old helm": ("Error: unknown flag: --rollback-on-failure", HelmError, "helm-old"),
    "something new": ("Error: the moon is full", HelmError, "helm"),
}


@pytest.mark.parametrize("case", SAID)
def test_explain_when_helm_fails_then_class_code_and_remedy(case: str) -> None:
    said, makes, code = SAID[case]
    error = explain_helm(said, Where("helm upgrade"), WORDS)
    (diagnostic,) = error.diagnostics
    assert (type(error), diagnostic.code) == (makes, code)
    assert diagnostic.fix
    assert "{" not in diagnostic.fix


def test_explain_when_there_are_warnings_then_the_error_line_is_told() -> None:
    error = explain_helm("WARNING: kubeconfig is group-readable\nError: the moon is full\n", Where("helm"), WORDS)
    assert str(error) == "Helm failed: the moon is full"


@pytest.mark.parametrize("before", ["Error: UPGRADE FAILED: ", "warning: old\nfailed to create resource: "])
def test_explain_when_a_webhook_refuses_in_several_lines_then_its_name_and_all_of_them(before: str) -> None:
    said = f'{before}admission webhook "policy.example.com" denied the request: two things:\n- no limits\n- no owner\n'
    (told,) = explain_helm(said, Where("rel"), WORDS).diagnostics
    assert 'admission webhook "policy.example.com" denied the request: two things: - no limits - no owner' in told.seen


def test_explain_when_nothing_is_said_then_said_so() -> None:
    assert str(explain_helm("", Where("helm"), WORDS)) == "Helm failed: no message"


def test_explain_when_it_is_long_then_cut() -> None:
    assert len(str(explain_helm("x" * 5000, Where("helm"), WORDS))) < 500


@pytest.mark.parametrize("kind", RELEASE_KINDS, ids=lambda kind: kind.chart)
def test_words_when_a_release_or_its_chart_is_named_then_of_that_chart(kind: ReleaseKind) -> None:
    assert words_of(kind.name) == words_of(kind.chart)
    error = explain_helm(f'Error: chart "{kind.chart}" not found', Where("helm pull"), words_of(kind.chart))
    assert f"helm show chart {kind.chart} --repo {kind.repository}" in error.render()
    assert kind.version not in error.render(), "another version than the one that was asked for"


@pytest.mark.parametrize(
    "said",
    [
        'looks like "http://x/charts" is not a valid chart repository: failed to fetch : 401 Unauthorized',
        'failed to perform "FetchReference" on source: GET "https://reg/v2/": basic credential not found',
    ],
)
def test_explain_when_a_repository_asks_who_we_are_then_it_is_not_the_cluster(said: str) -> None:
    error = explain_helm(said, Where("helm pull"), words_of("nvidia-device-plugin"))
    assert (type(error), error.diagnostics[0].code) == (HelmError, "chart-not-found")
    assert "helm registry login" in error.diagnostics[0].fix
    assert isinstance(explain_helm("Unauthorized", Where("helm upgrade"), words_of("x")), AccessError)


def test_explain_when_helm_repeats_an_address_with_a_password_then_it_is_left_out() -> None:
    said = "Error: failed to fetch http://ann:s3cret@charts/index.yaml : 500"
    error = explain_helm(said, Where("helm pull"), words_of("nvidia-device-plugin"))
    assert error.diagnostics[0].why == "failed to fetch http://***@charts/index.yaml : 500"


@pytest.mark.parametrize(
    ("said", "code", "fix"),
    [
        ("Error: something odd", "helm", "helm pull nvidia-device-plugin --repo https://nvidia.github.io/"),
        ("Error: repo  not found", "chart-not-found", "check the version, the network and the proxy"),
    ],
)
def test_explain_when_a_chart_is_not_had_then_no_history_of_a_release_that_may_not_be(
    said: str, code: str, fix: str
) -> None:
    found = explain_helm(said, Where("helm pull"), words_of("nvidia-device-plugin")).diagnostics[0]
    assert (found.code, fix in found.fix, "history" in found.fix) == (code, True, False)


APPLYING = "conflict occurred while applying object"
CONFLICTS_WITH_EDIT = 'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using v1'
CONFLICT_WITH_HELM = 'Apply failed with 1 conflict: conflict with "helm"'
CONFLICTS = {
    "in a namespace": (
        f"{APPLYING} gpukube-system/x /v1, Kind=ConfigMap: {CONFLICTS_WITH_EDIT}:\n- .data.a\n- .data.b",
        "ConfigMap gpukube-system/x",
        "kubectl get configmap x --namespace gpukube-system --output yaml --show-managed-fields",
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using v1: - .data.a - .data.b',
    ),
    "of the whole cluster": (
        f"{APPLYING} /x rbac.authorization.k8s.io/v1, Kind=ClusterRole: {CONFLICT_WITH_HELM}: .rules",
        "ClusterRole x",
        "kubectl get clusterrole x --output yaml --show-managed-fields",
        'Apply failed with 1 conflict: conflict with "helm": .rules',
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_explain_when_fields_are_held_by_somebody_else_then_the_object_is_named_where_it_is(case: str) -> None:
    said, named, show, why = CONFLICTS[case]
    found = explain_helm(said, Where("helm upgrade"), words_of("nvidia-device-plugin")).diagnostics[0]
    assert found.seen == f"another manager owns fields of {named}, which Helm 4 does not overwrite"
    assert found.fix.startswith(show)
    assert found.why == why
    assert "delete" not in found.fix
