"""GKE versions: comparing them, and what depends on them.

In scope: the floors of features. Out of scope: the rules that use them.

Sources: docs: kubernetes-engine/how-to/gpus (driver default, G4), how-to/nvidia-mps-gpus, concepts/dws,
how-to/provisioningrequest.
"""

from __future__ import annotations

import re

from gpukube_sandbox.gke.wire.answers import bad

DEFAULT_VERSION = "1.34.1-gke.1829001"
_BUILD = DEFAULT_VERSION.partition("-")[2]

_PATCH, _OLD_BUILD = 5, "gke.1080000"

Version = tuple[int, int, int, int]

FLOORS: dict[str, Version] = {
    "driver-default": (1, 30, 1, 1156000),  # an unset gpu_driver_version means DEFAULT
    "driver-field": (1, 27, 2, 1200),
    "mps": (1, 27, 7, 1088000),
    "flex-start": (1, 32, 2, 1652000),
    "queued": (1, 28, 3, 1098000),
    "nvidia-rtx-pro-6000": (1, 34, 0, 1662000),
    "total-limits": (1, 24, 1, 0),
}
"""Feature -> first version that has it."""

_PATTERN = re.compile(r"(\d+)\.(\d+)\.(\d+)-gke\.(\d+)")
_SHORT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def parse_version(text: str) -> Version:
    """Read "1.34.1-gke.1829001".

    Raises:
        Refusal: 400, it is none.
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise bad(f"Version {text!r} is invalid.")
    return int(found[1]), int(found[2]), int(found[3]), int(found[4])


def is_at_least(version: str, feature: str) -> bool:
    """Whether a version has a feature of `FLOORS`."""
    return parse_version(version) >= FLOORS[feature]


def full_version(text: str) -> str:
    """A whole version from "1.34" or "1.34.1", for those who set a cluster up; the default one when empty."""
    found = _SHORT.fullmatch(text)
    if not text or found is None:
        return text or DEFAULT_VERSION
    return f"{found[1]}.{found[2]}.{found[3] or 1}-{_BUILD}"


def full_node_version(asked: str, current: str, plane: str) -> str:
    """The version that nodes are brought to (the proto's comment on UpdateNodePoolRequest.node_version).

    Args:
        asked: A version, the start of one ("1.34"), "latest", or "-" for that of the control plane; "" to keep it. The
            start of another one than the control plane's is the one patch of it that the sandbox knows.
        current: What the nodes have.
        plane: Version of the control plane, the newest that the sandbox knows.

    Raises:
        Refusal: 400, it is none.
    """
    if not asked:
        return current
    if asked in {"-", "latest"} or (_SHORT.fullmatch(asked) and plane.startswith((f"{asked}.", f"{asked}-"))):
        return plane
    if found := _SHORT.fullmatch(asked):
        return f"{found[1]}.{found[2]}.{found[3] or _PATCH}-{_OLD_BUILD}"
    parse_version(asked)
    return asked
