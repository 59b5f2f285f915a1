"""Nimbus's additions to the spec: its clusters. It has no reserved machines.

It is loaded wherever a spec is read, so it imports only the two modules that clouds build on.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from gpukube.spec.base import Text  # noqa: TC001 - read by pydantic
from gpukube.spec.cloud import PROVIDER_FIELD, CloudSpec, ClusterModel

SITE: Final = r"^[a-z]+-[0-9]$"


class NimbusCluster(ClusterModel):
    """A Nimbus cluster."""

    provider: Literal["nimbus"] = Field(description=PROVIDER_FIELD)
    site: str = Field(pattern=SITE, examples=["valley-1"], description="Location of the cluster.")
    name: Text = Field(examples=["train"], description="Name of the cluster in its cloud.")


SPEC: Final = CloudSpec(
    title="Nimbus",
    cluster=NimbusCluster,
    address=("site", "name"),
    native="Nimbus pool",
    native_example={"rack": "dense"},
    cluster_words={"region": "site", "location": "site", "zone": "site"},
    stand_ins={"site": "unknown-1", "name": "unknown"},
    formats={SITE: "expected the name of a site, such as valley-1"},
)
