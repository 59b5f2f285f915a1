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
from gpukube_aks.pool.members import _FILLED_IN, FIELDS, MEMBERS, NATIVE, REFUSED, ListOf, MapOf, Shape, native_leaves
from gpukube_aks.pool.native import check_native, flatten_native
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
    "aks.podIPAllocationMode": models.PodIPAllocationMode,
    "aks.networkProfile.dranet.mode": models.DRANETMode,
    "aks.networkProfile.allowedHostPorts.protocol": models.Protocol,
    "aks.localDNSProfile.mode": models.LocalDNSMode,
    "aks.localDNSProfile.vnetDNSOverrides.queryLogging": models.LocalDNSQueryLogging,
    "aks.localDNSProfile.vnetDNSOverrides.protocol": models.LocalDNSProtocol,
    "aks.localDNSProfile.vnetDNSOverrides.forwardDestination": models.LocalDNSForwardDestination,
    "aks.localDNSProfile.vnetDNSOverrides.forwardPolicy": models.LocalDNSForwardPolicy,
    "aks.localDNSProfile.kubeDNSOverrides.serveStale": models.LocalDNSServeStale,
}
LEFT_OUT = {"CBLMariner", "Windows2019", "Windows2022", "Windows2025"}


def ancestors(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def rows_of(path: str) -> list[str]:
    """Name the rows of the table that classify a member of the SDK: one must."""
    return [row for one in ancestors(path) for row in (one, f"{one}.*") if row in MEMBERS]


def test_members_when_the_sdk_is_walked_are_each_classified_once() -> None:
    unjudged = [path for path in leaves() if not rows_of(path)]
    doubled = [path for path in leaves() if len(rows_of(path)) > 1]

    assert not unjudged, (
        f"azure-mgmt-containerservice {VERSION} has members of an agent pool without a row: {unjudged}. Say in "
        "gpukube_aks/pool/members.py what each is: NATIVE with its shape, and a row in updates.NATIVE_ROWS with a "
        "source, if users may set it; a binding in pool/fields.py if a field of the spec sets it; _OTHERS with the "
        "reason otherwise; and in _FILLED_IN what AKS fills in. Then give sandbox/gpukube_sandbox/aks/schema.py each"
    )
    assert not doubled, (
        "these have two rows in MEMBERS of gpukube_aks/pool/members.py; if a binding of pool/fields.py sets one, "
        f"remove it from NATIVE, and its row from updates.NATIVE_ROWS: {doubled}"
    )


@pytest.mark.parametrize("path", ["surprise", "upgradeSettings.surprise", "gpuProfile.nvidia.migStrategy"])
def test_member_when_new_to_the_sdk_has_no_row(path: str) -> None:
    assert rows_of(path) == []


def test_table_when_compared_with_the_sdk_holds_nothing_it_has_not() -> None:
    known = {one for path in leaves() for one in ancestors(path)}

    unknown = {path.removesuffix(".*") for path in MEMBERS} - known
    assert unknown == set(), f"MEMBERS of gpukube_aks/pool/members.py has rows that the SDK has not: {unknown}"
    assert _FILLED_IN.keys() <= MEMBERS.keys()


def test_resource_when_compared_with_the_sdk_has_the_fields_we_know() -> None:
    """Around the properties there is nothing to set: the name is in the address, the rest is the service's."""
    assert wire_names(models.AgentPool).keys() == {"id", "name", "type", "systemData", "properties"}


def test_managed_properties_when_compared_with_the_updates_have_a_row_each() -> None:
    tops = {str(field).partition("[")[0] for field in INTENT_ROWS}

    for name, field in FIELDS.items():
        root = field.removesuffix(".owner")
        assert any(top == root or top.startswith(f"{root}.") for top in tops), name


def test_native_leaves_when_changed_have_a_row_of_effects() -> None:
    for path, _ in native_leaves():
        assert find_row(Change(FieldPath("aks", *path.split(".")), None, "x")).kind != "refused", path


@pytest.mark.parametrize("path", [*REFUSED, *FIELDS, "nodeInitializationTaints", "surprise"])
def test_escape_hatch_when_no_native_member_has_the_path_is_closed(path: str) -> None:
    value: object = "x"
    for name in reversed(path.split(".")):
        value = {name: value}
    found = check_native(make_target(native=value))

    assert [problem.severity for problem in found] == ["error"]
    assert found[0].code == {True: "aks-native-managed", False: found[0].code}[path in FIELDS]
    assert FieldPath("aks", *path.split(".")) not in NATIVE_ROWS


def compare(path: str, shape: Shape, hint: object) -> None:
    if isinstance(shape, Mapping):
        model = inner_model(hint)
        assert model is not None, path
        members = wire_names(model)
        others = {one.removeprefix(f"{path}.").partition(".")[0] for one in MEMBERS if one.startswith(f"{path}.")}
        assert shape.keys() | others == members.keys(), path
        for name, member in shape.items():
            compare(f"{path}.{name}", member, members[name])
    elif isinstance(shape, ListOf | MapOf):
        assert str(hint).startswith({ListOf: "typing.Optional[list[", MapOf: "typing.Optional[dict[str, "}[type(shape)])
        compare(path, shape.item, hint)
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
        shape = shape.item if isinstance(shape, ListOf | MapOf) else shape
        assert isinstance(shape, Mapping)
        shape = shape[name]

    assert isinstance(shape, tuple)
    assert sorted(str(item.value) for item in CHOICES[path]) == sorted(shape)


def test_systems_when_compared_with_the_sdk_leave_out_windows_and_the_deprecated() -> None:
    assert {str(item.value) for item in models.OSSKU} - set(IMAGES) == LEFT_OUT


def test_native_properties_when_compared_with_the_updates_have_a_row_each() -> None:
    members = [FieldPath("aks", *path.split(".")) for path, _ in native_leaves()]
    assert all(any(one.is_below(*row) for row in NATIVE_ROWS) for one in members)
    assert all(any(one.is_below(*row) for one in members) for row in NATIVE_ROWS)


def test_flatten_when_given_nested_and_foreign_properties_keeps_the_native_leaves() -> None:
    properties = {
        "count": 1,
        "upgradeSettings": {"maxSurge": "1", "drainTimeoutInMinutes": 60, "nodeSoakDurationInMinutes": None},
        "kubeletConfig": {"failSwapOn": False, "podMaxPids": 9},
        "networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 80}], "dranet": None},
        "localDNSProfile": {"vnetDNSOverrides": {"a.b": {"protocol": "ForceTCP"}}, "state": "Enabled"},
        "vnetSubnetID": "/subscriptions/S/resourceGroups/R",
    }

    assert by_text(flatten_native(properties)) == {
        "aks.upgradeSettings.drainTimeoutInMinutes": 60,
        "aks.kubeletConfig.failSwapOn": False,
        "aks.networkProfile.allowedHostPorts": ({"portStart": 80, "portEnd": 80},),
        "aks.localDNSProfile.vnetDNSOverrides": {"a.b": {"protocol": "ForceTCP"}},
        "aks.vnetSubnetID": "/subscriptions/s/resourcegroups/r",
    }
