"""The doctor and what clouds say: each fault behind our back is found by its check, and by no other."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Node

from gpukube import guard
from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION
from tests.cli.harness import Cluster, Gpukube, run_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 2000.0
EKS, AKS, GKE = "clinic-eks", "clinic-aks", "clinic-gke"
ACCELERATOR = "k8s.amazonaws.com/accelerator"
OPT_OUT = "gke-no-default-nvidia-gpu-device-plugin"
SHARED = {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "4"}
GPU = {
    "acceleratorType": "nvidia-tesla-t4",
    "acceleratorCount": "1",
    "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
}
A100 = {"acceleratorType": "nvidia-tesla-a100"}
Body = dict[str, Any]  # members of pools as the clouds have them


def spec_of_clinic() -> Body:
    """One pool with a node, and one from zero, on each of the three clouds."""
    return {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "clinic"},
        "clusters": {
            EKS: {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": EKS},
            AKS: {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": AKS},
            GKE: {"provider": "gke", "project": "ml-prod", "location": "us-central1-a", "name": GKE},
        },
        "defaults": {
            "clusters": [EKS, AKS, GKE],
            "gpu": {"model": "T4", "count": 1},
            "instanceType": {"eks": "g4dn.xlarge", "aks": "Standard_NC4as_T4_v3", "gke": "n1-standard-8"},
        },
        "pools": [
            {"name": "one", "nodes": {"count": 1}},
            {
                "name": "zero",
                "nodes": {"autoscaling": {"min": 0, "max": 3}},
                "sharing": {"timeSlicing": {"replicas": 4}},
            },
        ],
    }


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clinic") / "clinic.yaml"
    path.write_text(yaml.safe_dump(spec_of_clinic()))
    return path


@pytest.fixture(scope="module")
def clinic(running_sandbox: SandboxInfo, spec: Path) -> SandboxInfo:
    """Give all tests of this module three clusters with healthy pools; whoever makes one ill heals it."""
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    made = run_process(running_sandbox, "pool", "create", "-f", spec)
    assert made.code == 0, made.out + made.err
    return running_sandbox


@pytest.fixture
def doctor(
    clinic: SandboxInfo, quiet_environment: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Gpukube:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", clinic.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)
    return Gpukube(clinic, capsys)


@dataclass(frozen=True, slots=True)
class Fault:
    """A change behind our back.

    Attributes:
        at: Cluster and pool.
        change: Members of the pool as its cloud has them; a value that can be called is given what was sent for it.
        back: Members that undo it; those of `change` as they were sent, where nothing is named.
        found: What the doctor finds of it, with the severity.
    """

    at: tuple[str, str]
    change: Body
    found: dict[str, str]
    back: Body = field(default_factory=dict)


def without(*keys: str) -> Callable[[Body], Body]:
    return lambda labels: {key: value for key, value in labels.items() if key not in keys}


def beside(**more: str) -> Callable[[Body], Body]:
    names = {key.replace("__", "/").replace("_", "."): value for key, value in more.items()}
    return lambda labels: {**labels, **names}


def issues(code: str, message: str) -> Body:
    return {"status": "DEGRADED", "issues": [{"code": code, "message": message, "resourceIds": ["asg"]}]}


QUOTA = {
    "provisioningError": {
        "code": "QuotaExceeded",
        "message": "Operation could not be completed as it results in exceeding approved NCASv3_T4 Family Cores quota. "
        "Current Limit: 0, Current Usage: 0, Additional Required: 4, (Minimum) New Limit Required: 4.",
    }
}
STOCKOUT = [{"code": "GCE_STOCKOUT", "message": "Instance creation failed: stockout in us-central1-a"}]
WELL = {"status": "ACTIVE", "issues": []}
MANAGED = {"driver": "Install", "nvidia": {"managementMode": "Managed"}}
DRIVER = {"name": "driver", "image": "nvcr.io/nvidia/driver:580"}
SCOPES = ["https://www.googleapis.com/auth/logging.write"]
READ = ["https://www.googleapis.com/auth/devstorage.read_only"]
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}

FAULTS: dict[str, Fault] = {
    "eks: the image of CPU machines": Fault(
        (EKS, "zero"),
        {"amiType": "AL2023_x86_64_STANDARD"},
        {"eks-image-without-driver": "error"},
    ),
    "eks: an image of Amazon Linux 2": Fault(
        (EKS, "zero"), {"amiType": "AL2_x86_64_GPU"}, {"eks-image-retired": "error"}
    ),
    "eks: Bottlerocket under our plugin's labels": Fault(
        (EKS, "zero"),
        {"amiType": "BOTTLEROCKET_x86_64_NVIDIA"},
        {"eks-bottlerocket-labels": "error"},
    ),
    "eks: no label for the autoscaler": Fault(
        (EKS, "zero"), {"labels": without(ACCELERATOR)}, {"eks-accelerator-label": "warning"}
    ),
    "eks: a taint without a value": Fault(
        (EKS, "zero"),
        {"taints": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}]},
        {"eks-autoscaler-taint": "warning"},
    ),
    "eks: the autoscaler's tags are gone": Fault((EKS, "zero"), {"tags": {}}, {"autoscaler-misled": "warning"}),
    "eks: the autoscaler's tags are old": Fault(
        (EKS, "zero"),
        {"tags": {"k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu": "2"}},
        {"autoscaler-misled": "warning"},
    ),
    "eks: a quota": Fault(
        (EKS, "zero"), issues("AsgInstanceLaunchFailures", "VcpuLimitExceeded: limit 0"), {"pool-quota": "error"}, WELL
    ),
    "eks: no machine is free": Fault(
        (EKS, "zero"),
        issues("AsgInstanceLaunchFailures", "InsufficientInstanceCapacity in us-east-1a"),
        {"pool-capacity": "error"},
        WELL,
    ),
    "eks: the nodes' role was deleted": Fault(
        (EKS, "one"), issues("IamNodeRoleNotFound", "no such role"), {"pool-ill": "error"}, WELL
    ),
    "eks: an update that does not end": Fault(
        (EKS, "zero"), {"status": "UPDATING"}, {"pool-busy": "warning"}, {"status": "ACTIVE"}
    ),
    "eks: a deletion that does not end": Fault(
        (EKS, "one"), {"status": "DELETING"}, {"pool-deleting": "warning"}, {"status": "ACTIVE"}
    ),
    "eks: nodes that are too old": Fault(
        (EKS, "zero"), {"version": "1.29"}, {"version-skew": "error"}, {"version": "1.34"}
    ),
    "eks: a cut of T4": Fault(
        (EKS, "zero"), {"labels": beside(nvidia_com__mig_config="all-1g.5gb")}, {"machine-without-mig": "error"}
    ),
    "eks: a protection by yes": Fault(
        (EKS, "zero"), {"labels": beside(gpukube_io__protect="yes")}, {"protection-mark": "error"}
    ),
    "eks: a group without our marks": Fault(
        (EKS, "zero"), {"labels": without("gpukube.io/owner", "gpukube.io/pool")}, {"marks-lost": "warning"}
    ),
    "eks: a group with half of our marks": Fault(
        (EKS, "zero"),
        {"labels": without("gpukube.io/owner")},
        {"marks-lost": "warning"},
    ),
    "eks: two with one mark": Fault(
        (EKS, "zero"),
        {"labels": beside(gpukube_io__pool="one"), "tags": {"k8s.io/cluster-autoscaler/enabled": "true"}},
        {"marks-twice": "warning", "name-taken": "error"},
    ),
    "eks: G7 on a stock image": Fault((EKS, "zero"), {"instanceTypes": ["g7.2xlarge"]}, {"eks-g7-driver": "error"}),
    "eks: types with different GPUs": Fault(
        (EKS, "zero"), {"instanceTypes": ["g4dn.xlarge", "g4dn.12xlarge"]}, {"eks-unlike-types": "warning"}
    ),
    "eks: updates that want scarce machines twice": Fault(
        (EKS, "zero"),
        {"instanceTypes": ["p5.48xlarge"], "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}},
        {"eks-surge": "warning"},
    ),
    "aks: A10 with an image whose driver does not fit": Fault(
        (AKS, "zero"),
        {"vmSize": "Standard_NV36ads_A10_v5", "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202607.02.0"},
        {"aks-a10-image": "error"},
        {"vmSize": "Standard_NC4as_T4_v3", "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202608.01.0"},
    ),
    "aks: GPUs that AKS manages": Fault(
        (AKS, "zero"),
        {"gpuProfile": MANAGED},
        {
            "aks-managed-plugin": "error",
            "aks-managed-autoscaling": "warning",
        },
    ),
    "aks: a plugin of AKS's beside ours": Fault(
        (AKS, "one"),
        {"gpuProfile": MANAGED},
        {"aks-managed-plugin": "error", "two-advertisers": "error"},
        {"gpuProfile": None},
    ),
    "aks: machines that are kept": Fault(
        (AKS, "one"), {"scaleDownMode": "Deallocate"}, {"aks-deallocate": "warning"}, {"scaleDownMode": "Delete"}
    ),
    "aks: a GPU pool of mode System": Fault((AKS, "zero"), {"mode": "System"}, {"aks-system-mode": "warning"}),
    "aks: the retired tag": Fault(
        (AKS, "zero"), {"tags": {"SkipGPUDriverInstall": "true"}}, {"aks-retired-tag": "warning"}, {"tags": None}
    ),
    "aks: Flatcar": Fault(
        (AKS, "zero"), {"osSKU": "Flatcar"}, {"aks-system-without-driver": "error"}, {"osSKU": "Ubuntu"}
    ),
    "aks: T4 to be cut": Fault(
        (AKS, "zero"), {"gpuInstanceProfile": "MIG1g"}, {"aks-mig-size": "error"}, {"gpuInstanceProfile": None}
    ),
    "aks: Spot without its taint": Fault(
        (AKS, "zero"), {"scaleSetPriority": "Spot"}, {"aks-spot-taint": "warning"}, {"scaleSetPriority": "Regular"}
    ),
    "aks: a stopped pool": Fault(
        (AKS, "zero"),
        {"powerState": {"code": "Stopped"}},
        {"aks-stopped": "warning"},
        {"powerState": {"code": "Running"}},
    ),
    "aks: no driver": Fault((AKS, "zero"), {"gpuProfile": {"driver": "None"}}, {"driver-of-nobody": "error"}),
    "aks: a quota": Fault(
        (AKS, "zero"),
        {"provisioningState": "Failed", "status": QUOTA},
        {"pool-quota": "error"},
        {"provisioningState": "Succeeded", "status": {}},
    ),
    "aks: nodes that are too old": Fault(
        (AKS, "zero"),
        {"currentOrchestratorVersion": "1.30.9"},
        {"version-skew": "error"},
        {"currentOrchestratorVersion": "1.34.2"},
    ),
    "gke: sharing without the plugin that shares": Fault(
        (GKE, "zero"),
        {"config": {"labels": {OPT_OUT: "true"}}},
        {"gke-sharing-without-plugin": "error", "gke-driverless": "error"},
        {"config": {"labels": {OPT_OUT: None}}},
    ),
    "gke: no taint": Fault(
        (GKE, "zero"), {"config": {"taints": None}}, {"gke-taint": "warning"}, {"config": {"taints": [GPU_TAINT]}}
    ),
    "gke: nodes that cannot download the driver": Fault(
        (GKE, "zero"),
        {"config": {"oauthScopes": SCOPES}},
        {"gke-scopes": "error"},
        {"config": {"oauthScopes": READ}},
    ),
    "gke: no machine is free": Fault(
        (GKE, "zero"),
        {"status": "RUNNING_WITH_ERROR", "conditions": STOCKOUT},
        {"pool-capacity": "error"},
        {"status": "RUNNING", "conditions": []},
    ),
    "gke: a cut that GKE's plugin does not know": Fault(
        (GKE, "zero"),
        {"config": {"machineType": "a2-highgpu-1g", "accelerators": [{**GPU, **A100, "gpuPartitionSize": "4g.20gb"}]}},
        {"gke-partition": "error"},
        {"config": {"machineType": "n1-standard-8", "accelerators": [{**GPU, "gpuSharingConfig": SHARED}]}},
    ),
    "gke: a pool that auto-provisioning owns": Fault(
        (GKE, "zero"),
        {"autoscaling": {"autoprovisioned": True}},
        {"gke-autoprovisioned": "warning"},
        {"autoscaling": {"autoprovisioned": None}},
    ),
    "gke: MPS on nodes that are too old": Fault(
        (GKE, "zero"),
        {
            "version": "1.27.3-gke.100",
            "config": {"accelerators": [{**GPU, "gpuSharingConfig": {**SHARED, "gpuSharingStrategy": "MPS"}}]},
        },
        {"gke-mps-version": "error", "version-skew": "error"},
        {"version": "1.34.1-gke.1829001", "config": {"accelerators": [{**GPU, "gpuSharingConfig": SHARED}]}},
    ),
}


def sent(info: SandboxInfo, cluster: str, pool: str) -> Body:
    """Return the members with which a pool was created."""
    for request in daemon.requests_since(info):
        body = request["body"]
        if not isinstance(body, dict) or f"/{cluster}/" not in str(request["path"]):
            continue
        if body.get("nodegroupName") == pool:
            return body
        if str(request["path"]).endswith(f"/agentPools/{pool}") and request["method"] == "PUT":
            return dict(body["properties"])
    return {}


def ailments(doctor: Gpukube, spec: Path, cluster: str, *words: str) -> list[Body]:
    document = doctor("doctor", "-f", spec, "--cluster", cluster, *words, "-o", "json").json()
    (patient,) = document["clusters"]
    return list(patient["ailments"])


def severities(found: list[Body]) -> dict[str, str]:
    return {item["check"]: item["severity"] for item in found}


USUAL = {EKS: {"nothing-scales": "warning"}, AKS: {"autoscaler-misled": "warning"}, GKE: {}}
"""Nothing scales groups of EKS by itself, AKS's autoscaler cannot be told of shares: pools from zero have a warning."""


