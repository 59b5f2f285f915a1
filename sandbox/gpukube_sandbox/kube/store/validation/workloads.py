"""Validation of workloads: replicas, template, update strategy.

Source: kubernetes pkg/apis/apps/validation, pkg/apis/batch/validation; schedules as robfig/cron parses them.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.selectors import matches_selector
from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    forbidden,
    invalid,
    label_selector,
    one_of,
    positive,
    required,
    unsupported,
)
from gpukube_sandbox.kube.store.validation.pods import check_template
from gpukube_sandbox.kube.store.validation.storage import check_claim_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_PERCENT = re.compile(r"[0-9]+%")
_NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_FREE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip
_OF_STATEFUL = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_OF_JOBS = ("OnFailure", "Never")
_LONGEST_CRON = 52
_MAX_INDEXED = 100_000
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_CRON: tuple[tuple[int, int, Sequence[str]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
"""Minimum, maximum, and names of each field."""
_ENDS = 2
_NAMED = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every ([0-9.]+(ns|us|ms|s|m|h))+)")
_PART = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")


def share(field: str, value: Any, *, maximum: bool = True) -> Iterator[Cause]:  # noqa: ANN401 - a number or a text
    """Reject a value that is neither a number nor a percentage of pods."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid(field, value, _NOT_PERCENT)
        elif maximum and int(value[:-1]) > 100:  # noqa: PLR2004 - percent
            yield invalid(field, value, "must not be greater than 100%")
    else:
        yield from positive(field, value)


def _is_none(value: Any) -> bool:  # noqa: ANN401 - as above
    return value in {0, "0%"}


