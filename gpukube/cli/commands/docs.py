"""`gpukube docs`: the documentation in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.completion import complete_topic

app = typer.Typer()


@app.command()
def docs(
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]",
            show_default=False,
            autocompletion=complete_topic,
            help="Name of a page, such as migrate, or words that it is about.",
        ),
    ] = None,
) -> None:
    """Show the documentation in the terminal. Without a topic: the list of pages, by task.

    On a terminal a page opens in a pager ($PAGER, or less); in a pipe it is Markdown.
    """
    from gpukube.cli.bodies.docs import show_topic

    show_topic(" ".join(topic or ()))
