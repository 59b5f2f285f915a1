"""Checks across fields for every cloud.

In scope: checks that need only the spec. Out of scope: what one cloud rejects (the providers' rules.py), checks that
need the GPU catalog (core), types and ranges of single fields (model.py).

Each rule is a function from a pool, its positions and the spec's clusters to diagnostics; POOL_RULES lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.errors import Finding
from gpukube.spec.address import address_of
from gpukube.spec.clusters import CLOUDS
from gpukube.spec.poolnames import alternate_name
from gpukube.spec.reserved import RESERVED_FORMS
from gpukube.spec.rules.families import check_family
from gpukube.spec.rules.labels import check_labels, check_taints
from gpukube.spec.rules.subject import Subject
from gpukube.spec.wording import choices, did_you_mean, nearest, nearest_first, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpukube.errors import Severity
    from gpukube.spec.model import GPUNodePools, Pool, ProviderName, Reserved
    from gpukube.spec.source.positions import Path, Positions


def check_pool(
    pool: Pool,
    at: Positions,
    clusters: Mapping[str, ProviderName | None],
    unknown: frozenset[Path] = frozenset(),
    *,
    own: Positions | None = None,
) -> tuple[Finding, ...]:
    """Check one pool with every rule; rules ignore fields that are `unknown`.

    Args:
        pool: The pool with defaults merged.
        at: Positions of its fields.
        clusters: Key -> provider.
        unknown: Paths of invalid fields.
        own: Positions of the pool's own fields; the same as `at` without defaults.
    """
    subject = Subject(pool, at, clusters, unknown, own or at)
    return tuple(found for rule in POOL_RULES for found in rule(subject))


def _check_clusters(s: Subject) -> Iterator[Finding]:
    if not s.pool.clusters and s.knows("clusters"):
        known = ", ".join(s.clusters) or "KEY"
        yield s.finding("missing-key", "clusters", "is missing: the pool is on no cluster", f"add clusters: [{known}]")
    for index, key in enumerate(s.pool.clusters):
        if key not in s.clusters:
            near = nearest(key, s.clusters)
            known = f"write {choices(nearest_first(key, s.clusters)[:5])}" if s.clusters else "add it under clusters"
            fix = did_you_mean(near) if near else known
            path = ("clusters", index)
            yield s.finding("unknown-cluster", path, f"is {s.seen(path, key)}, which is not under clusters", fix)


def _check_repetitions(s: Subject) -> Iterator[Finding]:
    for name, items in (
        ("clusters", s.pool.clusters),
        ("instanceTypes", s.pool.instance_types),
        ("zones", s.pool.zones),
    ):
        for index, item in enumerate(items):
            if item in items[:index]:
                seen = s.seen((name, index), item)
                yield s.finding("duplicate-item", (name, index), f"repeats {seen}", "keep one of them")


def _check_machine(s: Subject) -> Iterator[Finding]:
    if not s.knows("gpu", "instanceType", "instanceTypes"):
        return
    if s.pool.instance_types and s.pool.instance_type is not None:
        message = "is set together with instanceType"
        yield s.key_finding("instance-types-choice", ("instanceTypes",), message, "keep one of them")
        return
    if s.pool.gpu is not None:
        return
    example = "gpu: {model: A100-40GB, count: 8}"
    if s.pool.instance_types:
        clouds = dict.fromkeys(s.clusters.get(key) for key in s.pool.clusters)
        for cloud in (name for name in clouds if name and not CLOUDS[name].mixes_types):
            message = f"does not apply to {cloud}, whose pools have one type"
            yield s.finding("no-instance-type", "instanceTypes", message, f"add {example}, or remove that cluster")
        return
    if s.pool.instance_type is None:
        yield s.finding("no-instance-type", (), "has neither gpu nor instanceType", f"add {example}, or instanceType")
        return
    for provider in dict.fromkeys(s.clusters.get(key) for key in s.pool.clusters):
        if provider is not None and s.pool.instance_type_on(provider) is None:
            on = ", ".join(key for key in s.pool.clusters if s.clusters.get(key) == provider)
            message = f"has no type for {provider}, but the pool is also on {on}"
            yield s.finding("no-instance-type", "instanceType", message, f"add {provider}: TYPE, or {example}")


def _check_disk(s: Subject) -> Iterator[Finding]:
    disk = s.pool.disk
    if disk and disk.kms_key and disk.encrypted is False and s.knows("disk"):
        fix = "remove it, or write encrypted: true"
        yield s.key_finding("disk-encryption", ("disk", "kmsKey"), "is set, but disk.encrypted is false", fix)


def _check_kubelet(s: Subject) -> Iterator[Finding]:
    settings = s.pool.kubelet
    if settings is None or not s.knows("kubelet"):
        return
    low, high = settings.image_gc_low_threshold_percent, settings.image_gc_high_threshold_percent
    if low is not None and high is not None and low >= high:
        message = f"is {low}, not below imageGCHighThresholdPercent ({high})"
        path = "kubelet.imageGCLowThresholdPercent"
        yield s.finding("kubelet-range", path, message, f"write a number below {high}, or raise the other")


def _check_nodes(s: Subject) -> Iterator[Finding]:
    nodes = s.pool.nodes
    if not s.knows("nodes"):
        return
    if nodes is None or (nodes.count is None and nodes.autoscaling is None):
        fix = "add nodes: {count: 1} or nodes: {autoscaling: {min: 0, max: 5}}"
        yield s.finding("nodes-choice", "nodes", "has neither count nor autoscaling", fix)
        return
    if nodes.count is not None and nodes.autoscaling is not None:
        yield s.key_finding(
            "nodes-choice", ("nodes", "count"), "is set together with nodes.autoscaling", "keep one of them"
        )


def _check_autoscaling(s: Subject) -> Iterator[Finding]:
    bounds = s.pool.nodes.autoscaling if s.pool.nodes else None
    if bounds is None:
        return
    if bounds.min > bounds.max:
        message = f"is {bounds.min}, more than max ({bounds.max})"
        yield s.finding(
            "autoscaling-range", "nodes.autoscaling.min", message, f"write {bounds.max} or less, or raise max"
        )
    elif bounds.initial is not None and not bounds.min <= bounds.initial <= bounds.max:
        message = f"is {bounds.initial}, outside min ({bounds.min}) and max ({bounds.max})"
        fix = f"write a number from {bounds.min} to {bounds.max}, or remove it"
        yield s.finding("autoscaling-range", "nodes.autoscaling.initial", message, fix)


def _check_scope(s: Subject) -> Iterator[Finding]:
    bounds = s.pool.nodes.autoscaling if s.pool.nodes else None
    if bounds is not None and bounds.scope == "zone" and not s.pool.zones and s.knows("zones"):
        fix = "add zones: [ZONE, ...], or write totals and scope: pool"
        why = "without zones the size of the pool is unknown"
        yield s.finding("zone-scope", "nodes.autoscaling.scope", "is zone, but the pool has no zones", fix, why)


def _check_reserved(s: Subject) -> Iterator[Finding]:
    capacity, reserved = s.pool.capacity, s.pool.capacity.reserved
    if not s.knows("capacity.type", "capacity.reserved"):
        return
    if capacity.type != "reserved":
        if reserved is not None:
            message = f"is set, but capacity.type is {capacity.type}"
            fix = "write capacity.type: reserved, or remove it"
            yield s.key_finding("reserved-choice", ("capacity", "reserved"), message, fix)
        return
    for provider in dict.fromkeys(s.clusters.get(key) for key in s.pool.clusters):
        if provider is None:
            continue
        forms = _forms_of(reserved, provider)
        known = choices(RESERVED_FORMS[provider])
        path = f"capacity.reserved.{provider}"
        if not forms:
            message = f"has no source of machines on {provider}"
            yield s.finding("reserved-choice", path, message, f"add one of {known}")
        elif len(forms) > 1 and tuple(forms) != CLOUDS[provider].together:
            yield s.finding("reserved-choice", path, f"has {' and '.join(forms)}", f"keep one of {known}")
    for provider, cloud in CLOUDS.items():
        written = getattr(reserved, provider, None)
        for found in cloud.check_reserved(written) if written else ():
            yield s.finding("reserved-choice", f"capacity.reserved.{provider}.{found.path}", found.message, found.fix)


def _forms_of(reserved: Reserved | None, provider: ProviderName) -> list[str]:
    written = reserved.model_dump(by_alias=True, exclude_none=True).get(provider, {}) if reserved else {}
    return [form for form in RESERVED_FORMS[provider] if form in written]


def _check_mig(s: Subject) -> Iterator[Finding]:
    mig = s.pool.sharing.mig
    if mig is None or not s.knows("sharing.mig"):
        return
    if mig.profile is not None and mig.layout:
        yield s.key_finding(
            "mig-choice", ("sharing", "mig", "layout"), "is set together with profile", "keep one of them"
        )
    elif mig.profile is None and not mig.layout:
        fix = "add profile: 1g.5gb, or layout: [3g.20gb, ...]"
        yield s.finding("mig-choice", "sharing.mig", "has neither profile nor layout", fix)
    elif (
        mig.layout
        and mig.strategy == "single"
        and len(set(mig.layout)) > 1
        and s.pool.device_plugin.owner != "dra"  # pods claim devices by profile
    ):
        # NVIDIA/k8s-device-plugin, "single": all devices of a node must have one profile.
        fix = "write strategy: mixed, or a layout of one profile"
        why = "single advertises all instances as nvidia.com/gpu, so they must have the same profile"
        yield s.finding(
            "mig-choice", "sharing.mig.strategy", "is single, but the layout has several profiles", fix, why
        )


def _check_upgrade(s: Subject) -> Iterator[Finding]:
    upgrade = s.pool.upgrade
    if upgrade and {str(upgrade.max_surge), str(upgrade.max_unavailable)} <= {"0", "0%"}:
        why = "a node is replaced by adding one first (surge) or removing one first (unavailable)"
        fix = "write 1 for one of them; maxUnavailable: 1 needs no spare GPUs"
        yield s.finding(
            "upgrade-range",
            "upgrade",
            "sets both maxSurge and maxUnavailable to 0: no node could be replaced",
            fix,
            why,
        )


def _check_price(s: Subject) -> Iterator[Finding]:
    if s.pool.capacity.max_price is not None and s.pool.capacity.type != "spot" and s.knows("capacity.type"):
        message = f"is set, but capacity.type is {s.pool.capacity.type}"
        fix = "write capacity.type: spot, or remove maxPrice"
        yield s.key_finding(
            "max-price", ("capacity", "maxPrice"), message, fix, why="only spot machines have a maximum price"
        )


_USUAL_MOST: Final = 48
"""Maximum shares of one device on GKE (docs: kubernetes-engine/concepts/timesharing-gpus); NVIDIA documents none."""


def _check_slices(s: Subject) -> Iterator[Finding]:
    slices = s.pool.sharing.time_slicing
    here = {s.clusters.get(key) for key in s.pool.clusters}
    if here and all(provider is not None and CLOUDS[provider].judges_shares for provider in here):
        return  # the cloud's own rules report an error
    if slices is not None and slices.replicas > _USUAL_MOST:
        path = "sharing.timeSlicing.replicas"
        yield Finding(
            "replicas-many",
            s.at.at(path),
            f"{s.at.path(path)} is {slices.replicas}, more containers than one GPU is known to serve",
            fix=f"write {_USUAL_MOST} or less",
            why="memory is not divided, and the kubelet counts every share as a device",
            severity="warning",
        )


_OLDEST: Final = 28
"""Minor version of the oldest possible nodes: the clouds run control planes from 1.31 on (docs:
eks/kubernetes-versions, GKE release notes of the extended channel, November 2026), and nodes may be three minor
versions behind. Old versions do not return, so this number can only become too low."""
_NEWEST: Final = 40
"""Maximum plausible minor version, four (more than a year) after the newest then, 1.36: higher ones are typos."""


def _check_version(s: Subject) -> Iterator[Finding]:
    version = s.pool.kubernetes_version
    if version is None or not s.knows("kubernetesVersion"):
        return
    major, minor = (int(part) for part in version.split(".")[:2])
    if major == 1 and _OLDEST <= minor <= _NEWEST:
        return
    is_old = (major, minor) < (1, _OLDEST)
    yield Finding(
        "version-unlikely",
        s.at.at("kubernetesVersion"),
        f"{s.at.path('kubernetesVersion')} is {s.seen(('kubernetesVersion',), version)}, which "
        + ("no cloud supports any longer" if is_old else "no cloud supports yet"),
        fix="remove it to use the version of the cluster, or write that version",
        why=f"1.{_OLDEST} is the oldest version that nodes of a supported cluster may have" if is_old else "",
        severity="warning",
    )


def _check_other_clouds(s: Subject) -> Iterator[Finding]:
    """Report a pool's own fields for other clouds; the defaults' are for other pools."""
    here = {s.clusters.get(key) for key in s.pool.clusters}
    if None in here or not s.knows("clusters"):
        return
    types = s.pool.instance_type if isinstance(s.pool.instance_type, dict) else {}
    for provider in CLOUDS:
        if provider in here:
            continue
        written: list[Path] = [(provider,)] if s.pool.native_on(provider) else []
        written += [("names", provider)] if provider in s.pool.names else []
        written += [("instanceType", provider)] if provider in types else []
        for path in written:
            if s.own.has(path):
                yield Finding(
                    "other-cloud",
                    s.at.key_at(path),
                    f"{s.at.path(path)} is for {provider}, but the pool is on {' and '.join(sorted(map(str, here)))}",
                    fix=f"remove it, or add a cluster of {provider} to clusters",
                    severity="hint",
                )


def _check_sharing(s: Subject) -> Iterator[Finding]:
    sharing = s.pool.sharing
    if sharing.mps is None:
        return
    if sharing.time_slicing is not None:
        why = "the device plugin would apply mps and ignore timeSlicing"
        message = "is set together with sharing.timeSlicing"
        yield s.key_finding("sharing-choice", ("sharing", "mps"), message, "keep one of them", why)


class _OwnerRow(NamedTuple):
    """Owners that contradict each other, or sharing."""

    driver: str | None
    plugin: str
    with_replicas: bool
    why: str
    fix: str


# Source of the rows: one release per cluster serves driver and plugin; NVIDIA/k8s-device-plugin README (sharing is
# the plugin's configuration); kubernetes-sigs/dra-driver-nvidia-gpu (devices are claimed, not shared by replicas).
_OWNER_ROWS: Final = (
    _OwnerRow(
        "operator", "helm", with_replicas=False,
        why="the GPU Operator has its own device plugin; two on one node conflict",
        fix="write devicePlugin.owner: operator, or driver.owner: auto",
    ),
    _OwnerRow(
        None, "none", with_replicas=True,
        why="replicas are a setting of the device plugin, which gpukube does not manage here",
        fix="write devicePlugin.owner: auto, or remove {sharing}",
    ),
    _OwnerRow(
        None, "dra", with_replicas=True,
        why="the DRA driver advertises no replicas: pods that name one ResourceClaim share its GPU",
        fix="remove {sharing}, and let the pods name one ResourceClaim in resourceClaimName; or write "
        "devicePlugin.owner: auto",
    ),
)  # fmt: skip


def _check_owners(s: Subject) -> Iterator[Finding]:
    sharing = s.pool.sharing
    replicas = "sharing.timeSlicing" if sharing.time_slicing else "sharing.mps" if sharing.mps else ""
    for row in _OWNER_ROWS:
        if s.pool.device_plugin.owner != row.plugin or row.driver not in {None, s.pool.driver.owner}:
            continue
        if row.with_replicas and not replicas:
            continue
        other = replicas if row.with_replicas else f"driver.owner: {row.driver}"
        message = f"is {row.plugin}, which contradicts {other}"
        yield s.finding("owner-conflict", "devicePlugin.owner", message, row.fix.format(sharing=replicas), row.why)


POOL_RULES: Final[tuple[Callable[[Subject], Iterable[Finding]], ...]] = (
    _check_clusters,
    _check_repetitions,
    _check_machine,
    _check_disk,
    _check_kubelet,
    _check_nodes,
    _check_autoscaling,
    _check_scope,
    _check_price,
    _check_reserved,
    _check_upgrade,
    _check_mig,
    _check_slices,
    _check_version,
    _check_other_clouds,
    _check_sharing,
    check_labels,
    check_taints,
    _check_owners,
    check_family,
)


def check_together(
    pools: Iterable[tuple[Pool, Positions, bool]], clusters: Mapping[str, ProviderName | None]
) -> tuple[Finding, ...]:
    """Find pools of one spec with the same name on the same cluster, by `name` or by the name in the cloud.

    Args:
        pools: Pools, each with its positions, and whether it is one of several alternatives.
        clusters: Key -> provider.
    """
    problems: list[Finding] = []
    of_family: set[int] = set()
    by_name: dict[tuple[str, str], Positions] = {}
    by_cloud_name: dict[tuple[str, str], Positions] = {}
    for pool, at, is_alternative in pools:
        if is_alternative:
            of_family.add(id(at))
        for key in dict.fromkeys(pool.clusters):
            provider = clusters.get(key)
            other = by_name.setdefault((key, pool.name), at)
            if other is not at:
                problems.append(_repeated(at, "name", pool.name, key, other))
            elif provider is not None:
                name = pool.name_on(provider)
                path = f"names.{provider}" if provider in pool.names else "name"
                other = by_cloud_name.setdefault((key, name), at)
                problems += [] if other is at else [_repeated(at, path, name, key, other)]
    for (key, name), at in by_cloud_name.items():
        beside = by_cloud_name.get((key, alternate_name(name)))
        if beside:
            severity: Severity = "error" if of_family & {id(at), id(beside)} else "warning"
            problems.append(_alternate(at, name, key, beside, severity))
    return tuple(problems)


def _alternate(at: Positions, name: str, cluster: str, other: Positions, severity: Severity) -> Finding:
    fix = f"give one of them another name, or replace {quoted(name)} only with --replace recreate"
    return Finding(
        "replacement-name",
        other.at("name"),
        f"{other.path('name')} is {quoted(alternate_name(name))} on {cluster}, the name of the replacement of "
        f"{quoted(name)} ({at.at('name')}), so --replace surge cannot replace that pool",
        fix="give one of them another name" if severity == "error" else fix,
        why="an alternative would be taken for the replacement of the other pool" if severity == "error" else "",
        severity=severity,
    )


def _repeated(at: Positions, path: str, name: str, cluster: str, first: Positions) -> Finding:
    message = f"{at.path(path)} is {quoted(name)}, which {first.path()} ({first.at('name')}) also has on {cluster}"
    return Finding("duplicate-pool", at.at(path), message, fix="give one of them another name")


def check_across(specs: Sequence[tuple[GPUNodePools, Sequence[tuple[Pool, Positions]]]]) -> tuple[Finding, ...]:
    """Find pools with the same name on the same cluster, if specs, or keys of one spec, call the cluster differently.

    Args:
        specs: Specs, each with its pools, alternatives included, and their positions.
    """
    problems: list[Finding] = []
    first: dict[tuple[str, str], tuple[int, str, Positions]] = {}
    for number, (spec, pools) in enumerate(specs):
        for pool, at in pools:
            for key in pool.clusters:
                cluster = spec.clusters[key]
                name = pool.name_on(cluster.provider)
                other, called, seen = first.setdefault((address_of(cluster), name), (number, key, at))
                if (other, called) != (number, key):  # otherwise the same pool, or found by check_together
                    also = key if called == key else f"{key} (the same cluster as {called})"
                    problems.append(_repeated(at, "name", name, also, seen))
    return tuple(problems)
