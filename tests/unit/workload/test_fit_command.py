"""`gpukube workload fit` as its users have it, in this process: screens, documents, exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpukube.__main__ import main
from gpukube.engine.documents.schema import document_schema
from tests.cli.harness import EXAMPLES
from tests.unit.workload.specs import CLUSTERS, POOLS

if TYPE_CHECKING:
    from pathlib import Path

WORKLOADS = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: train}
spec:
  enableInTreeAutoscaling: true
  headGroupSpec:
    template: {spec: {containers: [{name: head, resources: {requests: {cpu: 2, memory: 8Gi}}}]}}
  workerGroupSpecs:
  - groupName: gpu
    minReplicas: 0
    maxReplicas: 6
    template: {spec: {containers: [{name: worker, resources: {limits: {cpu: 3, memory: 50Gi, nvidia.com/gpu: 8}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxUnavailable: 0}}
  template:
    spec: {containers: [{name: main, resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: main, resources: {limits: {nvidia.com/mig-1g.5gb: 3}, requests: {cpu: 60}}}]
"""
SCREEN = """\
? RayCluster/train head on train-aks: 1 on a CPU node outside the spec
    pods:   1, each cpu 2, memory 8Gi
x RayCluster/train, group gpu on train-aks: 4 after scale-up, 2 never
    pods:   0 to 6, each cpu 3, memory 50Gi, nvidia.com/gpu 8
    why:    train-aks/whole: its 4 nodes are full, its maximum is 4
    why:    train-aks/mixed: the node has no nvidia.com/gpu
    fix:    train-aks/whole: write nodes.autoscaling.max: 6
x Deployment/web on train-aks: 3 never
    pods:   3, each nvidia.com/mig-1g.5gb 1
    why:    train-aks/mixed: untolerated taint nvidia.com/gpu=present:NoSchedule
    why:    train-aks/whole: untolerated taint nvidia.com/gpu=present:NoSchedule; the node has no nvidia.com/mig-1g.5gb
    fix:    Deployment/web: add the toleration {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
= Pod/one on train-aks: 1 now
    pods:   1, each cpu 60, nvidia.com/mig-1g.5gb 3

NODE            PODS                    LEFT                              BINDS  USD/H
= mixed-1       1 Pod/one               mig-1g.5gb 53, cpu 34340m, 826Gi  cpu    ~27.20
+ whole-1 to 4  1 RayCluster/train/gpu  gpu 0, cpu 91340m, 776Gi          gpu    ~27.20
mixed-1: mig-1g.5gb: 53 unused: cpu binds
5 nodes, 4 to start
train-aks/whole: 0 -> ~108.79 USD/h, ~27.20 per node (price of eastus, 2026-06-18)
train-aks/mixed: ~27.20 USD/h, ~27.20 per node (price of eastus, 2026-06-18)
price: ~27.20 now, ~135.99 USD/h after; without disks, network, control planes, taxes and discounts
"""
OLD = "note: prices of 2026-06-18 are older than 90 days; newer ones: gpukube catalog refresh"
FITTING = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "pools.yaml").write_text(CLUSTERS + "".join(f"  - {POOLS[name]}\n" for name in ("whole", "mixed")))
    (tmp_path / "work.yaml").write_text(WORKLOADS)
    (tmp_path / "pod.yaml").write_text(FITTING)
    return tmp_path


def run(files: Path, *words: str) -> int:
    places = [str(files / word) if word.endswith(".yaml") else word for word in words]
    return main(["workload", "fit", *places, "-f", str(files / "pools.yaml")])


def test_fit_when_shown_to_people_then_answers_reasons_changes_and_nodes(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(files, "work.yaml", "--cluster", "train-aks") == 1
    shown = capsys.readouterr()
    assert [line.rstrip() for line in shown.out.splitlines()] == SCREEN.splitlines()
    assert shown.err.split() == OLD.split()


def test_fit_when_all_has_a_place_then_0_and_a_document_by_its_schema(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(files, "pod.yaml", "-o", "json") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    Draft202012Validator(document_schema("fit")).validate(document)
    assert (document["fits"], document["exitCode"], document["live"]) == (True, 0, False)
    (pod,) = document["workloads"]
    assert (pod["state"], pod["places"], pod["position"]["line"]) == (
        "after-scale-up", [{"node": "whole-1", "pods": 1}], 1,
    )  # fmt: skip
    run(files, "work.yaml", "-o", "json")
    Draft202012Validator(document_schema("fit")).validate(json.loads(capsys.readouterr().out))


def test_fit_when_a_price_is_unknown_then_a_question_mark(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "pools.yaml").write_text(CLUSTERS + f"  - {POOLS['reserved']}\n")
    assert run(files, "pod.yaml") == 0
    shown = capsys.readouterr().out
    assert "train-gke/reserved: ? USD/h: reserved capacity has no list price\n" in shown
    assert "price: unknown for 1 pool\n" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no manifest given"),
        (("gone.yaml",), "gone.yaml: error[GPK101 file-missing]: does not exist"),
        (("broken.yaml",), "broken.yaml:1:"),
        (("text.yaml",), "error[GPK700 no-manifest]: no Kubernetes object found"),
        (("pod.yaml", "-o", "sarif"), '"sarif" is not an output format of this command'),
        (("pod.yaml", "--cluster", "nobody"), "nobody"),
    ],
)
def test_fit_when_the_input_is_wrong_then_4(
    words: tuple[str, ...], message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "broken.yaml").write_text("a: [")
    (files / "text.yaml").write_text("a: 1")
    assert run(files, *words) == 4
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out


def test_fit_when_there_is_no_spec_then_told(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUKUBE_FILE", raising=False)
    assert main(["workload", "fit", str(files / "pod.yaml")]) == 4
    assert "add -f pools.yaml" in capsys.readouterr().err


def test_fit_when_the_files_have_no_pods_then_told(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    assert run(files, "map.yaml") == 0
    assert capsys.readouterr().out == "no pods in these files\n"


def test_fit_when_a_pool_is_queued_then_says_what_starts_its_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, pod = EXAMPLES / "gke-queued.yaml", tmp_path / "pod.yaml"
    pool = yaml.safe_load(spec.read_text())["pools"][0]["name"]
    assert main(["workload", "render", "pod", "-f", str(spec), "--pool", pool]) == 0
    pod.write_text(capsys.readouterr().out)

    assert main(["workload", "fit", str(pod), "-f", str(spec)]) == 0
    assert f"/{pool} on its own; it needs a ProvisioningRequest" in capsys.readouterr().err
