"""`gpukube report ...`: what other commands wrote with -o json, read again."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.completion import complete_format
from gpukube.cli.options import Choices, option, takes

app = typer.Typer(help="Show what a run wrote with -o json in other formats.", no_args_is_help=True)

_ANY = option(
    "--output", "-o", default="table", envvar="GPUKUBE_OUTPUT", metavar="FORMAT", autocompletion=complete_format,
    help="A format of the command that wrote the document: table (default), json, yaml, markdown, github, ...",
)  # fmt: skip

Documents = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", show_default=False, help="What commands wrote with -o json; - for stdin."),
]


@app.callback()
def _group() -> None:
    pass  # with it, a group of one command stays a group


@app.command()
@takes("output", "verbose", output=_ANY)
def show(choices: Choices, files: Documents) -> None:
    """Show a plan, a diff or a report in another format: one run with -o json, as many formats as a pipeline needs.

    Makes no call and needs no spec. Exit codes: 0 shown, whatever the document reports; 4 a file is no document.
    """
    from gpukube.cli.bodies import report_show as body

    body.show(choices, files)


@app.command()
@takes("output", "verbose", output=_ANY)
def merge(choices: Choices, files: Documents) -> None:
    """Put the documents of a run with --shard 1/N to N/N together, as one run over all clusters would have written it.

    Exit codes: that of such a run; 1 when shards are missing, and the document is marked as partial; 4 the files are
    not of the shards of one run, or one is there twice.
    """
    from gpukube.cli.bodies import report_merge as body

    body.merge(choices, files)
