"""The seam between gpukube and a cloud: two protocols, and how a provider is found.

A provider comes in two halves. `Provider` is pure: it needs no SDK, no network and no clock, so plan and
tests run without them. `Cloud` is what `Provider.connect` returns: the live half, one per cluster.

A provider package announces itself by an entry point in the group `gpukube.providers`; nothing in gpukube
names one (gpukube.installed). Loading it is cheap: it brings its part of the spec and imports the rest when asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

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
"""Features of the spec that every provider must judge in `Provider.abilities`: none may be silent."""


def part(address: str) -> Any:  # noqa: ANN401 - the type is that of the member, which the contract checks
    """Declare a member of a provider that is imported when it is used.

    spec: CloudSpec = part(".spec:SPEC")

    Args:
        address: Module of the provider's own package, and name in it.
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
        return self if instance is None else getattr(import_module(self._module, self._package), self._name)


class Provider(Protocol):
    """The pure half of a cloud. Constructed without arguments; holds no state.

    These members every cloud has. What only some have is in `extras`, which has defaults.
    """

    @property
    def name(self) -> str:
        """Name in the spec: `provider: aks`."""

    @property
    def spec(self) -> CloudSpec:
        """Its part of the spec: the model of a cluster, forms of reserved capacity, native fields."""

    @property
    def machines(self) -> CloudMachines:
        """What it knows of its instance types: those the embedded table lacks, and names that cannot work."""

    @property
    def nodes(self) -> NodeFacts:
        """What its nodes are like for pods, before there is one."""

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Its rules: code ("nimbus-name") -> number ("NIM101", never changed) and title (a sentence)."""

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature of the spec ("sharing.mig", "capacity.spot", ...) how faithful this cloud is."""

    def check(self, target: Target) -> list[Finding]:
        """Find what this cloud would refuse, before any call: names, limits, combinations. Empty when all is well."""

    def stack(self, target: Target) -> NodeStack:
        """Describe what the nodes of this pool bring before anything is installed."""

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target. The create request carries our ownership marks."""

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Describe what changing this field does. Every key of Desired.fields has a row.

        Args:
            change: The change.
            beside: All that would change with it, where one field alone does not tell.
            live: The pool that would change, where its fields do not tell; None for pools in general.
        """

    @property
    def requests(self) -> PoolRequests:
        """How calls for live pools are made."""

    @property
    def extras(self) -> Extras:
        """What it has besides: a catalog, quotas, policies, upgrades ..."""

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half. Imports the SDK; makes no call yet.

        Raises:
            MissingExtra: The SDK is not installed; the fix names the extra.
        """


class CloudExtras(Protocol):
    """What the live half of a cloud may do besides. A cloud inherits the defaults, which do nothing."""

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Read what the nodes of a live pool could be brought to now, with one call at the most.

        What may not be read is unknown, and said so in the answer; it is no error.

        Args:
            observed: The pool; of a provider whose extras have `upgrades`.
            kubernetes: Version that its nodes shall have; "" for the control plane's.
        """
        del observed
        return NodeOffer(kubernetes)

    def complete(self, desired: Desired) -> Desired:
        """Fill in what only the live cluster knows (a role, subnets, a zone) and the user left open.

        Reads only. Returns the argument where nothing is open.

        Raises:
            SpecError: What is open has no answer or several; names the candidates.
        """
        return desired

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read quotas of one place, side by side. What cannot be read is a reading that says why; raises nothing.

        Args:
            asked: As `Extras.quotas` named them; never called where that is None.
        """
        del asked
        return {}

    def check_limits(self, successor: Desired, pools: int) -> list[Finding]:
        """Find what a pool beside those of the cluster would lack: addresses, or the pools that a cluster may have.

        What cannot be read is a warning; raises nothing. Empty where nothing is known against it.

        Args:
            successor: The pool, complete.
            pools: How many the cluster has now.
        """
        del successor, pools
        return []


class Cloud(CloudExtras, Protocol):
    """The live half: one cluster, thread-safe, made once and shared.

    All methods raise our errors only: AccessError, CapacityError, QuotaError, Conflict, CloudError.
    """

    def identify(self) -> ClusterFacts:
        """Check that we are who the spec says and that the cluster is there.

        Raises:
            AccessError: Not authenticated, not authorized, or another account or subscription than the spec names.
            CloudError: No such cluster; endpoint unreachable.
        """

    def pools(self) -> tuple[Observed, ...]:
        """List every pool of the cluster, of all owners, all pages."""

    def pool(self, name: str) -> Observed | None:
        """Read one pool by its cloud name, with as few calls as the cloud allows; None when it is not there."""

    def send(self, request: Request) -> Operation:
        """Start a change and return at once.

        A create of a pool that exists raises Conflict (observe, then decide). A delete of a missing pool
        returns an operation that is already done. A busy cluster raises Busy after the SDK's own retries, a
        pool that changed since it was read Moved.
        """

    def poll(self, operation: Operation) -> Progress:
        """Look once at a running operation. Never raises for a failed operation: Progress.error carries it."""

    def kube_access(self) -> KubeAccess:
        """Get a complete kubeconfig for the cluster's Kubernetes API, without any cloud command line tool."""

    def close(self) -> None:
        """Close connections; the object is not used afterwards."""


def load_provider(name: str) -> Provider:
    """Load one provider by its name in the spec.

    Raises:
        MissingExtra: No installed package announces this provider, or the package cannot be loaded.
    """
    return cast("Provider", load_installed(name))


@cache
def in_cluster_facts() -> tuple[InClusterFacts, ...]:
    """List what all installed clouds put into their clusters; no sign of one is found in a cluster of another."""
    return tuple(load_provider(name).extras.in_cluster for name in provider_names())


@contextmanager
def importing_sdk(distributions: str, modules: tuple[str, ...], extra: str, where: str) -> Iterator[None]:
    """Describe what to install when the import of a provider's SDK in the body fails; other failures pass.

    Args:
        distributions: What is missing, as people name it: "boto3".
        modules: How names of its modules begin.
        extra: Of gpukube, that brings it.
        where: The cluster that needs it.

    Raises:
        MissingExtra: One of the modules is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(modules):
            raise
        verb = "are" if " and " in distributions else "is"
        raise MissingExtra(f"{distributions} {verb} not installed", where=where, fix=install_command(extra)) from error
