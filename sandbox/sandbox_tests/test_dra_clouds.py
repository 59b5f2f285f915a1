"""The DRA driver's chart on nodes of three clouds: where their driver is, who else advertises, MIG by the operator."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.kube.repository import DRA
from sandbox_tests.aks.arm import GROUP, SUBSCRIPTION, T4, Arm
from sandbox_tests.aks.arm import NAME as AKS_NAME
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.kube.clients import run_client
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

pytest.importorskip("helm_python")

HELM_S = 90
GPU = "nvidia.com/gpu"
PRESENT = {"nvidia.com/gpu.present": "true"}
NODES = "/api/v1/nodes"
HELM = """
import json, sys
import helm_python
config = helm_python.Config(namespace=sys.argv[2], kubeconfig_content=open(sys.argv[1]).read())
try:
    config.install(*json.loads(sys.argv[3]), **json.loads(sys.argv[4]))
except helm_python.HelmError as error:
    print(error)
"""
INSTALLER = {
    "name": "nvidia-driver-installer", "image": "cos-nvidia-installer:fixed", "imagePullPolicy": "Never",
}  # fmt: skip


class Plane:
    """The Kubernetes side of the only cluster: Helm with the sandbox's repository, and a plain client."""

    def __init__(self, info: SandboxInfo, directory: Path) -> None:
        self.info = info
        document = daemon.call(info, "GET", "kubeconfig")["kubeconfig"]
        assert isinstance(document, dict)
        self._kubeconfig = directory / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(document))
        self._kubeconfig.chmod(0o600)
        headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}
        self.http = httpx.Client(
            base_url=document["clusters"][0]["cluster"]["server"],
            verify=False,  # noqa: S501 - loopback
            trust_env=False,
            headers=headers,
            timeout=PATIENCE_S,
        )

    def install(self, chart: str, version: str, namespace: str, values: dict[str, Any]) -> str:
        """Install a chart; gives the error's text, "" when all went well."""
        more = {
            "chart_repo_url": self.info.charts_url, "chart_version": version, "namespace": namespace,
            "create_namespace": True, "values": values, "timeout": HELM_S,
        }  # fmt: skip
        command = [sys.executable, "-c", HELM, str(self._kubeconfig), namespace]
        done = run_client([*command, json.dumps([chart, chart]), json.dumps(more)])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def driver(self, root: str, namespace: str = "dra", **plugin: object) -> str:
        """Install the DRA driver for GPUs alone."""
        values = {
            "gpuResourcesEnabledOverride": True, "nvidiaDriverRoot": root,
            "resources": {"computeDomains": {"enabled": False}}, "kubeletPlugin": plugin,
        }  # fmt: skip
        return self.install(DRA, "0.4.1", namespace, values)

    def items(self, path: str) -> list[dict[str, Any]]:
        """List objects."""
        return list(self.http.get(path).json()["items"])

    def devices(self) -> Counter[str]:
        """Count the devices in slices: whole GPUs as gpu, instances by their profile."""
        slices = self.items("/apis/resource.k8s.io/v1/resourceslices")
        found = [device["attributes"] for item in slices for device in item["spec"].get("devices") or ()]
        return Counter(one.get("profile", one["type"])["string"] for one in found)

    def advertised(self) -> Counter[str]:
        """Sum what the nodes' device plugins advertise."""
        found: Counter[str] = Counter()
        for node in self.items(NODES):
            amounts = node["status"]["allocatable"].items()
            found.update({name: int(amount) for name, amount in amounts if name.startswith("nvidia.com/")})
        return found

    def plugin(self) -> dict[str, Any]:
        """The driver's DaemonSet."""
        found: dict[str, Any] = self.http.get(
            "/apis/apps/v1/namespaces/dra/daemonsets/dra-driver-nvidia-gpu-kubelet-plugin"
        ).json()
        return found

    def phases(self) -> list[str]:
        """Phases of the driver's pods."""
        return [pod["status"]["phase"] for pod in self.items("/api/v1/namespaces/dra/pods")]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Callable[[SandboxInfo], Plane]]:
    made: list[Plane] = []

    def make(info: SandboxInfo) -> Plane:
        made.append(Plane(info, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


def test_eks_when_the_chart_is_installed_then_devices_of_labelled_nodes_and_faults_by_the_control_api(
    sandbox: SandboxInfo, plane: Callable[[SandboxInfo], Plane]
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    aws, kube = Aws(sandbox), plane(sandbox)
    assert kube.driver("/") == ""
    (policy,) = kube.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    assert policy["metadata"]["name"] == "resourceslices-policy-dra-driver-nvidia-gpu"
    classes = kube.items("/apis/resource.k8s.io/v1/deviceclasses")
    assert [one["metadata"]["name"] for one in classes] == ["gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"]
    assert all("extendedResourceName" not in one["spec"] for one in classes), "the gate is off before 1.36"
    daemon.add_fault(sandbox, "late-driver", service="aws", pool="late")
    aws.create("late", instanceTypes=["g4dn.12xlarge"], amiType="AL2023_x86_64_NVIDIA", labels=PRESENT)
    aws.create("t4", instanceTypes=["g4dn.xlarge"], amiType="AL2023_x86_64_NVIDIA", labels=PRESENT)
    aws.create("other", instanceTypes=["g4dn.xlarge"], amiType="AL2023_x86_64_NVIDIA")
    wait_for(lambda: kube.phases() == ["Running", "Running"])
    wait_for(lambda: kube.devices() == {"gpu": 1})
    assert len(kube.items("/apis/resource.k8s.io/v1/resourceslices")) == 2
    assert kube.advertised() == {}
    assert daemon.gpu_holders(sandbox, NAME) == {}
    assert "cannot be imported into the current release" in kube.driver("/", namespace="second")


MANAGED = {"matchExpressions": [{"key": "nvidia.com/mig.config.state", "operator": "In", "values": ["success"]}]}


def test_eks_when_the_operator_cuts_gpus_then_the_plugin_starts_after_each_change(
    sandbox: SandboxInfo, plane: Callable[[SandboxInfo], Plane]
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    aws, kube = Aws(sandbox), plane(sandbox)
    off = {"enabled": False}
    reboot = {"env": [{"name": "WITH_REBOOT", "value": "true"}]}
    operator = {"driver": off, "toolkit": off, "devicePlugin": off, "mig": {"strategy": ""}, "migManager": reboot}
    assert kube.install("gpu-operator", "v26.7.0", "gpu-operator", operator) == ""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [MANAGED]}}
    assert kube.driver("/", affinity={"nodeAffinity": required}) == ""
    aws.create("a100", instanceTypes=["p4d.24xlarge"], amiType="AL2023_x86_64_NVIDIA", labels={
        "nvidia.com/mig.config": "all-1g.5gb",
    })  # fmt: skip
    wait_for(lambda: kube.devices() == {"1g.5gb": 56}, lambda: (kube.devices(), kube.phases()))
    change = {"labels": {"addOrUpdateLabels": {"nvidia.com/mig.config": "all-3g.20gb"}}}
    aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="a100", **change)
    wait_for(lambda: kube.devices() == {"3g.20gb": 16}, lambda: (kube.devices(), kube.phases()))
    assert kube.advertised() == {}


def test_aks_when_its_own_plugin_runs_then_two_advertise_the_same_gpu(
    sandbox: SandboxInfo, plane: Callable[[SandboxInfo], Plane]
) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, AKS_NAME)
    kube = plane(sandbox)
    assert kube.driver("/") == ""
    with Arm(sandbox) as arm:
        arm.create("own", {**T4, "nodeLabels": PRESENT})
        wait_for(lambda: kube.devices() == {"gpu": 1})
        assert kube.advertised() == {}
        managed = {"nvidia": {"managementMode": "Managed"}}
        arm.create("managed", {**T4, "nodeLabels": PRESENT, "gpuProfile": managed})
    wait_for(lambda: (kube.devices(), kube.advertised()) == ({"gpu": 2}, {GPU: 1}))


