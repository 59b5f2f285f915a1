"""Manifests as people get them: kinds x clouds x ways to share, by the texts in `manifests`.

A change of one is a change for users and is read in review; --update rewrites them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import render
from tests.unit.workload.specs import all_offers

if TYPE_CHECKING:
    from gpukube.workload.offers import PoolOffer

MANIFESTS = Path(__file__).parent / "manifests"

CASES: dict[str, Intent] = {
    "train-eks/whole pod": Intent(kind="pod", gpus=8, command=("python", "-c", "import torch; print(torch.ones(1))")),
    "train-gke/single pod": Intent(kind="pod"),
    "train-aks/mixed pod": Intent(kind="pod", namespace="team"),
    "train-aks/sliced pod": Intent(kind="pod"),
    "train-gke/sliced pod": Intent(kind="pod"),
    "train-eks/layout job": Intent(kind="job", resource="nvidia.com/mig-3g.20gb", replicas=16),
    "train-aks/spot deployment": Intent(kind="deployment", replicas=3),
    "train-gke/spot statefulset": Intent(kind="statefulset", replicas=2),
    "train-gke/reserved jobset": Intent(kind="jobset", gpus=8, replicas=2),
    "train-eks/whole raycluster": Intent(kind="raycluster"),
    "train-aks/mixed raycluster": Intent(kind="raycluster", least=0, most=4),
    "train-gke/single raycluster": Intent(kind="raycluster"),
    "train-aks/whole rayjob": Intent(kind="rayjob", gpus=8, command=("python", "train.py", "--epochs", "3")),
    "train-eks/renamed rayservice": Intent(kind="rayservice"),
    "train-gke/whole rayservice": Intent(kind="rayservice", command=("app:entry",), most=16),
    "train-eks/whole kueue": Intent(kind="kueue", namespace="team"),
    "train-aks/spot kueue": Intent(kind="kueue"),
    "train-gke/single kueue": Intent(kind="kueue"),
    "train-gke/queued kueue": Intent(kind="kueue", namespace="team"),
    "train-gke/single rayjob": Intent(
        kind="rayjob",
        command=("python", "train.py"),
        runtime_env={"pip": ["diffusers==0.32.2"], "env_vars": {"LEVEL": "info"}},
        working_dir="https://example.com/code.zip",
    ),
}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return all_offers(tmp_path_factory.mktemp("pools"))


def file_of(case: str) -> Path:
    return MANIFESTS / f"{case.replace('/', '-').replace(' ', '-')}.yaml"


@pytest.mark.parametrize("case", CASES)
def test_manifest_when_rendered_then_the_recorded_one(
    case: str, pools: dict[str, PoolOffer], request: pytest.FixtureRequest
) -> None:
    pool, _, kind = case.partition(" ")
    made = render(replace(CASES[case], kind=kind), pools[pool])
    notes = "".join(f"# note: {note}\n" for note in made.notes)
    if request.config.getoption("--update", default=False):
        file_of(case).write_text(notes + made.text, "utf-8")

    assert notes + made.text == file_of(case).read_text("utf-8")


def test_manifests_when_counted_then_all_are_tested() -> None:
    assert {file_of(case) for case in CASES} == set(MANIFESTS.glob("*.yaml"))
