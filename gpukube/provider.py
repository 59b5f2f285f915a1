"""The interface between gpukube and a cloud: two protocols, and provider discovery.

A provider has two halves. `Provider` is pure: it needs no SDK, no network, and no clock, so plan and tests run without
them. `Cloud`, which `Provider.connect` returns, is the live half, one per cluster.

A provider package registers an entry point in the group `gpukube.providers`; nothing in gpukube names one
(gpukube.installed). Loading it is cheap: it provides its part of the spec and imports the rest on demand.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from gpukube.core.launches import Launches
from gpukube.core.upgrades import NodeOffer
from gpukube.core.values import Ability
from gpukube.entry_points import ENTRY_POINT_GROUP, provider_names
from gpukube.errors import MissingExtra
from gpukube.installed import install_command, load_installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.in_cluster import InClusterFacts
    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.provider_parts import Extras, PoolRequests
    from gpukube.core.quotas import CloudQuota, QuotaReading
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import (
        Change,
        ClusterFacts,
        ClusterRef,
        Desired,
        KubeAccess,
        NodeStack,
        Observed,
        Operation,
        Ownership,
        Progress,
        Promise,
        Request,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.errors import Finding
    from gpukube.gpu.cloud_machines import CloudMachines
    from gpukube.spec.cloud import CloudSpec

__all__ = [
    "ENTRY_POINT_GROUP",
    "FEATURES",
    "Ability",
    "Cloud",
    "CloudExtras",
    "Provider",
    "importing_sdk",
    "in_cluster_facts",
    "load_provider",
    "part",
    "provider_names",
]

FEATURES = (
    "nodes.count",
    "nodes.autoscaling",
    "nodes.autoscaling.scope",
    "capacity.spot",
    "capacity.reserved",
    "zones",
    "disk.size",
    "disk.type",
    "disk.iops",
    "disk.throughput",
    "disk.encrypted",
    "disk.kmsKey",
    "instanceTypes",
    "network.highSpeed",
    "placement.compact",
    "placement.named",
    "localStorage.ephemeral",
    "localStorage.raw",
    "kubelet",
    "kubelet.topologyManagerScope",
    "kubelet.memoryManagerPolicy",
    "sysctls",
    "hugepages",
    "confidential",
    "image",
    "kubernetesVersion",
    "upgrade.maxSurge",
    "upgrade.maxUnavailable",
    "maxPodsPerNode",
    "driver.version",
    "sharing.mig.single",
    "sharing.mig.mixed",
    "sharing.mig.layout",
    "sharing.timeSlicing",
    "sharing.mps",
    "taints",
    "gpuTaint",
    "labels",
    "tags",
    "deletionProtection",
)
"""Features of the spec that every provider must list in `Provider.abilities`."""


def part(address: str) -> Any:  # noqa: ANN401 - the type is that of the member, which the contract checks
    """Declare a member of a provider that is imported on first use.

    spec: CloudSpec = part(".spec:SPEC")

    Args:
        address: Module in the provider's own package, and name in it.
    """
    return _Part(*address.split(":"))


class _Part:
    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._package = ""

    def __set_name__(self, owner: type, _: str) -> None:
        self._package = owner.__module__.rpartition(".")[0]

    def __get__(self, instance: object, _: type | None = None) -> object:
        return self if instance is None else self._member

    @cached_property
    def _member(self) -> object:
        return getattr(import_module(self._module, self._package), self._name)


class Provider(Protocol):
    """The pure half of a cloud. Constructed without arguments; has no state.

    Every cloud has these members. Optional ones are in `extras`, which has defaults.
    """

    @property
    def name(self) -> str:
        """Name in the spec: `provider: aks`."""

    @property
    def spec(self) -> CloudSpec:
        """Its part of the spec: the cluster model, forms of reserved capacity, native fields."""

    @property
    def machines(self) -> CloudMachines:
        """Its instance types: those that the embedded table lacks, and names that cannot work."""

    @property
    def nodes(self) -> NodeFacts:
        """Its nodes as pods see them, before any exists."""

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Its rules: code ("nimbus-name") -> number ("NIM101", never changed) and title (a sentence)."""

    def abilities(self) -> Mapping[str, Ability]:
        """Return how well this cloud supports each feature of the spec ("sharing.mig", "capacity.spot", ...)."""

    def check(self, target: Target) -> list[Finding]:
        """Return what this cloud would reject, before any call: names, limits, combinations."""

    def stack(self, target: Target) -> NodeStack:
        """Return the components that this pool's nodes include before anything is installed."""

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target. The create request sets gpukube's ownership labels."""

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return the effect of changing this field. Every key of Desired.fields has a row.

        Args:
            change: The change.
            beside: All changes made together, if the effect depends on more than one field.
            live: The live pool, if the effect depends on it; None for pools in general.
        """

    @property
    def requests(self) -> PoolRequests:
        """Its requests for live pools."""

    @property
    def extras(self) -> Extras:
        """Its optional parts: a catalog, quotas, policies, upgrades, ..."""

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Return the live half. Imports the SDK; makes no call yet.

        Raises:
            MissingExtra: The SDK is not installed; the fix names the extra.
        """


