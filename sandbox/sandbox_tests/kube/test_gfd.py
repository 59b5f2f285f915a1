"""Labels of GPU Feature Discovery and Node Feature Discovery."""

from __future__ import annotations

import pytest

from gpukube_sandbox.kube.nodes.gfd import feature_labels
from gpukube_sandbox.kube.nodes.nfd import worker_labels
from gpukube_sandbox.kube.nodes.pluginconfig import Crash, read_settings
from gpukube_sandbox.kube.nodes.shapes import GpuShape

SLICED = GpuShape("A100-40GB", 8, ("1g.5gb",) * 7)
TS = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
RENAMED = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
MPS = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


@pytest.mark.parametrize(
    ("shape", "strategy", "text", "expected"),
    [
        pytest.param(
            GpuShape("H100-80GB", 8),
            "none",
            None,
            {
                "gpu.product": "NVIDIA-H100-80GB-HBM3",
                "gpu.count": "8",
                "gpu.replicas": "1",
                "gpu.sharing-strategy": "none",
                "gpu.memory": "81559",
                "gpu.family": "hopper",
                "gpu.compute.major": "9",
                "mig.capable": "true",
                "mps.capable": "false",
                "mig.strategy": None,
            },
            id="whole",
        ),
        pytest.param(
            SLICED,
            "single",
            None,
            {
                "mig.strategy": "single",
                "gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
                "gpu.count": "56",
                "gpu.memory": "4864",
                "gpu.multiprocessors": "14",
                "gpu.slices.gi": "1",
            },
            id="single",
        ),
        pytest.param(
            SLICED,
            "mixed",
            None,
            {
                "mig.strategy": "mixed",
                "gpu.product": "NVIDIA-A100-SXM4-40GB",
                "gpu.count": "8",
                "gpu.replicas": "0",
                "mig-1g.5gb.count": "56",
                "mig-1g.5gb.replicas": "1",
            },
            id="mixed",
        ),
        pytest.param(
            GpuShape("T4", 1),
            "none",
            TS,
            {
                "gpu.product": "Tesla-T4-SHARED",
                "gpu.replicas": "4",
                "gpu.sharing-strategy": "time-slicing",
                "mig.capable": "false",
            },
            id="shared",
        ),
        pytest.param(
            GpuShape("T4", 1), "none", RENAMED, {"gpu.product": "Tesla-T4", "gpu.replicas": "4"}, id="renamed"
        ),
        pytest.param(GpuShape("T4", 1), "none", MPS, {"mps.capable": "true", "gpu.sharing-strategy": "mps"}, id="mps"),
        pytest.param(
            GpuShape("A100-40GB", 2, (("1g.5gb",), ("2g.10gb",))),
            "single",
            None,
            {"gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID", "gpu.count": "0", "gpu.replicas": "0"},
            id="invalid",
        ),
    ],
)
def test_feature_labels_when_node_is_cut_and_shared_then_labels_say_so(
    shape: GpuShape, strategy: str, text: str | None, expected: dict[str, str | None]
) -> None:
    labels = feature_labels(shape, read_settings(text, {"MIG_STRATEGY": strategy}), "machine", 0.0)

    assert {key: labels.get(f"nvidia.com/{key}") for key in expected} == expected


def test_feature_labels_when_mps_meets_mig_then_exits() -> None:
    with pytest.raises(Crash, match="MPS"):
        feature_labels(SLICED, read_settings(MPS, {}), "machine", 0.0)


@pytest.mark.parametrize(
    ("config", "label"),
    [
        pytest.param(
            "sources: {pci: {deviceClassWhitelist: ['02', '03'], deviceLabelFields: [vendor]}}", "pci-10de", id="chart"
        ),
        pytest.param("", "pci-0302_10de", id="own-default"),
        pytest.param("sources: {pci: {deviceClassWhitelist: ['02']}}", None, id="class-not-listed"),
    ],
)
def test_worker_labels_when_pci_source_is_configured_then_label_name_follows(config: str, label: str | None) -> None:
    found = {key for key in worker_labels(config, gpu=True) if "/pci-" in key}

    assert found == ({f"feature.node.kubernetes.io/{label}.present"} if label else set())
    assert not any("/pci-" in key for key in worker_labels(config, gpu=False))
