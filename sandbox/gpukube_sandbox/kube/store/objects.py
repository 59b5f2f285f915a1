"""Kubernetes objects as they travel: trees of JSON.

In scope: the type of such a tree and the few ways of reading it that every module needs. Out of scope: rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

JsonObject: TypeAlias = dict[str, Any]
"""One object or a part of it. The shape is the API's and only known at run time, hence the open value type."""


AnyJson = TypeVar("AnyJson")


def copied(tree: AnyJson) -> AnyJson:
    """Copy a tree of JSON; `copy.deepcopy`, which is made for anything, takes five times as long."""
    if isinstance(tree, dict):
        copy = {key: copied(value) if isinstance(value, dict | list) else value for key, value in tree.items()}
        return cast("AnyJson", copy)
    if isinstance(tree, list):
        return cast("AnyJson", [copied(value) if isinstance(value, dict | list) else value for value in tree])
    return tree


def meta(obj: JsonObject) -> JsonObject:
    """Return the metadata, empty when there is none."""
    return obj.get("metadata") or {}


def spec(obj: JsonObject) -> JsonObject:
    """Return the spec, empty when there is none."""
    return obj.get("spec") or {}


def status(obj: JsonObject) -> JsonObject:
    """Return the status, empty when there is none."""
    return obj.get("status") or {}


def name_of(obj: JsonObject) -> str:
    """Return metadata.name."""
    return str(meta(obj).get("name", ""))


def namespace_of(obj: JsonObject) -> str:
    """Return metadata.namespace; "" for what belongs to the cluster."""
    return str(meta(obj).get("namespace", ""))


def labels(obj: JsonObject) -> dict[str, str]:
    """Return the labels, empty when there are none."""
    return meta(obj).get("labels") or {}


def annotations_of(obj: JsonObject) -> dict[str, str]:
    """Return the annotations, empty when there are none."""
    return meta(obj).get("annotations") or {}


def owner_uids(obj: JsonObject) -> set[str]:
    """Return the uids of the owners."""
    return {ref.get("uid", "") for ref in meta(obj).get("ownerReferences") or ()}


def conditions(obj: JsonObject) -> dict[str, str]:
    """Return condition type -> status ("True", "False", "Unknown")."""
    found: Iterable[JsonObject] = status(obj).get("conditions") or ()
    return {item["type"]: item["status"] for item in found}
