"""Body of `gpukube report merge`: read the documents of shards, merge them, choose the exit code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import typer

from gpukube.cli import output as out
from gpukube.cli.bodies.report_show import write
from gpukube.engine.documents.reading import read_document
from gpukube.engine.documents.shards import missing_line
from gpukube.engine.merging import merge_documents
from gpukube.errors import Finding, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.engine.documents.parts import Document
    from gpukube.engine.documents.shapes.parts import MergedPart


def merge(choices: Choices, files: Sequence[str]) -> None:
    """Show the results of all shards as one document; a shard whose file is truncated counts as unknown."""
    sources: list[tuple[str, Document]] = []
    lost: list[Finding] = []
    for file in dict.fromkeys(files):
        try:
            sources.append((file, read_document(file)))
        except SpecError as error:
            if error.diagnostics[0].code != "report-cut":
                raise
            lost += [replace(found, severity="warning") for found in error.diagnostics]
    if not sources:
        raise SpecError.of([replace(found, severity="error") for found in lost])
    out.require_format(choices.output, str(sources[0][1]["kind"]))
    try:
        document = merge_documents(sources)
    except (LookupError, TypeError, ValueError) as error:
        # The schema cannot require that parts agree.
        fix = "one of them was edited; run the shards again with -o json"
        where = Where("report merge")
        raise SpecError("the documents contradict each other", where=where, fix=fix, code="merge-differs") from error
    out.warn(lost)
    merged = cast("MergedPart", document["merged"])
    if merged["missing"]:
        fix = "run these shards again, then merge all documents"
        message = missing_line(merged["missing"], merged["total"])
        out.warn([Finding("merge-missing", Where("report merge"), message, fix=fix)])
    write("report merge", document, choices)
    raise typer.Exit(merged["exitCode"])
