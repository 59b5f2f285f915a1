"""Predicts which pods of the NVIDIA stack run on which nodes, and which predicate excludes the others.

In scope: places (live nodes, or those a pool will have) and DaemonSets (live, rendered, or from values) -> Reach; pure.
Out of scope: the predicates themselves (scheduling), identifying a DaemonSet (components), wording of findings.

A future node gets the labels that components will write to it, but only if such a component itself runs there: a
    node without an NFD worker gets no feature labels, so nothing that requires one runs either. That is how a taint of
    a pool leaves it without devices (NVIDIA/k8s-device-plugin#734).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DRA_DRIVER, NAMESPACE
from gpukube.cluster.state.components import role_of, title_of
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.core.owners import MIG_CONFIG_LABEL, MIG_STATE_LABEL
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.state.components import Role
    from gpukube.cluster.state.scheduling import Misfit
    from gpukube.core.values import Desired, Taint

FEATURE_LABELS: Final[Mapping[str, str]] = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "feature.node.kubernetes.io/pci-0302_10de.present": "true",
    "feature.node.kubernetes.io/pci-0300_10de.present": "true",
}
"""Labels that an NFD worker, in any configuration, may set on a node with a GPU (NVIDIA/k8s-device-plugin#1213)."""
_BORN_WITH: Final[Mapping[str, str]] = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}
"""Labels that every kubelet sets itself."""
_CLOUD_DOMAINS: Final = (
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "kubernetes.io/",
    "beta.kubernetes.io/",
)
"""Domains that cloud controllers write on every cloud; each cloud's own domains are in its `Extras.in_cluster`."""
_OPERANDS: Final = "nvidia.com/gpu.deploy."
_MPS: Final = "nvidia.com/mps.capable"


_OPERAND_NAMES: Final = (
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm",
    "dcgm-exporter",
    "mig-manager",
    "operator-validator",
    "container-toolkit",
    "driver",
    "node-status-exporter",
)
"""Labels that the operator sets on a node once NFD has detected its GPU (NVIDIA/gpu-operator v26.7.0
controllers/state_manager.go); those for driver and toolkit matter only if it runs them."""
_WRITERS: Final[tuple[Role, ...]] = ("nfd-worker", "gfd")
"""Roles that write labels that others require, in the order in which they depend on each other."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node, or the nodes that a pool will have.

    Attributes:
        name: Human-readable name: the node's, or "cluster/pool".
        labels: Current labels, or those that it is created with.
        node: Name of the live node; "" for future nodes.
        written: Role -> labels that its pod will write once it runs there; empty for live nodes, which have them
            already.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    node: str = ""
    written: Mapping[Role, Mapping[str, str]] = field(default_factory=dict)

    @property
    def coming(self) -> bool:
        """Whether it does not exist yet."""
        return not self.node


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the pods of one DaemonSet run at one place.

    Attributes:
        place: Name of the place.
        role: Role of the DaemonSet.
        workload: The DaemonSet.
        misfits: Reasons why its pods cannot run there; empty if they can.
    """

    place: str
    role: Role
    workload: WorkloadView
    misfits: tuple[Misfit, ...]

    @property
    def lands(self) -> bool:
        """Whether its pods run there."""
        return not self.misfits

    @property
    def why_not(self) -> str:
        """Reasons why they cannot; "" if they can."""
        return "; ".join(misfit.message for misfit in self.misfits)

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that are not tolerated."""
        return tuple(misfit.taint for misfit in self.misfits if misfit.taint)

    def __str__(self) -> str:
        """Render the result in one line."""
        title = title_of(self.role)
        return f"{title} runs" if self.lands else f"{title} does not run: {self.why_not}"


def live_place(node: NodeView) -> Place:
    """Return the place of a live node."""
    return Place(node.name, node.labels, node.taints, node.name)


def coming_place(pool: Desired) -> Place:
    """Predict a pool's nodes: labels, effective taints, and what the stack will write on them."""
    shares = pool.target.sharing.slicing
    mps = str(shares is not None and shares.mode == "mps").lower()
    deploys = {f"{_OPERANDS}{operand}": "true" for operand in _OPERAND_NAMES}
    operated = deploys if pool.labels.get(f"{_OPERANDS}operands") != "false" else {}
    applied = {MIG_STATE_LABEL: "success"} if MIG_CONFIG_LABEL in pool.labels else {}
    return Place(
        name=pool.target.where.source,
        labels={**_BORN_WITH, **pool.labels, **applied},
        taints=pool.effective_taints,
        written={
            "nfd-worker": {
                **FEATURE_LABELS,
                **{key: value for key, value in operated.items() if key not in pool.labels},
            },
            "gfd": {_MPS: mps},
        },
    )