@pytest.mark.turns(3)
@pytest.mark.parametrize("cluster", USUAL)
def test_doctor_when_the_pools_are_as_created_then_no_more_than_a_warning(
    cluster: str, doctor: Gpukube, spec: Path
) -> None:
    require_usual(doctor, spec, cluster)


def require_usual(doctor: Gpukube, spec: Path, cluster: str) -> None:
    """Wait until nothing is left of what was done before: what was changed back takes the cluster a moment too."""
    found: list[Body] = []

    def is_usual() -> bool:
        found[:] = ailments(doctor, spec, cluster)
        return severities(found) == USUAL[cluster]

    wait_for(is_usual, lambda: found)


@pytest.mark.turns(6)
@pytest.mark.parametrize("name", FAULTS)
def test_doctor_when_a_pool_is_changed_in_the_cloud_then_its_check_finds_it_and_no_other(
    name: str, doctor: Gpukube, spec: Path
) -> None:
    fault = FAULTS[name]
    cluster, pool = fault.at
    before = sent(doctor.info, cluster, pool)
    change = {key: value(before[key]) if callable(value) else value for key, value in fault.change.items()}
    found: list[Body] = []

    def is_found() -> bool:
        found[:] = ailments(doctor, spec, cluster)
        kept = {check: told for check, told in USUAL[cluster].items() if check in severities(found)}
        return severities(found) == fault.found | kept  # what the test before has left goes within a moment

    daemon.tamper(doctor.info, cluster, pool, **change)
    try:
        wait_for(is_found, lambda: found)
    finally:
        daemon.tamper(doctor.info, cluster, pool, **(fault.back or {key: before.get(key) for key in change}))
    for item in found:
        assert item["evidence"] or item["where"].startswith(("pool", "cluster"))
        assert item["consequence"]
        assert item["remedy"]
        assert item["link"].startswith("https://")


