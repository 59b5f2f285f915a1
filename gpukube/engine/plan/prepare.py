"""Converts specs to desired pools per cluster, with every check that needs no call. Makes no calls.

`examine` returns all findings on specs, valid or not; `prepare` returns the desired pools of valid ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from gpukube.cluster.release.offline_checks import check_settings
from gpukube.core.claims import quote_maturity
from gpukube.core.families import check_families
from gpukube.core.owners import ReleaseChoice
from gpukube.core.resolve import Guess, cluster_ref, cluster_refs, resolve_pool
from gpukube.engine.plan.ownership import choose_releases, desire_pool, judge_guess, settle_owners, sketch_pool
from gpukube.engine.plan.silencing import OfPool, judge
from gpukube.errors import Finding, SpecError, Where, in_order
from gpukube.provider import load_provider
from gpukube.spec.address import address_with, parse_addresses
from gpukube.spec.source.positions import is_unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpukube.core.shards import Shard
    from gpukube.core.values import ClusterRef, Desired, Target
    from gpukube.engine.plan.ownership import Settled
    from gpukube.engine.plan.silencing import PoolKey, Silenced
    from gpukube.provider import Provider
    from gpukube.spec.loading.load import LoadedSpec, Reading
    from gpukube.spec.source.positions import Path


@dataclass(frozen=True, slots=True)
class Filters:
    """Selected part of the specs; globs, empty means all.

    Attributes:
        shard: Part of the clusters that the globs select; None for all.
    """

    clusters: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    shard: Shard | None = None

    @property
    def active(self) -> bool:
        """Whether some pools of a cluster may be left out; a shard leaves out whole clusters."""
        return bool(self.clusters or self.pools)

    def takes_cluster(self, key: str) -> bool:
        """Return whether a cluster is selected."""
        return not self.clusters or any(fnmatchcase(key, glob) for glob in self.clusters)

    def takes_pool(self, name: str) -> bool:
        """Return whether a pool is selected."""
        return not self.pools or any(fnmatchcase(name, glob) for glob in self.pools)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Desired state from the specs, ready to be compared with live state.

    Attributes:
        owners: metadata.name of every spec.
        clusters: Selected clusters by key.
        desired: Desired pools by cluster key; an empty tuple for a cluster without pools.
        warnings: Findings that do not stop the run: warnings and hints.
        filters: The filters that were applied.
        choices: By cluster key, the release that its pools need, including pools that the filters leave out, as far as
            the specs determine it. Clusters whose pools need none in particular are missing.
        silenced: Findings that the specs accept.
        addressed: Whether the clusters were given by address, so that nothing can be declared on them.
        places: By key, the position of each cluster among those of all shards, from 1; empty without a shard.
        of: Number of clusters of all shards.
        names: By key, the cloud names of all declared pools, including those that the filters leave out.
    """

    owners: tuple[str, ...]
    clusters: Mapping[str, ClusterRef]
    desired: Mapping[str, tuple[Desired, ...]]
    warnings: tuple[Finding, ...]
    filters: Filters
    choices: Mapping[str, ReleaseChoice] = field(default_factory=dict)
    silenced: tuple[Silenced, ...] = ()
    addressed: bool = False
    places: Mapping[str, int] = field(default_factory=dict)
    of: int = 0
    names: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def unused(self) -> tuple[str, ...]:
        """Clusters of the spec without a pool of this run: only commands on live pools read them."""
        return () if self.addressed else tuple(key for key in self.clusters if not self.desired[key])

    def narrowed(self) -> Prepared:
        """Return a copy without the unused clusters, so that nothing calls them."""
        unused = self.unused
        return replace(self, clusters={key: item for key, item in self.clusters.items() if key not in unused})

    def settle(self, key: str, provider: Provider, *, operator_live: bool) -> Settled:
        """Return the pools of one cluster, given its live state; see `settle_owners`."""
        requested = self.choices.get(key, ReleaseChoice())
        return settle_owners(self.desired[key], requested, provider, operator_live=operator_live)


class _Pool(NamedTuple):
    """A pool on one cluster.

    Attributes:
        key: Identifies the pool in the specs.
        target: Its declaration for that cluster.
        unknown: Paths of fields that its mistakes leave unknown; None if there are no mistakes.
    """

    key: PoolKey
    target: Target
    unknown: frozenset[Path] | None

    @property
    def has_known_name(self) -> bool:
        """Whether its cloud name is not affected by a mistake."""
        return not any(is_unknown((name,), self.unknown or ()) for name in ("name", "names", "clusters"))


