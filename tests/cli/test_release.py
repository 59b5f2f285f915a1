"""Release: asked for, ours only, and nothing but the marks changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, pool_states

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube

SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"
ADDRESS = "aks:11111111-2222-3333-4444-555555555555/ml/train"


def test_release_when_confirmed_then_one_put_and_it_is_left_to_others(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED, "-f", CUSTOM)
    before = pool_states(gpukube.info)
    asked = gpukube("pool", "release", "t4shared", "-f", SLICED)
    assert (asked.code, gpukube.writes()) == (4, [])
    assert "error[confirmation]: cannot release train-aks/t4shared without confirmation" in asked.err

    done = gpukube("pool", "release", "t4shared", "-f", SLICED, "--yes", "-o", "json")
    (pool,) = done.pools()
    assert (done.code, done.json()["kind"], pool["outcome"]) == (0, "Release", "done")
    assert pool["message"] == (
        "released; remove it from the spec; "
        "gpukube.io/advertiser stays: gpukube's device plugin serves its nodes as before"
    )
    assert [(change["old"], change["new"]) for change in pool["changes"]] == [
        ("aks-timeslicing", None),
        ("t4shared", None),
        (None, "t4shared"),
    ]
    assert (len(gpukube.writes()), pool_states(gpukube.info)) == (1, before)

    again = gpukube("pool", "release", "t4shared", "-f", SLICED, "--yes")
    assert (again.code, gpukube.writes()) == (0, [])
    assert "unchanged     train-aks/t4shared  has no gpukube.io/owner label" in again.out
    planned = gpukube("pool", "plan", "-f", SLICED)
    assert "error[foreign-pool]" in planned.out + planned.err
    assert gpukube("pool", "plan", "diff", "-f", CUSTOM).code == 0


def test_release_when_by_address_then_the_owner_has_to_be_named(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    refused = gpukube("pool", "release", "t4shared", "--cluster", ADDRESS, "--yes")
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "error[not-ours]" in refused.err
    assert gpukube("pool", "release", "t4shared", "--cluster", ADDRESS, "--owner", "aks-timeslicing", "--yes").code == 0


def test_release_when_the_answer_is_lost_then_found_done(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    daemon.add_fault(gpukube.info, "drop-after", service="arm", method="PUT", times=1)
    done = gpukube("pool", "release", "t4shared", "-f", SLICED, "--yes")
    assert done.code == 0, done.err


def test_release_when_the_pool_failed_then_refused_before_any_call(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    daemon.tamper(gpukube.info, "train", "t4shared", provisioningState="Failed")
    refused = gpukube("pool", "release", "t4shared", "-f", SLICED, "--yes")
    assert (refused.code, gpukube.writes()) == (1, [])
    assert 'error[release-not-ready]: the pool "t4shared" is Failed: it cannot be released now' in refused.err
