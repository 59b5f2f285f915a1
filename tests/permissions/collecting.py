"""The permissions that gpukube has used in all sandboxes of a run, compared with those that it prints.

In scope: the plugin of pytest that gathers and compares them; tests/conftest registers it. Out of scope: what
is printed (`policies`).

Each worker's one sandbox remembers what gpukube's own clients have needed of it, in this process or in others. A worker
notes its sandbox where the first process of the run looks, and what was used when it stops. Of a worker that crashed
the sandbox still runs: it is asked at the end, and stopped.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

_INPUT = "permissions"


class Collecting:
    """The plugin of one process: of the run, or of a worker.

    Args:
        config: Of this process.
    """

    def __init__(self, config: pytest.Config) -> None:
        given = getattr(config, "workerinput", {}).get(_INPUT)
        self._config = config
        self._is_worker = given is not None
        self._directory = Path(given or tempfile.mkdtemp(prefix="gpukube-permissions-"))
        self._lines: list[str] = []
        self._notes: list[str] = []

    def pytest_configure_node(self, node: Any) -> None:  # noqa: ANN401 - xdist's, which ships no types
        """Tell a worker where to note its sandbox."""
        node.workerinput[_INPUT] = str(self._directory)

    def note(self, info: SandboxInfo, used: frozenset[str] | None = None) -> None:
        """Note a sandbox that runs; with what was used, one that is about to stop."""
        found = {"state": info.state_dir, "used": None if used is None else sorted(used)}
        (self._directory / f"{info.sandbox_id}.json").write_text(json.dumps(found))

    @pytest.hookimpl(tryfirst=True)  # before the directories of tests are removed
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare, in the process of the run; what is not covered fails it."""
        if self._is_worker:
            return
        notes = [json.loads(path.read_text()) for path in sorted(self._directory.iterdir())]
        shutil.rmtree(self._directory)
        if not notes:
            return
        gathered = [_used(note) for note in notes]
        used = frozenset().union(*(found for found in gathered if found is not None))
        from tests.permissions import policies  # noqa: PLC0415 - for runs with a sandbox only

        everything = policies.printed_for_all()
        missing = sorted(name for name in used - policies.NOT_PRINTED if not everything.covers(name))
        self._lines += [f"used, and not printed by doctor --print-policy apply: {name}" for name in missing]
        if None not in gathered and self._is_whole(session):
            for name in everything.unused(used):
                line = f"printed by doctor --print-policy apply, and never used: {name}"
                (self._notes if policies.is_of_kubernetes(name) else self._lines).append(line)
        if self._lines and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _is_whole(self, session: pytest.Session) -> bool:
        """Whether every test was run, and well: only then nothing that is printed is used by another."""
        option = self._config.option
        narrowed = option.file_or_dir or option.keyword or option.lf or option.deselect or option.ignore
        return not narrowed and option.markexpr in {"", "not slow"} and session.exitstatus == pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List what does not fit; that a right of Kubernetes was not used fails no run, as charts are there in part."""
        if self._lines or self._notes:
            terminalreporter.section("permissions (tests/permissions/collecting.py)")
            for line in self._lines + self._notes:
                terminalreporter.write_line(line)


def _used(note: dict[str, Any]) -> frozenset[str] | None:
    """What was used in a sandbox; None where it ended without telling."""
    if note["used"] is not None:
        return frozenset(note["used"])
    state = Path(note["state"])
    info = daemon.load_info(state)
    if info is None:
        return None
    used = daemon.used_permissions(info)
    daemon.down(state)
    return used
