"""What a person chose of a live agent pool: its fields without those that AKS gives to every pool.

Source:
    Defaults: docs of the operation AgentPools_CreateOrUpdate and of `az aks nodepool add`; those of pods by network
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
"""Values that a pool has of which nothing was said."""


def chosen_fields(observed: Observed) -> dict[FieldPath, object]:
    """Return the fields that a person chose, as a spec writes them.

    The type of a disk of the usual size follows from the VM size, so nobody chose it as far as anyone can tell.
    """
    found = {path: value for path, value in observed.fields.items() if value not in DEFAULTS.get(path, ())}
    if paths.DISK_SIZE not in found:
        found.pop(paths.DISK_TYPE, None)
    return found
