"""What user data makes of a node: merged as nodeadm and Bottlerocket do it, read from the node's kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.bottlerocket import UserDataError
from gpukube_sandbox.eks.userdata import read_setup
from sandbox_tests.eks.aws import NAME, Aws, Json, nodes
from sandbox_tests.eks.test_network import efa, p5, private

if TYPE_CHECKING:
    import httpx

ROCKET = "BOTTLEROCKET_x86_64_NVIDIA"
HEAD = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n'
CONFIG, SHELL = "application/node.eks.aws", "text/x-shellscript"
SCRIPT = """#!/bin/sh
# no shell reads this
cat > /etc/sysctl.d/99-gpu.conf << 'END'
net.core.somaxconn = 4096
fs.inotify.max_user_watches=1048576
END
sysctl --load=/etc/sysctl.d/99-gpu.conf
sysctl -w vm.max_map_count=262144
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 512 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 2
NAME=gpu
rm -rf /
"""


def message(*parts: tuple[str, str]) -> str:
    """A MIME message of these parts."""
    written = "".join(f"--x\nContent-Type: {kind}\n\n{content}\n" for kind, content in parts)
    return f"{HEAD}{written}--x--\n"


def node_config(spec: str) -> tuple[str, str]:
    """A part for nodeadm, whose spec is in YAML's flow style."""
    return CONFIG, f"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {spec}"


def kubelet(client: httpx.Client, name: str) -> Json:
    """The configuration of the only node of a group."""
    (node,) = nodes(client, name)
    found: Json = client.get(f"/api/v1/nodes/{node['metadata']['name']}/proxy/configz").json()["kubeletconfig"]
    return found


def gib(quantity: str) -> int:
    """A node's ephemeral storage in whole GiB."""
    return int(quantity.removesuffix("Ki")) // 1024**2 if quantity.endswith("Ki") else int(quantity) // 1024**3


# nodeadm


