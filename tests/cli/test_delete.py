"""Delete: asked for twice, ours only, and fine with what is gone already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, Cluster, Gpukube, edited_spec, pool_states
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"


def test_delete_when_told_yes_then_gone_and_the_others_stay(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED, "-f", CUSTOM)
    done = gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes")
    assert (done.code, "done          train-aks/t4shared  deleted\n" in done.out) == (0, True)
    assert pool_states(gpukube.info) == {"nodepool1": "Succeeded", "t4custom": "Succeeded"}
    assert len([write for write in gpukube.writes() if write.startswith("arm")]) == 1


def test_delete_when_the_entry_of_a_pool_is_left_over_then_dropped_and_that_of_the_other_stays(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED, "-f", CUSTOM)
    gone, kept = cluster.entry_of("t4shared"), cluster.entry_of("t4custom")
    assert {gone, kept} <= cluster.config().keys()
    assert gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes").code == 0
    assert kept in cluster.config()
    assert gone not in cluster.config()


def test_delete_when_there_is_no_terminal_and_no_yes_then_four_and_nothing_sent(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    refused = gpukube("pool", "delete", "t4shared", "-f", SLICED)
    assert refused.code == 4
    assert (
        "error[confirmation]: cannot delete train-aks/t4shared (Standard_NC4as_T4_v3, 2 nodes) without" in refused.err
    )
    assert "fix: add --yes" in refused.err
    assert gpukube.writes() == []


def test_delete_when_the_declared_pool_is_gone_already_then_zero(gpukube: Gpukube) -> None:
    missing = gpukube("pool", "delete", "t4shared", "-f", SLICED)
    assert (missing.code, gpukube.writes()) == (0, [])
    gpukube.made("-f", SLICED)
    assert gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes").code == 0
    assert gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes").code == 0


def test_delete_when_nobody_knows_the_name_then_four(gpukube: Gpukube) -> None:
    unknown = gpukube("pool", "delete", "h100", "-f", SLICED, "--yes")
    assert unknown.code == 4
    assert 'h100: error[no-pool]: no pool "h100" is live on train-aks, and the spec has none' in unknown.err


FOREIGN = {
    "unmarked": ({}, "it has no gpukube.io/owner label"),
    "of another owner": ({"gpukube.io/owner": "vision", "gpukube.io/pool": "t4shared"}, 'it belongs to "vision"'),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_delete_when_the_pool_is_not_ours_then_one_and_untouched(name: str, gpukube: Gpukube) -> None:
    labels, said = FOREIGN[name]
    gpukube.made("-f", SLICED)
    daemon.tamper(gpukube.info, "train", "t4shared", nodeLabels=labels or None, tags=None)
    refused = gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes")
    assert (refused.code, gpukube.writes()) == (1, [])
    assert f"train-aks/t4shared: error[not-ours]: {said}" in refused.err


def test_delete_when_one_of_two_is_not_ours_then_neither_is_deleted(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED, "-f", CUSTOM)
    daemon.tamper(gpukube.info, "train", "t4shared", nodeLabels=None, tags=None)
    refused = gpukube("pool", "delete", "t4custom", "t4shared", "-f", SLICED, "-f", CUSTOM, "--yes")
    assert (refused.code, gpukube.writes()) == (1, [])


def test_delete_when_the_system_pool_is_named_then_refused(gpukube: Gpukube) -> None:
    refused = gpukube("pool", "delete", "nodepool1", "-f", SLICED, "--yes")
    assert (refused.code, gpukube.writes()) == (1, [])


def test_delete_when_the_live_pool_is_protected_then_one_whatever_the_spec_says(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = edited_spec("aks-timeslicing", tmp_path, lambda s: s["pools"][0].update(deletionProtection=True))
    gpukube.made("-f", spec)
    for file in (spec, SLICED):
        refused = gpukube("pool", "delete", "t4shared", "-f", file, "--yes")
        assert (refused.code, gpukube.writes()) == (1, [])
        assert "error[protected]: it would be deleted, but it is protected" in refused.err


def test_delete_when_the_cloud_refuses_then_its_code_and_the_way_to_resume(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    daemon.add_fault(
        gpukube.info, "status", service="arm", method="DELETE", status=403, code="AuthorizationFailed", times=0
    )
    refused = gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes")
    assert refused.code == 5
    assert "failed        train-aks/t4shared  delete did not finish" in refused.out
    assert "to resume: gpukube --sandbox pool delete t4shared" in refused.out


def test_delete_when_asked_on_a_terminal_and_answered_yes_then_gone(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    with Terminal(gpukube.info, "pool", "delete", "t4shared", "-f", SLICED) as terminal:
        terminal.expect("delete train-aks/t4shared (Standard_NC4as_T4_v3, 2 nodes)? [y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert list(pool_states(gpukube.info)) == ["nodepool1"]


def test_delete_when_asked_on_a_terminal_and_answered_no_then_nothing_is_sent(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    gpukube.made("-f", SLICED)
    with Terminal(sandbox, "pool", "delete", "t4shared", "-f", SLICED) as terminal:
        terminal.expect("[y/N]")
        terminal.wait_for_redrawing()
        assert terminal.line.startswith("delete train-aks/t4shared (Standard_NC4as_T4_v3, 2 nodes)? [y/N]")
        terminal.type("n\n")
        assert terminal.end() == 1
        assert "nothing was changed" in terminal.text
        assert "interrupted" not in terminal.text
    assert pool_states(gpukube.info)["t4shared"] == "Succeeded"


def test_delete_when_interrupted_at_the_question_then_130_at_once_and_nothing_is_sent(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    gpukube.made("-f", SLICED)
    with Terminal(sandbox, "pool", "delete", "t4shared", "-f", SLICED) as terminal:
        terminal.expect("[y/N]")
        terminal.wait_for_reading()
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
    assert pool_states(gpukube.info)["t4shared"] == "Succeeded"
