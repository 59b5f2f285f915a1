"""The native fields of a GKE node pool: checking the `gke:` fields of a spec, and comparing them.

In scope: their forms. Out of scope: which members there are (`members`), the effect of a change (`updates`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import FieldPath
from gpukube.errors import Finding
from gpukube.spec.wording import choices, did_you_mean, nearest
from gpukube_gke.pool.members import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where
    from gpukube_gke.pool.members import Leaf

NATIVE: Final[Mapping[str, Leaf]] = {
    path.removesuffix(".*"): member.leaf for path, member in MEMBERS.items() if member.leaf
}
"""Fields allowed in `gke:`, by path -> their form."""
MANAGED: Final[Mapping[str, str]] = {
    path.removesuffix(".*"): (member.write or member.spec).removesuffix("[*]")
    for path, member in MEMBERS.items()
    if member.kind == "field" or member.write
}
"""Fields that gpukube sets -> what to write in the spec instead."""
REFUSED: Final[Mapping[str, str]] = {
    path: member.reason
    for path, member in MEMBERS.items()
    if member.kind in ("server", "unsupported") and member.reason
}
"""Fields that gpukube does not allow -> why."""

_ACCELERATORS: Final = "config.accelerators"
_ITEMS: Final[Mapping[str, Mapping[str, Leaf]]] = {
    "networks": {"network": "str", "subnetwork": "str"},
    "disks": {"diskImage": "str", "mode": ("CONTAINER_IMAGE_CACHE",)},
}
"""Messages in a list -> their members, all required."""
_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "pods": frozenset({"subnetwork", "secondaryPodRange", "maxPodsPerNode"}),
    "affinities": frozenset({"key", "operator", "values"}),
    "domains": frozenset({"fqdns", "gcpSecretManagerCertificateConfig", "secretUri"}),
    "registries": frozenset(
        [
            "server",
            "hosts",
            "host",
            "capabilities",
            "overridePath",
            "header",
            "ca",
            "client",
            "dialTimeout",
            "key",
            "value",
            "cert",
            "gcpSecretManagerSecretUri",
        ]
    ),
}
"""Messages in a list that contain messages -> the names in them, at any depth."""
_MOST: Final = 2**31 - 1
_JSON_TYPES: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number, 0 or more"),
    "share": (float, "a number above 0, at most 1"),
    "str": (str, "a string"),
    "strs": (list, "a list of strings"),
    "map": (dict, "a mapping of strings to strings"),
    "metadata": (
        dict,
        "a mapping of strings to strings, with keys of letters, digits, - and _, none of them reserved by GKE",
    ),
    "scopes": (list, "a list of full scope URLs, ending in /auth/cloud-platform or similar"),
    "tags": (list, "a list of lower-case letters, digits, and -, starting with a letter, at most 63 characters each"),
    "seconds": (str, "seconds, such as 600s"),
    "subnetwork": (str, "projects/PROJECT/regions/REGION/subnetworks/NAME"),
    "range": (str, "an address range, such as 10.96.0.0/14, or a range size, such as /21"),
}
_FORMS: Mapping[str, re.Pattern[str]] = {
    "scopes": re.compile(r"https://www\.googleapis\.com/auth/\S+"),
    "tags": re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"),
    "seconds": re.compile(r"0s|[1-9]\d{0,10}s"),
    "subnetwork": re.compile(r"projects/[^/\s]+/regions/[^/\s]+/subnetworks/[^/\s]+"),
    "range": re.compile(r"(\d{1,3}(\.\d{1,3}){3})?/([89]|[12]\d|3[0-2])|"),
}
"""Forms of texts and of items of lists, as the comments of the messages name them.

