"""Invented prices of the instance types.

In scope: prices on demand, and what Spot costs of that. Out of scope: the calls that return them (`market`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube_sandbox.eks.instances import InstanceType

_GPU_USD = {
    "T4-16GB": 0.4, "T4G-16GB": 0.3, "V100-16GB": 2.6, "V100-32GB": 3.0, "A10G-24GB": 0.8, "L4-24GB": 0.7,
    "L40S-48GB": 1.6, "A100-40GB": 2.5, "A100-80GB": 3.2, "H100-80GB": 6.0, "H200-141GB": 7.0,
    "B200-180GB": 12.0, "B300-269GB": 15.0, "GB200-186GB": 14.0, "RTXPRO4500-32GB": 2.0, "RTXPRO6000-96GB": 2.8,
}  # fmt: skip
_VCPU_USD = 0.025
_FAR = 1.15
"""Price factor of regions outside the United States."""
SPOT = {"a": 0.4, "b": 0.45, "c": 0.5}
"""Zone -> share of the on-demand price."""


def price_of(entry: InstanceType, region: str) -> float:
    """Return an invented price in US dollars per hour."""
    gpus = entry.fraction or entry.gpus
    here = gpus * _GPU_USD.get(entry.gpu, 1.0) + entry.vcpus * _VCPU_USD
    return round(here * (1.0 if region.startswith("us-") else _FAR), 4)
