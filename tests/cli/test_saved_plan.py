"""A plan that was saved: applied exactly, refused when the world moved, and never applied as somebody else."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from botocore.session import Session

from gpukube.cli.options import Choices
from gpukube.cli.stage import rest_of
from gpukube.engine.saved.file import read_plan
from gpukube.engine.saved.recording import digest
from gpukube.engine.saved.records import schema
from gpukube_eks.live import access
from gpukube_sandbox import daemon
from gpukube_sandbox.eks.wire.identity import access_key
from tests.cli.harness import EXAMPLES, Cluster, Gpukube, edited_spec, pool_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"
THREE = EXAMPLES / "three-clouds.yaml"
TEAM = ("--set", "pools.t4shared.labels.team=audio")
POOL = "train-aks/t4shared"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


@pytest.fixture
def other_aws_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Log in to another account than the spec's: whose keys the emulated AWS is asked with."""
    log_in = Session.set_credentials

    def _elsewhere(session: Session, _key: str, secret: str) -> None:
        log_in(session, access_key("999999999999"), secret)

    def _switch() -> None:
        _forget_sessions()
        monkeypatch.setattr(Session, "set_credentials", _elsewhere)

    yield _switch
    _forget_sessions()


def _forget_sessions() -> None:
    """Drop the sessions that one process keeps for all its runs."""
    access._shared_clients.cache_clear()
    access._session.cache_clear()


def saved(gpukube: Gpukube, plan_file: Path, *words: str | Path) -> dict[str, Any]:
    """Plan, save, and read what was saved."""
    made = gpukube("pool", "plan", *words, "--out", plan_file)
    assert made.code == 0, made.out + made.err
    document = json.loads(plan_file.read_text())
    assert isinstance(document, dict)
    return document


def test_apply_when_the_saved_plan_creates_then_that_is_done_without_spec_and_variables(
    gpukube: Gpukube, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = edited_spec("aks-timeslicing", tmp_path, lambda d: d["pools"][0]["labels"].update(team="${TEAM}"))
    monkeypatch.setenv("TEAM", "vision")
    document = saved(gpukube, plan_file, "-f", spec, "--set", "pools.t4shared.nodes.count=1")
    jsonschema.validate(document, schema())
    assert plan_file.stat().st_mode & 0o777 == 0o600
    assert gpukube.writes() == []
    spec.unlink()
    monkeypatch.delenv("TEAM")
    done = gpukube("pool", "apply", plan_file)
    assert done.code == 0, done.out + done.err
    assert pool_states(gpukube.info)["t4shared"] == "Succeeded"
    same = gpukube("pool", "plan", "diff", "-f", SLICED, "--set", "pools.t4shared.nodes.count=1")
    assert (same.code, same.out) == (0, "no differences\n")


def test_apply_when_it_was_applied_already_then_stale_and_nothing_sent(gpukube: Gpukube, plan_file: Path) -> None:
    saved(gpukube, plan_file, "-f", SLICED)
    assert gpukube("pool", "apply", plan_file).code == 0
    again = gpukube("pool", "apply", plan_file)
    assert (again.code, gpukube.writes()) == (1, [])
    assert f"{POOL}: error[stale-plan]: live pool t4shared exists now" in again.err
    assert "train-aks: error[stale-plan]: release action install -> none" in again.err
    assert "fix: plan again" in again.err


def test_apply_when_the_saved_plan_updates_then_that_label_and_nothing_else(gpukube: Gpukube, plan_file: Path) -> None:
    gpukube.made("-f", SLICED)
    document = saved(gpukube, plan_file, "-f", SLICED, *TEAM)
    (pool,) = document["clusters"][0]["pools"]
    assert (pool["action"], [change["field"] for change in pool["changes"]]) == ("update", ["labels[team]"])
    done = gpukube("pool", "apply", plan_file)
    assert done.code == 0, done.out + done.err
    assert [write.split()[1] for write in gpukube.writes()] == ["PUT"]
    assert gpukube("pool", "plan", "diff", "-f", SLICED, *TEAM).code == 0


MOVES: dict[str, tuple[Callable[[SandboxInfo], object], str]] = {
    "somebody scaled it": (
        lambda info: daemon.tamper(info, "train", "t4shared", count=3),
        f"{POOL}: error[stale-plan]: nodes.count 2 -> 3",
    ),
    "somebody relabelled it": (
        lambda info: daemon.tamper(
            info,
            "train",
            "t4shared",
            nodeLabels={"gpukube.io/owner": "aks-timeslicing", "gpukube.io/pool": "t4shared", "team": "music"},
        ),
        f"{POOL}: error[stale-plan]: labels[team] vision -> music",
    ),
    "somebody deleted it": (
        lambda info: daemon.tamper(info, "train", "t4shared", delete=True),
        f"{POOL}: error[stale-plan]: the live pool t4shared is gone",
    ),
}


@pytest.mark.parametrize("case", MOVES)
def test_apply_when_the_pool_moved_then_refused_with_what_moved(case: str, gpukube: Gpukube, plan_file: Path) -> None:
    move, said = MOVES[case]
    gpukube.made("-f", SLICED)
    saved(gpukube, plan_file, "-f", SLICED, *TEAM)
    move(gpukube.info)
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert said in refused.err


def test_apply_when_the_release_moved_then_refused_with_its_revision(
    gpukube: Gpukube, plan_file: Path, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED)
    other = ("--set", "pools.t4shared.sharing.timeSlicing.replicas=2", "--allow-disruption")
    saved(gpukube, plan_file, "-f", SLICED, *other)
    gpukube.made("-f", CUSTOM)
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "train-aks: error[stale-plan]: release revision 1 -> 2" in refused.err


def test_apply_when_nodes_lost_a_label_since_then_refused_with_the_nodes(
    gpukube: Gpukube, plan_file: Path, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED)
    saved(gpukube, plan_file, "-f", SLICED)
    cluster.label_nodes("t4shared", team=None)
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (1, [])
    for node in cluster.nodes("t4shared"):
        assert node.metadata is not None
        assert f"{POOL}: error[stale-plan]: node {node.metadata.name}: labels[team] vision -> none" in refused.err


def test_apply_when_only_nature_moved_then_applied(gpukube: Gpukube, plan_file: Path, cluster: Cluster) -> None:
    gpukube.made("-f", SLICED)
    saved(gpukube, plan_file, "-f", SLICED, *TEAM)
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)
    cluster.label_nodes("t4shared", **{"kubernetes.azure.com/node-image-version": "newer"})
    done = gpukube("pool", "apply", plan_file)
    assert done.code == 0, done.out + done.err


