"""The GPUs of the simulated machines: models and MIG profiles.

In scope: the sandbox's own hardware tables. Out of scope: data from gpukube's catalog; the two are maintained
independently so that comparing them reveals mistakes.

Sources: NVIDIA MIG User Guide (supported profiles); NVIDIA/gpu-operator assets/state-mig-manager/0400_configmap.yaml;
NVIDIA/k8s-device-plugin docs/gpu-feature-discovery (product names).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One type of GPU instance.

    Attributes:
        name: "1g.5gb".
        slices: Compute slices.
        memory_mib: Memory that the driver reports; 0 if no report is known.
        multiprocessors: SMs; 0 if unknown.
        max_count: Maximum number of instances per GPU.
        starts: Allowed start positions on the memory grid.
        size: Grid units it covers.
    """

    name: str
    slices: int
    memory_mib: int
    multiprocessors: int
    max_count: int
    starts: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model.

    Attributes:
        name: "A100-40GB".
        product: The driver's product name, as a label value.
        memory_mib: Memory that the driver reports; nominal if no report is known.
        family: Architecture as a label value.
        compute: Compute capability, major and minor.
        profiles: MIG profile name -> profile; empty if the model has no MIG.
    """

    name: str
    product: str
    memory_mib: int
    family: str
    compute: tuple[int, int]
    profiles: dict[str, MigProfile]


_SEVEN: tuple[tuple[int, int, tuple[int, ...], int], ...] = (
    # slices, max_count, starts, size: memory grid of eight (MIG User Guide)
    (1, 7, (0, 1, 2, 3, 4, 5, 6), 1),
    (1, 4, (0, 2, 4, 6), 2),
    (2, 3, (0, 2, 4), 2),
    (3, 2, (0, 4), 4),
    (4, 1, (0,), 4),
    (7, 1, (0,), 8),
)
_SM_AMPERE = (14, 14, 28, 42, 56, 98)
_SM_HOPPER = (16, 26, 32, 60, 64, 132)
_SM_UNKNOWN = (0, 0, 0, 0, 0, 0)


def _seven(names: str, memory: tuple[int, ...], multiprocessors: tuple[int, ...]) -> dict[str, MigProfile]:
    found = {}
    for index, name in enumerate(names.split()):
        slices, max_count, starts, size = _SEVEN[index]
        found[name] = MigProfile(name, slices, memory[index], multiprocessors[index], max_count, starts, size)
    media = found[names.split(maxsplit=1)[0]]
    name = f"{media.name}+me"
    found[name] = MigProfile(name, 1, media.memory_mib, media.multiprocessors, 1, media.starts, 1)
    return found


_NO_REPORT = (0,) * 6

_A30 = {
    "1g.6gb": MigProfile("1g.6gb", 1, 5836, 14, 4, (0, 1, 2, 3), 1),
    "1g.6gb+me": MigProfile("1g.6gb+me", 1, 5836, 14, 1, (0, 1, 2, 3), 1),
    "2g.12gb": MigProfile("2g.12gb", 2, 11672, 28, 2, (0, 2), 2),
    "2g.12gb+me": MigProfile("2g.12gb+me", 2, 11672, 28, 1, (0, 2), 2),
    "4g.24gb": MigProfile("4g.24gb", 4, 23344, 56, 1, (0,), 4),
}
_QUARTERS = (0, 3, 6, 9)
_RTX_PRO_6000 = {
    profile.name: profile
    for profile in (
        MigProfile("1g.24gb", 1, 0, 46, 4, _QUARTERS, 3),
        MigProfile("1g.24gb+gfx", 1, 0, 46, 4, _QUARTERS, 3),
        MigProfile("1g.24gb+me", 1, 0, 46, 1, _QUARTERS, 3),
        MigProfile("1g.24gb+me.all", 1, 0, 46, 1, _QUARTERS, 3),
        MigProfile("1g.24gb-me", 1, 0, 46, 4, _QUARTERS, 3),
        MigProfile("2g.48gb", 2, 0, 94, 2, (0, 6), 6),
        MigProfile("2g.48gb+gfx", 2, 0, 94, 2, (0, 6), 6),
        MigProfile("2g.48gb+me.all", 2, 0, 94, 1, (0, 6), 6),
        MigProfile("2g.48gb-me", 2, 0, 94, 2, (0, 6), 6),
        MigProfile("4g.96gb", 4, 0, 188, 1, (0,), 12),
        MigProfile("4g.96gb+gfx", 4, 0, 188, 1, (0,), 12),
    )
}

_TABLE: tuple[GpuModel, ...] = (
    GpuModel("T4-16GB", "Tesla-T4", 15360, "turing", (7, 5), {}),
    GpuModel("T4G-16GB", "NVIDIA-T4G", 15360, "turing", (7, 5), {}),
    GpuModel("V100-16GB", "Tesla-V100-PCIE-16GB", 16384, "volta", (7, 0), {}),
    GpuModel("V100-32GB", "Tesla-V100-SXM2-32GB", 32768, "volta", (7, 0), {}),
    GpuModel("P100-16GB", "Tesla-P100-PCIE-16GB", 16280, "pascal", (6, 0), {}),
    GpuModel("P4-8GB", "Tesla-P4", 7611, "pascal", (6, 1), {}),
    GpuModel("A10-24GB", "NVIDIA-A10", 23028, "ampere", (8, 6), {}),
    GpuModel("A10G-24GB", "NVIDIA-A10G", 23028, "ampere", (8, 6), {}),
    GpuModel("L4-24GB", "NVIDIA-L4", 23034, "ada-lovelace", (8, 9), {}),
    GpuModel("L40S-48GB", "NVIDIA-L40S", 46068, "ada-lovelace", (8, 9), {}),
    # AWS documents no MIG profiles for it yet; the product name is unconfirmed
    GpuModel("RTXPRO4500-32GB", "NVIDIA-RTX-PRO-4500-Blackwell-Server-Edition", 32623, "blackwell", (12, 0), {}),
    GpuModel("A30-24GB", "NVIDIA-A30", 24576, "ampere", (8, 0), _A30),
    GpuModel(
        "A100-40GB",
        "NVIDIA-A100-SXM4-40GB",
        40960,
        "ampere",
        (8, 0),
        _seven("1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb", (4864, 9856, 9856, 19968, 19968, 40192), _SM_AMPERE),
    ),
    GpuModel(
        "A100-80GB",
        "NVIDIA-A100-80GB-PCIe",
        81920,
        "ampere",
        (8, 0),
        _seven(
            "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb", (9856, 19968, 19968, 40192, 40192, 80384), _SM_AMPERE
        ),
    ),
    GpuModel(
        "H100-80GB",
        "NVIDIA-H100-80GB-HBM3",
        81559,
        "hopper",
        (9, 0),
        _seven("1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb", _NO_REPORT, _SM_HOPPER),
    ),
    GpuModel(
        "H100-94GB",
        "NVIDIA-H100-NVL",
        95830,
        "hopper",
        (9, 0),
        _seven("1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb", _NO_REPORT, _SM_HOPPER),
    ),
    GpuModel(
        "GH200-96GB",
        "NVIDIA-GH200-480GB",
        97871,
        "hopper",
        (9, 0),
        _seven("1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "H200-141GB",
        "NVIDIA-H200",
        143771,
        "hopper",
        (9, 0),
        _seven("1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb", _NO_REPORT, _SM_HOPPER),
    ),
    GpuModel(
        "GH200-144GB",
        "NVIDIA-GH200-144G-HBM3e",
        147456,
        "hopper",
        (9, 0),
        _seven("1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "B200-180GB",
        "NVIDIA-B200",
        183359,
        "blackwell",
        (10, 0),
        _seven("1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "GB200-186GB",
        "NVIDIA-GB200",
        189471,
        "blackwell",
        (10, 0),
        _seven("1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "B300-269GB",
        "NVIDIA-B300-SXM6-AC",
        275040,
        "blackwell",
        (10, 3),
        _seven("1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "GB300-278GB",
        "NVIDIA-GB300",
        284208,
        "blackwell",
        (10, 3),
        _seven("1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb", _NO_REPORT, _SM_UNKNOWN),
    ),
    GpuModel(
        "RTXPRO6000-96GB",
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        97887,
        "blackwell",
        (12, 0),
        _RTX_PRO_6000,
    ),
)

MODELS: dict[str, GpuModel] = {model.name: model for model in _TABLE}
_BARE = {
    "T4": "T4-16GB",
    "A10": "A10-24GB",
    "A10G": "A10G-24GB",
    "L4": "L4-24GB",
    "L40S": "L40S-48GB",
    "A30": "A30-24GB",
}


BOARDS: dict[str, tuple[str, ...]] = {
    "A30-24GB": ("20B7",),
    "A100-40GB": ("20B0", "20B1", "20F1", "20F6"),
    "A100-80GB": ("20B2", "20B5", "20F3", "20F5"),
    "H100-80GB": ("2330", "2331", "2322", "2324"),
    "H100-94GB": ("2321", "233A"),
    "GH200-96GB": ("2342",),
    "H200-141GB": ("2335", "233B"),
    "GH200-144GB": ("2348",),
    "B200-180GB": ("2901",),
    "GB200-186GB": ("2941",),
    "B300-269GB": ("3182",),
    "GB300-278GB": ("31C2",),
    "RTXPRO6000-96GB": ("2BB5",),
}
"""PCI device ids of a model's boards, by which MIG manager configs select them."""


