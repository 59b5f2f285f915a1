"""The clusters of a spec, on any installed cloud.

In scope: the clouds, and the models for `clusters` that are built from them. Out of scope: the fields of one cloud (its
provider's `spec`), calls to a cloud.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, cast

from pydantic import Field

from gpukube.entry_points import provider_names
from gpukube.installed import member_of, unusable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.spec.cloud import CloudSpec, ClusterModel

CLUSTER_KEY = r"^[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?$"
"""Pattern of cluster keys: no dots, since paths (clusters.train-aks.name) and result names (train-aks/a100mig) contain
them."""

ClusterKey = Annotated[str, Field(pattern=CLUSTER_KEY)]

_NAME: Final = re.compile("[a-z][a-z0-9]*")
"""Pattern of a provider's name, which is a key of the spec and the prefix of its diagnostic codes."""


def _spec_of(name: str) -> CloudSpec:
    if not _NAME.fullmatch(name):
        raise unusable(name, "has a name that cannot be a key of a spec: expected lower-case letters and digits")
    return cast("CloudSpec", member_of(name, "spec"))


CLOUDS: Final[Mapping[str, CloudSpec]] = dict(
    sorted(((name, _spec_of(name)) for name in provider_names()), key=lambda item: item[1].title)
)
"""Provider -> its additions to the spec, in display order."""

PROVIDERS: Final = tuple(CLOUDS)
CLUSTER_MODELS: Final[Mapping[str, type[ClusterModel]]] = {name: cloud.cluster for name, cloud in CLOUDS.items()}

if TYPE_CHECKING:
    ProviderName: TypeAlias = str
    Cluster: TypeAlias = ClusterModel
else:
    ProviderName = Literal[PROVIDERS]
    _AnyCluster = reduce(lambda one, other: one | other, CLUSTER_MODELS.values())
    Cluster = Annotated[_AnyCluster, Field(discriminator="provider")]
