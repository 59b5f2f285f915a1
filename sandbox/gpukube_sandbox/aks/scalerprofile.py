"""The settings of a cluster's managed autoscaler: autoScalerProfile, one for all its pools.

In scope: defaults, what AKS refuses, changing it by a PUT of the cluster. Out of scope: what the autoscaler does
(`autoscaling`); every other change of a cluster.

Source: azure-mgmt-containerservice ManagedClusterPropertiesAutoScalerProfile, Expander; docs: aks/cluster-autoscaler.
"""

from __future__ import annotations

import re
from typing import Final

from gpukube_sandbox.aks.answers import Json, arm_error, bad_parameter

DEFAULTS: Final[dict[str, str]] = {
    "balance-similar-node-groups": "false",
    "expander": "random",
    "max-empty-bulk-delete": "10",
    "max-graceful-termination-sec": "600",
    "max-node-provision-time": "15m",
    "max-total-unready-percentage": "45",
    "new-pod-scale-up-delay": "0s",
    "ok-total-unready-count": "3",
    "scale-down-delay-after-add": "10m",
    "scale-down-delay-after-delete": "10s",
    "scale-down-delay-after-failure": "3m",
    "scale-down-unneeded-time": "10m",
    "scale-down-unready-time": "20m",
    "scale-down-utilization-threshold": "0.5",
    "scan-interval": "10s",
    "skip-nodes-with-local-storage": "false",
    "skip-nodes-with-system-pods": "true",
}
EXPANDERS: Final = ("least-waste", "most-pods", "priority", "random")
"""No chains, unlike the flag of the Cluster Autoscaler."""
_MINUTES: Final = ("max-node-provision-time", "scale-down-delay-after-add", "scale-down-unneeded-time")
_PATH: Final = "properties.autoScalerProfile"


def requested_profile(body: object, current: object) -> dict[str, str] | None:
    """Return the autoScalerProfile of a PUT of a cluster that changes nothing else; None if it has none.

    Args:
        body: The request.
        current: The cluster's properties as GET returns them.

    Raises:
        ArmError: 400 for a value that AKS does not take, 501 for any other change.
    """
    sent = body.get("properties") if isinstance(body, dict) else None
    rest = dict(sent) if isinstance(sent, dict) else {}
    given = rest.pop("autoScalerProfile", None)
    if not _is_part(rest, current):
        message = "The gpukube sandbox emulates PUT of a cluster only for changes of autoScalerProfile."
        raise arm_error(501, "NotEmulated", message)
    if not isinstance(given, dict):
        return None
    values = {str(key): str(value) for key, value in given.items() if value is not None}
    _check(values)
    return values


def _check(values: dict[str, str]) -> None:
    expander = values.get("expander", "random")
    if expander not in EXPANDERS:
        known = ", ".join(EXPANDERS)
        raise bad_parameter(f"The value {expander} of expander is invalid. Valid values: {known}.", f"{_PATH}.expander")
    for key in _MINUTES:
        if key in values and not re.fullmatch(r"\d+m", values[key]):
            message = f"The value {values[key]} of {key} is invalid. It must be an integer followed by m."
            raise bad_parameter(message, f"{_PATH}.{key}")


def _is_part(sent: object, current: object) -> bool:
    """Return whether a value says nothing but the current one; what it omits stays."""
    if isinstance(sent, dict):
        known: Json = current if isinstance(current, dict) else {}
        return all(value is None or _is_part(value, known.get(key)) for key, value in sent.items())
    if isinstance(sent, list):
        listed = current if isinstance(current, list) else []
        return len(sent) == len(listed) and all(map(_is_part, sent, listed))
    return sent == current