def test_gke_when_the_default_priority_has_no_quota_then_no_pods_and_with_googles_driver_devices(
    sandbox: SandboxInfo, plane: Callable[[SandboxInfo], Plane]
) -> None:
    clients = pytest.importorskip("sandbox_tests.gke.clients")
    clients.add_cluster(sandbox)
    kube, gke = plane(sandbox), clients.Gke(sandbox, "rest")
    marks = {**PRESENT, "gke-no-default-nvidia-gpu-device-plugin": "true"}
    off = {"gpu_driver_version": 3}
    gke.create(clients.t4_pool("p", labels=marks, gpu_driver_installation_config=off))
    gke.close()
    assert kube.driver("/home/kubernetes/bin/nvidia") == ""

    def refusals() -> list[str]:
        events = kube.items("/api/v1/namespaces/dra/events")
        return [str(event["message"]) for event in events if event["reason"] == "FailedCreate"]

    wait_for(lambda: any("insufficient quota to match these scopes" in message for message in refusals()))
    quota = {
        "metadata": {"name": "critical"},
        "spec": {
            "hard": {"pods": "100"},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
                ]
            },
        },
    }
    assert kube.http.post("/api/v1/namespaces/dra/resourcequotas", json=quota).is_success
    wait_for(lambda: kube.phases() == ["Pending"])
    labels = {"k8s-app": "nvidia-driver-installer"}
    pod = {
        "initContainers": [INSTALLER], "containers": [{"name": "pause", "image": "pause"}],
        "tolerations": [{"operator": "Exists"}], "nodeSelector": PRESENT,
    }  # fmt: skip
    daemonset = {
        "metadata": {"name": "nvidia-driver-installer"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    assert kube.http.post("/apis/apps/v1/namespaces/kube-system/daemonsets", json=daemonset).is_success
    wait_for(lambda: kube.devices() == {"gpu": 1})
    assert kube.advertised() == {}
