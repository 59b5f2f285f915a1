"""Provenance of a plan: the conditions that must be the same when a saved plan is applied.

In scope: reading them from a run, and the digest of a local chart. Out of scope: comparing them (freshness).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube import __version__
from gpukube.cluster.helm.chart import chart_digest, local_chart
from gpukube.endpoint import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.engine.run.context import Run


@dataclass(frozen=True, slots=True)
class Provenance:
    """Conditions under which a plan was made.

    Attributes:
        sandbox: Whether the clouds are the emulated ones.
        endpoints: Provider -> host used instead of the cloud's own; empty in the sandbox, whose ports change.
        created: Time of the plan, RFC 3339 in UTC.
        chart_digest: Digest of a local chart; "" for one that is pulled by version.
        version: Version of gpukube.
    """

    sandbox: bool
    endpoints: Mapping[str, str]
    created: str
    chart_digest: str
    version: str = __version__


def provenance(run: Run) -> Provenance:
    """Return the provenance of a run; reads a local chart.

    Raises:
        HelmError: The local path has no chart.
    """
    settings, chart = run.settings, run.chart
    return Provenance(
        sandbox=settings.sandbox,
        endpoints={} if settings.sandbox else {name: host_of(url) for name, url in settings.endpoints.items()},
        created=datetime.fromtimestamp(run.clock.now(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        chart_digest=_digest(local_chart(Path(chart.location)).path) if chart.kind == "local" else "",
    )


def _digest(chart: Path) -> str:
    """Return the digest of an archive, or of all files in a chart directory with their names."""
    if not chart.is_dir():
        return chart_digest(chart)
    total = sha256()
    for file in sorted(path for path in chart.rglob("*") if path.is_file()):
        total.update(f"{file.relative_to(chart).as_posix()}\0".encode())
        total.update(sha256(file.read_bytes()).digest())
    return f"sha256:{total.hexdigest()}"
