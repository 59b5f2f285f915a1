"""Tools that node groups can be exported to."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Exporter
from gpukube_eks.export import aws, eksctl, karpenter, terraform
from gpukube_eks.pool.connectivity import needs_account
from gpukube_eks.pool.translate import group_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired


def _is_open(desired: Desired) -> bool:
    """Return whether the spec leaves role, subnets, or parts of the launch template to the live cluster."""
    return needs_account(desired.target) or not {"nodeRole", "subnets"} <= group_of(desired).keys()


EXPORTERS: Final[Mapping[str, Exporter]] = MappingProxyType(
    {
        "aws": Exporter(aws.write_script, head="#!/bin/sh", is_open=_is_open),
        "eksctl": Exporter(eksctl.write_config, is_open=_is_open),
        "karpenter": Exporter(karpenter.write_manifests, is_open=_is_open, is_pool=False),
        "terraform": Exporter(terraform.write_hcl, resource=terraform.resource_of, is_open=_is_open),
    }
)
