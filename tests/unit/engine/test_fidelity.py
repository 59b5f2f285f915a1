"""Fidelity: every feature is judged when a pool uses it, and only then."""

from __future__ import annotations

from typing import Literal

import pytest

from gpukube.core.values import Capacity, Disk, Nodes, Reservation, Upgrade
from gpukube.engine.plan.fidelity import check_fidelity, inexact, used_features
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.provider import FEATURES, Ability, load_provider
from tests.builders import make_target

CASES: dict[str, dict[str, object]] = {
    "nodes.count": {},
    "nodes.autoscaling": {"nodes": Nodes(1, 1, 2, autoscaled=True)},
    "nodes.autoscaling.scope": {"nodes": Nodes(1, 1, 2, autoscaled=True, scope="zone")},
    "capacity.spot": {"capacity": Capacity("spot")},
    "capacity.reserved": {"capacity": Capacity("reserved", reservation=Reservation("reservation", "a100"))},
    "zones": {"zones": ("1",)},
    "disk.size": {"disk": Disk(100, None)},
    "disk.type": {"disk": Disk(None, "Managed")},
    "disk.iops": {"disk": Disk(None, None, iops=6000)},
    "disk.throughput": {"disk": Disk(None, None, throughput=500)},
    "disk.encrypted": {"disk": Disk(None, None, encrypted=True)},
    "disk.kmsKey": {"disk": Disk(None, None, kms_key="alias/x")},
    "instanceTypes": {"machines": (require_machine("aks", "Standard_NC24ads_A100_v4"),) * 2},
    "network.highSpeed": {"high_speed": True},
    "placement.compact": {"placement": "compact"},
    "placement.named": {"placement": "ml"},
    "localStorage.ephemeral": {"local_storage": "ephemeral"},
    "localStorage.raw": {"local_storage": "raw"},
    "kubelet": {"kubelet": {"cpuManagerPolicy": "static"}},
    "kubelet.topologyManagerScope": {"kubelet": {"topologyManagerScope": "pod"}},
    "kubelet.memoryManagerPolicy": {"kubelet": {"memoryManagerPolicy": "Static"}},
    "sysctls": {"sysctls": {"net.core.somaxconn": "4096"}},
    "hugepages": {"hugepages": {"2Mi": 512}},
    "confidential": {"confidential": True},
    "image": {"image": "bottlerocket"},
    "kubernetesVersion": {"kubernetes_version": "1.34"},
    "upgrade.maxSurge": {"upgrade": Upgrade(max_surge="0")},
    "upgrade.maxUnavailable": {"upgrade": Upgrade(max_unavailable="33%")},
    "maxPodsPerNode": {"max_pods": 60},
    "driver.version": {"driver_version": "latest"},
    "sharing.mig.single": {"sharing": Sharing(mig=MigCut("1g.5gb", "single"))},
    "sharing.mig.mixed": {"sharing": Sharing(mig=MigCut("1g.5gb", "mixed"))},
    "sharing.mig.layout": {"sharing": Sharing(mig=MigCut("", "mixed", ("3g.20gb", "2g.10gb", "1g.5gb")))},
    "sharing.timeSlicing": {"sharing": Sharing(slicing=Slicing("time-slicing", 2))},
    "sharing.mps": {"sharing": Sharing(slicing=Slicing("mps", 2))},
    "taints": {"taints": ()},
    "gpuTaint": {"gpu_taint": False},
    "labels": {"labels": {"a": "b"}},
    "tags": {"tags": {"a": "b"}},
    "deletionProtection": {"protect": True},
}
EXACT = Ability("exact")


def test_cases_when_compared_then_every_feature_has_one() -> None:
    assert set(FEATURES) - set(CASES) == set(), "add a target that uses the feature to CASES"
    assert set(CASES) - set(FEATURES) == set(), "add the feature to FEATURES in gpukube/provider.py"


@pytest.mark.parametrize("feature", [name for name in FEATURES if name != "taints"])
def test_feature_when_used_and_missing_then_told(feature: str) -> None:
    target = make_target(**CASES[feature])  # type: ignore[arg-type]  # test data
    assert feature in used_features(target)
    missing = dict.fromkeys(FEATURES, EXACT) | {feature: Ability("missing", reason="not here")}
    (told,) = check_fidelity(target, missing)
    matters = feature.startswith(
        ("nodes.", "capacity.", "sharing.", "network.", "hugepages", "confidential", "disk.encrypted", "disk.kmsKey")
    )
    assert (told.code, told.severity) == ("missing-feature", "error" if matters else "warning")
    assert told.fix


@pytest.mark.parametrize("feature", [name for name in FEATURES if name != "taints"])
def test_feature_when_the_provider_does_not_judge_it_then_missing_and_names_the_cloud(feature: str) -> None:
    target = make_target(**CASES[feature])  # type: ignore[arg-type]  # test data
    (found,) = check_fidelity(target, {name: EXACT for name in FEATURES if name != feature})
    assert found.why == f"gpukube does not set this field on {target.cluster.provider} yet"


def test_feature_when_not_used_then_silent() -> None:
    plain = make_target()
    missing = dict.fromkeys(FEATURES, Ability("missing", reason="not here")) | {"nodes.count": EXACT}
    assert used_features(plain) == ("nodes.count",)
    assert check_fidelity(plain, missing) == []


def test_feature_when_emulated_then_shown_but_no_finding() -> None:
    sliced = make_target(sharing=Sharing(slicing=Slicing("time-slicing", 2)))
    emulated = dict.fromkeys(FEATURES, EXACT) | {"sharing.timeSlicing": Ability("emulated", "the plugin", "no field")}
    assert list(inexact(sliced, emulated)) == ["sharing.timeSlicing"]
    assert check_fidelity(sliced, emulated) == []


@pytest.mark.parametrize(
    ("provider", "scope", "told"),
    [
        ("gke", "pool", []),
        ("gke", "zone", []),
        ("aks", "pool", []),
        ("aks", "zone", ["nodes.autoscaling.scope"]),
        ("eks", "pool", ["nodes.autoscaling"]),
        ("eks", "zone", ["nodes.autoscaling", "nodes.autoscaling.scope"]),
    ],
)
def test_autoscaling_when_bounds_are_of_the_pool_or_a_zone_then_told_where_the_cloud_has_no_such(
    provider: str, scope: Literal["pool", "zone"], told: list[str]
) -> None:
    target = make_target(nodes=Nodes(0, 0, 8, autoscaled=True, scope=scope))
    assert list(inexact(target, load_provider(provider).abilities())) == told
