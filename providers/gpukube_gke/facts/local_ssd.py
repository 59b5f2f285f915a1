"""Number of local disks of a machine: fixed by its type, or a choice of several.

In scope: that table and its lookup. Out of scope: exclusive uses of the disks (`rules.combinations`).

Source: GKE cluster autoscaler, machinetypes; docs: compute/docs/disks/local-ssd. For other machines Compute Engine
decides.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBERS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    (r".*-nolssd", ()),
    (r"a2-ultragpu-1g", (1,)),
    (r"a2-ultragpu-2g", (2,)),
    (r"a2-ultragpu-4g", (4,)),
    (r"a2-ultragpu-8g", (8,)),
    (r"a2-(highgpu|megagpu)-\d+g", (1, 2, 3, 4, 5, 6, 7, 8)),
    (r"a3-highgpu-1g", (2,)),
    (r"a3-highgpu-2g", (4,)),
    (r"a3-highgpu-4g", (8,)),
    (r"a3-(highgpu|edgegpu|megagpu)-8g", (16,)),
    (r"(a3-ultragpu|a4-highgpu)-8g", (32,)),
    (r"a4x-.*", (4,)),
    (r"g2-standard-(4|8|12|16|32)", (1,)),
    (r"g2-standard-24", (2,)),
    (r"g2-standard-48", (4,)),
    (r"g2-standard-96", (8,)),
)
"""Machine pattern -> possible numbers of disks; the first match counts."""


def fixed_disks(machine: str) -> int:
    """Return the number of disks of a machine; 0 if it has none, or a choice of several numbers, or is unknown."""
    found = disk_numbers(machine)
    return found[0] if found is not None and len(found) == 1 else 0


def disk_numbers(machine: str) -> tuple[int, ...] | None:
    """Return the possible numbers of disks of a machine; None if unknown."""
    return next((numbers for pattern, numbers in _NUMBERS if re.fullmatch(pattern, machine)), None)


def explain_local_ssd(machine: str, count: object) -> str:
    """Return the fix for a number of disks; "" if it is valid, as 0 always is (none or default)."""
    found = disk_numbers(machine)
    if found is None or count == 0 or count in found:
        return ""
    if not found:
        return "remove it"
    return f"write {found[0]}" if len(found) == 1 else f"write {found[0]} to {found[-1]}"
