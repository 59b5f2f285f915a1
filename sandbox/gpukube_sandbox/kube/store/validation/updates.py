"""Allowed changes of a live pod.

Source: kubernetes pkg/apis/core/validation/validation.go (ValidatePodUpdate, validatePodUpdateCommon,
validateNodeSelectorMutation, validateSchedulingGates).
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject changes of a live pod other than images, deadline, gates, and added tolerations."""
    if old is None:
        return
    was, pod = old.get("spec") or {}, new.get("spec") or {}
    for part in ("containers", "initContainers"):
        if len(pod.get(part) or ()) != len(was.get(part) or ()):
            yield forbidden(f"spec.{part}", "pod updates may not add or remove containers")
            return
    before, after = was.get("activeDeadlineSeconds"), pod.get("activeDeadlineSeconds")
    if before is not None and after is None:
        yield invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif before is not None and after > before:
        yield invalid("spec.activeDeadlineSeconds", after, "must be less than or equal to previous value")
    gates = {gate.get("name") for gate in was.get("schedulingGates") or ()}
    for at, gate in enumerate(pod.get("schedulingGates") or ()):
        if gate.get("name") not in gates:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{at}].name", text)
    kept = pod.get("tolerations") or []
    if any(_timeless(one) not in [_timeless(other) for other in kept] for one in was.get("tolerations") or ()):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    selector = was.get("nodeSelector") or {}
    if gates and not selector.items() <= (pod.get("nodeSelector") or {}).items():
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", pod.get("nodeSelector"), text)
    if _fixed(was, gated=bool(gates)) != _fixed(pod, gated=bool(gates)):
        yield forbidden("spec", _FIXED)


def _timeless(toleration: JsonObject) -> JsonObject:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _fixed(pod: JsonObject, *, gated: bool) -> JsonObject:
    """Return the immutable part of a pod's spec; while it has gates, its node selection can change."""
    rest = deepcopy(pod)
    for part in ("containers", "initContainers"):
        for container in rest.get(part) or ():
            container.pop("image", None)
    free = ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"]
    free += ["nodeSelector", "affinity"] if gated else []
    if (pod.get("terminationGracePeriodSeconds") or 0) < 0:
        free.append("terminationGracePeriodSeconds")
    return {key: value for key, value in rest.items() if key not in free and value is not None}
