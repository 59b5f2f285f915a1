"""Live pools as a spec would say them: marks, defaults, taints, who serves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath, label
from gpukube.core.importing import import_pool
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import ClusterFacts, Observed, Taint
from gpukube.gpu.mig_parted import read_cut
from gpukube.gpu.models import parse_model

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTS = ClusterFacts("eastus", "1.34.2", ready=True, status="Succeeded")


def live(fields: Mapping[FieldPath, object], *taints: Taint) -> Observed:
    return Observed("a100", "", "", False, "ready", "", "", fields, 1, {}, taints, "p4d.24xlarge", "", {})  # noqa: FBT003 - a pool


def imported(fields: Mapping[FieldPath, object], *taints: Taint, served: bool = True) -> dict[str, object]:
    return dict(import_pool(live(fields, *taints), fields, FACTS, served=served).data)


def test_pool_when_it_has_marks_and_labels_of_a_release_then_they_are_left_out() -> None:
    ours = {label("gpukube.io/owner"): "ml", label("nvidia.com/gpu.present"): "true", label("team"): "vision"}
    assert imported(ours, GPU_TAINT) == {"name": "a100", "labels": {"team": "vision"}}
    kept = imported({label("nvidia.com/gpu.present"): "true"}, GPU_TAINT, served=False)
    assert kept == {"name": "a100", "labels": {"nvidia.com/gpu.present": "true"}, "devicePlugin": {"owner": "none"}}


@pytest.mark.parametrize("version", ["1.34", "1.34.2", "1.34.2-gke.1829001"])
def test_version_when_it_is_the_clusters_then_left_out(version: str) -> None:
    assert imported({paths.KUBERNETES_VERSION: version}, GPU_TAINT) == {"name": "a100"}
    assert "kubernetesVersion" in imported({paths.KUBERNETES_VERSION: "1.33.7"}, GPU_TAINT)


def test_taints_when_the_gpu_taint_is_another_then_written_and_said() -> None:
    other = Taint("nvidia.com/gpu", "true", "NoSchedule")
    found = import_pool(live({paths.TAINTS: (str(other),)}, other), {}, FACTS, served=True)
    assert found.data["gpuTaint"] is False
    assert found.data["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    assert "nvidia.com/gpu=true:NoSchedule" in found.comments[0]


def test_amounts_of_upgrades_when_numbers_then_numbers() -> None:
    fields: dict[FieldPath, object] = {paths.MAX_SURGE: "33%", paths.MAX_UNAVAILABLE: "2"}
    assert imported(fields, GPU_TAINT)["upgrade"] == {"maxSurge": "33%", "maxUnavailable": 2}


@pytest.mark.parametrize("taint", [Taint("a/b", "c", "NoExecute"), Taint("sku", "", "NoSchedule")])
def test_taint_when_written_then_read(taint: Taint) -> None:
    assert Taint.parse(str(taint)) == taint


@pytest.mark.parametrize(
    ("name", "instances"),
    [
        ("all-1g.5gb", ("1g.5gb",)),
        ("all-1g.5gb.me", ("1g.5gb+me",)),
        ("mix-1x3g.20gb_2x2g.10gb", ("3g.20gb", "2g.10gb", "2g.10gb")),
        ("all-disabled", ()),
        ("all-1g.10gb.nope", ()),
        ("mix-axb", ()),
        ("custom", ()),
        ("", ()),
    ],
)
def test_cut_when_a_label_names_it_then_its_instances(name: str, instances: tuple[str, ...]) -> None:
    assert read_cut(name, parse_model("A100-40GB")) == instances
