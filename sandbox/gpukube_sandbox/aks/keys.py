"""Labels and taints: which keys AKS reserves, and what it adds.

In scope: the rules of nodeLabels and nodeTaints, and the Spot label and taint. Out of scope: labels of nodes
(`machines`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import aks_error, bad_parameter

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json

SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = f"{SPOT_KEY}=spot:NoSchedule"
_OWN_PREFIX = "kubernetes.azure.com"
_ALLOWED = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")
_MAX_PREFIX = 253
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TAINT = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")


def labels_of(pool: Json) -> dict[str, str]:
    """Return nodeLabels as a new map."""
    labels = pool.get("nodeLabels")
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}


def taints_of(pool: Json) -> list[str]:
    """Return nodeTaints as a new list."""
    taints = pool.get("nodeTaints")
    return [str(taint) for taint in taints] if isinstance(taints, list) else []


def add_spot_marks(pool: Json) -> None:
    """Add the service's label and taint to a new Spot pool's own lists, as AKS does (Azure/AKS#3152)."""
    pool["nodeLabels"] = labels_of(pool) | {SPOT_KEY: "spot"}
    if SPOT_TAINT not in taints_of(pool):
        pool["nodeTaints"] = [*taints_of(pool), SPOT_TAINT]


def check_labels(pool: Json) -> None:
    """Reject reserved prefixes and labels that Kubernetes does not allow.

    Raises:
        ArmError: 400 BadRequest (ams0/aks-nvme-ssd-provisioner#5 for the AKS prefix, shortened there; Azure/AKS#2866
            and #4613 for the Kubernetes prefixes, from before node-role was allowed, Azure/AKS#4628; whether the
            message now names it is unconfirmed).
    """
    is_spot = pool.get("scaleSetPriority") == "Spot"
    for key, value in labels_of(pool).items():
        prefix, slash, name = key.rpartition("/")
        if prefix == _OWN_PREFIX and not (is_spot and (key, value) == (SPOT_KEY, "spot")):
            message = f"Invalid node label key {key}. The '{_OWN_PREFIX}' prefix is preserved by aks system labels."
            raise aks_error("BadRequest", message)
        if _is_kubernetes(prefix):
            message = (
                "For Kubernetes version greater than or equal to 1.16, node label keys in the 'kubernetes.io' or "
                f"'k8s.io' namespace must begin with an allowed prefix ({', '.join(_ALLOWED)}). For more information, "
                "please check https://aka.ms/aks-node-labels-116."
            )
            raise aks_error("BadRequest", message, target=f"{key}={value}")
        if not _is_qualified(prefix, slash, name) or (value and not _NAME.fullmatch(value)):
            raise aks_error("BadRequest", f"Invalid node label {key}={value}.", target="agentPoolProfile.nodeLabels")


def _is_kubernetes(prefix: str) -> bool:
    if prefix.startswith(_ALLOWED):
        return False
    return prefix in {"kubernetes.io", "k8s.io"} or prefix.endswith((".kubernetes.io", ".k8s.io"))


def _is_qualified(prefix: str, slash: str, name: str) -> bool:
    if not _NAME.fullmatch(name):
        return False
    return not slash or (len(prefix) <= _MAX_PREFIX and bool(_PREFIX.fullmatch(prefix)))


def check_taints(pool: Json) -> None:
    """Reject unparsable taints, reserved prefixes, two taints with one key, and hard taints on a System pool.

    Raises:
        ArmError: 400 (Azure/karpenter-provider-azure#1830 for the prefix, Azure/AKS#1412 for duplicate keys,
            Azure/AKS#2578 for SystemPoolHasRestrictedTaint; messages unconfirmed).
    """
    seen: set[str] = set()
    for taint in taints_of(pool):
        found = _TAINT.fullmatch(taint)
        prefix, slash, name = found["key"].rpartition("/") if found else ("", "", "")
        value = (found["value"] or "") if found else ""
        if not found or not _is_qualified(prefix, slash, name) or (value and not _NAME.fullmatch(value)):
            message = f"Invalid node taint '{taint}'. A taint is written key=value:Effect."
            raise bad_parameter(message, "agentPoolProfile.nodeTaints")
        if prefix == _OWN_PREFIX and not (pool.get("scaleSetPriority") == "Spot" and taint == SPOT_TAINT):
            message = (
                f"Invalid node taint key {found['key']}. The '{_OWN_PREFIX}' prefix is preserved by aks system taints."
            )
            raise aks_error("BadRequest", message)
        if found["key"] in seen:
            message = f"Node taint key {found['key']} is used more than once."
            raise bad_parameter(message, "agentPoolProfile.nodeTaints")
        seen.add(found["key"])
        if _is_too_hard(pool, found["key"], found["effect"]):
            message = (
                f"System agent pool has restricted taint {taint}. Only CriticalAddonsOnly and taints with effect "
                "PreferNoSchedule are allowed."
            )
            raise aks_error("SystemPoolHasRestrictedTaint", message, target="agentPoolProfile.nodeTaints")


def _is_too_hard(pool: Json, key: str, effect: str) -> bool:
    return pool.get("mode") == "System" and key != "CriticalAddonsOnly" and effect != "PreferNoSchedule"
