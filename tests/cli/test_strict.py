"""`--strict` where plans are made: a warning stops the run before any call, unless the spec accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.harness import EXAMPLES
from tests.specs.corpus import FOLDER as SPECS

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube

SLICED = EXAMPLES / "aks-timeslicing.yaml"
LONG = ("--set", "pools.t4shared.name=t4sharedover")
SILENCE = ("--set", "pools.t4sharedover.silence=[{rule: GPK502, reason: never replaced}]")


@pytest.mark.parametrize("words", [("pool", "plan"), ("pool", "plan", "diff")], ids=" ".join)
def test_plan_when_strict_then_a_warning_is_an_error_and_nothing_is_asked(
    words: tuple[str, ...], gpukube: Gpukube
) -> None:
    refused = gpukube(*words, "--strict", "-f", SLICED, *LONG)
    assert (refused.code, refused.out) == (4, "")
    assert "error[GPK502 aks-name-length]" in refused.err


def test_plan_when_strict_and_the_warning_is_silenced_then_is_made(gpukube: Gpukube) -> None:
    planned = gpukube("pool", "plan", "--strict", "-f", SLICED, *LONG, *SILENCE, "-o", "json")
    assert (planned.code, "GPK502" in planned.err, "1 finding silenced\n" in planned.err) == (0, False, True)
    (silenced,) = planned.json()["silenced"]
    assert (silenced["finding"]["id"], silenced["reason"]) == ("GPK502", "never replaced")


def test_plan_when_not_strict_then_the_warning_is_told(gpukube: Gpukube) -> None:
    planned = gpukube("pool", "plan", "-f", SLICED, *LONG)
    assert (planned.code, "warning[GPK502 aks-name-length]" in planned.err) == (0, True)


@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_validate_when_strict_and_the_plainest_time_slicing_is_asked_for_then_passes(
    cloud: str, gpukube: Gpukube
) -> None:
    validated = gpukube("validate", "--strict", "-f", SPECS / "valid" / f"{cloud}-plainest-time-slicing.yaml")
    assert (validated.code, "warning[" in validated.err, "error[" in validated.err) == (0, False, False)
