"""What the models of a spec have in common: their base, and the forms of texts.

Lives here: no field of the spec. Must not live here: the fields (model, clusters, reserved).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

__all__ = ["LABEL_VALUE", "PROVIDERS", "ProviderName", "SpecModel", "Text", "Texts"]

ProviderName = Literal["eks", "aks", "gke"]
PROVIDERS: tuple[ProviderName, ...] = ("eks", "aks", "gke")

LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""A non-empty Kubernetes label value (kubernetes.io: concepts/overview/working-with-objects/labels)."""

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]


class SpecModel(BaseModel):
    """What all models share: camelCase keys, no unknown keys, no silent conversion, no change afterwards."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        allow_inf_nan=False,
    )
