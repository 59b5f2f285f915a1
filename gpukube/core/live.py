"""Which machine a live pool's nodes are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.fields import GPU
from gpukube.gpu.attached import ATTACHED
from gpukube.gpu.catalog import find_machine, machines

if TYPE_CHECKING:
    from gpukube.core.values import Observed
    from gpukube.gpu.catalog import Machine


def live_machine(provider: str, pool: Observed) -> Machine | None:
    """Find a live pool's machine in the catalog; None when it is not there.

    A machine without GPUs of its own counts with those that are attached to it, as the pool's field "gpu" has them
    ("1 x nvidia-tesla-t4").
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
