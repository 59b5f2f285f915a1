"""Driver and plugin of one's own on GKE: what is sent, what the release brings, and to which nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.core.fields import DRIVER, PLUGIN
from gpukube.core.owners import choose_release, decide_owner
from gpukube.core.resolve import promise_of
from gpukube.core.values import Ownership
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_gke import GkeProvider
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Target

PROVIDER = GkeProvider()
UBUNTU = "UBUNTU_CONTAINERD"
CUT = Sharing(mig=MigCut("1g.5gb", "mixed"))
LABEL = "gke-no-default-nvidia-gpu-device-plugin"


def desire(target: Target) -> Desired:
    stack = PROVIDER.stack(target)
    outcome = decide_owner(target, stack, choose_release([(target, stack)])).outcome
    assert isinstance(outcome, Ownership), outcome
    return PROVIDER.desired(target, outcome, promise_of(target))


INSTALLED = desire(gke_target(plugin_owner="operator", sharing=CUT))
DRIVEN = desire(gke_target(driver_owner="operator", image=UBUNTU, sharing=CUT))


@pytest.mark.parametrize("pool", [INSTALLED, DRIVEN], ids=["Google's installer", "the operator's driver"])
def test_pool_when_the_operator_serves_then_gke_installs_shares_and_cuts_nothing(pool: Desired) -> None:
    request: Any = pool.create.params
    config = request["nodePool"]["config"]
    assert config["accelerators"][0] == {
        "acceleratorType": "nvidia-tesla-a100",
        "acceleratorCount": config["accelerators"][0]["acceleratorCount"],
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"},
    }
    assert config["labels"][LABEL] == "true"
    assert config["labels"]["nvidia.com/mig.config"] == "all-1g.5gb"
    assert (pool.ownership.advertiser, pool.fields[PLUGIN], pool.fields[DRIVER]) == (
        "operator",
        "none",
        "none",
    )
    assert PROVIDER.check(pool.target) == []


def objects(pool: Desired) -> dict[str, Any]:
    values: Any = operator_values([pool], ReleaseContext())
    return {item["metadata"]["name"]: item for item in values["extraObjects"]}


def test_release_when_google_installs_then_driver_root_toolkit_and_installers_are_there() -> None:
    values: Any = operator_values([INSTALLED], ReleaseContext())
    assert (values["driver"]["enabled"], values["toolkit"]["enabled"]) == (False, True)
    assert values["hostPaths"]["driverInstallDir"] == values["toolkit"]["installDir"] == "/home/kubernetes/bin/nvidia"
    assert set(objects(INSTALLED)) == {
        "gpukube-critical-pods",
        "gpukube-driver-installer-cos",
        "gpukube-driver-installer-ubuntu",
    }


def test_release_when_the_operator_installs_then_only_the_quota_is_besides() -> None:
    values: Any = operator_values([DRIVEN], ReleaseContext())
    assert (values["driver"]["enabled"], values["toolkit"]["enabled"]) == (True, True)
    assert "hostPaths" not in values
    assert set(objects(DRIVEN)) == {"gpukube-critical-pods"}


@pytest.mark.parametrize(("live", "wanted"), [(INSTALLED, DRIVEN), (DRIVEN, INSTALLED)], ids=["there", "back"])
def test_release_when_it_goes_another_way_then_nothing_of_the_former_stays(live: Desired, wanted: Desired) -> None:
    before = operator_values([live], ReleaseContext())
    after: Any = operator_values([wanted], ReleaseContext(live=before))
    fresh: Any = operator_values([wanted], ReleaseContext())
    assert after["toolkit"] == fresh["toolkit"]
    assert after["extraObjects"] == fresh["extraObjects"]
    assert after.get("hostPaths", {}) == fresh.get("hostPaths", {})


@pytest.mark.parametrize("system", ["cos", "ubuntu"])
def test_installer_when_placed_then_on_nodes_of_our_operator_and_its_system_without_gke_s_driver(system: str) -> None:
    pod = objects(INSTALLED)[f"gpukube-driver-installer-{system}"]["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    wanted = {item["key"]: (item["operator"], item.get("values")) for item in term["matchExpressions"]}
    assert wanted == {
        "gpukube.io/advertiser": ("In", ["operator"]),
        "cloud.google.com/gke-accelerator": ("Exists", None),
        "cloud.google.com/gke-gpu-driver-version": ("DoesNotExist", None),
        "cloud.google.com/gke-os-distribution": ("In", [system]),
    }
    assert pod["initContainers"][0]["imagePullPolicy"] == "Never"


def test_stack_when_the_operator_is_to_bring_the_driver_to_cos_then_it_has_none() -> None:
    target = gke_target(driver_owner="operator")
    assert "Container-Optimized OS" in PROVIDER.stack(target).no_driver
    assert [found.code for found in PROVIDER.check(target) if found.severity == "error"] == ["gke-driver-owner"]
    assert not PROVIDER.check(replace(target, image=UBUNTU))
