"""Puts gpukube's settings into user data, next to content of others that stays byte for byte.

In scope: new user data, merging into a live one, and what makes that impossible. Out of scope: the forms themselves
(`nodeconfig`, `bottlerocket`), showing content of others (`summary`).

On Amazon Linux gpukube's parts come last of the user's parts, and EKS adds its own after them. On Bottlerocket there is
one document, in which each line of gpukube's ends with a comment. Nothing of others is ever changed: a setting that
they have with another value is a collision, which is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, PLUGIN
from gpukube.core.jsontree import at, leaves
from gpukube_eks.userdata import bottlerocket, nodeconfig
from gpukube_eks.userdata.encoding import MOST_BYTES, decode, encode, size
from gpukube_eks.userdata.mime import parse_message
from gpukube_eks.userdata.tomltext import add_keys, tables_of, unsupported, without_marked, write_tables
from gpukube_eks.userdata.tomltext import parse as parse_toml

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.core.fields import FieldPath
    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.sharing import Sharing
    from gpukube_eks.userdata.tomltext import Tables

SETTINGS: Final = ("kubelet", "sysctls", "hugepages")
"""First steps of the fields that only user data contains."""


@dataclass(frozen=True, slots=True)
class Ours:
    """What gpukube sets by user data.

    Attributes:
        settings: Fields of the node: maximum pods, kubelet, kernel, huge pages, local disks.
        model: GPU model of the node.
        sharing: Sharing of the GPUs; only Bottlerocket reads it.
    """

    settings: Mapping[FieldPath, object]
    model: GpuModel
    sharing: Sharing


class UnmergeableError(Exception):
    """User data that gpukube cannot merge its settings into.

    Attributes:
        seen: What is wrong, without any value.
        fix: What to do about it.
        why: The rule behind it.
    """

    def __init__(self, seen: str, *, fix: str, why: str) -> None:
        super().__init__(seen)
        self.seen, self.fix, self.why = seen, fix, why


def is_setting(path: FieldPath) -> bool:
    """Return whether a field is in user data on every image."""
    return path in (MAX_PODS, LOCAL_STORAGE, PLUGIN) or path[0] in SETTINGS


def new_data(ours: Ours, *, rocket: bool) -> str:
    """Return user data of gpukube's own, in base64 as in a launch template; "" if it sets nothing."""
    if rocket:
        return encode(write_tables(_tables(ours)).encode()) if _tables(ours) else ""
    return encode(nodeconfig.new_message(ours.settings)) if ours.settings else ""


def merged_data(live: str, ours: Ours, *, rocket: bool) -> str:
    """Return user data with gpukube's settings and everything else that a live one has.

    Args:
        live: As in a launch template; "" for none.
        ours: All settings of gpukube's; those that are in `live` and missing here are removed.
        rocket: Whether the nodes run Bottlerocket.

    Returns:
        "" only if there is nothing to write and `live` is empty: user data can be replaced, but not removed.

    Raises:
        UnmergeableError: It has another form, sets the same key, or would be too large.
    """
    if not live:
        return new_data(ours, rocket=rocket)
    try:
        raw, compressed = decode(live)
        result = _merged_document(raw.decode(), ours).encode() if rocket else _merged_message(raw, ours)
    except ValueError as error:
        raise _malformed(rocket=rocket) from error
    merged = live if result == raw else encode(result, compressed=compressed)
    if size(merged) > MOST_BYTES:
        raise UnmergeableError(
            f"the user data would have {size(merged)} bytes",
            fix="shorten your own parts; a script can fetch what it runs",
            why=f"EC2 accepts {MOST_BYTES} bytes, and EKS adds its own part (botocore ec2 RequestLaunchTemplateData)",
        )
    return merged


def without_settings(*, rocket: bool) -> str:
    """Return user data that sets nothing: a launch template's new version can replace user data, but not remove it."""
    return encode(bottlerocket.UNSHARED.encode() if rocket else nodeconfig.new_message({}))


def own_fields(encoded: str, *, rocket: bool, unmarked: bool = True) -> dict[FieldPath, object]:
    """Return the settings that gpukube wrote into user data.

    Args:
        encoded: As in a launch template.
        rocket: Whether the nodes run Bottlerocket.
        unmarked: Whether a document without marks may be gpukube's: on Bottlerocket only its form tells.
    """
    try:
        raw, _ = decode(encoded)
        if rocket:
            text = raw.decode()
            found = bottlerocket.document_fields(parse_toml(text))
            theirs = {}
            if not (unmarked and _is_own_document(text)):
                theirs = bottlerocket.document_fields(parse_toml(without_marked(text)))
            return {path: value for path, value in found.items() if is_setting(path) and path not in theirs}
    except ValueError:
        return {}
    message = parse_message(raw)
    if message is None:
        return {}
    return nodeconfig.fields_of(message.without(lambda part: not nodeconfig.is_own(part, message)))


def of_others(encoded: str, *, rocket: bool) -> bytes:
    """Return user data without what gpukube wrote; b"" if nothing is left.

    Raises:
        ValueError: It is unreadable.
    """
    raw, _ = decode(encoded)
    if rocket:
        text = raw.decode()
        return b"" if _is_own_document(text) else without_marked(text).encode()
    message = parse_message(raw)
    if message is None:
        return raw
    others = message.without(lambda part: nodeconfig.is_own(part, message))
    return others.raw if others.parts else b""


