"""Asks a cluster whether pods that request nvidia.com/gpu get devices of the DRA driver.

In scope: one dry run, which changes nothing. Out of scope: which pods request what.

The chart's class of whole GPUs names the extended resource nvidia.com/gpu. An API server whose feature gate
DRAExtendedResource is off drops that field (kubernetes, pkg/registry/resource/deviceclass/strategy.go); no managed
cloud documents its gates, so the version alone does not tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import RELEASE_TYPES
from gpukube.core.jsontree import text
from gpukube.errors import AccessError, ClusterError

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import Kube

_RESOURCE: Final = "gpukube.io/probe"
_CLASS: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpukube-probe"},
    "spec": {"extendedResourceName": _RESOURCE},
}


def keeps_extended_names(kube: Kube) -> bool:
    """Return whether the API server keeps the extended resource of a DeviceClass.

    False also if that cannot be asked: then nothing may be said about such pods.
    """
    try:
        stored = kube.would_store(RELEASE_TYPES["DeviceClass"], _CLASS)
    except (AccessError, ClusterError):
        return False
    return text(stored, "spec", "extendedResourceName") == _RESOURCE