class CloudExtras(Protocol):
    """Optional methods of a cloud's live half. A cloud inherits the defaults, which do nothing."""

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Read what the nodes of a live pool could be upgraded to now, with at most one call.

        If permission is missing, the result says so; that is not an error.

        Args:
            observed: The pool, of a provider whose extras have `upgrades`.
            kubernetes: Desired version of its nodes; "" for the control plane's.
        """
        del observed
        return NodeOffer(kubernetes)

    def complete(self, desired: Desired) -> Desired:
        """Set values that the user omitted and only the live cluster provides (a role, subnets, a zone).

        Only reads. Returns the argument if nothing is missing.

        Raises:
            SpecError: A missing value has no candidate or several; names the candidates.
        """
        return desired

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read quotas of one place in parallel. Raises nothing: an unreadable quota is a reading with the reason.

        Args:
            asked: Quotas from `Extras.quotas`; never called if that is None.
        """
        del asked
        return {}

    def check_limits(self, successor: Desired, pools: int) -> list[Finding]:
        """Check limits for one more pool in the cluster: addresses, or pools per cluster.

        Raises nothing: a failed read is a warning. Empty if there are no known obstacles.

        Args:
            successor: The complete pool.
            pools: Current number of pools in the cluster.
        """
        del successor, pools
        return []

    def launches(self, observed: Observed) -> Launches:
        """Read the newest launches of a pool's machines, with at most one call.

        Args:
            observed: The pool as just read.
        """
        del observed
        return Launches()

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """Read the reservation that a pool names, with at most two calls.

        Returns:
            None if the pool names none, or one that cannot be read: missing permission is not an error.

        Args:
            pool: A pool, declared or live.
        """
        del pool
        return None


class Cloud(CloudExtras, Protocol):
    """The live half: one cluster, thread-safe, created once and shared.

    All methods raise only gpukube's errors: AccessError, CapacityError, QuotaError, Conflict, CloudError.
    """

    def identify(self) -> ClusterFacts:
        """Check that the identity matches the spec and that the cluster exists.

        Raises:
            AccessError: Not authenticated, not authorized, or not the account or subscription that the spec names.
            CloudError: The cluster does not exist, or the endpoint is unreachable.
        """

    def pools(self) -> tuple[Observed, ...]:
        """Return every pool of the cluster, of all owners, from all pages."""

    def pool(self, name: str) -> Observed | None:
        """Read one pool by its cloud name, with as few calls as possible; None if it does not exist."""

    def send(self, request: Request) -> Operation:
        """Start a change and return at once.

        Creating a pool that exists raises Conflict (observe, then decide). Deleting a missing pool returns an operation
        that is already done. A busy cluster raises Busy after the SDK's own retries; a pool that changed since it was
        read raises Moved.
        """

    def poll(self, operation: Operation) -> Progress:
        """Check a running operation once. Does not raise for a failed operation: Progress.error contains it."""

    def kube_access(self) -> KubeAccess:
        """Return a complete kubeconfig for the cluster's Kubernetes API, without any cloud CLI."""

    def close(self) -> None:
        """Close connections; the object is not used afterwards."""


def load_provider(name: str) -> Provider:
    """Load one provider by its name in the spec.

    Raises:
        MissingExtra: No installed package registers this provider, or the package cannot be loaded.
    """
    return cast("Provider", load_installed(name))


@cache
def in_cluster_facts() -> tuple[InClusterFacts, ...]:
    """Return the in-cluster facts of all installed clouds; signs of one cloud never occur in another's cluster."""
    return tuple(load_provider(name).extras.in_cluster for name in provider_names())


@contextmanager
def importing_sdk(distributions: str, modules: tuple[str, ...], extra: str, where: str) -> Iterator[None]:
    """Raise what to install if the body's import of a provider's SDK fails; other errors pass through.

    Args:
        distributions: Human-readable name of the SDK: "boto3".
        modules: Prefixes of its modules.
        extra: gpukube's extra that installs it.
        where: The cluster that needs it.

    Raises:
        MissingExtra: One of the modules is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(modules):
            raise
        verb = "are" if " and " in distributions else "is"
        raise MissingExtra(f"{distributions} {verb} not installed", where=where, fix=install_command(extra)) from error
