"""Build gpukube/gpu/data/*.json from a table of instance types and a table of MIG geometry.

    python tools/build_gpu_data.py INSTANCE_CSV MIG_JSON --as-of 2026-11-21

In scope: the mapping from research tables to the few columns the product reads. Out of scope:
facts about single machines (they belong in the tables). docs/catalog.md has the sources of the tables.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = dict[str, object]

DATA: Final = Path(__file__).resolve().parent.parent / "gpukube" / "gpu" / "data"

INSTANCE_SOURCES: Final = {
    "M": "EC2 DescribeInstanceTypes as shipped in moto 5.2.5",
    "M-APR": "EC2 DescribeInstanceTypes as in getmoto/moto 95a0128 (2026-04-01)",
    "CA": "kubernetes/autoscaler 55c37cd (2026-08-22): EC2, Azure and GCE static lists",
    "CA-P": "kubernetes/autoscaler 55c37cd: GCE price table (2026-06-23)",
    "EK": "eksctl-io/eksctl 99984ad (2026-08-21): instance_types.go",
    "HP": "aws/sagemaker-hyperpod-cli 011ca92 (2026-06-22): training constants",
    "KA": "aws/karpenter-provider-aws 1d92708: us-east-1 prices of 2026-07-20",
    "KBW": "aws/karpenter-provider-aws 1d92708: bandwidth table",
    "BOTO": "botocore 1.44.5: EC2 instance type enum",
    "D": "Azure virtual machine size pages, gpu-accelerated (2024-07-31 .. 2026-08-12)",
    "KAZ": "Azure/karpenter-provider-azure 352646f (2026-08-21): known SKUs",
    "KAZ-GPU": "Azure/karpenter-provider-azure 352646f: supported GPUs",
    "KAZ-SKU": "Azure/karpenter-provider-azure 352646f: resource SKUs of southcentralus (2025-06-03)",
    "KAZ-P": "Azure/karpenter-provider-azure 352646f: retail prices of 2026-06-18",
    "T": "a public catalog filled from the Azure pricing calculator",
    "GMT": "Google Cloud's page of accelerator-optimized machine types",
    "GKE": "GKE GPU page and GKE cluster autoscaler machine table",
    "CY": "Cyclenerd/google-cloud-pricing-cost-calculator dac3128 (2026-08-20)",
    "KG": "cloudpilot-ai/karpenter-provider-gcp 417f047: prices of 2026-08-03",
    "SK": "skypilot-org/skypilot-catalog v8 006059e",
    "GH": "dstackai/gpuhunt 3584151 (2026-08-19)",
    "UG": "Amazon EKS user guide: P6e-GB200 UltraServers",
    "XPK": "AI-Hypercomputer/xpk 367c838 (2026-06-25)",
}

PRICE_DATES: Final = {"KA": "2026-07-20", "KAZ-P": "2026-06-18", "KG": "2026-08-03"}
"""Source tag -> the day its prices are of; every priced row has exactly one of these."""

MIG_SOURCES: Final = (
    "NVIDIA MIG User Guide, supported MIG profiles (drivers v580 and v610)",
    "NVIDIA/gpu-operator v26.7.0: assets/state-mig-manager/0400_configmap.yaml",
    "NVIDIA/go-nvml 2f9e261: pkg/nvml/mock/gpus/a30.go, a100.go",
    "NVIDIA/k8s-test-infra: pkg/gpu/mocknvml (placements marked vendor-mock)",
    "NVIDIA/mig-parted#139, #227; NVIDIA/gpu-operator#1057, #1242, #1303, #1351, #1759",
    "GoogleCloudPlatform/container-engine-accelerators (2026-06): pkg/gpu/nvidia/mig/mig.go",
    "aws/sagemaker-hyperpod-cli 011ca92: training constants",
)

# What the table remarks, and the note for a user of the machine; remarks not listed are research notes.
NOTES: Final[tuple[tuple[str, str], ...]] = (
    (r"shows as one nvidia\.com/gpu", "a share of one GPU; the node shows one nvidia.com/gpu"),
    (r"fractional vGPU", "a share of one GPU; the node shows one nvidia.com/gpu"),
    (r"fractional preview.*", "a share of one GPU; GKE wants accelerator count 1"),
    (r"EC2 CurrentGeneration=false.*", "previous generation at EC2 since 2026-08"),
    (r"absent from EC2 type data.*", "gone from EC2's type data since 2026-05; check the region still sells it"),
    (r"needs driver >=595.*", "needs driver 595 or newer, so an image of your own"),
    (r"MIG profile names unconfirmed", "its MIG profile names are unconfirmed"),
    (r"MIG unconfirmed", "MIG is unconfirmed"),
    (r"capacity blocks supported", "also sold as capacity blocks"),
    (r"sold through UltraServer.*", "sold as UltraServers through capacity blocks only"),
    (r"no net new capacity.*", "Azure deploys no new capacity for this series"),
    (r"H100 NVL", "H100 NVL"),
    (r"confidential VM", "confidential virtual machine"),
    (r"no InfiniBand", "no InfiniBand"),
    (r"no AKS MIG path", "AKS has no MIG for it"),
    (r"GRID.*driver", "needs the GRID driver"),
    (r"SR-IOV vGPU, no guest MIG", "SR-IOV vGPU: no MIG inside the machine"),
    (r"Ubuntu only on AKS.*", "on AKS with Ubuntu only"),
    (r"preview size.*", "preview size that no longer deploys"),
    (r"NCv3 retired 2025-09-30.*", "retired on 2025-09-30"),
    (r"listed price, but no plain.*", "below 8 GPUs only as spot or flex-start"),
    (r"no plain on-demand.*", "not sold as plain on-demand"),
    (r"variant without local SSD", "variant without local SSD"),
    (r"hyperdisk-balanced only", "boots from hyperdisk-balanced only"),
    (r"COS only", "Container-Optimized OS only"),
    (r"no MIG, MPS or time-sharing", "no MIG, MPS or time-sharing"),
    (r"GKE has no MIG for GB300", "GKE has no MIG for GB300"),
    (r"bare metal", "bare metal"),
    (r"attach to any n1.*", "attached to an n1 machine, which is billed on top"),
    (r"max (\d+) vCPU.*", r"at most \1 vCPUs"),
    (r"not in the GKE GPU page.*", "no longer on the GKE GPU page"),
)


def parse_arguments() -> argparse.Namespace:
    """Read the two input paths and the date of the instance table."""
    parser = argparse.ArgumentParser(description="rebuild gpukube/gpu/data from the research tables")
    parser.add_argument("instance_csv", type=Path, help="table of GPU instance types")
    parser.add_argument("mig_json", type=Path, help="table of MIG profiles per GPU")
    parser.add_argument("--as-of", required=True, help="date of the instance table, YYYY-MM-DD")
    return parser.parse_args()


def number(text: str) -> float | int | None:
    """Turn a cell into a number; a blank cell is unknown, never zero."""
    if not text:
        return None
    value = float(text)
    return int(value) if value.is_integer() else value


def told(remarks: str) -> str:
    """Keep the remarks a user needs, in our words, each once."""
    kept: list[str] = []
    for remark in filter(None, remarks.split("; ")):
        for pattern, words in NOTES:
            found = re.fullmatch(pattern, remark)
            if found and (sentence := found.expand(words)) not in kept:
                kept.append(sentence)
    return "; ".join(kept)


def machine(cells: Mapping[str, str]) -> Row:
    """Shape one instance type; unknown values are left out."""
    successor = re.search(r"no longer deployable: use ([^\s;]+)", cells["notes"])
    row: Row = {
        "provider": cells["provider"],
        "name": cells["instance_type"],
        "model": cells["gpu_model"],
        "gpus": number(cells["gpu_count"]),
        "gpuMemoryGiB": number(cells["gpu_memory_gib_each"]),
        "vcpus": number(cells["vcpus"]),
        "memoryGiB": number(cells["memory_gib"]),
        "arch": cells["arch"],
        "mig": {"true": True, "false": False, "": None}[cells["mig_capable"]],
        "accelerator": cells["accelerator_type"],
        "localSsdGiB": number(cells["local_ssd_gib"]),
        "priceUsdH": number(cells["on_demand_usd_hour"]),
        "spotUsdH": number(cells["spot_usd_hour"]),
        "priceRegion": cells["price_region"],
        "status": "no-image" if "needs driver >=595" in cells["notes"] else cells["status"] or "unknown",
        "successor": successor.group(1) if successor else "",
        "source": cells["source"],
        "notes": told(cells["notes"]),
    }
    return {key: value for key, value in row.items() if value not in (None, "")}


def model_name(gpu_id: str) -> str:
    """Spell a GPU as the catalog does: rtx-pro-6000-96gb -> RTXPRO6000-96GB."""
    chip, _, memory = gpu_id.rpartition("-")
    return f"{chip.replace('-', '').upper()}-{memory.upper()}"


# The input is a research table without a fixed schema, hence Any; the shape we write is tested.
def profile(model: str, cells: Mapping[str, Any]) -> Row:
    """Shape one MIG profile of one model; engines are [nvdec, nvenc, jpeg, ofa], left out when unknown."""
    engines = [cells["engines"][name] for name in ("nvdec", "nvenc", "jpeg", "ofa")]
    row: Row = {
        "model": model,
        "name": cells["name"],
        "computeSlices": cells["compute_slices"],
        "memorySlices": cells["memory_slices"],
        "memoryGB": cells["memory_gb"],
        "memoryMiB": usable_memory(cells),
        "max": cells["max_instances"],
        "starts": cells["placements"]["starts"],
        "size": cells["placements"]["size"],
        "confidence": cells["placements"]["confidence"],
        "engines": None if None in engines else engines,
    }
    return {key: value for key, value in row.items() if value is not None}


def usable_memory(cells: Mapping[str, Any]) -> int | None:
    """Return what the driver reports of a profile's memory, in MiB; None when no report was seen."""
    if cells.get("memory_mib"):
        return int(cells["memory_mib"])
    gib = cells.get("memory_gib_reported")
    return round(gib * 1024) if gib else None


