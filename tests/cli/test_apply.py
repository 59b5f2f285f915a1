"""Apply, scale and wait as their users have them: consent, questions, addresses, and a change of sharing to its end."""

from __future__ import annotations

import json
import shlex
import stat
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.harness import EXAMPLES, Gpukube, Result, edited_spec, pool_states
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.harness import Cluster, Document

SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"
ADDRESS = f"aks:{SUBSCRIPTION}/ml/train"
LABEL = ("--set", "pools.t4shared.labels.team=audio")
THREE_SHARES = ("--set", "pools.t4shared.sharing.timeSlicing.replicas=3")
OTHER_TYPE = ("--set", "pools.t4shared.instanceType=Standard_NC8as_T4_v3")


def codes(result: Result) -> list[str]:
    """The codes of the errors that were written, in order."""
    shown = [line.partition("error[")[2].partition("]")[0] for line in result.err.splitlines() if "error[" in line]
    return [label.rpartition(" ")[2] for label in shown]  # rules have a number before their name


def named(name: str) -> Callable[[Document], object]:
    """Give a spec another owner."""
    return lambda document: document["metadata"].update(name=name)


@pytest.fixture
def made(gpukube: Gpukube) -> Gpukube:
    gpukube.made("-f", SLICED)
    return gpukube


def test_apply_when_nothing_is_there_then_made_and_the_same_afterwards(gpukube: Gpukube) -> None:
    done = gpukube("pool", "apply", "--yes", "-f", SLICED)
    assert done.code == 0, done.out + done.err
    assert "done          train-aks/t4shared  created" in done.out
    assert gpukube("pool", "plan", "diff", "-f", SLICED).code == 0


def test_apply_when_nothing_differs_then_nothing_is_asked_or_sent(made: Gpukube) -> None:
    done = made("pool", "apply", "-f", SLICED)
    assert (done.code, made.writes()) == (0, [])


def test_apply_when_a_label_differs_then_one_put_and_the_same_afterwards(made: Gpukube) -> None:
    done = made("pool", "apply", "--yes", "-f", SLICED, *LABEL)
    assert done.code == 0, done.out + done.err
    assert [write.split()[1] for write in made.writes()] == ["PUT"]
    assert made("pool", "plan", "diff", "-f", SLICED, *LABEL).code == 0


def test_apply_when_sharing_changes_then_consent_is_asked_for_and_the_old_entry_goes_last(
    made: Gpukube, cluster: Cluster
) -> None:
    before = set(cluster.config())
    refused = made("pool", "apply", "--yes", "-f", SLICED, *THREE_SHARES)
    assert (refused.code, codes(refused), made.writes()) == (1, ["needs-disruption"], [])
    done = made("pool", "apply", "--yes", "--allow-disruption", "-f", SLICED, *THREE_SHARES)
    assert done.code == 0, done.out + done.err
    assert made("pool", "verify", "-f", SLICED, *THREE_SHARES).code == 0
    after = set(cluster.config())
    assert len(after) == len(before)
    assert len(before - after) == len(after - before) == 1
    assert made("pool", "plan", "diff", "-f", SLICED, *THREE_SHARES).code == 0


def test_apply_when_a_type_changes_then_only_recreate_does_it(made: Gpukube) -> None:
    refused = made("pool", "apply", "--yes", "-f", SLICED, *OTHER_TYPE)
    assert (refused.code, codes(refused), made.writes()) == (1, ["needs-replace"], [])
    assert "GPU" in refused.err
    done = made("pool", "apply", "--yes", "--replace", "recreate", "-f", SLICED, *OTHER_TYPE)
    assert done.code == 0, done.out + done.err
    assert [write.split()[1] for write in made.writes()] == [
        "PATCH",
        "PATCH",
        "DELETE",
        "PUT",
    ]  # both nodes are cordoned first
    assert made("pool", "plan", "diff", "-f", SLICED, *OTHER_TYPE).code == 0


