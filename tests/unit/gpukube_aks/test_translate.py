"""Requests beyond creation, marks and taints; the bodies of creation are in tests/golden/aks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.fields import CAPACITY_TYPE, PROTECTION, TAINTS, FieldPath, label
from gpukube.core.values import Capacity, Ownership, Promise, Reservation, Taint, Upgrade
from gpukube_aks import AksProvider
from gpukube_aks.pool.observe import observe_pool
from tests.builders import CLUSTER, by_text, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Request, Target

GROUP = Reservation(
    "capacityReservationGroup",
    "/subscriptions/S/resourceGroups/R/providers/Microsoft.Compute/capacityReservationGroups/G",
)
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
PATH = {"resource_group": "ml", "cluster": "train", "pool": "a100mig"}


def desire(target: Target) -> Desired:
    return AksProvider().desired(target, Ownership("cloud", "chart", "c-1", {}, ""), Promise({}, target.nodes))


def properties_of(request: Request) -> Mapping[str, object]:
    body = cast("Mapping[str, Mapping[str, object]]", request.params["body"])
    return body["properties"]


def test_create_when_made_only_succeeds_where_no_pool_is() -> None:
    request = desire(make_target()).create

    assert request.params["match_condition"] == "if-missing"
    assert "etag" not in request.params


def test_marks_when_the_user_writes_them_too_are_ours() -> None:
    desired = desire(make_target(labels={"gpukube.io/owner": "me", "team": "a"}, protect=True))

    assert desired.labels == {
        "team": "a",
        "gpukube.io/owner": "ml-platform",
        "gpukube.io/pool": "a100mig",
        "gpukube.io/protect": "true",
    }
    assert desired.fields[PROTECTION] is True
    assert label("gpukube.io/protect") not in desired.fields


def test_spot_taint_when_effective_is_not_sent() -> None:
    desired = desire(make_target(capacity=Capacity("spot")))

    assert Taint(SPOT_KEY, "spot", "NoSchedule") in desired.effective_taints
    assert properties_of(desired.create)["nodeTaints"] == ["nvidia.com/gpu=present:NoSchedule"]
    assert desired.fields[TAINTS] == ("nvidia.com/gpu=present:NoSchedule",)


def test_lists_and_maps_when_sent_are_in_one_order() -> None:
    one = make_target(
        zones=("2", "1"),
        labels={"b": "1", "a": "2"},
        tags={"y": "1", "x": "2"},
        taints=(Taint("b", "1", "NoSchedule"), Taint("a", "1", "NoSchedule")),
    )
    other = make_target(
        zones=("1", "2"),
        labels={"a": "2", "b": "1"},
        tags={"x": "2", "y": "1"},
        taints=(Taint("a", "1", "NoSchedule"), Taint("b", "1", "NoSchedule")),
    )

    assert str(desire(one).create) == str(desire(other).create)
    assert desire(one).fields == desire(other).fields


def test_native_fields_when_given_enter_the_body_last_and_are_compared() -> None:
    native = {"scaleDownMode": "Deallocate", "upgradeSettings": {"drainTimeoutInMinutes": 60}}
    desired = desire(make_target(native=native))

    assert list(properties_of(desired.create))[-2:] == ["scaleDownMode", "upgradeSettings"]
    assert desired.fields[FieldPath.parse("aks.scaleDownMode")] == "Deallocate"
    assert desired.fields[FieldPath.parse("aks.upgradeSettings.drainTimeoutInMinutes")] == 60


def test_upgrade_settings_when_given_in_both_ways_are_sent_together() -> None:
    native = {"upgradeSettings": {"drainTimeoutInMinutes": 60}}
    desired = desire(make_target(upgrade=Upgrade("0", "33%"), native=native))

    assert properties_of(desired.create)["upgradeSettings"] == {
        "maxSurge": "0",
        "maxUnavailable": "33%",
        "drainTimeoutInMinutes": 60,
    }
    assert {name: value for name, value in by_text(desired.fields).items() if "pgrade" in name} == {
        "upgrade.maxSurge": "0",
        "upgrade.maxUnavailable": "33%",
        "aks.upgradeSettings.drainTimeoutInMinutes": 60,
    }


def test_reservation_when_asked_for_is_sent_as_written_and_compared_without_case() -> None:
    desired = desire(make_target(capacity=Capacity("reserved", reservation=GROUP)))

    assert properties_of(desired.create)["capacityReservationGroupID"] == GROUP.id
    assert desired.fields[CAPACITY_TYPE] == "reserved"
    assert desired.fields[FieldPath.parse("capacity.reserved.aks.capacityReservationGroup")] == GROUP.id.lower()


def test_reservation_when_the_pool_buys_otherwise_is_not_sent() -> None:
    desired = desire(make_target(capacity=Capacity("on-demand", reservation=GROUP)))

    assert "capacityReservationGroupID" not in properties_of(desired.create)
    assert FieldPath.parse("capacity.reserved.aks.capacityReservationGroup") not in desired.fields


def test_nodes_when_their_software_is_chosen_are_asked_for_by_the_names_of_aks() -> None:
    plain = properties_of(desire(make_target()).create)
    chosen = make_target(image="AzureLinux", kubernetes_version="1.34", max_pods=60, upgrade=Upgrade("1"))

    assert {k: v for k, v in properties_of(desire(chosen).create).items() if k not in plain} == {
        "osSKU": "AzureLinux",
        "orchestratorVersion": "1.34",
        "maxPods": 60,
        "upgradeSettings": {"maxSurge": "1"},
    }


def test_delete_when_the_etag_is_known_is_guarded_by_it() -> None:
    provider = AksProvider()
    ready = {"eTag": "e1", "provisioningState": "Succeeded"}

    guarded = provider.requests.delete(CLUSTER, observe_pool({"name": "a100mig", "properties": ready}))
    unguarded = provider.requests.delete(CLUSTER, observe_pool({"name": "a100mig", "properties": {}}))

    assert guarded.operation == "agent_pools.begin_delete"
    assert guarded.params == {**PATH, "etag": "e1", "match_condition": "if-not-modified"}
    assert unguarded.params == PATH


@pytest.mark.parametrize("state", ["Creating", "Deleting"])
def test_delete_when_aks_works_on_the_pool_is_not_guarded_by_an_etag_about_to_change(state: str) -> None:
    busy = {"eTag": "e1", "provisioningState": state}

    assert AksProvider().requests.delete(CLUSTER, observe_pool({"name": "a100mig", "properties": busy})).params == PATH
