"""The tool that builds the data files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tools import build_gpu_data

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "provider,instance_type,gpu_model,gpu_count,gpu_memory_gib_each,vcpus,memory_gib,arch,mig_capable,accelerator_type,"
    "interconnect,local_ssd_gib,network_gbps,on_demand_usd_hour,spot_usd_hour,price_region,status,source,notes"
)
ROWS = (
    'aks,Old,T4-16GB,0.5,8,,,amd64,,,no,,,,,,retired,D,"preview size, no longer deployable: use New; one feed row"',
    "aks,New,T4-16GB,2,16,4,27.5,amd64,true,,no,176,8,0.5,,eastus,,D+CA,GRID driver; max 16 vCPU",
)


def test_build_instances_when_cells_are_blank_then_the_keys_are_absent_and_rows_sorted(tmp_path: Path) -> None:
    table = tmp_path / "types.csv"
    table.write_text("\n".join([HEAD, *ROWS]), encoding="utf-8")
    built = json.loads(build_gpu_data.build_instances(table, "2026-01-02"))
    assert built["asOf"] == "2026-01-02"
    assert built["machines"] == [
        {
            "provider": "aks",
            "name": "New",
            "model": "T4-16GB",
            "gpus": 2,
            "gpuMemoryGiB": 16,
            "vcpus": 4,
            "memoryGiB": 27.5,
            "arch": "amd64",
            "mig": True,
            "localSsdGiB": 176,
            "priceUsdH": 0.5,
            "priceRegion": "eastus",
            "status": "unknown",
            "source": "D+CA",
            "notes": "needs the GRID driver; at most 16 vCPUs",
        },
        {
            "provider": "aks",
            "name": "Old",
            "model": "T4-16GB",
            "gpus": 0.5,
            "gpuMemoryGiB": 8,
            "arch": "amd64",
            "status": "retired",
            "successor": "New",
            "source": "D",
            "notes": "preview size that no longer deploys",
        },
    ]


@pytest.mark.parametrize(
    ("gpu_id", "name"),
    [("a100-40gb", "A100-40GB"), ("rtx-pro-6000-96gb", "RTXPRO6000-96GB"), ("gb200-186gb", "GB200-186GB")],
)
def test_model_name_when_an_id_is_given_then_as_the_catalog_spells_it(gpu_id: str, name: str) -> None:
    assert build_gpu_data.model_name(gpu_id) == name


def test_build_mig_when_engines_are_unknown_then_left_out(tmp_path: Path) -> None:
    profile = {
        "name": "1g.6gb",
        "compute_slices": 1,
        "memory_slices": 1,
        "memory_gb": 6,
        "max_instances": 4,
        "placements": {"starts": [0, 1, 2, 3], "size": 1, "confidence": "inferred"},
        "engines": {"copy": 1, "nvdec": None, "nvenc": 0, "jpeg": 0, "ofa": 0},
    }
    gpu = {
        "id": "a30-24gb",
        "name": "A30",
        "compute_capability": "8.0",
        "pci_device_ids": ["0x20B7"],
        "profiles": [profile],
        "maximal_mixes": [{"1g.6gb": 4}],
    }
    table = tmp_path / "mig.json"
    table.write_text(json.dumps({"as_of": "2026-09 (read later)", "gpus": [gpu]}), encoding="utf-8")
    built = json.loads(build_gpu_data.build_mig(table))
    assert built["asOf"] == "2026-09"
    assert built["models"][0]["gridUnits"] == 4
    assert built["models"][0]["mixes"] == ["4x1g.6gb"]
    assert built["models"][0]["pciIds"] == ["20B7"]
    assert "engines" not in built["profiles"][0]
    assert "memoryMiB" not in built["profiles"][0]


@pytest.mark.parametrize(
    ("cells", "mib"),
    [
        ({"memory_mib": 5836, "memory_gib_reported": None}, 5836),
        ({"memory_mib": None, "memory_gib_reported": 9.75}, 9984),
        ({"memory_mib": None, "memory_gib_reported": None}, None),
        ({}, None),
    ],
)
def test_usable_memory_when_reported_in_either_unit_then_in_mib(cells: dict[str, object], mib: int | None) -> None:
    assert build_gpu_data.usable_memory(cells) == mib
