"""A driver for pools of the DRA driver on GKE: Google's installer, which gpukube's releases do not include."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.kube.slices import SliceView
from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.installers import check_installers, missing_installer
from gpukube.cluster.state.snapshot import Snapshot
from tests.unit.cluster.builders import daemonset, desire, node_of
from tests.unit.core.test_claims import made

POOL = made("gke", plugin_owner="dra")
UBUNTU = made("gke", plugin_owner="dra", image="ubuntu_containerd")
OWN = made("gke", plugin_owner="dra", driver_owner="none")


def installer(*terms: dict[str, object]) -> Snapshot:
    """Make a cluster with Google's installer (daemonset-preloaded.yaml of container-engine-accelerators)."""
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    placement = placement_of({"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": affinity}})
    labels = {"k8s-app": "nvidia-driver-installer"}
    return Snapshot(
        daemonsets=(daemonset("nvidia-driver-installer", "kube-system", labels=labels, placement=placement),)
    )


GOOGLE = installer(
    {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
    {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
)
OPERATORS = installer({"key": "gpukube.io/advertiser", "operator": "In", "values": ["operator"]})


@pytest.mark.parametrize(("pool", "system"), [(POOL, "cos"), (UBUNTU, "ubuntu")])
def test_installer_when_none_is_there_then_the_command_for_the_image(pool: object, system: str) -> None:
    (found,) = check_installers(Snapshot(), [pool])  # type: ignore[list-item]  # table data
    assert (found.code, found.severity) == ("driver-missing", "error")
    assert found.fix.startswith("run kubectl apply --filename https://")
    assert f"/{system}/" in found.fix


def test_installer_when_the_spec_says_that_the_user_installs_the_driver_then_a_warning() -> None:
    found = missing_installer(Snapshot(), OWN)
    assert found
    assert found.severity == "warning"


def test_installer_when_google_s_reaches_the_nodes_then_nothing() -> None:
    assert check_installers(GOOGLE, [POOL, UBUNTU]) == []
    assert len(check_installers(OPERATORS, [POOL])) == 1, "it runs on nodes of the operator only"


def test_installer_when_devices_are_published_then_the_driver_is_there() -> None:
    node = node_of(POOL)
    seen = Snapshot(nodes=(node,), slices=(SliceView("s", "gpu.nvidia.com", node.name, node.name, 1, 1),))
    assert check_installers(seen, [POOL]) == []
    other = replace(seen, slices=(SliceView("s", "dra.net", node.name, node.name, 1, 1),))
    assert len(check_installers(other, [POOL])) == 1


def test_installer_when_the_driver_is_in_the_image_or_dra_does_not_publish_then_nothing() -> None:
    assert check_installers(Snapshot(), [desire(), desire(plugin_owner="dra"), made("gke", plugin_owner="none")]) == []


def test_verify_when_nothing_installs_the_driver_then_it_says_so_before_the_driver_s_own_pod() -> None:
    (found,) = [one for one in prove_pool(POOL, Snapshot()).all_findings if one.code == "step-driver"]
    assert (found.severity, "kubectl apply --filename" in found.fix) == ("error", True)
    assert "step-driver" not in {one.code for one in prove_pool(POOL, GOOGLE).all_findings}
