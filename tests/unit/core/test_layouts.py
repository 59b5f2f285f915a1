"""A MIG layout from the spec to what each cloud makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
  train-gke: {provider: gke, project: ml-prod, location: us-central1, name: train}
pools:
  - name: mix
    gpu: {model: A100-40GB, count: 8}
    nodes: {count: 2}
"""
LAYOUT = "[2g.10gb, 3g.20gb, 2g.10gb]"


def prepare(tmp_path: Path, rest: str) -> api.Prepared:
    file = tmp_path / "pools.yaml"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in rest.splitlines()), "utf-8")
    return api.prepare(api.load([str(file)]))


def test_layout_when_on_eks_then_promised_labelled_and_written_for_the_mig_manager(tmp_path: Path) -> None:
    rest = (
        f"clusters: [train-eks]\nsharing: {{mig: {{layout: {LAYOUT}, strategy: mixed}}, timeSlicing: {{replicas: 3}}}}"
    )
    [pool] = prepare(tmp_path, rest).desired["train-eks"]
    assert pool.promise.per_node == {"nvidia.com/mig-2g.10gb": 48, "nvidia.com/mig-3g.20gb": 24}
    assert pool.ownership.advertiser == "operator"
    assert pool.labels["nvidia.com/mig.config"] == "mix-1x3g.20gb_2x2g.10gb"
    written = str(operator_values([pool], ReleaseContext())["migManager"])
    assert "mix-1x3g.20gb_2x2g.10gb" in written


REFUSED = {
    "AKS": ("clusters: [train-aks]", "missing-feature", "aks does not support sharing.mig.layout"),
    "GKE": ("clusters: [train-gke]", "missing-feature", "gke does not support sharing.mig.layout"),
    "Bottlerocket": (
        "clusters: [train-eks]\nimage: bottlerocket",
        "eks-bottlerocket-profile",
        "Bottlerocket supports one MIG profile for all GPUs, not a layout",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_layout_when_the_cloud_cuts_by_profile_then_refused_and_nothing_is_said_of_profiles(
    case: str, tmp_path: Path
) -> None:
    where, code, said = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        prepare(tmp_path, f"{where}\nsharing: {{mig: {{layout: {LAYOUT}, strategy: mixed}}}}")
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert code in {d.code for d in errors}
    assert any(said in d.seen for d in errors)
    assert not any('""' in d.seen for d in errors)
