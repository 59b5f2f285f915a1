"""Body of `gpukube report show`: read documents and write them in another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cli import output as out
from gpukube.cli.kinds import FORMATS
from gpukube.cli.stderr import write_stderr
from gpukube.engine.documents.reading import read_document
from gpukube.errors import SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.engine.documents.parts import Document

FOR_SEVERAL = ("table", "text", "wide", "name")
"""Formats that can be concatenated; in the others a file is one document."""


def show(choices: Choices, files: Sequence[str]) -> None:
    """Show the documents of some files, after reading all of them."""
    documents = [(file, read_document(file)) for file in files]
    if len(documents) > 1 and choices.output not in FOR_SEVERAL:
        raise SpecError(
            f"cannot combine {len(documents)} documents into one {choices.output}",
            where=Where("--output"),
            fix=f"give one file, or choose one of {', '.join(FOR_SEVERAL)}",
            code="output-format",
        )
    for file, document in documents:
        kind = str(document["kind"])
        if kind not in out.RENDERERS:
            fix = "show a document of another command"
            raise SpecError(f"a {kind} has no other formats", where=file, fix=fix, code="report-document")
        if choices.output not in FORMATS[kind]:
            raise SpecError(
                f'"{choices.output}" is not a format of a {kind}',
                where=file,
                fix=f"choose one of {', '.join(FORMATS[kind])}",
                code="output-format",
            )
    for file, document in documents:
        write(file, document, choices)


def write(file: str, document: Document, choices: Choices) -> None:
    """Write one document that was read from a file, in the chosen format."""
    if choices.output == "terraform-json":
        write_stderr(
            "note: planned_values, which infracost needs, is missing; `gpukube pool plan -o terraform-json` includes it"
        )
    try:
        out.show(document, choices.output, verbose=choices.verbose)
    except (LookupError, TypeError, ValueError) as error:
        # The schema cannot require that parts agree: a resource in min but not in max, half a pair.
        fix = "the file was edited; create it again: gpukube ... -o json > FILE"
        raise SpecError("its parts contradict each other", where=file, fix=fix, code="report-document") from error
