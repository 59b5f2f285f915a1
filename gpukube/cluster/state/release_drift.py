"""Finds manual changes to the objects of gpukube's release whose values are correct.

In scope: a release's manifest and live objects -> drift; pure. Out of scope: reading objects (release_objects), what to
do about it (release.plan, release.reclaim), and statuses: those are health.

Each object is compared field by field with the release's own manifest. Defaults from the API server, and what
controllers and people add elsewhere, are not drift; but some additions change what the object does (a node selector
where the chart sets none, an argument, one more config entry), and those count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.state.manifest import documents
from gpukube.core.jsontree import Tree, text, tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Json: TypeAlias = object
Path: TypeAlias = tuple[str | int, ...]
Identity: TypeAlias = tuple[str, str, str]
"""Kind, namespace ("" if cluster-scoped), and name."""

_COMPARED_WHOLE: Final = frozenset(
    {"affinity", "binaryData", "data", "nodeSelector", "rules", "subjects", "tolerations"}
)
"""Fields below which everything beyond the manifest counts: the API server adds nothing there."""
_ADDITIONS: Final = _COMPARED_WHOLE | {
    "args",
    "command",
    "env",
    "envFrom",
    "hostNetwork",
    "initContainers",
    "nodeName",
    "paused",
    "runtimeClassName",
}
"""Fields that count even if the manifest does not set them."""
_GATED: Final = frozenset({"extendedResourceName"})
"""Fields that an API server drops where their feature is off; if missing, they do not count (kubernetes
pkg/registry/resource/deviceclass/strategy.go)."""
_ITEM_KEYS: Final = ("mountPath", "name")
"""Key of list items, if all have it and none twice (list-map-keys of core/v1)."""
_UNITS: Final[dict[str, Decimal]] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
}
"""Suffixes of quantities, which the API server rewrites ("1000m" to "1"; k8s.io/apimachinery pkg/api/resource)."""
_MOST_SAID: Final = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """One field of one object that differs from the release.

    Attributes:
        object: Kind and name, "DaemonSet gpukube-nvidia-device-plugin".
        field: Dotted, list items by their key: "spec.template.spec.containers[main].image"; "" if the whole object is
            missing.
        desired: Value in the release's manifest; None if it sets none.
        live: Live value; None if missing.
        path: Path of the live value, list positions as numbers, for removing it.
    """

    object: str
    field: str
    desired: Json
    live: Json
    path: Path = dataclasses.field(default=(), repr=False, compare=False)

    @property
    def gone(self) -> bool:
        """Whether the whole object is missing."""
        return not self.field


def manifest_objects(manifest: str) -> tuple[Tree, ...]:
    """Return a manifest's objects that are compared; empty if it is not YAML, which Helm never writes."""
    try:
        found = documents(manifest)
    except yaml.YAMLError:
        return ()
    return tuple(document for document in found if text(document, "kind") in RELEASE_TYPES)


def identity(obj: Tree) -> Identity:
    """Return the identity of an object; a document without a namespace belongs to the release's."""
    kind = text(obj, "kind")
    namespaced = kind in RELEASE_TYPES and RELEASE_TYPES[kind].namespaced
    namespace = (text(obj, "metadata", "namespace") or NAMESPACE) if namespaced else ""
    return kind, namespace, text(obj, "metadata", "name")


def find_drift(desired: Iterable[Tree], live: Iterable[Tree]) -> tuple[Drift, ...]:
    """Compare a manifest's objects with the live ones, in the manifest's order; ignore other live ones."""
    there = {identity(obj): obj for obj in live}
    found: list[Drift] = []
    for obj in desired:
        name = f"{text(obj, 'kind')} {text(obj, 'metadata', 'name')}"
        present = there.get(identity(obj))
        if present is None:
            found.append(Drift(name, "", "the object", None))
            continue
        found += [
            Drift(name, "".join(steps).removeprefix("."), old, new, path)
            for path, steps, old, new in _object_differences(obj, present)
        ]
    return tuple(found)


