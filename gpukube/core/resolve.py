"""Resolves a loaded spec to targets: each pool on each of its clusters, with instance type, nodes, sharing, and taints.

Pure. Rejections by one cloud are in its provider (`Provider.check`); rejections by the GPU catalog become diagnostics
here, because the position in the user's file is known here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from gpukube.core.unknown import example_machines, vary
from gpukube.core.values import Capacity, ClusterRef, Disk, Nodes, Promise, Reservation, Taint, Target, Upgrade
from gpukube.errors import Finding
from gpukube.gpu.capacity import claimable_devices, node_capacity
from gpukube.gpu.catalog import (
    CatalogError,
    find_machine,
    machines,
    parse_model,
    require_machine,
    resolve_machine,
    warn_reason,
)
from gpukube.gpu.mig import known_to_none
from gpukube.gpu.sharing import MigCut, Sharing, Slicing, check_sharing
from gpukube.spec.source.positions import is_unknown
from gpukube.visible import spell_out_lookalikes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Locator
    from gpukube.errors import Where
    from gpukube.gpu.catalog import GpuModel, Machine
    from gpukube.spec.loading.load import LoadedSpec
    from gpukube.spec.model import Cluster, Gpu, Hugepages, Kubelet, Pool, ProviderName, Reserved
    from gpukube.spec.source.positions import Path

GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
"""Default taint. The chart's NFD worker tolerates the value "present" by default
(NVIDIA/k8s-device-plugin v0.20.0, values nfd.worker.tolerations)."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NOT_IDENTITY = ("provider", "name", "kubeconfig", "context")


def cluster_refs(loaded: LoadedSpec) -> dict[str, ClusterRef]:
    """Return the clusters of a spec by key."""
    found = {}
    for key, cluster in loaded.spec.clusters.items():
        at = loaded.positions.within(("clusters", key))
        ref = cluster_ref(key, cluster, at.at())
        found[key] = replace(ref, places={name: at.at((name,)) for name in ("name", *ref.identity)})
    return found


def cluster_ref(key: str, cluster: Cluster, where: Where) -> ClusterRef:
    """Convert the model of a cluster, from a spec or from an address."""
    written = cluster.model_dump(by_alias=True, exclude_none=True)
    identity = {name: str(value) for name, value in written.items() if name not in NOT_IDENTITY}
    return ClusterRef(
        key=key,
        provider=cluster.provider,
        name=cluster.name,
        identity=identity,
        kubeconfig=cluster.kubeconfig or "",
        context=cluster.context or "",
        where=where,
    )


@dataclass(frozen=True, slots=True)
class Guess:
    """Examples of a pool on a cluster whose mistakes leave fields unknown.

    A result that is the same for all examples does not depend on the unknown fields.
    """

    targets: tuple[Target, ...]


def resolve_targets(loaded: LoadedSpec) -> tuple[tuple[Target, ...], tuple[Finding, ...]]:
    """Resolve every pool on every cluster it names.

    Returns:
        The targets that could be resolved, in the order of the spec, and the diagnostics (errors and warnings)
        of all pools.
    """
    clusters = cluster_refs(loaded)
    targets: list[Target] = []
    found: list[Finding] = []
    for index in range(len(loaded.pools)):
        resolved, problems = resolve_pool(loaded, index, clusters)
        targets += (target for target in resolved if isinstance(target, Target))
        found += problems
    return tuple(targets), tuple(dict.fromkeys(found))


def resolve_pool(
    loaded: LoadedSpec, index: int, clusters: Mapping[str, ClusterRef]
) -> tuple[list[Target | Guess], list[Finding]]:
    """Resolve one pool on every cluster it names.

    Args:
        loaded: The spec.
        index: Index of the pool in `loaded.pools`.
        clusters: Clusters of the spec, from `cluster_refs`.
    """
    pool, locator = loaded.pools[index], loaded.places[index]
    unknown = loaded.unknown.get(index, frozenset())
    if index in loaded.unknown and (pool.nodes is None or not (pool.nodes.autoscaling or pool.nodes.count is not None)):
        unknown |= {("nodes",)}
    resolved: list[Target | Guess] = []
    found: list[Finding] = []
    sharing = _sharing(pool)
    for key in pool.clusters:
        cluster = clusters[key]
        machines, problems = _machines(loaded, pool, cluster, locator, unknown)
        found += problems
        judged = [_check_sharing(machine, sharing, pool, cluster, locator) for machine in machines]
        problems = [problem for problem in judged[0] if all(problem in others for others in judged)]
        found += problems
        if sharing.mig and len(machines) > 1 and not problems:
            errors = filter(None, map(known_to_none, sharing.mig.profiles))
            found += [_diagnostic(error, _sharing_path(pool, error.code), cluster, locator) for error in errors]
        targets = [_target(loaded, index, cluster, machine) for machine in machines]
        wrong = [any(problem.severity == "error" for problem in found_there) for found_there in judged]
        if len(machines) > 1 or any(wrong) or unknown or key in loaded.guessed:
            targets = vary(targets, unknown, loaded.guessed.get(key, frozenset()), sharing_is_wrong=wrong)
        resolved.append(targets[0] if len(targets) == 1 else Guess(tuple(targets)))
    return resolved, found


