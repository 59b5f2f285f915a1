"""The table of native properties against the SDK's own models, and against the table of updates."""

from __future__ import annotations

import typing
from collections.abc import Mapping

import pytest
from azure.mgmt.containerservice import models
from azure.mgmt.containerservice._version import VERSION

from gpukube.core.fields import FieldPath
from gpukube.core.values import Change
from gpukube_aks.facts.images import IMAGES
from gpukube_aks.pool.native import (
    MANAGED,
    MANAGED_MEMBERS,
    NATIVE,
    REFUSED,
    UNTESTED,
    Shape,
    check_native,
    flatten_native,
)
from gpukube_aks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.builders import by_text, make_target
from tests.unit.gpukube_aks.shapes import PROPERTIES, inner_model, leaves, wire_names

if typing.TYPE_CHECKING:
    from enum import Enum

CHOICES: dict[str, type[Enum]] = {
    "aks.kubeletDiskType": models.KubeletDiskType,
    "aks.scaleDownMode": models.ScaleDownMode,
    "aks.scaleSetEvictionPolicy": models.ScaleSetEvictionPolicy,
    "aks.upgradeSettings.undrainableNodeBehavior": models.UndrainableNodeBehavior,
    "aks.securityProfile.sshAccess": models.AgentPoolSSHAccess,
}
LEFT_OUT = {"CBLMariner", "Windows2019", "Windows2022", "Windows2025"}


def ancestors(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def is_native(path: str) -> bool:
    shape: Shape | None = NATIVE
    for name in path.split("."):
        shape = shape.get(name) if isinstance(shape, Mapping) else None
    return shape is not None and not isinstance(shape, Mapping)


def places(path: str) -> list[str]:
    """Name the tables that judge a field of the SDK; one must."""
    above = ancestors(path)
    return [
        *(["NATIVE"] if is_native(path) else []),
        *(["MANAGED"] if path in MANAGED else []),
        *(["MANAGED_MEMBERS"] if path in MANAGED_MEMBERS else []),
        *(["REFUSED"] if any(one in REFUSED for one in above) else []),
        *(["UNTESTED"] if any(one in UNTESTED for one in above) else []),
    ]


def test_fields_when_the_sdk_is_walked_are_each_judged_once() -> None:
    unjudged = [path for path in leaves() if not places(path)]
    doubled = [path for path in leaves() if len(places(path)) > 1]

    assert not unjudged, (
        f"azure-mgmt-containerservice {VERSION} has fields of an agent pool that nobody has judged: {unjudged}. Say in "
        "gpukube_aks/pool/native.py what each is: NATIVE with its shape, and a row in updates.NATIVE_ROWS with a "
        "source, if users may set it; MANAGED (or MANAGED_MEMBERS) if a field of the spec sets it; UNTESTED if what a "
        "change of it does is not documented; REFUSED with the reason otherwise. Then give "
        "sandbox/gpukube_sandbox/aks/schema.py the same"
    )
    assert not doubled, (
        "these are in two tables; if a row of pool/fields.py sets one, remove it from NATIVE in pool/native.py, and "
        f"its row from updates.NATIVE_ROWS: {doubled}"
    )


@pytest.mark.parametrize("path", ["surprise", "upgradeSettings.surprise", "gpuProfile.nvidia.migStrategy"])
def test_field_when_new_to_the_sdk_is_judged_by_no_table(path: str) -> None:
    assert places(path) == []


def test_tables_when_compared_with_the_sdk_hold_nothing_it_has_not() -> None:
    known = {one for path in leaves() for one in ancestors(path)}

    unknown = {*NATIVE, *MANAGED, *MANAGED_MEMBERS, *REFUSED, *UNTESTED} - known
    assert unknown == set(), f"the SDK has no such properties; correct `wire` or `members` of their rows: {unknown}"


def test_resource_when_compared_with_the_sdk_has_the_fields_we_know() -> None:
    """Around the properties there is nothing to set: the name is in the address, the rest is the service's."""
    assert wire_names(models.AgentPool).keys() == {"id", "name", "type", "systemData", "properties"}


def test_managed_properties_when_compared_with_the_updates_have_a_row_each() -> None:
    tops = {str(field).partition("[")[0] for field in INTENT_ROWS}

    for name, fields in {**MANAGED, **MANAGED_MEMBERS}.items():
        for field in fields.split(" or "):
            root = field.removesuffix(".owner")
            assert any(top == root or top.startswith(f"{root}.") for top in tops), name


def test_native_leaves_when_changed_are_of_the_class_of_their_property() -> None:
    for path in leaves():
        if is_native(path):
            row = find_row(Change(FieldPath("aks", *path.split(".")), None, "x"))
            assert row.kind == find_row(Change(FieldPath("aks", path.partition(".")[0]), None, "x")).kind
            assert row.kind != "refused", path


@pytest.mark.parametrize("name", [*REFUSED, *UNTESTED, *MANAGED, "nodeInitializationTaints", "surprise"])
def test_escape_hatch_when_the_field_has_no_row_is_closed(name: str) -> None:
    found = check_native(make_target(native={name: "x"}))

    assert [problem.severity for problem in found] == ["error"]
    assert FieldPath("aks", name) not in NATIVE_ROWS
    assert find_row(Change(FieldPath("aks", name), None, "x")).kind == "refused"


def compare(path: str, shape: Shape, hint: object) -> None:
    if isinstance(shape, Mapping):
        model = inner_model(hint)
        assert model is not None, path
        members = wire_names(model)
        ours = {name.removeprefix(f"{path}.") for name in MANAGED_MEMBERS if name.startswith(f"{path}.")}
        assert shape.keys() | ours == members.keys(), path
        for name, member in shape.items():
            compare(f"{path}.{name}", member, members[name])
    elif isinstance(shape, str):
        word = {"bool": "[bool]", "int": "[int]", "str": "[str]", "strings": "[list[str]]"}[shape]
        assert str(hint).endswith(word), path


@pytest.mark.parametrize("name", NATIVE)
def test_shape_when_compared_with_the_sdk_is_the_same(name: str) -> None:
    compare(name, NATIVE[name], wire_names(PROPERTIES)[name])


@pytest.mark.parametrize("path", CHOICES)
def test_choices_when_compared_with_the_sdk_are_the_same(path: str) -> None:
    shape: Shape = NATIVE
    for name in path.split(".")[1:]:
        assert isinstance(shape, Mapping)
        shape = shape[name]

    assert sorted(str(item.value) for item in CHOICES[path]) == sorted(shape)


def test_systems_when_compared_with_the_sdk_leave_out_windows_and_the_deprecated() -> None:
    assert {str(item.value) for item in models.OSSKU} - set(IMAGES) == LEFT_OUT


def test_native_properties_when_compared_with_the_updates_have_a_row_each() -> None:
    assert NATIVE_ROWS.keys() == {FieldPath("aks", name) for name in NATIVE}


def test_flatten_when_given_nested_and_foreign_properties_keeps_the_native_leaves() -> None:
    properties = {
        "count": 1,
        "upgradeSettings": {"maxSurge": "1", "drainTimeoutInMinutes": 60, "nodeSoakDurationInMinutes": None},
        "kubeletConfig": {"allowedUnsafeSysctls": ["a", "b"]},
        "vnetSubnetID": "/subscriptions/S/resourceGroups/R",
    }

    assert by_text(flatten_native(properties)) == {
        "aks.upgradeSettings.drainTimeoutInMinutes": 60,
        "aks.kubeletConfig.allowedUnsafeSysctls": ("a", "b"),
        "aks.vnetSubnetID": "/subscriptions/s/resourcegroups/r",
    }
