"""The table of native properties against the SDK's own models, and against the table of updates."""

from __future__ import annotations

import typing
from collections.abc import Mapping

import pytest
from azure.mgmt.containerservice import models

from gpukube_aks.native import MANAGED, NATIVE, REFUSED, UNTESTED, Shape, flatten_native
from gpukube_aks.updates import NATIVE_ROWS

if typing.TYPE_CHECKING:
    from enum import Enum

PROPERTIES = models.AgentPoolManagedClusterAgentPoolProfileProperties
CHOICES: dict[str, type[Enum]] = {
    "aks.kubeletDiskType": models.KubeletDiskType,
    "aks.scaleDownMode": models.ScaleDownMode,
    "aks.scaleSetEvictionPolicy": models.ScaleSetEvictionPolicy,
    "aks.upgradeSettings.undrainableNodeBehavior": models.UndrainableNodeBehavior,
    "aks.securityProfile.sshAccess": models.AgentPoolSSHAccess,
}
LEFT_OUT = {"CBLMariner", "Windows2019", "Windows2022", "Windows2025"}


def wire_names(model: type[object]) -> dict[str, object]:
    """Map the wire names of a model of the SDK to their types."""
    model()  # the SDK fills in the table at the first use
    fields: Mapping[str, object] = model._attr_to_rest_field  # type: ignore[attr-defined]  # the SDK has no public view
    hints = {name: model.__annotations__[name] for name in fields}
    return {str(getattr(field, "_rest_name")): hints[name] for name, field in fields.items()}  # noqa: B009


def test_properties_when_compared_with_the_sdk_are_all_judged() -> None:
    judged = [*NATIVE, *MANAGED, *REFUSED, *UNTESTED]

    assert sorted(judged) == sorted(wire_names(PROPERTIES))


def inner_model(hint: object) -> type[object]:
    found = [str(arg) for arg in typing.get_args(hint) if "_models." in str(arg)]
    name = found[0].partition("_models.")[2].rstrip("')")
    model: type[object] = getattr(models, name)
    return model


def compare(path: str, shape: Shape, hint: object) -> None:
    if isinstance(shape, Mapping):
        members = wire_names(inner_model(hint))
        assert shape.keys() == members.keys(), path
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
    assert {str(item.value) for item in models.OSSKU} - set(NATIVE["osSKU"]) == LEFT_OUT


def test_native_properties_when_compared_with_the_updates_have_a_row_each() -> None:
    assert NATIVE_ROWS.keys() == {f"aks.{name}" for name in NATIVE}


def test_flatten_when_given_nested_and_foreign_properties_keeps_the_native_leaves() -> None:
    properties = {
        "count": 1,
        "upgradeSettings": {"maxSurge": "1", "drainTimeoutInMinutes": None},
        "kubeletConfig": {"allowedUnsafeSysctls": ["a", "b"]},
        "vnetSubnetID": "/subscriptions/S/resourceGroups/R",
    }

    assert flatten_native(properties) == {
        "aks.upgradeSettings.maxSurge": "1",
        "aks.kubeletConfig.allowedUnsafeSysctls": ("a", "b"),
        "aks.vnetSubnetID": "/subscriptions/s/resourcegroups/r",
    }
