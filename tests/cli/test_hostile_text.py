"""Hostile text of clouds, files and arguments: it never reaches a terminal, a log or a pull request as it is."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, Gpukube

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Document

SINGLE = EXAMPLES / "aks-mig-single.yaml"
EVIL: Final = "\x1b]0;owned\x07\n::stop-commands::x\r\u202e\u200b\x9b31m##vso[task.setvariable variable=PATH]x"
UNSEEN: Final = ("\x1b", "\x07", "\r", "\u202e", "\x9b", "##vso[")


def require_clean(text: str) -> None:
    assert not [char for char in UNSEEN if char in text], text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::stop-commands")], text


COMMANDS: Final = (
    ("pool", "plan", "-v"),
    ("pool", "plan", "-o", "markdown"),
    ("pool", "plan", "diff", "-o", "github"),
    ("pool", "list", "-o", "wide"),
    ("pool", "list", "-o", "markdown"),
    ("pool", "get", "a100mig"),
    ("pool", "verify", "-o", "junit"),
    ("doctor", "-o", "markdown"),
    ("pool", "plan", "-o", "comment"),
    ("pool", "plan", "diff", "-o", "codequality"),
    ("doctor", "-o", "junit"),
    ("pool", "create"),
    ("pool", "delete", "a100mig", "--yes"),
)


def test_answer_when_it_holds_commands_then_no_output_has_them(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    labels = {"gpukube.io/owner": EVIL, "gpukube.io/pool": "a100mig", EVIL: EVIL}
    with suppress(daemon.SandboxError):  # the pool has them; the nodes' API server refuses them, as a real one does
        daemon.tamper(gpukube.info, "train", "a100mig", nodeLabels=labels, tags={EVIL: EVIL})
    for words in COMMANDS:
        shown = gpukube(*words, "-f", SINGLE)
        require_clean(shown.out)
        require_clean(shown.err)
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        text = gpukube("pool", "list", "-f", SINGLE, "-o", form).out
        require_clean(text)
        document: Document = read(text)
        assert EVIL in [pool["owner"] for cluster in document["clusters"] for pool in cluster["pools"]]


@pytest.mark.parametrize(
    "words",
    [
        ("pool", "list", "-f", SINGLE, "--cluster", f"::error::{EVIL}"),
        ("validate", "-f", f"::error file=x::{EVIL}"),
        ("validate", "-f", SINGLE, "--set", f"{EVIL}=1"),
        ("pool", "get", EVIL, "-f", SINGLE),
        (f"::stop-commands::{EVIL}",),
        ("validate", f"--{EVIL}"),
    ],
)
def test_argument_when_it_holds_commands_then_the_message_is_clean(gpukube: Gpukube, words: tuple[str, ...]) -> None:
    refused = gpukube(*words)
    assert refused.code == 4
    require_clean(refused.err)


@pytest.mark.parametrize("form", ["text", "github", "sarif", "json"])
def test_spec_when_it_holds_hidden_characters_then_every_report_of_it_is_clean(
    gpukube: Gpukube, tmp_path: Path, form: str
) -> None:
    spec = tmp_path / "pools.yaml"
    text = SINGLE.read_text("utf-8").replace("name: a100mig", 'name: "a100\\x9bmig\\u202e\\u200b"')
    spec.write_text(text, "utf-8")
    refused = gpukube("validate", "-f", spec, "-o", form)
    assert refused.code == 4
    require_clean(refused.out)
    require_clean(refused.err)


@pytest.mark.parametrize("chart", ["half.tgz", "nothing.tgz"])
def test_chart_when_the_file_is_no_chart_then_bad_input_before_any_call(
    gpukube: Gpukube, tmp_path: Path, chart: str
) -> None:
    (tmp_path / "half.tgz").write_bytes(b"\x1f\x8b\x08\x00half an archive")
    refused = gpukube("pool", "create", "-f", SINGLE, "--chart", tmp_path / chart)
    assert (refused.code, refused.out) == (4, "")
    assert "error[chart-not-found]: no Helm chart found" in refused.err
    assert gpukube.writes() == []
