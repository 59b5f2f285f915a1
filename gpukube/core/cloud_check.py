"""What a cloud package checks its pools for, as data that the doctor reads.

A provider gives one `Diagnosis` as its member `diagnosis`: pure, without the SDK. In scope: its shape. Out of scope:
any check, and what only the Kubernetes API shows (doctor).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.faults import Fault
    from gpukube.core.values import ClusterFacts, ClusterRef, Observed
    from gpukube.errors import GpukubeError, Severity

Judge: TypeAlias = "Callable[[CloudView, Observed], Fault | None]"


@dataclass(frozen=True, slots=True)
class CloudView:
    """What the cloud reports of one cluster.

    Attributes:
        cluster: Which.
        facts: Of its control plane.
        pools: Live pools, of all owners.
    """

    cluster: ClusterRef
    facts: ClusterFacts
    pools: tuple[Observed, ...]

    def name_of(self, pool: Observed) -> str:
        """Name a pool as messages do: by its name in the spec where it has one of ours, else by the cloud's."""
        return f"pool {self.cluster.key}/{pool.pool or pool.name}"


@dataclass(frozen=True, slots=True)
class CloudCheck:
    """One known problem of a cloud's pools.

    Attributes:
        id, title, consequence, link, severity: As in a check of the doctor.
        find: Pure; yields one finding per pool.
    """

    id: str
    title: str
    consequence: str
    link: str
    find: Callable[[CloudView], Iterator[Fault]]
    severity: Severity = "error"


class CloudChecks(list[CloudCheck]):
    """The checks of one cloud, in the order in which their judgements stand in its module."""

    def each_pool(
        self, check_id: str, *, title: str, consequence: str, link: str, severity: Severity = "error"
    ) -> Callable[[Judge], Judge]:
        """Make the decorated judgment on one pool a check of all; the arguments are those of `CloudCheck`."""

        def added(judge: Judge) -> Judge:
            def find(view: CloudView) -> Iterator[Fault]:
                return (found for pool in view.pools if (found := judge(view, pool)) is not None)

            self.append(
                CloudCheck(id=check_id, title=title, consequence=consequence, link=link, find=find, severity=severity)
            )
            return judge

        return added


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler that does not know what the nodes of an empty pool will advertise.

    Attributes:
        expected: Devices that it expects of a node that does not exist yet; None for pools without GPUs.
        fix_command: The command that makes these devices known to it, or what helps where nothing can.
        accelerator_label: By it the autoscaler knows nodes that will have GPUs, and waits for nvidia.com/gpu.
        judged_by_rules: Whether the provider's rules (Provider.check) report what it expects wrongly.
    """

    expected: Callable[[Observed], Mapping[str, int] | None]
    fix_command: Callable[[CloudView, Observed, Mapping[str, int]], str]
    accelerator_label: str
    judged_by_rules: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a cloud package contributes to the doctor.

    Attributes:
        checks: Faults that only this cloud has.
        problem_of: The error that the cloud itself reports of a pool, as ours; its class separates quota and capacity
            from the rest. None when there is none.
        autoscaler: None where the cloud's knows all devices itself.
        show: The command that shows a pool as the cloud has it.
        remove: The command that deletes a pool.
        upgrade: The command that brings a pool's nodes to the control plane's version.
        node_version: Kubernetes version of a pool's nodes, "1.34.2"; "" when the cloud does not report it.
        brought: What a node has when its pool's driver is the cloud's; roles of gpukube.cluster.state.components.
        toolkit_from: Minor version of Kubernetes from which a container toolkit of an operator must read containerd's
            configuration from its file; None where the images bring the toolkit.
        operator_values: Values that a GPU Operator needs on such nodes, as --set arguments.
    """

    checks: Sequence[CloudCheck]
    problem_of: Callable[[CloudView, Observed], GpukubeError | None]
    autoscaler: Autoscaler | None
    show: Callable[[CloudView, Observed], str]
    remove: Callable[[CloudView, Observed], str]
    upgrade: Callable[[CloudView, Observed], str]
    node_version: Callable[[Observed], str]
    brought: tuple[Literal["driver", "toolkit"], ...]
    toolkit_from: int | None
    operator_values: tuple[str, ...]
