"""The ConfigMap of the priority expander: which groups the autoscaler prefers; pure.

In scope: reading it, choosing by it, the warnings about both. Out of scope: the other expanders (`expanding`).

Source: kubernetes-sigs/cluster-autoscaler pkg/expander/priority (priority.go, readme.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from gpukube_sandbox.kube.autoscaler.gopatterns import PatternError, compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from gpukube_sandbox.kube.store.objects import JsonObject

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
_KEY: Final = "priorities"
_INVALID, _UNMATCHED, _NONE_MATCHED = (
    "PriorityConfigMapInvalid",
    "PriorityConfigMapNotMatchedGroup",
    "PriorityConfigMapNoGroupMatched",
)
_LOWEST: Final = -1
"""Groups with lower numbers are never chosen."""


class PriorityError(ValueError):
    """A ConfigMap that the expander does not understand."""


@dataclass(frozen=True, slots=True)
class Preference:
    """What the expander makes of the options.

    Attributes:
        chosen: Names of the groups that are left; None if nothing is filtered.
        warnings: Reason and message of events about the ConfigMap.
        is_unusable: The ConfigMap is missing or invalid.
    """

    chosen: AbstractSet[str] | None
    warnings: tuple[tuple[str, str], ...] = ()
    is_unusable: bool = False


def prefer(config: JsonObject | None, groups: Iterable[str]) -> Preference:
    """Return the groups with the highest priority, by their names.

    Args:
        config: The ConfigMap; None if there is none.
        groups: Names of the groups that could grow.
    """
    if config is None:
        return Preference(None, is_unusable=True)
    try:
        priorities = parse(config)
    except PriorityError as error:
        return Preference(None, ((_INVALID, str(error)),), is_unusable=True)
    best, chosen = _LOWEST, set[str]()
    warnings = []
    for group in groups:
        found = [number for number, patterns in priorities.items() if any(one.search(group) for one in patterns)]
        if not found:
            text = f"Priority expander: node group {group} not found in priority expander configuration. "
            warnings.append((_UNMATCHED, f"{text}The group won't be used."))
        elif (highest := max(found)) >= best:
            chosen = {*(chosen if highest == best else ()), group}
            best = highest
    if not chosen:
        text = "Priority expander: no priorities info found for any of the expansion options. No options filtered."
        return Preference(None, (*warnings, (_NONE_MATCHED, text)))
    return Preference(chosen, tuple(warnings))


def parse(config: JsonObject) -> dict[int, list[re.Pattern[str]]]:
    """Read a ConfigMap: number -> patterns that are searched in group names. Of equal numbers, the last one counts.

    Raises:
        PriorityError: It has no priorities, or they are not lists of patterns by number.
    """
    text = (config.get("data") or {}).get(_KEY)
    if text is None:
        message = f"Wrong configmap for priority expander, doesn't contain {_KEY} key. Ignoring update."
        raise PriorityError(message)
    try:
        return _read(str(text))
    except PriorityError as error:
        message = f"Wrong configuration for priority expander: {error}. Ignoring update."
        raise PriorityError(message) from None


def _read(text: str) -> dict[int, list[re.Pattern[str]]]:
    if not text:
        message = f"priority configuration in {CONFIG_MAP} configmap is empty; please provide valid configuration"
        raise PriorityError(message)
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _unreadable(" ".join(str(error).split())) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _unreadable("the priorities are no map")
    return {_number(key): _patterns(key, listed) for key, listed in found.items()}


def _number(key: object) -> int:
    if not isinstance(key, int) or isinstance(key, bool):
        raise _unreadable(f"cannot unmarshal {key!r} into int")
    return key


def _patterns(number: int, listed: object) -> list[re.Pattern[str]]:
    if listed is None:
        return []
    if not isinstance(listed, list) or any(isinstance(item, dict | list) for item in listed):
        raise _unreadable(f"cannot unmarshal {listed!r} into []string")
    found = []
    for item in listed:
        try:
            found.append(compile_pattern("" if item is None else str(item)))
        except PatternError as error:
            message = f"Can't compile regexp rule for priority {number} and rule {item}: {error}"
            raise PriorityError(message) from None
    return found


def _unreadable(why: str) -> PriorityError:
    return PriorityError(f"Can't parse YAML with priorities in the configmap: {why}")
