"""The GPU Operator on emulated nodes: its chart by Helm, its operands, and MIG by a node label."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.kube.controllers.migmanager import layout_of
from gpukube_sandbox.kube.controllers.operands import operands
from gpukube_sandbox.kube.nodes.hardware import MODELS, fits
from gpukube_sandbox.kube.nodes.shapes import GpuShape
from sandbox_tests.eks.aws import NAME, Aws
from sandbox_tests.kube.clients import run_client
from sandbox_tests.waiting import PATIENCE_S, wait_for
from sandbox_tests.watches import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("helm_python")

GPU = "nvidia.com/gpu"
NAMESPACE = "gpu-operator"
HELM_S = 90
TAINT = [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}]
CONFIGS = {
    "default": "version: v1\n",
    "single": "version: v1\nflags: {migStrategy: single}\n",
    "mixed": "version: v1\nflags: {migStrategy: mixed}\n",
    "four": f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: 4}}]}}}}\n",
}
VALUES: dict[str, Any] = {
    "driver": {"enabled": False},
    "toolkit": {"enabled": False},
    "mig": {"strategy": ""},
    "migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]},
    "devicePlugin": {"config": {"create": True, "name": "gpu-configs", "default": "default", "data": CONFIGS}},
}
HELM = """
import json, sys
import helm_python
config = helm_python.Config(namespace="gpu-operator", kubeconfig_content=open(sys.argv[1]).read())
try:
    getattr(config, sys.argv[2])(*json.loads(sys.argv[3]), **json.loads(sys.argv[4]))
except helm_python.HelmError as error:
    print(error)
