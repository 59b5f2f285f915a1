"""From paths to specs: the one way in.

Lives here: the order of reading, substituting, setting, checking; LoadedSpec. Must not live here: how each of
these is done.

Everything wrong with all files is reported in one SpecError: a user repairs a spec once, not once per mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.errors import Diagnostic, SpecError, Where
from gpukube.spec.build import build_spec
from gpukube.spec.environment import substitute
from gpukube.spec.overrides import apply_sets
from gpukube.spec.rules import check_across
from gpukube.spec.sources import Source, read_sources
from gpukube.spec.yamldoc import Document, load_documents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from gpukube.spec.model import GPUNodePools
    from gpukube.spec.positions import Positions

__all__ = ["LoadedSpec", "check_documents", "load_specs"]


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A validated spec, its defaults merged.

    Attributes:
        spec: The models.
        source: File as the user wrote it, "-" for stdin.
        positions: Where each field was written; paths as in the spec: pools[0].sharing.mig.profile.
    """

    spec: GPUNodePools
    source: str
    positions: Positions


def load_specs(
    paths: Sequence[str],
    *,
    stdin: TextIO | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str],
) -> tuple[LoadedSpec, ...]:
    """Load and check every spec of the given files.

    Args:
        paths: Files, directories (their *.yaml and *.yml, not deeper), "-" for stdin.
        stdin: Read when a path is "-".
        sets: `path=value` arguments, applied in their order.
        environ: Variables for ${NAME}.

    Returns:
        One spec per document, in the order of paths and documents; at least one. Empty documents beside others
        (a trailing ---) are passed over, as kubectl does.

    Raises:
        SpecError: Holds everything that is wrong, in all files.
    """
    sources, unreadable = read_sources(paths, stdin)
    problems = list(unreadable)
    documents = [document for source in sources for document in _parse(source, environ, problems)]
    complete = not problems
    changed, unset = apply_sets(documents, sets)
    problems += [found for found in unset if complete or found.code != "set-path"]  # its pool may be in a broken file
    return _check(changed, problems)


def check_documents(documents: Sequence[Document]) -> tuple[LoadedSpec, ...]:
    """Check documents that were read, filled and set before: those of a saved plan.

    Raises:
        SpecError: Holds everything that is wrong, at the positions that the documents carry.
    """
    return _check(documents, [])


def _check(documents: Sequence[Document], problems: list[Diagnostic]) -> tuple[LoadedSpec, ...]:
    """Build and check the specs of documents; `problems` are those found on the way here."""
    built = [build_spec(document) for document in documents]
    damaged = {found.where for found in problems}
    problems += [found for one in built for found in one.problems if found.where not in damaged]
    specs = [(one.spec, one.positions) for one in built if one.spec is not None]
    problems += check_across(specs)
    if problems:
        raise SpecError.of(problems)
    return tuple(LoadedSpec(spec, positions.origin.names[0], positions) for spec, positions in specs)


def _parse(source: Source, environ: Mapping[str, str], problems: list[Diagnostic]) -> list[Document]:
    """Read the documents of one text that have content, variables substituted."""
    documents, found = load_documents(source.text, source.name)
    problems += found
    filled = [document for document in documents if document.root is not None]
    if not filled and not found:
        problems.append(
            Diagnostic("document-empty", Where(source.name), "holds no YAML with content", fix="write a spec into it")
        )
    for document in filled:
        problems += substitute(document.root, environ)
    return filled
