"""Builds a validated spec from the valid parts of one YAML document, and reports everything that is invalid.

In scope: the order of checks. Out of scope: messages (messages.py), rules (rules.py), files (load.py).

Each cluster and each pool is validated separately, so that one invalid pool hides neither type errors nor broken rules
of the others: the valid parts become a spec anyway, for further checks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from gpukube.errors import Finding
from gpukube.spec.loading.merge import merge_defaults
from gpukube.spec.loading.messages import AtPath, empty_value, explain, intended, not_a_mapping, unnamed_provider
from gpukube.spec.loading.salvage import salvage
from gpukube.spec.model import (
    CLUSTER_KEY,
    CLUSTER_MODELS,
    PROVIDERS,
    ClusterKey,
    GPUNodePools,
    Metadata,
    Pool,
    PoolSettings,
    SpecModel,
)
from gpukube.spec.reference.fields import keys_of
from gpukube.spec.rules.families import FIXED_IN_FAMILY, check_alternative
from gpukube.spec.rules.fields import check_pool, check_together
from gpukube.spec.source.positions import Data, Path, PositionedDict, PositionedList, Positions, is_unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.errors import Where
    from gpukube.spec.model import ProviderName
    from gpukube.spec.source.document import Document

M = TypeVar("M", bound=SpecModel)


class _Head(SpecModel):
    """The fields that identify a document as a spec."""

    model_config = ConfigDict(extra="ignore")

    api_version: Literal["gpukube.io/v1alpha1"]
    kind: Literal["GPUNodePools"]


class _Frame(_Head):
    """The spec without the content of clusters, defaults, and pools."""

    model_config = ConfigDict(extra="forbid")

    metadata: Metadata
    clusters: dict[ClusterKey, object] = Field(min_length=1, examples=["{KEY: {provider: aks, ...}}"])
    defaults: dict[str, object] = Field(default_factory=dict)
    pools: Annotated[tuple[object, ...], Field(strict=False)] = Field(min_length=1, examples=["[{name: ...}]"])


_IN_DEFAULTS: Final = keys_of(PoolSettings)
_FREE: Final = frozenset({*((provider,) for provider in PROVIDERS), ("devicePlugin", "values")})
"""Free-form fields of a pool or of the defaults: gpukube defines no keys below them."""
_WORKLOAD: Final = re.compile(
    r"(v1|apps/\S+|batch/\S+|ray\.io/\S+|jobset\.x-k8s\.io/\S+) "
    r"(Pod|PodTemplate|\w*Set|Deployment|ReplicationController|(Cron)?Job|Ray\w+)"
)
"""API version and kind of documents that `workload lint` checks."""
_NOBODY: Final = Metadata(name="unknown")
"""Placeholder owner for the valid parts of a spec that names none."""


class Rank(NamedTuple):
    """The place of a pool in its family, a pool and its alternatives.

    Attributes:
        family: Name of the first of them; "" for a pool of no family.
        number: 0 for the first.
    """

    family: str = ""
    number: int = 0


class BuiltPool(NamedTuple):
    """A pool that can be checked at least partly.

    Attributes:
        pool: The pool.
        at: Its positions.
        unknown: Paths of its invalid fields.
        rank: Its place in its family.
    """

    pool: Pool
    at: Positions
    unknown: frozenset[Path]
    rank: Rank = Rank()


class Built:
    """The result of building a document.

    Attributes:
        positions: Positions of the document with its defaults merged.
        frame: The spec around clusters and pools; None if it is invalid.
        clusters: The valid clusters.
        pools: Pools that can be checked at least partly, each followed by its alternatives.
        guessed: Keys of clusters with mistakes -> paths of their unknown fields.
        problems: All findings, without repetitions of one mistake.
    """

    def __init__(self, document: Document) -> None:
        self.problems: list[Finding] = []
        self.frame: _Frame | None = None
        self.clusters: dict[str, SpecModel] = {}
        self.pools: list[BuiltPool] = []
        self.guessed: dict[str, frozenset[Path]] = {}
        self._said: set[tuple[str, Where, Path]] = set()
        self._document = document
        self.positions = Positions(document.root, document.origin, document.mark)

    def spec_of(self, pools: Sequence[Pool]) -> GPUNodePools:
        """Return a spec of the valid clusters and some of the pools."""
        return GPUNodePools.model_validate(
            {
                "apiVersion": "gpukube.io/v1alpha1",
                "kind": "GPUNodePools",
                "metadata": self.frame.metadata if self.frame else _NOBODY,
                "clusters": self.clusters,
                "pools": pools,
            }
        )

    def add(self, findings: Iterable[AtPath]) -> None:
        """Add findings; the same mistake at the same place only once (defaults and aliases affect many pools)."""
        for diagnostic, path in findings:
            key = (diagnostic.code, diagnostic.where, path[-1:])
            if key not in self._said:
                self._said.add(key)
                self.problems.append(diagnostic)

    def validate(self, model: type[M], data: object, positions: Positions) -> M | None:
        """Validate one part by its model; if it is invalid, add findings and return None."""
        try:
            return model.model_validate(data)
        except ValidationError as error:
            self.add(explain(error, model, positions))
            return None

    def salvage(self, model: type[M], data: object, positions: Positions) -> tuple[M | None, frozenset[Path]]:
        """Validate the valid fields of one part; also return the paths of the invalid ones."""
        try:
            return model.model_validate(data), frozenset()
        except ValidationError as error:
            self.add(explain(error, model, positions))
            rest, unknown = salvage(model, data, positions)
            return rest, unknown | intended(error, model, positions)


def build_spec(document: Document) -> Built:
    """Check a document and build its spec."""
    built = Built(document)
    root = document.root
    if not isinstance(root, PositionedDict):
        built.problems.append(not_a_mapping(root, built.positions.at()))
        return built
    # An entirely different kind of document: more findings would be noise.
    kind = root.get("kind")
    if isinstance(kind, str) and kind.casefold() != "gpunodepools" and "pools" not in root:
        if not _WORKLOAD.fullmatch(f"{root.get('apiVersion')} {kind}"):
            built.validate(_Head, root, built.positions)
        else:
            fix = f"check it with: gpukube workload lint {document.origin.names[0]}"
            found = Finding("choice", built.positions.at("kind"), f"a {kind} is not a spec of node pools", fix=fix)
            built.problems.append(found)
        return built
    built.frame = built.validate(_Frame, root, built.positions)
    if _has_empty(root):
        built.add(_check_empty(root, built.positions, (), set()))
    clusters: dict[str, SpecModel] = {}
    for key, value in _entries(root.get("clusters")):
        at = built.positions.within(("clusters", key))
        provider = value.get("provider") if isinstance(value, PositionedDict) else PROVIDERS[0]
        model = CLUSTER_MODELS.get(provider) if isinstance(provider, str) else None
        if model is None:
            built.add([AtPath(unnamed_provider(provider, at), ("provider",))])
            continue
        cluster, unknown = built.salvage(model, value, at)
        if cluster and re.match(CLUSTER_KEY, key):  # the frame reports the key
            clusters[key] = cluster
            if unknown:
                built.guessed[key] = unknown
    built.clusters = clusters
    merged = _merge(built, root)
    written, built.positions = built.positions, Positions(merged, document.origin, document.mark)
    built.pools = _build_pools(built, merged, _providers(root), written)
    return built


def _has_empty(root: Data) -> bool:
    """Return whether any key has no value; faster than a report, which needs paths: valid specs have none."""
    waiting: list[Data] = [root]
    while waiting:
        node = waiting.pop()
        values = node.values() if isinstance(node, PositionedDict) else node if isinstance(node, PositionedList) else ()
        if None in values:
            return True
        waiting += values
    return False


def _check_empty(node: Data, positions: Positions, path: Path, seen: set[int]) -> Iterator[AtPath]:
    """Find keys without a value: a `mig:` whose lines are commented out must not silently mean "no MIG".

    A node that several aliases share is checked once (`seen`): its findings would be the same.
    """
    if node is None:
        yield AtPath(empty_value(positions, path), path)
    if not isinstance(node, PositionedDict | PositionedList) or id(node) in seen:
        return
    seen.add(id(node))
    for step, value in node.items() if isinstance(node, PositionedDict) else enumerate(node):
        if not _is_free((*path, step)):
            yield from _check_empty(value, positions, (*path, step), seen)


def _is_free(path: Path) -> bool:
    """Return whether a mapping is free-form, so that null has a meaning: native fields, values of a chart."""
    return {"pools": path[2:], "defaults": path[1:]}.get(str(path[0])) in _FREE


def _entries(node: Data) -> Iterator[tuple[str, Data]]:
    yield from node.items() if isinstance(node, PositionedDict) else ()


def _providers(root: PositionedDict) -> dict[str, ProviderName | None]:
    """Map every cluster key, even of invalid clusters, to its provider if known."""
    known: dict[str, ProviderName | None] = {}
    for key, value in _entries(root.get("clusters")):
        written = value.get("provider") if isinstance(value, PositionedDict) else None
        known[key] = next((provider for provider in PROVIDERS if provider == written), None)
    return known


def _merge(built: Built, root: PositionedDict) -> PositionedDict:
    """Validate the defaults alone, then merge them into every pool."""
    defaults, pools = root.get("defaults"), root.get("pools")
    if not isinstance(defaults, PositionedDict):
        return root
    # Incomplete defaults are not a mistake: a pool may add the rest.
    try:
        PoolSettings.model_validate(defaults)
    except ValidationError as error:
        findings = explain(error, PoolSettings, built.positions.within("defaults"))
        built.add(finding for finding in findings if finding.finding.code != "missing-key")
    if not isinstance(pools, PositionedList):
        return root
    merged = pools.clone()
    for index, pool in enumerate(pools):
        if isinstance(pool, PositionedDict):
            merged[index] = merge_defaults(defaults, pool, _IN_DEFAULTS)
    document = root.clone()
    document["pools"] = merged
    return document


def _build_pools(
    built: Built, root: PositionedDict, clusters: dict[str, ProviderName | None], written: Positions
) -> list[BuiltPool]:
    """Validate each pool, then check the rules on its valid fields; `written` are positions without the defaults."""
    judged: list[BuiltPool] = []
    pools = root.get("pools")
    for index, data in enumerate(pools if isinstance(pools, PositionedList) else ()):
        path: Path = ("pools", index)
        first = _build_pool(built, data, built.positions.within(path), clusters, written.within(path))
        if first is None:
            continue
        if not first.pool.alternatives and first.pool.place == "all":
            judged.append(first)
            continue
        judged.append(first._replace(rank=Rank(first.pool.name)))
        judged += _build_alternatives(built, first, data, clusters)
    named = ((one.pool, one.at, bool(one.rank.family)) for one in judged if not is_unknown(("name",), one.unknown))
    built.problems.extend(check_together(named, clusters))
    return judged


def _build_pool(
    built: Built, data: Data, at: Positions, clusters: dict[str, ProviderName | None], own: Positions
) -> BuiltPool | None:
    pool, unknown = built.salvage(Pool, data, at)
    if pool is None:
        return None
    wrong = {at.at(path) for path in unknown} - {at.at()}
    for found in check_pool(pool, at, clusters, unknown, own=own):
        if found.where not in wrong:
            built.add([AtPath(found, (found.seen.replace(at.path(), "", 1),))])
    return BuiltPool(pool, at, unknown)


def _build_alternatives(
    built: Built, first: BuiltPool, data: Data, clusters: dict[str, ProviderName | None]
) -> Iterator[BuiltPool]:
    """Lay each alternative over its pool, and validate it as a pool."""
    patches = data.get("alternatives") if isinstance(data, PositionedDict) else None
    for number, patch in enumerate(patches if isinstance(patches, PositionedList) else (), 1):
        assert isinstance(data, PositionedDict)  # noqa: S101 - it has patches
        at = first.at.within(("alternatives", number - 1))
        if not isinstance(patch, PositionedDict):
            continue  # reported by the pool's model
        built.add(AtPath(found, ()) for found in check_alternative(patch, at))
        fixed = PositionedDict(patch.origin, patch.mark)
        for key in patch:
            if key not in FIXED_IN_FAMILY:
                fixed.take(key, patch)
        merged = merge_defaults(data, fixed, _IN_DEFAULTS)
        whole = Positions(merged, at.origin, at.mark, at.prefix)
        if member := _build_pool(built, merged, whole, clusters, at):
            yield member._replace(rank=Rank(first.pool.name, number))
