"""`gpukube report ...`: read what other commands wrote with -o json."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.completion import complete_format
from gpukube.cli.options import Choices, option, takes

app = typer.Typer(help="Show or merge the JSON documents of earlier runs.", no_args_is_help=True)

_ANY = option(
    "--output", "-o", default="table", envvar="GPUKUBE_OUTPUT", metavar="FORMAT", autocompletion=complete_format,
    help="Any format of the command that wrote the document: table (default), json, yaml, markdown, github, ...",
)  # fmt: skip

Documents = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", show_default=False, help="Output of commands run with -o json; - for stdin."),
]


@app.callback()
def _group() -> None:
    pass  # keeps a group with a single command a group


@app.command()
@takes("output", "verbose", output=_ANY)
def show(choices: Choices, files: Documents) -> None:
    """Show a plan, diff or report in another format. One run with -o json serves every format a pipeline needs.

    Makes no API calls and needs no spec. Exit codes: 0 shown, whatever the document reports; 4 not a gpukube document.
    """
    from gpukube.cli.bodies import report_show as body

    body.show(choices, files)


@app.command()
@takes("output", "verbose", output=_ANY)
def merge(choices: Choices, files: Documents) -> None:
    """Merge the documents of a sharded run. The result is what a run over all clusters would write.

    Exit codes: that of such a run; 1 shards are missing, and the document is marked as partial; 4 the files are not
    shards of one run, or one is given twice.
    """
    from gpukube.cli.bodies import report_merge as body

    body.merge(choices, files)
