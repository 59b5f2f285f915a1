"""Volume claims of pods.

In scope: binding PersistentVolumeClaims, creating those of ephemeral volumes, claims that keep a pod unscheduled.
Out of scope: claims of devices (`deviceclaims`), node filters (`kube.scheduler`), mounting.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding, pkg/controller/volume; messages of kube-scheduler
1.36.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject


class VolumeClaims:
    """Binds each volume claim immediately, to its own volume.

    A claim without a class gets the cloud's default class; a class that it names must exist.
    """

    watches = ("persistentvolumeclaims", "pods", "storageclasses")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._events = Recorder(api, clock, "persistentvolume-controller")

    async def reconcile(self) -> float | None:
        """Create the claims of ephemeral volumes, and bind all claims."""
        for pod in await self._api.list("pods"):
            if not meta(pod).get("deletionTimestamp"):
                for claim in _ephemeral_claims(pod):
                    if not await self._api.get("persistentvolumeclaims", name_of(claim), namespace_of(pod)):
                        await self._api.create("persistentvolumeclaims", claim)
        for claim in await self._api.list("persistentvolumeclaims"):
            if status(claim).get("phase") != "Bound" and not meta(claim).get("deletionTimestamp"):
                await self._bind(claim)
        return None

    async def _bind(self, claim: JsonObject) -> None:
        named = spec(claim).get("storageClassName")
        found = await self._api.get("storageclasses", named) if named else None
        if named == "" or (named and not found):  # an empty name means no class
            if named and status(claim).get("phase") != "Pending":
                message = f'storageclass.storage.k8s.io "{named}" not found'
                await self._events.record("persistentvolumeclaims", claim, "ProvisioningFailed", message, warning=True)
            if status(claim).get("phase") != "Pending":
                await self._api.patch_status("persistentvolumeclaims", claim, {"phase": "Pending"})
            return
        size, modes = (spec(claim).get("resources") or {}).get("requests") or {}, spec(claim).get("accessModes") or []
        volume = {
            "metadata": {"name": f"pvc-{meta(claim)['uid']}"},
            "spec": {
                "accessModes": modes,
                "capacity": size,
                "claimRef": {"kind": "PersistentVolumeClaim", "name": name_of(claim), "namespace": namespace_of(claim)}
                | {"uid": meta(claim)["uid"], "apiVersion": "v1"},
                "persistentVolumeReclaimPolicy": (found or {}).get("reclaimPolicy", "Delete"),
                **({"storageClassName": named} if named else {}),
            },
        }
        await self._api.create("persistentvolumes", volume)
        await self._api.patch("persistentvolumeclaims", claim, {"spec": {"volumeName": name_of(volume)}})
        bound = {"phase": "Bound", "accessModes": modes, "capacity": size}
        await self._api.patch_status("persistentvolumeclaims", claim, bound)
        await self._api.patch_status("persistentvolumes", volume, {"phase": "Bound"})


def _ephemeral_claims(pod: JsonObject) -> Iterator[JsonObject]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": meta(pod).get("uid")}
    for volume in spec(pod).get("volumes") or ():
        if volume.get("ephemeral"):
            template = volume["ephemeral"].get("volumeClaimTemplate") or {}
            details = {key: value for key, value in (template.get("metadata") or {}).items() if value}
            named = {"name": f"{name_of(pod)}-{volume['name']}", "namespace": namespace_of(pod)}
            owners = [{**owner, "controller": True, "blockOwnerDeletion": True}]
            yield {"metadata": {**details, **named, "ownerReferences": owners}, "spec": template.get("spec") or {}}


async def unbound_volume(api: ObjectApi, pod: JsonObject) -> str:
    """Return the scheduler's message about a volume that makes a pod unschedulable; "" if there is none."""
    for volume in spec(pod).get("volumes") or ():
        own, made = (volume.get("persistentVolumeClaim") or {}).get("claimName"), bool(volume.get("ephemeral"))
        if not own and not made:
            continue
        name = own or f"{name_of(pod)}-{volume['name']}"
        claim = await api.get("persistentvolumeclaims", name, namespace_of(pod))
        if claim is None and made:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if meta(claim).get("deletionTimestamp"):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if status(claim).get("phase") != "Bound":
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""
