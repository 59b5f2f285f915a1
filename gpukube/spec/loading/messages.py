"""Converts pydantic's errors to findings: position, field path, what is wrong, and what to write instead.

In scope: the table from pydantic's error types to diagnostics. Out of scope: gpukube's own checks.

Users never see pydantic's messages: they describe Python types and link to pages about Python. An error type that is
not in the table (from a newer pydantic) still results in position, path, and value.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from gpukube.errors import Finding, Where
from gpukube.spec.base import DURATION
from gpukube.spec.clusters import CLOUDS
from gpukube.spec.model import (
    CLUSTER_MODELS,
    NODES,
    PROVIDERS,
    SHARE,
    TYPE_MAP,
    TYPE_NAME,
    Pool,
    PoolSettings,
    SpecModel,
)
from gpukube.spec.reference.fields import Field, keys_of, lookup, places_in_pool
from gpukube.spec.reference.formats import FORMATS
from gpukube.spec.reference.other_words import field_for
from gpukube.spec.wording import choices, did_you_mean, fold, nearest, nearest_first, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from gpukube.spec.source.positions import Path, Positions

_KEY_MARK: Final = "[key]"
_TAGS: Final = frozenset({TYPE_NAME, TYPE_MAP, NODES, SHARE})
_MOST_KEYS: Final = 12
_OF_POOLS: Final = frozenset({Pool, PoolSettings})


class AtPath(NamedTuple):
    """A finding, and its path relative to the validated part (to recognize repetitions)."""

    finding: Finding
    path: Path


class _Context(NamedTuple):
    """One error with everything that a row of the table may need."""

    kind: str
    path: Path
    value: object
    limits: Mapping[str, object]
    model: type[SpecModel]
    positions: Positions

    @property
    def field(self) -> Field | None:
        return lookup(self.model, self.path)[1]

    @property
    def name(self) -> str:
        return self.positions.path(self.path) or "the spec"

    @property
    def key(self) -> str:
        return str(self.path[-1]) if self.path else "the spec"

    @property
    def spelling(self) -> str | None:
        return self.positions.origin.spellings.get(self.positions.mark_at(self.path))

    @property
    def is_variable(self) -> bool:
        return isinstance(self.value, str) and self.spelling is not None

    @property
    def seen(self) -> str:
        return shown(self.value, self.spelling)

    @property
    def example(self) -> str | None:
        field = self.field
        return field.example if field else None

    def assign(self, value: str) -> str:
        """Return the field with a value, as YAML or as the --set it came from; only the value for an item of a list."""
        if self.positions.at(self.path).source.startswith("--set "):
            argument = f"{self.positions.path(self.path)}={value}"
            return f"--set {shlex.quote(argument)}" if re.search(r"""[\s"'{}\[\]$]""", value) else f"--set {argument}"
        return f"{self.key}: {value}" if self.path and isinstance(self.path[-1], str) else value

    def say(self, code: str, message: str, fix: str, why: str = "") -> Finding:
        return Finding(code, self.positions.at(self.path), f"{self.name} {message}", fix=fix, why=why)


def explain(error: ValidationError, model: type[SpecModel], positions: Positions) -> tuple[AtPath, ...]:
    """Translate every error of a validation.

    Args:
        error: Pydantic's error.
        model: The model that was validated.
        positions: Positions of the data that was validated.
    """
    contexts = [_context(detail, model, positions) for detail in error.errors(include_url=False)]
    unknown = [c for c in contexts if c.kind == "extra_forbidden"]
    misspelt: set[Path] = {(*c.path[:-1], near) for c in unknown if (near := _suggested(c))}
    misspelt |= {tuple(meant.split(".")) for c in unknown if (meant := _other_word(c))}
    return tuple(
        AtPath(_explain(context), context.path)
        for context in contexts
        if not (context.kind == "missing" and context.path in misspelt)  # already reported: write sizeGiB, not size_gib
    )


def intended(error: ValidationError, model: type[SpecModel], positions: Positions) -> frozenset[Path]:
    """Return the fields that unknown keys probably mean, in the same mapping and elsewhere."""
    found: set[Path] = set()
    for context in (_context(detail, model, positions) for detail in error.errors(include_url=False)):
        if context.kind == "extra_forbidden":
            if near := _suggested(context):
                found.add((*context.path[:-1], near))
            elif meant := _other_word(context):
                found.add(tuple(meant.split(".")))
            if model in _OF_POOLS:
                found |= {tuple(place.split(".")) for place in places_in_pool().get(context.key, ())}
    return frozenset(found)


