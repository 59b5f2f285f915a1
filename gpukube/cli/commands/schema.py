"""`gpukube schema`: the JSON Schema of the spec, for editors and other tools."""

from __future__ import annotations

import typer

app = typer.Typer()


@app.command()
def schema() -> None:
    """Print the JSON Schema of the spec, for editors and other tools.

    To use it in an editor, make `# yaml-language-server: $schema=FILE` the first line of a spec.
    """
    import json

    from gpukube.spec.reference.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