def may_appear(key: str) -> bool:
    """Return whether the cloud may set a label beyond the spec on a node that does not exist yet."""
    return key.startswith(_CLOUD_DOMAINS) or any(
        key in facts.label_keys or key.startswith(facts.label_domains) for facts in in_cluster_facts()
    )


def reach(places: Iterable[Place], daemonsets: Iterable[WorkloadView]) -> tuple[Reach, ...]:
    """Return, for every place and every DaemonSet of the NVIDIA stack, whether its pods run there.

    Args:
        places: Live or future nodes.
        daemonsets: Any; those outside the stack are skipped.
    """
    stack = _stack_of(daemonsets)
    return tuple(found for place in places for found in _reach_place(place, stack))


def reach_one(place: Place, daemonset: WorkloadView) -> tuple[Misfit, ...]:
    """Return what keeps the pods of one DaemonSet, of the stack or not, off a place with its current labels."""
    unknown: Callable[[str], bool] | None = may_appear if place.coming else None
    return daemon_misfits(daemonset.placement, place.labels, place.taints, name=place.node, unknown=unknown)


def _stack_of(daemonsets: Iterable[WorkloadView]) -> list[tuple[Role, WorkloadView]]:
    return [(role, item) for item in daemonsets if (role := role_of(item)) is not None]


def _reach_place(
    place: Place, stack: Sequence[tuple[Role, WorkloadView]], roles: Container[Role] | None = None
) -> list[Reach]:
    """Check the DaemonSets of some roles, or of all; those that write labels count for the others either way."""
    labels = dict(place.labels)
    for writer in _WRITERS:
        if writer not in place.written:
            continue
        grown = Place(place.name, labels, place.taints, place.node)
        if any(role == writer and not reach_one(grown, item) for role, item in stack):
            labels = {**place.written[writer], **labels}
    grown = Place(place.name, labels, place.taints, place.node)
    return [
        Reach(place.name, role, item, reach_one(grown, item)) for role, item in stack if roles is None or role in roles
    ]


def needed_roles(pool: Desired) -> Mapping[Role, bool]:
    """Return which components of gpukube's release, or of the cloud, must run on a pool's nodes.

    Returns:
        Role -> whether the promised devices depend on it; False if only labels do. Empty for pools that others serve.
    """
    advertiser, operated = pool.ownership.advertiser, pool.ownership.operated
    if advertiser == "cloud":
        return {"cloud-plugin": True}
    needed: dict[Role, bool] = {}
    if advertiser == DRA_DRIVER.advertiser:
        needed = {"dra": True, **({"nfd-worker": True} if operated else {})}
    elif advertiser in ("chart", "operator"):
        shares = pool.target.sharing.slicing
        mps = shares is not None and shares.mode == "mps"
        needed = {"plugin": True, "gfd": mps, "nfd-worker": operated, **({"mps": True} if mps else {})}
    if operated and pool.target.sharing.mig is not None:
        needed["mig-manager"] = True
    return needed


_ANYBODYS: Final = ("nfd-worker", "cloud-plugin")


def _distance(found: Reach) -> int:
    """Return how many conditions would have to change."""
    return sum(len(misfit.keys) or 1 for misfit in found.misfits)


def unreached(pool: Desired, places: Iterable[Place], daemonsets: Iterable[WorkloadView]) -> tuple[Reach, ...]:
    """Return the components that a pool needs and whose existing DaemonSets all fail to reach a place.

    A component may have several DaemonSets (NFD's workers of two installations, GKE's plugin by size and system of
    nodes): one that reaches the place is enough; otherwise the closest one is reported. Only DaemonSets in gpukube's
    namespace count
    as plugin, GFD, MPS daemon, and MIG manager: others are not reliable. A component without any DaemonSet (a service
        of the node) is not reported here.
    """
    needed = needed_roles(pool)
    stack = [(role, item) for role, item in _stack_of(daemonsets) if item.namespace == NAMESPACE or role in _ANYBODYS]
    found: list[Reach] = []
    for place in places:
        at_place = _reach_place(place, stack, needed)
        for role in needed:
            of_role = [item for item in at_place if item.role == role]
            if of_role and not any(item.lands for item in of_role):
                found.append(min(of_role, key=_distance))
    return tuple(found)
