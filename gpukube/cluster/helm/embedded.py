"""Runs the embedded Helm library, in a process that answers one call after another.

In scope: the requests to that process. Out of scope: the library itself (child), how many processes there are and when
they end (servers).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from gpukube.cluster.helm import servers
from gpukube.cluster.helm.chart import archive_in
from gpukube.cluster.helm.engine import DEADLINE_S, HISTORY, HOOKS_S, HelmAnswer
from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.cluster.names import FIELD_MANAGER
from gpukube.cluster.process.child import DeadlinePassed
from gpukube.core.jsontree import Tree, number, text, tree
from gpukube.errors import HelmError, HelmTimeout, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine, HelmJob
    from gpukube.cluster.process.child import Stop

_CHANGES: Final = ("upgrade", "rollback", "uninstall")


def _logins(environ: Mapping[str, str]) -> str:
    """Return the file that `helm registry login` writes (helm env; pkg/helmpath: on Linux below XDG_CONFIG_HOME)."""
    xdg = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/"), ".config"))
    home = environ.get("HELM_CONFIG_HOME") or str(Path(xdg, "helm"))
    return environ.get("HELM_REGISTRY_CONFIG") or str(Path(home, "registry", "config.json"))


class HelmSdk:
    """Engine that runs helm_python.

    Args:
        environ: Environment of the child; every Helm setting is removed.
        deadline_s: Time limit of each call.
        stop: How the user stops a run.
    """

    _version: ClassVar[str] = ""
    """Version of the library's Helm: the same for every run of this process."""

    def __init__(self, environ: Mapping[str, str], deadline_s: float = DEADLINE_S, stop: Stop | None = None) -> None:
        self._environ = dict(environ)
        self._deadline_s = deadline_s
        self._stop = stop

    @property
    def field_manager(self) -> str:
        """See Engine."""
        return FIELD_MANAGER

    def version(self) -> str:
        """See Engine."""
        if not HelmSdk._version:  # every answer includes it, so this seldom needs its own process
            self._request("version", {})
        return f"helm {HelmSdk._version} embedded"

    def pull(self, source: ChartSource, directory: Path) -> Path:
        """See Engine."""
        repository = source.address if source.kind == "repository" else ""
        self._request(
            "pull",
            {
                "reference": source.reference,
                "directory": str(directory),
                "version": source.version,
                "repository": repository,
                "logins": _logins(self._environ) if source.kind == "oci" else "",
                "plain_http": repository.startswith("http://") or (source.kind == "oci" and source.on_loopback),
                "name": source.chart,
            },
        )
        return archive_in(directory, source)

    def upgrade(self, job: HelmJob) -> HelmAnswer:
        """See Engine."""
        answer = self._request(
            "upgrade",
            {
                "kubeconfig": str(job.kubeconfig),
                "name": job.name,
                "namespace": job.namespace,
                "chart": str(job.chart),
                "values": dict(job.values),
                "installed": job.installed,
                "dry_run": ("client" if job.offline else "server") if job.dry_run else "",
                "history": HISTORY,
                "labels": dict(job.labels),
            },
            keeps=(job.mark.handle,) if job.mark else (),
        )
        release = tree(answer, "release")
        status = text(release, "status") or text(release, "info", "status")
        return HelmAnswer(number(release, "version") or number(release, "revision"), status, text(release, "manifest"))

    def rollback(self, kubeconfig: Path, name: str, namespace: str, revision: int) -> None:
        """See Engine."""
        request = {"kubeconfig": str(kubeconfig), "name": name, "namespace": namespace, "revision": revision}
        self._request("rollback", request)

    def uninstall(self, kubeconfig: Path, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """See Engine."""
        request = {"kubeconfig": str(kubeconfig), "name": name, "namespace": namespace, "keep": keep_history}
        self._request("uninstall", request)

    def _request(self, verb: str, request: Mapping[str, object], keeps: Sequence[int] = ()) -> Tree:
        where = Where(f"helm {verb}")
        message = json.dumps({"verb": verb, "deadline_s": self._deadline_s, "timeout_s": HOOKS_S, **request})
        changes = verb in _CHANGES and not request.get("dry_run")
        try:
            answer = _read(
                servers.request_helm(
                    self._environ,
                    message,
                    deadline_s=self._deadline_s,
                    keeps=keeps,
                    stop=self._stop if changes or self._stop is None else self._stop.at_once(),
                ),
                where,
                request,
            )
        except DeadlinePassed as error:
            raise HelmTimeout(
                f"the embedded Helm did not finish its {verb} within {self._deadline_s:g} s and was stopped",
                where=where,
                fix="check that the cluster and the chart repository answer; then run again to repair the release",
            ) from error
        except servers.Crashed as error:
            raise HelmError(
                f"the embedded Helm ended with code {error.code}",
                where=where,
                why=error.log,
                fix="run again; if it persists, install the helm command, which is then used instead",
                code="helm-crash",
            ) from error
        HelmSdk._version = text(answer, "helm")
        return answer


def _read(line: str, where: Where, request: Mapping[str, object]) -> Tree:
    answer = tree(json.loads(line))
    if "error" in answer:
        raise explain_helm(text(answer, "error"), where, words_of(text(request, "name")))
    return answer


if TYPE_CHECKING:
    _: type[Engine] = HelmSdk