def test_apply_when_a_pool_is_no_longer_declared_then_only_prune_deletes_it(gpukube: Gpukube, tmp_path: Path) -> None:
    for name in ("kept", "gone"):
        (tmp_path / name).mkdir()
    both = edited_spec("aks-timeslicing", tmp_path / "kept", named("team"))
    other = edited_spec("aks-custom-taint", tmp_path / "gone", named("team"))
    gpukube.made("-f", both, "-f", other)
    kept = gpukube("pool", "apply", "--yes", "-f", both)
    assert (kept.code, "t4custom" in pool_states(gpukube.info)) == (0, True)
    done = gpukube("pool", "apply", "--yes", "--prune", "-f", both)
    assert done.code == 0, done.out + done.err
    assert set(pool_states(gpukube.info)) == {"nodepool1", "t4shared"}
    assert gpukube("pool", "plan", "diff", "-f", both).code == 0


def test_apply_when_a_node_lost_a_label_then_put_back(made: Gpukube, cluster: Cluster) -> None:
    cluster.label_nodes("t4shared", team=None)
    assert made("pool", "plan", "diff", "-f", SLICED).code == 2
    done = made("pool", "apply", "--yes", "-f", SLICED)
    assert done.code == 0, done.out + done.err
    assert made("pool", "plan", "diff", "-f", SLICED).code == 0


def test_apply_when_there_is_no_terminal_and_no_yes_then_four_and_nothing_sent(made: Gpukube) -> None:
    refused = made("pool", "apply", "-f", SLICED, *LABEL)
    assert (refused.code, codes(refused), made.writes()) == (4, ["confirmation"], [])


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_apply_when_asked_on_a_terminal_then_the_plan_is_shown_and_the_answer_counts(
    answer: str, code: int, made: Gpukube
) -> None:
    with Terminal(made.info, "pool", "apply", "-f", SLICED, *LABEL) as terminal:
        terminal.expect("[y/N]")
        assert "labels[team]" in terminal.text
        terminal.type(f"{answer}\r")
        assert terminal.end() == code
    assert made("pool", "plan", "diff", "-f", SLICED, *LABEL).code == (0 if code == 0 else 2)