def mig_model(cells: Mapping[str, Any]) -> Row:
    """Shape one MIG-capable GPU; `mixes` are the fullest mixes of plain profiles."""
    return {
        "name": model_name(cells["id"]),
        "computeCapability": cells["compute_capability"],
        "gridUnits": max(s + p["placements"]["size"] for p in cells["profiles"] for s in p["placements"]["starts"]),
        "pciIds": [device.removeprefix("0x") for device in cells["pci_device_ids"]],
        "mixes": sorted(",".join(f"{n}x{name}" for name, n in sorted(m.items())) for m in cells["maximal_mixes"]),
    }


def render(head: Mapping[str, object], tables: Mapping[str, Iterable[Row]]) -> str:
    """Write JSON with one record per line, so that a rebuild shows as changed lines."""
    parts = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in head.items()]
    for name, rows in tables.items():
        lines = ",\n".join(f"    {json.dumps(row, sort_keys=True)}" for row in rows)
        parts.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def build_instances(path: Path, as_of: str) -> str:
    """Read the CSV and give instances.json."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [machine(cells) for cells in csv.DictReader(lines)]
    rows.sort(key=lambda row: (str(row["provider"]), str(row["name"]), str(row["model"]), str(row["gpus"])))
    head = {"asOf": as_of, "priceDates": PRICE_DATES, "sources": INSTANCE_SOURCES}
    return render(head, {"machines": rows})


def build_mig(path: Path) -> str:
    """Read the MIG table and give mig.json."""
    table = json.loads(path.read_text(encoding="utf-8"))
    gpus = sorted(table["gpus"], key=lambda gpu: model_name(gpu["id"]))
    profiles = [profile(model_name(gpu["id"]), cells) for gpu in gpus for cells in gpu["profiles"]]
    as_of = re.match(r"\d{4}-\d{2}", table["as_of"])
    if as_of is None:
        raise SystemExit(f"{path}: as_of is {table['as_of']!r}; a date is needed")
    head = {"asOf": as_of.group(), "sources": MIG_SOURCES}
    return render(head, {"models": [mig_model(gpu) for gpu in gpus], "profiles": profiles})


def main() -> None:
    """Write both files and say how large they are."""
    arguments = parse_arguments()
    built = {
        "instances.json": build_instances(arguments.instance_csv, arguments.as_of),
        "mig.json": build_mig(arguments.mig_json),
    }
    DATA.mkdir(parents=True, exist_ok=True)
    for name, text in built.items():
        (DATA / name).write_text(text, encoding="utf-8")
        print(f"{DATA / name}: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
