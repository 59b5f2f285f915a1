"""Common parts of a spec's models: their base, and patterns.

Out of scope: the fields of the spec (model, clusters, reserved).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""Pattern of a non-empty Kubernetes label value (kubernetes.io: concepts/overview/working-with-objects/labels)."""

DURATION = r"^[1-9][0-9]{0,6}[smhd]$"
"""Pattern of a duration, a number and s, m, h, or d: 90m, 12h, 7d."""

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]


class SpecModel(BaseModel):
    """Base of all models: camelCase keys, no unknown keys, no implicit conversion, immutable."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        allow_inf_nan=False,
        defer_build=True,  # a model inside another is built with it, not separately before
    )
