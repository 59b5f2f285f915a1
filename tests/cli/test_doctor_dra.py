"""The doctor where NVIDIA's DRA driver publishes the GPUs: each fault has its name and a remedy that ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Node, Pod, ServiceAccount
from lightkube.types import PatchType

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import SUBSCRIPTION
from tests.cli.cluster_faults import OTHER_TAINT, STATIC_PLUGIN
from tests.cli.harness import NAMESPACE, Cluster, Gpukube, run_process
from tests.cli.test_doctor_remedies import SPEED, ailments, carry_out, errors, found, inside_of
from tests.intruders import GPU_TAINT, TEAM, TOLERATES_GPU, Body, gpu_pod, put_in, take_out, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

pytestmark = pytest.mark.clients("kubectl")
POOL = "t4dra"
DRIVER = "dra-driver-nvidia-gpu-kubelet-plugin"
CLASS = create_global_resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses")
SLICE = create_global_resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices")
TEMPLATE = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
VERSIONS = {"claims": "1.34.7", "modern": "1.36.0"}
"""Cluster -> its Kubernetes version: devices have taints, and classes extended resources, from 1.36."""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("claims")
    for name in VERSIONS:
        place = {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": name}
        pool = {
            "name": POOL,
            "clusters": [name],
            "instanceType": "Standard_NC16as_T4_v3",
            "nodes": {"count": 1},
            "devicePlugin": {"owner": "dra"},
        }
        document = {
            "apiVersion": "gpukube.io/v1alpha1",
            "kind": "GPUNodePools",
            "metadata": {"name": name},
            "clusters": {name: place},
            "pools": [pool],
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    return {name: folder / f"{name}.yaml" for name in VERSIONS}


@pytest.fixture(scope="module")
def ward(running_sandbox: SandboxInfo, specs: dict[str, Path]) -> SandboxInfo:
    daemon.reset(running_sandbox)
    daemon.configure(running_sandbox, speed=SPEED)
    for name, version in VERSIONS.items():
        daemon.add_cluster(running_sandbox, SUBSCRIPTION, "ml", name, kubernetes_version=version)
        made = run_process(running_sandbox, "pool", "create", "-f", specs[name])
        assert made.code == 0, made.out + made.err
    return running_sandbox


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """Choose the cluster of a case."""
    return "modern" if request.node.callspec.params["name"] in MODERN else "claims"


@pytest.fixture
def spec(specs: dict[str, Path], place: str) -> Path:
    return specs[place]


@pytest.fixture
def patient(ward: SandboxInfo, place: str) -> Iterator[Cluster]:
    inside = Cluster(ward, place)
    yield inside
    inside.close()


@pytest.fixture
def inside(ward: SandboxInfo, tmp_path: Path, place: str) -> Path:
    return inside_of(ward, tmp_path, place)


def driver_pods(cluster: Cluster) -> list[str]:
    pods = cluster.client.list(Pod, namespace=NAMESPACE)
    return [str(pod.metadata.name) for pod in pods if pod.metadata and str(pod.metadata.name).startswith(DRIVER)]


def restart(cluster: Cluster) -> None:
    for pod in driver_pods(cluster):
        cluster.delete_pod(pod)


def struck(action: str) -> Callable[[Cluster, SandboxInfo], None]:
    """Let the next start of the driver's plugin fail in one way."""

    def inject(cluster: Cluster, info: SandboxInfo) -> None:
        daemon.add_fault(info, action, pool=f"^{POOL}$")
        restart(cluster)

    return inject


def by_kube(change: Callable[[Cluster], object]) -> Callable[[Cluster, SandboxInfo], None]:
    def inject(cluster: Cluster, _info: SandboxInfo) -> None:
        change(cluster)

    return inject


