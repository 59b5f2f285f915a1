"""Body of `gpukube doctor`: examine, fix if requested, show the result, choose the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gpukube.cli import output as out
from gpukube.cli.stage import confirm, note_run, open_job
from gpukube.cli.stderr import write_stderr
from gpukube.doctor.diagnose import diagnose, doctor_exit_code
from gpukube.doctor.document import doctor_document
from gpukube.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices


def visit(choices: Choices, *, fix: bool) -> None:
    """Examine the clusters; with `fix`, apply the offered fixes after confirmation."""
    with open_job(choices, "Doctor") as job:

        def ask(offered: Sequence[str]) -> None:
            with job.progress.paused():
                write_stderr("\n".join(f"would {line}" for line in offered))
            confirm(choices, job, "fix", [f"{len(offered)} problem{'' if len(offered) == 1 else 's'}"])

        found = diagnose(job.prepared, job.run, confirm=ask if fix else None)
    document = doctor_document(found)
    code = ExitCode.INTERRUPTED if job.run.clock.stopped else doctor_exit_code(found)
    note_run(document, job, code)
    out.show(document, choices.output, verbose=choices.verbose)
    if job.run.clock.stopped:
        write_stderr(f"stopped; to continue: {job.run.resume}")
    raise typer.Exit(code)
