"""Kueue's objects for a pool: a flavor that assigns workloads to it, and a queue with its whole capacity.

If pending pods start no nodes (queued provisioning), the queue has an admission check that requests nodes first.

Uses kueue.x-k8s.io/v1beta2, which Kueue serves since 0.15; v1beta1 has been deprecated since, and its removal is
announced (kubernetes-sigs/kueue CHANGELOG-0.15.md, CHANGELOG-0.16.md). The fields used here are the same in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.hugepages import pages_text
from gpukube.workload.quantity import cpu_text, memory_text
from gpukube.workload.render.intent import refuse
from gpukube.workload.render.pods import metadata, placement
from gpukube.workload.render.text import Noted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Fitted

_API: Final = "kueue.x-k8s.io/v1beta2"


def render_kueue(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return ResourceFlavor, ClusterQueue, and LocalQueue; if nodes start on request, also the request's objects.

    Raises:
        SpecError: The catalog does not have the capacity of the pool's nodes, or pods request its GPUs by claims.
    """
    offer, name = fitted.offer, fitted.intent.name
    if offer.by_claims:
        refuse(
            "--pool",
            f"pods on {offer.name} request GPUs by claims, which Kueue counts under a name of its own configuration",
            "map the class in Kueue's deviceClassMappings, and write the ClusterQueue for that name",
        )
    real, nodes = offer.real, offer.desired.target.nodes.maximum
    if real.cpu is None or real.memory is None:
        machine = offer.desired.target.machine.name
        refuse(
            "--pool",
            f"CPU and memory of {machine} are not in the catalog, so there is no quota to write",
            "choose another machine, or write the ClusterQueue yourself",
        )
    whole = f"{nodes} node{'s' * (nodes != 1)}"
    quotas: dict[str, object] = {
        "cpu": Noted(cpu_text(real.cpu * nodes), f"{whole}, less what cloud and kubelet reserve"),
        "memory": memory_text(real.memory * nodes),
        **{resource: Noted(count * nodes, f"{whole} x {count}") for resource, count in sorted(real.devices.items())},
        **{name: pages_text(size * nodes) for name, size in real.others.items()},
    }
    flavor = {"name": name, "resources": [{"name": key, "nominalQuota": quota} for key, quota in quotas.items()]}
    placed = placement(fitted)
    labels = placed.pop("nodeSelector")
    queue: dict[str, object] = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": list(quotas), "flavors": [flavor]}],
    }
    checks = _checks(fitted)
    if checks:
        queue["admissionChecksStrategy"] = {
            "admissionChecks": [{"name": Noted(name, "without it workloads are admitted, and no node ever starts")}]
        }
    return [
        _object("ResourceFlavor", {"name": name}, {"nodeLabels": labels, **placed}),
        *checks,
        _object("ClusterQueue", {"name": name}, queue),
        _object("LocalQueue", metadata(fitted), {"clusterQueue": name}),
    ]


def _checks(fitted: Fitted) -> list[dict[str, object]]:
    """Return the objects that make Kueue request nodes before it admits a workload.

    Source: kubernetes-sigs/kueue site/content/en/docs/admission-check-controllers/provisioning.md.
    """
    offer, name = fitted.offer, fitted.intent.name
    if not offer.provisioning:
        return []
    config = {**offer.provisioning, "managedResources": sorted(offer.real.devices)}
    parameters = {"apiGroup": _API.partition("/")[0], "kind": "ProvisioningRequestConfig", "name": name}
    return [
        _object("ProvisioningRequestConfig", {"name": name}, config),
        _object(
            "AdmissionCheck",
            {"name": name},
            {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters},
        ),
    ]


def _object(kind: str, named: dict[str, object], spec: dict[str, object]) -> dict[str, object]:
    return {"apiVersion": _API, "kind": kind, "metadata": named, "spec": spec}
