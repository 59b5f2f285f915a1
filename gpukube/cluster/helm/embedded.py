"""Helm by the embedded library, in a child process per call.

Lives here: the parent's side of that process. Must not live here: the library itself (child).

Nothing of the surroundings decides which cluster is meant: the library would mix a kubeconfig of the environment into
what it is given, so the child gets a complete kubeconfig of ours and no Helm settings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from gpukube.cluster.helm import child as helm_child
from gpukube.cluster.helm.chart import archive_in
from gpukube.cluster.helm.engine import DEADLINE_S, HISTORY, HOOKS_S, HelmAnswer
from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.cluster.process.child import DeadlinePassed, Ended, run_child
from gpukube.cluster.process.scratch import Scratch
from gpukube.core.jsontree import Tree, number, text, tree
from gpukube.errors import HelmError, HelmTimeout, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine, HelmJob
    from gpukube.cluster.process.child import Stop

_CHANGES: Final = ("upgrade", "rollback", "uninstall")


def embedded_environ(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """Drop every Helm and kubeconfig setting; give Helm a directory of its own for cache and temporary files.

    The child lives for a second or two: collecting garbage costs it a sixth of its time and gains nothing, unless a
    chart is so large that its memory nears the limit (Go's runtime: GOGC, GOMEMLIMIT).
    """
    kept = {name: value for name, value in environ.items() if name != "KUBECONFIG" and not name.startswith("HELM_")}
    homes = {f"HELM_{kind}_HOME": f"{directory}/{kind.lower()}" for kind in ("CACHE", "CONFIG", "DATA")}
    return {**kept, **homes, "TMPDIR": directory, "GOGC": "off", "GOMEMLIMIT": "512MiB"}


def _logins(environ: Mapping[str, str]) -> str:
    """Say where `helm registry login` writes (helm env; pkg/helmpath: on Linux below XDG_CONFIG_HOME)."""
    xdg = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/"), ".config"))
    home = environ.get("HELM_CONFIG_HOME") or str(Path(xdg, "helm"))
    return environ.get("HELM_REGISTRY_CONFIG") or str(Path(home, "registry", "config.json"))


class HelmSdk:
    """Engine by helm_python.

    Args:
        environ: Environment of the child, less every Helm setting.
        deadline_s: For each call.
        stop: Whether the user asked to stop.
    """

    _said: ClassVar[str] = ""
    """Which Helm the library is: the same for every run of this process."""

    def __init__(self, environ: Mapping[str, str], deadline_s: float = DEADLINE_S, stop: Stop | None = None) -> None:
        self._environ = dict(environ)
        self._deadline_s = deadline_s
        self._stop = stop

    def version(self) -> str:
        """See Engine."""
        if not HelmSdk._said:  # every answer brings it: usually this takes no process of its own
            self._ask("version", {})
        return f"helm {HelmSdk._said} embedded"

    def pull(self, source: ChartSource, directory: Path) -> Path:
        """See Engine."""
        repository = source.address if source.kind == "repository" else ""
        self._ask(
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
        answer = self._ask(
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
        self._ask("rollback", request)

    def uninstall(self, kubeconfig: Path, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """See Engine."""
        request = {"kubeconfig": str(kubeconfig), "name": name, "namespace": namespace, "keep": keep_history}
        self._ask("uninstall", request)

    def _ask(self, verb: str, request: Mapping[str, object], keeps: Sequence[int] = ()) -> Tree:
        where = Where(f"helm {verb}")
        message = json.dumps({"verb": verb, "deadline_s": self._deadline_s, "timeout_s": HOOKS_S, **request})
        changes = verb in _CHANGES and not request.get("dry_run")
        # Cleaned up by us, whatever becomes of the child; the library leaves files behind when it is killed.
        with Scratch("helm") as directory:
            try:
                ended = run_child(
                    [sys.executable, "-P", str(Path(helm_child.__file__))],
                    stdin=message,
                    environ=embedded_environ(self._environ, str(directory)),
                    deadline_s=self._deadline_s,
                    keeps=keeps,
                    stop=self._stop if changes or self._stop is None else self._stop.at_once(),
                )
            except DeadlinePassed as error:
                raise HelmTimeout(
                    f"the embedded Helm did not finish its {verb} within {self._deadline_s:g} s and was stopped",
                    where=where,
                    fix="check that cluster and chart repository answer; then run again, which repairs the release",
                ) from error
        answer = _read(ended, where, request)
        HelmSdk._said = text(answer, "helm")
        return answer


def _read(ended: Ended, where: Where, request: Mapping[str, object]) -> Tree:
    try:
        answer = tree(json.loads(ended.out))
    except ValueError:
        answer = {}
    if ended.code != 0 or not ended.out:
        raise HelmError(
            f"the embedded Helm ended with code {ended.code}",
            where=where,
            why=ended.err.strip()[-300:],
            fix="run again; if it stays, install the helm command: it is used instead",
            code="helm-crash",
        )
    if "error" in answer:
        raise explain_helm(text(answer, "error"), where, words_of(text(request, "name")))
    return answer


if TYPE_CHECKING:
    _: type[Engine] = HelmSdk
