"""Fields of a live node group that a person chose: without EKS's defaults.

Role and subnets are required for every group, so they are kept; zones follow from the subnets.

Source:
    Defaults: botocore eks/2017-11-01, members of CreateNodegroupRequest. releaseVersion changes with each update.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.fields import FieldPath, label
from gpukube.core.jsontree import strings, text
from gpukube.gpu.catalog import find_machine
from gpukube_eks.facts.images import CUSTOM, DEFAULT_IMAGE, IMAGES
from gpukube_eks.pool.disks import DEFAULT_DISK_GIB, DEFAULT_DISK_TYPE
from gpukube_eks.pool.placement_groups import NONE
from gpukube_eks.pool.renewing import RELEASE
from gpukube_eks.pool.settings import TEMPLATE_DATA
from gpukube_eks.pool.translate import ACCELERATOR_LABEL, accelerator_name
from gpukube_eks.pool.upgrades import SURGE
from gpukube_eks.userdata.nodeconfig import is_node_config

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Observed

DEFAULTS: Final[Mapping[FieldPath, Collection[object]]] = {
    paths.CAPACITY_TYPE: ("on-demand",),
    paths.MAX_UNAVAILABLE: ("1",),
    paths.MAX_SURGE: ("0",),
    paths.LOCAL_STORAGE: ("raw",),
    paths.PLACEMENT: (NONE,),
    FieldPath("eks", "nodeRepairConfig", "enabled"): (False,),
    FieldPath("eks", "monitoring", "enabled"): (False,),
    FieldPath("eks", "metadataOptions", "httpTokens"): ("required",),
    FieldPath("eks", "metadataOptions", "httpPutResponseHopLimit"): (2,),
    FieldPath("eks", "metadataOptions", "instanceMetadataTags"): ("disabled",),
}
"""Default values of a group, and of gpukube's launch template."""
_OVERRIDES: Final = FieldPath("eks", "nodeRepairConfig", "nodeRepairConfigOverrides")
"""Field that is compared as JSON."""
_MOVING: Final = (RELEASE, paths.ZONES)
_OWN_DISKS: Final = ((20, None), (DEFAULT_DISK_GIB, DEFAULT_DISK_TYPE))
"""Default disk sizes and types: EKS's and gpukube's."""
_SYSTEMS: Final = {image.name: image.system for image in IMAGES}


def chosen_fields(observed: Observed) -> dict[FieldPath, object]:
    """Return the fields that a person chose, in the spec's form."""
    found = {
        path: value
        for path, value in observed.fields.items()
        if path not in _MOVING and value not in DEFAULTS.get(path, ())
    }
    if (found.get(paths.DISK_SIZE), found.get(paths.DISK_TYPE)) in _OWN_DISKS:
        del found[paths.DISK_SIZE]
        found.pop(paths.DISK_TYPE, None)
    if found.get(paths.MAX_SURGE) == SURGE:
        found[paths.MAX_SURGE] = 1  # EKS chooses how many
    if _OVERRIDES in found:
        found[_OVERRIDES] = json.loads(str(found[_OVERRIDES]))
    if others := found.get(paths.INSTANCE_TYPES):
        found[paths.INSTANCE_TYPES] = (found.pop(paths.INSTANCE_TYPE), *strings(others))
    machine = find_machine("eks", observed.instance_type)
    if machine and found.get(label(ACCELERATOR_LABEL)) == accelerator_name(machine):
        del found[label(ACCELERATOR_LABEL)]  # gpukube sets it
    if found.get(paths.IMAGE) == CUSTOM and is_node_config(text(observed.native, TEMPLATE_DATA, "UserData")):
        found[paths.IMAGE] = DEFAULT_IMAGE
    system = _SYSTEMS.get(str(found.get(paths.IMAGE)))
    if system == DEFAULT_IMAGE:
        del found[paths.IMAGE]
    elif system is not None:
        found[paths.IMAGE] = system
    return found
