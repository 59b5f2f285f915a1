"""The managed autoscaler's settings, read and changed by a PUT of the cluster as `az aks update` sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.core.exceptions import HttpResponseError
from azure.mgmt.containerservice.models import ManagedClusterPropertiesAutoScalerProfile

from sandbox_tests.aks.arm import GROUP, NAME, T4, Arm

if TYPE_CHECKING:
    from azure.mgmt.containerservice.models import ManagedCluster


def cluster_of(arm: Arm) -> ManagedCluster:
    return arm.sdk.managed_clusters.get(GROUP, NAME)


def expander_of(arm: Arm) -> str:
    profile = cluster_of(arm).auto_scaler_profile
    assert profile is not None
    return str(profile["expander"])


def put(arm: Arm, cluster: ManagedCluster) -> None:
    arm.sdk.managed_clusters.begin_create_or_update(GROUP, NAME, cluster).result()


def test_profile_when_it_is_changed_then_read_as_written_and_a_put_without_it_leaves_it(arm: Arm) -> None:
    arm.create("gpu", {**T4, "enableAutoScaling": True, "minCount": 0, "maxCount": 2})
    assert expander_of(arm) == "random"
    wanted = cluster_of(arm)
    wanted.auto_scaler_profile = ManagedClusterPropertiesAutoScalerProfile(expander="priority")
    put(arm, wanted)
    assert expander_of(arm) == "priority"
    same = cluster_of(arm)
    same.auto_scaler_profile = None
    put(arm, same)
    assert expander_of(arm) == "priority"


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        pytest.param({"expander": "priority,least-waste"}, "expander", id="chain"),
        pytest.param({"expander": "price"}, "expander", id="unknown"),
        pytest.param({"max-node-provision-time": "90s"}, "max-node-provision-time", id="not-in-minutes"),
    ],
)
def test_profile_when_a_value_is_wrong_then_refused_and_nothing_changes(
    arm: Arm, settings: dict[str, str], target: str
) -> None:
    wanted = cluster_of(arm)
    wanted.auto_scaler_profile = ManagedClusterPropertiesAutoScalerProfile(settings)
    with pytest.raises(HttpResponseError) as caught:
        put(arm, wanted)
    assert caught.value.status_code == 400
    assert f"properties.autoScalerProfile.{target}" in str(caught.value)
    assert expander_of(arm) == "random"


def test_cluster_when_anything_else_is_changed_then_501(arm: Arm) -> None:
    wanted = cluster_of(arm)
    wanted.kubernetes_version = "1.99.0"
    with pytest.raises(HttpResponseError) as caught:
        put(arm, wanted)
    assert caught.value.status_code == 501
