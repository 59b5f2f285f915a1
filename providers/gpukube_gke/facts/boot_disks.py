"""Types of boot disks that machines support.

Sources: docs: compute/docs/disks/hyperdisks ("Limitations"); GKE cluster autoscaler, machinetypes;
cloudfoundry/bosh-google-cpi-release#388.
"""

from __future__ import annotations

import re
from typing import Final

HYPERDISK: Final = "hyperdisk-balanced"
"""The only Hyperdisk that machines boot from: not Extreme, ML, or Throughput."""
_PERSISTENT: Final = ("pd-standard", "pd-ssd", "pd-balanced")
_NO_HYPERDISK: Final = ("n1-", "custom-")
"""Machines that cannot boot from Hyperdisk Balanced."""
_ONLY_HYPERDISK: Final = re.compile(r"a3-ultragpu-.*|a4-.*|a4x-.*|g4-.*")


def boot_disk_types(machine: str) -> tuple[str, ...]:
    """Return the types of disks from which a machine can boot."""
    if _ONLY_HYPERDISK.fullmatch(machine):
        return (HYPERDISK,)
    return _PERSISTENT if machine.startswith(_NO_HYPERDISK) else (*_PERSISTENT, HYPERDISK)


def default_disk_type(machine: str) -> str:
    """Return the type that GKE chooses."""
    return "pd-balanced" if "pd-balanced" in boot_disk_types(machine) else HYPERDISK
