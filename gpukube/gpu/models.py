"""GPU models: canonical names, aliases, and chip data.

In scope: the vocabulary of `gpu.model` and `parse_model`. Out of scope: machines, prices, MIG.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from gpukube.gpu.refusal import CatalogError, nearest, one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Arch = Literal["amd64", "arm64"]


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model of the catalog.

    Attributes:
        name: Chip and nominal memory, "A100-40GB".
        compute_capability: (major, minor) of NVIDIA's CUDA GPU list.
        aliases: Other unambiguous spellings of this model.
        sold: Whether a cloud of the catalog offers it; other models are known for their MIG geometry only.
    """

    name: str
    compute_capability: tuple[int, int]
    aliases: tuple[str, ...] = ()
    sold: bool = True

    def __str__(self) -> str:
        """Render as the canonical name."""
        return self.name

    @property
    def chip(self) -> str:
        """The name without the memory: "A100"."""
        return self.name.rpartition("-")[0]

    @property
    def memory_gb(self) -> int:
        """Nominal memory in GB, the number in the name."""
        return int(self.name.rpartition("-")[2].removesuffix("GB"))


# Compute capability: developer.nvidia.com/cuda-gpus. Aliases: EC2 and GCE names of the same GPU
# (EC2 DescribeInstanceTypes GpuInfo, GCE accelerator types), and data sheet sizes.
MODELS: Final[tuple[GpuModel, ...]] = (
    GpuModel("K80-12GB", (3, 7), ("nvidia-tesla-k80",)),
    GpuModel("P4-8GB", (6, 1), ("nvidia-tesla-p4",)),
    GpuModel("P100-16GB", (6, 0), ("nvidia-tesla-p100",)),
    GpuModel("V100-16GB", (7, 0), ("nvidia-tesla-v100",)),
    GpuModel("V100-32GB", (7, 0)),
    GpuModel("T4-16GB", (7, 5), ("nvidia-tesla-t4",)),
    GpuModel("T4G-16GB", (7, 5)),
    GpuModel("A10-24GB", (8, 6)),
    GpuModel("A10G-24GB", (8, 6)),
    GpuModel("A30-24GB", (8, 0), sold=False),
    GpuModel("A100-40GB", (8, 0), ("nvidia-tesla-a100",)),
    GpuModel("A100-80GB", (8, 0), ("nvidia-a100-80gb",)),
    GpuModel("L4-24GB", (8, 9), ("nvidia-l4",)),
    GpuModel("L40S-48GB", (8, 9)),
    GpuModel("H100-80GB", (9, 0), ("nvidia-h100-80gb", "nvidia-h100-mega-80gb")),
    GpuModel("H100-94GB", (9, 0), ("H100-NVL",)),
    GpuModel("H100-96GB", (9, 0), sold=False),
    GpuModel("H200-141GB", (9, 0), ("nvidia-h200-141gb",)),
    GpuModel("GH200-144GB", (9, 0), sold=False),
    GpuModel("B200-180GB", (10, 0), ("B200-192GB", "nvidia-b200")),
    GpuModel("GB200-186GB", (10, 0), ("GB200-192GB", "nvidia-gb200")),
    GpuModel("B300-269GB", (10, 3), ("B300-288GB",)),
    GpuModel("GB300-278GB", (10, 3), ("GB300-288GB", "nvidia-gb300")),
    GpuModel("RTXPRO4500-32GB", (12, 0), ("RTX PRO 4500",)),
    GpuModel("RTXPRO5000-48GB", (12, 0), sold=False),
    GpuModel("RTXPRO6000-96GB", (12, 0), ("RTX-PRO-6000", "RTX PRO Server 6000", "nvidia-rtx-pro-6000")),
)


