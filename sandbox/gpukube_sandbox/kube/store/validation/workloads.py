"""What workloads may say: how many pods, of which template, replaced how.

Source: kubernetes pkg/apis/apps/validation, pkg/apis/batch/validation; schedules as robfig/cron reads them.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.validation.fields import (
    invalid,
    label_selector,
    one_of,
    positive,
    required,
    unsupported,
)
from gpukube_sandbox.kube.store.validation.pods import check_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_PERCENT = re.compile(r"[0-9]+%")
_NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_OF_JOBS = ("OnFailure", "Never")
_CRON = ((0, 59, "minute"), (0, 23, "hour"), (1, 31, "day"), (1, 12, "month"), (0, 6, "weekday"))
_NAMED = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9hms.]+)")
_PART = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")


def share(field: str, value: Any, *, most: bool = True) -> Iterator[Cause]:  # noqa: ANN401 - a number or a text
    """Refuse what is neither a number of pods nor a share of them."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid(field, value, _NOT_PERCENT)
        elif most and int(value[:-1]) > 100:  # noqa: PLR2004 - a whole
            yield invalid(field, value, "must not be greater than 100%")
    else:
        yield from positive(field, value)


def _is_none(value: Any) -> bool:  # noqa: ANN401 - as above
    return value in {0, "0%"}


def check_deployment(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a Deployment, or how it replaces pods."""
    del old
    spec = new.get("spec") or {}
    yield from _replicated(spec)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") not in {None, "Recreate", "RollingUpdate"}:
        yield unsupported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    rolling, path = strategy.get("rollingUpdate") or {}, "spec.strategy.rollingUpdate"
    yield from share(f"{path}.maxUnavailable", rolling.get("maxUnavailable"))
    yield from share(f"{path}.maxSurge", rolling.get("maxSurge"), most=False)
    if _is_none(rolling.get("maxUnavailable", 1)) and _is_none(rolling.get("maxSurge", 1)):
        yield invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
    ready, deadline = spec.get("minReadySeconds") or 0, spec.get("progressDeadlineSeconds")
    yield from positive("spec.minReadySeconds", ready)
    if deadline is not None and deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _replicated(spec: JsonObject) -> Iterator[Cause]:
    yield from positive("spec.replicas", spec.get("replicas"))
    yield from label_selector("spec.selector", spec.get("selector"))
    yield from check_template(spec.get("template") or {}, "spec.template")


def check_replica_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a ReplicaSet."""
    del old
    yield from _replicated(new.get("spec") or {})


def check_stateful_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a StatefulSet."""
    del old
    spec = new.get("spec") or {}
    yield from _replicated(spec)
    policy, strategy = spec.get("podManagementPolicy"), (spec.get("updateStrategy") or {}).get("type")
    if policy not in {None, "OrderedReady", "Parallel"}:
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    if strategy not in {None, "RollingUpdate", "OnDelete"}:
        yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")


def check_daemon_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a DaemonSet."""
    del old
    spec = new.get("spec") or {}
    yield from label_selector("spec.selector", spec.get("selector"))
    yield from check_template(spec.get("template") or {}, "spec.template")
    strategy = spec.get("updateStrategy") or {}
    yield from one_of("spec.updateStrategy.type", strategy.get("type"), ("RollingUpdate", "OnDelete"))
    rolling, path = strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate"
    yield from share(f"{path}.maxUnavailable", rolling.get("maxUnavailable"))
    yield from share(f"{path}.maxSurge", rolling.get("maxSurge"))
    unavailable, surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
    if not _is_none(unavailable) and not _is_none(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    if strategy.get("type") == "RollingUpdate" and _is_none(unavailable) and _is_none(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def check_job(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a Job, and changes of what it runs."""
    spec = new.get("spec") or {}
    yield from _job_spec(spec, "spec")
    if old is None:
        return
    was = old.get("spec") or {}
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
        if was.get(key) != spec.get(key):
            yield invalid(f"spec.{key}", spec.get(key), "field is immutable")
    if was.get("completions") != spec.get("completions") and spec.get("completionMode") != "Indexed":
        yield invalid("spec.completions", spec.get("completions"), "field is immutable")
    if was.get("template") != spec.get("template") and not was.get("suspend"):
        yield invalid("spec.template", spec.get("template"), "field is immutable")


def _job_spec(spec: JsonObject, path: str) -> Iterator[Cause]:
    for key in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        yield from positive(f"{path}.{key}", spec.get(key))
    mode = spec.get("completionMode")
    yield from one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if spec.get("successPolicy") is not None and mode != "Indexed":
        yield invalid(f"{path}.successPolicy", spec["successPolicy"], "requires indexed completion mode")
    template = spec.get("template") or {}
    yield from check_template(template, f"{path}.template", _OF_JOBS)


def check_cron_job(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a CronJob: its schedule, its zone, its jobs."""
    del old
    spec = new.get("spec") or {}
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not schedule:
        yield required("spec.schedule")
    elif wrong := _schedule(schedule):
        yield invalid("spec.schedule", schedule, wrong)
    if zone is not None and zone not in (zoneinfo.available_timezones() or {"UTC", "Etc/UTC"}):
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    yield from _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _schedule(text: str) -> str:
    """Describe what is wrong with a schedule; "" for nothing."""
    if text.startswith("@"):
        return "" if _NAMED.fullmatch(text) else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_CRON):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (least, most, _) in zip(fields, _CRON, strict=True):
        for part in field.split(","):
            if not _PART.fullmatch(part):
                return f"failed to parse int from {part}"
            for number in re.findall(r"\d+", part.partition("/")[0]):
                if int(number) > most:
                    return f"end of range ({number}) above maximum ({most}): {part}"
                if int(number) < least:
                    return f"beginning of range ({number}) below minimum ({least}): {part}"
    return ""
