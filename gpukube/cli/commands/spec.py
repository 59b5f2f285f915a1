"""`gpukube validate`: check a spec offline."""

from __future__ import annotations

import typer

from gpukube.cli.options import SPEC, Choices, takes

app = typer.Typer()


@app.command()
@takes(*SPEC, "strict", "output")
def validate(choices: Choices) -> None:
    """Check specs offline: syntax, fields, GPU and cloud rules.

    Exit codes: 0 no errors, 4 errors. Findings go to stderr, and with -o json, yaml or sarif to stdout too. Warnings
    and hints do not change the exit code.
    """
    import os

    from gpukube.catalog.learning import learn_refreshed
    from gpukube.cli import output as out
    from gpukube.engine import offline
    from gpukube.engine.documents.validation import validation_document
    from gpukube.errors import ExitCode

    out.require_format(choices.output, "Validation")
    learn_refreshed(os.environ, sandbox=False)
    found = offline.validate(choices.files, sets=choices.sets, strict=choices.strict)
    document = validation_document(found)
    if choices.output != "github":  # its annotations are shown in the log anyway
        out.warn(found.findings)
    if found.is_right or choices.output not in {"table", "text"}:
        out.show(document, choices.output)
    else:
        out.show_on_stderr(document)
    raise typer.Exit(ExitCode.DONE if found.is_right else ExitCode.BAD_INPUT)
