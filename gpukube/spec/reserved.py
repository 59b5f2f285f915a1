"""Reserved capacity: each cloud's own forms of it.

In scope: the fields under capacity.reserved, built from the installed clouds. Out of scope: the forms of one cloud (its
provider's `spec`), and what a cloud allows together with a form (the provider's rules).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import Field, create_model

from gpukube.spec.base import SpecModel
from gpukube.spec.clusters import CLOUDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    Reserved: TypeAlias = SpecModel
else:
    Reserved = create_model(
        "Reserved",
        __base__=SpecModel,
        __doc__="Source of the machines on each of the pool's clouds.",
        **{
            name: (cloud.reserved | None, Field(default=None, description=cloud.reserved_description))
            for name, cloud in CLOUDS.items()
            if cloud.reserved is not None
        },
    )

RESERVED_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(info.alias or field for field, info in cloud.reserved.model_fields.items()) if cloud.reserved else ()
    for name, cloud in CLOUDS.items()
}
"""Provider -> its forms, with the spec's names."""
