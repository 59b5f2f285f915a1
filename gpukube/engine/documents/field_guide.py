"""How each cloud implements a pool field: fidelity, and the effect of a change on a live pool. Pure functions.

In scope: mapping a field of the spec to features and updatability rows of the providers, and the document that
`explain` shows. Out of scope: facts about a cloud (the providers), descriptions of fields (spec.fieldguide).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import DRIVER, GPU, INSTANCE_TYPE, PLUGIN, TAINTS, FieldPath, label, tag
from gpukube.core.values import Change
from gpukube.engine.plan.fidelity import features_at
from gpukube.provider import load_provider, provider_names
from gpukube.spec.reference.fieldguide import explain_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import UpdateRow
    from gpukube.engine.documents.shapes.explanation import Effect, Faith, FieldDocument, FieldPart
    from gpukube.provider import Provider
    from gpukube.spec.reference.fieldguide import FieldPage

_CONFIG: Final = label("nvidia.com/device-plugin.config")
_CUT: Final = label("nvidia.com/mig.config")
_LABEL: Final = label("team")
_ALSO: Final[Mapping[tuple[str, ...], tuple[FieldPath, ...]]] = {
    ("gpu",): (INSTANCE_TYPE,),
    ("gpu", "count"): (GPU,),
    ("gpuTaint",): (TAINTS,),
    ("labels",): (_LABEL, _CONFIG, _CUT),
    ("tags",): (tag("team"),),
    ("driver", "owner"): (DRIVER,),
    ("devicePlugin", "owner"): (PLUGIN, label("gpukube.io/advertiser")),
    ("sharing", "mig", "profile"): (_CUT,),
    ("sharing", "mig", "layout"): (_CUT,),
    ("sharing", "mig", "strategy"): (_CONFIG,),
    ("sharing", "timeSlicing"): (_CONFIG,),
    ("sharing", "mps"): (_CONFIG,),
}
"""Pool field, including its subfields -> comparable fields that it becomes, besides the one of the same name."""


def field_document(text: str, *, recursive: bool) -> FieldDocument:
    """Return the explanation of a field.

    Args:
        text: Field, in the form that spec.fieldguide.explain_field accepts.
        recursive: Also explain how clouds implement all fields below it.

    Raises:
        SpecError: no-field.
    """
    clouds = [load_provider(name) for name in provider_names()]
    part = _part(explain_field(text), clouds, with_fields=True, recursive=recursive)
    return {"schemaVersion": 1, "kind": "FieldExplanation", **part}


def _part(page: FieldPage, clouds: list[Provider], *, with_fields: bool, recursive: bool) -> FieldPart:
    """Describe a page, with what clouds do if it is expanded; include only direct subfields unless recursive."""
    path = _in_pool(page.path)
    concerned = [cloud for cloud in clouds if cloud.name in _concerned(path, clouds)] if with_fields and path else []
    return {
        "field": page.path,
        "type": page.type,
        "required": page.required,
        "default": page.default,
        "choices": list(page.choices),
        "known": list(page.known),
        "limits": page.limits,
        "description": page.description,
        "examples": list(page.examples),
        "providers": list(page.providers),
        "fidelity": [found for cloud in concerned for found in _fidelities(path, cloud)],
        "changes": [found for cloud in concerned for found in _effects(path, page, cloud)],
        "fields": [
            _part(field, clouds, with_fields=recursive, recursive=recursive)
            for field in page.fields
            if with_fields or recursive
        ],
    }


def _in_pool(path: str) -> str:
    """Return the path within a pool: sharing.mig for pools[].sharing.mig; "" if it is not a field of a pool."""
    for head in ("pools[].", "defaults."):
        if path.startswith(head):
            return path.removeprefix(head).replace("[]", "")
    return ""


def _concerned(path: str, clouds: list[Provider]) -> set[str]:
    """Return the clouds that read the field: the one named by its path, or all."""
    names = {cloud.name for cloud in clouds}
    return names & set(path.split(".")) or names


def _fidelities(path: str, cloud: Provider) -> Iterator[Faith]:
    abilities = cloud.abilities()
    for feature in features_at(path) or (path,):  # a plain field is its own feature
        if ability := abilities.get(feature):
            yield {
                "provider": cloud.name,
                "feature": feature,
                "fidelity": ability.fidelity,
                "substitute": ability.substitute,
                "reason": ability.reason,
            }


def _effects(path: str, page: FieldPage, cloud: Provider) -> Iterator[Effect]:
    """Yield what the provider does when the field changes; each distinct answer once."""
    seen: set[tuple[str, str]] = set()
    for field in _fields(FieldPath(*path.split("."))):
        rows = [(direction, _row(cloud, field, old, new)) for direction, old, new in _changes(path, page)]
        alike = len({(row.kind, row.sentence) for _, row in rows if row}) == 1
        for direction, row in rows[:1] if alike else rows:
            if row is None or (row.kind, row.sentence) in seen:
                continue
            seen.add((row.kind, row.sentence))
            yield {
                "provider": cloud.name,
                "direction": "" if alike else direction,
                "kind": row.kind,
                "sentence": row.sentence,
                "source": row.source,
            }


def _fields(path: FieldPath) -> tuple[FieldPath, ...]:
    found = [path, *(field for above, fields in _ALSO.items() if path.is_below(*above) for field in fields)]
    if path.is_below("capacity", "reserved"):
        # A deeper field of the spec, such as flexStart.maxRunDuration, is compared directly below its cloud.
        found += [FieldPath(*path[:3]), FieldPath(*path[:3], path.key)]
    return tuple(dict.fromkeys(found))


def _row(cloud: Provider, field: FieldPath, old: object, new: object) -> UpdateRow | None:
    """Return the row of a field; None if the provider has no such row, or only the one for any label."""
    row = cloud.update_row(Change(field, old, new))
    if row.kind == "refused" or not row.source:
        return None
    if field.is_below("labels") and field != _LABEL:
        plain = cloud.update_row(Change(_LABEL, old, new))
        return None if (row.kind, row.sentence) == (plain.kind, plain.sentence) else row
    return row


_VALUES: Final[dict[str, tuple[tuple[str, object, object], ...]]] = {
    "taints": (("", (), ("dedicated=x:NoSchedule",)), ("NoExecute", (), ("dedicated=x:NoExecute",))),
    "kubernetesVersion": (("newer", "1.33", "1.34"), ("older", "1.34", "1.33")),
}
"""Pool field -> changes that providers judge by value: direction, old value, new value."""


def _changes(path: str, page: FieldPage) -> tuple[tuple[str, object, object], ...]:
    """Return representative values: for numbers and lists, in both directions."""
    if path in _VALUES:
        return _VALUES[path]
    if page.type == "integer":
        return ("more", 1, 2), ("fewer", 2, 1)
    if page.type == "[]string":
        return ("more", ("a",), ("a", "b")), ("fewer", ("a", "b"), ("a",))
    example = page.examples[0] if page.examples else "a"
    return (("", example, example),)
