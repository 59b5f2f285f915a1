"""What a live pool is: the machine of its nodes, and whether an autoscaler sizes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.fields import GPU, MOST
from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.catalog import find_machine, machines

if TYPE_CHECKING:
    from gpukube.core.values import Observed
    from gpukube.gpu.catalog import Machine


def live_machine(provider: str, pool: Observed) -> Machine | None:
    """Return a live pool's machine from the catalog; None if the catalog lacks it.

    A machine without its own GPUs includes the attached ones in the pool's field "gpu" ("1 x nvidia-tesla-t4").
    """
    known = find_machine(provider, pool.instance_type)
    if known is not None:
        return known
    count, _, accelerator = str(pool.fields.get(GPU, "")).partition(" x ")
    parts = (part for part in machines(provider) if part.name == ATTACHED and part.accelerator == accelerator)
    part = next(parts, None)
    if part is None or not count.isdigit():
        return None
    return replace(part, name=pool.instance_type, gpus=int(count))


def is_autoscaled(pool: Observed) -> bool:
    """Return whether an autoscaler sizes a live pool, within bounds of the cloud."""
    return isinstance(pool.fields.get(MOST), int)