def _context(detail: ErrorDetails, model: type[SpecModel], positions: Positions) -> _Context:
    path, about_key = path_of(detail, positions)
    kind = f"{_KEY_MARK} {detail['type']}" if about_key else detail["type"]
    return _Context(kind, path, cast("object", detail["input"]), detail.get("ctx", {}), model, positions)


def _explain(context: _Context) -> Finding:
    if context.value is None and context.kind not in {"missing", "extra_forbidden"}:
        return empty_value(context.positions, context.path)
    return _ROWS.get(context.kind, _other)(context)


def path_of(detail: ErrorDetails, positions: Positions) -> tuple[Path, bool]:
    """Convert pydantic's location to a path in the data: without tags of unions and markers of keys."""
    path: Path = tuple(step for step in detail["loc"] if step not in _TAGS)
    about_key = bool(path) and path[-1] == _KEY_MARK
    path = path[:-1] if about_key else path
    return (path if detail["type"] == "missing" else _written(path, positions)), about_key


def _written(path: Path, positions: Positions) -> Path:
    """Omit steps that are not in the data: pydantic adds names of Python types in free-form mappings."""
    written: Path = ()
    for step in path:
        if positions.has((*written, step)):
            written = (*written, step)
    return written


def _missing(c: _Context) -> Finding:
    example = c.example
    if example is None and c.field is not None:
        example = _shape(c.field) or next(iter(c.field.choices), None)
    return c.say("missing-key", "is missing", f"add {c.assign(example or '...')}")


def _too_short(c: _Context) -> Finding:
    example = c.example or (_shape(c.field) if c.field else "")
    return c.say("empty-value", "is empty", f"write {c.assign(example)}" if example else "write a value, or remove it")


def _shape(field: Field) -> str:
    """Return a sketch of a mapping or list of mappings: {min: ..., max: ...}."""
    if field.model is None:
        return ""
    required = [name for name in keys_of(field.model) if _is_required(field.model, name)] or [keys_of(field.model)[0]]
    return "{" + ", ".join(f"{name}: ..." for name in required) + "}"


def _is_required(model: type[SpecModel], key: str) -> bool:
    found = lookup(model, (key,))[1]
    return found is not None and found.info.is_required()


def _suggested(c: _Context) -> str | None:
    """Return the key of the same mapping that an unknown one probably means."""
    holder, _ = lookup(c.model, c.path)
    if holder is None:
        return None
    known, meant = keys_of(holder), _other_word(c)
    return meant if meant in known else nearest(c.key, known)


_CLUSTER_WORDS: Final[Mapping[type[SpecModel], Mapping[str, str]]] = {
    cloud.cluster: cloud.cluster_words for cloud in CLOUDS.values()
}
"""Other tools' and clouds' names of a cluster's fields."""


def _other_word(c: _Context) -> str | None:
    if c.model in _CLUSTER_WORDS and len(c.path) == 1:
        return _CLUSTER_WORDS[c.model].get(fold(c.key))
    within = ".".join(step for step in c.path[:-1] if isinstance(step, str))
    return field_for(c.key, within) if c.model in _OF_POOLS else None


def _unknown_key(c: _Context) -> Finding:
    holder, _ = lookup(c.model, c.path)
    parent = c.positions.path(c.path[:-1]) or "the spec"
    where, message = c.positions.key_at(c.path), f"{parent} has no {quoted(c.key)}"
    known = keys_of(holder) if holder else ()
    meant = _other_word(c) or _suggested(c)
    fix = did_you_mean(meant) if meant else _elsewhere(c, holder) or _list_keys(c.key, known)
    return Finding("unknown-key", where, message, fix=fix)


def _elsewhere(c: _Context, holder: type[SpecModel] | None) -> str:
    """Return the fix for a key that belongs elsewhere in the pool, or in its cluster."""
    if holder is PoolSettings and c.key in keys_of(Pool):
        return "write it in each pool; it is not allowed in defaults"
    if holder is None or c.model not in _OF_POOLS:
        return ""
    if places := places_in_pool().get(c.key, ()):
        return f"move it to {choices(place.rpartition('.')[0] or 'the pool' for place in places)}"
    ours = any(c.key in keys_of(model) for model in CLUSTER_MODELS.values())
    return "move it to the cluster, under clusters" if ours else ""


