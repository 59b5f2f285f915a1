"""Helm's error messages as gpukube's errors.

In scope: a table from Helm's texts to error classes with a fix; the command and the embedded library share the texts,
and the library's exception classes tell less. Out of scope: running Helm.

Source of the texts: helm.sh/helm v3.6.2 and v4.2.3, observed with Kubernetes 1.20 and 1.36.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gpukube.cluster.names import ALL_KINDS, DEVICE_PLUGIN, NAMESPACE
from gpukube.errors import (
    AccessError,
    ChartNotFound,
    ClusterError,
    ClusterSlow,
    Conflict,
    FieldConflict,
    GpukubeError,
    HelmError,
    HelmTimeout,
    Where,
)
from gpukube.masking import without_secrets

_MOST: Final = 400


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: str
    makes: type[GpukubeError]
    code: str
    message: str
    fix: str


_ROWS: Final[tuple[_Row, ...]] = (
    _Row(
        r"Unauthorized|provide credentials|the server has asked for the client to provide",
        AccessError,
        "kube-unauthorized",
        "the Kubernetes API does not accept the credentials",
        "log in again, or check which identity the credentials belong to",
    ),
    _Row(
        r"is forbidden|cannot \w+ resource|forbidden: User",
        AccessError,
        "kube-forbidden",
        "the identity lacks permissions in the cluster that the chart needs",
        "get a role that can write DaemonSets, ConfigMaps, Secrets and ServiceAccounts in the namespace, and "
        "ClusterRoles, ClusterRoleBindings and CustomResourceDefinitions in the cluster",
    ),
    _Row(
        r"another operation \(install/upgrade/rollback\) is in progress",
        Conflict,
        "release-busy",
        "another Helm run is changing this release",
        "wait until it has finished, then run again",
    ),
    _Row(
        r"secrets \"sh\.helm\.release\.v1\S+\" already exists|release: already exists"
        r"|cannot reuse a name that is still in use|cannot re-use a name that is still in use",
        Conflict,
        "release-moved",
        "another run changed this release at the same time",
        "run again to start from the current release",
    ),
    _Row(
        r"conflict with \"|conflicts? with \"|Apply failed with \d+ conflict|conflict occurred while applying",
        FieldConflict,
        "helm-field-conflict",
        "another manager owns fields of {object}, which Helm 4 does not overwrite",
        "{show} --output yaml --show-managed-fields shows which: stop it from writing the object, then run again to "
        "take the fields back",
    ),
    _Row(
        r"invalid ownership metadata|cannot be imported into the current release|exists and cannot be",
        HelmError,
        "helm-ownership",
        "an object of the chart already exists and belongs to something else",
        "delete that object, or the release it belongs to, then run again",
    ),
    _Row(
        r"found in Chart.yaml, but missing in charts",
        HelmError,
        "chart-dependency",
        "the chart directory lacks its dependency",
        "run helm dependency build there, or use a packaged chart",
    ),
    _Row(
        r"cluster unreachable.*TLS handshake timeout",  # Go's limit of ten seconds, which Helm has no option for
        ClusterSlow,
        "cluster-unreachable",
        "Helm cannot reach the Kubernetes API",
        "check that the cluster is running and its address is reachable from here; then run again",
    ),
    _Row(
        r"kubernetes cluster unreachable|cluster unreachable|connection refused.*:\d+/version",
        ClusterError,
        "cluster-unreachable",
        "Helm cannot reach the Kubernetes API",
        "check that the cluster is running and its address is reachable from here; then run again",
    ),
    _Row(
        r"chart \S+ version \S+ not found|no chart version found",
        ChartNotFound,
        "no-chart-version",
        "the chart's repository has no such version",
        "use another version; helm show chart {source} shows the newest",
    ),
    _Row(
        r"chart \S+ (version \S+ )?not found|not a valid chart repository|cannot be reached|failed to download"
        r"|no chart version found|chart .* matching|failed to fetch|could not be located|no such host"
        r"|path \S+ not found|repo\s+(\S+\s+)?not found|could not find protocol handler|non-absolute URLs"
        r"|failed to do request|failed to perform|marked as experimental"
        r"|no such file or directory|Chart.yaml file is missing|does not appear to be a gzipped archive",
        HelmError,
        "chart-not-found",
        "the chart was not found",
        "check the version, the network and the proxy, or use a mirror or a local chart; "
        "helm show chart {source} shows the newest version",
    ),
    _Row(
        r"context deadline exceeded|timed out waiting",
        HelmTimeout,
        "helm-timeout",
        "Helm timed out waiting",
        "check the pods of namespace {namespace}, then run again: it continues",
    ),
    _Row(
        r"field not declared in schema|unknown field|unknown object type|error validating data|ValidationError",
        HelmError,
        "chart-values",
        "these values set a field that the Kubernetes API does not have",
        "remove the value from the release's own values, or use another chart version",
    ),
    _Row(
        r"error calling (ne|eq): incompatible types|nil pointer evaluating interface \{\}",
        HelmError,
        "helm-old",
        "this helm is too old for the chart's templates",
        "install a current helm, or remove it from PATH to use the embedded Helm",
    ),
    _Row(
        r"execution error at|template: |error calling|values don't meet the specifications",
        HelmError,
        "chart-values",
        "the chart rejects these values",
        "remove the value from the release's own values, or use another chart version",
    ),
    _Row(
        r"unknown flag|unknown shorthand|unknown command",
        HelmError,
        "helm-old",
        "this helm does not support a required option",
        "install helm 3.6 or newer, or remove it from PATH to use the embedded Helm",
    ),
)
"""The first row whose pattern matches applies."""


_LOGIN: Final = _Row(
    r"Unauthorized|\b401\b|\b403\b|Forbidden|basic credential|denied",
    HelmError,
    "chart-not-found",
    "the chart's repository denies access",
    "log in as with Helm: helm registry login HOST for oci://, user and password in a repository's address; or "
    "use a local chart",
)
"""Checked first for a chart download: the other rows would attribute the same texts to the cluster."""
_PULL: Final = "helm pull"
_CONFLICT: Final = re.compile(
    r"applying object (?P<namespace>[^/\s]*)/(?P<name>\S+) \S+, Kind=(?P<kind>\w+): (?P<why>Apply failed.*)", re.DOTALL
)
"""Helm's message for an apply conflict, without the namespace for a cluster-scoped object (helm.sh/helm v4.2.3
pkg/kube/client.go, patchResourceServerSide); the API server's message follows in several lines."""
_PULL_BY_HAND: Final = "helm pull {source} shows whether the chart is available; pass its archive with --chart"
_HISTORY: Final = "helm history {name} --namespace {namespace} shows earlier changes"
_WEBHOOK: Final = 'admission webhook "'
"""Start of a webhook's rejection in Kubernetes (apiserver, pkg/admission/plugin/webhook/errors ToStatusErr)."""


