"""Selects the fields of a live agent pool that a person chose, without AKS's defaults.

Source:
    Defaults: docs of the operation AgentPools_CreateOrUpdate and of `az aks nodepool add`; maximum pods by network
    plugin: docs: aks/configure-azure-cni.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Observed

_DISK_GB: Final = 128
DEFAULTS: Final[Mapping[FieldPath, Collection[object]]] = {
    paths.CAPACITY_TYPE: ("on-demand",),
    paths.DISK_SIZE: (_DISK_GB,),
    paths.IMAGE: ("Ubuntu",),
    paths.MAX_PODS: (30, 110, 250),
    paths.MAX_SURGE: ("10%", "1"),
    paths.MAX_UNAVAILABLE: ("0",),
    paths.DRIVER: ("cloud",),
    FieldPath("aks", "enableEncryptionAtHost"): (False,),
    FieldPath("aks", "enableFIPS"): (False,),
    FieldPath("aks", "enableNodePublicIP"): (False,),
    FieldPath("aks", "enableUltraSSD"): (False,),
    FieldPath("aks", "kubeletDiskType"): ("OS",),
    FieldPath("aks", "scaleDownMode"): ("Delete",),
    FieldPath("aks", "scaleSetEvictionPolicy"): ("Delete",),
    FieldPath("aks", "securityProfile", "enableSecureBoot"): (False,),
    FieldPath("aks", "securityProfile", "enableVTPM"): (False,),
    FieldPath("aks", "upgradeSettings", "undrainableNodeBehavior"): ("Schedule",),
    FieldPath("aks", "workloadRuntime"): ("OCIContainer",),
}
"""Default values of a pool."""


def chosen_fields(observed: Observed) -> dict[FieldPath, object]:
    """Return the fields that a person chose, in the spec's form.

    The disk type is omitted if the disk has the default size: it then follows from the VM size.
    """
    found = {path: value for path, value in observed.fields.items() if value not in DEFAULTS.get(path, ())}
    if paths.DISK_SIZE not in found:
        found.pop(paths.DISK_TYPE, None)
    return found
