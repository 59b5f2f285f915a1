"""What a spec's pools offer to pods: devices, capacity, labels, and taints of their nodes, real and expected.

Pure. In scope: a pool as the scheduler and the autoscaler see it. Out of scope: pods, and what a cloud adds to its
nodes (its provider's `nodes`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpukube.core.autoscaler_template import expected_devices
from gpukube.core.hugepages import HUGE, hugepages_of
from gpukube.core.prices import UNPRICED
from gpukube.core.scaling_order import ClassOrder
from gpukube.core.values import FAMILY_LABEL
from gpukube.gpu.cloud_machines import cloud_machines
from gpukube.workload.devices import NOTHING, Published, devices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.core.prices import NodePrice
    from gpukube.core.values import Desired, Taint, Target
    from gpukube.provider import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """A node without user pods, as the scheduler counts.

    Attributes:
        devices: Extended resource -> count: GPUs, and devices of the fast network.
        cpu: Millicores for pods; None if unknown.
        memory: Bytes for pods; None if unknown.
        pods: Maximum number of pods; None if unknown.
        labels: Labels, except zone and host name.
        taints: All of them.
        others: Bytes of hugepages-* and ephemeral-storage; missing ones are unknown, except hugepages: a node has them
            only if its pool configures them.
        published: Devices that claims request, of the drivers of Dynamic Resource Allocation.
        unnamed: Prefix of extended resources that the node has under names from the cluster's configuration, such as
            those of GKE's networks; any number of them counts as there. "" for none.
    """

    devices: Mapping[str, int]
    cpu: int | None
    memory: int | None
    pods: int | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    others: Mapping[str, int] = field(default_factory=dict)
    published: Published = NOTHING
    unnamed: str = ""

    def count(self, name: str) -> int | None:
        """Return the number of devices with a name; None if only the cluster's configuration knows it."""
        if name not in self.devices and self.unnamed and name.startswith(self.unnamed):
            return None
        return self.devices.get(name, 0)

    @property
    def all_devices(self) -> dict[str, int]:
        """Extended resources, and devices that claims request, by the names that plans use."""
        return {**self.devices, **self.published.free(())}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOffer:
    """What one pool on one cluster offers to pods.

    Attributes:
        desired: The pool; its target has names, machine, sharing, node range, and zones.
        real: A node that is up with verified devices; its labels are those set at creation.
        expected: A node as the autoscaler expects it while the pool is empty.
        tolerates_resources: Whether the cluster's admission adds a toleration for each extended resource that a pod
            requests.
        selector: Labels that select this pool's nodes, safe even while it is empty.
        discovered: Whether GPU feature discovery adds its labels (nvidia.com/gpu.product, ...) to running nodes. They
            are not among the labels of `real`: the catalog has no product names.
        single: Whether the device plugin rejects containers that request more than one share; they fail on the node.
        on_request: What makes nodes start if a pending pod alone does not; "" otherwise.
        provisioning: The pool's part of a Kueue ProvisioningRequestConfig; {} if pending pods start nodes.
        price: Price of a node; unknown until a command that shows prices reads it.
        family_selector: Labels that select the nodes of its family, whichever pool has them; {} if it has no family.
        class_key: Key of the taint that the cluster tolerates for pods that select its value; "" for none.
        alternatives: For the offer of a whole family, the names of its pools after the first.
    """

    desired: Desired
    real: NodeShape
    expected: NodeShape
    tolerates_resources: bool
    selector: Mapping[str, str]
    discovered: bool
    single: bool
    on_request: str
    provisioning: Mapping[str, object] = field(default_factory=dict)
    price: NodePrice = UNPRICED
    family_selector: Mapping[str, str] = field(default_factory=dict)
    class_key: str = ""
    alternatives: tuple[str, ...] = ()

    @property
    def family(self) -> tuple[str, str, str] | None:
        """Cluster key, owner and name of its family; None if it has none."""
        target = self.desired.target
        return (target.cluster.key, target.owner, target.family) if target.family else None

    @property
    def gpus(self) -> Mapping[str, int]:
        """GPUs of a node, or parts of them, without other devices."""
        return self.desired.promise.per_node

    @property
    def by_claims(self) -> bool:
        """Whether pods request the GPUs by claims: NVIDIA's DRA driver publishes them, and no device plugin runs."""
        return self.desired.ownership.advertiser == "dra"

    @property
    def name(self) -> str:
        """Cluster key and pool, "train-aks/a100mig"."""
        return str(self.desired.target.where)


def make_offers(desireds: Iterable[Desired], provider_of: Callable[[str], Provider]) -> tuple[PoolOffer, ...]:
    """Return what translated pools offer, in their order.

    A pool whose plugin others manage (devicePlugin.owner: none) counts as offering what its spec declares.

    Args:
        desireds: Pools of a spec, translated by their providers.
        provider_of: Returns a provider by its name in the spec.
    """
    return tuple(_offer(desired, provider_of(desired.target.cluster.provider)) for desired in desireds)


