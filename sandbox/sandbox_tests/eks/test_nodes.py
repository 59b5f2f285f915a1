"""Instances of a node group as Kubernetes nodes: labels, taints and GPUs as EKS gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.bottlerocket import UserDataError, read_settings
from gpukube_sandbox.eks.instances import GPUS, TYPES
from gpukube_sandbox.kube.nodes.hardware import find_model
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws, nodes
from sandbox_tests.eks.tokens import kube_client
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    import httpx

    from gpukube_sandbox.daemon import SandboxInfo

GPU = "nvidia.com/gpu"
PLUGINS = "settings.kubelet-device-plugins.nvidia"
HALVES = 'device-partitioning-strategy = "mig"\nmig.profile."a100.40gb" = "3g.20gb"\n'
FOUR = "replicas = 4\nrename-by-default = false\n"


def test_node_when_of_a_gpu_group_then_labelled_and_tainted_as_eks_does(aws: Aws, kube: httpx.Client) -> None:
    template = aws.template()
    taints = [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}, {"key": "a", "effect": "PREFER_NO_SCHEDULE"}]
    aws.create("gpu", launchTemplate=template, labels={"team": "vision"}, taints=taints)
    (node,) = nodes(kube, "gpu")
    expected = {
        "team": "vision",
        "eks.amazonaws.com/nodegroup": "gpu",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "eks.amazonaws.com/sourceLaunchTemplateId": template["id"],
        "eks.amazonaws.com/sourceLaunchTemplateVersion": "1",
        "node.kubernetes.io/instance-type": "g4dn.xlarge",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": REGION,
    }
    found = node["metadata"]["labels"]
    assert {key: found[key] for key in expected} == expected
    assert found["eks.amazonaws.com/nodegroup-image"].startswith("ami-")
    assert found["topology.kubernetes.io/zone"] in {"us-east-1a", "us-east-1b", "us-east-1c"}
    assert node["spec"]["providerID"].startswith(f"aws:///{found['topology.kubernetes.io/zone']}/i-")
    assert [(taint["key"], taint.get("value"), taint["effect"]) for taint in node["spec"]["taints"]] == [
        (GPU, "present", "NoSchedule"),
        ("a", None, "PreferNoSchedule"),
    ]


def pods_data(pods: int) -> str:
    config = f"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {{kubelet: {{config: {{maxPods: {pods}}}}}}}"
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n'
    return f"{head}--x\nContent-Type: application/node.eks.aws\n\n{config}\n--x--\n"


AL2023, ROCKET = "AL2023_x86_64_NVIDIA", "BOTTLEROCKET_x86_64_NVIDIA"
PODS = {
    "told nothing": (AL2023, "g4dn.xlarge", "", "29"),
    "told nothing, with more addresses than a group allows": (AL2023, "g5.4xlarge", "", "110"),
    "told nothing, with 192 vCPUs": (AL2023, "p5.48xlarge", "", "100"),
    "told nothing, newer than the table": (AL2023, "g7e.2xlarge", "", "110"),
    "told 60": (AL2023, "g4dn.xlarge", pods_data(60), "60"),
    "told too many": (AL2023, "g4dn.xlarge", pods_data(200), "110"),
    "told 200, with 32 vCPUs": (AL2023, "g4dn.8xlarge", pods_data(200), "200"),
    "told too many, with 32 vCPUs": (AL2023, "g4dn.8xlarge", pods_data(256), "250"),
    "Bottlerocket told 40": (ROCKET, "g4dn.xlarge", "[settings.kubernetes]\nmax-pods = 40\n", "40"),
}


@pytest.mark.parametrize("case", PODS)
def test_node_when_its_user_data_limits_pods_then_within_what_managed_groups_allow(
    aws: Aws, kube: httpx.Client, case: str
) -> None:
    ami, kind, user_data, pods = PODS[case]
    aws.create("gpu", amiType=ami, instanceTypes=[kind], launchTemplate=aws.template(user_data=user_data))
    (node,) = nodes(kube, "gpu")
    assert node["status"]["capacity"]["pods"] == pods


def test_node_when_of_a_gpu_group_without_taints_then_eks_adds_none(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu")
    (node,) = nodes(kube, "gpu")
    wait_for(lambda: not nodes(kube, "gpu")[0]["spec"].get("taints"))
    assert "eks.amazonaws.com/sourceLaunchTemplateId" not in node["metadata"]["labels"]


def test_node_when_on_amazon_linux_then_nothing_advertises_by_itself(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu")
    (node,) = nodes(kube, "gpu")
    assert node["status"]["nodeInfo"]["osImage"].startswith("Amazon Linux 2023")
    assert GPU not in node["status"]["capacity"]


def test_node_when_on_arm_then_it_says_so_and_the_scaling_group_knows_it(aws: Aws, kube: httpx.Client) -> None:
    group = aws.create("arm", instanceTypes=["g5g.xlarge"], amiType="AL2023_ARM_64_NVIDIA")
    (node,) = nodes(kube, "arm")
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert node["status"]["nodeInfo"]["architecture"] == "arm64"
    asg = group["resources"]["autoScalingGroups"][0]["name"]
    scaling = aws.client("autoscaling")
    (found,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[asg])["AutoScalingGroups"]
    (instance,) = found["Instances"]
    assert node["spec"]["providerID"] == f"aws:///{instance['AvailabilityZone']}/{instance['InstanceId']}"


def test_nodes_when_zones_do_not_all_offer_the_type_then_in_those_that_do(aws: Aws, kube: httpx.Client) -> None:
    sizes = {"minSize": 4, "maxSize": 4, "desiredSize": 4}
    aws.create("big", instanceTypes=["p4d.24xlarge"], scalingConfig=sizes)
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes(kube, "big")}
    assert zones == {"us-east-1a", "us-east-1b"}


def test_nodes_when_the_group_changes_then_they_follow(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu", labels={"a": "1", "b": "2"}, taints=[{"key": "t", "value": "x", "effect": "NO_SCHEDULE"}])
    aws.update(
        "gpu",
        labels={"addOrUpdateLabels": {"a": "3"}, "removeLabels": ["b"]},
        taints={"addOrUpdateTaints": [{"key": "t", "value": "y", "effect": "NO_SCHEDULE"}]},
        scalingConfig={"maxSize": 2, "desiredSize": 2},
    )
    wait_for(lambda: len(nodes(kube, "gpu")) == 2)
    for node in nodes(kube, "gpu"):
        labels, taints = node["metadata"]["labels"], node["spec"]["taints"]
        assert (labels["a"], "b" in labels) == ("3", False)
        assert [taint["value"] for taint in taints if taint["key"] == "t"] == ["y"]
    aws.update("gpu", scalingConfig={"minSize": 0, "desiredSize": 0})
    assert nodes(kube, "gpu") == []


BOTTLEROCKET: dict[str, tuple[str, str, dict[str, str]]] = {
    "nothing said": ("g4dn.xlarge", "", {GPU: "1"}),
    "slices": (
        "p4d.24xlarge",
        f'[{PLUGINS}]\ndevice-partitioning-strategy = "mig"\n[{PLUGINS}.mig.profile]\n"a100.40gb" = "1g.5gb"\n',
        {GPU: "56"},
    ),
    "three parts": (
        "p4d.24xlarge",
        f'[{PLUGINS}]\ndevice-partitioning-strategy = "mig"\n[{PLUGINS}.mig.profile]\n"a100.40gb" = "3"\n',
        {GPU: "24"},
    ),
    "profile of another model": (
        "p4d.24xlarge",
        f'[{PLUGINS}]\ndevice-partitioning-strategy = "mig"\n[{PLUGINS}.mig.profile]\n"h100.80gb" = "1g.10gb"\n',
        {GPU: "8"},
    ),
    "profile but MIG off": (
        "p4d.24xlarge",
        f'[{PLUGINS}.mig.profile]\n"a100.40gb" = "1g.5gb"\n',
        {GPU: "8"},
    ),
    "shared, renamed by default": (
        "g4dn.12xlarge",
        f'[{PLUGINS}]\ndevice-sharing-strategy = "time-slicing"\n[{PLUGINS}.time-slicing]\nreplicas = 3\n',
        {f"{GPU}.shared": "12"},
    ),
    "shared under its name": (
        "g4dn.xlarge",
        f'[{PLUGINS}]\ndevice-sharing-strategy = "time-slicing"\n[{PLUGINS}.time-slicing]\n{FOUR}',
        {GPU: "4"},
    ),
    "two when nothing is said": (
        "g4dn.xlarge",
        f'{PLUGINS}.device-sharing-strategy = "mps"\n{PLUGINS}.mps.rename-by-default = false\n',
        {GPU: "2"},
    ),
    "slices shared": (
        "p4d.24xlarge",
        f'[{PLUGINS}]\n{HALVES}device-sharing-strategy = "time-slicing"\ntime-slicing.rename-by-default = false\n',
        {GPU: "32"},
    ),
    "turned off for the DRA driver": ("g4dn.xlarge", f"[{PLUGINS}]\nenabled = false\n", {}),
    "MPS over MIG does not start": (
        "p4d.24xlarge",
        f'[{PLUGINS}]\n{HALVES}device-sharing-strategy = "mps"\n',
        {},
    ),
}


@pytest.mark.parametrize(("kind", "settings", "expected"), BOTTLEROCKET.values(), ids=BOTTLEROCKET)
def test_node_when_on_bottlerocket_then_its_own_plugin_does_as_its_settings_say(
    aws: Aws, kube: httpx.Client, kind: str, settings: str, expected: dict[str, str]
) -> None:
    template = aws.template(user_data=settings)
    aws.create("gpu", instanceTypes=[kind], amiType="BOTTLEROCKET_x86_64_NVIDIA", launchTemplate=template)

    def advertised() -> dict[str, str]:
        (node,) = nodes(kube, "gpu")
        return {key: value for key, value in node["status"]["allocatable"].items() if key.startswith("nvidia.com/")}

    wait_for(lambda: advertised() == expected)
    (node,) = nodes(kube, "gpu")
    assert node["status"]["nodeInfo"]["osImage"] == "Bottlerocket OS 1.63.0 (aws-k8s-1.34-nvidia)"
    daemonsets = kube.get("/apis/apps/v1/daemonsets").json()["items"]
    assert {each["metadata"]["name"] for each in daemonsets} == {"aws-node", "kube-proxy"}


def test_node_when_bottlerocket_is_too_old_to_turn_its_plugin_off_then_it_does_not_start() -> None:
    settings = f"[{PLUGINS}]\nenabled = false\n"
    assert not read_settings(settings, "T4-16GB", "1.63.0-ab12cd34").runs
    with pytest.raises(UserDataError, match="unknown field `enabled`"):
        read_settings(settings, "T4-16GB", "1.62.1-ab12cd34")
    with pytest.raises(UserDataError, match="neither true nor false"):
        read_settings(f'[{PLUGINS}]\nenabled = "no"\n', "T4-16GB", "1.63.0-ab12cd34")


@pytest.mark.parametrize(("version", "expected"), [("1.34", None), ("1.35", "true")])
def test_node_when_nodeadm_finds_gpus_then_labelled_from_1_35(
    sandbox: SandboxInfo, version: str, expected: str | None
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, kubernetes_version=version)
    aws = Aws(sandbox)
    aws.create("gpu", amiType="AL2023_x86_64_NVIDIA")
    with kube_client(aws) as client:
        (node,) = wait_for(lambda: nodes(client, "gpu"))
    assert node["metadata"]["labels"].get("nvidia.com/gpu.present") == expected


@pytest.mark.parametrize(
    ("settings", "model", "text"),
    [
        (f'{PLUGINS}.device-partitioning-strategy = "half"', "A100-40GB", "neither none nor mig"),
        (f'{PLUGINS}.mig.profile."rtxpro6000.96gb" = "1g.24gb"', "RTXPRO6000-96GB", "not of the form"),
        (f'{PLUGINS}.mig.profile."a100.40gb" = 7', "A100-40GB", "in quotes"),
        (f'{PLUGINS}.mig.profile."a100.40gb" = "5"', "A100-40GB", "into 5 partitions"),
        (f'{PLUGINS}.mig.profile."b200.180gb" = "7"', "B200-180GB", "into 7 partitions"),
        (
            f'{PLUGINS}.device-partitioning-strategy = "mig"\n{PLUGINS}.mig.profile."a100.40gb" = "1g.10gb+me"',
            "A100-40GB",
            "neither a profile",
        ),
        (
            f'{PLUGINS}.device-partitioning-strategy = "mig"\n{PLUGINS}.mig.profile."a100.40gb" = "1g.18gb"',
            "A100-40GB",
            "no MIG profile",
        ),
        (f'{PLUGINS}.device-sharing-strategy = "time"', "T4-16GB", "none of"),
        (
            f'{PLUGINS}.device-sharing-strategy = "time-slicing"\n{PLUGINS}.time-slicing.replicas = 1',
            "T4-16GB",
            "out of range",
        ),
        (f'{PLUGINS}.device-sharing-strategy = "mps"\n{PLUGINS}.mps.replicas = 49', "T4-16GB", "out of range"),
        (f'{PLUGINS}.device-sharing-strategy = "mps"\n{PLUGINS}.mps.rename-by-default = 1', "T4-16GB", "neither true"),
    ],
)
def test_settings_when_bottlerocket_would_not_take_them_then_an_error(settings: str, model: str, text: str) -> None:
    with pytest.raises(UserDataError, match=text):
        read_settings(settings, model, "1.63.0-ab12cd34")


@pytest.mark.parametrize("kind", [entry.name for entry in TYPES.values() if entry.is_nvidia])
def test_type_when_it_has_nvidia_gpus_then_the_nodes_know_the_model(kind: str) -> None:
    entry = TYPES[kind]
    assert find_model(entry.gpu).name == entry.gpu
    assert entry.devices >= 1
    assert GPUS[entry.gpu].mib


def test_cluster_when_somebody_installed_a_plugin_then_it_advertises(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"foreignPlugin": True})
    aws = Aws(sandbox)
    aws.create("gpu")
    with kube_client(aws) as client:
        wait_for(lambda: nodes(client, "gpu")[0]["status"]["allocatable"].get(GPU) == "1")


@pytest.mark.parametrize(("given", "expected"), [(True, [(GPU, "Exists", "NoSchedule")]), (False, [])])
def test_pod_when_it_asks_for_a_gpu_then_it_tolerates_that_name_only(
    sandbox: SandboxInfo,
    given: bool,  # noqa: FBT001 - a table's column
    expected: list[tuple[str, str, str]],
) -> None:
    options = {"foreignPlugin": True, "extendedTolerations": given}
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options=options)
    container = {"name": "main", "image": "cuda", "resources": {"limits": {GPU: "1", "cpu": "1"}}}
    pod = {"metadata": {"name": "user"}, "spec": {"containers": [container]}}
    with kube_client(Aws(sandbox)) as client:
        made = client.post("/api/v1/namespaces/default/pods", json=pod).json()
    found = [(item["key"], item["operator"], item["effect"]) for item in made["spec"]["tolerations"]]
    assert [item for item in found if not item[0].startswith("node.kubernetes.io/")] == expected


def test_node_when_the_image_has_no_driver_then_a_plugin_finds_nothing(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"foreignPlugin": True})
    aws = Aws(sandbox)
    assert aws.create("gpu", amiType="AL2023_x86_64_STANDARD")["status"] == "ACTIVE"
    status = daemon.status(sandbox)
    clusters = status["clusters"]
    assert isinstance(clusters, list)
    assert [pool["name"] for pool in clusters[0]["pools"]] == ["system", "gpu"]
