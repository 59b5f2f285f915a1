"""The top of the command line, and how a run ends: every error becomes a message and an exit code.

Start-up time matters: this module and the command modules import only typer and the standard library, and a run
imports only the command module that its command line names.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import traceback
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer
from typer.core import TyperGroup

from gpukube import __version__
from gpukube.cli.advice import suggest_command
from gpukube.cli.command_lists import Group
from gpukube.cli.completion import VARIABLE, quiet_and_short
from gpukube.cli.lazy import lazy_group
from gpukube.cli.stderr import write_stderr
from gpukube.errors import ExitCode, GpukubeError, defect

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Top(Group):
    """The commands of the top level."""

    tasks: ClassVar = {
        "Start": ("sandbox", "init", "docs"),
        "Specs": ("validate", "explain", "schema"),
        "Machines": ("capacity", "catalog"),
        "Pools": ("pool", "release", "report"),
        "Workloads": ("workload",),
        "Problems": ("doctor",),
    }
    summaries: ClassVar = {  # the modules of all commands would cost a fifth of the time of help
        "init": "Write a commented starter spec.",
        "docs": "Show the documentation in the terminal.",
        "validate": "Check specs offline: syntax, fields, GPU and cloud rules.",
        "explain": "Explain a field of the spec, or who owns driver and plugin.",
        "pool": "Plan, create, change, list, verify and delete GPU node pools.",
        "workload": "Write, check and place workloads for the pools.",
        "doctor": "Find problems on live clusters and show how to fix them.",
        "capacity": "Find where GPU machines are available, and how to buy them.",
        "catalog": "Browse GPU instance types of the three clouds and their prices.",
        "report": "Show or merge the JSON documents of earlier runs.",
        "release": "Remove gpukube's own Helm release from clusters.",
        "schema": "Print the JSON Schema of the spec, for editors and other tools.",
        "sandbox": "Run emulated clouds on loopback: no account, no cost.",
    }


app = typer.Typer(
    name="gpukube",
    cls=_Top,
    help="GPU node pools on EKS, AKS and GKE from one declarative spec.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help halves the start-up time
    pretty_exceptions_enable=False,  # locals in a traceback can contain secrets
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done or same, 1 error, 2 differs (plan diff only), 3 partly done, 4 bad input, "
    "5 access, 6 capacity or quota, 7 timed out while the cloud keeps working, "
    "129 the terminal was closed, 130 interrupted, 143 terminated.",
)
_NEXT: Final = """\
GPU node pools on EKS, AKS and GKE from one declarative spec. Next:

  gpukube --sandbox init   try it: a first spec for emulated clouds, no account
  gpukube init             write a spec for your own clusters
  gpukube docs first-run   read how to continue; gpukube docs lists all pages

All commands, by task: gpukube --help
"""
"""For a person who types the name of the command; in scripts, where no command is a mistake, usage is the answer."""
_UNSUPPORTED: Final = frozenset({"win32", "cygwin"})
_WINDOWS: Final = (
    "gpukube: error[system]: gpukube does not run on Windows\n"
    "    why: it needs file locks, signals and process groups of Linux or macOS\n"
    "    fix: run it in WSL 2: https://learn.microsoft.com/windows/wsl/install\n"
)
MODULES: Final = {
    "init": "gpukube.cli.commands.init",
    "docs": "gpukube.cli.commands.docs",
    "validate": "gpukube.cli.commands.spec",
    "explain": "gpukube.cli.commands.explain",
    "pool": "gpukube.cli.commands.pool",
    "workload": "gpukube.cli.commands.workload",
    "doctor": "gpukube.cli.commands.doctor",
    "capacity": "gpukube.cli.commands.capacity",
    "catalog": "gpukube.cli.commands.catalog",
    "report": "gpukube.cli.commands.report",
    "release": "gpukube.cli.commands.release",
    "schema": "gpukube.cli.commands.schema",
    "sandbox": "gpukube.cli.sandbox",
}
"""Name of a command or group -> the module that defines it as `app`."""


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback form
    if value:
        typer.echo(f"gpukube {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    *,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", envvar="GPUKUBE_SANDBOX", help="Run against the emulated clouds on loopback.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show more: causes, exact requests.")] = False,
    _show_version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass  # the commands read these values from the context, together with their own (options)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; all errors end here.

    Returns:
        The exit code. Wrong usage is 4, never 2: 2 means drift in CI scripts.
    """
    if sys.platform in _UNSUPPORTED:
        write_stderr(_WINDOWS)
        return ExitCode.ERROR
    if VARIABLE in os.environ:
        _complete_plainly()
        with quiet_and_short():
            return _run(arguments)
    return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    if not arguments and sys.stderr.isatty():
        write_stderr(_NEXT)
        return ExitCode.BAD_INPUT
    verbose = "-v" in arguments or "--verbose" in arguments
    try:
        line = shlex.join(["gpukube", *_without_secrets(arguments)])
        result = command_line().main(args=list(arguments), prog_name="gpukube", standalone_mode=False, obj=line)
    except typer.TyperException as error:
        return _usage(error, arguments)
    except GpukubeError as error:
        write_stderr(error.render())
        if verbose and error.__cause__ is not None:
            write_stderr("caused by:\n" + "".join(traceback.format_exception(error.__cause__)))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("gpukube: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe: `gpukube ... | head`
        sys.stderr.close()
        return ExitCode.ERROR
    except Exception as error:  # noqa: BLE001 - the outermost handler: a message, no stack trace
        # Either the machine failed (a full disk, an unwritable directory), or gpukube has a bug.
        write_stderr(_of_machine(error) if isinstance(error, OSError) else f"{defect(error).render()}\n")
        if verbose:
            write_stderr("".join(traceback.format_exception(error)))
        _drop_unwritten()
        return ExitCode.ERROR
    return result if isinstance(result, int) else ExitCode.DONE


def _without_secrets(arguments: Sequence[str]) -> Sequence[str]:
    """Return the words of the command line without secrets; only an address can contain one."""
    if not any(":" in word for word in arguments):
        return arguments
    from gpukube.masking import shown_words

    return shown_words(arguments)


@cache
def command_line() -> TyperGroup:
    """Build the command line, once per process."""
    return lazy_group(app, MODULES)


def _complete_plainly() -> None:
    """Keep typer from loading rich at every Tab in zsh and fish to strip markup that the help texts do not have."""
    from typer import _completion_classes

    _completion_classes._sanitize_help_text = lambda text: text  # noqa: SLF001 - typer has no setting for it


def _usage(error: typer.TyperException, arguments: Sequence[str]) -> int:
    show = getattr(error, "show", None)
    text = io.StringIO()
    if callable(show):
        show(file=text)
    else:
        text.write(str(error))
    message = text.getvalue().rstrip("\n")
    group = command_line().commands["pool"]
    if line := suggest_command(_without_secrets(arguments), group.commands if isinstance(group, TyperGroup) else ()):
        # typer's own guess knows only the siblings of the mistyped name: "explain" for plan.
        message = f"{message.partition(' Did you mean')[0]}\nDid you mean: {line}"
    from gpukube.masking import without_secrets  # imported only for a mistyped command line

    write_stderr(without_secrets(message))
    return ExitCode.BAD_INPUT


def _drop_unwritten() -> None:
    """Drop output that cannot be written: Python would retry at exit, print a trace, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _of_machine(error: OSError) -> str:
    place = f": {error.filename}" if error.filename else ""
    return (
        f"gpukube: error[system]: {(error.strerror or str(error)).lower()}{place}\n"
        "    fix: solve the problem and run the command again; it continues\n"
    )
