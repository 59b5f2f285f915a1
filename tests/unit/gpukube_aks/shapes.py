"""The SDK's own model of an agent pool, walked: every field by its wire path."""

from __future__ import annotations

import re
import typing

from azure.mgmt.containerservice import models

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROPERTIES = models.AgentPoolManagedClusterAgentPoolProfileProperties


def wire_names(model: type[object]) -> dict[str, object]:
    """Map the wire names of a model of the SDK to their types."""
    model()  # the SDK fills in the table at the first use
    fields: Mapping[str, object] = model._attr_to_rest_field  # type: ignore[attr-defined]  # the SDK has no public view
    hints = {
        name: hint for base in reversed(model.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
    }
    return {str(getattr(field, "_rest_name")): hints[name] for name, field in fields.items()}  # noqa: B009


def inner_model(hint: object) -> type[object] | None:
    """Find the model inside Optional, list and dict; None for texts, numbers and enumerations."""
    names = re.findall(r"_models\.(\w+)", str(hint))
    found = [getattr(models, name, None) for name in names]
    return next((model for model in found if hasattr(model, "as_dict")), None)


def leaves(model: type[object] = PROPERTIES, prefix: str = "", above: tuple[type[object], ...] = ()) -> Iterator[str]:
    """Return every field by its path, those of nested models too; a model that holds itself is not entered again."""
    for name, hint in wire_names(model).items():
        inner = inner_model(hint)
        if inner is None or inner in above:
            yield prefix + name
        else:
            yield from leaves(inner, f"{prefix}{name}.", (*above, model))
