"""A cloud's additions to the spec: the model of its clusters, its forms of reserved capacity, and their wording.

A provider has one `CloudSpec` as its member `spec`. That module imports only this module and `base` from the spec,
because the models of the whole spec are built from it. In scope: the type, and common parts of all clouds' clusters.
Out of scope: any one cloud, and the models built from all clouds (clusters, reserved, model).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from gpukube.spec.base import SpecModel, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import JsonValue

PROVIDER_FIELD = "The cloud. It decides which other fields there are."
"""Description of the field `provider` in every cloud's cluster model."""


class ClusterModel(SpecModel):
    """A cluster of any cloud; a cloud's own model adds `provider`, `name`, and other fields that locate the cluster."""

    kubeconfig: Text | None = Field(
        default=None,
        examples=["./train.kubeconfig"],
        description="Path of a kubeconfig to use instead of the cloud's cluster credentials.",
    )
    context: Text | None = Field(
        default=None,
        examples=["train"],
        description="Context in that kubeconfig (in the default one if kubeconfig is not set).",
    )

    if TYPE_CHECKING:  # declared by each cloud among its own fields, in reading order
        provider: str
        name: str


class ReservedProblem(NamedTuple):
    """A problem with forms of reserved capacity: the field below them, and what to do."""

    path: str
    message: str
    fix: str


def _no_problems(_reserved: SpecModel) -> tuple[ReservedProblem, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSpec:
    """A cloud's additions to the spec.

    Attributes:
        title: The cloud's human-readable name, with its vendor; clouds are sorted by title.
        cluster: Model of its clusters, named after the provider: OkeCluster for oke.
        address: Fields of the cluster's address, in order, with the spec's names.
        ignores_case: Whether addresses that differ only in case mean the same cluster.
        native: Owner of the API fields that a pool may set under the provider's name: "EKS node group".
        native_example: Some of these fields.
        reserved: Model of the forms of reserved capacity; None if the cloud has none.
        reserved_description: Description of the forms.
        together: Forms that may be combined; () if only one is allowed.
        check_reserved: Finds problems between fields of the forms.
        also_called: Names that people write instead of the provider's name.
        cluster_words: Other tools' and clouds' names of the cluster's fields, in lower case -> the field.
        reserved_words: Other tools' names of its reserved capacity.
        stand_ins: Required field of the cluster -> placeholder while a mistake leaves it unknown.
        formats: Pattern of a field -> the sentence that describes it.
        judges_shares: Whether its own rules limit how many containers share a GPU.
        mixes_types: Whether one pool may have several instance types.
    """

    title: str
    cluster: type[ClusterModel]
    address: tuple[str, ...]
    ignores_case: bool = False
    native: str
    native_example: Mapping[str, JsonValue]
    reserved: type[SpecModel] | None = None
    reserved_description: str = ""
    together: tuple[str, ...] = ()
    check_reserved: Callable[[SpecModel], Iterable[ReservedProblem]] = _no_problems
    also_called: tuple[str, ...] = ()
    cluster_words: Mapping[str, str] = field(default_factory=dict)
    reserved_words: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    judges_shares: bool = False
    mixes_types: bool = False