def require_seen(doctor: Gpukube, spec: Path, cluster: str, code: int, found: dict[str, str]) -> None:
    """Wait until the doctor ends so, and finds this beside what is found in the healthy cluster."""
    seen: list[tuple[int, dict[str, str]]] = []

    def is_seen() -> bool:
        told = severities(ailments(doctor, spec, cluster))
        others = {check: severity for check, severity in told.items() if check not in USUAL[cluster]}
        seen[:] = [(doctor.log[-1].code, others)]
        return seen == [(code, found)]

    wait_for(is_seen, lambda: seen)


def names_of_nodes(inside: Cluster) -> set[str]:
    nodes = inside.client.list(Node, labels={"eks.amazonaws.com/nodegroup": "one"})
    return {str(node.metadata.name) for node in nodes if node.metadata}


def test_doctor_when_a_node_is_gone_then_the_clouds_count_is_compared(
    doctor: Gpukube, clinic: SandboxInfo, spec: Path
) -> None:
    inside = Cluster(clinic, EKS)
    first = names_of_nodes(inside)
    daemon.tamper(clinic, EKS, "one", scalingConfig={"minSize": 2, "maxSize": 2, "desiredSize": 2})
    try:
        wait_for(lambda: len(names_of_nodes(inside)) == 2)
        (second,) = names_of_nodes(inside) - first
        inside.client.delete(Node, second)
        require_seen(doctor, spec, EKS, 0, {"pool-nodes-missing": "warning"})
    finally:
        daemon.tamper(clinic, EKS, "one", scalingConfig={"minSize": 1, "maxSize": 1, "desiredSize": 1})
        inside.close()


