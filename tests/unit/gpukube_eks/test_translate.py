"""From a target to the two calls that make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.fields import DISK_SIZE, DISK_TYPE, IMAGE, MAX_UNAVAILABLE, PROTECTION, label
from gpukube.core.values import Capacity, Disk, Nodes, Taint
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks.pool.fields import RESOURCE_TAG, native_taint
from gpukube_eks.pool.marks import FORM
from gpukube_eks.pool.translate import with_place
from tests.builders import by_text
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

Json = dict[str, object]
SLICED = Sharing(None, Slicing("time-slicing", 4, fail_requests_greater_than_one=False))
RENAMED = Sharing(None, Slicing("time-slicing", 4, rename=True))
CUT = Sharing(MigCut("1g.5gb", "single"))
MIXED = Sharing(MigCut("1g.5gb", "mixed"))


def group_of(desired: Desired) -> Json:
    return cast("Json", desired.create.params["nodegroup"])


def data_of(desired: Desired) -> Json:
    template = cast("Mapping[str, object]", desired.create.params["launchTemplate"])
    return cast("Json", template["LaunchTemplateData"])


@pytest.mark.parametrize(
    ("machine", "image", "ami_type"),
    [
        ("p4d.24xlarge", "", "AL2023_x86_64_NVIDIA"),
        ("p4d.24xlarge", "al2023", "AL2023_x86_64_NVIDIA"),
        ("p4d.24xlarge", "bottlerocket", "BOTTLEROCKET_x86_64_NVIDIA"),
        ("g5g.xlarge", "", "AL2023_ARM_64_NVIDIA"),
        ("g5g.xlarge", "bottlerocket", "BOTTLEROCKET_ARM_64_NVIDIA"),
        ("p6e-gb200.36xlarge", "", "AL2023_ARM_64_NVIDIA"),
        ("g6f.large", "", "AL2023_x86_64_NVIDIA"),
    ],
)
def test_ami_type_when_translated_is_that_of_architecture_and_image(machine: str, image: str, ami_type: str) -> None:
    desired = desired_of(eks_target(machine, image=image))

    assert group_of(desired)["amiType"] == desired.fields[IMAGE] == ami_type


@pytest.mark.parametrize(
    ("nodes", "sizes", "fields"),
    [
        (Nodes(2, 2, 2, autoscaled=False), (2, 2, 2), {"nodes.count": 2}),
        (
            Nodes(1, 0, 5, autoscaled=True),
            (0, 5, 1),
            {"nodes.autoscaling.min": 0, "nodes.autoscaling.max": 5},
        ),
        (Nodes(3, 3, 3, autoscaled=True), (3, 3, 3), {"nodes.count": 3}),
        (
            Nodes(0, 0, 0, autoscaled=False),
            (0, 1, 0),
            {"nodes.autoscaling.min": 0, "nodes.autoscaling.max": 1},
        ),
    ],
)
def test_sizes_when_translated_are_always_three(nodes: Nodes, sizes: tuple[int, ...], fields: Json) -> None:
    desired = desired_of(eks_target(nodes=nodes))

    assert group_of(desired)["scalingConfig"] == dict(zip(("minSize", "maxSize", "desiredSize"), sizes, strict=True))
    assert {name: value for name, value in by_text(desired.fields).items() if name.startswith("nodes.")} == fields


@pytest.mark.parametrize(
    ("target", "tags"),
    [
        (eks_target(), {}),
        (eks_target(sharing=CUT), {"nvidia.com/gpu": "56"}),
        (eks_target(sharing=MIXED), {"nvidia.com/mig-1g.5gb": "56"}),
        (eks_target("g4dn.xlarge", sharing=SLICED), {"nvidia.com/gpu": "4"}),
        (eks_target("g4dn.xlarge", sharing=RENAMED), {"nvidia.com/gpu.shared": "4"}),
        (eks_target("g6f.large"), {"nvidia.com/gpu": "1"}),
    ],
    ids=["whole", "single", "mixed", "sliced", "renamed", "fraction"],
)
def test_tags_when_the_autoscaler_would_count_otherwise_tell_it(target: Target, tags: dict[str, str]) -> None:
    tags_of = cast("Mapping[str, str]", group_of(desired_of(target))["tags"])
    found = {key: value for key, value in tags_of.items() if not FORM.is_own(key)}

    assert found == {f"{RESOURCE_TAG}{name}": count for name, count in tags.items()}


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("g4dn.xlarge", "nvidia-tesla-t4"),
        ("p3.2xlarge", "nvidia-tesla-v100"),
        ("p4de.24xlarge", "nvidia-tesla-a100"),
        ("g5.xlarge", "nvidia-a10g"),
        ("g6e.xlarge", "nvidia-l40s"),
        ("p5.48xlarge", "nvidia-h100"),
    ],
)
def test_accelerator_label_when_translated_is_the_autoscalers_name(machine: str, name: str) -> None:
    assert desired_of(eks_target(machine)).labels["k8s.amazonaws.com/accelerator"] == name


def test_labels_when_the_user_names_the_accelerator_keep_his_name() -> None:
    target = eks_target(labels={"k8s.amazonaws.com/accelerator": "mine"})

    assert desired_of(target).labels["k8s.amazonaws.com/accelerator"] == "mine"


def test_labels_when_mig_on_al2023_ask_the_operator_to_cut() -> None:
    labels = desired_of(eks_target(sharing=CUT)).labels

    assert labels["nvidia.com/mig.config"] == "all-1g.5gb"
    assert labels["gpukube.io/advertiser"] == "operator"


def test_labels_when_bottlerocket_keep_every_other_plugin_away() -> None:
    labels = desired_of(eks_target(image="bottlerocket", sharing=CUT)).labels

    assert labels["nvidia.com/gpu.deploy.operands"] == "false"
    assert not {"nvidia.com/gpu.present", "nvidia.com/device-plugin.config", "nvidia.com/mig.config"} & labels.keys()


def test_taints_when_translated_are_spelt_as_eks_does() -> None:
    taints = tuple(Taint("dedicated", "gpu", effect) for effect in ("NoExecute", "NoSchedule", "PreferNoSchedule"))

    found = group_of(desired_of(eks_target(taints=taints)))["taints"]

    assert [taint["effect"] for taint in cast("list[dict[str, str]]", found)] == [
        "NO_EXECUTE",
        "NO_SCHEDULE",
        "PREFER_NO_SCHEDULE",
    ]


def test_group_when_spot_says_so_and_its_template_does_not() -> None:
    desired = desired_of(eks_target(capacity=Capacity("spot")))

    assert group_of(desired)["capacityType"] == "SPOT"
    assert "InstanceMarketOptions" not in data_of(desired)


@pytest.mark.parametrize(("image", "device"), [("", "/dev/xvda"), ("bottlerocket", "/dev/xvdb")])
def test_disk_when_given_is_that_of_images_and_pods(image: str, device: str) -> None:
    desired = desired_of(eks_target(image=image, disk=Disk(300, "gp2")))

    volume = {"VolumeSize": 300, "VolumeType": "gp2", "DeleteOnTermination": True}
    assert data_of(desired)["BlockDeviceMappings"] == [{"DeviceName": device, "Ebs": volume}]
    assert (desired.fields[DISK_SIZE], desired.fields[DISK_TYPE]) == (300, "gp2")


def test_tags_when_given_reach_group_template_machines_and_disks() -> None:
    desired = desired_of(eks_target(tags={"cost": "research"}))

    template = cast("Mapping[str, object]", desired.create.params["launchTemplate"])
    own = cast("list[Mapping[str, object]]", template["TagSpecifications"])[0]
    below = cast("list[Mapping[str, object]]", data_of(desired)["TagSpecifications"])
    assert group_of(desired)["tags"] == {
        "cost": "research",
        "gpukube.io/owner": "ml-platform",
        "gpukube.io/place": "111122223333/us-east-1/train/a100mig",
        "gpukube.io/pool": "a100mig",
        "gpukube.io/tags": "cost",
    }
    assert {"Key": "cost", "Value": "research"} in cast("list[object]", own["Tags"])
    assert [tag["ResourceType"] for tag in below] == ["instance", "volume"]


def test_native_when_given_takes_the_place_of_the_default() -> None:
    desired = desired_of(eks_target(native={"updateConfig": {"maxUnavailablePercentage": 20}}))

    assert group_of(desired)["updateConfig"] == {"maxUnavailablePercentage": 20}
    assert desired.fields[MAX_UNAVAILABLE] == "20%"


def test_place_when_filled_in_changes_the_request_only() -> None:
    desired = desired_of(eks_target())

    placed = with_place(desired, "arn:role", ("subnet-a",))

    assert group_of(placed) == {**group_of(desired), "nodeRole": "arn:role", "subnets": ["subnet-a"]}
    assert placed.fields == desired.fields


def test_protection_when_asked_is_a_label_and_no_plain_field() -> None:
    desired = desired_of(eks_target(protect=True))

    assert desired.labels["gpukube.io/protect"] == "true"
    assert desired.fields[PROTECTION] is True
    assert label("gpukube.io/protect") not in desired.fields


def test_taint_when_it_has_no_value_is_sent_without_one() -> None:
    assert native_taint(Taint("dedicated", "", "NoSchedule")) == {"key": "dedicated", "effect": "NO_SCHEDULE"}