def environment(name: str, value: str) -> Callable[[Cluster], None]:
    """Change a variable of all containers of the driver's pods."""

    def change(cluster: Cluster) -> None:
        pod = cluster.daemonset(DRIVER).to_dict()["spec"]["template"]["spec"]
        for container in (*pod["initContainers"], *pod["containers"]):
            others = [item for item in container["env"] if item["name"] != name]
            container["env"] = [*others, {"name": name, "value": value}]
        both = {key: pod[key] for key in ("initContainers", "containers")}
        cluster.patch_daemonset({"spec": {"template": {"spec": both}}}, DRIVER)

    return change


def without_account(cluster: Cluster) -> None:
    account = cluster.daemonset(DRIVER).to_dict()["spec"]["template"]["spec"]["serviceAccountName"]
    cluster.client.delete(ServiceAccount, account, namespace=NAMESPACE)
    restart(cluster)


def taint(cluster: Cluster, *taints: Body) -> None:
    for node in cluster.nodes(POOL):
        patch = {"spec": {"taints": list(taints)}}
        cluster.client.patch(Node, str(node.metadata and node.metadata.name), patch, patch_type=PatchType.MERGE)


SECOND_DRIVER = workload(
    "DaemonSet", "my-dra-driver", "dra", {}, "bash", tolerations=TOLERATES_GPU, nodeSelector={"team": "other"}
)
SECOND_DRIVER["spec"]["template"]["spec"]["containers"][0] |= {
    "name": "gpus",
    "image": "mirror.example/dra-driver-nvidia-gpu:v0.4.1",
}
LEFT_SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "left"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "gone",
        "pool": {"name": "gone", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-1"}}}],
    },
}

SECOND_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "mine.example.com"},
    "spec": {"extendedResourceName": "nvidia.com/gpu"},
}
ONLY_DOCTOR = ("slices of a node that is gone", "two classes for nvidia.com/gpu")
"""Faults that change neither a node's devices nor the release; `pool verify` proves devices, plans compare pools."""
MODERN = ("a device with a taint", "two classes for nvidia.com/gpu")

MENDED: dict[str, tuple[str, Callable[[Cluster, SandboxInfo], None]]] = {
    "a device plugin beside the driver": (
        "two-advertisers",
        by_kube(lambda cluster: put_in(cluster.client, STATIC_PLUGIN)),
    ),
    "a second DRA driver": ("dra-driver-twice", by_kube(lambda cluster: put_in(cluster.client, SECOND_DRIVER))),
    "gpukube's label taken off the nodes": (
        "node-labels-lost",
        by_kube(lambda cluster: cluster.label_nodes(POOL, **{"gpukube.io/advertiser": None})),
    ),
    "driver sent elsewhere": (
        "plugin-desired-zero",
        by_kube(
            lambda cluster: cluster.patch_daemonset(
                {"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}}, DRIVER
            )
        ),
    ),
    "driver deleted": (
        "no-plugin",
        by_kube(lambda cluster: cluster.client.delete(DaemonSet, DRIVER, namespace=NAMESPACE)),
    ),
    "wrong driver root": ("dra-driver-waiting", by_kube(environment("NVIDIA_DRIVER_ROOT", "/run/nvidia/driver"))),
    "driver's service account deleted": ("plugin-pods-refused", by_kube(without_account)),
    "no devices at the start": ("dra-silent", struck("late-driver")),
    "slices deleted by the kubelet": ("dra-silent", struck("slices-lost")),
    "a slice too few": ("dra-slices-incomplete", struck("incomplete-pool")),
    "slices of a node that is gone": (
        "dra-slices-stale",
        by_kube(lambda cluster: cluster.client.create(SLICE.from_dict(LEFT_SLICE))),
    ),
    "a taint that no pool has": (
        "plugin-not-tolerating",
        by_kube(lambda cluster: taint(cluster, GPU_TAINT, OTHER_TAINT)),
    ),
    "two classes for nvidia.com/gpu": (
        "dra-class-twice",
        by_kube(lambda cluster: cluster.client.create(CLASS.from_dict(SECOND_CLASS))),
    ),
    "class deleted": ("dra-class-missing", by_kube(lambda cluster: cluster.client.delete(CLASS, "gpu.nvidia.com"))),
}


def template(name: str, **request: object) -> Body:
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": 1, **request}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def claiming(name: str, template_name: str, **spec: object) -> Body:
    """Make a pod of a team that claims devices by a template."""
    container = {
        "name": "main",
        "image": "nvidia/cuda:12.9.0-base-ubuntu24.04",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "tolerations": TOLERATES_GPU,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template_name}],
            "containers": [container],
            **spec,
        },
    }