"""


class Plane:
    """The Kubernetes side of the cluster: Helm with the repository's chart, and a plain client."""

    def __init__(self, aws: Aws, directory: Path) -> None:
        self.aws = aws
        document = daemon.call(aws.info, "GET", "kubeconfig")["kubeconfig"]
        assert isinstance(document, dict)
        self._kubeconfig = directory / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(document))
        self._kubeconfig.chmod(0o600)
        user, cluster = document["users"][0]["user"], document["clusters"][0]["cluster"]
        headers = {"Authorization": f"Bearer {user['token']}"}
        self.http = httpx.Client(
            base_url=cluster["server"],
            verify=False,  # noqa: S501 - loopback
            trust_env=False,
            headers=headers,
            timeout=PATIENCE_S,
        )

    def helm(self, verb: str, *args: object, **more: object) -> str:
        """Run Helm's SDK in a child process; gives the error's text, "" when all went well."""
        command = [sys.executable, "-c", HELM, str(self._kubeconfig), verb, json.dumps(args), json.dumps(more)]
        done = run_client(command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def install(self, **values: object) -> str:
        """Install the operator."""
        common = {"chart_repo_url": self.aws.info.charts_url, "chart_version": "v26.7.0", "timeout": HELM_S}
        common |= {"namespace": NAMESPACE, "create_namespace": True}
        return self.helm("install", "gpu-operator", "gpu-operator", values={**VALUES, **values}, **common)

    def node(self, group: str) -> dict[str, Any]:
        """The one node of a group."""
        query = {"labelSelector": f"eks.amazonaws.com/nodegroup={group}"}
        (found,) = self.http.get("/api/v1/nodes", params=query).json()["items"]
        return dict(found)

    def labels(self, group: str) -> dict[str, str]:
        """Labels of the one node of a group."""
        return dict(self.node(group)["metadata"]["labels"])

    def devices(self, group: str) -> dict[str, str]:
        """What the node has to give out."""
        found = self.node(group)["status"]["allocatable"]
        return {key: value for key, value in found.items() if key.startswith("nvidia.com/") and value != "0"}

    def daemonsets(self) -> dict[str, dict[str, Any]]:
        """DaemonSets of the operator's namespace by name."""
        items = self.http.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets").json()["items"]
        return {item["metadata"]["name"]: item for item in items}

    def runtime_classes(self) -> list[str]:
        """Names of the runtime classes, which pods may ask for."""
        return [
            item["metadata"]["name"] for item in self.http.get("/apis/node.k8s.io/v1/runtimeclasses").json()["items"]
        ]


@pytest.fixture
def plane(aws: Aws, tmp_path: Path) -> Iterator[Plane]:
    found = Plane(aws, tmp_path)
    yield found
    found.http.close()


def test_operator_when_pools_differ_then_each_gets_what_its_labels_ask_for(plane: Plane) -> None:
    assert plane.install() == ""
    plane.aws.create("a100", instanceTypes=["p4d.24xlarge"], taints=TAINT, labels={
        "nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/device-plugin.config": "single",
    })  # fmt: skip
    plane.aws.create("h100", instanceTypes=["p5.48xlarge"], taints=TAINT, labels={
        "nvidia.com/mig.config": "all-3g.40gb", "nvidia.com/device-plugin.config": "mixed",
    })  # fmt: skip
    plane.aws.create("t4", taints=TAINT, labels={"nvidia.com/device-plugin.config": "four"})
    wait_for(lambda: plane.devices("a100") == {GPU: "56"})
    wait_for(lambda: plane.devices("h100") == {"nvidia.com/mig-3g.40gb": "16"})
    wait_for(lambda: plane.devices("t4") == {GPU: "4"})
    labels = plane.labels("a100")
    assert labels["nvidia.com/mig.config.state"] == "success"
    assert labels["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert "nvidia.com/gpu.deploy.mig-manager" not in plane.labels("t4")
    wait_for(lambda: policy(plane)["status"]["state"] == "ready")


def policy(plane: Plane) -> dict[str, Any]:
    """The ClusterPolicy."""
    found: dict[str, Any] = plane.http.get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy").json()
    return found


def test_mig_when_the_label_changes_then_pending_rebooting_and_success(plane: Plane) -> None:
    plane.install()
    plane.aws.create("a100", instanceTypes=["p4d.24xlarge"], taints=TAINT, labels={
        "nvidia.com/device-plugin.config": "single",
    })  # fmt: skip
    wait_for(lambda: plane.devices("a100") == {GPU: "8"})
    wait_for(lambda: plane.labels("a100").get("nvidia.com/mig.config.state") == "success")
    assert plane.labels("a100")["nvidia.com/mig.config"] == "all-disabled"
    history = Nodes(plane.http, "eks.amazonaws.com/nodegroup=a100")
    change = {"labels": {"addOrUpdateLabels": {"nvidia.com/mig.config": "all-2g.10gb"}}}
    plane.aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="a100", **change)
    wait_for(lambda: plane.devices("a100") == {GPU: "24"})
    assert history.labelled("nvidia.com/mig.config.state") == ["success", "pending", "rebooting", "success"]


def test_mig_when_an_a100_must_not_reboot_then_failed_but_an_h100_needs_none(plane: Plane) -> None:
    plane.install(migManager={"env": []})
    for name, kind in (("a100", "p4d.24xlarge"), ("h100", "p5.48xlarge")):
        size = "all-1g.5gb" if name == "a100" else "all-1g.10gb"
        labels = {"nvidia.com/mig.config": size, "nvidia.com/device-plugin.config": "single"}
        plane.aws.create(name, instanceTypes=[kind], taints=TAINT, labels=labels)
    wait_for(lambda: plane.labels("a100").get("nvidia.com/mig.config.state") == "failed")
    wait_for(lambda: plane.devices("h100") == {GPU: "56"})
    wait_for(lambda: plane.devices("a100") == {GPU: "8"})


def test_mig_when_the_config_is_of_another_gpu_then_failed(plane: Plane) -> None:
    plane.install()
    labels = {"nvidia.com/mig.config": "all-1g.18gb"}
    plane.aws.create("a100", instanceTypes=["p4d.24xlarge"], taints=TAINT, labels=labels)
    wait_for(lambda: plane.labels("a100").get("nvidia.com/mig.config.state") == "failed")


def test_mig_when_a_users_pod_holds_a_gpu_then_failed(plane: Plane) -> None:
    plane.install()
    plane.aws.create("h100", instanceTypes=["p5.48xlarge"], taints=TAINT)
    wait_for(lambda: plane.devices("h100") == {GPU: "8"})
    container = {"name": "main", "image": "cuda", "resources": {"limits": {GPU: "1"}}}
    tolerations = [{"key": GPU, "operator": "Exists"}]
    pod = {"metadata": {"name": "user"}, "spec": {"containers": [container], "tolerations": tolerations}}
    assert plane.http.post("/api/v1/namespaces/default/pods", json=pod).status_code == 201
    wait_for(lambda: running(plane))
    plane.aws.update("h100", labels={"addOrUpdateLabels": {"nvidia.com/mig.config": "all-1g.10gb"}})
    wait_for(lambda: plane.labels("h100").get("nvidia.com/mig.config.state") == "failed")
    wait_for(lambda: plane.devices("h100") == {GPU: "8"})


def running(plane: Plane) -> bool:
    """Whether the user's pod runs."""
    pod = plane.http.get("/api/v1/namespaces/default/pods/user").json()
    return bool(pod["status"].get("phase") == "Running")


def test_mig_when_the_configs_are_ones_own_then_by_them(plane: Plane) -> None:
    cut = {"devices": [0, 1], "mig-enabled": True, "mig-devices": {"3g.20gb": 2}}
    rest = {"devices": [2, 3, 4, 5, 6, 7], "mig-enabled": True, "mig-devices": {"7g.40gb": 1}}
    data = {"config.yaml": json.dumps({"version": "v1", "mig-configs": {"halves": [cut, rest]}})}
    config = {"create": True, "name": "my-mig", "default": "all-disabled", "data": data}
    manager = {"env": [{"name": "WITH_REBOOT", "value": "true"}], "config": config}
    plane.install(migManager=manager)
    labels = {"nvidia.com/mig.config": "halves", "nvidia.com/device-plugin.config": "mixed"}
    plane.aws.create("a100", instanceTypes=["p4d.24xlarge"], taints=TAINT, labels=labels)
    wait_for(lambda: plane.devices("a100") == {"nvidia.com/mig-3g.20gb": "4", "nvidia.com/mig-7g.40gb": "6"})


def test_strategy_when_left_at_the_charts_default_then_it_wins_over_every_config(plane: Plane) -> None:
    plane.install(mig={"strategy": "single"})
    labels = {"nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/device-plugin.config": "mixed"}
    plane.aws.create("a100", instanceTypes=["p4d.24xlarge"], taints=TAINT, labels=labels)
    wait_for(lambda: plane.devices("a100") == {GPU: "56"})


def test_operator_when_a_taint_is_not_tolerated_then_its_operands_stay_away(plane: Plane) -> None:
    plane.install()
    other = [*TAINT, {"key": "dedicated", "value": "vision", "effect": "NO_SCHEDULE"}]
    plane.aws.create("gpu", taints=other)
    plane.aws.create("fine", taints=TAINT)
    wait_for(lambda: plane.devices("fine") == {GPU: "1"})
    assert plane.devices("gpu") == {}
    assert f"{GPU}.present" not in plane.labels("gpu")  # NFD's worker does not come either


def test_operator_when_a_label_forbids_its_plugin_then_none(plane: Plane) -> None:
    plane.install()
    plane.aws.create("off", taints=TAINT, labels={"nvidia.com/gpu.deploy.device-plugin": "false"})
    plane.aws.create("out", taints=TAINT, labels={"nvidia.com/gpu.deploy.operands": "false"})
    plane.aws.create("on", taints=TAINT)
    wait_for(lambda: plane.devices("on") == {GPU: "1"})
    assert (plane.devices("off"), plane.devices("out")) == ({}, {})
    assert f"{GPU}.present" not in plane.labels("out")


def test_operator_when_upgraded_and_uninstalled_then_operands_follow(plane: Plane) -> None:
    plane.install()
    wait_for(lambda: "nvidia-mig-manager" in plane.daemonsets())
    found = plane.daemonsets()["nvidia-device-plugin-daemonset"]
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "gpu-operator"
    assert found["metadata"]["labels"]["app"] == "nvidia-device-plugin-daemonset"
    assert plane.runtime_classes() == [found["spec"]["template"]["spec"]["runtimeClassName"]] == ["nvidia"]
    common = {"chart_repo_url": plane.aws.info.charts_url, "chart_version": "v26.7.0", "timeout": HELM_S}
    values = {**VALUES, "migManager": {"enabled": False}, "daemonsets": {"tolerations": [{"operator": "Exists"}]}}
    answer = plane.helm("upgrade", "gpu-operator", "gpu-operator", values=values, namespace=NAMESPACE, **common)
    assert answer == ""
    wait_for(lambda: "nvidia-mig-manager" not in plane.daemonsets())

    def tolerant() -> bool:
        template = plane.daemonsets()["nvidia-device-plugin-daemonset"]["spec"]["template"]["spec"]
        return bool(template["tolerations"] == [{"operator": "Exists"}])

    wait_for(tolerant)
    plane.helm("uninstall", "gpu-operator", timeout=HELM_S)
    wait_for(lambda: not plane.daemonsets() and not plane.runtime_classes())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "config without a name": ({"devicePlugin": {"config": {"create": True, "data": CONFIGS}}}, "config.name is empty"),
    "config without data": ({"devicePlugin": {"config": {"create": True, "name": "x"}}}, "config.data is empty"),
    "MIG configs under another key": (
        {"migManager": {"config": {"create": True, "name": "x", "data": {"mig.yaml": ""}}}},
        "needs the key config.yaml",
    ),
    "both resources": ({"gpuCluster": {"deployCR": True}}, "mutually exclusive"),
}