def words_of(name: str) -> dict[str, str]:
    """Return the placeholders of a fix, from the name of one of gpukube's releases or charts."""
    kind = next((kind for kind in ALL_KINDS if name in (kind.name, kind.chart)), DEVICE_PLUGIN)
    return {
        "namespace": NAMESPACE,
        "name": kind.name,
        "chart": kind.chart,
        "version": kind.version,
        "source": kind.source,
    }


def explain_helm(output: str, where: Where, words: dict[str, str]) -> GpukubeError:
    """Turn Helm's output into a gpukube error.

    Args:
        output: Standard error of the command, or text of the library's exception.
        where: The release, or the Helm command.
        words: namespace, name, chart, version, and source, for the fix.
    """
    line = _line(output)
    rows = (_LOGIN, *_ROWS) if where.source == _PULL else _ROWS
    row = next((row for row in rows if re.search(row.pattern, output, re.IGNORECASE | re.DOTALL)), None)
    if row is None:
        # Before the chart is downloaded, Helm has not contacted the cluster.
        fix = _PULL_BY_HAND if where.source == _PULL else _HISTORY
        return HelmError(f"Helm failed: {line}", where=where, fix=fix.format(**words))
    if row.makes is FieldConflict:
        line, words = _conflicting(output, line, words)
    return row.makes(row.message.format(**words), where=where, why=line, fix=row.fix.format(**words), code=row.code)


def _conflicting(output: str, line: str, words: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the conflict as one line, and the placeholders with the object's name and the command that shows it."""
    found = _CONFLICT.search(output)
    if found is None:
        return line, {**words, "object": "an object of the release", "show": "kubectl get TYPE NAME"}
    placed = f" --namespace {found['namespace']}" if found["namespace"] else ""
    name = f"{found['namespace']}/{found['name']}".removeprefix("/")
    show = f"kubectl get {found['kind'].lower()} {found['name']}{placed}"
    return " ".join(found["why"].split())[:_MOST], {**words, "object": f"{found['kind']} {name}", "show": show}


def _line(output: str) -> str:
    """Return the error lines as one, without passwords in addresses: Helm's warnings come before "Error: ".

    An admission webhook's message may have several lines; its name is in the first.
    """
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    begins = [at for at, line in enumerate(lines) if line.startswith("Error: ") or _WEBHOOK in line]
    text = " ".join(lines[begins[0] :] if begins else lines[-1:]).removeprefix("Error: ") or "no message"
    return without_secrets(text)[:_MOST]
