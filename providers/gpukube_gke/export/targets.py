"""Export targets of node pools."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Exporter
from gpukube_gke.export import gcloud, terraform
from gpukube_gke.pool.translate import needs_zone

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPORTERS: Final[Mapping[str, Exporter]] = MappingProxyType(
    {
        "gcloud": Exporter(gcloud.write_script, head="#!/bin/sh", is_open=needs_zone),
        "terraform": Exporter(terraform.write_hcl, resource=terraform.resource_of, is_open=needs_zone),
    }
)
