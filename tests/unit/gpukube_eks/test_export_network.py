"""EFA, placement groups, security groups, and own images in exports: written, or named as missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from gpukube.core.exporting import ExportedPool, Losses
from gpukube_eks.export.aws import write_script
from gpukube_eks.export.eksctl import write_config
from gpukube_eks.export.karpenter import write_manifests
from gpukube_eks.export.targets import EXPORTERS
from gpukube_eks.export.terraform import write_hcl
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target
from tests.unit.gpukube_eks.test_own_image import complete, own

if TYPE_CHECKING:
    from gpukube.core.values import Target

GROUP = "sg-0123456789abcdef0"
NATIVE = {
    "nodeRole": "arn:aws:iam::111122223333:role/nodes",
    "subnets": ["subnet-0123456789abcdef0"],
    "securityGroups": [GROUP],
    "keyName": "ops",
    "ebsOptimized": True,
    "monitoring": {"enabled": True},
    "metadataOptions": {"instanceMetadataTags": "enabled"},
}
FAST = eks_target("p5.48xlarge", high_speed=True, placement="compact", native=NATIVE)


def pools_of(target: Target) -> list[ExportedPool]:
    return [ExportedPool(desired_of(target))]


def test_terraform_when_the_pool_has_a_network_writes_all_of_it() -> None:
    losses = Losses()
    written = write_hcl(CLUSTER, pools_of(FAST), losses)

    assert written.count("network_interfaces {") == 33
    assert written.count(f'security_groups       = ["{GROUP}"]') == 33
    for line in (
        'resource "aws_placement_group" "a100mig" {',
        'strategy = "cluster"',
        'group_name = "gpukube/train/a100mig"',
        'interface_type        = "efa-only"',
        'delete_on_termination = "true"',
        "ops",
        'instance_metadata_tags      = "enabled"',
    ):
        assert line in written, written
    assert [note for note in losses.notes if "not written" in note] == []


def test_terraform_when_a_member_has_no_argument_names_it() -> None:
    losses = Losses()
    write_hcl(CLUSTER, pools_of(eks_target(placement="pg-0123456789abcdef0")), losses)

    assert any("Placement.GroupId of its launch template is not written" in note for note in losses.notes)


def test_aws_when_the_pool_has_its_own_placement_group_makes_it_first() -> None:
    written = write_script(CLUSTER, pools_of(FAST), Losses())

    made = [line.split()[2] for line in written.splitlines() if line.startswith("aws ")]
    assert made == ["create-placement-group", "create-launch-template", "create-nodegroup"]


def test_eksctl_when_the_pool_has_a_network_writes_its_fields() -> None:
    losses = Losses()
    (group,) = yaml.safe_load(write_config(CLUSTER, pools_of(FAST), losses))["managedNodeGroups"]

    found = {name: group[name] for name in ("efaEnabled", "placement", "securityGroups", "ssh", "ebsOptimized")}
    assert found == {
        "efaEnabled": True,
        "placement": {"groupName": "gpukube/train/a100mig"},
        "securityGroups": {"attachIDs": [GROUP]},
        "ssh": {"publicKeyName": "ops"},
        "ebsOptimized": True,
    }
    assert group["enableDetailedMonitoring"] is True
    for start in ("the placement group", "network.highSpeed", "eks.metadataOptions"):
        assert any(f"a100mig: {start}" in note for note in losses.notes), losses.notes


def test_eksctl_when_a_network_card_has_no_efa_says_why_efa_is_not_written() -> None:
    losses = Losses()
    written = write_config(CLUSTER, pools_of(eks_target("p6-b300.48xlarge", high_speed=True)), losses)

    assert "efaEnabled" not in written
    assert any("eksctl-io/eksctl#8685" in note for note in losses.notes), losses.notes


def node_class(target: Target, losses: Losses) -> dict[str, Any]:
    desired = complete(target) if "imageId" in target.native else desired_of(target)
    written = write_manifests(CLUSTER, [ExportedPool(desired)], losses)
    (found,) = [one["spec"] for one in yaml.safe_load_all(written) if one and one["kind"] == "EC2NodeClass"]
    assert isinstance(found, dict)
    return found


def test_karpenter_when_the_pool_has_a_network_names_what_is_missing() -> None:
    losses = Losses()
    found = node_class(FAST, losses)

    assert found["securityGroupSelectorTerms"][1:] == [{"id": GROUP}]
    assert found["detailedMonitoring"] is True
    for field in ("network.highSpeed", "placement", "eks.keyName"):
        assert any(f"a100mig: {field}: " in note for note in losses.notes), losses.notes


def test_karpenter_when_the_image_is_own_names_the_cluster_itself() -> None:
    losses = Losses()
    found = node_class(own(sysctls={"vm.max_map_count": "262144"}), losses)

    assert found["amiFamily"] == "AL2023"
    assert found["amiSelectorTerms"] == [{"id": "ami-0123456789abcdef0"}]
    assert "userData" not in found
    assert any("settings of the nodes: write them as NodeConfig" in note for note in losses.notes)


def test_export_when_the_account_adds_to_the_pool_reads_it() -> None:
    plain = eks_target(native={name: NATIVE[name] for name in ("nodeRole", "subnets")})

    assert {name: exporter.is_open(desired_of(FAST)) for name, exporter in EXPORTERS.items()} == dict.fromkeys(
        EXPORTERS, True
    )
    assert not EXPORTERS["aws"].is_open(desired_of(plain))
