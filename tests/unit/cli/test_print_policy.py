"""`gpukube doctor --print-policy` as it is called: sections, files, documents, and what does not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from gpukube.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Callable

SPEC: Final = str(Path(__file__).parents[3] / "examples" / "three-clouds.yaml")


@pytest.fixture
def doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call the doctor on the example; no cloud is there to be called."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = run(["doctor", "-f", SPEC, *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_sections_when_printed_then_each_has_its_commands_and_its_reasons(
    doctor: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = doctor("--print-policy", "apply", "-v")
    assert code == 0
    for words in ("# IAM policy for account 111122223333", "# custom role for project ml-prod", "# Azure role for"):
        assert words in out
    assert "#   kubectl apply -f kubernetes-train-eks-apply.yaml" in out
    assert "# eks:CreateNodegroup: to create node groups" in out
    assert out.rstrip().endswith("-v explains each line")


def test_files_when_a_directory_is_given_then_written_there_and_named_in_the_commands(
    doctor: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, out, _ = doctor("--print-policy", "plan", "--out", "policies", "--with", "upgrade")
    assert code == 0
    written = sorted(path.name for path in (tmp_path / "policies").iterdir())
    assert len(written) == 7
    assert all(name in out for name in written)
    assert '"Version"' not in out
    policy = json.loads((tmp_path / "policies" / "eks-111122223333-plan.json").read_text("utf-8"))
    assert any("ssm:GetParameter" in statement["Action"] for statement in policy["Statement"])
    roles = yaml.safe_load_all((tmp_path / "policies" / "kubernetes-train-gke-plan.yaml").read_text("utf-8"))
    assert [one["kind"] for one in roles] == ["Namespace", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]


def test_document_when_one_cluster_is_chosen_then_its_policies_alone(
    doctor: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = doctor("--print-policy", "plan", "--cluster", "train-gke", "-o", "json")
    document = json.loads(out)
    assert (code, document["kind"], document["level"]) == (0, "Permissions", "plan")
    assert {policy["cloud"] for policy in document["policies"]} == {"gke", "kubernetes"}


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--print-policy", "write"), "set --print-policy to plan or apply"),
        (("--with", "upgrade"), "set --print-policy to plan or apply"),
        (("--print-policy", "plan", "--with", "prices"), "migrate-release, catalog, capacity or alternatives"),
        (("--print-policy", "plan", "--fix"), "remove one of them"),
        (("--print-policy", "plan", "-o", "markdown"), "choose one of table, json, yaml"),
    ],
)
def test_options_when_they_make_no_sense_then_said_what_does(
    words: tuple[str, ...], fix: str, doctor: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = doctor(*words)
    assert (code, out) == (4, "")
    assert fix in err
