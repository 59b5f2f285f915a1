"""The claim of a probe on a pool of NVIDIA's DRA driver: one device, and whether the pod sees that very device.

In scope: the ResourceClaimTemplate as the API expects it, the device that a claim got, and comparing it with what
`nvidia-smi -L` lists; pure. Out of scope: the Job (probe), creating and reading them (engine.probing).

A claim that a template made is deallocated once its pod ends (kubernetes pkg/controller/resourceclaim), so the pod
stays until its claim has been read. The template belongs to the Job: the cluster deletes both after a killed gpukube.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.proof.claimable import restart
from gpukube.cluster.proof.outcome import missing
from gpukube.cluster.proof.probe import Claimed, probe_marks, probed_resource
from gpukube.cluster.state.published import PROFILE, UUID, claimed_devices, device_name
from gpukube.core.jsontree import text
from gpukube.gpu.claims import DRIVER, MIG_CLASS
from gpukube.gpu.mig import is_same_profile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpukube.cluster.kube.slices import DeviceView
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.proof.probe import Listed
    from gpukube.cluster.state.published import Published
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
"""Label "true" of a namespace whose claims may have adminAccess (kubernetes/api resource/v1, DRAAdminAccess)."""


def claim_template(desired: Desired, job: Tree, profile: str = "", *, admin: bool = False) -> dict[str, object]:
    """Return the template, with the name of its Job.

    Args:
        desired: The pool.
        job: The Job as created, which will own it.
        profile: Profile of the MIG device as the driver spells it; "" for the promised one, or a whole GPU.
        admin: Whether to claim a device that others use, to look at it.
    """
    name, marks = text(job, "metadata", "name"), probe_marks(desired)
    device_class, _, promised = probed_resource(desired).partition("/")
    exactly: dict[str, object] = {"deviceClassName": device_class}
    if promised:
        expression = f"device.attributes['{DRIVER}'].profile == '{profile or promised}'"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    if admin:
        exactly["adminAccess"] = True
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": text(job, "metadata", "uid")}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": name,
            "namespace": text(job, "metadata", "namespace"),
            "labels": marks,
            "ownerReferences": [owner],
        },
        "spec": {
            "metadata": {"labels": marks},
            "spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}},
        },
    }


def claimed_profile(desired: Desired, there: Iterable[Published]) -> str:
    """Return the probed profile as the driver spells it on the pool's nodes; "" if they have none."""
    devices = (device for its in there for device in its.usable if _is_probed(desired, device))
    return next((str(device.attributes.get(PROFILE, "")) for device in devices), "")


def free_nodes(
    desired: Desired, nodes: Iterable[NodeView], there: Mapping[str, Published], claims: Iterable[Tree]
) -> tuple[NodeView, ...]:
    """Return the nodes that accept pods and have a free device of the probed name.

    Args:
        desired: The pool.
        nodes: Its nodes.
        there: What the driver publishes, by node.
        claims: ResourceClaims of the cluster, without those of probes.
    """
    held = claimed_devices(claims)
    return tuple(
        node for node in nodes if node.ready and not node.cordoned and _has_free(desired, there.get(node.name), held)
    )


def _has_free(desired: Desired, there: Published | None, held: Collection[tuple[str, str]]) -> bool:
    return there is not None and any(
        _is_probed(desired, device) and not device.kept_off and (pool.name, device.name) not in held
        for pool in there.pools
        if pool.complete
        for device in pool.devices
    )


def _is_probed(desired: Desired, device: DeviceView) -> bool:
    promised, name = probed_resource(desired), device_name(device)
    _, _, profile = promised.partition(f"{MIG_CLASS}/")
    return name == promised or (bool(profile) and is_same_profile(profile, name.removeprefix(f"{MIG_CLASS}/")))


def claimed_device(claim: Tree | None) -> Claimed | None:
    """Return the device that a probe's claim has got; None before and after."""
    found = claimed_devices([claim], observed=True) if claim is not None else ()
    return next((Claimed(*one) for one in sorted(found)), None)


def judge_device(
    node: str, device: Claimed | None, there: Mapping[str, Published], listed: Sequence[Listed]
) -> tuple[Finding, ...]:
    """Compare the UUID that the pod printed with that of the device in its claim; empty if they are the same."""
    if device is None:
        means = "the claim ended before gpukube read it: gpukube was slow, or the claim was deleted"
        return (missing(node, "probe", "error", "the probe's claim was not seen", means, "run it again"),)
    uuids = [
        str(item.attributes.get(UUID, ""))
        for its in there.values()
        for pool in its.pools
        for item in pool.devices
        if (pool.name, item.name) == device
    ]
    seen = listed[-1].uuid
    if seen in uuids:
        return ()
    has = f"{device.device} ({uuids[0]})" if uuids else f"{device.device}, which no ResourceSlice has now"
    means = "the ResourceSlices are outdated, or something else hands out the GPUs of the node too"
    return (missing(node, "probe", "error", f"the pod sees {seen}, and its claim has {has}", means, restart(node)),)
