"""A world with one of the two Helms, and what "all is well" means in it.

In scope: runs with a chosen Helm, the three proofs (verify, plan, doctor), the inside of clusters. Out of scope: specs
(scenarios), faults, fixtures.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret
from lightkube.types import PatchType

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.clients import client
from sandbox_tests.waiting import wait_for
from tests.changes.world import World, differences, prepare
from tests.cli.harness import NAMESPACE, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.changes.world import Document

SPEED = 4000.0
PROBING_SPEED = 20.0
"""The cluster ends a probe's Job after half an hour, which must not pass while the machine stalls."""
KNOWN: Mapping[str, tuple[str, ...]] = {"embedded": (), "helm": ("helm-old",)}
"""What the doctor says of a Helm that is old."""
ENGINES = ("embedded", pytest.param("helm", marks=[pytest.mark.clients("helm"), pytest.mark.slow]))


@dataclass(frozen=True)
class Stage(World):
    """One sandbox, and the Helm that runs use in it.

    Attributes:
        engine: "embedded", or "helm" for the command on PATH.
        chart: An archive to use; "" for the sandbox's repository.
    """

    engine: str = "embedded"
    chart: str = ""

    def run(self, *, no_wait: bool = False) -> api.Run:
        """Make the circumstances of one run: PATH holds the wanted Helm or none."""
        run = super().run(no_wait=no_wait)
        places = [str(Path(client("helm")).parent)] if self.engine == "helm" else []
        environ = {**run.environ, "PATH": os.pathsep.join([*places, *_without_helm()])}
        return replace(run, environ=environ, chart=api.chart_source(self.chart) if self.chart else run.chart)

    def create_all(self, *documents: Document) -> dict[str, api.PoolReport]:
        """Create what specs declare, and give the reports by cluster and pool; a cluster may refuse."""
        return _by_place(api.create(prepare(*documents), self.run()))

    def apply_all(self, *documents: Document, prune: bool = False) -> dict[str, api.PoolReport]:
        """Apply specs together, and give the reports by cluster and pool."""
        return _by_place(api.apply(prepare(*documents), self.run(), api.Scope(prune=prune)))

    def verify(self, *documents: Document, probe: bool = False) -> dict[str, api.PoolReport]:
        """Verify specs together, and give the reports by cluster and pool, "aks/whole"."""
        prepared = prepare(*documents)
        if not probe:
            return _by_place(api.verify(prepared, self.run()))
        daemon.configure(self.info, speed=PROBING_SPEED)
        try:
            return _by_place(api.verify(prepared, self.run(), api.Probing()))
        finally:
            daemon.configure(self.info, speed=SPEED)

    def glance(self, *documents: Document) -> dict[str, api.PoolReport]:
        """Verify specs, and look no longer than a moment at what is broken."""
        run = self.run()
        hurried = replace(run, pace=replace(run.pace, settle_s=0.3, timeout_s=1.0))
        return _by_place(api.verify(prepare(*documents), hurried))

    def diagnose(self, *documents: Document) -> tuple[api.Examination, ...]:
        """Let the doctor look at the clusters of specs."""
        return api.diagnose(prepare(*documents), self.run())

    def require_green(self, *documents: Document) -> dict[str, api.PoolReport]:
        """Insist that verify is green, the plan empty, and the doctor finds nothing; give what verify said."""
        verified = self.verify(*documents)
        assert errors_of(verified) == {}
        assert differences(self.plan(*documents)) == []
        self.require_healthy(*documents)
        return verified

    def require_healthy(self, *documents: Document, usual: tuple[str, ...] = ()) -> None:
        """Insist that the doctor finds nothing, once the cluster's controllers have done their part."""
        found: list[str] = []

        def is_healthy() -> bool:
            found[:] = unwell(self.diagnose(*documents), *KNOWN[self.engine], *usual)
            return not found

        wait_for(is_healthy, lambda: "\n".join(found))


def _without_helm() -> list[str]:
    return [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if not _has_helm(place)]


def _has_helm(place: str) -> bool:
    return (Path(place) / "helm").exists()


def _by_place(reports: tuple[api.ClusterReport, ...]) -> dict[str, api.PoolReport]:
    return {f"{report.cluster.key}/{pool.pool}": pool for report in reports for pool in report.pools}


def errors_of(reports: dict[str, api.PoolReport]) -> dict[str, str]:
    """Return what went wrong, by pool."""
    return {name: str(report.error or report.message) for name, report in reports.items() if not _is_good(report)}


def _is_good(report: api.PoolReport) -> bool:
    return report.error is None and report.outcome in ("done", "unchanged")


