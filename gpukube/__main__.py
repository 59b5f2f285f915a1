"""Entry point of the process: answers --version before any import, then runs the command line."""

from __future__ import annotations

import gc
import os
import sys

from gpukube import __version__

TYPE_CHECKING = False  # type checkers know this name; importing typing would take a third of the time of --version
if TYPE_CHECKING:
    from collections.abc import Sequence


GARBAGE = 200_000
"""Allocations between runs of the cyclic garbage collector (20 ms each); a diff creates 120,000 objects that stay.

With Python's default of 700 the imports alone, which leave no garbage, trigger a hundred runs: 6 % of a validation.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see errors.ExitCode)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        print(f"gpukube {__version__}")  # noqa: T201 - answered before any expensive import
        return 0
    gc.set_threshold(GARBAGE)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # pydantic would search each installed package for one
    if arguments is None:  # run as the command, not as a library
        from gpukube.cli.deferred import compile_when_called  # noqa: PLC0415 - as below

        compile_when_called()
        if next((word for word in words if not word.startswith("-")), "") == "validate":
            gc.disable()  # it keeps to its end what it makes: a seventh of its time was a search for garbage
    from gpukube.cli.app import run  # noqa: PLC0415 - --version must not pay for it

    code = run(words)
    if arguments is None:
        gc.freeze()  # skips the collector's last run at exit: a quarter of a run's time
        if "gpukube.engine.run.calls" in sys.modules:
            from gpukube.cli.ending import leave  # noqa: PLC0415 - loaded only if calls were made

            leave(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
