"""Nimbus's machines; gpukube's embedded table has none of them."""

from __future__ import annotations

from typing import Final

from gpukube.gpu.cloud_machines import NO_GPU, CloudMachines
from gpukube.gpu.machines import Machine
from gpukube.gpu.models import model_named


def _machine(name: str, model: str, gpus: int, price: float) -> Machine:
    gpu = model_named(model)
    return Machine(
        provider="nimbus",
        name=name,
        model=gpu,
        gpus=gpus,
        gpu_memory_gib=gpu.memory_gb,
        vcpus=12 * gpus,
        memory_gib=96 * gpus,
        arch="amd64",
        mig_capable=model.startswith("A100"),
        accelerator="",
        local_ssd_gib=None,
        price_usd_h=price,
        spot_usd_h=None,
        price_region="valley-1",
        status="current",
    )


MACHINES: Final = CloudMachines(
    rows=(_machine("nb.a100.8", "A100-40GB", 8, 24.0), _machine("nb.l4.1", "L4-24GB", 1, 0.7)),
    without_gpu=((r"nb\.cpu\..+", NO_GPU),),
)
