"""A replacement that would lose what somebody set behind gpukube's back: refused by name, never with the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, pool_states

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Gpukube, Result

SPEC = EXAMPLES / "aks-timeslicing.yaml"
BIGGER = ("-f", SPEC, "--set", "pools.t4shared.instanceType=Standard_NC8as_T4_v3")
PATH = "aks.messageOfTheDay"
VALUE = "c3dvcmRmaXNo"


@pytest.fixture
def made(gpukube: Gpukube) -> Gpukube:
    gpukube.made("-f", SPEC)
    daemon.tamper(gpukube.info, "train", "t4shared", messageOfTheDay=VALUE, tags={"team": "audio"})
    return gpukube


def lost(result: Result) -> list[str]:
    return [line for line in (result.out + result.err).splitlines() if "members-lost" in line]


@pytest.mark.parametrize("how", ["recreate", "surge"])
def test_replacement_when_it_would_lose_members_then_refused_before_anything_changes(made: Gpukube, how: str) -> None:
    refused = made("pool", "apply", *BIGGER, "--replace", how, "--yes", "-v")
    assert refused.code != 0
    (found,) = lost(refused)
    assert found.endswith(f"error[members-lost]: the new pool would not have what t4shared has: tags[team], {PATH}")
    assert f"--accept-loss 'tags[team]' --accept-loss {PATH}" in refused.err + refused.out
    assert VALUE not in refused.out + refused.err
    assert made.writes() == []


def test_loss_when_accepted_in_a_saved_plan_then_it_is_applied_without_asking_again(
    made: Gpukube, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    accept = ("--accept-loss", PATH, "--accept-loss", "t4shared:tags[team]")
    planned = made("pool", "plan", *BIGGER, "--replace", "recreate", *accept, "--out", file)
    assert planned.code == 0, planned.err
    assert VALUE not in planned.out + planned.err
    assert made("pool", "apply", file, "--accept-loss", PATH).code != 0
    applied = made("pool", "apply", file)
    assert applied.code == 0, applied.out + applied.err
    assert pool_states(made.info)["t4shared"] == "Succeeded"
    again = made("pool", "apply", *BIGGER, "--replace", "recreate", "--yes", *accept)
    assert "no-loss" in again.err
    assert made("pool", "apply", *BIGGER, "--replace", "recreate", "--yes").code == 0


@pytest.mark.parametrize(
    ("argument", "code"), [("aks.messageOfTheDa", "no-loss"), ("other:tags[team]", "no-loss"), (PATH, "members-lost")]
)
def test_loss_when_accepted_in_part_or_misspelt_then_refused(made: Gpukube, argument: str, code: str) -> None:
    refused = made("pool", "plan", *BIGGER, "--replace", "surge", "--accept-loss", argument)
    assert code in refused.out + refused.err