def claimed(*pods: Body, **request: object) -> tuple[Callable[..., object], Callable[..., object]]:
    """Create pods and the template that they name; the second function deletes them."""
    made = template("one-gpu", **request)
    if "config" in request:
        devices = made["spec"]["spec"]["devices"]
        devices["config"] = [devices["requests"][0]["exactly"].pop("config")]

    def inject(cluster: Cluster, _info: SandboxInfo) -> None:
        put_in(cluster.client, *pods)
        cluster.client.create(TEMPLATE.from_dict(made))

    def heal(cluster: Cluster) -> None:
        take_out(cluster.client, *pods)
        cluster.client.delete(TEMPLATE, "one-gpu", namespace=TEAM)

    return inject, heal


def alone(body: Body) -> tuple[Callable[..., object], Callable[..., object]]:
    return by_kube(lambda cluster: put_in(cluster.client, body)), lambda cluster: take_out(cluster.client, body)


TIME_SLICING = {
    "requests": ["gpu"],
    "opaque": {
        "driver": "gpu.nvidia.com",
        "parameters": {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "GpuConfig",
            "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
        },
    },
}
NO_GPU = [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'no GPU has this name'"}}]
PROFILE = [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}]
"""A GPU has no profile, and reading what a device lacks is an error."""
SEEN: dict[str, tuple[str, str, Callable[..., object], Callable[..., object]]] = {
    "a template that does not exist": (
        "claims-pending",
        "it names ResourceClaimTemplate absent, which does not exist in namespace team-vision",
        *alone(claiming("lost", "absent")),
    ),
    "a class that does not exist": (
        "claims-pending",
        "its claim names DeviceClass tpu.example.com, which does not exist",
        *claimed(claiming("classless", "one-gpu"), deviceClassName="tpu.example.com"),
    ),
    "more devices than the node has": (
        "claims-pending",
        "it claims 2 of class gpu.nvidia.com, but no node that it can run on has more than 1",
        *claimed(claiming("large", "one-gpu"), count=2),
    ),
    "a device that another pod holds": (
        "claims-pending",
        "it claims 1 of class gpu.nvidia.com, and other claims hold 1 of 1",
        *claimed(claiming("first", "one-gpu"), claiming("second", "one-gpu")),
    ),
    "a selector that matches nothing": (
        "claims-pending",
        "it claims 1 of class gpu.nvidia.com; its selector matches none of 1 devices",
        *claimed(claiming("choosy", "one-gpu"), selectors=NO_GPU),
    ),
    "a selector that fails": (
        "claims-pending",
        "it claims 1 of class gpu.nvidia.com; its selector fails, and with it the allocation: ",
        *claimed(claiming("careless", "one-gpu"), selectors=PROFILE),
    ),
    "MIG devices of a pool without MIG": (
        "claims-pending",
        "it claims 1 of class mig.nvidia.com, and no node has published such a device",
        *claimed(claiming("cut", "one-gpu"), deviceClassName="mig.nvidia.com"),
    ),
    "a pod without the toleration": (
        "claims-pending",
        "it claims 1 of class gpu.nvidia.com, and does not tolerate nvidia.com/gpu=present:NoSchedule of node ",
        *claimed(claiming("intolerant", "one-gpu", tolerations=[])),
    ),
    "nvidia.com/gpu where only claims get GPUs": (
        "pods-ask-gpu-under-dra",
        "it requests nvidia.com/gpu, and its nodes give GPUs only to claims; the cluster drops extendedResourceName",
        *alone(gpu_pod("old", "nvidia.com/gpu", 1)),
    ),
    "a sharing strategy whose gate is off": (
        "pods-not-starting",
        "its claims cannot be prepared on node ",
        *claimed(claiming("sharing", "one-gpu"), config=TIME_SLICING),
    ),
    "gates that exclude each other": (
        "plugin-crashing",
        "container gpus on node ",
        by_kube(environment("FEATURE_GATES", "DynamicMIG=true,MPSSupport=true")),
        environment("FEATURE_GATES", ""),
    ),
    "a device with a taint": (
        "devices-unhealthy",
        "1 of its devices have a taint in its ResourceSlice, such as gpu.nvidia.com/xid=79:NoSchedule",
        struck("tainted-device"),
        restart,
    ),
}


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", SEEN)
def test_doctor_when_devices_are_not_given_then_it_names_the_one_reason(
    name: str, ward: SandboxInfo, doctor: Gpukube, spec: Path, patient: Cluster
) -> None:
    check, text, inject, heal = SEEN[name]
    wait_for(lambda: not ailments(doctor, spec), lambda: doctor.log[-1].out)
    inject(patient, ward)
    try:
        wait_for(
            lambda: (
                [item["check"] for item in ailments(doctor, spec)] == [check]
                and found(doctor, spec, check)[0]["seen"].startswith(text)
            ),
            lambda: doctor.log[-1].out,
        )
    finally:
        heal(patient)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", MENDED)