def _list_keys(written: str, known: tuple[str, ...]) -> str:
    listed = nearest_first(written, known)[:_MOST_KEYS]
    more = ", ..." if len(known) > len(listed) else ""
    return f"remove it; keys here: {', '.join(listed)}{more}"


def _unknown_provider(c: _Context) -> Finding:
    parent = c.positions.path(c.path[:-1])
    message = f"{parent} has no {quoted(c.key)}; its keys are providers"
    return Finding("unknown-key", c.positions.key_at(c.path), message, fix=_write_provider(c.key))


_ALSO_CALLED: Final = {word: name for name, cloud in CLOUDS.items() for word in cloud.also_called}


def _write_provider(written: str) -> str:
    """Return the fix for an unknown provider; a cloud's name means its Kubernetes service."""
    meant = _ALSO_CALLED.get(written.casefold()) or nearest(written, PROVIDERS)
    return did_you_mean(meant) if meant else f"write {choices(PROVIDERS)}"


def _key_format(c: _Context) -> Finding:
    message = f"{c.positions.path(c.path[:-1])} has the key {quoted(c.key)}; {FORMATS[str(c.limits['pattern'])]}"
    return Finding("format", c.positions.key_at(c.path), message, fix="write for example train-aks")


# (part of the path, value) -> fix, for choices that are missing on purpose.
_CHOICE_FIXES: Final[dict[tuple[str, str], str]] = {
    ("strategy", "none"): "remove sharing.mig to get whole GPUs",
    ("type", "preemptible"): "write spot",
}


def _choice(c: _Context) -> Finding:
    written = c.value if isinstance(c.value, str) else str(c.value)
    known = nearest_first(written, c.field.choices if c.field else ())
    meant = nearest(written, known)
    fix = _CHOICE_FIXES.get((c.key, written)) or (did_you_mean(meant) if meant else f"write {choices(known)}")
    return c.say("choice", f"is {c.seen}; it can be {choices(known)}", fix)


def _range(c: _Context) -> Finding:
    if c.key == "maxPrice":
        return c.say("range", f"is {c.value}; it must be more than 0", "remove it to pay up to the on-demand price")
    limit, words, fix = next((c.limits[key], *texts) for key, texts in _LIMITS.items() if key in c.limits)
    limit_text = f"{limit:g}" if isinstance(limit, float) else str(limit)
    if c.key == "maxPodsPerNode" and words is _LIMITS["le"][0]:
        fix += ", on AKS 250"
    return c.say("range", f"is {c.value}; {words} {limit_text}", f"write {fix.format(limit_text)}")


_LIMITS: Final[dict[str, tuple[str, str]]] = {
    "ge": ("the minimum is", "{} or more"),
    "gt": ("it must be more than", "a number above {}"),
    "le": ("the maximum is", "{} or less"),
}


def _format(c: _Context) -> Finding:
    if not c.value:
        return _too_short(c)
    expected = FORMATS[str(c.limits["pattern"])]
    return c.say("format", f"is {c.seen}; {expected}", f"write for example {c.assign(c.example or '...')}")


def _text(c: _Context) -> Finding:
    if isinstance(c.value, bool | int | float):
        written = c.spelling or str(c.value).lower()
        what = "boolean" if isinstance(c.value, bool) else "number"
        if c.field and DURATION in str(c.field.info.metadata) and not isinstance(c.value, bool):
            return c.say(
                "type", f"is {c.seen}; expected a duration", f"write {c.assign(f'{c.value}s')}, or {c.example}"
            )
        return c.say(
            "type",
            f"is {c.seen}; expected a string",
            f"write {c.assign(quoted(written))}",
            why=f"YAML reads an unquoted {written} as a {what}",
        )
    if c.key == "instanceType" and isinstance(c.value, list):
        named = [item for item in c.value if isinstance(item, str)]
        fix = f"write {c.assign(named[0] if named else 'TYPE')}, and a separate pool for each other type"
        return c.say("type", "is a list; a pool has one type", fix)
    return c.say("type", f"is {c.seen}; expected a string", f"write {c.assign(c.example or '...')}")


