"""Decides who owns driver and plugin: facts of a pool -> the matching row, and the resulting node labels.

Pure. Out of scope: the rules (table), reading a cluster (gpukube.cluster).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.owners.labels import (
    ADVERTISER_LABEL,
    CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    OPERANDS_LABEL,
    PRESENT_LABEL,
)
from gpukube.core.owners.table import DRIVER_ROWS, OPERATOR_KUBERNETES, PLUGIN_ROWS, RELEASE_ROWS
from gpukube.core.values import Ownership
from gpukube.errors import Finding, Where
from gpukube.gpu.mig_parted import cut_name
from gpukube.gpu.plugin_config import config_key, plugin_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.core.owners.table import Cut, DriverRow, PluginRow, ReleaseRow
    from gpukube.core.values import ClusterRef, NodeStack, Target
    from gpukube.gpu.sharing import Sharing

OWNER_REFUSED: Final = "owner"
"""Code of the refusals; `explain owner` shows the rows instead."""

_NOT_GPUKUBE = ("none", "cloud")
_DRIVER_VALUES: Final[Mapping[str, object]] = {
    "driver.enabled": True,
    "toolkit.enabled": True,
    "toolkit.env": [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}],
}
"""Values of the operator's chart if it installs driver and toolkit.

By default the toolkit writes a file with which containerd 2 does not start: it reads the merged config, whose version
is newer than that of the file on the host (NVIDIA/aicr#1688; NVIDIA/cloud-native-docs gpu-operator/google-gke).
"""
_USUAL_RUNTIME = "nvidia"
"""Default of the operator's chart (NVIDIA/gpu-operator v26.7.0, values operator.runtimeClass)."""


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """The release of a cluster.

    Attributes:
        release: The chart or the operator.
        row: Name of the row that chose it.
        because: Human-readable reason.
        driver: Who installs the driver on the nodes that the operator serves.
        claimed_by: A pool of the DRA driver that the operator serves, so that the operator's device plugin is off; ""
            if there is none.
    """

    release: Literal["chart", "operator"] = "chart"
    row: str = "chart"
    because: str = RELEASE_ROWS[-1].message
    driver: Literal["cloud", "operator"] = "cloud"
    claimed_by: str = ""

    @property
    def operator(self) -> bool:
        """Whether it is the GPU Operator."""
        return self.release == "operator"


_FOR_OTHERS = ReleaseChoice("operator", "cut-by-operator", "another pool of the cluster needs it")


@dataclass(frozen=True, slots=True)
class Decision:
    """The solver's result with the matching rows.

    Attributes:
        target: The pool.
        stack: What its nodes include.
        choice: The cluster's release.
        driver: Row of the driver.
        plugin: Row of the plugin.
        outcome: The ownership, or the refusal.
    """

    target: Target
    stack: NodeStack
    choice: ReleaseChoice
    driver: DriverRow
    plugin: PluginRow
    outcome: Ownership | Finding

    @property
    def plugin_reason(self) -> str:
        """Message of the plugin's row for this pool."""
        return self.plugin.message.format(**_words(self.target, self.stack, self.choice))

    @property
    def driver_reason(self) -> str:
        """Message of the driver's row for this pool."""
        return self.driver.message.format(**_words(self.target, self.stack, self.choice))


def needs_operator(target: Target, stack: NodeStack) -> bool:
    """Return whether only the MIG manager of gpukube's GPU Operator can create a pool's MIG instances."""
    return cut_of(target, stack) == "operator" and _is_served(target, stack)


def choose_release(pools: Iterable[tuple[Target, NodeStack]], *, operator_live: bool = False) -> ReleaseChoice:
    """Choose the one release of a cluster.

    Args:
        pools: All declared pools of one cluster, with what their nodes include.
        operator_live: Whether a release of gpukube's GPU Operator exists, for any spec.
    """
    requested = list(pools)
    ours = [(target, stack) for target, stack in requested if stack.advertiser == "none"]
    driven = [t.pool for t, stack in ours if _is_served(t, stack) and _driver_row(t, stack).answer == "operator"]
    cut = [t.pool for t, stack in ours if needs_operator(t, stack)]
    claimed = (t.pool for t, _ in ours if t.plugin_owner == "dra" and t.pool in (*driven, *cut))
    deciding = {
        "driver-by-operator": next(iter(driven), None),
        "cut-by-operator": next(iter(cut), None),
        "operator-asked": next((t.pool for t, _ in ours if t.plugin_owner == "operator"), None),
        "helm-asked": next((t.pool for t, _ in ours if t.plugin_owner == "helm"), None),
    }
    chosen = next((row for row in RELEASE_ROWS if deciding.get(row.name)), RELEASE_ROWS[-1])
    choice = replace(
        _choice(chosen, deciding.get(chosen.name) or "", driver="operator" if driven else "cloud"),
        claimed_by=next(claimed, ""),
    )
    return with_live(choice, operator_live=operator_live)


def with_live(choice: ReleaseChoice, *, operator_live: bool) -> ReleaseChoice:
    """Adjust the choice to the cluster: an installed operator stays, unless pools require otherwise."""
    if not operator_live or choice.row != RELEASE_ROWS[-1].name:
        return choice
    return _choice(next(row for row in RELEASE_ROWS if row.name == "operator-live"))


def solve_ownership(target: Target, stack: NodeStack, *, operator: bool = False) -> Ownership | Finding:
    """Decide who owns driver and plugin for one pool, as `decide_owner` does.

    Args:
        target: The pool; its driver, devicePlugin and sharing are read.
        stack: What its nodes include, from the provider.
        operator: Whether other pools require the GPU Operator as the cluster's one release.

    Returns:
        The ownership with the node labels to set at creation, or the refusal with two ways to resolve it.
    """
    own = choose_release([(target, stack)])
    return decide_owner(target, stack, _FOR_OTHERS if operator and not own.operator else own).outcome


def decide_owner(target: Target, stack: NodeStack, choice: ReleaseChoice) -> Decision:
    """Decide who owns driver and plugin for one pool.

    Args:
        target: The pool; its driver, devicePlugin and sharing are read.
        stack: What its nodes include, from the provider.
        choice: The release of its cluster.
    """
    driver = _driver_row(target, stack)
    plugin = next(row for row in PLUGIN_ROWS if _matches(row, driver, target, stack, choice))
    outcome: Ownership | Finding
    if driver.answer is None:
        outcome = _refusal("driver.owner", driver, target, stack, choice)
    elif plugin.answer is None:
        outcome = _refusal("devicePlugin.owner", plugin, target, stack, choice)
    else:
        outcome = _ownership(driver.answer, plugin, target, stack, choice)
    return Decision(target=target, stack=stack, choice=choice, driver=driver, plugin=plugin, outcome=outcome)


def check_kubernetes(cluster: ClusterRef, version: str) -> list[Finding]:
    """Warn if the GPU Operator does not support the Kubernetes version of a cluster that needs it.

    Args:
        cluster: The cluster.
        version: Version of its control plane, "1.34.2" or "1.34"; an unparsable one is ignored.
    """
    oldest, newest = OPERATOR_KUBERNETES
    words = version.removeprefix("v").split(".")[:2]
    found = tuple(int(word) for word in words if word.isdigit())
    if len(found) < len(oldest) or oldest <= found <= newest:
        return []
    between = f"{'.'.join(map(str, oldest))} to {'.'.join(map(str, newest))}"
    return [
        Finding(
            "owner",
            Where(cluster.key),
            f"the GPU Operator is needed on this cluster, but does not support its Kubernetes {version}",
            fix=f"upgrade the cluster to Kubernetes {between}; or write devicePlugin.owner: helm for all its pools",
            why="NVIDIA/cloud-native-docs gpu-operator/platform-support, of v26.7",
            severity="warning",
        )
    ]


def cut_of(target: Target, stack: NodeStack) -> Cut:
    """Return who creates the MIG instances of a pool."""
    if target.sharing.mig is None:
        return "none"
    return "nobody" if stack.cut_by == "none" else stack.cut_by


def _is_served(target: Target, stack: NodeStack) -> bool:
    """Return whether gpukube's releases may serve the nodes."""
    return target.plugin_owner not in _NOT_GPUKUBE and not (target.plugin_owner == "dra" and stack.no_dra)


def _choice(row: ReleaseRow, pool: str = "", *, driver: Literal["cloud", "operator"] = "cloud") -> ReleaseChoice:
    return ReleaseChoice(row.release, row.name, row.message.format(pool=pool), driver)


def _driver_row(target: Target, stack: NodeStack) -> DriverRow:
    operable = "no" if stack.no_driver else "yes"
    return next(
        row
        for row in DRIVER_ROWS
        if target.driver_owner in row.requested
        and row.brings in ("any", stack.driver)
        and row.operable in ("any", operable)
    )


def _matches(row: PluginRow, driver: DriverRow, target: Target, stack: NodeStack, choice: ReleaseChoice) -> bool:
    brought_by = driver.answer or stack.driver
    return (
        target.plugin_owner in row.requested
        and row.brings in ("any", stack.advertiser)
        and row.driver in ("any", brought_by)
        and row.release in ("any", choice.release)
        and row.mixed in ("any", "no" if brought_by == choice.driver else "yes")
        and (not row.cut or cut_of(target, stack) in row.cut)
        and row.operable in ("any", "no" if stack.no_operator else "yes")
        and row.claimable in ("any", "no" if stack.no_dra else "yes")
        and row.plugin in ("any", "off" if choice.claimed_by else "on")
    )


def _refusal(
    field: str, row: DriverRow | PluginRow, target: Target, stack: NodeStack, choice: ReleaseChoice
) -> Finding:
    words = _words(target, stack, choice)
    fixes = [fix.format(**words) for fix in row.fixes or ()]
    return Finding(
        OWNER_REFUSED,
        target.locator.at(field),
        f"{target.where}: {row.message.format(**words)}",
        fix="; or ".join(fixes),
        why=row.source,
    )


def _ownership(
    driver: Literal["cloud", "operator", "none"],
    row: PluginRow,
    target: Target,
    stack: NodeStack,
    choice: ReleaseChoice,
) -> Ownership:
    advertiser = row.answer or "none"
    made = Ownership(
        driver=driver,
        advertiser=advertiser,
        config_key="",
        labels={OPERANDS_LABEL: "false"} if row.kept_off else {},
        reason=row.message.format(**_words(target, stack, choice)),
        row=row.name,
    )
    if advertiser not in ("chart", "operator", "dra"):
        return made
    # Where its operands are off, the operator writes "false" into PRESENT_LABEL: NFD does not see those nodes.
    present = {} if row.kept_off else {PRESENT_LABEL: "true"}
    labels = {**made.labels, ADVERTISER_LABEL: advertiser, **present}
    operated = advertiser == "operator" or row.operated
    if operated and target.sharing.mig:
        labels[MIG_CONFIG_LABEL] = cut_name(target.sharing.mig)
    values = _operator_values(driver, target, stack) if operated else {}
    if advertiser == "dra":
        labels |= stack.dra_labels
        return replace(made, labels=labels, values=stack.dra_values, operator_values=values if operated else None)
    key = _config_key(target.sharing)
    return replace(made, labels={**labels, CONFIG_LABEL: key}, config_key=key, values=values)


def _operator_values(driver: str, target: Target, stack: NodeStack) -> dict[str, object]:
    """Return the values of the operator's chart that a pool needs."""
    values: dict[str, object] = {}
    if stack.runtime != _USUAL_RUNTIME:
        values["operator.runtimeClass"] = stack.runtime
    values |= stack.operator_values
    if driver == "operator":
        values |= _DRIVER_VALUES
        values |= {"driver.version": target.driver_version} if target.driver_version else {}
    return values


@lru_cache(maxsize=256)  # a JSON hash per pool, and pools share GPUs in few ways
def _config_key(sharing: Sharing) -> str:
    return config_key(plugin_config(sharing))


def _words(target: Target, stack: NodeStack, choice: ReleaseChoice) -> dict[str, str]:
    return {
        "asked": target.plugin_owner,
        "driver": target.driver_owner,
        "image": stack.image,
        "because": choice.because,
        "no_operator": stack.no_operator,
        "no_driver": stack.no_driver,
        "no_dra": stack.no_dra,
        "with_dra": stack.with_dra or "choose an image that it can serve",
        "claimed_by": choice.claimed_by,
        "without_plugin": stack.without_plugin or "use another image, without one",
    }