def totals(report: api.PoolReport) -> dict[str, int]:
    """Return the devices that a pool's nodes show, names without the domain."""
    shown: dict[str, int] = dict(report.proof.total) if report.proof else {}
    return {name.removeprefix("nvidia.com/"): count for name, count in shown.items()}


def ailments(examinations: tuple[api.Examination, ...]) -> Iterator[tuple[str, str, Any]]:
    """List what was found: cluster, check, ailment."""
    for examination in examinations:
        for found in examination.found:
            yield examination.cluster.key, found.check.id, found.finding


def unwell(examinations: tuple[api.Examination, ...], *expected: str) -> list[str]:
    """Say in one line each what was found beside the checks that are expected."""
    return [f"{one.cluster.key}: {error}" for one in examinations for error in one.troubles] + [
        f"{key}: {check}: {ailment.where}: {ailment.seen}"
        for key, check, ailment in ailments(examinations)
        if check not in expected
    ]


class Inside(Cluster):
    """A cluster as somebody with kubectl has it, on any cloud."""

    def __init__(self, info: SandboxInfo, name: str) -> None:
        super().__init__(info, name)
        self.info = info

    def nodes(self, pool: str) -> list[Node]:
        """List the nodes of a pool by our marks, which do not go when a label of the node is changed."""
        found = self.client.list(Node)
        return sorted((node for node in found if _pool_of(node) == pool), key=name_of)

    def node_names(self, pool: str) -> list[str]:
        """Name the nodes of a pool."""
        return [name_of(node) for node in self.nodes(pool)]

    def labels(self, pool: str) -> dict[str, str]:
        """Return the labels of a pool's node."""
        (node,) = self.nodes(pool)
        return (node.metadata.labels if node.metadata else None) or {}

    def has_namespace(self, name: str) -> bool:
        """Return whether there is a namespace."""
        return name in {str(item.metadata.name) for item in self.client.list(Namespace) if item.metadata}

    def make_namespace(self, name: str) -> None:
        """Make a namespace unless it is there."""
        if not self.has_namespace(name):
            made = Namespace.from_dict({"metadata": {"name": name}})
            assert isinstance(made, Namespace)
            self.client.create(made)

    def owners(self, namespace: str) -> set[str]:
        """Name what owns the pods of a namespace."""
        found = self.client.list(Pod, namespace=namespace)
        return {owner.name for pod in found for owner in (pod.metadata.ownerReferences if pod.metadata else None) or []}

    def pod_of(self, daemonset: str) -> Document:
        """Return the pod that a DaemonSet of the release makes."""
        return dict(self.daemonset(daemonset).to_dict()["spec"]["template"]["spec"])

    def set_pod(self, daemonset: str, pod: Document) -> None:
        """Replace the pod that a DaemonSet of the release makes."""
        patch = [{"op": "replace", "path": "/spec/template/spec", "value": pod}]
        self.client.patch(DaemonSet, daemonset, patch, namespace=NAMESPACE, patch_type=PatchType.JSON)

    def entries(self, config_map: str) -> dict[str, str]:
        """Read the entries of a ConfigMap of ours."""
        return self.client.get(ConfigMap, config_map, namespace=NAMESPACE).data or {}

    def set_entries(self, config_map: str, entries: Mapping[str, str | None]) -> None:
        """Change entries of a ConfigMap of ours; None removes one."""
        patch = {"data": dict(entries)}
        self.client.patch(ConfigMap, config_map, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE)

    def release_states(self) -> dict[int, str]:
        """Return the state of each revision of our release."""
        found = self.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm"})
        labels = [(secret.metadata.labels if secret.metadata else None) or {} for secret in found]
        return {int(item["version"]): item["status"] for item in labels}

    def chart_labels(self) -> set[str]:
        """Return the charts that the plugin's DaemonSet says to be of."""
        meta = self.daemonset().metadata
        return {((meta.labels if meta else None) or {})["helm.sh/chart"]}


@contextmanager
def inside(info: SandboxInfo, name: str) -> Iterator[Inside]:
    """Return the inside of a cluster."""
    cluster = Inside(info, name)
    try:
        yield cluster
    finally:
        cluster.close()


_POOL_LABELS = ("gpukube.io/pool", "kubernetes.azure.com/agentpool", "eks.amazonaws.com/nodegroup")


def _pool_of(node: Node) -> str:
    labels = (node.metadata.labels if node.metadata else None) or {}
    return next((labels[key] for key in _POOL_LABELS if key in labels), "")


def name_of(item: Node) -> str:
    """Return the name of an object."""
    return str(item.metadata.name) if item.metadata else ""
