"""Reads EC2 quotas: limits from Service Quotas, usage from running instances.

In scope: the calls. Out of scope: which quota counts what (`rules.quotas`).

CloudWatch has the usage too (AWS/Usage), but minutes late and with a separate permission; instances show it at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube.core.jsontree import at
from gpukube.core.quotas import QuotaReading
from gpukube.errors import CloudError, GpukubeError
from gpukube_eks.live.failures import explained, unless
from gpukube_eks.rules.quotas import instance_filter, used_vcpus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.core.quotas import CloudQuota
    from gpukube_eks.live.sdk import Answer, Aws

_NOT_SET: Final = frozenset({"NoSuchResourceException"})
"""Error codes of a quota that was never raised in the account and has only its default."""
_PAGE: Final = 1000
_MOST_PAGES: Final = 100
_T = TypeVar("_T")


def read_quotas(aws: Aws, asked: Sequence[CloudQuota], where: str) -> dict[CloudQuota, QuotaReading]:
    """Read limits and usage in parallel; unreadable ones are unknown, with the reason."""
    with ThreadPoolExecutor(len(asked) + 1) as threads:
        use = threads.submit(_guarded, lambda: _instances(aws, where))
        limits = list(threads.map(lambda quota: _guarded(partial(read_limit, aws, quota.name, where)), asked))
        running = use.result()
    found = {}
    for quota, limit in zip(asked, limits, strict=True):
        used = running if isinstance(running, GpukubeError) else used_vcpus(running, quota.name)
        problems = [str(one) for one in (limit, used) if isinstance(one, GpukubeError)]
        found[quota] = QuotaReading(
            limit=None if isinstance(limit, GpukubeError) else limit,
            used=None if isinstance(used, GpukubeError) else used,
            unknown="; ".join(dict.fromkeys(problems)),
        )
    return found


def read_limit(aws: Aws, code: str, where: str, *, service: str = "ec2") -> float:
    """Read the account's value of a quota; its default if it was never raised.

    Raises:
        GpukubeError: There is no permission to read it, or no quota with this code.
    """
    with explained(where):
        answer = unless(_NOT_SET, partial(aws.quotas.get_service_quota, ServiceCode=service, QuotaCode=code))
        if answer is None:
            answer = aws.quotas.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)
    value = at(answer, "Quota", "Value")
    if not isinstance(value, int | float):
        raise CloudError(f"Service Quotas returned no value for {code}", where=where, code="bad-answer")
    return value


def _instances(aws: Aws, where: str) -> list[Answer]:
    """Read all pages; fail if the list does not end."""
    pages: list[Answer] = []
    token = ""
    with explained(where):
        while not pages or token:
            more = {"NextToken": token} if token else {}
            pages.append(aws.ec2.describe_instances(Filters=instance_filter(), MaxResults=_PAGE, **more))
            token = str(pages[-1].get("NextToken") or "")
            if len(pages) == _MOST_PAGES and token:
                raise CloudError(f"EC2's response has more than {_MOST_PAGES} pages", where=where, code="bad-answer")
    return pages


def _guarded(read: Callable[[], _T]) -> _T | GpukubeError:
    try:
        return read()
    except GpukubeError as error:
        return error