def test_doctor_when_an_operator_brings_a_driver_too_then_two_drivers(
    doctor: Gpukube, clinic: SandboxInfo, spec: Path
) -> None:
    inside = Cluster(clinic, EKS)
    app = {"app": "nvidia-driver-daemonset"}
    pod = {"nodeSelector": {"gpukube.io/pool": "one"}, "tolerations": [{"operator": "Exists"}], "containers": [DRIVER]}
    made = DaemonSet.from_dict(
        {
            "metadata": {"name": "nvidia-driver-daemonset", "namespace": "kube-system", "labels": app},
            "spec": {"selector": {"matchLabels": app}, "template": {"metadata": {"labels": app}, "spec": pod}},
        }
    )
    assert isinstance(made, DaemonSet)
    inside.client.create(made)
    try:
        require_seen(doctor, spec, EKS, 1, {"driver-twice": "error"})
    finally:
        inside.client.delete(DaemonSet, "nvidia-driver-daemonset", namespace="kube-system")
        inside.close()


DENIED: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    "to install": (("create", "daemonsets.apps"), {"kube-rights": "error"}),
    "to see quotas": (("list", "resourcequotas"), {"kube-blind-spot": "warning"}),
}


@pytest.mark.parametrize("case", DENIED)
def test_doctor_when_the_cluster_denies_then_it_says_what(
    case: str, doctor: Gpukube, clinic: SandboxInfo, spec: Path
) -> None:
    pair, wanted = DENIED[case]
    daemon.deny(clinic, EKS, pair)
    try:
        require_seen(doctor, spec, EKS, 1 if "error" in wanted.values() else 0, wanted)
    finally:
        daemon.deny(clinic, EKS)


