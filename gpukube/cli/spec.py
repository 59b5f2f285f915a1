"""`gpukube validate`: the spec without any cloud."""

from __future__ import annotations

from gpukube.cli.options import FileOption, OutputOption, SetOption

__all__ = ["validate"]


def validate(*, files: FileOption, sets: SetOption, output: OutputOption) -> None:
    """Check specs offline: syntax, fields, GPU rules and the rules of each cloud they name.

    Exit codes: 0 all is well, 4 something is wrong. Warnings go to stderr and do not change the code.
    """
    from gpukube import api
    from gpukube.cli import output as out

    out.require_format(output, "Validation")
    prepared = api.prepare(api.load(files, sets=sets))
    out.warn(prepared.warnings)
    out.show(api.validation_document(prepared), output)
