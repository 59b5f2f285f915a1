"""What a cloud adds to the spec, as a value: the model of its clusters, its forms of reserved capacity, their words.

A provider gives one `CloudSpec` as its member `spec`. Its module imports nothing of the spec but this module and
`base`, because the models of the whole spec are built from it. In scope: its shape, and what clusters of all clouds
have in common. Out of scope: any cloud, and what is built from the clouds together (clusters, reserved, model).
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
"""Description of the field `provider`, in the model of every cloud's clusters."""


class ClusterModel(SpecModel):
    """A cluster of any cloud; a cloud's own model adds `provider`, `name` and what else says where the cluster is."""

    kubeconfig: Text | None = Field(
        default=None,
        examples=["./train.kubeconfig"],
        description="Path of a kubeconfig to use instead of the cloud's cluster credentials.",
    )
    context: Text | None = Field(
        default=None,
        examples=["train"],
        description="Context in that kubeconfig (or in the default one when kubeconfig is not given).",
    )

    if TYPE_CHECKING:  # declared by each cloud, among its own fields, which is the order in which people read them
        provider: str
        name: str


class ReservedProblem(NamedTuple):
    """What is wrong with forms of reserved capacity: at which field below them, and what to do."""

    path: str
    message: str
    fix: str


def _no_problems(_reserved: SpecModel) -> tuple[ReservedProblem, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSpec:
    """What a cloud adds to the spec.

    Attributes:
        title: The cloud's name for people, with its vendor; clouds are listed in the order of their titles.
        cluster: Model of its clusters, named as the provider: OkeCluster for oke.
        address: Fields of the cluster that name it in one word, in their order, as a spec writes them.
        ignores_case: Whether two clusters are one whose addresses differ in case only.
        native: What the fields of the API are of that a pool may write under the provider's name, "EKS node group".
        native_example: Some of these fields.
        reserved: Model of the forms of reserved capacity; None where the cloud has none.
        reserved_description: What the forms are.
        together: Forms that may be written together; () for one at a time.
        check_reserved: Finds what is wrong between fields of the forms.
        also_called: What people write in place of the provider's name.
        cluster_words: What other tools and clouds call fields of the cluster -> the field; in lower case.
        reserved_words: What other tools call its reserved capacity.
        stand_ins: Required field of the cluster -> what it is taken for while a mistake leaves it unknown.
        formats: Pattern of a field -> the sentence that asks for it.
        judges_shares: Whether its own rules limit how many containers share a GPU.
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
