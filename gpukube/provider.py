"""The seam between gpukube and a cloud: two protocols, and how a provider is found.

A provider comes in two halves. `Provider` is pure: it needs no SDK, no network and no clock, so plan and
tests run without them. `Cloud` is what `Provider.connect` returns: the live half, one per cluster.

A provider package announces itself by an entry point in the group `gpukube.providers`; nothing in gpukube
names one (gpukube.installed). Loading it is cheap: it brings its part of the spec and imports the rest when asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from gpukube.core.values import Ability
from gpukube.entry_points import ENTRY_POINT_GROUP, provider_names
from gpukube.errors import MissingExtra
from gpukube.installed import install_command, load_installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.cloud_catalog import CloudCatalog
    from gpukube.core.cloud_check import Diagnosis
    from gpukube.core.durations import CloudDurations
    from gpukube.core.exporting import Exporter
    from gpukube.core.fields import FieldPath
    from gpukube.core.in_cluster import InClusterFacts
    from gpukube.core.managers import Manager
    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.permissions import CloudPolicy, PolicyScope
    from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaReading
    from gpukube.core.upgrades import NodeMarks, NodeOffer, NodeSystem, UpgradeTerms
    from gpukube.core.values import (
        Change,
        ClusterFacts,
        ClusterRef,
        Desired,
        KubeAccess,
        Nodes,
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
    "NodeUpgrades",
    "Provider",
    "importing_sdk",
    "in_cluster_facts",
    "load_provider",
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


class Provider(Protocol):
    """The pure half of a cloud. Constructed without arguments; holds no state."""

    @property
    def name(self) -> str:
        """Name in the spec: `provider: aks`."""

    @property
    def pools_at_once(self) -> int:
        """How many pools of one cluster may change at the same time; 1 where the cloud serializes them."""

    @property
    def tolerates_resources(self) -> bool:
        """Whether its clusters run Kubernetes' admission plugin ExtendedResourceToleration.

        It lets a pod tolerate NoSchedule taints whose key is the name of a resource that the pod asks for.
        """

    @property
    def spec(self) -> CloudSpec:
        """Its part of the spec: the model of a cluster, forms of reserved capacity, native fields."""

    @property
    def machines(self) -> CloudMachines:
        """What it knows of its instance types: those the embedded table lacks, and names that cannot work."""

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Its rules: code ("nimbus-name") -> number ("NIM101", never changed) and title (a sentence)."""

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What the doctor checks and says of this cloud's pools; None when it has nothing of its own to say."""

    @property
    def catalog(self) -> CloudCatalog | None:
        """What `gpukube catalog` knows of this cloud and how it is refreshed; None when it has no catalog."""

    @property
    def quotas(self) -> CloudQuotas | None:
        """What its nodes count against; None when it has no quotas, or none that can be read."""

    @property
    def durations(self) -> CloudDurations | None:
        """How long it takes for changes of pools; None when nothing can be said."""

    @property
    def in_cluster(self) -> InClusterFacts:
        """What this cloud puts into its clusters: labels, conditions and device plugins by which they are known."""

    @property
    def nodes(self) -> NodeFacts:
        """What its nodes are like for pods, before there is one."""

    @property
    def exporters(self) -> Mapping[str, Exporter]:
        """What `gpukube pool export --to` can write of this cloud's pools, by target; empty for nothing."""

    @property
    def upgrades(self) -> NodeUpgrades | None:
        """What it knows of newer versions for nodes of live pools; None when nothing upgrades them."""

    def policies(self, scope: PolicyScope) -> tuple[CloudPolicy, ...]:
        """Write the policies of this cloud that allow what gpukube does with these clusters, and nothing more.

        One at least per account, subscription or project; empty where the cloud has no permissions. No call is made.
        """

    def chosen_fields(self, observed: Observed) -> Mapping[FieldPath, object]:
        """Return the fields of a live pool that a person chose, as a spec writes them.

        What the cloud gives by itself is left out, and so is what follows from another field.
        """

    def managers(self, observed: Observed) -> tuple[Manager, ...]:
        """Find what else manages a live pool, by the signs that its API shows; empty where nothing does.

        A tool that keeps pools as it made them undoes what gpukube changes, so such a pool is adopted on demand only.
        """

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature of the spec ("sharing.mig", "capacity.spot", ...) how faithful this cloud is."""

    def check(self, target: Target) -> list[Finding]:
        """Find what this cloud would refuse, before any call: names, limits, combinations. Empty when all is well."""

    def stack(self, target: Target) -> NodeStack:
        """Describe what the nodes of this pool bring before anything is installed."""

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target. The create request carries our ownership marks."""

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Make the call that deletes this pool."""

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Make the call that repairs a pool of ours that failed at creation, or None when it must be deleted first."""

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Make the call that a fresh pool still needs because creation could not carry it, or None.

        Asked again after each such call, and for every pool of ours that create finds: a run that was killed in
        between is completed by the next.
        """

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Describe what changing this field does. Every key of Desired.fields has a row.

        Args:
            change: The change.
            beside: All that would change with it, where one field alone does not tell.
            live: The pool that would change, where its fields do not tell; None for pools in general.
        """

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """Make the calls that bring these changes about in place, in the order in which they must be sent.

        One call per group of fields that the cloud changes together; each carries the changed fields only, or, where
        the cloud takes nothing less than the whole pool, the pool as observed with the changes merged in, guarded by
        its etag. After each call the engine looks again and asks anew for what is still to be done, so only the first
        is sent as it is here; all are shown in the plan.

        Args:
            desired: What is declared.
            observed: The live pool that the changes were found on.
            changes: Those whose row is in-place or disruptive; our marks among them when a pool is adopted.
        """

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """Make the call that gives a live pool another size, or other bounds; nothing else of it changes.

        Args:
            cluster: Where it is.
            observed: The live pool; autoscaled or not as `nodes` is.
            nodes: Pool totals. Of an autoscaled pool the bounds count, of another one the count.

        Raises:
            SpecError: The cloud cannot do that number: a total that its zones do not divide.
        """

    def release_requests(self, cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
        """Make the calls that take our marks off a live pool and change nothing else of it; empty when it has none.

        The copy in the tags goes before the labels: a run that is killed in between leaves a pool that is still ours.
        RELEASED_LABEL stays behind with the pool's name in its spec; where the cloud cannot change the copy, the label
        makes it void, and `Observed.copy` of such a pool is None.
        """

    def copy_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Make the call that writes the copy of a live pool's marks into its tags, as its labels say them.

        Sent before a second pool with the same marks is made: the copies tell the two from pools that others copied.

        Returns:
            None where the copy is there, where it is that of another pool, and where the cloud writes it at creation
            only, or not at all.
        """

    def freeze_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Make the call that keeps a live pool at the size it has, or None where nothing would change that size.

        Sent before the pool is emptied: an autoscaler would give it new nodes for the pods that have to leave.
        """

    def check_coexistence(self, successor: Desired, observed: Observed) -> list[Finding]:
        """Find why a live pool and the one that replaces it cannot exist at the same time; empty when they can.

        Errors are reasons why not, warnings what cannot be known before it is tried. Names are judged by `check`.
        """

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half. Imports the SDK; makes no call yet.

        Raises:
            MissingExtra: The SDK is not installed; the fix names the extra.
        """


class NodeUpgrades(Protocol):
    """What a provider knows of upgrades of its live pools."""

    def system(self, observed: Observed) -> NodeSystem:
        """Read what the nodes are made from."""

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe what an upgrade does to the nodes of this pool and to their pods."""

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Declare what is on offer where the spec declares nothing: the differences are then ordinary changes.

        What is newer on the live pool stays.
        """

    def marks(self, observed: Observed) -> NodeMarks:
        """Describe how nodes are known that are made from what this pool says now."""

    def unfinished(self, observed: Observed) -> str:
        """Tell by what a failed pool shows that an upgrade stopped half-way, and that repairing it goes on with that.

        Returns:
            "" where nothing shows it, or the cloud would not go on.
        """


class Cloud(Protocol):
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

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Read what the nodes of a live pool could be brought to now, with one call at the most.

        What may not be read is unknown, and said so in the answer; it is no error.

        Args:
            observed: The pool; of a provider that has `upgrades`.
            kubernetes: Version that its nodes shall have; "" for the control plane's.
        """

    def complete(self, desired: Desired) -> Desired:
        """Fill in what only the live cluster knows (a role, subnets, a zone) and the user left open.

        Reads only. Returns the argument where nothing is open.

        Raises:
            SpecError: What is open has no answer or several; names the candidates.
        """

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

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read quotas of one place, side by side. What cannot be read is a reading that says why; raises nothing.

        Args:
            asked: As `Provider.quotas` named them; never called where that is None.
        """

    def check_limits(self, successor: Desired, pools: int) -> list[Finding]:
        """Find what a pool beside those of the cluster would lack: addresses, or the pools that a cluster may have.

        What cannot be read is a warning; raises nothing. Empty where nothing is known against it.

        Args:
            successor: The pool, complete.
            pools: How many the cluster has now.
        """

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
    return tuple(load_provider(name).in_cluster for name in provider_names())


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