WRONG: dict[str, tuple[tuple[str | Path, ...], str]] = {
    "prune with a filter": (("apply", "-f", SLICED, "--prune", "--pool", "t4*"), "prune-filtered"),
    "prune of a part": (("apply", "-f", SLICED, "--prune", "--shard", "1/1"), "prune-sharded"),
    "no part": (("plan", "diff", "-f", SLICED, "--shard", "0/3"), "shard"),
    "a part of an unset variable": (("list", "-f", SLICED, "--shard", ""), "shard"),
    "a part of nothing": (("list", "--cluster", ADDRESS, "--shard", "1/3"), "shard-spec"),
    "no such way to replace": (("apply", "-f", SLICED, "--replace", "surge-ish"), "choice"),
    "owner beside a spec": (("delete", "t4shared", "-f", SLICED, "--owner", "team"), "owner-and-spec"),
    "no size": (("scale", "t4shared", "-f", SLICED), "no-size"),
    "bounds of a fixed pool": (("scale", "t4shared", "-f", SLICED, "--max", "3"), "fixed-size"),
    "nothing to wait for": (("wait", "--cluster", ADDRESS), "no-names"),
    "not an address": (("list", "--cluster", "oke:a/b/c"), "address"),
    "a glob without a spec": (("list", "--cluster", "train-*"), "no-file"),
    "neither spec nor address": (("list",), "no-file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_command_when_options_do_not_go_together_then_four_and_said(case: str, made: Gpukube) -> None:
    words, code = WRONG[case]
    refused = made("pool", *words)
    assert (refused.code, codes(refused), made.writes()) == (4, [code], [])


def test_scale_when_asked_then_the_live_pool_changes_and_diff_shows_it(made: Gpukube) -> None:
    done = made("pool", "scale", "t4shared", "--nodes", "3", "-f", SLICED)
    assert done.code == 0, done.out + done.err
    assert "verified on 3 nodes" in done.out
    assert made("pool", "plan", "diff", "-f", SLICED).code == 2
    refused = made("pool", "scale", "t4shared", "--nodes", "1", "-f", SLICED)
    assert (refused.code, codes(refused)) == (4, ["confirmation"])
    assert made("pool", "scale", "t4shared", "--nodes", "1", "--yes", "-f", SLICED).code == 0


def test_commands_when_clusters_are_named_by_address_then_no_spec_is_needed(made: Gpukube) -> None:
    listed = made("pool", "list", "--cluster", ADDRESS, "-o", "name")
    assert "train/t4shared" in listed.out.split()
    assert made("pool", "get", "t4shared", "--cluster", ADDRESS).code == 0
    assert made("pool", "wait", "t4shared", "--cluster", ADDRESS).code == 0
    refused = made("pool", "delete", "t4shared", "--cluster", ADDRESS, "--yes")
    assert (refused.code, codes(refused), made.writes()) == (1, ["not-ours"], [])
    owner = made("pool", "list", "--cluster", ADDRESS, "-o", "json").pools()[0]["owner"]
    by_owner = ("--cluster", ADDRESS, "--owner", owner, "--yes")
    assert made("pool", "scale", "t4shared", "--nodes", "3", *by_owner).code == 0
    assert made("pool", "delete", "t4shared", *by_owner).code == 0
    assert set(pool_states(made.info)) == {"nodepool1"}


def test_create_when_not_to_wait_then_wait_follows_to_the_proof(gpukube: Gpukube) -> None:
    begun = gpukube("pool", "create", "--no-wait", "-f", SLICED)
    assert (begun.code, begun.out.split()[0]) == (0, "train-aks")
    assert "started" in begun.out
    waited = gpukube("pool", "wait", "-f", SLICED)
    assert waited.code == 0, waited.out + waited.err
    assert "verified on" in waited.out
    assert gpukube.writes() == []


def test_adopt_when_nobody_owns_the_pool_then_marks_alone_are_written(made: Gpukube) -> None:
    daemon.tamper(made.info, "train", "t4shared", nodeLabels={"team": "vision"}, tags=None)
    refused = made("pool", "create", "-f", SLICED)
    assert (refused.code, "foreign-pool" in refused.out) == (1, True)
    done = made("pool", "create", "--adopt", "-f", SLICED)
    assert done.code == 0, done.out + done.err
    assert made("pool", "list", "--cluster", ADDRESS, "-o", "json").pools()[0]["owner"]
    assert made("pool", "plan", "diff", "-f", SLICED).code == 2  # which plugin's entry it takes disturbs its pods
    assert made("pool", "apply", "--yes", "--allow-disruption", "-f", SLICED).code == 0
    assert made("pool", "plan", "diff", "-f", SLICED).code == 0


def test_events_when_asked_for_then_a_private_file_of_json_lines(gpukube: Gpukube, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    gpukube.made("-f", SLICED, "--events", log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[-1]["phase"] == "done"
    assert {line["cluster"] for line in lines} == {"train-aks"}
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert any(line["phase"] == "release" for line in lines)


@pytest.mark.parametrize("words", [("scale", "t4shared", "--nodes", "3"), ("delete", "t4shared", "--yes")])
def test_change_when_not_waited_for_then_the_printed_command_ends_it(made: Gpukube, words: tuple[str, ...]) -> None:
    begun = made("pool", *words, "-f", SLICED, "--no-wait", "-o", "json")
    assert (begun.code, begun.pools()[0]["outcome"]) == (0, "started")
    resume = shlex.split(begun.pools()[0]["resume"])
    assert resume[:2] == ["gpukube", "--sandbox"]
    ended = made(*resume[2:])
    assert ended.code == 0, ended.out + ended.err
    assert len(ended.pools()) == 1
