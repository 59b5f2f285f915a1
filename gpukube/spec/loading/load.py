"""Loads specs from paths; the only entry point.

In scope: the order of reading, substituting, setting, and checking; LoadedSpec; finding the valid pools of an invalid
spec. Out of scope: how each step works.

All problems of all files are reported together, so that a user fixes a spec once, not once per mistake. So the valid
parts are kept in addition to the findings, for later checks (the GPU catalog, the clouds).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpukube.errors import Finding, SpecError, Where
from gpukube.spec.loading.build import Rank, build_spec
from gpukube.spec.loading.overrides import apply_sets
from gpukube.spec.rules.fields import check_across
from gpukube.spec.source.document import Document, load_documents
from gpukube.spec.source.environment import substitute
from gpukube.spec.source.files import Source, read_sources
from gpukube.spec.source.positions import PositionedDict, PositionedList, is_unknown, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from gpukube.spec.loading.build import Built
    from gpukube.spec.model import GPUNodePools, Pool
    from gpukube.spec.source.positions import Path, Positions


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A validated spec with defaults merged.

    Attributes:
        spec: The models.
        source: File as the user wrote it, "-" for stdin.
        positions: Position of each field; paths as in the spec: pools[0].sharing.mig.profile.
        pools: The pools, each followed by its alternatives; there may be fewer than written (see Reading).
        places: Positions of each of `pools`.
        ranks: Family and rank of each of `pools`.
        remarks: Warnings and hints, each with the index of its pool; None if it is not about a pool.
        unknown: Index of a pool with mistakes -> paths of its invalid fields; no rule may rely on those.
        guessed: Key of a cluster with mistakes -> paths of its invalid fields.
    """

    spec: GPUNodePools
    source: str
    positions: Positions
    pools: tuple[Pool, ...]
    places: tuple[Positions, ...]
    ranks: tuple[Rank, ...]
    remarks: tuple[tuple[int | None, Finding], ...] = ()
    unknown: Mapping[int, frozenset[Path]] = field(default_factory=dict)
    guessed: Mapping[str, frozenset[Path]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading the files.

    Attributes:
        specs: The specs; if there are errors, their checkable parts, with invalid fields listed as unknown.
        problems: Errors, and remarks on parts that are not in `specs`.
        documents: Positions of every document, including those with errors.
    """

    specs: tuple[LoadedSpec, ...]
    problems: tuple[Finding, ...]
    documents: tuple[Positions, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether there are no errors."""
        return not _errors(self.problems)

    def fields_at(self, places: Iterable[Where]) -> dict[Where, str]:
        """Return the paths of the fields at some positions: pools[0].nodes.count."""
        fields: dict[Where, str] = {}
        expected = set(places)
        for document in self.documents:
            marks = {mark: where for where in expected for mark in document.origin.marks_of(where)}
            fields.update({marks[mark]: path for mark, path in document.paths_of(marks).items()})
        return fields

    def require(self) -> tuple[LoadedSpec, ...]:
        """Return the specs.

        Raises:
            SpecError: There are errors; contains all problems and remarks.
        """
        if not self.is_right:
            raise SpecError.of([*self.problems, *(found for spec in self.specs for _, found in spec.remarks)])
        return self.specs


def load_specs(
    paths: Sequence[str],
    *,
    stdin: TextIO | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str],
) -> tuple[LoadedSpec, ...]:
    """Load and check every spec in the given files; for arguments see `read_specs`.

    Returns:
        One spec per document, in the order of paths and documents; at least one. Empty documents next to others (a
        trailing ---) are skipped, as in kubectl.

    Raises:
        SpecError: Contains all problems in all files.
    """
    return read_specs(paths, stdin=stdin, sets=sets, environ=environ).require()


def read_specs(
    paths: Sequence[str],
    *,
    stdin: TextIO | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str],
) -> Reading:
    """Read every spec in the given files, and find their problems.

    Args:
        paths: Files, directories (their *.yaml and *.yml, not deeper), patterns (*, **), "-" for stdin.
        stdin: Read when a path is "-".
        sets: `path=value` arguments, applied in their order.
        environ: Variables for ${NAME}.
    """
    sources, unreadable = read_sources(paths, stdin)
    problems = list(unreadable)
    documents = [document for source in sources for document in _parse(source, environ, problems)]
    complete = not _errors(problems)
    changed, unset = apply_sets(documents, sets)
    problems += [found for found in unset if complete or found.code != "set-path"]  # its pool may be in a broken file
    reading = _read(changed, problems)
    if not unset:
        return reading
    # The values that --set would have changed are unknown: run no further checks.
    remarks = dict.fromkeys(found for spec in reading.specs for _, found in spec.remarks)
    return replace(reading, specs=(), problems=(*reading.problems, *remarks))


def check_documents(documents: Sequence[Document]) -> tuple[LoadedSpec, ...]:
    """Check documents that are already read, substituted, and set: those of a saved plan.

    Raises:
        SpecError: Contains all problems, with the documents' positions.
    """
    return _read(documents, []).require()


def _parse(source: Source, environ: Mapping[str, str], problems: list[Finding]) -> list[Document]:
    """Return the non-empty documents of one text, variables substituted."""
    documents, found = load_documents(source.text, source.name)
    problems += found
    filled = [document for document in documents if document.root is not None]
    if not filled and not found:
        problems.append(
            Finding("document-empty", Where(source.name), "has no YAML content", fix="write a spec into it")
        )
    if "${" in source.text or "\\" in source.text:  # a backslash escape may produce one: "\x24{NAME}"
        for document in filled:
            problems += substitute(document.root, environ)
    return filled


