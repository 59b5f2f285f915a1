"""One lost answer at any call of any command: the command, or the next one, brings its change about.

Which calls there are is taken from the log of a run that nothing disturbs. Each that changes something in the cloud or
in the cluster is struck in a run of its own, after it was done: once, and for the cloud also each time the SDK sends it
again. Reads are struck all in one run, each once. All of it: `pytest tests/chaos/test_lost_answers.py -m ""`; -rP shows
the counts.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.chaos.changes import STORIES, begin, cloud_of, require_done, start_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.stage import Stage

NEVER = 9
"""More than an SDK sends a call again."""
PARTS = ("reads", "cloud once", "cloud each time", *(f"cluster {number}" for number in range(6)))
"""Of the calls of a story, so that a run has a few of them."""
READS = r"^/\\\?$|Action=(Get|Describe|List)|listCluster|accessreviews|accesstoken|/token"
"""Posts that change nothing; those of AWS to / without an action are Service Quotas'."""
LOST = [(name, what) for name, what in STORIES if what != "prune"]
CHANGING = [(name, what) for name, what in LOST if what not in ("drain", "undo", "remove")]
"""Those that change something in the cloud, not in the cluster alone."""


@dataclass(frozen=True, order=True)
class Call:
    """A call of a command: of which service, its method, a pattern of its path, and which of those."""

    service: str
    method: str
    path: str
    nth: int = 1

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method in ("GET", "HEAD") or bool(re.search(READS, self.path))


def part_of(calls: Sequence[Call], part: str) -> list[tuple[list[Call], int]]:
    """Choose what is lost in each run of a part: some calls, each so often."""
    changes = [call for call in calls if not call.is_read]
    match part.split():
        case ["reads"]:
            return [(list(dict.fromkeys(replace(call, nth=1) for call in calls if call.is_read)), 1)]
        case ["cloud", *how]:
            times = 1 if how == ["once"] else NEVER
            return [([call], times) for call in changes if call.service != "kube"]
        case _:
            inside = [([call], 1) for call in changes if call.service == "kube"]
            return inside[int(part.split()[1]) :: 6]


def calls_since(stage: Stage, mark: int, service: str) -> list[Call]:
    """List the calls of a run; names that are made up each time are left out of the paths."""
    counts: dict[Call, int] = {}
    calls = []
    for one in daemon.requests_since(stage.info, mark):
        if one["service"] not in (service, "kube") or one["path"] == "/token":
            continue
        body = one["body"]
        action = body.get("Action") if isinstance(body, dict) else None
        path = str(one["path"])
        pattern = (
            f"Action={action}$" if action else r"/eviction\?" if path.endswith("/eviction") else re.escape(path) + r"\?"
        )
        call = Call(str(one["service"]), str(one["method"]), pattern)
        counts[call] = counts.get(call, 0) + 1
        calls.append(replace(call, nth=counts[call]))
    return calls


def strike(stage: Stage, name: str, what: str, calls: Sequence[Call], times: int) -> int:
    """Run the story with these answers lost; again when it does not get over that itself. The code of the first run."""
    cloud, change = cloud_of(name, what), STORIES[name, what]
    begin(stage, name, what)
    for call in calls:
        daemon.add_fault(
            stage.info,
            "drop-after",
            service=call.service,
            method=call.method,
            path=call.path,
            nth=call.nth,
            times=times,
        )
    ended = first = start_change(stage, cloud, change).wait()
    stage.require_polite(first)
    assert stage.struck(), (calls, first.said)
    daemon.clear_faults(stage.info)
    if first.code != 0:
        ended = start_change(stage, cloud, change).wait()
    require_done(stage, name, what, ended)
    return first.code


UNFINISHED = {
    ("eks", "delete", "cloud each time"): "the next deletion leaves the config entry of the pool to `pool apply`",
}
"""What the same command does not bring to its end; `pool apply` does."""


@pytest.mark.timeout(900)
@pytest.mark.turns(9)
@pytest.mark.parametrize("part", ["cloud once", "cloud each time"])
@pytest.mark.parametrize(("name", "what"), CHANGING)
def test_command_when_an_answer_of_the_cloud_is_lost_then_its_change_is_there(
    stage: Stage, name: str, what: str, part: str
) -> None:
    if reason := UNFINISHED.get((name, what, part)):
        pytest.xfail(reason)
    codes = lose(stage, name, what, part)
    assert part != "cloud once" or not any(codes), codes  # the run itself looks after its changes


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", [part for part in PARTS if not part.startswith("cloud")])
@pytest.mark.parametrize(("name", "what"), LOST)
def test_command_when_another_answer_is_lost_then_the_next_run_brings_its_change_about(
    stage: Stage, name: str, what: str, part: str
) -> None:
    lose(stage, name, what, part)


def lose(stage: Stage, name: str, what: str, part: str) -> list[int]:
    """Run a story once for each answer of a part; gives the codes of the first runs."""
    begin(stage, name, what)
    mark = len(daemon.requests_since(stage.info))
    cloud = cloud_of(name, what)
    ended = start_change(stage, cloud, STORIES[name, what]).wait()
    lost = part_of(calls_since(stage, mark, cloud.service), part)
    require_done(stage, name, what, ended)
    codes = [strike(stage, name, what, calls, times) for calls, times in lost]
    struck = sum(len(calls) for calls, _ in lost)
    sys.stdout.write(
        f"lost answers: {name} {what}, {part}: {struck} calls, {sum(map(bool, codes))} left to the next run\n"
    )
    return codes