Durations and subnetworks have the form of GKE's responses; any other would differ from the live value forever.
"""
_METADATA_KEY: Final = re.compile(r"[a-zA-Z0-9_-]{1,127}")
_RESERVED_METADATA: Final = frozenset(
    [
        "cluster-location",
        "cluster-name",
        "cluster-uid",
        "configure-sh",
        "containerd-configure-sh",
        "enable-os-login",
        "gci-ensure-gke-docker",
        "gci-metrics-enabled",
        "gci-update-strategy",
        "instance-template",
        "kube-env",
        "startup-script",
        "user-data",
        "disable-address-manager",
        "windows-startup-script-ps1",
        "common-psm1",
        "k8s-node-setup-psm1",
        "install-ssh-psm1",
        "user-profile-psm1",
    ]
)
"""Keys that GKE writes itself (google.container.v1 NodeConfig.metadata)."""
_KNOWN: Mapping[str, object] = {**NATIVE, **MANAGED, **REFUSED}
_MESSAGES = frozenset(
    path[: dot.start()] for path in _KNOWN for dot in re.finditer(r"\.", path)
) - _KNOWN.keys()  # fmt: skip


def check_native(target: Target) -> list[Finding]:
    """Check the `gke:` fields of a pool: known, not set by gpukube, of the right shape."""
    found = _written(target.native)
    return [finding for path, value, place in found for finding in _check(path, value, target.locator.at(place))]


def _written(native: Mapping[str, object]) -> list[tuple[str, object, str]]:
    """Yield path, value, and spec path of every field; keys with special characters are quoted."""
    return list(_walk("", native, "gke"))


def _walk(prefix: str, members: Mapping[str, object], place: str) -> Iterator[tuple[str, object, str]]:
    """Descend into known messages; the one accelerator of a pool counts as a message."""
    for name, value in members.items():
        path, here = f"{prefix}{name}", f"{place}.{name}" if name.isalnum() else f"{place}[{json.dumps(name)}]"
        is_list = path == _ACCELERATORS and isinstance(value, list) and len(value) == 1
        inner = value[0] if is_list and isinstance(value, list) else value
        if isinstance(inner, Mapping) and path in _MESSAGES:
            yield from _walk(f"{path}.", inner, f"{here}[0]" if is_list else here)
        else:
            yield path, value, here


def _check(path: str, value: object, where: Where) -> Iterator[Finding]:
    shown = f"gke.{path}"
    if path in MANAGED:
        fix = f"write {MANAGED[path]} instead"
        yield Finding("gke-native-managed", where, f"{shown} is set by gpukube", fix=fix)
    elif path in REFUSED:
        yield Finding("gke-native-refused", where, f"{shown} cannot be set", fix="remove it", why=REFUSED[path])
    elif path in _MESSAGES:
        message = f"{shown} is {_shown(value)}; expected a mapping"
        inner = "a list with one mapping" if path == _ACCELERATORS else "a mapping"
        yield Finding("gke-native-value", where, message, fix=f"write {inner}")
    elif path not in NATIVE:
        near = get_close_matches(path, {*_KNOWN, *_MESSAGES} - REFUSED.keys(), n=1, cutoff=0.7)
        yield Finding(
            "gke-native-unknown",
            where,
            f'a node pool has no field "{path}" that gpukube knows',
            fix=did_you_mean(MANAGED.get(near[0], f"gke.{near[0]}")) if near else "remove it",
        )
    elif fix := _wrong(value, NATIVE[path]):
        value = "hidden" if NATIVE[path] in ("metadata", "registries") else _shown(value)
        message = f"{shown} is {value}, which is not a valid value"
        yield Finding("gke-native-value", where, message, fix=fix)


def _wrong(value: object, leaf: Leaf) -> str:
    """Return the fix for a value; "" if it is valid."""
    if isinstance(leaf, tuple):
        meant = nearest(str(value), leaf)
        return "" if value in leaf else did_you_mean(meant) if meant else f"write {choices(leaf)}"
    if leaf in _ITEMS:
        return _wrong_items(value, _ITEMS[leaf])
    if leaf in _NAMES:
        fits = isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
        return (
            "" if fits and _has_only(value, _NAMES[leaf]) else f"write a list of {{{', '.join(sorted(_NAMES[leaf]))}}}"
        )
    expected, words = _JSON_TYPES[leaf]
    fix = f"write {words}"
    if leaf == "share":
        return "" if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1 else fix
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        return fix
    if isinstance(value, int):
        return "" if 0 <= value <= _MOST else fix
    if isinstance(value, dict):
        return "" if all(_is_entry(key, text, leaf) for key, text in value.items()) else fix
    texts = value if isinstance(value, list) else [value]
    fits = all(isinstance(text, str) and (leaf not in _FORMS or _FORMS[leaf].fullmatch(text)) for text in texts)
    return "" if fits else fix


def _has_only(value: object, names: frozenset[str]) -> bool:
    """Return whether a tree contains no other keys than these."""
    if isinstance(value, Mapping):
        return value.keys() <= names and all(_has_only(inner, names) for inner in value.values())
    return all(_has_only(inner, names) for inner in value) if isinstance(value, list) else True


def _is_entry(key: object, text: object, leaf: Leaf) -> bool:
    if not (isinstance(key, str) and isinstance(text, str)):
        return False
    return leaf != "metadata" or (_METADATA_KEY.fullmatch(key) is not None and key not in _RESERVED_METADATA)


def _wrong_items(value: object, members: Mapping[str, Leaf]) -> str:
    fits = isinstance(value, list) and all(_is_item(item, members) for item in value)
    shape = ", ".join(f"{name}: {leaf[0] if isinstance(leaf, tuple) else 'NAME'}" for name, leaf in members.items())
    return "" if fits else f"write a list of {{{shape}}}"


def _is_item(item: object, members: Mapping[str, Leaf]) -> bool:
    if not isinstance(item, Mapping) or item.keys() != members.keys():
        return False
    return not any(_wrong(item[name], leaf) for name, leaf in members.items())


def _shown(value: object) -> str:
    return json.dumps(value)


def flatten_native(pool: Mapping[str, object], *, live: bool = False) -> dict[FieldPath, object]:
    """Flatten native fields to comparable ones, gke.config.gvnic.enabled and the like.

    Args:
        pool: Native fields of a spec, or a whole pool as read.
        live: Whether it was read from GKE: proto3 omits false, zero, and empty, so an absent flag means false and an
            absent number 0.
    """
    found: dict[FieldPath, object] = {}
    for path, value, _ in _written(pool):
        if path in NATIVE:
            found |= _comparables(path, value)
    if live:
        empty: Mapping[str, object] = {"bool": False, "int": 0}
        for path, leaf in NATIVE.items():
            if isinstance(leaf, str) and leaf in empty:
                found.setdefault(native_path(path), empty[leaf])
    return found


def native_path(name: str) -> FieldPath:
    """Return the comparable field path of a native field such as "config.gvnic.enabled"."""
    return FieldPath("gke", *name.split("."))


def comparable(value: object, leaf: Leaf | None) -> object:
    """Return a value in the form of a spec: 64-bit numbers are strings on the wire."""
    if leaf == "int" and isinstance(value, str):
        return int(value)
    return tuple(value) if isinstance(value, list) else value


def _comparables(path: str, value: object) -> dict[FieldPath, object]:
    """Return the fields of a member: one for each key of the metadata. Values that may be secret are hidden."""
    leaf = NATIVE[path]
    if leaf == "metadata":
        entries = value if isinstance(value, Mapping) else {}
        return {FieldPath(*native_path(path), str(key)): hidden(text) for key, text in entries.items()}
    return {native_path(path): hidden(value) if leaf == "registries" else comparable(value, leaf)}


def hidden(value: object) -> str:
    """Return what is shown of a value that may be secret: enough to see whether it changed."""
    return f"(hidden, sha256:{sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]})"