def _read(documents: Sequence[Document], problems: list[Finding]) -> Reading:
    """Build and check the specs of documents; `problems` were found before."""
    built = [build_spec(document) for document in documents]
    damaged = {found.where for found in _errors(problems)}
    problems += [found for one in built for found in one.problems if found.where not in damaged]
    errors = _errors(problems)
    parts = [_known_part(one, errors) for one in built]
    # Check rules across files on the valid parts; their errors reduce these parts further.
    if across := check_across([_named_part(part) for part in parts if part]):
        errors += across
        parts = [_known_part(one, errors) for one in built]
    remarks = [found for found in problems if found.severity != "error"]
    # A remark at the position of an error explains it, unless the error has its own reason; it is not shown twice.
    reasons = {remark.where: remark.seen for remark in remarks}
    errors = [replace(error, why=error.why or reasons.get(error.where, "")) for error in errors]
    wrong = {error.where for error in errors}
    specs, left = _give_remarks([part for part in parts if part], [one for one in remarks if one.where not in wrong])
    return Reading(tuple(specs), (*errors, *left), tuple(one.positions for one in built))


def _errors(found: Iterable[Finding]) -> list[Finding]:
    return [one for one in found if one.severity == "error"]


def _known_part(built: Built, errors: Sequence[Finding]) -> LoadedSpec | None:
    """Return a spec of the pools and clusters that are at least partly valid; None if there are none."""
    pools: list[Pool] = []
    places: list[Positions] = []
    ranks: list[Rank] = []
    unknown: dict[int, frozenset[Path]] = {}
    wrong = _wrong_fields(built, errors)
    for number, (pool, at, missing, rank) in enumerate(built.pools):
        keys = tuple(key for key in pool.clusters if key in built.clusters)
        if not keys:
            continue
        if number in wrong or missing:
            unknown[len(pools)] = missing | wrong.get(number, frozenset())
        pools.append(pool if keys == pool.clusters else pool.model_copy(update={"clusters": keys}))
        places.append(at)
        ranks.append(rank)
    written = [pool for pool, rank in zip(pools, ranks, strict=True) if not rank.number]
    if not written:
        return None
    return LoadedSpec(
        spec=built.spec_of(written),
        source=built.positions.origin.names[0],
        positions=built.positions,
        pools=tuple(pools),
        places=tuple(places),
        ranks=tuple(ranks),
        unknown=unknown,
        guessed=dict(built.guessed),
    )


def _wrong_fields(built: Built, errors: Sequence[Finding]) -> dict[int, frozenset[Path]]:
    """Return, by pool, the fields with errors; none if an error is about the pool as a whole."""
    places = [built_pool.at for built_pool in built.pools]
    marks: dict[int, set[int]] = {}
    for mark, pools in _pools_by_mark(built.positions, places, errors).items():
        for index in pools:
            marks.setdefault(index, set()).add(mark)
    return {
        index: frozenset(parse_path(path)[2:] for path in places[index].paths_of(found).values())
        for index, found in marks.items()
    }


def _named_part(part: LoadedSpec) -> tuple[GPUNodePools, tuple[tuple[Pool, Positions], ...]]:
    """Return the pools whose names are known."""
    pools = enumerate(zip(part.pools, part.places, strict=True))
    return part.spec, tuple(
        named for index, named in pools if not is_unknown(("name",), part.unknown.get(index, frozenset()))
    )


def _pools_by_mark(
    document: Positions, pools: Sequence[Positions], findings: Sequence[Finding]
) -> dict[int, list[int]]:
    """Find the pools that findings are about: by a key or value in them, or else by a position between two pools.

    The latter is for text that never became data, such as the second of two equal keys.

    Args:
        document: Positions of the document that the findings may be about.
        pools: Positions of its pools.
        findings: The findings.

    Returns:
        Packed position of a finding in this document -> indices of its pools.
    """
    found: dict[int, list[int]] = {mark: [] for one in findings for mark in document.origin.marks_of(one.where)}
    if not found:
        return found
    for index, pool in enumerate(pools):
        for mark in found.keys() & pool.all_marks():
            found[mark].append(index)
    written = document.root.get("pools") if isinstance(document.root, PositionedDict) else None
    starts = sorted(written.value_marks) if isinstance(written, PositionedList) else []
    by_start = {pool.mark: index for index, pool in enumerate(pools)}
    for mark, indices in found.items():
        before = bisect_right(starts, mark)
        if not indices and before and starts[before - 1] in by_start:
            indices.append(by_start[starts[before - 1]])
    return found


def _give_remarks(specs: Sequence[LoadedSpec], remarks: Sequence[Finding]) -> tuple[list[LoadedSpec], list[Finding]]:
    """Add each remark to its pools, or else to the first spec of its file; also return the remaining remarks."""
    given: list[list[tuple[int | None, Finding]]] = [[] for _ in specs]
    pools_by_mark = [_pools_by_mark(spec.positions, spec.places, remarks) for spec in specs]
    elsewhere = []
    for remark in remarks:
        for spec, pools, mine in zip(specs, pools_by_mark, given, strict=True):
            indices = [index for mark in spec.positions.origin.marks_of(remark.where) for index in pools[mark]]
            if indices:
                mine += [(index, remark) for index in indices]
                break
        else:
            elsewhere.append(remark)
    left = []
    for remark in elsewhere:
        of_file = (mine for spec, mine in zip(specs, given, strict=True) if spec.source == remark.where.source)
        if (first := next(of_file, None)) is None:
            left.append(remark)
        else:
            first.append((None, remark))
    return [replace(spec, remarks=tuple(mine)) for spec, mine in zip(specs, given, strict=True)], left
