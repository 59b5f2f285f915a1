"""Reads Google Cloud's live quotas: Compute Engine, Cloud Quotas, Cloud Monitoring.

In scope: the calls. Out of scope: what each quota counts (`rules.quotas`).

All three are plain REST with an access token; an API that is not enabled in the project returns 403.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from google.api_core.exceptions import from_http_response

from gpukube.core.jsontree import tree, trees
from gpukube.core.quotas import QuotaReading
from gpukube.errors import GpukubeError
from gpukube_gke.live.failures import explained
from gpukube_gke.rules.quotas import ALL_REGIONS, BY_FAMILY, FAMILY_METRIC, family_limit, family_use, read_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import requests

    from gpukube.core.quotas import CloudQuota

_COMPUTE: Final = "https://compute.googleapis.com"
_QUOTAS: Final = "https://cloudquotas.googleapis.com"
_MONITORING: Final = "https://monitoring.googleapis.com"
_INFO: Final = "GPUS-PER-GPU-FAMILY-per-project-region"
_BACK: Final = timedelta(days=1)
"""Age limit of the newest usage: Monitoring gets some quotas only once a day."""
_LONGEST_S: Final = 20.0
"""Timeout of one request: quotas are optional, so a plan does not wait long for a host behind a firewall."""


class Session(Protocol):
    """The part of an HTTP session that gpukube uses; it sends the token with each request."""

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> requests.Response:
        """GET."""


class QuotaReader:
    """Reads quotas of a project over an authorized session.

    Args:
        session: Sends the token with each request.
        base: URL that replaces Google's; "" for Google's own.
        timeout_s: Timeout of one request.
        where: Resource named in messages.
    """

    def __init__(self, session: Session, base: str, timeout_s: float, where: str) -> None:
        self._session = session
        self._base = base
        self._timeout_s = min(timeout_s, _LONGEST_S)
        self._where = where

    def read(self, asked: Sequence[CloudQuota]) -> dict[CloudQuota, QuotaReading]:
        """Read quotas of one project and region; unreadable ones are unknown, with the reason."""
        project, _, region = asked[0].place.rpartition("/")
        families = [quota for quota in asked if quota.name.startswith(BY_FAMILY)]
        metrics = [quota for quota in asked if quota not in families]
        found: dict[CloudQuota, QuotaReading] = {}
        if metrics:
            at = f"projects/{project}" + ("" if metrics[0].name == ALL_REGIONS else f"/regions/{region}")
            answer = self._get(_COMPUTE, f"/compute/v1/{at}", {})
            if isinstance(answer, GpukubeError):
                found |= dict.fromkeys(metrics, QuotaReading(unknown=str(answer)))
            else:
                found |= read_metrics(answer, metrics)
        return found | (self._read_families(project, families) if families else {})

    def _read_families(self, project: str, families: Sequence[CloudQuota]) -> dict[CloudQuota, QuotaReading]:
        services = f"/v1/projects/{project}/locations/global/services/compute.googleapis.com"
        now = datetime.now(UTC)
        query = {
            "filter": f'metric.type="{FAMILY_METRIC}" AND resource.type="compute.googleapis.com/Location"',
            "interval.startTime": (now - _BACK).isoformat(),
            "interval.endTime": now.isoformat(),
        }
        tasks: tuple[Callable[[], Mapping[str, object] | GpukubeError], ...] = (
            partial(self._get, _QUOTAS, f"{services}/quotaInfos/{_INFO}", {}),
            partial(self._get, _MONITORING, f"/v3/projects/{project}/timeSeries", query),
        )
        with ThreadPoolExecutor(len(tasks)) as threads:
            info, use = threads.map(lambda task: task(), tasks)
        return {quota: _reading(info, use, quota) for quota in families}

    def _get(self, host: str, path: str, query: Mapping[str, str]) -> Mapping[str, object] | GpukubeError:
        try:
            with explained(self._where):
                response = self._session.get(f"{self._base or host}{path}", params=query, timeout=self._timeout_s)
                if not response.ok:
                    raise from_http_response(response)  # type: ignore[no-untyped-call]  # google-api-core has no types there
                return tree(response.json())
        except GpukubeError as error:
            return error


def _reading(
    info: Mapping[str, object] | GpukubeError, use: Mapping[str, object] | GpukubeError, quota: CloudQuota
) -> QuotaReading:
    problems = [str(answer) for answer in (info, use) if isinstance(answer, GpukubeError)]
    limit = None if isinstance(info, GpukubeError) else family_limit(info, quota)
    used = None if isinstance(use, GpukubeError) else family_use(trees(use, "timeSeries"), quota)
    if limit is None and not isinstance(info, GpukubeError):
        problems.append("Cloud Quotas has no limit for it")
    if used is None and not isinstance(use, GpukubeError):
        problems.append("Cloud Monitoring has no usage for it")
    return QuotaReading(limit, used, "; ".join(dict.fromkeys(problems)))