def check_deployment(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid Deployment or update strategy."""
    spec = new.get("spec") or {}
    yield from _replicated(new, old)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") not in {None, "Recreate", "RollingUpdate"}:
        yield unsupported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    rolling, path = strategy.get("rollingUpdate") or {}, "spec.strategy.rollingUpdate"
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    yield from share(f"{path}.maxUnavailable", rolling.get("maxUnavailable"))
    yield from share(f"{path}.maxSurge", rolling.get("maxSurge"), maximum=False)
    if _is_none(rolling.get("maxUnavailable", 1)) and _is_none(rolling.get("maxSurge", 1)):
        yield invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
    ready, deadline = spec.get("minReadySeconds") or 0, spec.get("progressDeadlineSeconds")
    yield from positive("spec.minReadySeconds", ready)
    yield from positive("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    if deadline is not None and deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _replicated(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from positive("spec.replicas", (new.get("spec") or {}).get("replicas"))
    yield from _selecting(new, old)


def _selecting(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid template, and a selector that does not match its pods or changes."""
    spec = new.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from label_selector("spec.selector", selector)
    if not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions"):
        text = f"empty selector is invalid for {new['kind'].lower()}"
        yield invalid("spec.selector", selector, text) if selector is not None else required("spec.selector")
    labels = (template.get("metadata") or {}).get("labels")
    if not matches_selector(labels or {}, selector):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from check_template(template, "spec.template")
    if old is not None and (old.get("spec") or {}).get("selector") != selector:
        yield invalid("spec.selector", selector, "field is immutable")


def check_replica_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid ReplicaSet."""
    yield from _replicated(new, old)


def check_stateful_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid StatefulSet, and changes of immutable fields."""
    spec = new.get("spec") or {}
    yield from _replicated(new, None)
    yield from dns_label("metadata.name", str((new.get("metadata") or {}).get("name") or ""))
    policy, updates = spec.get("podManagementPolicy"), spec.get("updateStrategy") or {}
    if policy not in {None, "OrderedReady", "Parallel"}:
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    if updates.get("type") not in {None, "RollingUpdate", "OnDelete"}:
        yield invalid("spec.updateStrategy", updates["type"], "must be 'RollingUpdate' or 'OnDelete'")
    partition = (updates.get("rollingUpdate") or {}).get("partition")
    yield from positive("spec.updateStrategy.rollingUpdate.partition", partition)
    yield from positive("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    kept = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        yield from one_of(f"spec.persistentVolumeClaimRetentionPolicy.{key}", kept.get(key), ("Delete", "Retain"))
    if old is None:
        yield from dns_label("spec.serviceName", spec["serviceName"]) if spec.get("serviceName") else ()
        for at, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            yield from check_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{at}].spec")
        return
    was = old.get("spec") or {}
    if any(was.get(key) != spec.get(key) for key in (was.keys() | spec.keys()) - _FREE):
        yield forbidden("spec", _OF_STATEFUL)


def check_daemon_set(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid DaemonSet."""
    spec = new.get("spec") or {}
    yield from _selecting(new, old)
    yield from positive("spec.minReadySeconds", spec.get("minReadySeconds"))
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
    """Reject an invalid Job, and changes of its template."""
    spec = new.get("spec") or {}
    yield from _job_spec(spec, "spec")
    marks = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not matches_selector(marks or {}, spec.get("selector")):
        yield invalid("spec.template.metadata.labels", marks, "`selector` does not match template `labels`")
    if old is None:
        return
    was = old.get("spec") or {}
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
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
    for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(key) is not None and mode != "Indexed":
            yield invalid(f"{path}.{key}", spec[key], "requires indexed completion mode")
    if mode == "Indexed" and (spec.get("parallelism") or 0) > _MAX_INDEXED:
        text = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
        yield invalid(f"{path}.parallelism", spec["parallelism"], text)
    template, failing = spec.get("template") or {}, spec.get("podFailurePolicy")
    instead = ("Failed",) if failing is not None else ("Failed", "TerminatingOrFailed")
    yield from one_of(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), instead)
    yield from check_template(template, f"{path}.template", _OF_JOBS)
    if failing is None:
        return
    restart = (template.get("spec") or {}).get("restartPolicy")
    if restart == "OnFailure":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{path}.template.spec.restartPolicy", restart, text)
    for at, rule in enumerate(failing.get("rules") or ()):
        yield from _failure_rule(rule, f"{path}.podFailurePolicy.rules[{at}]", indexed=mode == "Indexed")


def _failure_rule(rule: JsonObject, path: str, *, indexed: bool) -> Iterator[Cause]:
    action, codes = rule.get("action"), rule.get("onExitCodes")
    yield from one_of(f"{path}.action", action, ("Count", "FailIndex", "FailJob", "Ignore"))
    if action == "FailIndex" and not indexed:
        yield invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    if codes is None:
        return
    values = codes.get("values") or []
    yield from one_of(f"{path}.onExitCodes.operator", codes.get("operator"), ("In", "NotIn"))
    if not values:
        yield invalid(f"{path}.onExitCodes.values", values, "at least one value is required")
    if codes.get("operator") == "In" and 0 in values:
        place = f"{path}.onExitCodes.values[{values.index(0)}]"
        yield invalid(place, 0, "must not be 0 for the In operator")
    if values != sorted(values):
        yield invalid(f"{path}.onExitCodes.values", values, "must be ordered")


def check_cron_job(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a CronJob with an invalid schedule, time zone, or Job template."""
    spec, name = new.get("spec") or {}, str((new.get("metadata") or {}).get("name", ""))
    if old is None and len(name) > _LONGEST_CRON:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON} characters")
    for key in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from positive(f"spec.{key}", spec.get(key))
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
    """Return the error in a schedule; "" if it is valid."""
    if text.startswith("@"):
        return "" if _NAMED.fullmatch(text) else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_CRON):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    faults = (_part(part, *rule) for field, rule in zip(fields, _CRON, strict=True) for part in field.split(","))
    return next(filter(None, faults), "")


def _part(part: str, minimum: int, maximum: int, names: Sequence[str]) -> str:
    if not _PART.fullmatch(part):
        return f"failed to parse int from {part}"
    numbers = [int(number) for number in re.findall(r"\d+", part.partition("/")[0])]
    if len(numbers) == _ENDS and numbers[0] > numbers[1]:
        return f"beginning of range ({numbers[0]}) beyond end of range ({numbers[1]}): {part}"
    if part.partition("/")[2] == "0":
        return f"step of range should be a positive number: {part}"
    if unknown := [word for word in re.findall("[A-Za-z]+", part) if word.upper() not in names]:
        return f'failed to parse int from {unknown[0]}: strconv.Atoi: parsing "{unknown[0]}": invalid syntax'
    for number in numbers:
        if number > maximum:
            return f"end of range ({number}) above maximum ({maximum}): {part}"
        if number < minimum:
            return f"beginning of range ({number}) below minimum ({minimum}): {part}"
    return ""
