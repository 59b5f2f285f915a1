"""Members of a cloud's API object of a pool: what gpukube does with each, and which of them a person chose.

In scope: classifying members by a provider's table, finding the chosen ones in a live object, and those that a create
request would not set. Out of scope: the tables (each provider's pool.members), what to do about a lost member (engine).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.fields import FieldPath
    from gpukube.core.jsontree import Tree

Kind: TypeAlias = Literal["field", "native", "server", "unsupported"]

ANY_KEY: Final = "*"
"""Last step of the path of a member that is a map: each key counts as a member of its own."""
_NOTHING: Final[tuple[object, ...]] = (None, "", [], {}, ())


@dataclass(frozen=True, slots=True)
class Member:
    """How gpukube treats one member of the API's object.

    Attributes:
        kind: "field": a field of the spec sets it; "native": the spec may set it under the provider's name; "server":
            the service makes it, or it identifies the pool; "unsupported": no spec can say it.
        spec: The field of the spec ("disk.iops", "gke.config.metadata"); "" for others.
        reason: Why it is not supported, as a clause; "" for others.
        defaults: What the service fills in for a pool made without it; an empty value counts as a default too, except
            that of a key of a map.
    """

    kind: Kind
    spec: str = ""
    reason: str = ""
    defaults: tuple[object, ...] = ()


Members: TypeAlias = Mapping[str, Member]
"""Path of a member by wire names ("config.kubeletConfig.cpuManagerPolicy", "config.labels.*") -> how it is treated. The
members of a message may be classified together by the path of the message."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A member of a live pool with a value that a person chose.

    Attributes:
        path: For people and `--accept-loss`: the field of the spec if there is one ("disk.iops", "labels[team]"), else
            the cloud and the API's path ("gke.config.sandboxConfig").
        wire: Path in the API's object.
        kind: See Member.
        value: The live value; may be secret unless the provider knows better, so never show it unchecked.
        reason: Why a spec cannot say it; "" if it can.
    """

    path: str
    wire: tuple[str, ...]
    kind: Kind
    value: object
    reason: str = ""


def chosen_members(live: Tree, members: Members, cloud: str) -> tuple[Chosen, ...]:
    """Return the chosen members of a live object, in its order.

    Args:
        live: The object in wire names.
        members: The provider's table.
        cloud: Name of the provider, the first step of paths without a field of the spec.
    """
    return tuple(_chosen(live, (), members, cloud))


def lost_members(chosen: tuple[Chosen, ...], create: Tree, changed: Iterable[FieldPath] = ()) -> tuple[Chosen, ...]:
    """Return the chosen members that a new pool would not have, although nobody asked for that.

    Args:
        chosen: The chosen members of a live pool.
        create: The object of the create request; a member that it sets, to whatever value, is not lost.
        changed: Fields that differ between the spec and the live pool. The plan shows them, so they are not lost.
    """
    shown = tuple(map(str, changed))
    return tuple(one for one in chosen if not _is_set(create, one.wire) and not _is_shown(one.path, shown))


def _is_shown(path: str, shown: tuple[str, ...]) -> bool:
    """Return whether a field, its message, or a part of it is among the changed fields."""
    return any(f"{path}.".startswith(f"{one}.") or f"{one}.".startswith(f"{path}.") for one in shown)


def _chosen(node: Tree, above: tuple[str, ...], members: Members, cloud: str) -> Iterator[Chosen]:
    for key, value in node.items():
        wire = (*above, key)
        name = ".".join(wire)
        keyed = members.get(".".join((*above, ANY_KEY)))
        member = members.get(name) or keyed
        if member is None and isinstance(value, Mapping) and value:
            yield from _chosen(value, wire, members, cloud)
            continue
        member = member or Member("unsupported", reason="this version of gpukube does not know it")
        unset = (None,) if keyed else _NOTHING  # the empty value of a label is a choice
        if member.kind != "server" and value not in (*unset, *member.defaults):
            path = member.spec.replace(ANY_KEY, key) or f"{cloud}.{name}"
            yield Chosen(path, wire, member.kind, value, member.reason)


def _is_set(node: object, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(node, Mapping) or step not in node:
            return False
        node = node[step]
    return True