@dataclass(frozen=True, slots=True)
class _Resolved:
    """Result of resolving specs, whatever is wrong with them."""

    clusters: dict[str, ClusterRef]
    targets: list[Target]
    desired: dict[str, list[Desired]]
    choices: Mapping[str, ReleaseChoice]
    findings: list[OfPool]


@dataclass(frozen=True, slots=True)
class Validation:
    """All findings on specs that need no call.

    Attributes:
        clusters: Number of clusters.
        pools: Number of valid pools, counted once per cluster.
        findings: Errors, warnings, and hints, in display order.
        silenced: Findings that the specs accept.
        fields: By place of a finding, the path of the field at that place.
        files: Files that contain documents, as the user named them.
    """

    clusters: int
    pools: int
    findings: tuple[Finding, ...]
    silenced: tuple[Silenced, ...]
    fields: Mapping[Where, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether there are no errors."""
        return all(found.severity != "error" for found in self.findings)


def examine(reading: Reading, *, strict: bool = False) -> Validation:
    """Return all findings on specs, and those that the specs accept.

    Args:
        reading: Result of reading their files; valid parts of invalid ones are examined too.
        strict: Treat warnings as errors.
    """
    expected = _resolve_specs(reading.specs, {one.where for one in reading.problems if one.severity == "error"})
    broken = any(
        one.severity == "error" for one in (*reading.problems, *(found.finding for found in expected.findings))
    )
    unused = () if broken else _unused(expected)
    judged = judge([*expected.findings, *unused], reading.specs)
    found = dict.fromkeys((*reading.problems, *judged.reported))
    return Validation(
        clusters=len(expected.clusters),
        pools=sum(len(pools) for pools in expected.desired.values()),
        findings=tuple(in_order(_strictly(one) if strict else one for one in found)),
        silenced=judged.silenced,
        fields=reading.fields_at(one.where for one in (*found, *(silenced.finding for silenced in judged.silenced))),
        files=tuple(dict.fromkeys(document.at().source for document in reading.documents)),
    )


def _unused(expected: _Resolved) -> Iterable[OfPool]:
    """Find clusters without a pool; skip specs with errors, whose pools may be incomplete."""
    for key, cluster in expected.clusters.items():
        if not expected.desired[key]:
            fix = "add it to the clusters of a pool, or remove it"
            message = f'no pool is on cluster "{key}"'
            yield OfPool(None, Finding("cluster-unused", cluster.where, message, fix=fix, severity="hint"))


def prepare(specs: Sequence[LoadedSpec], filters: Filters = Filters(), *, strict: bool = False) -> Prepared:
    """Resolve, check, and translate all pools of all specs.

    Args:
        specs: The loaded specs.
        filters: Which part of the specs the result contains.
        strict: Treat warnings as errors.

    Raises:
        SpecError: All errors of all pools, whatever the filters: a spec is valid or invalid as a whole. Also if a
            filter matches nothing.
    """
    expected = _resolve_specs(specs)
    judged = judge(expected.findings, specs)
    found = [_strictly(one) for one in judged.reported] if strict else list(judged.reported)
    if any(d.severity == "error" for d in found):
        raise SpecError.of(found)
    clusters, desired = expected.clusters, expected.desired
    chosen = {key: _selected(pools, filters) for key, pools in desired.items() if filters.takes_cluster(key)}
    _require_matches(filters, clusters, chosen, {target.pool for target in expected.targets})
    chosen, divided = _without_divided(chosen, desired)
    places, of = {}, len(chosen)
    if filters.shard:
        together = _together(clusters, desired)
        places = {key: place for place, key in enumerate(chosen, 1) if filters.shard.takes(together[key])}
        chosen = {key: chosen[key] for key in places}
    return Prepared(
        owners=tuple(dict.fromkeys(spec.spec.metadata.name for spec in specs)),
        clusters={key: clusters[key] for key in chosen},
        desired=chosen,
        warnings=(*found, *divided),
        filters=filters,
        choices={key: choice for key, choice in expected.choices.items() if key in chosen},
        silenced=judged.silenced,
        places=places,
        of=of,
        names={key: frozenset(pool.target.name for pool in pools) for key, pools in desired.items()},
    )


def _selected(pools: Sequence[Desired], filters: Filters) -> tuple[Desired, ...]:
    """Return the pools that the filters select; a family is selected as a whole, by the name of any of its pools."""
    chosen = {(one.target.owner, one.target.family or one.target.pool) for one in pools
              if filters.takes_pool(one.target.pool)}  # fmt: skip
    return tuple(one for one in pools if (one.target.owner, one.target.family or one.target.pool) in chosen)


def _any_places(desired: Mapping[str, Sequence[Desired]]) -> dict[tuple[str, str], dict[str, Desired]]:
    """Return the clusters of each family that is on any one of them: (owner, family) -> cluster -> one of its pools."""
    found: dict[tuple[str, str], dict[str, Desired]] = {}
    for key, pools in desired.items():
        for pool in pools:
            if pool.target.place == "any":
                found.setdefault((pool.target.owner, pool.target.family), {}).setdefault(key, pool)
    return found


def _without_divided(
    chosen: Mapping[str, tuple[Desired, ...]], desired: Mapping[str, Sequence[Desired]]
) -> tuple[dict[str, tuple[Desired, ...]], list[Finding]]:
    """Leave out families of which a filter selects only some clusters: one of the others may have the nodes."""
    divided: dict[tuple[str, str], Finding] = {}
    for family, places in _any_places(desired).items():
        missing = [key for key in places if key not in chosen]
        if selected := [pool for key, pool in places.items() if key in chosen and pool in chosen[key] and missing]:
            where = selected[0].target.locator.at("place")
            message = f"{family[1]} is left out: it is on any of its clusters, and the filter leaves out {missing[0]}"
            fix = "select all of its clusters, or none"
            divided[family] = Finding("place-divided", where, message, fix=fix, severity="warning")
    kept = {
        key: tuple(pool for pool in pools if (pool.target.owner, pool.target.family) not in divided)
        for key, pools in chosen.items()
    }
    return kept, list(divided.values())


def _together(clusters: Mapping[str, ClusterRef], desired: Mapping[str, Sequence[Desired]]) -> dict[str, str]:
    """Return by cluster the address that chooses its shard: one for all clusters that a pool may be on."""
    found = {key: _address(cluster) for key, cluster in clusters.items()}
    for places in _any_places(desired).values():
        old = {found[key] for key in places}
        found = {key: min(old) if address in old else address for key, address in found.items()}
    return found


def _address(cluster: ClusterRef) -> str:
    return address_with(cluster.provider, {**cluster.identity, "name": cluster.name})


def _strictly(found: Finding) -> Finding:
    return replace(found, severity="error") if found.severity == "warning" else found


def _resolve_specs(specs: Sequence[LoadedSpec], wrong: Collection[Where] = ()) -> _Resolved:
    """Resolve and translate every pool, and keep the findings with their pool.

    Args:
        specs: The specs, as far as they are known.
        wrong: Places that already have an error, as findings there are consequences.
    """
    clusters, apart = _clusters(specs)
    pools, guesses, findings = _resolve_pools(specs)
    choices = choose_releases([pool.target for pool in pools])
    desired: dict[str, list[Desired]] = {key: [] for key in clusters}
    sketches: dict[str, list[tuple[_Pool, Desired]]] = {key: [] for key in clusters}
    for pool in pools:
        cluster = pool.target.cluster.key
        problems: list[Finding] = []
        translated = desire_pool(pool.target, problems, choices[cluster])
        findings += [OfPool(pool.key, found) for found in problems]
        if translated and pool.unknown is None:
            desired[cluster].append(translated)
        # A pool with errors still has a name, and may affect the release for the other pools.
        if sketch := translated or sketch_pool(pool.target, choices[cluster]):
            sketches[cluster].append((pool, sketch))
    if first := next((pool for pool in pools if pool.target.plugin_owner == "dra"), None):
        findings.append(OfPool(first.key, quote_maturity(first.target)))
    for key, guess in guesses:
        choice = choices.get(guess.targets[0].cluster.key, ReleaseChoice())
        findings += [OfPool(key, found) for found in judge_guess(guess, choice)]
    apart += _same_name_twice([sketch for pool, sketch in there if pool.has_known_name] for there in sketches.values())
    apart += [found for there in sketches.values() for found in check_settings([sketch for _, sketch in there])]
    apart += [found for there in desired.values() for found in check_families(there)]
    findings += [OfPool(None, found) for found in apart]
    targets = [pool.target for pool in pools]
    return _Resolved(clusters, targets, desired, choices, _independent(findings, wrong, specs))


def _resolve_pools(specs: Sequence[LoadedSpec]) -> tuple[list[_Pool], list[tuple[PoolKey, Guess]], list[OfPool]]:
    """Resolve every pool on each of its clusters, as a guess if mistakes leave parts unknown."""
    pools: list[_Pool] = []
    guesses: list[tuple[PoolKey, Guess]] = []
    findings: list[OfPool] = []
    for number, loaded in enumerate(specs):
        findings += [OfPool(None if index is None else (number, index), found) for index, found in loaded.remarks]
        references = cluster_refs(loaded)
        for index in range(len(loaded.pools)):
            key = number, index
            resolved, problems = resolve_pool(loaded, index, references)
            findings += [OfPool(key, found) for found in problems]
            for found in resolved:
                if isinstance(found, Guess):
                    guesses.append((key, found))
                else:
                    pools.append(_Pool(key, found, loaded.unknown.get(index)))
    return pools, guesses, findings


def _independent(findings: list[OfPool], wrong: Collection[Where], specs: Sequence[LoadedSpec]) -> list[OfPool]:
    """Drop findings at places that already have an error; keep those on a pool as a whole, such as missing fields."""
    if not wrong:
        return findings
    wholes = {at.at() for loaded in specs for at in loaded.places}
    return [one for one in findings if one.finding.where in wholes or one.finding.where not in wrong]


def prepare_addresses(addresses: Sequence[str], owners: Sequence[str] = ()) -> Prepared:
    """Prepare for clusters given by address: nothing is declared on them.

    Args:
        addresses: Addresses in the format of gpukube.spec.address.
        owners: Owners whose pools may be changed.

    Raises:
        SpecError: One diagnostic per invalid address.
        MissingExtra: A provider is not installed.
    """
    clusters = {
        key: cluster_ref(key, cluster, Where("--cluster")) for key, cluster in parse_addresses(addresses).items()
    }
    for cluster in clusters.values():
        load_provider(cluster.provider)
    return Prepared(tuple(owners), clusters, dict.fromkeys(clusters, ()), (), Filters(), addressed=True)


def _clusters(specs: Sequence[LoadedSpec]) -> tuple[dict[str, ClusterRef], list[Finding]]:
    """Collect the clusters of all specs, and contradictions among them."""
    clusters: dict[str, ClusterRef] = {}
    found: list[Finding] = []
    for spec in specs:
        for key, cluster in cluster_refs(spec).items():
            known = clusters.setdefault(key, cluster)
            if known != cluster:
                message = f'cluster "{key}" has another definition at {known.where}'
                fix = "rename one of the keys, or make them equal"
                found.append(Finding("cluster-twice", cluster.where, message, fix=fix))
    found += _keys_of_one(clusters)
    return clusters, found


def _keys_of_one(clusters: Mapping[str, ClusterRef]) -> Iterable[Finding]:
    """Find clusters with two keys: each key would have its own queue and release."""
    first: dict[str, str] = {}
    for key, cluster in clusters.items():
        known = first.setdefault(_address(cluster), key)
        if known != key:
            message = f'clusters "{known}" (at {clusters[known].where}) and "{key}" are the same cluster'
            why = "changes to a cluster run one after the other, and its pools share one release"
            yield Finding("cluster-keys", cluster.where, message, why=why, fix=f'use the key "{known}" for both')


def _same_name_twice(clusters: Iterable[Sequence[Desired]]) -> list[Finding]:
    """Find pools (of two specs, or by `names`) that would be the same pool in the cloud."""
    found = []
    for pools in clusters:
        seen: dict[str, Desired] = {}
        for expected in pools:
            first = seen.setdefault(expected.target.name, expected)
            if first is not expected:
                there = first.target.locator.at("name")
                message = (
                    f"{expected.target.where} and {first.target.where} ({there}) have the same cloud name "
                    f'"{first.target.name}"'
                )
                if expected.target.where == first.target.where:
                    message = f"{expected.target.where} is declared twice, here and at {there}"
                where = expected.target.locator.at("name")
                found.append(Finding("name-twice", where, message, fix="give one of them another name"))
    return found


def _require_matches(
    filters: Filters,
    clusters: Mapping[str, ClusterRef],
    desired: Mapping[str, tuple[Desired, ...]],
    pools: set[str],
) -> None:
    if filters.clusters and not desired:
        known = ", ".join(clusters)
        raise SpecError(
            f"--cluster {' '.join(filters.clusters)} matches no cluster of the spec",
            where=Where("--cluster"),
            fix=f"choose from: {known}",
            code="no-match",
        )
    if filters.pools and not any(desired.values()):
        raise SpecError(
            f"--pool {' '.join(filters.pools)} matches no pool of the spec",
            where=Where("--pool"),
            fix=f"choose from: {', '.join(sorted(pools))}",
            code="no-match",
        )
