"""Merges defaults into pools, on plain data, so that every value keeps its position in the file.

In scope: the merge. Out of scope: models, checking values.

The pool's values take precedence. Mappings are merged key by key; lists and scalars are replaced. If fields are
alternatives, a plain merge could create a pool that nobody wrote, so the pool's choice drops the alternative that only
the defaults name:

- `gpu`, `instanceType`, and `instanceTypes`: a pool that sets one of them does not get the others from the defaults.
- `nodes` and `sharing`: a pool that sets the mapping chooses its kinds (count or autoscaling; mig, timeSlicing,
  mps). Kinds that only the defaults name are dropped; the settings of a kind that both name are merged. So
  `sharing: {}` means whole GPUs regardless of the defaults.
- `capacity`: a pool that sets another `type` than the defaults gets nothing else from them (a maxPrice).
- below `sharing.mig` and `capacity.reserved`, a pool that sets one of several forms gets no other form.

`name` and `names` belong to one pool and never come from the defaults.

An alternative is laid over its pool in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.spec.reserved import RESERVED_FORMS
from gpukube.spec.source.positions import PositionedDict

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.spec.source.positions import Data

_ALTERNATIVES: Final = ("gpu", "instanceType", "instanceTypes")
_KINDS: Final = ("nodes", "sharing")
_FORMS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("sharing", "mig"): ("profile", "layout"),
    **{("capacity", "reserved", provider): forms for provider, forms in RESERVED_FORMS.items()},
}
"""Mappings that contain one of several forms."""


def merge_defaults(defaults: PositionedDict, pool: PositionedDict, known: Collection[str]) -> PositionedDict:
    """Merge defaults into one pool.

    Args:
        defaults: The spec's `defaults`; not modified.
        pool: One item of `pools`; not modified.
        known: Keys to merge from the defaults; others are reported there, once.

    Returns:
        A new mapping; parts that only one side has are shared with it.
    """
    merged = pool.clone()
    chosen = any(key in pool for key in _ALTERNATIVES)
    for key in defaults:
        if key not in known or (chosen and key in _ALTERNATIVES and key not in pool):
            continue
        if key not in pool:
            merged.take(key, defaults)
        else:
            merged[key] = _merge_field(key, defaults[key], pool[key])
    return merged


def _merge_field(key: str, below: Data, above: Data) -> Data:
    """Merge one field that both sides set; the pool's value wins unless both are mappings."""
    if not (isinstance(below, PositionedDict) and isinstance(above, PositionedDict)):
        return above
    if key in _KINDS:
        below = _only(below, above)
    if key == "capacity" and "type" in above and "type" in below and above["type"] != below["type"]:
        return above
    return _merge_mappings(below, above, (key,))


def _only(mapping: PositionedDict, kinds: Collection[str]) -> PositionedDict:
    """Return only the given keys of a mapping."""
    kept = PositionedDict(mapping.origin, mapping.mark)
    for key in mapping:
        if key in kinds:
            kept.take(key, mapping)
    return kept


def _merge_mappings(below: PositionedDict, above: PositionedDict, path: tuple[str, ...]) -> PositionedDict:
    """Merge two mappings key by key, all levels."""
    merged = above.clone()
    forms = _FORMS.get(path, ())
    chosen = any(form in above for form in forms)
    for key in below:
        if key not in above:
            if not (chosen and key in forms):
                merged.take(key, below)
            continue
        lower, upper = below[key], above[key]
        if isinstance(lower, PositionedDict) and isinstance(upper, PositionedDict):
            merged[key] = _merge_mappings(lower, upper, (*path, key))
    return merged
