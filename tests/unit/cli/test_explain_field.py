"""`gpukube explain FIELD` on the command line: what is shown, what is completed, what stays a command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.__main__ import main
from gpukube.spec.reference.fieldguide import explain_field, field_names

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["explain", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


PROFILE = """\
pools[].capacity.maxPrice <number>
    Maximum price for a spot machine, US dollars per hour; defaults to the on-demand price.
    range    more than 0
    example  1.5

changing it on a live pool
    aks  replaces the pool: the Spot price is set at creation only
"""


def test_field_when_explained_then_is_shown_for_people(explain: Run) -> None:
    assert explain("pools.capacity.maxPrice") == (0, PROFILE, "")


def test_field_when_explained_then_both_spellings_of_the_command_are_one(
    explain: Run,
) -> None:
    assert explain("field", "nodes.count") == explain("nodes.count")
    assert explain("-v", "nodes.count") == explain("nodes.count", "-v")
    assert "[docs: aks/scale-node-pools]" in explain("nodes.count", "-v")[1]
    assert "more: in place: AKS adds nodes" in explain("nodes.count")[1]


def test_features_when_shown_then_told_where_exact_and_where_not(
    explain: Run,
) -> None:
    shown = explain("sharing.mig.strategy")[1]
    assert "    default  single\n    one of   single, mixed\n" in shown
    assert "    sharing.mig.single: exact on gke\n        aks  done by " in shown
    assert "        gke  missing: GKE's plugin advertises nvidia.com/gpu only\n" in shown
    shown = explain("hugepages")[1]
    assert "        aks  missing: linuxOSConfig has no huge pages; reserve them with a DaemonSet" in shown


def test_mapping_when_explained_then_lists_its_fields(explain: Run) -> None:
    shown = explain("clusters")[1]
    assert "    account <string>  required  on eks\n        Twelve-digit AWS account" in shown
    tree = explain("sharing", "--recursive")[1]
    assert "    mig <Object>\n        profile <string>\n" in tree


def test_words_when_there_are_many_then_the_first_and_where_the_rest_is(
    explain: Run,
) -> None:
    shown = explain("instanceType")[1]
    assert "; -o json has all)" in shown
    assert len(max(shown.splitlines(), key=len)) < 700


def test_document_when_asked_for_then_is_json_or_yaml(explain: Run) -> None:
    data = json.loads(explain("gpu.model", "-o", "json")[1])
    assert (data["kind"], data["field"], data["type"]) == ("FieldExplanation", "pools[].gpu.model", "string")
    assert yaml.safe_load(explain("gpu.model", "-o", "yaml")[1]) == data
    assert explain("gpu.model", "-o", "junit")[0] == 4


def test_field_when_unknown_then_four_and_the_nearest(explain: Run) -> None:
    code, out, err = explain("pools.sharing.migs")
    assert (code, out) == (4, "")
    assert err == ('FIELD: error[no-field]: pools[].sharing has no field "migs"\n    fix: did you mean mig?\n')


def test_owner_when_named_then_is_the_command_and_no_field(explain: Run) -> None:
    code, _, err = explain("owner", "a100")
    assert (code, "error[no-file]" in err) == (4, True)
    assert "owner <string>" in explain("driver")[1]


def test_help_when_shown_then_names_field_and_commands(explain: Run) -> None:
    code, out, _ = explain("--help")
    assert (code, out.partition("\n")[0]) == (0, "Usage: gpukube explain [OPTIONS] FIELD | COMMAND [ARGS]...")
    assert all(f"\n  {command} " in out for command in ("field", "owner"))
    assert explain()[0] == 4


def test_every_field_when_explained_then_something_is_said(explain: Run) -> None:
    for name in field_names():
        code, out, err = explain(name)
        assert (code, err) == (0, ""), name
        assert out.startswith(explain_field(name).path)
        assert len(out.splitlines()) > 1
