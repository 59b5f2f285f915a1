"""A node pool as read from GKE.

In scope: access to its parts. Out of scope: what a part means (`fields`, `observe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.core.jsontree import tree

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Live:
    """A pool as read, in the JSON form of google.container.v1, enums by name."""

    pool: Mapping[str, object]

    @property
    def config(self) -> dict[str, object]:
        """Its node config."""
        return tree(self.pool, "config")

    @property
    def accelerator(self) -> dict[str, object]:
        """The one accelerator of a node."""
        return tree(self.pool, "config", "accelerators", 0)