def test_apply_when_the_plan_is_of_the_sandbox_then_refused_outside_and_nothing_asked(
    gpukube: Gpukube, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(gpukube, plan_file, "-f", SLICED)
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", gpukube.info.arm_url)
    refused = gpukube("pool", "apply", plan_file, sandbox=False)
    assert refused.code == 4
    assert "error[saved-plan-place]: the plan was made in the sandbox, but this run is not in it" in refused.err
    assert daemon.requests_since(gpukube.info, gpukube.mark) == []


def test_apply_when_the_plan_is_of_other_endpoints_then_refused(
    gpukube: Gpukube, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", gpukube.info.arm_url)
    monkeypatch.setenv("GPUKUBE_SANDBOX_SECRET", gpukube.info.secret)
    made = gpukube("pool", "plan", "-f", SLICED, "--out", plan_file, sandbox=False)
    assert made.code == 0, made.out + made.err
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", "http://127.0.0.1:9")
    refused = gpukube("pool", "apply", plan_file, sandbox=False)
    assert refused.code == 4
    assert "error[saved-plan-place]: the plan was made with endpoint 127.0.0.1:" in refused.err
    inside = gpukube("pool", "apply", plan_file)
    assert (inside.code, "made outside the sandbox" in inside.err) == (4, True)


def test_apply_when_logged_in_to_another_account_then_the_clouds_refusal_and_five(
    gpukube: Gpukube, plan_file: Path
) -> None:
    saved(gpukube, plan_file, "-f", SLICED)
    daemon.add_fault(gpukube.info, "status", service="arm", status=404, code="SubscriptionNotFound", times=0)
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (5, [])
    assert "error[subscription]" in refused.err
    assert "stale" not in refused.err


def test_apply_when_logged_in_to_another_aws_account_then_told_which_and_five(
    gpukube: Gpukube, plan_file: Path, other_aws_account: Callable[[], None]
) -> None:
    daemon.add_eks_cluster(gpukube.info, "111122223333", "us-east-1", "train")
    saved(gpukube, plan_file, "-f", EXAMPLES / "eks-timeslicing.yaml")
    other_aws_account()
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (5, [])
    assert "to account 999999999999, not 111122223333" in refused.err


def test_apply_when_the_autoscaler_added_nodes_since_then_applied(gpukube: Gpukube, plan_file: Path) -> None:
    spec = ("-f", EXAMPLES / "aks-spot-autoscaling.yaml")
    gpukube.made(*spec)
    saved(gpukube, plan_file, *spec, "--set", "pools.a100spot.nodes.autoscaling.max=6")
    daemon.tamper(gpukube.info, "train", "a100spot", count=3)
    done = gpukube("pool", "apply", plan_file)
    assert done.code == 0, done.out + done.err


def test_apply_when_a_pool_is_pruned_then_that_one_and_refused_when_another_came(
    gpukube: Gpukube, plan_file: Path, tmp_path: Path
) -> None:
    both = edited_spec("aks-timeslicing", tmp_path, lambda d: d["pools"].append({**d["pools"][0], "name": "old"}))
    gpukube.made("-f", both)
    prune = ("-f", SLICED, "--prune")
    document = saved(gpukube, plan_file, *prune)
    assert [pool["action"] for pool in document["clusters"][0]["pools"]] == ["no-op", "delete"]
    assert gpukube("pool", "apply", plan_file).code == 0
    assert "old" not in pool_states(gpukube.info)
    saved(gpukube, plan_file, *prune)
    gpukube.made("-f", both)
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "train-aks/old: error[stale-plan]: pool old is new: it would be deleted" in refused.err


def test_apply_when_the_file_was_edited_then_four_even_with_a_harmless_value(gpukube: Gpukube, plan_file: Path) -> None:
    document = saved(gpukube, plan_file, "-f", SLICED)
    plan_file.write_text(json.dumps({**document, "created": "2030-01-01T00:00:00Z"}))
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (4, [])
    assert f"{plan_file}: error[saved-plan-edited]: it was changed after it was written" in refused.err


def test_apply_when_a_forged_request_has_its_checksum_then_refused_for_it_is_planned_anew(
    gpukube: Gpukube, plan_file: Path
) -> None:
    document = saved(gpukube, plan_file, "-f", SLICED)
    document["clusters"][0]["pools"][0]["requests"][0]["params"]["cluster"] = "somebody-elses"
    body = {key: value for key, value in document.items() if key != "checksum"}
    plan_file.write_text(json.dumps({**body, "checksum": digest(body)}))
    refused = gpukube("pool", "apply", plan_file)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "cluster somebody-elses -> train" in refused.err


def test_apply_when_others_may_read_the_file_then_warned_and_applied(gpukube: Gpukube, plan_file: Path) -> None:
    saved(gpukube, plan_file, "-f", SLICED)
    plan_file.chmod(0o644)
    done = gpukube("pool", "apply", plan_file)
    assert (done.code, "warning[saved-plan-open]" in done.err) == (0, True)


def test_apply_when_a_spec_is_given_as_the_plan_then_four_and_told(gpukube: Gpukube) -> None:
    refused = gpukube("pool", "apply", SLICED)
    assert refused.code == 4
    assert "error[saved-plan]: it is not JSON" in refused.err


def test_plan_when_a_cluster_cannot_be_planned_then_nothing_is_saved_and_the_former_file_stays(
    gpukube: Gpukube, plan_file: Path
) -> None:
    plan_file.write_text("former")
    daemon.add_fault(gpukube.info, "status", service="arm", status=403, code="AuthorizationFailed", times=0)
    refused = gpukube("pool", "plan", "-f", SLICED, "--out", plan_file)
    assert refused.code != 0
    assert "error[plan-unsaved]" in refused.err
    assert plan_file.read_text() == "former"


def test_plan_when_a_pool_is_in_the_way_then_nothing_is_saved(gpukube: Gpukube, plan_file: Path) -> None:
    gpukube.made("-f", SLICED)
    daemon.tamper(gpukube.info, "train", "t4shared", nodeLabels={}, tags=None)
    refused = gpukube("pool", "plan", "-f", SLICED, "--out", plan_file)
    assert refused.code == 1
    assert f"{POOL}: error[plan-unsaved]: the plan is not saved: " in refused.err
    assert not plan_file.exists()


def test_plan_when_three_clouds_are_in_it_then_one_file_applies_to_all(gpukube: Gpukube, plan_file: Path) -> None:
    document = saved(gpukube, plan_file, "-f", THREE)
    assert [cluster["provider"] for cluster in document["clusters"]] == ["eks", "aks", "gke"]
    done = gpukube("pool", "apply", plan_file)
    assert done.code == 0, done.out + done.err
    again = saved(gpukube, plan_file, "-f", THREE, "--set", "pools.t4slices.labels.team=vision")
    actions = [[pool["action"] for pool in cluster["pools"]] for cluster in again["clusters"]]
    assert actions == [["no-op", "update"]] * 3
    changed = gpukube("pool", "apply", plan_file)
    assert changed.code == 0, changed.out + changed.err
    assert gpukube("pool", "plan", "diff", "-f", THREE, "--set", "pools.t4slices.labels.team=vision").code == 0


def test_apply_when_a_saved_plan_is_cut_off_then_the_command_that_resumes_names_specs_and_options(
    gpukube: Gpukube, plan_file: Path
) -> None:
    saved(gpukube, plan_file, "-f", SLICED, "--allow-disruption")
    plan = read_plan(str(plan_file))
    line = rest_of(plan, Choices(plan_file=str(plan_file), sandbox=True, allow_disruption=True, yes=True))
    assert line == f"gpukube --sandbox pool apply -f {SLICED} --allow-disruption --yes"
    done = gpukube(*shlex.split(line)[2:])
    assert done.code == 0, done.out + done.err
    saved(gpukube, plan_file, "-f", SLICED, "--set", "pools[0].nodes.count=3")
    again = Choices(plan_file=str(plan_file), command=f"gpukube pool apply {plan_file}")
    assert rest_of(read_plan(str(plan_file)), again) == again.command