def _offer(desired: Desired, provider: Provider) -> PoolOffer:
    target, facts, fabric = desired.target, provider.nodes, desired.fabric
    diagnosis = provider.extras.diagnosis
    expected = expected_devices(desired, diagnosis.autoscaler if diagnosis else None)
    promised, published, foreseen = desired.promise.per_node, NOTHING, NOTHING
    if desired.ownership.advertiser == "dra":
        published = Published(devices_of(desired))
        foreseen = published if promised.items() <= expected.items() else foreseen
        expected = {name: count for name, count in expected.items() if name not in promised}
        promised = {}
    room = facts.room(target)
    pages = {**(fabric.hugepages if fabric else {}), **hugepages_of(target)}

    def shape(devices: Mapping[str, int], others: Mapping[str, int], claimable: Published) -> NodeShape:
        return NodeShape(
            devices=devices,
            cpu=room.cpu if room else None,
            memory=max(0, room.memory - sum(pages.values())) if room else None,
            pods=room.pods if room else None,
            labels=facts.labels(desired),
            taints=desired.effective_taints,
            others=others,
            published=claimable,
            unnamed=fabric.resource[:-1] if fabric and fabric.resource.endswith("*") else "",
        )

    return PoolOffer(
        desired=desired,
        real=shape({**promised, **(fabric.names if fabric else {})}, pages, published),
        # Its template comes from the machine type, which has no huge pages (kubernetes/autoscaler cloudprovider).
        expected=shape(
            {name: count for name, count in expected.items() if not name.startswith(HUGE)},
            {name: size for name, size in expected.items() if name.startswith(HUGE)}
            if diagnosis and diagnosis.autoscaler
            else pages,
            foreseen,
        ),
        tolerates_resources=provider.extras.tolerates_resources,
        selector=facts.selector(desired),
        discovered=desired.ownership.advertiser in ("chart", "operator"),
        single=_is_single(desired),
        on_request=facts.on_request(desired),
        provisioning=facts.provisioning(desired),
        family_selector=_family_selector(target, provider),
        class_key=order.key if isinstance(order := provider.extras.order, ClassOrder) else "",
    )


def _family_selector(target: Target, provider: Provider) -> dict[str, str]:
    """Return what selects the pools of a family: its class where the autoscaler knows the order by one."""
    order = provider.extras.order
    if not target.family:
        return {}
    if isinstance(order, ClassOrder) and target.nodes.autoscaled:
        return {order.key: target.family}
    return {FAMILY_LABEL: target.family}


def members_of(offer: PoolOffer, offers: Iterable[PoolOffer]) -> list[PoolOffer]:
    """Return the pools of a pool's family by rank; only the pool itself if it has no family."""
    family = [other for other in offers if offer.family and other.family == offer.family]
    return sorted(family, key=lambda other: other.desired.target.rank) or [offer]


def family_offer(members: Sequence[PoolOffer]) -> PoolOffer:
    """Return what a family offers to pods that run on any of its pools: the least of each, and all taints.

    One pool of a family with a fixed size has all nodes; of an autoscaled family, each pool may have its maximum.
    """
    first, *others = members
    if not others:
        return first
    target = first.desired.target
    nodes = target.nodes
    if nodes.autoscaled:
        nodes = replace(nodes, maximum=sum(member.desired.target.nodes.maximum for member in members))
    taints = tuple(dict.fromkeys(taint for member in members for taint in member.desired.effective_taints))
    per_node = _least([member.gpus for member in members])
    desired = replace(
        first.desired,
        target=replace(target, nodes=nodes),
        promise=replace(first.desired.promise, per_node=per_node),
        effective_taints=taints,
    )
    return replace(
        first,
        desired=desired,
        real=_common([member.real for member in members]),
        expected=_common([member.expected for member in members]),
        selector=first.family_selector,
        discovered=all(member.discovered for member in members),
        single=any(member.single for member in members),
        on_request=next(filter(None, (member.on_request for member in members)), ""),
        alternatives=tuple(member.desired.target.pool for member in others),
    )


def _common(shapes: Sequence[NodeShape]) -> NodeShape:
    """Return a node with the least of several ones, and the taints of all."""
    first = shapes[0]
    labels = set.intersection(*(set(shape.labels.items()) for shape in shapes))
    cpus, memories, pods = (
        [number for shape in shapes if (number := getattr(shape, name)) is not None]
        for name in ("cpu", "memory", "pods")
    )
    fewest = min(shapes, key=lambda shape: len(shape.published.devices))
    return replace(
        first,
        devices=_least([shape.devices for shape in shapes]),
        cpu=min(cpus) if len(cpus) == len(shapes) else None,
        memory=min(memories) if len(memories) == len(shapes) else None,
        pods=min(pods) if len(pods) == len(shapes) else None,
        labels={key: value for key, value in first.labels.items() if (key, value) in labels},
        taints=tuple(dict.fromkeys(taint for shape in shapes for taint in shape.taints)),
        others=_least([shape.others for shape in shapes]),
        published=fewest.published,
    )


def _least(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: min(one[name] for one in counts) for name in counts[0] if all(name in one for one in counts)}


def _is_single(desired: Desired) -> bool:
    """Return whether the device plugin rejects a request for two shares.

    Source:
        NVIDIA/k8s-device-plugin v0.20.0 api/config/v1: failRequestsGreaterThanOne is false by default for time-slicing
        and true for MPS. GoogleCloudPlatform/container-engine-accelerators pkg/gpu/nvidia/gpusharing: GKE's plugin
        always refuses with time-sharing, with MPS on nodes with several GPUs.
    """
    target, slicing = desired.target, desired.target.sharing.slicing
    if slicing is None:
        return False
    if desired.ownership.advertiser == "cloud" and cloud_machines(target.cluster.provider).own_sharing:
        return slicing.mode == "time-slicing" or target.machine.devices > 1
    refuses = slicing.fail_requests_greater_than_one
    return slicing.mode == "mps" if refuses is None else refuses
