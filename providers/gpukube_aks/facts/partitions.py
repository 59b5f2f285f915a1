"""How AKS partitions GPUs: the five values of gpuInstanceProfile and their meaning on each GPU model.

In scope: that table and lookups in it. Out of scope: MIG geometry in general (`gpukube.gpu.mig`).

AKS partitions every GPU of a node the same way, with the GPU instance profile ids 19, 14, 9, 5, and 0
(Azure/AgentBaker, parts/linux/cloud-init/artifacts/mig-partition.sh): the plain profiles. Profiles with double memory
(id 15) or media engines (+me, id 20) cannot be requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.gpu.catalog import Machine


def _row(*profiles: str) -> dict[str, str]:
    return dict(zip(("MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"), profiles, strict=True))


CUTS: Mapping[str, Mapping[str, str]] = {
    "A100-40GB": _row("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
    "A100-80GB": _row("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    "H100-80GB": _row("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    "H100-94GB": _row("1g.12gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
    "H200-141GB": _row("1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
}
"""GPU model -> gpuInstanceProfile -> NVIDIA's name of the profile.

Models: "A100, H100 and H200 series" (docs: aks/gpu-multi-instance). Names: NVIDIA/gpu-operator,
assets/state-mig-manager/0400_configmap.yaml.
"""


def can_cut(machine: Machine) -> bool:
    """Return whether AKS supports MIG on this size: whole GPUs of the A100, H100, and H200 series."""
    return machine.mig_capable is True and str(machine.model) in CUTS


def cut_value(model: str, profile: str) -> str | None:
    """Return the gpuInstanceProfile that creates this profile on this model; None if AKS has none."""
    return next((value for value, name in CUTS.get(model, {}).items() if name == profile), None)


def profile_name(model: str, value: str) -> str | None:
    """Return the profile that a gpuInstanceProfile creates on this model; None if unknown."""
    return CUTS.get(model, {}).get(value)