def _machines(
    loaded: LoadedSpec, pool: Pool, cluster: ClusterRef, locator: Locator, unknown: frozenset[Path]
) -> tuple[list[Machine], list[Finding]]:
    """Return the machine of a pool; if a mistake leaves it unknown, several candidates and the diagnostics."""
    found: list[Finding] = []
    wrong = any(is_unknown((field,), unknown) for field in ("instanceType", "instanceTypes", "gpu"))
    named = pool.instance_type_on(cluster.provider) is not None or _mixed_types(pool, cluster)
    if not wrong and (pool.gpu is not None or named):
        try:
            return [_machine(loaded, pool, cluster, locator, found)], found
        except _Refused as refused:
            found.append(refused.diagnostic)
    elif pool.gpu and ("gpu", "model") not in unknown:
        try:
            _model(pool.gpu, locator, _sold(loaded, pool))
        except _Refused as refused:
            found.append(refused.diagnostic)
    return example_machines(cluster.provider, pool.gpu.model if pool.gpu else ""), found


def _check_sharing(
    machine: Machine, sharing: Sharing, pool: Pool, cluster: ClusterRef, locator: Locator
) -> list[Finding]:
    if sharing.mig and len(set(sharing.mig.layout)) > 1:  # with strategy single: rejected by spec.rules, mig-choice
        sharing = replace(sharing, mig=replace(sharing.mig, strategy="mixed"))
    return [_diagnostic(e, _sharing_path(pool, e.code), cluster, locator) for e in check_sharing(machine, sharing)]


def promise_of(target: Target) -> Promise:
    """Predict what the nodes of a target will advertise: extended resources, or the devices of the DRA driver."""
    count = claimable_devices if target.plugin_owner == "dra" else node_capacity
    return Promise(count(target.machine, target.sharing), target.nodes)


class _Refused(Exception):
    def __init__(self, diagnostic: Finding) -> None:
        super().__init__(diagnostic.seen)
        self.diagnostic = diagnostic


def _provider(loaded: LoadedSpec, cluster: ClusterRef) -> ProviderName:
    return loaded.spec.clusters[cluster.key].provider


def _mixed_types(pool: Pool, cluster: ClusterRef) -> tuple[str, ...]:
    """Return the several types of a pool, on a cloud whose pools may have them; other clouds report them."""
    if not pool.instance_types:
        return ()
    from gpukube.spec.clusters import CLOUDS  # noqa: PLC0415 - only with a spec; the catalog needs no pydantic

    return pool.instance_types if CLOUDS[cluster.provider].mixes_types else ()


def _machine(loaded: LoadedSpec, pool: Pool, cluster: ClusterRef, locator: Locator, found: list[Finding]) -> Machine:
    if types := _mixed_types(pool, cluster):
        return _first_machine(types, pool, cluster, locator, found)
    written = pool.instance_type_on(_provider(loaded, cluster))
    model = _model(pool.gpu, locator, _sold(loaded, pool)) if pool.gpu else None
    try:
        if written is None and pool.gpu and model:
            machine = resolve_machine(cluster.provider, model, pool.gpu.count).machine
        else:
            requested = (model, pool.gpu.count) if pool.gpu and model else None
            # spec.rules ensures one of the two: no-instance-type.
            machine = require_machine(cluster.provider, written or "", requested)
    except CatalogError as error:
        path = "gpu" if written is None else "instanceType"
        raise _Refused(_diagnostic(error, path, cluster, locator)) from error
    if pool.gpu and model:
        _check_gpu_agrees(pool.gpu, model, machine, locator)
    if reason := warn_reason(machine):
        found.append(_status_warning(reason, "gpu" if written is None else "instanceType", locator))
    return machine


