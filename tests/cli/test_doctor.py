"""The doctor against the emulated cluster: each fault is found by its check, and by no other as an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube import guard
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION
from tests.cli.cluster_faults import FAULTS, MIG, SLICED, spec_of_ward
from tests.cli.harness import Cluster, Gpukube, run_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.cluster_faults import Fault
    from tests.cli.harness import Document

SPEED = 2000.0
HEALTHY = [{"gpu": 56}], [{"gpu": 4}]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ward") / "ward.yaml"
    path.write_text(yaml.safe_dump(spec_of_ward()))
    return path


@pytest.fixture(scope="module")
def ward(running_sandbox: SandboxInfo, spec: Path) -> SandboxInfo:
    """Give all tests of this module one cluster with two healthy pools; whoever makes it ill heals it."""
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    daemon.add_cluster(running_sandbox, SUBSCRIPTION, "ml", "train")
    made = run_process(running_sandbox, "pool", "create", "-f", spec)
    assert made.code == 0, made.out + made.err
    return running_sandbox


@pytest.fixture
def patient(ward: SandboxInfo) -> Iterator[Cluster]:
    inside = Cluster(ward)
    yield inside
    inside.close()


@pytest.fixture
def doctor(
    ward: SandboxInfo, spec: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Gpukube:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", ward.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    return Gpukube(ward, capsys)


def ailments(doctor: Gpukube, spec: Path, *words: str) -> list[Document]:
    document = doctor("doctor", "-f", spec, "-o", "json", *words).json()
    assert not document["clusters"][0]["errors"]
    return list(document["clusters"][0]["ailments"])


def errors(found: list[Document]) -> set[str]:
    return {item["check"] for item in found if item["severity"] == "error"}


def is_well(patient: Cluster) -> bool:
    return (patient.devices(MIG), patient.devices(SLICED)) == HEALTHY


def test_doctor_when_pools_are_as_promised_then_no_errors(doctor: Gpukube, spec: Path, patient: Cluster) -> None:
    wait_for(lambda: is_well(patient))
    wait_for(lambda: not errors(ailments(doctor, spec)), lambda: doctor.log[-1].out)
    seen = doctor("doctor", "-f", spec)
    assert (seen.code, "error[" in seen.out) == (0, False), seen.out


@pytest.mark.turns(6)
@pytest.mark.parametrize("name", FAULTS)
def test_doctor_when_something_is_put_wrong_then_its_check_finds_it_and_no_other(
    name: str, doctor: Gpukube, spec: Path, patient: Cluster
) -> None:
    fault = FAULTS[name]
    wait_for(lambda: is_well(patient))
    found: list[Document] = []

    def is_found() -> bool:
        found[:] = ailments(doctor, spec)
        wanted = {fault.check} if fault.severity == "error" else set()
        return fault.check in {item["check"] for item in found} and errors(found) == wanted

    try:
        fault.inject(patient)
        wait_for(is_found)
    except AssertionError:
        pytest.fail(
            f"{fault.check} alone was expected, found {[(i['check'], i['severity'], i['seen']) for i in found]}"
        )
    finally:
        mended = _healed(fault, doctor, spec, patient)
    assert mended
    wait_for(lambda: not errors(ailments(doctor, spec)))


def _healed(fault: Fault, doctor: Gpukube, spec: Path, patient: Cluster) -> bool:
    """Take a fault out again, by hand or by the doctor's own.

    What the doctor sees right after its own mending is not asked: a container that failed waits for its next start.
    """
    if fault.heal is not None:
        fault.heal(patient)
        return True
    mended = doctor("doctor", "-f", spec, "--fix", "--yes", "-o", "json").json()
    return bool(mended["clusters"][0]["mended"])


def test_doctor_when_only_an_address_is_given_then_a_cluster_is_examined_without_a_spec(
    doctor: Gpukube, spec: Path, patient: Cluster
) -> None:
    wait_for(lambda: is_well(patient))
    wait_for(lambda: not errors(ailments(doctor, spec)), lambda: doctor.log[-1].out)
    seen = doctor("doctor", "--cluster", f"aks:{SUBSCRIPTION}/ml/train")
    assert (seen.code, "checks run" in seen.out, "error[" in seen.out) == (0, True, False), seen.out


def test_doctor_when_secrets_may_not_be_read_then_all_other_checks_are_made(
    doctor: Gpukube, spec: Path, ward: SandboxInfo
) -> None:
    daemon.deny(ward, "train", ("list", "secrets"))
    try:
        seen = doctor("doctor", "-f", spec, "-o", "json")
    finally:
        daemon.deny(ward, "train")
    (cluster,) = seen.json()["clusters"]
    assert {item["reading"] for item in cluster["skipped"]} == {"releases"}
    assert (cluster["made"] > 60, cluster["errors"][0]["code"]) == (True, "kube-forbidden")
    assert errors(cluster["ailments"]) == set()


def test_doctor_when_nodes_may_not_be_read_then_it_ends_with_no_access(
    doctor: Gpukube, spec: Path, ward: SandboxInfo
) -> None:
    daemon.deny(ward, "train", ("list", "nodes"))
    try:
        seen = doctor("doctor", "-f", spec)
    finally:
        daemon.deny(ward, "train")
    assert (seen.code, "skipped as a result" in seen.out) == (5, True), seen.out


def test_doctor_when_it_should_mend_and_nobody_can_be_asked_then_nothing_is_done(
    doctor: Gpukube, spec: Path, patient: Cluster
) -> None:
    patient.label_nodes(MIG, **{"gpukube.io/pool": "other"})
    try:
        refused = doctor("doctor", "-f", spec, "--fix")
        writes = doctor.writes()
        shown = doctor("doctor", "-f", spec, "-o", "markdown").out
    finally:
        patient.label_nodes(MIG, **{"gpukube.io/pool": MIG})
    assert (refused.code, writes) == (4, []), refused.err
    assert "would train-aks: label node" in refused.err
    assert "error[confirmation]" in refused.err
    assert "### gpukube doctor: 1 error" in shown
    assert "[node-labels-lost](https://github.com/Azure/AKS/issues/2832)" in shown
    assert "fix: `kubectl label node aks-a100mig-" in shown


def test_doctor_when_it_mends_then_it_says_what_it_did(doctor: Gpukube, spec: Path, patient: Cluster) -> None:
    patient.label_nodes(SLICED, **{"gpukube.io/advertiser": None})
    wait_for(lambda: "node-labels-lost" in errors(ailments(doctor, spec)))
    done = doctor("doctor", "-f", spec, "--fix", "--yes")
    assert done.code == 0, done.out
    assert "fixed  label node aks-t4shared-" in done.out
    wait_for(lambda: is_well(patient))


def test_doctor_when_it_may_not_mend_then_it_says_so_and_ends_with_no_access(
    doctor: Gpukube, spec: Path, patient: Cluster, ward: SandboxInfo
) -> None:
    patient.label_nodes(MIG, **{"gpukube.io/pool": "other"})
    daemon.deny(ward, "train", ("patch", "nodes"))
    try:
        tried = doctor("doctor", "-f", spec, "--fix", "--yes")
    finally:
        daemon.deny(ward, "train")
        patient.label_nodes(MIG, **{"gpukube.io/pool": MIG})
    assert tried.code == 5, tried.out
    assert "error[kube-forbidden]: denied by the Kubernetes API (403) while changing Node" in tried.out
    assert "error[node-labels-lost]" in tried.out
