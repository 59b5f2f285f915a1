"""GKE versions: comparing them, and the features that depend on them.

In scope: minimum versions of features. Out of scope: the rules that use them.

Sources: docs: kubernetes-engine/how-to/gpus (driver default, G4), how-to/nvidia-mps-gpus, concepts/dws,
concepts/about-custom-compute-classes, how-to/provisioningrequest.
"""

from __future__ import annotations

import re

from gpukube_sandbox.gke.wire.answers import bad

DEFAULT_VERSION = "1.34.1-gke.1829001"
_BUILD = DEFAULT_VERSION.partition("-")[2]

_PATCH, _OLD_BUILD = 5, "gke.1080000"

Version = tuple[int, int, int, int]

FLOORS: dict[str, Version] = {
    "compute-classes": (1, 30, 3, 1451000),
    "driver-default": (1, 30, 1, 1156000),  # an unset gpu_driver_version means DEFAULT
    "driver-field": (1, 27, 2, 1200),
    "mps": (1, 27, 7, 1088000),
    "flex-start": (1, 32, 2, 1652000),
    "queued": (1, 28, 3, 1098000),
    "nvidia-rtx-pro-6000": (1, 34, 0, 1662000),
    "total-limits": (1, 24, 1, 0),
}
"""Feature -> first version with it."""

_PATTERN = re.compile(r"(\d+)\.(\d+)\.(\d+)-gke\.(\d+)")
_SHORT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def parse_version(text: str) -> Version:
    """Parse "1.34.1-gke.1829001".

    Raises:
        GoogleError: 400 for an invalid version.
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise bad(f"Version {text!r} is invalid.")
    return int(found[1]), int(found[2]), int(found[3]), int(found[4])


def is_at_least(version: str, feature: str) -> bool:
    """Return whether a version has a feature of `FLOORS`."""
    return parse_version(version) >= FLOORS[feature]


def full_version(text: str) -> str:
    """Return a full version from "1.34" or "1.34.1", for creating clusters; the default version if empty."""
    found = _SHORT.fullmatch(text)
    if not text or found is None:
        return text or DEFAULT_VERSION
    return f"{found[1]}.{found[2]}.{found[3] or 1}-{_BUILD}"


def full_node_version(requested: str, current: str, plane: str) -> str:
    """Return the version to update nodes to (the proto's comment on UpdateNodePoolRequest.node_version).

    Args:
        requested: A version, a prefix ("1.34"), "latest", or "-" for the control plane's; "" to keep the current
            one. A prefix other than the control plane's resolves to the only patch of it that the sandbox has.
        current: Current version of the nodes.
        plane: Version of the control plane, the newest one in the sandbox.

    Raises:
        GoogleError: 400 for an invalid version.
    """
    if not requested:
        return current
    if requested in {"-", "latest"} or (
        _SHORT.fullmatch(requested) and plane.startswith((f"{requested}.", f"{requested}-"))
    ):
        return plane
    if found := _SHORT.fullmatch(requested):
        return f"{found[1]}.{found[2]}.{found[3] or _PATCH}-{_OLD_BUILD}"
    parse_version(requested)
    return requested