def _first_machine(
    types: tuple[str, ...], pool: Pool, cluster: ClusterRef, locator: Locator, found: list[Finding]
) -> Machine:
    """Return the first of several types, from which the autoscaler takes a node's resources; all have the same GPUs."""
    machines: list[Machine] = []
    for index, name in enumerate(types):
        path = f"instanceTypes[{index}]"
        try:
            machine = require_machine(cluster.provider, name)
        except CatalogError as error:
            raise _Refused(_diagnostic(error, path, cluster, locator)) from error
        if machines and (other := _difference(machines[0], machine)):
            raise _Refused(
                Finding(
                    "instance-types-differ",
                    locator.at(path),
                    f"{machine.name} has {other[1]}, but {machines[0].name} has {other[0]}",
                    fix="keep types with the same GPUs and CPU architecture, or write another pool",
                    why="one pool promises the same devices on every node",
                )
            )
        if reason := warn_reason(machine):
            found.append(_status_warning(reason, path, locator))
        machines.append(machine)
    if pool.gpu:
        _check_gpu_agrees(pool.gpu, parse_model(pool.gpu.model, frozenset([machines[0].model])), machines[0], locator)
    return machines[0]


def _difference(one: Machine, other: Machine) -> tuple[str, str] | None:
    """Return how two machines differ in what pods see of their GPUs; None if they do not."""
    gpus = [f"{machine.gpus:g} x {machine.model}" for machine in (one, other)]
    arches = [f"an {machine.arch} CPU" for machine in (one, other)]
    return next(((first, second) for first, second in (gpus, arches) if first != second), None)


def _sold(loaded: LoadedSpec, pool: Pool) -> frozenset[GpuModel]:
    """Return the models that all clouds of the pool sell."""
    clouds = {loaded.spec.clusters[key].provider for key in pool.clusters}
    return frozenset.intersection(*(_models_of(cloud) for cloud in clouds))


@cache
def _models_of(provider: str) -> frozenset[GpuModel]:
    return frozenset(m.model for m in machines(provider) if m.status != "retired")


def _model(gpu: Gpu, locator: Locator, sold: frozenset[GpuModel]) -> GpuModel:
    try:
        return parse_model(gpu.model, sold)
    except CatalogError as error:
        where = locator.at("gpu.model")
        raise _Refused(
            Finding(error.code, where, spell_out_lookalikes(error.message), fix=error.fix, why=error.why)
        ) from error


def _check_gpu_agrees(gpu: Gpu, model: GpuModel, machine: Machine, locator: Locator) -> None:
    if model != machine.model or not machine.has_gpus(gpu.count):
        raise _Refused(
            Finding(
                "gpu-and-type",
                locator.at("instanceType"),
                f"{machine.name} has {machine.gpus:g} x {machine.model}, but gpu asks for {gpu.count} x {model}",
                fix="remove gpu or instanceType, or make them agree",
            )
        )


def _status_warning(reason: str, path: str, locator: Locator) -> Finding:
    return Finding(
        "instance-status",
        locator.at(path),
        reason,
        fix="check that your account can use it in this region",
        severity="warning",
    )


def _diagnostic(error: CatalogError, path: str, cluster: ClusterRef, locator: Locator) -> Finding:
    return Finding(
        error.code,
        locator.at(path),
        f"{spell_out_lookalikes(error.message)} (on {cluster.key})",
        fix=error.fix,
        why=error.why,
    )


def _sharing_path(pool: Pool, code: str) -> str:
    """Return the field that a finding of gpukube.gpu is about."""
    shares = "sharing.mps" if pool.sharing.mps else "sharing.timeSlicing"
    if code == "sharing-replicas":
        return f"{shares}.replicas"
    if code == "mps-with-mig" or pool.sharing.mig is None:
        return shares
    return "sharing.mig.layout" if pool.sharing.mig.layout else "sharing.mig.profile"


def _sharing(pool: Pool) -> Sharing:
    mig, slices, mps = pool.sharing.mig, pool.sharing.time_slicing, pool.sharing.mps
    slicing = None
    if slices is not None:
        fail = slices.fail_requests_greater_than_one
        slicing = Slicing("time-slicing", slices.replicas, fail, slices.rename_by_default)
    elif mps is not None:
        slicing = Slicing("mps", mps.replicas, None, mps.rename_by_default)
    if mig is None:
        return Sharing(None, slicing)
    # A strategy is how a plugin names the devices of profiles; the DRA driver publishes profiles.
    mixes = pool.device_plugin.owner == "dra" and len(set(mig.layout)) > 1
    return Sharing(MigCut(mig.profile or "", "mixed" if mixes else mig.strategy, mig.layout), slicing)


