"""No secret comes out anywhere: not in what a command shows, logs, saves or exports, nor in files that it leaves.

A table of channels, by each of which a secret comes in, and of commands that have it before them.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gpukube_sandbox.environment import kubeconfig
from tests.cli.harness import EXAMPLES, Gpukube, edited_spec
from tests.unit.test_masking import SECRET, SPELLINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

SLICED: Final = EXAMPLES / "aks-timeslicing.yaml"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("pool", "plan", "-v"),
    "plan in JSON": ("pool", "plan", "-o", "json"),
    "plan saved": ("pool", "plan", "--out", "plan.json"),
    "diff": ("pool", "plan", "diff", "-v", "-o", "markdown"),
    "create": ("pool", "create", "-v", "--events", "events.jsonl"),
    "apply": ("pool", "apply", "-v", "-o", "junit"),
    "mistyped": ("pool", "create", "--no-such-option", "x"),
}
ENVIRON: Final = {
    **dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GOOGLE_API_KEY"), SECRET),
    **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), f"http://ann:{SECRET}@127.0.0.1:1"),
}
PLUGIN: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "sh",
    "args": ["-c", f"echo {SECRET}; exit 1"],
    "interactiveMode": "Never",
}
USERS: Final = {
    "a token": {"token": SECRET},
    "a password": {"username": "ann", "password": SECRET},
    "a plugin's output": {"exec": PLUGIN},
    "a key that is none": {"client-certificate-data": SECRET, "client-key-data": SECRET},
}


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work where everything that is written is found again."""
    place = tmp_path / "work"
    (place / "tmp").mkdir(parents=True)
    monkeypatch.chdir(place)
    monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return place


def leaks(place: Path, *said: str) -> list[str]:
    """Name where the secret came out."""
    files = [file for root in (place, Path.home()) for file in root.rglob("*") if file.is_file()]
    found = [str(file) for file in files if SECRET.encode() in file.read_bytes()]
    return found + [text for text in said if SECRET in text]


@pytest.mark.turns(9)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_chart_address_when_it_holds_a_secret_then_it_comes_out_nowhere(
    gpukube: Gpukube, workplace: Path, spelling: str, command: str
) -> None:
    address = SPELLINGS[spelling].replace("host", "127.0.0.1:1")
    ran = gpukube(*COMMANDS[command], "-f", SLICED, "--chart", address)
    assert ran.code != 0 or command.startswith("plan"), ran.err
    assert leaks(workplace, ran.out, ran.err) == []
    assert not (workplace / "plan.json").exists()


@pytest.mark.parametrize("user", USERS)
def test_kubeconfig_when_it_holds_a_secret_then_it_comes_out_nowhere(
    gpukube: Gpukube, workplace: Path, tmp_path: Path, user: str
) -> None:
    document = json.loads(json.dumps(kubeconfig(gpukube.info)["kubeconfig"]))
    for entry in document["users"]:
        entry["user"] = USERS[user]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(document))
    named = {"kubeconfig": str(file), "context": document["contexts"][0]["name"]}
    spec = edited_spec("aks-timeslicing", tmp_path, lambda found: found["clusters"]["train-aks"].update(named))
    for words in COMMANDS.values():
        ran = gpukube(*words, "-f", spec)
        assert leaks(workplace, ran.out, ran.err) == [], words
    assert list((workplace / "tmp").iterdir()) == []


def test_environment_when_it_holds_secrets_then_exports_and_saved_plans_do_not(
    gpukube: Gpukube, workplace: Path
) -> None:
    assert os.environ["HTTPS_PROXY"] == ENVIRON["HTTPS_PROXY"]
    for words in (*COMMANDS.values(), *(("pool", "export", "--to", tool) for tool in ("az", "terraform"))):
        ran = gpukube(*words, "-f", SLICED)
        assert leaks(workplace, ran.out, ran.err) == [], words
    assert (workplace / "plan.json").exists()
