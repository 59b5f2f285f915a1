"""Members of a cloud's API object of a pool: what gpukube does with each, and which of them a person chose.

In scope: classifying members by a provider's table, finding the chosen ones in a live object, and those that a create
request would not set. Out of scope: the tables (each provider's pool.members), what to do about a lost member (engine).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpukube.core.jsontree import at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

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


_UNKNOWN: Final = Member("unsupported", reason="this version of gpukube does not know it")

Members: TypeAlias = Mapping[str, Member]
"""Path of a member by wire names ("config.kubeletConfig.cpuManagerPolicy", "config.labels.*") -> how it is treated. The
members of a message that have no entry are treated as the message."""


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
    return tuple(one for one, is_default in _walk(live, (), members, cloud) if not is_default)


def set_members(create: Tree, members: Members, cloud: str) -> tuple[Chosen, ...]:
    """Return the members that a create request sets, also to defaults; arguments as for `chosen_members`."""
    return tuple(one for one, _ in _walk(create, (), members, cloud))


def lost_members(chosen: Iterable[Chosen], create: Tree, declared: Iterable[FieldPath]) -> tuple[Chosen, ...]:
    """Return the chosen members that a new pool would not have, although nobody asked for that.

    Args:
        chosen: The chosen members of a live pool.
        create: The object of the create request.
        declared: Fields of the declared pool (Desired.fields): what they change is a difference of the spec, which the
            plan shows. So are the plan's other changes.
    """
    fields = tuple(map(str, declared))
    return tuple(one for one in chosen if not is_declared(one.path, fields) and at(create, *one.wire) != one.value)


def is_declared(path: str, fields: Collection[str]) -> bool:
    """Return whether a field, its message, or a part of it is among the texts of fields."""
    return any(f"{path}.".startswith(f"{one}.") or f"{one}.".startswith(f"{path}.") for one in fields)


def _walk(node: Tree, above: tuple[str, ...], members: Members, cloud: str) -> Iterator[tuple[Chosen, bool]]:
    for key, value in node.items():
        wire = (*above, key)
        name = ".".join(wire)
        keyed = members.get(".".join((*above, ANY_KEY)))
        member = members.get(name) or keyed
        if isinstance(value, Mapping) and value and (member is None or _has_below(members, name)):
            yield from _walk(value, wire, members, cloud)
            continue
        member = member or _around(members, above)
        unset = (None,) if keyed else _NOTHING  # the empty value of a label is a choice
        if member.kind != "server" and value not in unset:
            path = member.spec.replace(ANY_KEY, key) or f"{cloud}.{name}"
            yield Chosen(path, wire, member.kind, value, member.reason), value in member.defaults


def _has_below(members: Members, name: str) -> bool:
    return any(path.startswith(f"{name}.") for path in members)


def _around(members: Members, above: tuple[str, ...]) -> Member:
    """Return the entry of the nearest message around a member that has none."""
    paths = (".".join(above[:steps]) for steps in range(len(above), 0, -1))
    return next((members[path] for path in paths if path in members), _UNKNOWN)