def _from_variable(c: _Context, expected: str) -> Finding:
    fix = f"remove it here and pass --set {c.positions.path(c.path)}=VALUE"
    return c.say("type", f"is {c.seen}; expected {expected}", fix, why="${...} is always a string")


def _number(c: _Context) -> Finding:
    expected = "a number" if c.kind.startswith("float") else "a whole number"
    message = f"is {c.seen}; expected {expected}"
    if c.is_variable:
        return _from_variable(c, expected)
    if isinstance(c.value, str) and c.value.strip().isdecimal():
        return c.say("type", message, f"write {c.assign(c.value.strip())} without quotes")
    if isinstance(c.value, float) and c.value.is_integer():
        return c.say("type", message, f"write {c.assign(str(int(c.value)))}")
    if isinstance(c.value, float) and c.key == "count" and 0 < c.value < 1:
        fix = "instead of gpu, write an instanceType with a fraction of a GPU, such as g6f.large"
        return c.say("type", message, fix, "a node has whole GPUs; to share one, see sharing")
    return c.say("type", message, f"write for example {c.assign(c.example or '1')}")


def _boolean(c: _Context) -> Finding:
    if c.is_variable:
        return _from_variable(c, "true or false")
    why = "in YAML 1.2 only true and false are booleans" if isinstance(c.value, str) else ""
    return c.say(
        "type", f"is {c.seen}; expected true or false", f"write {c.assign('true')} or {c.assign('false')}", why
    )


def _mapping(c: _Context) -> Finding:
    field = c.field
    sketch = _shape(field) if field else ""
    return c.say("type", f"is {c.seen}; expected a mapping", f"write {c.assign(sketch or '{key: value}')}")


def _list(c: _Context) -> Finding:
    if isinstance(c.value, int | float) and not isinstance(c.value, bool):
        return c.say(
            "type", f"is {c.seen}; expected a list", f"write {c.assign(f'[{quoted(c.spelling or str(c.value))}]')}"
        )
    one = str(c.value) if isinstance(c.value, str) and re.fullmatch(r"[\w-]+", c.value) and not c.spelling else "..."
    return c.say("type", f"is {c.seen}; expected a list", f"write {c.assign(f'[{one}]')}")


def _finite(c: _Context) -> Finding:
    return c.say("type", f"is {c.seen}; expected a finite number", "write a number with digits")


def _other(c: _Context) -> Finding:
    return c.say("type", f"is {c.seen}, which is not allowed here", "see the field in: gpukube schema")


_ROWS: Final[dict[str, Callable[[_Context], Finding]]] = {
    f"{_KEY_MARK} literal_error": _unknown_provider,
    f"{_KEY_MARK} string_pattern_mismatch": _key_format,
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "literal_error": _choice,
    "greater_than_equal": _range,
    "greater_than": _range,
    "less_than_equal": _range,
    "string_too_short": _too_short,
    "too_short": _too_short,
    "string_pattern_mismatch": _format,
    "string_type": _text,
    "int_type": _number,
    "float_type": _number,
    "finite_number": _finite,
    "bool_type": _boolean,
    "dict_type": _mapping,
    "model_type": _mapping,
    "tuple_type": _list,
}


def empty_value(positions: Positions, path: Path) -> Finding:
    """Return the finding for a key without a value."""
    return Finding(
        "empty-value",
        positions.at(path),
        f"{positions.path(path)} is empty",
        fix="write a value, or remove the key",
    )


def not_a_mapping(value: object, where: Where) -> Finding:
    """Return the finding for a document whose root is not a mapping."""
    return Finding(
        "type",
        where,
        f"the document is {shown(value, '...')}; expected a mapping",
        fix="start it with apiVersion: gpukube.io/v1alpha1",
    )


def unnamed_provider(written: object, positions: Positions) -> Finding:
    """Return the finding for a cluster that names no known cloud."""
    name = positions.path("provider")
    if not positions.has("provider"):
        fix = f"add provider: {choices(PROVIDERS)}"
        return Finding("missing-key", positions.at(), f"{name} is missing", fix=fix)
    seen = shown(written, positions.origin.spellings.get(positions.mark_at("provider")))
    message = f"{name} is {seen}; it can be {choices(PROVIDERS)}"
    return Finding("choice", positions.at("provider"), message, fix=_write_provider(str(written)))
