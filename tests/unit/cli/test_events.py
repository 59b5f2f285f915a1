"""The event log: one valid JSON line per event, whatever becomes of its reader."""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from gpukube.cli.formats.events import EventLog, both, logged
from gpukube.engine.documents.schema import document_schema
from gpukube.engine.run.events import Event, ignore

if TYPE_CHECKING:
    from pathlib import Path

ASKED = Event(1_800_000_000.0, "train-aks", "a100mig", "create", "asks for\nStandard_ND96asr_v4")
VALIDATOR = Draft202012Validator(document_schema("event"))


class Gone(io.StringIO):
    """A pipe whose reader has left."""

    tries = 0

    def write(self, _text: str) -> int:
        self.tries += 1
        raise BrokenPipeError(32, "Broken pipe")


def test_log_when_something_happens_then_one_valid_line() -> None:
    stream = io.StringIO()
    EventLog(stream)(ASKED)
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert not list(VALIDATOR.iter_errors(event))
    assert (event["at"], event["pool"], event["phase"]) == ("2027-01-15T08:00:00.000Z", "a100mig", "create")


def test_log_when_its_reader_leaves_then_the_run_goes_on_and_nothing_more_is_tried() -> None:
    stream = Gone()
    log = EventLog(stream)
    log(ASKED)
    log(ASKED)
    assert (stream.tries, log.broken) == (1, "[errno 32] broken pipe")


def test_log_when_its_stream_is_closed_then_the_run_goes_on() -> None:
    stream = io.StringIO()
    stream.close()
    log = EventLog(stream)
    log(ASKED)
    assert log.broken


def test_log_when_threads_write_then_lines_stay_whole() -> None:
    stream = io.StringIO()
    log = EventLog(stream)

    def talk() -> None:
        for _ in range(50):
            log(ASKED)

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 200


def test_both_when_something_happens_then_all_hear_it_in_order() -> None:
    heard: list[str] = []
    both(lambda _: heard.append("rows"), lambda _: heard.append("log"))(ASKED)
    assert heard == ["rows", "log"]


def test_file_when_logged_to_then_for_the_user_alone_and_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with logged(str(path), ignore) as listen:
        listen(ASKED)
        assert json.loads(path.read_text())["cluster"] == "train-aks"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_file_when_a_run_is_taken_up_again_then_its_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        with logged(str(path), ignore) as listen:
            listen(ASKED)
    assert len(path.read_text().splitlines()) == 2


def test_file_when_it_cannot_be_written_then_said_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), logged(str(tmp_path / "missing" / "events.jsonl"), ignore):
        pytest.fail("began")


def test_file_when_the_disk_is_full_then_the_run_ends_well_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    if not os.path.exists("/dev/full"):  # noqa: PTH110 - a device
        pytest.skip("this system has no /dev/full")
    with logged("/dev/full", ignore) as listen:
        listen(ASKED)
    assert "the event log ends early: [errno 28] no space left on device" in capsys.readouterr().err


def test_stdout_when_logged_to_then_the_lines_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Event] = []
    with logged("-", heard.append) as listen:
        listen(ASKED)
    assert (json.loads(capsys.readouterr().out)["message"], heard) == (ASKED.message, [ASKED])


def test_no_place_when_given_then_no_log() -> None:
    with logged("", ignore) as listen:
        assert listen is ignore
