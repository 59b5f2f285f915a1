"""The ResourceClaim controller: claims from templates, and the end of claims that no pod uses.

In scope: generated claims and their names in the pod's status, reservations of pods that are gone, deallocation,
finalizers. Out of scope: allocation (the scheduler), preparing devices on nodes.

Source: kubernetes pkg/controller/resourceclaim/controller.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_terminal
from gpukube_sandbox.kube.scheduler.claims import claim_names
from gpukube_sandbox.kube.scheduler.devices import take_devices
from gpukube_sandbox.kube.scheduler.extended import pod_owner
from gpukube_sandbox.kube.store.objects import annotations_of, meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.scheduler.devices import DeviceState
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: how the pod names it."""
_CLAIMS, _TEMPLATES = "resourceclaims", "resourceclaimtemplates"
_LONGEST_BASE = 57

_Pods = dict[tuple[str, str], "JsonObject"]
"""Namespace and name -> pod."""


class DeviceClaims:
    """Creates the claims of pods with templates, and releases claims whose pods are done."""

    watches = ("pods", _CLAIMS, _TEMPLATES)
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._events = Recorder(api, clock, "resource_claim_controller")
        self._told: set[tuple[str, str]] = set()

    async def reconcile(self) -> float | None:
        """Advance the claims of every pod, then every claim."""
        pods = {(namespace_of(pod), name_of(pod)): pod for pod in await self._api.list("pods")}
        claims = {(namespace_of(claim), name_of(claim)): claim for claim in await self._api.list(_CLAIMS)}
        for pod in pods.values():
            if spec(pod).get("resourceClaims") and not meta(pod).get("deletionTimestamp"):
                await self._advance_pod(pod, claims)
        for claim in claims.values():
            await self._advance_claim(claim, pods)
        return None

    async def _advance_pod(self, pod: JsonObject, claims: dict[tuple[str, str], JsonObject]) -> None:
        names = claim_names(pod)
        made: dict[str, str] = {}
        for item in spec(pod)["resourceClaims"]:
            exists = (namespace_of(pod), names.get(item["name"], "")) in claims
            if item.get("resourceClaimTemplateName") and not exists and not is_terminal(pod):
                name = await self._claim_for(pod, item, claims)
                if not name:
                    return
                made[item["name"]] = name
        if made:
            known = [one for one in status(pod).get("resourceClaimStatuses") or () if one["name"] not in made]
            known += [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
            await self._api.patch_status("pods", pod, {"resourceClaimStatuses": known})
        if spec(pod).get("nodeName") and not is_terminal(pod):
            for name in names.values():
                await self._reserve(pod, claims.get((namespace_of(pod), name)))

    async def _claim_for(self, pod: JsonObject, item: JsonObject, claims: dict[tuple[str, str], JsonObject]) -> str:
        """Return the name of the claim that was generated for a pod, or create it; "" if that fails."""
        for claim in claims.values():
            if _owner(claim).get("uid") == meta(pod)["uid"] and annotations_of(claim).get(POD_CLAIM) == item["name"]:
                return name_of(claim)
        template_name = item["resourceClaimTemplateName"]
        template = await self._api.get(_TEMPLATES, template_name, namespace_of(pod))
        refusals: list[str] = []
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            refusals.append(f'resource claim template "{template_name}": {missing}')
        else:
            made = await self._api.create(_CLAIMS, _generated(pod, item["name"], template), refusals)
            if made is not None:
                claims[namespace_of(made), name_of(made)] = made
                return name_of(made)
        for refusal in refusals:
            if (meta(pod)["uid"], refusal) not in self._told:
                self._told.add((meta(pod)["uid"], refusal))
                message = f"PodResourceClaim {item['name']}: {refusal}"
                await self._events.record("pods", pod, "FailedResourceClaimCreation", message, warning=True)
        return ""

    async def _reserve(self, pod: JsonObject, claim: JsonObject | None) -> None:
        """Reserve an allocated claim for a pod that was bound without the scheduler."""
        if claim is None or not status(claim).get("allocation"):
            return
        consumers = status(claim).get("reservedFor") or []
        if all(one.get("uid") != meta(pod)["uid"] for one in consumers):
            await self._api.patch_status(_CLAIMS, claim, {"reservedFor": [*consumers, consumer(pod)]})

    async def _advance_claim(self, claim: JsonObject, pods: _Pods) -> None:
        consumers = status(claim).get("reservedFor") or []
        left = [one for one in consumers if _uses(one, namespace_of(claim), pods)]
        finalizers = meta(claim).get("finalizers") or []
        is_leaving = bool(meta(claim).get("deletionTimestamp"))
        ends = not left and FINALIZER in finalizers and (len(left) < len(consumers) or is_leaving)
        if len(left) < len(consumers) or (ends and status(claim).get("allocation")):
            deallocated = {"allocation": None, "devices": None} if ends else {}
            await self._api.patch_status(_CLAIMS, claim, {"reservedFor": left or None, **deallocated})
        if ends:
            rest = [name for name in finalizers if name != FINALIZER]
            await self._api.patch(_CLAIMS, claim, {"metadata": {"finalizers": rest or None}})
        owner = _owner(claim)
        pod = pods.get((namespace_of(claim), owner.get("name", "")))
        is_done = pod is not None and meta(pod)["uid"] == owner.get("uid") and is_terminal(pod)
        if is_done and not left and not is_leaving:
            await self._api.delete(_CLAIMS, claim)


async def read_devices(api: ObjectApi) -> DeviceState:
    """Return the slices, classes and claims of a cluster."""
    slices, classes = await api.list("resourceslices"), await api.list("deviceclasses")
    return take_devices(slices, classes, await api.list(_CLAIMS))


def consumer(pod: JsonObject) -> JsonObject:
    """Return the reference to a pod in a claim's `reservedFor`."""
    return {"resource": "pods", "name": name_of(pod), "uid": meta(pod)["uid"]}


def _owner(claim: JsonObject) -> JsonObject:
    """Return the reference to the pod that a claim was generated for; empty for none."""
    owners = meta(claim).get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller") and one.get("kind") == "Pod"), {})


def _uses(one: JsonObject, namespace: str, pods: _Pods) -> bool:
    """Return whether a consumer still uses its claim; those that are not pods are kept."""
    if one.get("apiGroup") or one.get("resource") != "pods":
        return True
    pod = pods.get((namespace, one.get("name", "")))
    return pod is not None and meta(pod)["uid"] == one.get("uid") and not is_terminal(pod)


def _generated(pod: JsonObject, claim_name: str, template: JsonObject) -> JsonObject:
    base = f"{name_of(pod)}-{claim_name}-"
    if len(base) > _LONGEST_BASE:  # both parts lose in proportion, so that each stays recognizable
        parts = (part[: len(part) * _LONGEST_BASE // len(base)] for part in (name_of(pod), claim_name))
        base = "-".join(parts)
    inner = spec(template).get("metadata") or {}
    return {
        "metadata": {
            "generateName": base,
            "namespace": namespace_of(pod),
            **({"labels": inner["labels"]} if inner.get("labels") else {}),
            "annotations": {**(inner.get("annotations") or {}), POD_CLAIM: claim_name},
            "ownerReferences": [pod_owner(pod)],
        },
        "spec": spec(template).get("spec") or {},
    }
