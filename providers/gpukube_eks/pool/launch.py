"""Native members of the launch template that a spec may set under `eks:`, next to those of the node group.

In scope: the table, and converting them to the template's data and back. Out of scope: their types (`native`), security
groups, which depend on the network interfaces (`network`), the effect of a change (`updates`).

Names: botocore ec2 RequestLaunchTemplateData, with a small first letter as in EKS's API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import at, merged, tree

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.jsontree import Tree

MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "imageId": ("ImageId",),
    "keyName": ("KeyName",),
    "ebsOptimized": ("EbsOptimized",),
    "monitoring.enabled": ("Monitoring", "Enabled"),
    "metadataOptions.httpTokens": ("MetadataOptions", "HttpTokens"),
    "metadataOptions.httpPutResponseHopLimit": ("MetadataOptions", "HttpPutResponseHopLimit"),
    "metadataOptions.instanceMetadataTags": ("MetadataOptions", "InstanceMetadataTags"),
}
"""Path under `eks:` -> path in the launch template's data."""
TOPS: Final = frozenset({"securityGroups", *(path.partition(".")[0] for path in MEMBERS)})
"""First steps of the members that are in the launch template."""
_ANSWERED: Final = "State"
"""Member of MetadataOptions that EC2 adds to its responses (botocore ec2 LaunchTemplateInstanceMetadataOptions)."""


def group_members(native: Mapping[str, object]) -> dict[str, object]:
    """Return the native members that are the node group's own."""
    return {name: value for name, value in native.items() if name not in TOPS}


def launch_data(native: Mapping[str, object]) -> dict[str, object]:
    """Return the data that native members set."""
    found: dict[str, object] = {}
    if TOPS.isdisjoint(native):  # as in most pools
        return found
    for path, wire in MEMBERS.items():
        value = at(native, *path.split("."))
        for step in reversed(wire if value is not None else ()):
            value = {step: value}
        found = merged(found, value) if isinstance(value, dict) else found
    return found


def changed_launch(native: Mapping[str, object], live: Tree, fields: Collection[FieldPath]) -> dict[str, object]:
    """Return the changed members; other values of a structure stay as they are in the live template."""
    new = launch_data(native)
    tops = {MEMBERS[path][0] for path in MEMBERS if FieldPath("eks", *path.split(".")) in fields}
    found: dict[str, object] = {}
    for name in sorted(tops & new.keys()):
        value = new[name]
        kept = {key: one for key, one in tree(live, name).items() if key != _ANSWERED}
        found[name] = {**kept, **value} if isinstance(value, dict) else value
    return found


def read_launch(data: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the comparable fields of a live launch template."""
    found = {FieldPath("eks", *path.split(".")): at(data, *wire) for path, wire in MEMBERS.items()}
    return {path: value for path, value in found.items() if value is not None}


def writable(data: Tree) -> dict[str, object]:
    """Return data of a live launch template as EC2 accepts it: without what only its responses have."""
    options = {key: value for key, value in tree(data, "MetadataOptions").items() if key != _ANSWERED}
    return {**data, "MetadataOptions": options} if options else dict(data)
