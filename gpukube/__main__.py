"""The process: version before anything is imported, then the command line, and the one place where errors end.

Lives here: exit codes of every way to end. Must not live here: commands (cli/) or what they do (api.py).
"""

from __future__ import annotations

import gc
import os
import sys

from gpukube import __version__

TYPE_CHECKING = False  # the checkers know this name; importing typing would cost --version a third of its time
if TYPE_CHECKING:
    from collections.abc import Sequence


GARBAGE = 200_000
"""New objects after which circles of garbage are looked for, 20 ms each time; a diff makes 120,000 that stay.

By Python's 700 the imports alone, which leave no garbage, set off a hundred searches: 6 % of a validation.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see errors.ExitCode)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        print(f"gpukube {__version__}")  # noqa: T201 - the answer, before any import that costs
        return 0
    gc.set_threshold(GARBAGE)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # each package of the environment is searched for one
    if arguments is None:  # the process is ours
        from gpukube.cli.deferred import compile_when_called  # noqa: PLC0415 - as below

        compile_when_called()
    from gpukube.cli.app import run  # noqa: PLC0415 - after --version, which must not pay for it

    code = run(words)
    if arguments is None:
        gc.freeze()  # nothing is searched for circles at the end of the process: a quarter of a run's time
        if "gpukube.engine.run.calls" in sys.modules:
            from gpukube.cli.ending import leave  # noqa: PLC0415 - it is loaded where calls were made

            leave(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
