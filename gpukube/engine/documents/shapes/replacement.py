"""The part of a plan that tells how a second pool would take the place of a live one."""

from __future__ import annotations

from typing import Literal, TypedDict

from gpukube.engine.documents.shapes.parts import (  # noqa: TC001 - schemas are made of these when that tool runs
    Diagnostic,
    Request,
)


class ReplacementPart(TypedDict):
    """How `--replace surge` would replace a pool, and how far a replacement is that was begun."""

    surge: bool
    """Whether nothing that is known speaks against two pools at once."""
    obstacles: list[Diagnostic]
    """Why two pools cannot exist at once; empty where they can, or do."""
    unknown: list[str]
    """What could not be found out about that."""
    oldPool: str
    """The cloud's name of the pool that goes."""
    newPool: str
    """The cloud's name of the pool that comes."""
    underWay: bool
    """Whether the new pool exists already: `pool apply --replace surge` goes on with it."""
    step: Literal["create", "prove", "drain", "delete"]
    """What is done next: the new pool is created, its GPUs are proven, the old pool is drained, or deleted."""
    requests: list[Request]
    """The exact calls of the cloud that are left, in order; between the last two the pods leave by calls of the
    cluster."""
