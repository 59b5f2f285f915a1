"""Declared against live for CI: exit codes, one field, drift inside the cluster, and clusters that do not answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import kubeconfig
from tests.cli.harness import CONFIG_MAP, EXAMPLES, PLUGIN, Cluster, Document, Gpukube, edited_spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SINGLE = EXAMPLES / "aks-mig-single.yaml"
SLICED = EXAMPLES / "aks-timeslicing.yaml"


def test_diff_when_just_created_then_empty_and_zero(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    same = gpukube("pool", "plan", "diff", "-f", SLICED)
    assert (same.code, same.out) == (0, "no differences\n")


def test_diff_when_a_label_changes_in_the_spec_then_two_and_that_one_field(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    other = gpukube("pool", "plan", "diff", "-f", SLICED, "--set", "pools[0].labels.team=audio", "-o", "json")
    assert other.code == 2
    (pool,) = other.pools()
    assert [(c["field"], c["old"], c["new"], c["kind"]) for c in pool["changes"]] == [
        ("labels[team]", "vision", "audio", "in-place")
    ]
    shown = gpukube("pool", "plan", "diff", "-f", SLICED, "--set", "pools[0].labels.team=audio")
    assert '~ labels[team]: "vision" -> "audio"  [in-place]' in shown.out
    assert shown.out.count("~ labels") == 1


def test_diff_when_the_options_stand_before_it_then_the_same(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    before = gpukube("pool", "plan", "-f", SLICED, "diff")
    assert (before.code, before.out) == (0, "no differences\n")
    changed = gpukube("pool", "plan", "-f", SLICED, "--set", "pools[0].labels.team=audio", "-o", "json", "diff")
    assert (changed.code, changed.json()["kind"]) == (2, "Diff")


def test_diff_when_nothing_is_there_then_two(gpukube: Gpukube) -> None:
    missing = gpukube("pool", "plan", "diff", "-f", SINGLE)
    assert missing.code == 2
    assert "+ create   a100mig" in missing.out
    assert gpukube.writes() == []


def test_diff_when_the_pool_is_deleted_behind_its_back_then_two(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    daemon.tamper(gpukube.info, "train", "a100mig", delete=True)
    gone = gpukube("pool", "plan", "diff", "-f", SINGLE)
    assert (gone.code, "+ create   a100mig" in gone.out) == (2, True)


def test_diff_when_the_pool_is_changed_behind_its_back_then_two_and_the_field(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    daemon.tamper(gpukube.info, "train", "a100mig", count=2)
    scaled = gpukube("pool", "plan", "diff", "-f", SINGLE, "-o", "json")
    assert scaled.code == 2
    assert [(c["field"], c["old"], c["new"]) for p in scaled.pools() for c in p["changes"]] == [("nodes.count", 2, 1)]


def test_diff_when_the_autoscaler_moved_the_count_then_no_difference(gpukube: Gpukube) -> None:
    spot = EXAMPLES / "aks-spot-autoscaling.yaml"
    gpukube.made("-f", spot)
    daemon.tamper(gpukube.info, "train", "a100spot", count=3)
    moved = gpukube("pool", "plan", "diff", "-f", spot)
    assert (moved.code, moved.out) == (0, "no differences\n")


def test_diff_when_the_spec_no_longer_declares_a_live_pool_then_two(gpukube: Gpukube, tmp_path: Path) -> None:
    gpukube.made("-f", SLICED)
    renamed = edited_spec("aks-timeslicing", tmp_path, lambda spec: spec["pools"][0].update(name="t4other"))
    fewer = gpukube("pool", "plan", "diff", "-f", renamed)
    assert fewer.code == 2
    assert "extra    t4shared" in fewer.out
    assert "+ create   t4other" in fewer.out
    assert 'belongs to "aks-timeslicing", and the spec does not declare it' in fewer.out


def test_diff_when_filtered_then_what_is_left_out_is_not_called_undeclared(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED, "-f", SINGLE)
    filtered = gpukube("pool", "plan", "diff", "-f", SLICED, "-f", SINGLE, "--pool", "a100*")
    assert (filtered.code, filtered.out) == (0, "no differences\n")


def _edit_entry(cluster: Cluster) -> None:
    entry = cluster.entry_of("a100mig")
    cluster.patch_config({entry: cluster.config()[entry].replace("single", "mixed")})


def _drop_entry(cluster: Cluster) -> None:
    cluster.patch_config({cluster.entry_of("a100mig"): None})


def _forget_tolerations(cluster: Cluster) -> None:
    cluster.patch_daemonset({"spec": {"template": {"spec": {"tolerations": None}}}})


def _move_affinity(cluster: Cluster) -> None:
    cluster.patch_daemonset({"spec": {"template": {"spec": {"affinity": None}}}})


def _delete_daemonset(cluster: Cluster) -> None:
    cluster.delete_daemonset()


def _delete_config_map(cluster: Cluster) -> None:
    cluster.delete_config_map()


def _uninstall(cluster: Cluster) -> None:
    cluster.delete_daemonset()
    cluster.delete_config_map()
    cluster.delete_release_records()


DRIFT: dict[str, tuple[Callable[[Cluster], None], str]] = {
    "config entry edited": (_edit_entry, CONFIG_MAP),
    "config entry dropped": (_drop_entry, CONFIG_MAP),
    "config map deleted": (_delete_config_map, CONFIG_MAP),
    "tolerations forgotten": (_forget_tolerations, "tolerations"),
    "affinity moved": (_move_affinity, "affinity"),
    "daemonset deleted": (_delete_daemonset, PLUGIN),
    "release uninstalled": (_uninstall, "install"),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", DRIFT)
def test_diff_when_something_in_the_cluster_was_edited_then_two(name: str, gpukube: Gpukube, cluster: Cluster) -> None:
    change, said = DRIFT[name]
    gpukube.made("-f", SINGLE)
    change(cluster)
    drifted = gpukube("pool", "plan", "diff", "-f", SINGLE)
    assert (drifted.code, said in drifted.out) == (2, True), drifted.out
    assert gpukube("pool", "plan", "diff", "-f", SINGLE, "--skip-cluster").code == 0


@pytest.mark.turns(3)
@pytest.mark.parametrize("change", [_delete_config_map, _delete_daemonset, _uninstall])
def test_create_when_something_in_the_cluster_is_gone_then_mended(
    change: Callable[[Cluster], None], gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SINGLE)
    change(cluster)
    mended = gpukube("pool", "create", "-f", SINGLE)
    assert (mended.code, "nvidia.com/gpu: 56 verified" in mended.out) == (0, True), mended.out + mended.err
    assert not [line for line in gpukube.writes() if line.startswith("arm")]
    assert gpukube("pool", "plan", "diff", "-f", SINGLE).code == 0


def test_create_when_a_hand_holds_the_config_entry_then_taken_back(gpukube: Gpukube, cluster: Cluster) -> None:
    gpukube.made("-f", SINGLE)
    _edit_entry(cluster)
    assert gpukube("pool", "plan", "diff", "-f", SINGLE).code == 2
    mended = gpukube("pool", "create", "-f", SINGLE)
    assert mended.code == 0, mended.out + mended.err
    assert gpukube("pool", "plan", "diff", "-f", SINGLE).code == 0


@pytest.fixture
def silent_cluster(gpukube: Gpukube) -> Gpukube:
    """A cluster whose pools are as declared and whose Kubernetes API drops every connection."""
    gpukube.made("-f", SINGLE)
    daemon.add_fault(gpukube.info, "drop-before", service="kube", times=0)
    return gpukube


def test_plan_when_the_cluster_does_not_answer_then_unknown_and_no_release_is_proposed(
    silent_cluster: Gpukube,
) -> None:
    seen = silent_cluster("pool", "plan", "-f", SINGLE)
    assert seen.code == 1
    assert "inside the cluster: unknown: " in seen.out
    assert "plan: 1 unchanged, the inside of 1 cluster is unknown\n" in seen.out
    document = silent_cluster("pool", "plan", "-f", SINGLE, "-o", "json").json()
    assert document["clusters"][0]["release"] is None
    assert document["clusters"][0]["unknown"]
    (pool,) = document["clusters"][0]["pools"]
    assert pool["devices"]["now"] is None
    skipped = silent_cluster("pool", "plan", "-f", SINGLE, "--skip-cluster")
    assert skipped.code == 0


def test_plan_when_the_authority_is_another_then_the_certificate_is_named(gpukube: Gpukube, tmp_path: Path) -> None:
    document = json.loads(json.dumps(kubeconfig(gpukube.info)["kubeconfig"]))
    for entry in document["clusters"]:
        del entry["cluster"]["certificate-authority-data"]
    (tmp_path / "kubeconfig").write_text(json.dumps(document))
    named = {"kubeconfig": str(tmp_path / "kubeconfig"), "context": document["contexts"][0]["name"]}
    spec = edited_spec("aks-mig-single", tmp_path, lambda written: written["clusters"]["train-aks"].update(named))
    for form in ("table", "markdown", "json"):
        shown = gpukube("pool", "plan", "-f", spec, "-o", form).out
        assert "CERTIFICATE_VERIFY_FAILED" in shown.replace("\\_", "_"), form


def test_diff_when_the_cluster_does_not_answer_then_one_and_zero_when_it_is_skipped(silent_cluster: Gpukube) -> None:
    unknown = silent_cluster("pool", "plan", "diff", "-f", SINGLE)
    assert unknown.code == 1
    assert "unknown: " in unknown.out
    assert unknown.out.endswith("no differences in what could be read\n")
    for form, said in (("markdown", "### gpukube diff: {}\n"), ("github", "gpukube: {}: 1 unchanged")):
        shown = silent_cluster("pool", "plan", "diff", "-f", SINGLE, "-o", form)
        assert (shown.code, said.format("no differences in what could be read") in shown.out) == (1, True)
    skipped = silent_cluster("pool", "plan", "diff", "-f", SINGLE, "--skip-cluster")
    assert skipped.code == 0
    assert "inside the cluster: unknown: skipped (--skip-cluster)" in skipped.out


def test_create_when_the_cluster_does_not_answer_then_refused_before_any_cloud_write(
    silent_cluster: Gpukube,
) -> None:
    refused = silent_cluster("pool", "create", "-f", SLICED)
    assert refused.code == 1
    assert "not-attempted train-aks/t4shared" in refused.out
    assert "error[" in refused.out
    assert silent_cluster.writes() == []


def test_diff_when_the_cloud_does_not_answer_then_its_own_code_never_two(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "status", service="arm", status=403, code="AuthorizationFailed", times=0)
    refused = gpukube("pool", "plan", "diff", "-f", SINGLE)
    assert refused.code == 5
    assert "error[permission]" in refused.out


def test_plan_when_the_cloud_does_not_let_us_in_then_what_is_declared_and_nothing_is_counted(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "status", service="arm", status=401, code="ExpiredAuthenticationToken", times=0)
    seen = gpukube("pool", "plan", "-f", SINGLE)
    assert seen.code == 5
    assert "? unknown  a100mig  Standard_ND96asr_v4  1 node\n" in seen.out
    assert "nvidia.com/gpu: 56 per node, 56 in all" in seen.out
    assert seen.out.endswith("plan: 1 unknown, 1 cluster could not be read\nGPUs: unknown\n")
    document = gpukube("pool", "plan", "-f", SINGLE, "-o", "json").json()
    assert document["summary"]["gpus"] == {"before": None, "min": 0, "max": 0}
    posted = gpukube("pool", "plan", "-f", SINGLE, "-o", "markdown")
    assert posted.code == 5
    assert "### gpukube plan: 1 unknown, 1 cluster could not be read\n" in posted.out
    assert "| ❓ | `train-aks` | `a100mig` | unknown | `Standard_ND96asr_v4` |" in posted.out
    annotated = gpukube("pool", "plan", "diff", "-f", SINGLE, "-o", "github")
    assert annotated.code == 5
    assert "gpukube: no differences in what could be read: 1 unknown, 1 cluster could not be read" in annotated.out


def test_plan_when_no_pool_is_on_a_cluster_then_it_is_named_and_not_called(gpukube: Gpukube, tmp_path: Path) -> None:
    def add(spec: Document) -> None:
        spec["clusters"]["spare"] = {**spec["clusters"]["train-aks"], "name": "spare"}

    two = edited_spec("aks-timeslicing", tmp_path, add)
    daemon.add_fault(
        gpukube.info, "status", service="arm", path=r"/spare", status=403, code="AuthorizationFailed", times=0
    )
    made = gpukube("pool", "create", "-f", two)
    assert made.code == 0, made.out + made.err
    planned = gpukube("pool", "plan", "-f", two)
    assert (planned.code, planned.out.splitlines()[-1]) == (0, "not read: spare (no pool of this plan is on it)")
    assert gpukube("pool", "plan", "-f", two, "-o", "json").json()["notRead"] == ["spare"]
    same = gpukube("pool", "plan", "diff", "-f", two)
    assert (same.code, same.out.splitlines()) == (
        0,
        ["no differences", "not read: spare (no pool of this plan is on it)"],
    )
    assert gpukube("pool", "verify", "-f", two).code == 0
    for words in (("plan", "--prune"), ("list",), ("delete", "t4shared", "--yes")):
        assert gpukube("pool", *words, "-f", two).code in (3, 5), words


TYPOS = {
    "option": (("pool", "plan", "diff", "--fiel", "x.yaml"), "--fiel"),
    "command": (("pool", "plan", "dif", "-f", "x.yaml"), "dif"),
    "option of the group": (("pool", "plan", "--skip-clusters", "diff"), "--skip-clusters"),
    "format": (("pool", "plan", "diff", "-f", str(SINGLE), "-o", "xml"), '"xml" is not an output format'),
    "value": (("pool", "create", "-f", str(SINGLE), "--timeout", "soon"), "soon"),
    "no spec": (("pool", "plan", "diff"), "no spec given"),
    "no name": (("pool", "get", "-f", str(SINGLE)), "Missing argument 'name'"),
    "no such cluster": (("pool", "plan", "diff", "-f", str(SINGLE), "--cluster", "prod*"), "matches no cluster"),
    "no such pool": (("pool", "plan", "diff", "-f", str(SINGLE), "--pool", "h100"), "matches no pool"),
    "no such file": (("pool", "plan", "diff", "-f", "nowhere.yaml"), "nowhere.yaml"),
    "override": (("pool", "plan", "diff", "-f", str(SINGLE), "--set", "pools[7].name=x"), "pools[7]"),
}


@pytest.mark.parametrize("name", TYPOS)
def test_command_line_when_mistyped_then_four_on_stderr(name: str, gpukube: Gpukube) -> None:
    words, said = TYPOS[name]
    wrong = gpukube(*words)
    assert (wrong.code, wrong.out, said in wrong.err) == (4, "", True), wrong
    assert "Traceback" not in wrong.err
    assert gpukube.writes() == []


def test_diff_when_another_owner_shares_the_cluster_then_their_release_entries_are_no_drift(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SINGLE)
    gpukube.made("-f", SLICED)
    for spec in (SINGLE, SLICED):
        same = gpukube("pool", "plan", "diff", "-f", spec)
        assert (same.code, same.out) == (0, "no differences\n")
    assert cluster.devices("a100mig") == [{"gpu": 56}]
    assert cluster.devices("t4shared") == [{"gpu": 4}, {"gpu": 4}]
