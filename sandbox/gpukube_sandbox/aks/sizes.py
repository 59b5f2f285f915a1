"""VM sizes of the emulated region: vCPU, memory, and GPUs.

In scope: the sandbox's own hardware table. Out of scope: gpukube's catalog; the two are maintained separately so that
a mistake in one shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SLICES: dict[str, tuple[str, int]] = {
    "MIG1g": ("1g", 7),
    "MIG2g": ("2g", 3),
    "MIG3g": ("3g", 2),
    "MIG4g": ("4g", 1),
    "MIG7g": ("7g", 1),
}
"""gpuInstanceProfile -> slice and instances per GPU (Azure/AgentBaker, mig-partition.sh)."""
_RDMA = re.compile(r"Standard_N[CD]\d+[a-z]*r[a-z]*_")


@dataclass(frozen=True, slots=True)
class VmSize:
    """One VM size.

    Attributes:
        name: Azure's spelling.
        vcpus: Virtual CPUs.
        memory_gib: Memory.
        family: Quota family as in Resource SKUs and usages (Azure/karpenter-provider-azure, known_skus.yaml).
        gpu: Model known to the emulated nodes ("A100-40GB"); "" without GPU.
        gpus: Physical GPUs; 0 without.
        zones: Zones of the region that offer it; many GPU sizes are not in all zones.
        local_gib: The larger of its cache and its temporary disk, where an ephemeral OS disk goes; 0 for none, None if
            unknown.
        restricted: Whether AKS rejects the size entirely.
    """

    name: str
    vcpus: int
    memory_gib: int
    family: str
    gpu: str = ""
    gpus: int = 0
    zones: tuple[str, ...] = ("1", "2", "3")
    local_gib: int | None = None
    restricted: bool = False

    @property
    def infiniband(self) -> int:
        """Return the number of InfiniBand adapters of a size with an r: one per GPU, on the oldest one in all."""
        if not _RDMA.match(self.name):
            return 0
        return 1 if self.name == "Standard_ND40rs_v2" else self.gpus


_TABLE = (
    # docs: virtual-machines/sizes, general purpose
    VmSize("Standard_D2s_v5", 2, 8, "standardDSv5Family", local_gib=0),
    VmSize("Standard_D4s_v5", 4, 16, "standardDSv5Family", local_gib=0),
    VmSize("Standard_D8s_v5", 8, 32, "standardDSv5Family", local_gib=0),
    VmSize("Standard_D16s_v5", 16, 64, "standardDSv5Family", local_gib=0),
    VmSize("Standard_DS2_v2", 2, 7, "standardDSv2Family", local_gib=86),
    VmSize("Standard_A1_v2", 1, 2, "standardAv2Family", restricted=True),
    # docs: virtual-machines/sizes, GPU accelerated. The caches of NC24ads_A100_v4 and DS2_v2 are those of
    # Azure/karpenter-provider-azure, pkg/fake/zz_generated.sku.southcentralus.go; other caches are unknown.
    VmSize("Standard_NC4as_T4_v3", 4, 28, "Standard NCASv3_T4 Family", "T4-16GB", 1, local_gib=176),
    VmSize("Standard_NC8as_T4_v3", 8, 56, "Standard NCASv3_T4 Family", "T4-16GB", 1, local_gib=352),
    VmSize("Standard_NC16as_T4_v3", 16, 110, "Standard NCASv3_T4 Family", "T4-16GB", 1, local_gib=352),
    VmSize("Standard_NC64as_T4_v3", 64, 440, "Standard NCASv3_T4 Family", "T4-16GB", 4, local_gib=2816),
    VmSize("Standard_NC6s_v3", 6, 112, "standardNCSv3Family", "V100-16GB", 1, local_gib=736),
    VmSize("Standard_NC12s_v3", 12, 224, "standardNCSv3Family", "V100-16GB", 2, local_gib=1474),
    VmSize("Standard_NC24s_v3", 24, 448, "standardNCSv3Family", "V100-16GB", 4, local_gib=2948),
    VmSize("Standard_ND40rs_v2", 40, 672, "standardNDSv2Family", "V100-32GB", 8, local_gib=2948),
    VmSize("Standard_NC24ads_A100_v4", 24, 220, "StandardNCADSA100v4Family", "A100-80GB", 1, local_gib=256),
    VmSize("Standard_NC48ads_A100_v4", 48, 440, "StandardNCADSA100v4Family", "A100-80GB", 2, local_gib=128),
    VmSize("Standard_NC96ads_A100_v4", 96, 880, "StandardNCADSA100v4Family", "A100-80GB", 4, local_gib=256),
    VmSize(
        "Standard_ND96asr_v4", 96, 900, "Standard NDASv4_A100 Family", "A100-40GB", 8, zones=("1", "2"), local_gib=6000
    ),
    VmSize(
        "Standard_ND96amsr_A100_v4",
        96,
        1800,
        "standard NDAMSv4_A100Family",
        "A100-80GB",
        8,
        zones=("1", "2"),
        local_gib=6400,
    ),
    VmSize("Standard_NC40ads_H100_v5", 40, 320, "StandardNCadsH100v5Family", "H100-94GB", 1, local_gib=3576),
    VmSize("Standard_NCC40ads_H100_v5", 40, 320, "StandardNCCads2023Family", "H100-94GB", 1, local_gib=800),
    VmSize("Standard_NC80adis_H100_v5", 80, 640, "StandardNCadsH100v5Family", "H100-94GB", 2, local_gib=7152),
    VmSize(
        "Standard_ND96isr_H100_v5", 96, 1900, "standardNDSH100v5Family", "H100-80GB", 8, zones=("1",), local_gib=1024
    ),
    VmSize("Standard_ND96is_H100_v5", 96, 1900, "standardNDSH100v5Family", "H100-80GB", 8, zones=("1",)),
    VmSize(
        "Standard_ND96isr_H200_v5", 96, 1850, "standardNDISRH200V5Family", "H200-141GB", 8, zones=("1",), local_gib=1024
    ),
    VmSize("Standard_NV6ads_A10_v5", 6, 55, "StandardNVADSA10v5Family", "A10-24GB", 1, local_gib=180),
    VmSize("Standard_NV12ads_A10_v5", 12, 110, "StandardNVADSA10v5Family", "A10-24GB", 1, local_gib=360),
    VmSize("Standard_NV18ads_A10_v5", 18, 220, "StandardNVADSA10v5Family", "A10-24GB", 1, local_gib=720),
    VmSize("Standard_NV36ads_A10_v5", 36, 440, "StandardNVADSA10v5Family", "A10-24GB", 1, local_gib=1440),
    VmSize("Standard_NV36adms_A10_v5", 36, 880, "StandardNVADSA10v5Family", "A10-24GB", 1, local_gib=2880),
    VmSize("Standard_NV72ads_A10_v5", 72, 880, "StandardNVADSA10v5Family", "A10-24GB", 2, local_gib=2880),
    VmSize("Standard_NC8ads_A10_v4", 8, 100, "StandardNCADSA10v4Family", "A10-24GB", 1),
    VmSize("Standard_NC16ads_A10_v4", 16, 200, "StandardNCADSA10v4Family", "A10-24GB", 1),
    VmSize("Standard_NC32ads_A10_v4", 32, 400, "StandardNCADSA10v4Family", "A10-24GB", 2),
    VmSize(
        "Standard_NC144ds_xl_RTXPRO6000BSE_v6", 144, 516, "StandardNCdsRTXPRO6000BSEv6XLFamily", "RTXPRO6000-96GB", 1
    ),
    VmSize(
        "Standard_NC288ds_xl_RTXPRO6000BSE_v6", 288, 1032, "StandardNCdsRTXPRO6000BSEv6XLFamily", "RTXPRO6000-96GB", 2
    ),
)

SIZES: dict[str, VmSize] = {size.name.lower(): size for size in _TABLE}


def find_size(name: str) -> VmSize | None:
    """Find a size; Azure compares names case-insensitively."""
    return SIZES.get(name.lower())


PROFILES: dict[str, dict[str, str]] = {
    "A100-40GB": {"1g": "1g.5gb", "2g": "2g.10gb", "3g": "3g.20gb", "4g": "4g.20gb", "7g": "7g.40gb"},
    "A100-80GB": {"1g": "1g.10gb", "2g": "2g.20gb", "3g": "3g.40gb", "4g": "4g.40gb", "7g": "7g.80gb"},
    "H100-80GB": {"1g": "1g.10gb", "2g": "2g.20gb", "3g": "3g.40gb", "4g": "4g.40gb", "7g": "7g.80gb"},
    "H100-94GB": {"1g": "1g.12gb", "2g": "2g.24gb", "3g": "3g.47gb", "4g": "4g.47gb", "7g": "7g.94gb"},
    "H200-141GB": {"1g": "1g.18gb", "2g": "2g.35gb", "3g": "3g.71gb", "4g": "4g.71gb", "7g": "7g.141gb"},
}
"""GPU model -> slice -> profile, for the models that AKS partitions: the A100, H100 and H200 series
(docs: aks/gpu-multi-instance; names: NVIDIA/gpu-operator assets/state-mig-manager/0400_configmap.yaml)."""


def mig_layout(size: VmSize, value: str) -> tuple[str, ...]:
    """Return the instances on each GPU of a node for a gpuInstanceProfile; () if the size does not support it.

    Source:
        Azure/AgentBaker mig-partition.sh: every GPU alike, 7, 3, 2, 1, 1 instances.
    """
    width, instances = SLICES.get(value, ("", 0))
    profile = PROFILES.get(size.gpu, {}).get(width, "")
    return (profile,) * instances if profile else ()
