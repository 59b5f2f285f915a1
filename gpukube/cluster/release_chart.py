"""The charts of a run: fetched once, so that what was tried is what gets installed, and held to the digest planned.

Lives here: which file a plan's chart is. Must not live here: fetching (the engines), and what a chart is (chart).

A version is a name: a repository or registry can serve other content under it tomorrow. The digest is of the archive.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.cluster.chart import ChartSource, chart_digest, local_chart
from gpukube.cluster.scratch import Scratch
from gpukube.errors import StalePlan

if TYPE_CHECKING:
    from gpukube.cluster.helm import Engine
    from gpukube.cluster.release_plan import ReleasePlan

__all__ = ["ChartShelf"]


class ChartShelf:
    """Charts by the plans that need them.

    Args:
        engine: Fetches.
        source: Where the charts come from; each plan says the chart and its version.
    """

    def __init__(self, engine: Engine, source: ChartSource) -> None:
        self._engine = engine
        self._source = source
        self._fetched: dict[ChartSource, Path] = {}
        self._store = Scratch("chart")

    def chart(self, plan: ReleasePlan) -> Path:
        """Give the chart of a plan, fetched on the first call.

        Raises:
            HelmError: It cannot be had, or is another chart.
            StalePlan: It is not the one that the plan was made with.
        """
        path = self._find(plan)
        digest = chart_digest(path)
        if plan.digest and digest != plan.digest:
            raise StalePlan(
                f"chart {plan.chart} {plan.version} is {digest}, and the plan was made with {plan.digest}",
                where=replace(self._source, chart=plan.chart).shown,
                why="one version has had two contents: it was replaced there, or comes from somewhere else now",
                fix="plan again, and find out who changed the chart",
            )
        return path

    def digest(self, plan: ReleasePlan) -> str:
        """Give the digest of a plan's chart, "sha256:..."; "" for a directory.

        Raises:
            HelmError, StalePlan: As chart.
        """
        return chart_digest(self.chart(plan))

    def close(self) -> None:
        """Remove what was fetched."""
        self._store.remove()

    def _find(self, plan: ReleasePlan) -> Path:
        if self._source.kind == "local":
            return local_chart(Path(self._source.location), plan.chart).path
        source = ChartSource(self._source.location, plan.version, plan.chart)
        if source not in self._fetched:
            directory = Path(tempfile.mkdtemp(dir=self._store.path))
            self._fetched[source] = local_chart(self._engine.pull(source, directory), plan.chart).path
        return self._fetched[source]
