"""The fake cloud's part of the spec."""

from __future__ import annotations

from typing import Final, Literal

from gpukube.spec.base import Text  # noqa: TC001 - read by pydantic
from gpukube.spec.cloud import CloudSpec, ClusterModel

__all__ = ["SPEC", "FakeCluster"]


class FakeCluster(ClusterModel):
    """A cluster identified by its place."""

    provider: Literal["fake"]
    place: Text
    name: Text


SPEC: Final = CloudSpec(
    title="Fake",
    cluster=FakeCluster,
    address=("place", "name"),
    native="fake pool",
    native_example={"colour": "blue"},
    stand_ins={"place": "unknown", "name": "unknown"},
)
