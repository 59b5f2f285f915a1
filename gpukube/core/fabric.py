"""The network for traffic between GPUs: what pods request to use it, and what provides it in a cluster.

Pure. A cloud sets one `Fabric` per pool with network.highSpeed. In scope: its shape. Out of scope: any cloud's network,
and looking for its parts in a cluster (gpukube.cluster).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESSES: Final = ".IP"
"""End of the names by which GKE also advertises the free addresses of a network; not devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPart:
    """A DaemonSet that must run on the nodes.

    Attributes:
        title: Human-readable name: "the EFA device plugin".
        images: Parts of the name of its image.
        apps: Values of its labels app, k8s-app, or name.
        install: Command that installs or updates it; {release}, {namespace} and {tolerations} (JSON) are filled in.
        release, namespace: Where the command installs it if it is not in the cluster.
        advertises: Whether it is the device plugin that advertises the resource.
        driver: Name of the DRA driver that it is; its ResourceSlices take the place of the resource. "" for none.
    """

    title: str
    images: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    install: str
    release: str = ""
    namespace: str = ""
    advertises: bool = False
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The fast network of a pool's nodes.

    Attributes:
        title: Human-readable name: "EFA".
        resource: Extended resource of its devices; with "*" at the end, all names that start so: the cluster's
            configuration chooses them.
        count: Minimum number of devices of a node, of all these names together.
        request: Resource that pods request, if its name is known before the cluster is.
        about_request: When another resource takes its place; "" if never.
        names: Names that nodes are expected to have -> count.
        parts: What must run on the nodes; of each group any one, the first by default.
        short: Why nodes have fewer devices although all parts run there.
        hugepages: Resource -> bytes that the node image reserves for it unless the spec says otherwise.
        locks_memory: Whether containers need the capability IPC_LOCK.
        setup: What else pods need; "" for nothing.
        from_zero: What to write so that the autoscaler knows the devices while the pool is empty; "" if nothing helps.
    """

    title: str
    resource: str
    count: int
    request: str = ""
    about_request: str = ""
    names: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[tuple[FabricPart, ...], ...] = ()
    short: str
    hugepages: Mapping[str, int] = field(default_factory=dict)
    locks_memory: bool = False
    setup: str = ""
    from_zero: str = ""

    def covers(self, name: str) -> bool:
        """Return whether a resource is one of its devices."""
        if self.resource.endswith("*"):
            return name.startswith(self.resource[:-1]) and not name.endswith(_ADDRESSES)
        return name == self.resource
