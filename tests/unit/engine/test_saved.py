"""The file of a saved plan: what it holds, who may read it, and every way in which it is refused."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cluster.helm.chart import ChartSource
from gpukube.core.fields import label
from gpukube.core.values import ClusterFacts, Request, Settings
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.plan.prepare import prepare
from gpukube.engine.run.context import Run
from gpukube.engine.saved import (
    PlanOptions,
    provenance,
    read_plan,
    require_savable,
    saved_plan,
    write_plan,
)
from gpukube.engine.saved.recording import digest
from gpukube.engine.saved.records import schema
from gpukube.errors import CloudError, Finding, GpukubeError, HelmError, SpecError, StalePlan, Where
from gpukube.spec.loading.load import load_specs
from gpukube.testing.clock import ManualClock
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import desire
from tests.unit.engine.worlds import MADE, World, loaded, require_same

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "gpukube" / "engine" / "documents" / "schemas" / "saved-plan.schema.json"
WANTED = desire(labels={"team": "vision"})
UPDATING = World(
    (WANTED,),
    (make_observed(WANTED, fields={**WANTED.fields, label("team"): "x"}, native={"token": "secret-token"}),),
    PlanOptions(pools=("a*",), adopt=True, allow_disruption=True, replace="recreate", chart="./chart"),
)
Document = dict[str, Any]  # JSON, to be broken in every way


def written(directory: Path) -> Document:
    """Save a plan and read its file as anybody would."""
    UPDATING.save(directory)
    document = json.loads((directory / "plan.json").read_text())
    assert isinstance(document, dict)
    return document


def sealed(document: Document) -> Document:
    """Give an edited document the checksum that fits it, as whoever can write the file can."""
    body = {key: value for key, value in document.items() if key != "checksum"}
    return {**body, "checksum": digest(body)}


def refusal(directory: Path, content: str | bytes | Document, version: str = "0.1.0") -> str:
    """Write a file and say how it is refused."""
    path = directory / "plan.json"
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o600)
    with pytest.raises(SpecError) as caught:
        read_plan(str(path), version=version)
    return caught.value.render().replace(str(path), "plan.json")


def test_saved_plan_when_read_again_then_specs_and_options_as_they_were(tmp_path: Path) -> None:
    saved = UPDATING.save(tmp_path)
    assert saved.options == UPDATING.options
    assert saved.warnings == ()
    before, after = loaded(tmp_path), saved.specs
    assert [spec.spec for spec in after] == [spec.spec for spec in before]
    assert after[0].spec.pools[0].labels == {"team": "vision"}
    assert (saved.record.created, saved.record.sandbox) == ("2026-11-01T08:00:00Z", False)


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.yaml")))
def test_specs_when_read_from_a_plan_then_the_same_pools_at_the_same_lines(example: str, tmp_path: Path) -> None:
    specs = load_specs([str(ROOT / "examples" / example)], environ={})
    write_plan(saved_plan([UPDATING.plan()], specs, PlanOptions(), MADE), str(tmp_path / "plan.json"))
    again = read_plan(str(tmp_path / "plan.json")).specs
    assert prepare(again).desired == prepare(specs).desired
    for before, after in zip(specs, again, strict=True):
        assert after.source == before.source
        for path in ("", "metadata.name", "clusters", *_paths(before.spec.model_dump(by_alias=True)["pools"])):
            assert after.positions.at(path) == before.positions.at(path)
            assert after.positions.key_at(path) == before.positions.key_at(path)


def _paths(pools: object) -> list[str]:
    assert isinstance(pools, list | tuple)
    return [f"pools[{number}].{key}" for number, pool in enumerate(pools) for key in pool]


def test_specs_when_defaults_sets_and_variables_made_them_then_positions_of_each(tmp_path: Path) -> None:
    (spec,) = UPDATING.save(tmp_path).specs
    file = str(tmp_path / "pools.yaml")
    assert spec.positions.at("pools[0].labels.team") == Where(file, 7, 18)
    assert spec.positions.at("pools[0].nodes.count") == Where("--set pools.a100mig.nodes.count")
    assert spec.spec.pools[0].nodes is not None
    assert spec.spec.pools[0].nodes.count == 2
    assert list(spec.positions.origin.spellings.values()) == ["${TEAM}"]


def test_file_when_written_then_nothing_secret_of_cloud_or_cluster_is_in_it(tmp_path: Path) -> None:
    request = Request("eks", "create", {"data": {"UserData": "c2VjcmV0LXNjcmlwdA=="}})
    plan = UPDATING.plan()
    plan = replace(plan, pools=(replace(plan.pools[0], requests=(request,)),))
    text = json.dumps(saved_plan([plan], loaded(tmp_path), UPDATING.options, MADE))
    assert "secret-token" not in text
    assert "c2VjcmV0" not in text
    assert "kubeconfig" not in text


def test_file_when_written_then_it_keeps_its_schema(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = json.dumps(schema(), indent=2) + "\n"
    if request.config.getoption("--update", default=False):
        SCHEMA.write_text(text, "utf-8")
    assert SCHEMA.read_text("utf-8") == text
    checked = jsonschema.Draft202012Validator(schema())
    document = written(tmp_path)
    checked.validate(document)
    assert list(checked.iter_errors({**document, "more": 1}))


def test_file_when_written_then_its_owners_alone_even_over_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    path.chmod(0o666)
    UPDATING.save(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan.json", "pools.yaml"]


def test_file_when_a_link_is_in_its_place_then_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "plan.json").symlink_to(victim)
    UPDATING.save(tmp_path)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "plan.json").is_symlink()


def test_file_when_it_cannot_be_written_then_the_former_one_stays(tmp_path: Path) -> None:
    UPDATING.save(tmp_path)
    before = (tmp_path / "plan.json").read_bytes()
    with pytest.raises(ValueError, match="Out of range float"):
        write_plan({"a": float("nan")}, str(tmp_path / "plan.json"))
    assert (tmp_path / "plan.json").read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan.json", "pools.yaml"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [("none/plan.json", 'the directory "{}/none" does not exist'), (".", "it is not a regular file")],
)
def test_file_when_its_place_is_none_then_said_so(place: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(expected.format(tmp_path))) as caught:
        write_plan({}, str(tmp_path / place))
    assert caught.value.diagnostics[0].code == "saved-plan-path"


BROKEN: dict[str, tuple[str | bytes, str, str]] = {
    "empty": ("", "saved-plan", "it is not JSON: expecting value: line 1 column 1 (char 0)"),
    "binary": (b"\xff\xfe\x00{", "saved-plan", "it is not JSON: "),
    "a spec": ("kind: GPUNodePools", "saved-plan", "it is not JSON: "),
    "a list": ("[]", "saved-plan", "it is not a saved plan: it has no kind"),
    "the plan as shown": ('{"kind": "Plan"}', "saved-plan", 'it is not a saved plan: its kind is "Plan"'),
    "too deep": ("[" * 100_000, "saved-plan", "it is not JSON: nested too deep"),
    "twice": ('{"kind": "SavedPlan", "kind": "SavedPlan"}', "saved-plan", "it is not JSON: a key is written twice"),
    "no number": ('{"kind": NaN}', "saved-plan", "it is not JSON: naN is not a JSON number"),
    "another format": (
        '{"kind": "SavedPlan", "schemaVersion": 2}',
        "saved-plan-version",
        "its format is 2; this gpukube reads 1",
    ),
    "a newer gpukube": (
        '{"kind": "SavedPlan", "schemaVersion": 1, "gpukubeVersion": "0.10.1"}',
        "saved-plan-version",
        "it was written by gpukube 0.10.1; this is 0.1.0",
    ),
    "no checksum": (
        '{"kind": "SavedPlan", "schemaVersion": 1, "gpukubeVersion": "0.0.9rc1"}',
        "saved-plan-edited",
        "it was changed after it was written: its checksum does not match",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_read_when_the_file_is_broken_then_says_how(case: str, tmp_path: Path) -> None:
    content, code, expected = BROKEN[case]
    said = refusal(tmp_path, content)
    assert said.startswith(f"plan.json: error[{code}]: {expected}")
    assert "    fix: " in said


FORGED: dict[str, tuple[Callable[[Document], object], str]] = {
    "a part is missing": (lambda d: d.pop("clusters"), "missing required field `clusters`"),
    "an unknown part": (lambda d: d.update(extra=1), "contains unknown field `extra`"),
    "another type": (lambda d: d["clusters"][0].update(name=1), "$.clusters[0].name"),
    "no specs": (lambda d: d.update(specs=[]), "$.specs"),
    "too few positions": (lambda d: d["specs"][0]["marks"].pop(), "fewer positions than values"),
    "too many positions": (lambda d: d["specs"][0]["marks"].append(1), "more positions than values"),
    "a position in no file": (lambda d: d["specs"][0]["marks"].insert(0, 9 << 48), "a position in no file"),
}


@pytest.mark.parametrize("case", FORGED)
def test_read_when_a_forged_file_does_not_hold_together_then_refused(case: str, tmp_path: Path) -> None:
    forge, expected = FORGED[case]
    document = written(tmp_path)
    forge(document)
    said = refusal(tmp_path, sealed(document))
    assert said.startswith("plan.json: error[saved-plan]: it is not a saved plan of gpukube: ")
    assert expected in said


def test_read_when_a_forged_spec_is_wrong_then_told_as_of_its_file(tmp_path: Path) -> None:
    document = written(tmp_path)
    document["specs"][0]["data"]["pools"][0]["name"] = "no name"
    said = refusal(tmp_path, sealed(document))
    assert said.startswith(f"{tmp_path}/pools.yaml:9:11: error[GPK123 format]: pools[0].name")


def test_read_when_forged_with_another_identity_then_stale(tmp_path: Path) -> None:
    document = written(tmp_path)
    document["clusters"][0]["identity"]["subscription"] = "another"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(sealed(document)))
    with pytest.raises(StalePlan, match="subscription another -> 11111111-2222-3333-4444-555555555555"):
        require_same(read_plan(str(path)), UPDATING)


def test_read_when_forged_with_other_requests_then_stale_for_they_are_planned_anew(tmp_path: Path) -> None:
    document = written(tmp_path)
    document["clusters"][0]["pools"][0]["requests"][0]["params"]["name"] = "somebody-elses"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(sealed(document)))
    with pytest.raises(StalePlan, match="request update: name somebody-elses -> a100mig"):
        require_same(read_plan(str(path)), UPDATING)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path, "it cannot be read: no such file or directory"),
    "a directory": (lambda path: path.mkdir(), "it is not a file"),
    "a pipe without a writer": (_fifo, "it is not a file"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_read_when_there_is_no_file_then_said_so(case: str, tmp_path: Path) -> None:
    make, expected = UNREADABLE[case]
    make(tmp_path / "plan.json")
    with pytest.raises(SpecError, match=expected):
        read_plan(str(tmp_path / "plan.json"))


def test_read_when_the_file_is_too_large_then_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpukube.engine.saved.file.MOST_BYTES", 100)
    assert "error[saved-plan]: it is larger than 100 bytes" in refusal(tmp_path, " " * 101)


@pytest.mark.parametrize(("mode", "may"), [(0o640, "read"), (0o604, "read"), (0o620, "change"), (0o666, "change")])
def test_read_when_others_may_touch_it_then_warned(mode: int, may: str, tmp_path: Path) -> None:
    UPDATING.save(tmp_path)
    path = tmp_path / "plan.json"
    path.chmod(mode)
    (warning,) = read_plan(str(path)).warnings
    assert (warning.code, warning.severity) == ("saved-plan-open", "warning")
    assert warning.seen == f"others on this machine may {may} it (mode {mode:04o})"


def test_read_when_reformatted_with_sorted_keys_then_the_same_plan(tmp_path: Path) -> None:
    document = written(tmp_path)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document, sort_keys=True))
    require_same(read_plan(str(path)), UPDATING)


class _Edits:
    """Every value of a document that can be edited, by path."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.paths = sorted(self._below(document), key=str)

    def _below(self, node: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
        entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        return [inner for key, value in entries for inner in [(*path, key), *self._below(value, (*path, key))]]

    def edited(self, path: tuple[str | int, ...], value: object) -> Document:
        copy = json.loads(json.dumps(self.document))
        node = copy
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        assert isinstance(copy, dict)
        return copy


@settings(max_examples=150)
@given(st.data())
def test_read_when_any_value_was_edited_then_refused(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        edits = _Edits(written(directory))
        edited = edits.edited(
            data.draw(st.sampled_from(edits.paths)), data.draw(st.sampled_from([None, "x", 7, [], {}, "0.1.1"]))
        )
        if edited != edits.document:
            assert "error[saved-plan" in refusal(directory, edited)


UNFIT: dict[str, tuple[Callable[[ClusterPlan], ClusterPlan], str]] = {
    "a cluster that could not be planned": (
        lambda plan: ClusterPlan(plan.cluster, error=CloudError("no such cluster")),
        "train-aks: error[plan-unsaved]: the plan is not saved: no such cluster",
    ),
    "an inside that was skipped": (
        lambda plan: replace(plan, unknown="skipped (--skip-cluster)", release=None),
        "train-aks: error[plan-unsaved]: the plan is not saved: the cluster could not be read: skipped",
    ),
    "a foreign advertiser": (
        lambda plan: replace(plan, diagnostics=(Finding("foreign-advertiser", Where("train-aks"), "eksctl's"),)),
        "train-aks: error[plan-unsaved]: the plan is not saved: eksctl's",
    ),
    "a pool in the way": (
        lambda plan: replace(plan, pools=(replace(plan.pools[0], action="conflict", why="not ours"),)),
        "train-aks/a100mig: error[plan-unsaved]: the plan is not saved: not ours",
    ),
    "a release in the way": (
        lambda plan: replace(plan, release=replace(plan.release, action="conflict", reason="two charts")),  # type: ignore[type-var]  # it has one
        "train-aks: error[plan-unsaved]: the plan is not saved: two charts",
    ),
    "the other release in the way": (
        lambda plan: replace(plan, dra_release=replace(plan.dra_release, action="conflict", reason="two roots")),  # type: ignore[type-var]  # it has one
        "train-aks: error[plan-unsaved]: the plan is not saved: two roots",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_plan_when_it_cannot_be_applied_then_not_saved(case: str) -> None:
    spoil, expected = UNFIT[case]
    with pytest.raises(GpukubeError) as caught:
        require_savable([UPDATING.plan(), spoil(UPDATING.plan())], PlanOptions())
    assert caught.value.render().startswith(expected)
    assert len(caught.value.diagnostics) == 1


@pytest.mark.parametrize(
    "chart",
    [
        *("https://me:secret@charts.example/repo", "https://secret@charts.example/repo"),
        *("https://charts.example/repo?token=secret", "HTTPS://charts.example/repo#secret"),
        *("http://me:p%40/secret@charts.example/x", "oci://me:secret@charts.example/plugin"),
    ],
)
def test_plan_when_the_charts_address_holds_a_secret_then_not_saved(chart: str) -> None:
    with pytest.raises(GpukubeError, match="contains a user, password or query") as caught:
        require_savable([UPDATING.plan()], PlanOptions(chart=chart))
    assert "secret" not in caught.value.render()


def test_plan_when_a_warning_is_in_it_then_saved() -> None:
    warning = Finding("nfd-taint", CLUSTER.where, "mind this", severity="warning")
    require_savable([replace(UPDATING.plan(), diagnostics=(warning,))], PlanOptions())


def _run(chart: str = "", **reached: object) -> Run:
    found = Settings(**reached)  # type: ignore[arg-type]  # test data
    return Run(found, ChartSource(chart), {}, "again", clock=ManualClock())


def test_provenance_when_endpoints_are_given_then_their_hosts_without_credentials() -> None:
    found = provenance(_run(endpoints={"eks": "https://me:secret@vpce.example:8443/path"}))
    assert dict(found.endpoints) == {"eks": "vpce.example:8443"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.created)


def test_provenance_when_in_the_sandbox_then_no_ports_which_change_with_it() -> None:
    found = provenance(_run(endpoints={"eks": "http://127.0.0.1:40001"}, sandbox=True))
    assert (found.sandbox, dict(found.endpoints)) == (True, {})


def test_provenance_when_the_chart_is_a_directory_then_any_change_below_it_shows(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{name: nvidia-device-plugin, version: 0.20.0}")
    (tmp_path / "templates" / "a.yaml").write_text("a: 1")
    before = provenance(_run(str(tmp_path))).chart_digest
    assert before == provenance(_run(str(tmp_path))).chart_digest
    (tmp_path / "templates" / "a.yaml").write_text("a: 2")
    changed = provenance(_run(str(tmp_path))).chart_digest
    (tmp_path / "templates" / "a.yaml").rename(tmp_path / "templates" / "b.yaml")
    renamed = provenance(_run(str(tmp_path))).chart_digest
    assert len({before, changed, renamed}) == 3
    assert provenance(_run("oci://charts.example/nvidia-device-plugin")).chart_digest == ""


def test_provenance_when_the_chart_is_not_there_then_said_so(tmp_path: Path) -> None:
    with pytest.raises(HelmError, match="no Helm chart found"):
        provenance(_run(str(tmp_path / "none.tgz")))


def test_facts_when_a_plan_knows_them_then_recorded(tmp_path: Path) -> None:
    world = replace(UPDATING, facts=ClusterFacts("westeurope", "1.35.1", ready=True, status="Running"))
    (cluster,) = world.save(tmp_path).record.clusters
    assert (cluster.location, cluster.kubernetes_version) == ("westeurope", "1.35.1")
    (pool,) = cluster.pools
    assert pool.seen is not None
    assert (pool.action, pool.seen.etag, [c.field for c in pool.changes]) == ("update", "1", ["labels[team]"])