def find_model(name: str) -> GpuModel:
    """Return a model by its name, or by its chip name if that is unambiguous ("T4").

    Raises:
        LookupError: The sandbox has no such model.
    """
    found = MODELS.get(_BARE.get(name, name))
    if found is None:
        message = f"no GPU model {name}; the sandbox has {', '.join(MODELS)}"
        raise LookupError(message)
    return found


def fits(model: GpuModel, layout: tuple[str, ...]) -> bool:
    """Return whether these instances fit on one GPU without overlap."""
    return placements(model, layout) is not None


def placements(model: GpuModel, layout: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return where each of these instances starts on the memory grid; None if they do not fit on one GPU."""
    if any(name not in model.profiles for name in layout):
        return None
    if any(layout.count(name) > model.profiles[name].max_count for name in set(layout)):
        return None
    order = sorted(range(len(layout)), key=lambda at: -model.profiles[layout[at]].size)
    starts = _place([model.profiles[layout[at]] for at in order], frozenset())
    return None if starts is None else tuple(start for _, start in sorted(zip(order, starts, strict=True)))


def _place(desired: list[MigProfile], taken: frozenset[int]) -> list[int] | None:
    if not desired:
        return []
    first, rest = desired[0], desired[1:]
    for start in first.starts:
        place = frozenset(range(start, start + first.size))
        others = None if place & taken else _place(rest, taken | place)
        if others is not None:
            return [start, *others]
    return None


def memory_of(model: GpuModel, profile: MigProfile) -> int:
    """Return the MiB of an instance: as reported, or without a known report its share of the memory grid."""
    grid = max(start + item.size for item in model.profiles.values() for start in item.starts)
    return profile.memory_mib or model.memory_mib * profile.size // grid


def resource_of(profile: str) -> str:
    """Return the extended resource of a MIG profile: "1g.5gb+me" is "nvidia.com/mig-1g.5gb.me".

    Source: NVIDIA/go-nvlib pkg/nvlib/device/mig_profile.go.
    """
    return f"nvidia.com/mig-{profile.replace('+', '.')}"