def require_settings(
    encoded: str, settings: Mapping[FieldPath, object], changed: Collection[FieldPath], *, rocket: bool
) -> None:
    """Check that changed settings have their new values: one that was removed may still be set by others.

    Raises:
        UnmergeableError: A setting has another value.
    """
    found = read_fields(encoded, rocket=rocket)
    if names := [str(path) for path in changed if found.get(path) != settings.get(path)]:
        raise _collision(sorted(names))


def has_others(encoded: str, *, rocket: bool) -> bool:
    """Return whether anybody but gpukube wrote into user data, readable or not."""
    try:
        return bool(of_others(encoded, rocket=rocket))
    except ValueError:
        return True


def digest_of_others(encoded: str, *, rocket: bool) -> str:
    """Return a digest of what others wrote into user data; "" for nothing. Adding settings does not change it."""
    try:
        raw = of_others(encoded, rocket=rocket)
    except ValueError:
        raw = encoded.encode()
    return sha256(raw.rstrip(b"\r\n")).hexdigest() if raw else ""


def read_fields(encoded: str, *, rocket: bool) -> dict[FieldPath, object]:
    """Return the comparable fields of user data, whoever wrote them."""
    return bottlerocket.read_fields(encoded) if rocket else nodeconfig.read_fields(encoded)


# Amazon Linux


def _merged_message(raw: bytes, ours: Ours) -> bytes:
    message = parse_message(raw)
    if message is None:
        raise _malformed(rocket=False)
    others = message.without(lambda part: nodeconfig.is_own(part, message))
    if not others.parts:
        return nodeconfig.new_message(ours.settings)
    try:
        nodeconfig.require_readable(others.parts)
    except ValueError as error:
        raise UnmergeableError(
            "a NodeConfig of others cannot be read",
            fix="correct it, in a new version of the launch template that the group uses",
            why="nodeadm does not start with it, and gpukube cannot see which settings it has",
        ) from error
    spec = nodeconfig.merged_config(others.parts)
    settings = _missing(ours.settings, nodeconfig.config_fields(spec))
    if names := [*nodeconfig.collisions(spec, nodeconfig.config_of(settings))]:
        raise _collision(names)
    return others.with_parts(nodeconfig.marked_parts(settings)).raw if settings else others.raw


def _missing(settings: Mapping[FieldPath, object], theirs: Mapping[FieldPath, object]) -> dict[FieldPath, object]:
    return {path: value for path, value in settings.items() if theirs.get(path) != value}


# Bottlerocket


def _tables(ours: Ours) -> Tables:
    return {**bottlerocket.sharing_tables(ours.sharing, ours.model), **bottlerocket.node_tables(ours.settings)}


def _is_own_document(text: str) -> bool:
    """Return whether gpukube wrote all of a document: it has its form, and no key that a pool cannot declare."""
    try:
        tables = tables_of(parse_toml(text))
    except ValueError:
        return False
    known = all(bottlerocket.is_own_key((*path, key)) for path, keys in tables.items() for key in keys)
    return known and write_tables(tables) == text


def _merged_document(text: str, ours: Ours) -> str:
    if _is_own_document(text):
        return write_tables(_tables(ours)) or bottlerocket.UNSHARED
    theirs = without_marked(text)
    document = parse_toml(theirs)
    found = bottlerocket.document_fields(document)
    settings = _missing(ours.settings, found)
    tables = {
        **bottlerocket.sharing_tables(ours.sharing, ours.model),
        **bottlerocket.node_tables(settings),
    }
    sharing = bottlerocket.sharing_fields(ours.sharing)
    names = [".".join(path) for path in _changed_keys(document, tables)]
    names += [
        str(path)
        for path in (*settings, *(path for path in found if path[0] == "sharing"))
        if path in found and found[path] != {**sharing, **settings}.get(path)
    ]
    if names:
        raise _collision(names)
    added = {
        path: {key: value for key, value in keys.items() if at(document, *path, key) is None}
        for path, keys in tables.items()
    }
    try:
        result = add_keys(theirs, {path: keys for path, keys in added.items() if keys})
    except ValueError as error:
        raise UnmergeableError(
            f"in user data of others {error}",
            fix="write the table with a header of its own",
            why="gpukube changes no line of others",
        ) from error
    if form := unsupported(result, parse_toml(result)):
        raise UnmergeableError(
            f"user data of others has {form}",
            fix="write it in another form",
            why="EKS does not support this form of TOML (docs: eks/launch-templates)",
        )
    return result


def _changed_keys(document: Mapping[str, object], tables: Tables) -> list[tuple[str, ...]]:
    """Return the keys that a document has with another value."""
    theirs = dict(leaves(document))
    ours = {(*path, key): value for path, keys in tables.items() for key, value in keys.items()}
    return [
        path
        for path, value in ours.items()
        if (path in theirs and theirs[path] != value)
        or (path not in theirs and isinstance(at(document, *path), Mapping))
        or any(path[:length] in theirs and theirs[path[:length]] != {} for length in range(1, len(path)))
    ]


# Errors


def _malformed(*, rocket: bool) -> UnmergeableError:
    form = "TOML" if rocket else "MIME multipart"
    return UnmergeableError(
        f"User data was not in the {form} format.",
        fix=f"write your own user data as {form}, in a new version of the launch template",
        why="EKS merges its own part only into this form (docs: eks/launch-templates)",
    )


def _collision(names: list[str]) -> UnmergeableError:
    several = ", ".join(dict.fromkeys(names))
    return UnmergeableError(
        f"user data of others sets {several}, to another value",
        fix="write the live value, or change it there, in a new version of the launch template that the group uses",
        why="gpukube adds its settings to user data of others, and overwrites none",
    )
