"""The commands as users run them: a spec for Nimbus is validated, planned, created, and verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.__main__ import main
from gpukube.core.provider_parts import Extras
from gpukube_nimbus import NimbusProvider
from gpukube_nimbus.api import NimbusApi

if TYPE_CHECKING:
    from collections.abc import Callable

SPEC = Path(__file__).parents[1] / "pools.yaml"


@pytest.fixture
def gpukube(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Run a command; return its exit code and output, parsed if it is JSON."""

    def run(*words: str) -> tuple[int, Any]:
        code = main(list(words))
        out, _err = capsys.readouterr()
        return code, json.loads(out) if out.startswith("{") else out

    return run


def test_validate_when_the_spec_is_right_then_no_problem(gpukube: Callable[..., tuple[int, Any]]) -> None:
    code, document = gpukube("validate", "-f", str(SPEC), "-o", "json")
    assert code == 0, document


MISTAKES = {
    "site: valley-1": ("site: the valley", "expected the name of a site, such as valley-1"),
    "site: valley": ("region: valley", "did you mean site?"),
    "rack: dense": ("shelf: dense", "write one of rack"),
    "model: A100-40GB": ("model: H100-80GB", "nimbus has no instance type with 8 x H100-80GB"),
    "provider: nimbus": ("provider: nimbuss", "did you mean nimbus?"),
    "profile: 1g.5gb": ("profile: 9g.5gb", "9g.5gb"),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_validate_when_there_is_a_mistake_then_said_as_for_any_cloud(
    right: str, gpukube: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    wrong, expected = MISTAKES[right]
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC.read_text("utf-8").replace(right, wrong), "utf-8")
    code, document = gpukube("validate", "-f", str(path), "-o", "json")
    assert code == 4
    assert expected in json.dumps(document)


def test_validate_when_a_rule_of_the_package_is_broken_then_its_number_is_shown(
    gpukube: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC.read_text("utf-8").replace("rack: dense", "shelf: dense"), "utf-8")
    code, document = gpukube("validate", "-f", str(path), "-o", "json")
    assert code == 4
    assert [(one["code"], one["id"]) for one in document["errors"]] == [("nimbus-native", "NIM102")]


@pytest.mark.parametrize("rule", ["nimbus-name", "NIM101"])
def test_validate_when_a_rule_of_the_package_is_silenced_and_not_found_then_it_is_known_all_the_same(
    rule: str, gpukube: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC.read_text("utf-8") + f"    silence: [{{rule: {rule}, reason: old}}]\n", "utf-8")
    code, document = gpukube("validate", "-f", str(path), "-o", "json")
    assert code == 0, document
    assert '"silence-unused"' in json.dumps(document)


def test_plan_when_nothing_is_there_then_the_call_is_shown(gpukube: Callable[..., tuple[int, Any]], file: Path) -> None:
    code, document = gpukube("pool", "plan", "-f", str(SPEC), "-o", "json")
    assert code == 0, document
    assert '"create_pool"' in json.dumps(document)
    assert NimbusApi(str(file)).list_pools("valley-1", "train") == {}


def test_create_when_run_then_made_and_proven_and_the_next_plan_is_empty(
    gpukube: Callable[..., tuple[int, Any]], file: Path
) -> None:
    code, document = gpukube("pool", "create", "-f", str(SPEC), "-o", "json")
    assert code == 0, document
    (made,) = NimbusApi(str(file)).list_pools("valley-1", "train").values()
    assert (made["state"], made["size"], made["mig"], made["rack"]) == ("ACTIVE", 2, "1g.5gb", "dense")
    assert '"nvidia.com/gpu": 112' in json.dumps(document)
    assert gpukube("pool", "plan", "diff", "-f", str(SPEC))[0] == 0
    assert gpukube("pool", "delete", "a100mig", "-f", str(SPEC), "--yes")[0] == 0
    assert NimbusApi(str(file)).list_pools("valley-1", "train") == {}


def test_commands_when_the_cloud_has_no_extras_then_work_all_the_same(
    gpukube: Callable[..., tuple[int, Any]], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NimbusProvider, "extras", Extras())
    assert gpukube("validate", "-f", str(SPEC), "-o", "json")[0] == 0
    assert gpukube("pool", "create", "-f", str(SPEC), "-o", "json")[0] == 0
    assert gpukube("pool", "plan", "diff", "-f", str(SPEC))[0] == 0
    assert gpukube("pool", "list", "-f", str(SPEC))[0] == 0
    assert gpukube("doctor", "-f", str(SPEC), "--print-policy", "apply")[0] == 0
    assert gpukube("pool", "delete", "a100mig", "-f", str(SPEC), "--yes")[0] == 0
    assert NimbusApi(str(file)).list_pools("valley-1", "train") == {}


def test_other_commands_when_they_list_clouds_then_this_one_too(gpukube: Callable[..., tuple[int, Any]]) -> None:
    assert "nb.a100.8" in gpukube("catalog", "list", "--model", "A100")[1]
    assert "map[string]any" in gpukube("explain", "pools.nimbus")[1]
    assert "NimbusCluster" in gpukube("schema")[1]["$defs"]