REFUSED: dict[str, tuple[str, Body, str]] = {
    "AWS, the action": (EKS, {"service": "aws", "status": 403, "code": "AccessDeniedException"}, "cloud-permission"),
    "AWS, the token": (EKS, {"service": "aws", "status": 403, "code": "ExpiredTokenException"}, "cloud-credentials"),
    "Azure, the action": (AKS, {"service": "arm", "status": 403, "code": "AuthorizationFailed"}, "cloud-permission"),
    "Azure, the token": (AKS, {"service": "arm", "status": 401, "code": "ExpiredToken"}, "cloud-credentials"),
    "Azure, the cluster": (AKS, {"service": "arm", "status": 404, "code": "ResourceNotFound"}, "cloud-no-cluster"),
    "Google, the action": (GKE, {"service": "gke", "status": 403}, "cloud-permission"),
    "Google, the token": (GKE, {"service": "gke", "status": 401}, "cloud-credentials"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_doctor_when_the_cloud_refuses_then_it_says_why_and_access_is_the_exit_code(
    case: str, doctor: Gpukube, clinic: SandboxInfo, spec: Path
) -> None:
    cluster, fault, check = REFUSED[case]
    daemon.add_fault(clinic, "status", times=0, **fault)
    try:
        require_seen(doctor, spec, cluster, 1 if check == "cloud-no-cluster" else 5, {check: "error"})
    finally:
        daemon.clear_faults(clinic)


def test_doctor_when_the_spec_no_longer_has_a_pool_then_the_pool_is_named(
    doctor: Gpukube, spec: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load(spec.read_text())
    document["pools"] = document["pools"][:1]
    less = tmp_path / "less.yaml"
    less.write_text(yaml.safe_dump(document))
    require_seen(doctor, less, GKE, 0, {"pool-undeclared": "warning"})


def test_doctor_when_helm_keeps_its_records_elsewhere_then_it_says_so(
    doctor: Gpukube, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELM_DRIVER", "configmap")
    require_seen(doctor, spec, GKE, 0, {"helm-driver": "warning"})


def test_doctor_when_given_an_address_only_then_the_clouds_faults_are_found_without_a_spec(
    doctor: Gpukube, clinic: SandboxInfo
) -> None:
    daemon.tamper(clinic, GKE, "zero", config={"oauthScopes": SCOPES})
    try:
        told = doctor("doctor", "--cluster", f"gke:ml-prod/us-central1-a/{GKE}")
    finally:
        daemon.tamper(clinic, GKE, "zero", config={"oauthScopes": READ})
    assert told.code == 1
    assert "gke-scopes" in told.out
    assert f"gcloud container node-pools delete zero --cluster {GKE} --location us-central1-a" in told.out


def test_doctor_when_a_group_is_gone_and_its_template_stays_then_the_template_is_named(
    doctor: Gpukube, clinic: SandboxInfo, spec: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load(spec.read_text())
    document["pools"].append({**document["pools"][1], "name": "spare", "clusters": [EKS]})
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump(document))
    doctor.made("-f", more)
    daemon.tamper(clinic, EKS, "spare", delete=True)
    try:
        require_seen(doctor, more, EKS, 0, {"eks-template-leftover": "warning"})
    finally:
        gone = doctor("pool", "delete", "spare", "-f", more, "--yes")
    assert gone.code == 0, gone.out + gone.err
    require_usual(doctor, spec, EKS)


HEALED: dict[str, str] = {
    "eks: no label for the autoscaler": "aws",
    "eks: a taint without a value": "aws",
    "eks: the autoscaler's tags are old": "aws",
    "eks: Bottlerocket under our plugin's labels": "aws",
    "aks: machines that are kept": "az",
    "aks: Spot without its taint": "az",
    "aks: a plugin of AKS's beside ours": "az",
    "aks: a stopped pool": "az",
}
"""Those whose remedy is one command of the cloud's own."""


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.clients(command)) for name, command in HEALED.items()]
)
def test_remedy_when_it_is_run_as_it_is_told_then_the_ailment_is_gone(
    name: str, doctor: Gpukube, clinic: SandboxInfo, spec: Path
) -> None:
    fault = FAULTS[name]
    cluster, pool = fault.at
    check = next(iter(fault.found))
    before = sent(clinic, cluster, pool)
    change = {key: value(before[key]) if callable(value) else value for key, value in fault.change.items()}
    daemon.tamper(clinic, cluster, pool, **change)
    try:
        (ailment,) = [item for item in ailments(doctor, spec, cluster) if item["check"] == check]
        surroundings = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **env(clinic)}
        words = ["sh", "-c", ailment["remedy"]]
        done = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        wait_for(lambda: not {check, "pool-busy"} & set(severities(ailments(doctor, spec, cluster))))
    finally:
        whole = ("labels", "taints", "tags") if cluster == EKS else ("nodeLabels", "nodeTaints")
        back: Body = {key: before.get(key) for key in (*whole, *change)} | fault.back
        daemon.tamper(clinic, cluster, pool, **back)
