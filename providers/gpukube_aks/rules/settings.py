"""Checks kubelet settings and kernel parameters: names and values that AKS does not have.

In scope: pure checks. Out of scope: names and conversions (`pool.settings`), allowed ranges (`pool.limits`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.spec.wording import did_you_mean, nearest
from gpukube.visible import spell_out_lookalikes
from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.pool.settings import KUBELET, SYSCTLS, sysctl_name, sysctl_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target

_LOW_DEFAULT, _HIGH_DEFAULT = 80, 85
"""Defaults of imageGcLowThreshold and imageGcHighThreshold (docs: aks/custom-node-configuration)."""
_REFERENCE: Final = "learn.microsoft.com/azure/aks/custom-node-configuration"


def check_kubelet(target: Target) -> Iterator[Finding]:
    """Report settings of the kubelet that AKS cannot set to this value."""
    for name, value in target.kubelet.items():
        if name not in KUBELET:
            continue  # reported as a missing feature
        where, sent = target.locator.at(f"kubelet.{name}"), KUBELET[name].to_wire(value)
        limit = LIMITS.get(f"kubeletConfig.{KUBELET[name].wire}")
        if sent is None:
            message, fix = f"kubelet.{name} is {value}, not a whole number of megabytes", "write a size such as 50Mi"
            yield Finding("aks-kubelet", where, message, fix=fix, why="kubeletConfig.containerLogMaxSizeMB")
        elif limit and not limit.allows(sent):
            message = f"kubelet.{name} has a value that AKS does not accept"
            yield Finding("aks-kubelet", where, message, fix=f"write {limit.expected}", why=limit.source)
    if _is_upside_down(target):
        yield Finding(
            "aks-kubelet",
            target.locator.at("kubelet"),
            "imageGCLowThresholdPercent is higher than imageGCHighThresholdPercent; by default they are 80 and 85",
            fix="write both, the lower one first",
            why=_REFERENCE,
        )


def check_sysctls(target: Target) -> Iterator[Finding]:
    """Report kernel parameters that AKS cannot set, or not to this value."""
    for written, value in target.sysctls.items():
        name, where = sysctl_name(written), target.locator.at(f"sysctls[{json.dumps(written)}]")
        shown = spell_out_lookalikes(written)
        if name not in SYSCTLS:
            meant = nearest(name, tuple(SYSCTLS))
            fix = did_you_mean(meant) if meant else f"write one of {', '.join(SYSCTLS)}"
            yield Finding("aks-sysctl", where, f"AKS cannot set the sysctl {shown}", fix=fix, why=_REFERENCE)
            continue
        sent, limit = sysctl_value(name, value), LIMITS.get(f"linuxOSConfig.sysctls.{SYSCTLS[name]}")
        if sent is None or (limit and not limit.allows(sent)):
            expected = limit.expected if limit else "0 or 1"
            message = f'the sysctl {shown} is "{spell_out_lookalikes(value)}", which AKS does not accept'
            source = limit.source if limit else _REFERENCE
            yield Finding("aks-sysctl", where, message, fix=f"write {expected}", why=source)


def _is_upside_down(target: Target) -> bool:
    low = target.kubelet.get("imageGCLowThresholdPercent")
    high = target.kubelet.get("imageGCHighThresholdPercent")
    if (low is None) == (high is None):
        return False  # both: spec.rules
    return (low if isinstance(low, int) else _LOW_DEFAULT) > (high if isinstance(high, int) else _HIGH_DEFAULT)