def _nodes(pool: Pool) -> Nodes:
    nodes = pool.nodes
    if nodes is None or nodes.autoscaling is None:
        count = 1 if nodes is None or nodes.count is None else nodes.count
        return Nodes(count, count, count, autoscaled=False)
    bounds = nodes.autoscaling
    initial = bounds.min if bounds.initial is None else bounds.initial
    factor = max(1, len(pool.zones)) if bounds.scope == "zone" else 1
    return Nodes(initial * factor, bounds.min * factor, bounds.max * factor, autoscaled=True, scope=bounds.scope)


def _target(loaded: LoadedSpec, index: int, cluster: ClusterRef, machine: Machine) -> Target:
    pool, locator, rank = loaded.pools[index], loaded.places[index], loaded.ranks[index]
    own = (Taint(t.key, t.value, t.effect) for t in pool.taints)
    written = pool.capacity
    return Target(
        owner=loaded.spec.metadata.name,
        pool=pool.name,
        cluster=cluster,
        name=pool.name_on(_provider(loaded, cluster)),
        machine=machine,
        nodes=_nodes(pool),
        capacity=Capacity(written.type, written.max_price, _reservation(written.reserved, _provider(loaded, cluster))),
        zones=pool.zones,
        disk=_disk(pool),
        image=pool.image or "",
        sharing=_sharing(pool),
        taints=tuple(dict.fromkeys([GPU_TAINT, *own] if pool.gpu_taint else own)),
        gpu_taint=pool.gpu_taint,
        labels=dict(pool.labels),
        tags=dict(pool.tags),
        protect=pool.deletion_protection,
        driver_owner=pool.driver.owner,
        plugin_owner=pool.device_plugin.owner,
        native=pool.native_on(_provider(loaded, cluster)),
        locator=locator,
        upgrade=_upgrade(pool),
        kubernetes_version=pool.kubernetes_version or "",
        max_pods=pool.max_pods_per_node,
        driver_version=pool.driver.version or "",
        chart_version=pool.device_plugin.version or "",
        chart_values=pool.device_plugin.values,
        machines=tuple(filter(None, (find_machine(cluster.provider, name) for name in _mixed_types(pool, cluster)))),
        high_speed=pool.network.high_speed,
        placement=pool.placement or "",
        local_storage=pool.local_storage or "",
        kubelet=_written(pool.kubelet),
        sysctls=dict(pool.sysctls),
        hugepages={size: int(str(pages)) for size, pages in _written(pool.hugepages).items()},
        confidential=pool.confidential,
        family=rank.family,
        rank=rank.number,
        place=pool.place,
        turn=pool.clusters.index(cluster.key),
        max_hourly_price=pool.max_hourly_price,
    )


def _disk(pool: Pool) -> Disk:
    disk = pool.disk
    if disk is None:
        return Disk(None, None)
    return Disk(disk.size_gib, disk.type, disk.iops, disk.throughput, disk.encrypted, disk.kms_key or "")


def _written(settings: Kubelet | Hugepages | None) -> dict[str, object]:
    """Return the settings that the spec has, by their names in it."""
    written = settings.model_dump(by_alias=True, exclude_none=True) if settings else {}
    return {name: value for name, value in written.items() if value != ()}


def _reservation(reserved: Reserved | None, provider: ProviderName) -> Reservation | None:
    """Return the reservation form for a provider: one, or two that combine (spec.rules, reserved-choice)."""
    form = getattr(reserved, provider, None)
    if form is None:
        return None
    from gpukube.spec.clusters import CLOUDS  # noqa: PLC0415 - only with a spec; the catalog needs no pydantic

    written, together = form.model_dump(by_alias=True, exclude_none=True), CLOUDS[provider].together
    if together and written.keys() >= {*together}:
        first, *others = together
        runs = (value.get("maxRunDuration") for value in written.values())
        name = first + "".join(other[0].upper() + other[1:] for other in others)
        return Reservation(name, max_run_s=_seconds(next(filter(None, runs), None)))
    for key, value in written.items():
        if isinstance(value, str):
            return Reservation(key, value)
        return Reservation(key, max_run_s=_seconds(value.get("maxRunDuration")))
    return None


def _seconds(duration: str | None) -> int | None:
    return int(duration[:-1]) * _UNITS[duration[-1]] if duration else None


def _upgrade(pool: Pool) -> Upgrade:
    written = pool.upgrade
    if written is None:
        return Upgrade()
    surge, unavailable = written.max_surge, written.max_unavailable
    return Upgrade(None if surge is None else str(surge), None if unavailable is None else str(unavailable))