def test_doctor_when_the_dra_driver_has_a_fault_then_it_names_it_and_its_remedy_ends_it(  # noqa: PLR0913, PLR0917 - fixtures
    name: str, ward: SandboxInfo, doctor: Gpukube, spec: Path, patient: Cluster, inside: Path
) -> None:
    check, inject = MENDED[name]
    wait_for(lambda: not errors(doctor, spec), lambda: doctor.log[-1].out)
    inject(patient, ward)
    wait_for(lambda: found(doctor, spec, check), lambda: doctor.log[-1].out)
    assert (doctor("pool", "verify", "-f", spec).code == 0) == (name in (*ONLY_DOCTOR, "a second DRA driver"))
    planned = doctor("pool", "plan", "diff", "-f", spec)
    noticed = planned.code == 2 or "health" in planned.out or "foreign-advertiser" in planned.out
    assert noticed == (name not in (*ONLY_DOCTOR, "a taint that no pool has")), planned.out
    for remedy in dict.fromkeys(str(item["remedy"]) for item in found(doctor, spec, check)):
        carry_out(doctor, spec, remedy, inside)
    wait_for(lambda: not errors(doctor, spec), lambda: doctor.log[-1].out)
    wait_for(lambda: not found(doctor, spec, check), lambda: doctor.log[-1].out)


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", ["no devices at the start", "driver deleted", "class deleted", "wrong driver root"])
def test_fix_when_the_dra_driver_has_a_fault_that_is_safe_to_fix_then_it_is_gone(
    name: str, ward: SandboxInfo, doctor: Gpukube, spec: Path, patient: Cluster
) -> None:
    check, inject = MENDED[name]
    wait_for(lambda: not errors(doctor, spec), lambda: doctor.log[-1].out)
    inject(patient, ward)
    wait_for(lambda: found(doctor, spec, check), lambda: doctor.log[-1].out)
    fixed = doctor("doctor", "-f", spec, "--fix", "--yes", "-o", "json").json()
    assert fixed["clusters"][0]["mended"], doctor.log[-1].out
    wait_for(lambda: not errors(doctor, spec), lambda: doctor.log[-1].out)


@pytest.mark.parametrize("name", VERSIONS)
def test_doctor_when_the_dra_driver_serves_then_nothing_is_found(
    name: str, doctor: Gpukube, specs: dict[str, Path]
) -> None:
    wait_for(lambda: not ailments(doctor, specs[name]), lambda: doctor.log[-1].out)
