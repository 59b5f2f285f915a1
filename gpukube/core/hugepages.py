"""Huge pages as Kubernetes counts them: resources in bytes, not pages. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.core.values import Target

HUGE: Final = "hugepages-"
SIZES: Final = {"2Mi": 2 << 20, "1Gi": 1 << 30}
"""Sizes of a page, as in names of resources, in bytes."""


def pages_text(size: int) -> str:
    """Return an amount exactly: "10256Mi"."""
    return f"{size >> 20}Mi"


def hugepages_of(target: Target) -> dict[str, int]:
    """Return the huge pages that a pool's nodes reserve: name of the resource -> bytes per node."""
    return {f"{HUGE}{size}": pages * SIZES[size] for size, pages in target.hugepages.items()}