_MOST_NEAR: Final = 5
_OF_NO_CLOUD: Final[tuple[tuple[str, str], ...]] = (
    (r"(amd|radeon|instinct)\w*|mi\d{2,3}[ax]?(\d+gb)?|v(520|620|710)", "is an AMD GPU; gpukube supports NVIDIA GPUs"),
    (r"(aws)?(trainium|inferentia|trn|inf)\d*", "is not a GPU; gpukube supports NVIDIA GPUs"),
    (r"(google|cloud)?tpu\w*|gaudi\d*", "is not an NVIDIA GPU; gpukube supports NVIDIA GPUs"),
    (r"(nvidia)?(geforce\w*|[rg]tx\d{4}(ti|super|d)*)", "is a GeForce, which no cloud in the catalog sells"),
)
"""GPUs that are not supported -> why; matched against names normalized by `_key`."""


def parse_model(text: str, sold: Collection[GpuModel] = ()) -> GpuModel:
    """Find the model that a name means; case, blanks and dashes do not matter.

    Args:
        text: Canonical name ("A100-40GB"), an alias ("H100-NVL", "nvidia-l4"), or the bare chip if
            clouds sell one size of it ("T4").
        sold: Models that the pool's cloud sells, to which suggestions are limited; () for all.

    Raises:
        CatalogError: gpu-model; several sizes match (lists them), or none (suggests the nearest).
    """
    key = _key(text)
    if found := _by_key().get(key):
        return found
    sizes = [model.name for model in MODELS if model.sold and _key(model.chip) == key]
    if sizes:
        sizes_there = [name for name in sizes if any(model.name == name for model in sold)]
        raise CatalogError(
            f'"{text}" matches {len(sizes)} GPU models with different memory',
            fix=f"write {one_of(sizes_there or sizes)}",
            code="gpu-model",
        )
    for pattern, why in _OF_NO_CLOUD:
        if re.fullmatch(pattern, key):
            fix = "write a model that the clouds sell: gpukube catalog list"
            raise CatalogError(f'"{text}" {why}', fix=fix, code="gpu-model")
    words = {word: model.name for model in reversed(MODELS) if model.sold for word in (model.name, model.chip)}
    choices = list(dict.fromkeys(words[word] for word in nearest(text, words)))
    raise CatalogError(
        f'"{text}" is not a GPU model in the catalog',
        fix=f"did you mean {one_of(choices[:_MOST_NEAR])}? To see all: gpukube catalog list",
        code="gpu-model",
    )


def is_product(model: GpuModel, product: str) -> bool:
    """Return whether a driver's product name contains a chip, perhaps spelled with spaces: "RTX PRO 6000"."""
    spelled = "[ -]?".join(map(re.escape, model.chip))
    return re.search(rf"(?<![0-9A-Za-z]){spelled}(?![0-9A-Za-z])", product) is not None


def find_models(text: str) -> tuple[GpuModel, ...]:
    """Find the models that a word matches: one by its name, all sizes by the bare chip.

    Raises:
        CatalogError: gpu-model; no model has this name.
    """
    key = _key(text)
    sizes = tuple(m for m in MODELS if m.sold and _key(m.chip) == key)
    if sizes:
        return sizes
    model = parse_model(text)
    if not model.sold:
        raise CatalogError(
            f"no cloud in the catalog sells {model}",
            fix="run it without the model to see all",
            code="gpu-model",
        )
    return (model,)


def model_named(name: str) -> GpuModel:
    """Return the model of a canonical name; raise KeyError if there is none (data and table disagree)."""
    return _by_name()[name]


def _key(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum() or not c.isascii())


@cache
def _by_name() -> Mapping[str, GpuModel]:
    return {model.name: model for model in MODELS}


@cache
def _by_key() -> Mapping[str, GpuModel]:
    chips = [model.chip for model in MODELS if model.sold]
    known = {_key(word): model for model in MODELS for word in (model.name, *model.aliases)}
    return known | {_key(m.chip): m for m in MODELS if m.sold and chips.count(m.chip) == 1}
