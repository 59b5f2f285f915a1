"""Runs the `helm` command, version 3 or 4.

In scope: its command lines. Out of scope: values, guards, and reading release state.

The user's Helm settings apply (plugins, repositories, registry logins), but only gpukube chooses the cluster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.cluster.helm.chart import archive_in
from gpukube.cluster.helm.engine import DEADLINE_S, HISTORY, HOOKS_S, HelmAnswer
from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.cluster.process.child import DeadlinePassed, Ended, run_child
from gpukube.core.jsontree import number, text
from gpukube.errors import HelmError, HelmTimeout, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine, HelmJob
    from gpukube.cluster.process.child import Stop

_OURS: Final = (
    "KUBECONFIG",
    "HELM_KUBECONTEXT",
    "HELM_KUBETOKEN",
    "HELM_KUBEAPISERVER",
    "HELM_KUBECAFILE",
    "HELM_KUBEASUSER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_NAMESPACE",
    "HELM_DRIVER",
    "HELM_DEBUG",
)
"""Settings that would point Helm at another cluster, identity, or storage for its records
(helm env; HELM_DRIVER: release state is read from Secrets)."""
_CHANGES: Final = ("upgrade", "rollback", "uninstall")
_WRITE: Final = ("--install", "--skip-crds", "--reset-values", "--history-max", str(HISTORY))
_SERVER_DRY_RUN: Final = (3, 13)
"""Since 3.13 --dry-run has a value, and only "server" contacts the cluster (helm/helm#9426)."""
_PLAIN: Final = (3, 13)
"""Since 3.13 helm pull has --plain-http (helm pull --help)."""
_APPLIES: Final = (4, 0)
"""Since 4.0 Helm uses server-side apply, as "helm" (helm.sh/helm v4 cmd/helm/helm.go, ManagedFieldsManager)."""
_LABELS: Final = (3, 13)
"""Since 3.13 install and upgrade have --labels (helm upgrade --help)."""


def cli_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without the settings that choose a cluster."""
    return {name: value for name, value in environ.items() if name not in _OURS}


class HelmCli:
    """Engine that runs the helm command.

    Args:
        program: Path of the command.
        version: Its version, "v3.6.2".
        environ: Its environment; settings that choose a cluster are removed.
        deadline_s: Time limit of each run.
        stop: How the user stops a run.
    """

    def __init__(
        self,
        program: str,
        version: str,
        environ: Mapping[str, str],
        deadline_s: float = DEADLINE_S,
        stop: Stop | None = None,
    ) -> None:
        self._program = program
        self._version = version
        self._environ = cli_environ(environ)
        self._deadline_s = deadline_s
        self._stop = stop

    @property
    def field_manager(self) -> str:
        """See Engine."""
        return "helm" if self._is_at_least(_APPLIES) else ""

    def version(self) -> str:
        """See Engine."""
        return f"helm {self._version} on PATH"

    def pull(self, source: ChartSource, directory: Path) -> Path:
        """See Engine."""
        repository = ["--repo", source.address] if source.kind == "repository" else []
        version = ["--version", source.version] if source.version else []
        plain = ["--plain-http"] if source.kind == "oci" and source.on_loopback and self._is_at_least(_PLAIN) else []
        self._run(
            *("pull", source.reference, *version, *repository, *plain, "--destination", str(directory)),
            known=words_of(source.chart),
        )
        return archive_in(directory, source)

    def upgrade(self, job: HelmJob) -> HelmAnswer:
        """See Engine."""
        if job.dry_run and job.offline:
            return self._rendered(job)
        ended = self._run(
            *(self._trial(job) if job.dry_run else ("upgrade", *_WRITE, *self._labels(job))),
            *(job.name, str(job.chart), "--namespace", job.namespace, "--kubeconfig", str(job.kubeconfig)),
            *("--values", "-", "--timeout", f"{HOOKS_S}s", "--output", "json"),
            stdin=json.dumps(job.values),
            known=words_of(job.name),
            keeps=(job.mark.handle,) if job.mark else (),
        )
        return _answer(ended)

    def rollback(self, kubeconfig: Path, name: str, namespace: str, revision: int) -> None:
        """See Engine."""
        self._run(
            *("rollback", name, str(revision), "--namespace", namespace, "--kubeconfig", str(kubeconfig)),
            *("--timeout", f"{HOOKS_S}s", "--history-max", str(HISTORY)),
            known=words_of(name),
        )

    def uninstall(self, kubeconfig: Path, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """See Engine."""
        self._run(
            *("uninstall", name, "--namespace", namespace, "--kubeconfig", str(kubeconfig)),
            *("--timeout", f"{HOOKS_S}s", *(["--keep-history"] if keep_history else [])),
            known=words_of(name),
            may_be_missing=True,
        )

    def _rendered(self, job: HelmJob) -> HelmAnswer:
        ended = self._run(
            *("template", job.name, str(job.chart), "--namespace", job.namespace, "--values", "-"),
            stdin=json.dumps(job.values),
            known=words_of(job.name),
        )
        return HelmAnswer(1, "pending-install", ended.out)

    def _trial(self, job: HelmJob) -> Sequence[str]:
        """Return the command of a dry run: Helm rejects an upgrade of an interrupted release, but not an install."""
        flag = "--dry-run=server" if self._is_at_least(_SERVER_DRY_RUN) else "--dry-run"
        return ("upgrade", flag) if job.installed else ("install", "--skip-crds", flag)

    def _labels(self, job: HelmJob) -> Sequence[str]:
        labels = ",".join(f"{name}={value}" for name, value in job.labels.items())
        return ("--labels", labels) if labels and self._is_at_least(_LABELS) else ()

    def _is_at_least(self, version: tuple[int, int]) -> bool:
        major, minor = (int(part) for part in self._version.removeprefix("v").split(".")[:2])
        return (major, minor) >= version

    def _run(
        self,
        *words: str,
        known: dict[str, str],
        stdin: str = "",
        may_be_missing: bool = False,
        keeps: Sequence[int] = (),
    ) -> Ended:
        where = Where(f"helm {words[0]}")
        changes = words[0] in _CHANGES and not any(word.startswith("--dry-run") for word in words)
        try:
            ended = run_child(
                [self._program, *words],
                stdin=stdin,
                environ=self._environ,
                deadline_s=self._deadline_s,
                keeps=keeps,
                stop=self._stop if changes or self._stop is None else self._stop.at_once(),
            )
        except DeadlinePassed as error:
            raise HelmTimeout(
                f"helm {words[0]} did not finish within {self._deadline_s:g} s and was stopped",
                where=where,
                fix="check that the cluster and the chart repository answer; then run again to repair the release",
            ) from error
        if ended.code == 0 or (may_be_missing and "not found" in ended.err):
            return ended
        raise explain_helm(ended.err or ended.out, where, known)


def _answer(ended: Ended) -> HelmAnswer:
    try:
        record: object = json.loads(ended.out)
    except ValueError as error:
        raise HelmError(
            "helm did not print JSON",
            where="helm upgrade",
            why=ended.out.strip()[:200],
            fix="check whether helm on PATH is a wrapper, or remove it from PATH to use the embedded Helm",
            code="helm-old",
        ) from error
    return HelmAnswer(number(record, "version"), text(record, "info", "status"), text(record, "manifest"))


if TYPE_CHECKING:
    _: type[Engine] = HelmCli
