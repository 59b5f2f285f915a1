"""Every member of the SDK's own requests is decided on: a new one fails here, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import botocore.session
import pytest
from botocore.model import ListShape, Shape, StructureShape

from gpukube.core.fields import FieldPath
from gpukube.core.values import Change
from gpukube_eks.pool.native import MANAGED, NATIVE, REFUSED, check_native, field_of
from gpukube_eks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.unit.gpukube_eks.members import SHAPES
from tests.unit.gpukube_eks.samples import eks_target

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {**INTENT_ROWS, **NATIVE_ROWS}
CREATE = SHAPES["eks", "CreateNodegroupRequest"]
ADVICE = """botocore's {shape} has {path}, which gpukube_eks does not know. Either
- a field of the spec shall set it: send it (translate, change, template), give it a row in updates.INTENT_ROWS and its
  row's key in members.SHAPES; or
- `eks:` shall set it: add it to native.NATIVE and updates.NATIVE_ROWS, and the row's key in members.SHAPES; or
- nobody shall: say why in members.SHAPES (and in native.REFUSED when it is a member of CreateNodegroup)."""


def leaves(shape: Shape, path: str, reasoned: set[str]) -> Iterator[str]:
    """Paths of the members of a shape, not below those that a reason answers for."""
    if path in reasoned:
        yield path
    elif isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            yield from leaves(member, f"{path}.{name}".lstrip("."), reasoned)
    elif isinstance(shape, ListShape):
        yield from leaves(shape.member, f"{path}[]", reasoned)
    else:
        yield path


@pytest.mark.parametrize(("service", "name"), SHAPES)
def test_members_when_counted_are_all_decided_on(service: str, name: str) -> None:
    known = SHAPES[service, name]
    shape = botocore.session.get_session().get_service_model(service).shape_for(name)

    found = set(leaves(shape, "", {path for path, member in known.items() if member.reason}))

    assert not found - known.keys(), "\n".join(ADVICE.format(shape=name, path=path) for path in found - known.keys())
    assert not known.keys() - found, "no longer in the model: take it out of members.SHAPES"


@pytest.mark.parametrize(("service", "name"), SHAPES)
def test_members_when_read_have_either_a_row_or_a_reason(service: str, name: str) -> None:
    for path, member in SHAPES[service, name].items():
        assert bool(member.row) != bool(member.reason), path
        assert not member.row or FieldPath.parse(member.row) in ROWS, path


def test_native_members_when_compared_are_those_with_a_native_row() -> None:
    rows = {*map(str, NATIVE_ROWS), "upgrade.maxSurge", "upgrade.maxUnavailable"}
    decided = {path.partition("[")[0] for path, member in CREATE.items() if member.row in rows}

    assert decided == set(NATIVE)


def test_other_members_when_compared_are_managed_or_refused() -> None:
    tops = {path.partition(".")[0].partition("[")[0] for path in CREATE}

    other = tops - {path.partition(".")[0] for path in NATIVE}
    unjudged, unknown = other - MANAGED.keys() - REFUSED.keys(), (MANAGED.keys() | REFUSED.keys()) - other
    assert unjudged == set(), f"add a row to pool/fields.py, or add these to NATIVE or REFUSED: {unjudged}"
    assert unknown == set(), f"EKS has no such members; correct `wire` or `members` of their rows: {unknown}"


@pytest.mark.parametrize("path", [*MANAGED, *REFUSED, "surprise", "updateConfig.surprise", "nodeRepairConfig.surprise"])
def test_escape_hatch_when_a_member_has_no_row_refuses_it(path: str) -> None:
    top, _, inner = path.partition(".")

    found = check_native(eks_target(native={top: {inner: 1} if inner else "x"}))

    assert [finding.severity for finding in found] == ["error"]


@pytest.mark.parametrize("path", NATIVE)
def test_escape_hatch_when_a_member_is_taken_says_what_a_change_does(path: str) -> None:
    row = find_row(Change(field_of(path), None, "b"))

    assert row.kind != "refused"
    assert row.sentence
    assert row.source