@pytest.mark.parametrize(("values", "text"), WRONG.values(), ids=WRONG)
def test_chart_when_values_are_wrong_then_it_does_not_render(plane: Plane, values: dict[str, Any], text: str) -> None:
    assert text in plane.install(**values)


@pytest.mark.parametrize("model", [model.name for model in MODELS.values() if model.profiles])
def test_layout_when_generated_then_it_fits_the_gpu(model: str) -> None:
    gpu = GpuShape(model, 2)
    for profile in MODELS[model].profiles.values():
        layout = layout_of(f"all-{profile.name.replace('+', '.')}", gpu)
        assert layout is not None
        assert all(cut is not None and fits(MODELS[model], cut) for cut in layout)
    assert layout_of("all-disabled", gpu) == (None, None)
    assert layout_of("all-enabled", gpu) == ((), ())
    assert layout_of("all-9g.1gb", gpu) is None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("A100-40GB", ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb")),
        ("H200-141GB", ("1g.18gb", "1g.18gb", "2g.35gb", "3g.71gb")),
        ("A30-24GB", ("1g.6gb", "1g.6gb", "2g.12gb")),
        ("RTXPRO6000-96GB", ("1g.24gb", "1g.24gb", "2g.48gb")),
    ],
)
def test_layout_when_balanced_then_as_nvidia_balances(model: str, expected: tuple[str, ...]) -> None:
    assert layout_of("all-balanced", GpuShape(model, 1)) == (expected,)


def test_operands_when_switched_off_then_left_out() -> None:
    parts = ("driver", "toolkit", "devicePlugin", "gfd", "dcgmExporter", "migManager")
    off = {key: {"enabled": False} for key in parts}
    assert [item["metadata"]["name"] for item in operands(off, "x")] == ["nvidia-operator-validator"]
