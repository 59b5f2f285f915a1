"""What the doctor prints as a remedy is run as it is printed, and the finding is gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from lightkube.generic_resource import create_global_resource
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.core_v1 import ServiceAccount
from lightkube.resources.rbac_authorization_v1 import ClusterRoleBinding
from lightkube.types import PatchType

from gpukube import guard
from gpukube_sandbox import daemon
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION
from tests.cli.cluster_faults import FAULTS, MIG, SLICED, STATIC_PLUGIN, spec_of_ward
from tests.cli.harness import EXAMPLES, NAMESPACE, PLUGIN, Cluster, Gpukube, run_process
from tests.intruders import put_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document

pytestmark = pytest.mark.clients("kubectl")
"""Remedies are commands of kubectl."""
SPEED = 2000.0
COMMAND = re.compile(r"(?:^|: )((?:kubectl|helm|gpukube) .*)$")
"""A remedy is a command, or words and then a command."""
NFD_WORKER = f"{PLUGIN}-node-feature-discovery-worker"
AWAY = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}}


def delete(name: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.client.delete(DaemonSet, name, namespace=NAMESPACE)


def second_plugin(namespace: str) -> Callable[[Cluster], object]:
    metadata = {**STATIC_PLUGIN["metadata"], "namespace": namespace}
    return lambda cluster: put_in(cluster.client, {**STATIC_PLUGIN, "metadata": metadata})


def without_account(cluster: Cluster) -> None:
    account = cluster.daemonset().to_dict()["spec"]["template"]["spec"]["serviceAccountName"]
    cluster.client.delete(ServiceAccount, account, namespace=NAMESPACE)
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)


ILLS: dict[str, tuple[str, Callable[[Cluster], object]]] = {
    **{
        name: (FAULTS[name].check, FAULTS[name].inject)
        for name in (
            "advertiser label taken off",
            "plugin sent elsewhere",
            "foreign taint",
            "no taint",
            "NFD master stopped",
            "strategy in the environment",
            "cut without a manager",
        )
    },
    "plugin's tolerations taken off": (
        "plugin-not-tolerating",
        lambda cluster: cluster.patch_daemonset({"spec": {"template": {"spec": {"tolerations": None}}}}),
    ),
    **{
        f"second plugin in {namespace}": ("two-advertisers", second_plugin(namespace))
        for namespace in ("gpu-resources", "kube-system")  # before and after gpukube's
    },
    "plugin's service account deleted": ("plugin-pods-refused", without_account),
    "config map deleted": ("config-map-missing", lambda cluster: cluster.delete_config_map()),
    "GFD deleted": ("stack-part-gone", delete(f"{PLUGIN}-gpu-feature-discovery")),
    "MPS daemon deleted": ("stack-part-gone", delete(f"{PLUGIN}-mps-control-daemon")),
    "binding of NFD deleted": (
        "stack-role-gone",
        lambda cluster: cluster.client.delete(ClusterRoleBinding, f"{PLUGIN}-node-feature-discovery"),
    ),
    "NFD worker deleted": ("stack-part-gone", delete(NFD_WORKER)),
    "NFD worker sent elsewhere": ("stack-part-edited", lambda cluster: cluster.patch_daemonset(AWAY, NFD_WORKER)),
}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ward") / "ward.yaml"
    path.write_text(yaml.safe_dump(spec_of_ward()))
    return path


@pytest.fixture(scope="module")
def ward(running_sandbox: SandboxInfo, spec: Path) -> SandboxInfo:
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
def inside(ward: SandboxInfo, tmp_path: Path) -> Path:
    return inside_of(ward, tmp_path, "train")


def ailments(gpukube: Gpukube, spec: Path) -> list[Document]:
    return list(gpukube("doctor", "-f", spec, "-o", "json").json()["clusters"][0]["ailments"])


def found(gpukube: Gpukube, spec: Path, check: str) -> list[Document]:
    return [item for item in ailments(gpukube, spec) if item["check"] == check]


def errors(gpukube: Gpukube, spec: Path) -> list[Document]:
    """List what is wrong; a cure may leave a warning behind, such as a resource name that the kubelet keeps."""
    return [item for item in ailments(gpukube, spec) if item["severity"] == "error"]


def carry_out(gpukube: Gpukube, spec: Path, remedy: str, inside: Path) -> None:
    """Run the command of a remedy as it is printed."""
    command = COMMAND.search(remedy)
    assert command, remedy
    if command[1].startswith("gpukube"):
        assert command[1] == "gpukube pool apply -f SPEC"
        done = gpukube("pool", "apply", "-f", spec, "--yes")
        assert done.code == 0, done.out + done.err
        return
    environ = {**os.environ, "HOME": str(inside.parent), "KUBECONFIG": str(inside)}
    words = ["bash", "-c", command[1]]
    ended = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, f"{command[1]}: {ended.stderr}"


def cure(gpukube: Gpukube, spec: Path, check: str, inside: Path) -> None:
    """See a finding, do what each of its places says, and see it go."""
    wait_for(lambda: found(gpukube, spec, check), lambda: gpukube.log[-1].out)
    for remedy in dict.fromkeys(str(item["remedy"]) for item in found(gpukube, spec, check)):
        carry_out(gpukube, spec, remedy, inside)
    wait_for(lambda: not found(gpukube, spec, check), lambda: gpukube.log[-1].out)


def inside_of(info: SandboxInfo, tmp_path: Path, name: str) -> Path:
    document = kubeconfig(info)["kubeconfig"]
    assert isinstance(document, dict)
    context = next(entry["name"] for entry in document["contexts"] if str(entry["name"]).endswith(name))
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({**document, "current-context": context}))
    return path


@pytest.mark.turns(5)
@pytest.mark.parametrize("name", ILLS)
def test_remedy_when_it_is_run_as_printed_then_the_finding_goes(
    name: str, doctor: Gpukube, spec: Path, patient: Cluster, inside: Path
) -> None:
    check, inject = ILLS[name]
    healthy = [{"gpu": 56}], [{"gpu": 4}]
    wait_for(lambda: (patient.devices(MIG), patient.devices(SLICED)) == healthy)
    wait_for(lambda: not errors(doctor, spec), lambda: doctor.log[-1].out)
    inject(patient)
    cure(doctor, spec, check, inside)


POLICY = create_global_resource("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies")
RUNTIME_CLASS = create_global_resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
OPERATED = EXAMPLES / "eks-mig.yaml"
OPERATOR_WORKER = "gpukube-gpu-operator-node-feature-discovery-worker"


def replicas(name: str, count: int) -> Callable[[Cluster], object]:
    patch = {"spec": {"replicas": count}}
    return lambda cluster: cluster.client.patch(
        Deployment, name, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE
    )


def policy(**change: object) -> Callable[[Cluster], object]:
    patch = {"spec": change}
    return lambda cluster: cluster.client.patch(POLICY, "cluster-policy", patch, patch_type=PatchType.MERGE)


OPERATOR_ILLS: dict[str, tuple[str, Callable[[Cluster], object]]] = {
    "operator scaled to 0": ("operator-down", replicas("gpu-operator", 0)),
    "binding of the operator deleted": (
        "stack-role-gone",
        lambda cluster: cluster.client.delete(ClusterRoleBinding, "gpu-operator"),
    ),
    "RuntimeClass deleted": (
        "runtime-class-gone",
        lambda cluster: cluster.client.delete(RUNTIME_CLASS, "nvidia"),
    ),
    "ClusterPolicy deleted": ("operator-down", lambda cluster: cluster.client.delete(POLICY, "cluster-policy")),
    "NFD worker sent elsewhere": ("stack-part-edited", lambda cluster: cluster.patch_daemonset(AWAY, OPERATOR_WORKER)),
    "MIG manager switched off": ("mig-label-without-manager", policy(migManager={"enabled": False})),
    "another strategy": ("strategy-overridden", policy(mig={"strategy": "mixed"})),
}


@pytest.fixture(scope="module")
def clinic(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Give a cluster of EKS that the GPU Operator serves."""
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    place = yaml.safe_load(OPERATED.read_text())["clusters"]
    (cluster,) = place.values()
    daemon.add_eks_cluster(running_sandbox, str(cluster["account"]), str(cluster["region"]), str(cluster["name"]))
    made = run_process(running_sandbox, "pool", "create", "-f", OPERATED)
    assert made.code == 0, made.out + made.err
    return running_sandbox


@pytest.mark.turns(5)
@pytest.mark.parametrize("name", OPERATOR_ILLS)
def test_remedy_when_the_operator_serves_and_it_is_run_as_printed_then_the_finding_goes(
    name: str, clinic: SandboxInfo, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", clinic.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    doctor = Gpukube(clinic, capsys)
    check, inject = OPERATOR_ILLS[name]
    wait_for(lambda: not errors(doctor, OPERATED), lambda: doctor.log[-1].out)
    (cluster,) = yaml.safe_load(OPERATED.read_text())["clusters"].values()
    patient = Cluster(clinic, str(cluster["name"]))
    try:
        inject(patient)
        cure(doctor, OPERATED, check, inside_of(clinic, tmp_path, str(cluster["name"])))
    finally:
        patient.close()
