"""A cloud package's checks of its pools, as data for the doctor.

A provider has one `Diagnosis` as its member `diagnosis`: pure, without the SDK. In scope: its shape. Out of scope: any
particular check, and what only the Kubernetes API shows (doctor).
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
        cluster: The cluster.
        facts: Facts about its control plane.
        pools: Live pools of all owners.
    """

    cluster: ClusterRef
    facts: ClusterFacts
    pools: tuple[Observed, ...]

    def name_of(self, pool: Observed) -> str:
        """Return a pool's name for messages: its name in the spec if it has one, else the cloud's name."""
        return f"pool {self.cluster.key}/{pool.pool or pool.name}"


@dataclass(frozen=True, slots=True)
class CloudCheck:
    """A check for one known problem of a cloud's pools.

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
    """The checks of one cloud, in the order of their functions in its module."""

    def each_pool(
        self, check_id: str, *, title: str, consequence: str, link: str, severity: Severity = "error"
    ) -> Callable[[Judge], Judge]:
        """Turn a decorated function that judges one pool into a check of all; arguments are those of `CloudCheck`."""

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
        expected: Returns the devices that it expects of a future node; None for pools without GPUs.
        fix_command: Returns the command that announces these devices to it, or a workaround if there is none.
        accelerator_label: Label by which it recognizes nodes that will have GPUs, and waits for nvidia.com/gpu.
        judged_by_rules: Whether the provider's rules (Provider.check) report mismatches.
    """

    expected: Callable[[Observed], Mapping[str, int] | None]
    fix_command: Callable[[CloudView, Observed, Mapping[str, int]], str]
    accelerator_label: str
    judged_by_rules: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a cloud package contributes to the doctor.

    Attributes:
        checks: Checks for problems that only this cloud has.
        problem_of: Returns the cloud's own error of a pool as a GpukubeError, whose class separates quota and capacity
            from the rest; None if there is none.
        autoscaler: The cloud's autoscaler; None if it knows all devices.
        show: Returns the cloud's command that shows a pool.
        remove: Returns the command that deletes a pool.
        upgrade: Returns the command that upgrades a pool's nodes to the control plane's version.
        node_version: Returns the Kubernetes version of a pool's nodes, "1.34.2"; "" if the cloud does not report it.
        brought: Components that a node includes if the cloud installs its driver; roles of
            gpukube.cluster.state.components.
        toolkit_from: Minor version of Kubernetes from which an operator's container toolkit must read containerd's
            config from its file; None if the images include the toolkit.
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
