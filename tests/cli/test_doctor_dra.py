"""The doctor on clusters whose GPUs NVIDIA's DRA driver publishes: nothing on healthy ones, and each fault once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube import guard
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION
from tests.cli.harness import Cluster, Gpukube, run_process
from tests.cli.test_doctor_remedies import SPEED, ailments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

POOL = "t4dra"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": "claims"}
    pool = {
        "name": POOL,
        "clusters": ["claims-aks"],
        "instanceType": "Standard_NC16as_T4_v3",
        "nodes": {"count": 1},
        "devicePlugin": {"owner": "dra"},
    }
    document = {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "claims"},
        "clusters": {"claims-aks": place},
        "pools": [pool],
    }
    path = tmp_path_factory.mktemp("claims") / "claims.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="module")
def ward(running_sandbox: SandboxInfo, spec: Path) -> SandboxInfo:
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    daemon.add_cluster(running_sandbox, SUBSCRIPTION, "ml", "claims", kubernetes_version="1.34.7")
    made = run_process(running_sandbox, "pool", "create", "-f", spec)
    assert made.code == 0, made.out + made.err
    return running_sandbox


@pytest.fixture
def doctor(ward: SandboxInfo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gpukube:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", ward.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    return Gpukube(ward, capsys)


@pytest.fixture
def patient(ward: SandboxInfo) -> Iterator[Cluster]:
    inside = Cluster(ward, "claims")
    yield inside
    inside.close()


def test_doctor_when_the_dra_driver_serves_then_nothing_is_found(doctor: Gpukube, spec: Path) -> None:
    wait_for(lambda: not ailments(doctor, spec), lambda: doctor.log[-1].out)