def describe_drift(found: Sequence[Drift]) -> list[str]:
    """Render drift in one line per object: "DaemonSet x is missing", "ConfigMap y: data[c-1] differs"."""
    lines = []
    for name in dict.fromkeys(item.object for item in found):
        fields = [
            item.field.removeprefix("spec.template.spec.").removeprefix("spec.")
            for item in found
            if item.object == name and not item.gone
        ]
        more = f" and {len(fields) - _MOST_SAID} more" if len(fields) > _MOST_SAID else ""
        verb = "differ" if len(fields) > 1 else "differs"
        lines.append(f"{name}: {', '.join(fields[:_MOST_SAID])}{more} {verb}" if fields else f"{name} is missing")
    return lines


_Difference: TypeAlias = tuple[Path, tuple[str, ...], object, object]


def _object_differences(desired: Tree, live: Tree) -> Iterator[_Difference]:
    for key in ("labels", "annotations"):
        start: tuple[Path, tuple[str, ...]] = ("metadata", key), (".metadata", f".{key}")
        yield from _differences(tree(desired, "metadata", key), tree(live, "metadata", key), *start, whole=False)
    declared = {key: value for key, value in desired.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    present = {key: value for key, value in live.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    yield from _differences(declared, present, (), (), whole=False)


def _differences(
    desired: object, live: object, path: Path, steps: tuple[str, ...], *, whole: bool
) -> Iterator[_Difference]:
    if (desired is None and not whole) or desired == live:  # most branches are equal: compare each only once
        return
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        for key, value in desired.items():
            if key in _GATED and key not in live:
                continue
            below = whole or key in _COMPARED_WHOLE
            yield from _differences(value, live.get(key), (*path, key), (*steps, _step(key, steps)), whole=below)
        for key, value in live.items():
            if key not in desired and (whole or key in _ADDITIONS) and not _is_empty(value):
                yield (*path, key), (*steps, _step(key, steps)), None, value
    elif isinstance(desired, list) and isinstance(live, list):
        yield from _of_lists(desired, live, path, steps, whole=whole)
    elif not _same(desired, live):
        yield path, steps, desired, live


def _step(key: str, steps: tuple[str, ...]) -> str:
    """Return one step of a field's name; user-chosen keys are in brackets."""
    chosen = bool(steps) and steps[-1] in (".data", ".labels", ".annotations", ".nodeSelector")
    return f"[{key}]" if chosen else f".{key}"


def _of_lists(
    desired: list[object], live: list[object], path: Path, steps: tuple[str, ...], *, whole: bool
) -> Iterator[_Difference]:
    key = _item_key(desired, live)
    if key:
        names = [text(item, key) for item in live]
        for item in desired:
            name = text(item, key)
            at = names.index(name) if name in names else len(names)
            there = live[at] if name in names else None
            yield from _differences(item, there, (*path, at), (*steps, f"[{name}]"), whole=whole)
        known = {text(item, key) for item in desired}
        for at, name in enumerate(names):
            if name not in known:
                yield (*path, at), (*steps, f"[{name}]"), None, live[at]
    elif len(desired) != len(live) or any(
        list(_differences(one, other, (), (), whole=whole)) for one, other in zip(desired, live, strict=True)
    ):
        yield path, steps, desired, live


def _item_key(*lists: list[object]) -> str:
    """Return the key that identifies the items of both lists, "" if none does."""
    for key in _ITEM_KEYS:
        named = [[text(item, key) for item in items] for items in lists]
        if all(names and all(names) and len({*names}) == len(names) for names in named):
            return key
    return ""


def _same(desired: object, live: object) -> bool:
    if desired == live or (_is_empty(desired) and _is_empty(live)):
        return True
    sizes = _quantity(desired), _quantity(live)
    return None not in sizes and sizes[0] == sizes[1]


def _is_empty(value: object) -> bool:
    """Return whether a value is empty: the API server drops such fields, or fills them in."""
    if isinstance(value, Mapping):
        return all(_is_empty(item) for item in value.values())
    return value is None or value is False or value in ("", 0) or value == []


def _quantity(value: object) -> Decimal | None:
    """Parse "500m", "0.5", or 2 as a number; return None for anything else."""
    written = text({"value": value}, "value") if not isinstance(value, bool) else ""
    number = written.rstrip("mkMGTKi")
    unit = _UNITS.get(written[len(number) :])
    plain = number.replace(".", "", 1)
    return Decimal(number) * unit if unit is not None and plain.isascii() and plain.isdigit() else None
