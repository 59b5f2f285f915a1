"""Export targets of agent pools."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Exporter
from gpukube_aks.export import az, terraform

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPORTERS: Final[Mapping[str, Exporter]] = MappingProxyType(
    {
        "az": Exporter(az.write_script, head="#!/bin/sh"),
        "terraform": Exporter(terraform.write_hcl, resource=terraform.resource_of),
    }
)
