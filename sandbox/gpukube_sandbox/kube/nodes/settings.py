"""Settings of a machine's kubelet and kernel.

In scope: their values, the kubelet's defaults, the configuration that a kubelet serves at /configz. Out of scope: where
a cloud gets them from.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, staging/src/k8s.io/kubelet/config/v1beta1/types.go.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.store.objects import JsonObject

PAGE_SIZES = ("1Gi", "2Mi")
_KI = 1024
_DEFAULTS: JsonObject = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "cgroupDriver": "systemd",
    "containerLogMaxFiles": 5,
    "containerLogMaxSize": "10Mi",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": "100ms",
    "cpuManagerPolicy": "none",
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"},
    "failSwapOn": True,
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "imageMaximumGCAge": "0s",
    "imageMinimumGCAge": "2m0s",
    "memoryManagerPolicy": "None",
    "podPidsLimit": -1,
    "serializeImagePulls": True,
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings that differ from the defaults.

    Attributes:
        kubelet: Members of KubeletConfiguration.
        sysctls: Kernel parameters, named with dots.
        hugepages: Page size (2Mi, 1Gi) -> preallocated pages.
    """

    kubelet: Mapping[str, object] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    hugepages: Mapping[str, int] = field(default_factory=dict)

    def page_memory(self) -> dict[str, str]:
        """Return the node's amounts of huge pages, as a kubelet reports them."""
        return {f"hugepages-{size}": _amount(size, self.hugepages.get(size, 0)) for size in PAGE_SIZES}

    @property
    def page_ki(self) -> int:
        """Return the memory in huge pages, which pods cannot use as plain memory."""
        return sum(int(parse_quantity(size)) // _KI * count for size, count in self.hugepages.items())


def configz(settings: NodeSettings, max_pods: int) -> JsonObject:
    """Return the response of the kubelet's /configz."""
    found = copy.deepcopy(_DEFAULTS)
    for key, value in settings.kubelet.items():
        old = found.get(key)
        found[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return {"kubeletconfig": {**found, "maxPods": max_pods}}


def _amount(size: str, count: int) -> str:
    return f"{int(size[:-2]) * count}{size[-2:]}" if count else "0"