def test_node_when_it_is_told_nothing_then_its_kubelet_has_the_defaults(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu")
    found = kubelet(kube, "gpu")
    assert (found["cpuManagerPolicy"], found["topologyManagerScope"], found["maxPods"]) == ("none", "container", 29)
    (node,) = nodes(kube, "gpu")
    assert node["status"]["allocatable"]["hugepages-2Mi"] == "0"


def test_node_when_several_parts_configure_it_then_merged_in_their_order(aws: Aws, kube: httpx.Client) -> None:
    first = "{kubelet: {config: {cpuManagerPolicy: static, evictionHard: {memory.available: 1Gi}, podPidsLimit: 1024}}}"
    second = (
        "{kubelet: {config: {podPidsLimit: 4096, allowedUnsafeSysctls: [net.core.somaxconn]}, "
        "flags: ['--topology-manager-policy=restricted', '--node-labels=team=vision']}}"
    )
    third = "{kubelet: {config: {allowedUnsafeSysctls: ['kernel.msg*']}, flags: ['--node-labels=tier=gold']}}"
    data = message(node_config(first), node_config(second), node_config(third))
    aws.create("gpu", launchTemplate=aws.template(user_data=data))
    found = kubelet(kube, "gpu")
    assert (found["cpuManagerPolicy"], found["topologyManagerPolicy"]) == ("static", "restricted")
    assert found["evictionHard"] == {"memory.available": "1Gi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"}
    assert (found["podPidsLimit"], found["allowedUnsafeSysctls"]) == (4096, ["kernel.msg*"])
    labels = nodes(kube, "gpu")[0]["metadata"]["labels"]
    assert (labels["team"], labels["tier"], labels["eks.amazonaws.com/nodegroup"]) == ("vision", "gold", "gpu")


def test_node_when_a_shell_part_sets_parameters_then_only_in_forms_that_need_no_shell(
    aws: Aws, kube: httpx.Client
) -> None:
    aws.create("gpu", launchTemplate=aws.template(user_data=message((SHELL, SCRIPT))))
    (node,) = nodes(kube, "gpu")
    assert daemon.sysctls(aws.info, NAME)[node["metadata"]["name"]] == {
        "net.core.somaxconn": "4096",
        "fs.inotify.max_user_watches": "1048576",
        "vm.max_map_count": "262144",
        "net.ipv4.ip_forward": "1",
    }
    free, plain = node["status"]["allocatable"], nodes(kube, "system")[0]["status"]["allocatable"]
    assert (free["hugepages-2Mi"], free["hugepages-1Gi"]) == ("1024Mi", "2Gi")
    assert (plain["hugepages-2Mi"], plain["hugepages-1Gi"]) == ("0", "0")
    memory = int(node["status"]["capacity"]["memory"][:-2]) - int(free["memory"][:-2])
    assert memory > 3 * 1024**2, "huge pages are no memory for pods"


STORAGE: dict[str, tuple[str, str, str, int]] = {
    "no strategy": ("p4d.24xlarge", "AL2023_x86_64_NVIDIA", "", 100),
    "RAID0": ("p4d.24xlarge", "AL2023_x86_64_NVIDIA", "RAID0", 7450),
    "RAID10": ("p4d.24xlarge", "AL2023_x86_64_NVIDIA", "RAID10", 3725),
    "Mount": ("p4d.24xlarge", "AL2023_x86_64_NVIDIA", "Mount", 100),
    "RAID0 without disks": ("p3.2xlarge", "AL2023_x86_64_NVIDIA", "RAID0", 100),
}


@pytest.mark.parametrize("case", STORAGE)
def test_node_when_its_disks_are_joined_then_its_storage_grows(aws: Aws, kube: httpx.Client, case: str) -> None:
    kind, ami, strategy, expected = STORAGE[case]
    spec = f"{{instance: {{localStorage: {{strategy: {strategy}}}}}}}" if strategy else "{}"
    template = aws.template(user_data=message(node_config(spec)))
    aws.create("gpu", instanceTypes=[kind], amiType=ami, launchTemplate=template)
    (node,) = nodes(kube, "gpu")
    assert gib(node["status"]["capacity"]["ephemeral-storage"]) == expected
    assert gib(node["status"]["allocatable"]["ephemeral-storage"]) == expected * 9 // 10


WRONG: dict[str, tuple[str, str, str]] = {
    "a policy of nobody": (
        message(node_config("{kubelet: {config: {cpuManagerPolicy: dynamic}}}")), "al2023", "cpuManagerPolicy",
    ),
    "a number as text": (
        message(node_config("{kubelet: {config: {podPidsLimit: '4096'}}}")), "al2023", "podPidsLimit '4096'",
    ),
    "a memory manager without reserved memory": (
        message(node_config("{kubelet: {config: {memoryManagerPolicy: Static}}}")), "al2023", "needs reservedMemory",
    ),
    "a period without its gate": (
        message(node_config("{kubelet: {config: {cpuCFSQuotaPeriod: 50ms}}}")), "al2023", "CustomCPUCFSQuotaPeriod",
    ),
    "thresholds in the wrong order": (
        message(node_config("{kubelet: {config: {imageGCHighThresholdPercent: 70}}}")), "al2023", "is not below",
    ),
    "another kind": (
        message((CONFIG, "apiVersion: v1\nkind: ConfigMap")), "al2023", 'no kind "ConfigMap" is registered',
    ),
    "no YAML": (message((CONFIG, "kubelet: [")), "al2023", "failed to decode"),
    "a strategy of nobody": (
        message(node_config("{instance: {localStorage: {strategy: RAID5}}}")), "al2023", "unknown strategy",
    ),
    "an own image without its cluster": (
        message(node_config("{cluster: {name: train}}")), "custom", "Apiserver endpoint is missing in cluster",
    ),
    "a kernel parameter as a number": ('[settings.kernel.sysctl]\n"vm.swappiness" = 1\n', "bottlerocket", "string"),
    "a command other than apiclient": (
        '[settings.bootstrap-commands.x]\ncommands = [["sh"]]\nmode = "always"\n', "bottlerocket", "only apiclient",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_user_data_when_a_node_cannot_start_with_it_then_it_says_why(case: str) -> None:
    text, system, words = WRONG[case]
    with pytest.raises(UserDataError, match=words):
        read_setup(text, system)


def test_group_when_its_nodes_cannot_start_then_it_fails_and_so_does_an_update(aws: Aws) -> None:
    bad = message(node_config("{kubelet: {config: {memoryManagerPolicy: Static}}}"))
    group = aws.create("bad", launchTemplate=aws.template("bad", user_data=bad))
    assert group["health"]["issues"][0]["code"] == "NodeCreationFailure"
    raid = message(node_config("{instance: {localStorage: {strategy: RAID10}}}"))
    assert aws.create("raid", launchTemplate=aws.template("raid", user_data=raid))["status"] == "CREATE_FAILED"
    complete = "{cluster: {name: t, apiServerEndpoint: e, certificateAuthority: c, cidr: 172.20.0.0/16}, kubelet: {}}"
    own: dict[str, Any] = {"ImageId": "ami-1", "user_data": message(node_config(complete))}
    assert aws.create("own", launchTemplate=aws.template("own", **own), amiType=None)["status"] == "ACTIVE"


# Bottlerocket


TOML = """
[settings.kubernetes]
max-pods = 40
cpu-manager-policy = "static"
topology-manager-policy = "restricted"
pod-pids-limit = 4096
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kernel.sysctl]
"vm.nr_hugepages" = "512"
"net/core/somaxconn" = "4096"
[settings.bootstrap-commands.storage]
commands = [["apiclient", "ephemeral-storage", "init"], ["apiclient", "ephemeral-storage", "bind", "--dirs", "/var"]]
mode = "always"
essential = true
"""


def test_node_when_on_bottlerocket_then_its_settings_reach_kubelet_kernel_and_disks(
    aws: Aws, kube: httpx.Client
) -> None:
    aws.create("gpu", amiType=ROCKET, instanceTypes=["p4d.24xlarge"], launchTemplate=aws.template(user_data=TOML))
    found = kubelet(kube, "gpu")
    assert (found["maxPods"], found["cpuManagerPolicy"], found["topologyManagerPolicy"]) == (40, "static", "restricted")
    assert (found["podPidsLimit"], found["allowedUnsafeSysctls"]) == (4096, ["net.core.somaxconn"])
    (node,) = nodes(kube, "gpu")
    parameters = daemon.sysctls(aws.info, NAME)[node["metadata"]["name"]]
    assert parameters == {"vm.nr_hugepages": "512", "net.core.somaxconn": "4096"}
    assert node["status"]["allocatable"]["hugepages-2Mi"] == "1024Mi"
    assert gib(node["status"]["capacity"]["ephemeral-storage"]) == 7450


# huge pages of EFA


def test_nodes_when_they_have_efa_then_their_images_preallocate_huge_pages(aws: Aws, kube: httpx.Client) -> None:
    aws.create("al", **p5(aws))
    rocket = aws.template("rocket", NetworkInterfaces=efa(1))
    aws.create(
        "rocket", amiType=ROCKET, instanceTypes=["g6e.8xlarge"], subnets=[private(aws, "a")], launchTemplate=rocket
    )
    found = {name: nodes(kube, name)[0]["status"]["allocatable"]["hugepages-2Mi"] for name in ("al", "rocket")}
    assert found == {"al": "10256Mi", "rocket": "7040Mi"}


# the kubelet's configuration through the API server


def test_configz_when_of_no_node_or_written_to_then_refused_as_by_the_api_server(aws: Aws, kube: httpx.Client) -> None:
    assert kube.get("/api/v1/nodes/nobody/proxy/configz").status_code == 404
    (node,) = nodes(kube, "system")
    path = f"/api/v1/nodes/{node['metadata']['name']}/proxy"
    assert kube.post(f"{path}/configz").status_code == 405
    assert kube.get(f"{path}/metrics").status_code == 501
    daemon.deny_permissions(aws.info, "get nodes/proxy")
    assert kube.get(f"{path}/configz").status_code == 403
