"""The charts of a run: downloaded once, so that the tested one gets installed, and checked against the planned digest.

In scope: which file is a plan's chart. Out of scope: downloading (the engines), and reading a chart (helm.chart).

A version is only a name: a repository or registry can serve other content under it tomorrow, so archives are compared
    by digest. NVIDIA's own repository must serve the digest pinned with the default version, or if none is published,
    the digest recorded in the cluster when that version was first installed. Trusting other sources (--chart) is up to
    the user; a saved plan still requires the digest that it saw there.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.cluster.helm.chart import ChartSource, chart_digest, local_chart
from gpukube.cluster.names import CHART_LABEL
from gpukube.cluster.process.scratch import Scratch
from gpukube.errors import GpukubeError, HelmError, StalePlan
from gpukube.masking import without_secrets

if TYPE_CHECKING:
    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.plan import ReleasePlan


class ChartCache:
    """Charts, by the plans that need them.

    Args:
        engine: Downloads charts.
        source: Source of the charts; each plan names the chart and its version.
    """

    def __init__(self, engine: Engine, source: ChartSource) -> None:
        self._engine = engine
        self._source = source
        self._fetched: dict[ChartSource, Path] = {}
        self._store = Scratch("chart")

    def chart(self, plan: ReleasePlan, live: Release | None = None) -> Path:
        """Return a plan's chart, downloaded on the first call.

        Args:
            plan: The release.
            live: Its newest revision in the cluster, which may contain a recorded digest.

        Raises:
            HelmError: It is not found, is another chart, or differs from what its publisher published.
            StalePlan: It is not the chart that the plan was made with.
        """
        path = self._find(plan)
        digest = chart_digest(path)
        self._require_published(plan, digest, live)
        if plan.digest and digest != plan.digest:
            raise StalePlan(
                f"chart {plan.chart} {plan.version} has digest {digest}, but the plan was made with {plan.digest}",
                where=replace(self._source, chart=plan.chart).shown,
                why="the same version has different content: it was replaced, or now comes from another source",
                fix="plan again, and check who changed the chart",
            )
        return path

    def compares(self, plan: ReleasePlan) -> bool:
        """Return whether a plan's chart must match a digest recorded in the cluster."""
        return not self._source.location and not _pinned(plan)

    def record(self, chart: Path, plan: ReleasePlan) -> dict[str, str]:
        """Return the labels that record the digest of a chart with no published one; empty for all others."""
        return {CHART_LABEL: _mark(plan, chart_digest(chart))} if self.compares(plan) else {}

    def digest(self, plan: ReleasePlan) -> str:
        """Return the digest of a plan's chart, "sha256:..."; "" for a directory.

        Raises:
            HelmError, StalePlan: See chart.
        """
        return chart_digest(self.chart(plan))

    def close(self) -> None:
        """Delete the downloaded charts."""
        self._store.remove()

    def _require_published(self, plan: ReleasePlan, digest: str, live: Release | None) -> None:
        if self._source.location:
            return
        pinned, seen = _pinned(plan), _mark(plan, digest)
        recorded = live.chart_mark if live and live.chart_mark.startswith(_mark(plan, "")) else ""
        if pinned and pinned != digest:
            was, why = pinned, "NVIDIA published this version with that digest"
        elif not pinned and recorded not in ("", seen):
            was, why = f"{recorded}...", "recorded when this version was first installed in this cluster"
        else:
            return
        raise HelmError(
            f"chart {plan.chart} {plan.version} has digest {digest}, expected {was}",
            where=replace(self._source, chart=plan.chart).shown,
            why=why,
            fix="check for a proxy or mirror between you and the repository; --chart sets another source",
            code="chart-digest",
        )

    def _find(self, plan: ReleasePlan) -> Path:
        if self._source.kind == "local":
            return local_chart(Path(self._source.location), plan.chart).path
        source = ChartSource(self._source.location, plan.version, plan.chart)
        if source not in self._fetched:
            directory = Path(tempfile.mkdtemp(dir=self._store.path))
            self._fetched[source] = local_chart(self._pulled(source, directory), plan.chart).path
        return self._fetched[source]

    def _pulled(self, source: ChartSource, directory: Path) -> Path:
        try:
            return self._engine.pull(source, directory)
        except GpukubeError as error:
            if not source.has_secret:
                raise
            found = [
                replace(
                    each,
                    seen=without_secrets(each.seen, source.address),
                    why=without_secrets(each.why, source.address),
                )
                for each in error.diagnostics
            ]
            # Helm quotes the address, decoded or split; so would the cause, which -v shows.
            raise type(error).of(found) from None


def _pinned(plan: ReleasePlan) -> str:
    """Return the published digest of a plan's chart; "" if its version is not the default one, or has none."""
    return plan.kind.digest if plan.version == plan.kind.version else ""


def _mark(plan: ReleasePlan, digest: str) -> str:
    """Return a version with its digest as a label value: 63 characters, no plus sign."""
    return f"{plan.version.replace('+', '_')}.{digest.removeprefix('sha256:')}"[:63]
