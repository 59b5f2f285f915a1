"""Specs -> desired pools per cluster, with every check that needs no call. Nothing here contacts anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gpukube.cluster.release_plan import check_settings
from gpukube.core.owners import ReleaseChoice
from gpukube.core.resolve import cluster_ref, cluster_refs, resolve_targets
from gpukube.engine.owners import choose_releases, desire_pool, settle_owners
from gpukube.errors import Diagnostic, SpecError, Where
from gpukube.provider import load_provider
from gpukube.spec.address import parse_addresses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import ClusterRef, Desired, Target
    from gpukube.engine.owners import Settled
    from gpukube.provider import Provider
    from gpukube.spec.load import LoadedSpec

__all__ = ["Filters", "Prepared", "prepare", "prepare_addresses"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which part of the specs a command is about; globs, empty means all."""

    clusters: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether anything is left out."""
        return bool(self.clusters or self.pools)

    def takes_cluster(self, key: str) -> bool:
        """Say whether a cluster is meant."""
        return not self.clusters or any(fnmatchcase(key, glob) for glob in self.clusters)

    def takes_pool(self, name: str) -> bool:
        """Say whether a pool is meant."""
        return not self.pools or any(fnmatchcase(name, glob) for glob in self.pools)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the specs want, ready to be compared with the world.

    Attributes:
        owners: metadata.name of every spec.
        clusters: By key, those the filters take.
        desired: By cluster key; an empty tuple for a cluster without pools.
        warnings: Findings that do not stop the run.
        filters: What was left out.
        choices: By cluster key, the release that its pools need, those included that the filters leave out; as far as
            the specs tell. Nothing of a cluster where they ask for none in particular.
    """

    owners: tuple[str, ...]
    clusters: Mapping[str, ClusterRef]
    desired: Mapping[str, tuple[Desired, ...]]
    warnings: tuple[Diagnostic, ...]
    filters: Filters
    choices: Mapping[str, ReleaseChoice] = field(default_factory=dict)

    def settle(self, key: str, provider: Provider, *, operator_live: bool) -> Settled:
        """Give the pools of one cluster in view of what is there, as `settle_owners` does."""
        asked = self.choices.get(key, ReleaseChoice())
        return settle_owners(self.desired[key], asked, provider, operator_live=operator_live)


def prepare(specs: Sequence[LoadedSpec], filters: Filters = Filters()) -> Prepared:
    """Resolve, check and translate all pools of all specs.

    Raises:
        SpecError: All errors of all pools, whatever the filters: a spec is right or wrong as a whole. Also when
            a filter matches nothing.
    """
    found: list[Diagnostic] = []
    clusters = _clusters(specs, found)
    targets: list[Target] = []
    for spec in specs:
        resolved, problems = resolve_targets(spec)
        targets += resolved
        found += problems
    choices = choose_releases(targets)
    desired: dict[str, list[Desired]] = {key: [] for key in clusters}
    for target in targets:
        if wanted := desire_pool(target, found, choices.get(target.cluster.key, ReleaseChoice())):
            desired[target.cluster.key].append(wanted)
    found += _same_name_twice(desired)
    found += [problem for pools in desired.values() for problem in check_settings(pools)]
    if any(d.severity == "error" for d in found):
        raise SpecError.of(dict.fromkeys(found))
    chosen = {
        key: tuple(wanted for wanted in pools if filters.takes_pool(wanted.target.pool))
        for key, pools in desired.items()
        if filters.takes_cluster(key)
    }
    _require_matches(filters, clusters, chosen, {target.pool for target in targets})
    return Prepared(
        owners=tuple(dict.fromkeys(spec.spec.metadata.name for spec in specs)),
        clusters={key: clusters[key] for key in chosen},
        desired=chosen,
        warnings=tuple(dict.fromkeys(found)),
        filters=filters,
        choices={key: choice for key, choice in choices.items() if key in chosen},
    )


def prepare_addresses(addresses: Sequence[str], owners: Sequence[str] = ()) -> Prepared:
    """Prepare for clusters that are named by their addresses: nothing is declared on them.

    Args:
        addresses: As gpukube.spec.address reads them.
        owners: Whose pools may be changed.

    Raises:
        SpecError: Holds one diagnostic per address that is not one.
        MissingExtra: A provider is not installed.
    """
    clusters = {
        key: cluster_ref(key, cluster, Where("--cluster")) for key, cluster in parse_addresses(addresses).items()
    }
    for cluster in clusters.values():
        load_provider(cluster.provider)
    return Prepared(tuple(owners), clusters, dict.fromkeys(clusters, ()), (), Filters())


def _clusters(specs: Sequence[LoadedSpec], found: list[Diagnostic]) -> dict[str, ClusterRef]:
    clusters: dict[str, ClusterRef] = {}
    for spec in specs:
        for key, cluster in cluster_refs(spec).items():
            known = clusters.setdefault(key, cluster)
            if known != cluster:
                message = f'cluster "{key}" is defined differently at {known.where}'
                fix = "give one of them another key, or make them the same"
                found.append(Diagnostic("cluster-twice", cluster.where, message, fix=fix))
    return clusters


def _same_name_twice(desired: Mapping[str, list[Desired]]) -> list[Diagnostic]:
    """Find two pools (of two specs, or by `names`) that would be one in the cloud."""
    found = []
    for pools in desired.values():
        seen: dict[str, Desired] = {}
        for wanted in pools:
            first = seen.setdefault(wanted.target.name, wanted)
            if first is not wanted:
                message = (
                    f'{wanted.target.where} and {first.target.where} have the same cloud name "{first.target.name}"'
                )
                where = wanted.target.locator.at("name")
                found.append(Diagnostic("name-twice", where, message, fix="give one of them another name"))
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
