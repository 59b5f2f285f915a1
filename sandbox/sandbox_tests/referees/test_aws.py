"""The `aws` command: what it asks of EKS and of what belongs to node groups, and what the sandbox answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.eks.aws import ACCOUNT, NAME, Aws

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("aws")

_FAILED = (254, 255)
"""Of aws 2 and aws 1."""

CREATED: Row = (
    (
        "aws eks create-nodegroup $group --subnets $subnets --node-role $role --instance-types g4dn.xlarge"
        " --ami-type AL2023_x86_64_NVIDIA --scaling-config minSize=0,maxSize=2,desiredSize=1"
        " --labels team=vision --taints key=nvidia.com/gpu,value=present,effect=NO_SCHEDULE"
        " --query nodegroup.status"
    ),
    "CREATING",
)

LISTS: dict[str, list[Row]] = {
    "who and what is there": [
        ("aws sts get-caller-identity", "111122223333 arn:aws:iam::111122223333:user/sandbox"),
        ("aws eks list-clusters", "CLUSTERS train"),
        ("aws eks describe-cluster --name train --query cluster.[name,status,version]", "train ACTIVE 1.34"),
        ("aws eks describe-cluster --name nobody", "(ResourceNotFoundException) ... for name: nobody.", _FAILED),
        ("aws eks list-nodegroups --cluster-name train", "NODEGROUPS system"),
        ("aws eks describe-nodegroup $cluster --nodegroup-name system --query nodegroup.nodeRole", "train-eksNodeRole"),
        ("aws eks get-token --cluster-name train --query kind", "ExecCredential"),
        ("aws eks update-kubeconfig --name train --kubeconfig own --alias own", "Added new context own to"),
        (
            "env AWS_SECRET_ACCESS_KEY=wrong aws eks list-clusters",
            "(InvalidSignatureException) ... does not match the signature you provided",
            _FAILED,
        ),
    ],
    "what an account has": [
        ("aws iam list-roles --query Roles[].RoleName", "train-eksClusterRole train-eksNodeRole"),
        ("aws iam get-role --role-name train-eksNodeRole --query Role.Arn", "111122223333:role/train-eksNodeRole"),
        ("aws iam get-role --role-name train-other", "(NoSuchEntity) ... train-other cannot be found", _FAILED),
        ("aws ec2 describe-instance-types --instance-types p4d.24xlarge --query $gpus", "A100 8"),
        ("aws ec2 describe-instances --query Reservations[].Instances[].InstanceType", "m5.large"),
        ("aws service-quotas list-service-quotas --service-code ec2 --query Quotas[0].[QuotaCode,Value]", "L-417A185B"),
    ],
    "queries": [
        (
            "aws ec2 describe-regions --region-names us-east-1 eu-west-1 --query Regions[].RegionName",
            "eu-west-1 us-east-1",
        ),
        ("aws ec2 describe-security-groups --query SecurityGroups[].GroupName", "eks-cluster-sg-train"),
        (
            (
                "aws ec2 describe-instances --filters Name=tag:eks:nodegroup-name,Values=sys*"
                " --query Reservations[].Instances[].InstanceType"
            ),
            "m5.large",
        ),
        ("aws service-quotas get-service-quota $quota --query Quota.Value", "100000.0"),
        (
            (
                "aws ssm get-parameter --query Parameter.Value"
                " --name /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
            ),
            "ami-",
        ),
    ],
    "what capacity there is": [
        (
            (
                "aws ec2 get-spot-placement-scores --region-names us-east-1 --single-availability-zone"
                " --target-capacity 2 --instance-types g4dn.xlarge g5.xlarge g6.xlarge"
                " --query SpotPlacementScores[].Score"
            ),
            "9 9 9",
        ),
        (
            (
                "aws ec2 describe-spot-price-history --instance-types g6.xlarge"
                " --query SpotPriceHistory[].AvailabilityZoneId"
            ),
            "use1-az2 use1-az3 use1-az1",
        ),
        (
            (
                "aws ec2 describe-capacity-block-offerings --instance-type p5.48xlarge --instance-count 2"
                " --capacity-duration-hours 24 --query CapacityBlockOfferings[].CurrencyCode"
            ),
            "USD USD USD USD USD USD",
        ),
        (
            "aws ec2 purchase-capacity-block --capacity-block-offering-id cb-0 --instance-platform Linux/UNIX",
            "(UnauthorizedOperation) ... explicit deny in a service control policy",
            _FAILED,
        ),
        ("aws ec2 describe-capacity-reservations --query CapacityReservations", ""),
        ("aws ec2 get-capacity-manager-attributes --query CapacityManagerStatus", "disabled"),
        ("aws autoscaling describe-scaling-activities --query Activities", ""),
    ],
    "launch templates": [
        (
            "aws ec2 create-launch-template $template --launch-template-data InstanceType=g4dn.xlarge --query $made",
            "gpu 1",
        ),
        (
            "aws ec2 create-launch-template $template --launch-template-data InstanceType=g4dn.xlarge",
            "(InvalidLaunchTemplateName.AlreadyExistsException)",
            _FAILED,
        ),
        (
            (
                "aws ec2 create-launch-template-version $template --source-version 1 --launch-template-data KeyName=ops"
                " --query LaunchTemplateVersion.[VersionNumber,LaunchTemplateData.[InstanceType,KeyName]]"
            ),
            "2 g4dn.xlarge ops",
        ),
        ("aws ec2 describe-launch-templates --query LaunchTemplates[].LatestVersionNumber", "2"),
        ("aws ec2 describe-launch-template-versions $template --query LaunchTemplateVersions[].VersionNumber", "2 1"),
        ("aws ec2 delete-launch-template $template --query LaunchTemplate.LaunchTemplateName", "gpu"),
        (
            "aws ec2 describe-launch-templates --launch-template-names gpu",
            "(InvalidLaunchTemplateName.NotFoundException)",
            _FAILED,
        ),
    ],
    "the life of a node group": [
        CREATED,
        ("aws eks wait nodegroup-active $group", ""),
        ("aws eks list-nodegroups $cluster --max-results 1 --query nodegroups", "system"),
        ("aws eks list-nodegroups $cluster --page-size 1 --query nodegroups", "system t4"),
        ("aws eks update-nodegroup-version $group --query update.type", "VersionUpdate"),
        ("aws eks wait nodegroup-active $group", ""),
        ("aws eks delete-nodegroup $group --query nodegroup.status", "DELETING"),
        ("aws eks wait nodegroup-deleted $group", ""),
        ("aws eks describe-nodegroup $group", "(ResourceNotFoundException) ... No node group found", _FAILED),
    ],
    "changes of a node group": [
        CREATED,
        ("aws eks wait nodegroup-active $group", ""),
        (
            (
                "aws eks update-nodegroup-config $group --scaling-config minSize=0,maxSize=3,desiredSize=2"
                " --labels addOrUpdateLabels={tier=gold},removeLabels=team --query update.type"
            ),
            "ConfigUpdate",
        ),
        ("aws eks wait nodegroup-active $group", ""),
        (
            "aws eks describe-nodegroup $group --query nodegroup.[scalingConfig.maxSize,labels.[team,tier]]",
            "3 None gold",
        ),
        (
            (
                "sh -c 'aws eks describe-update $updated --query update.[type,status]"
                " --update-id $$(aws eks list-updates $updated --query updateIds)'"
            ),
            "ConfigUpdate Successful",
        ),
        ("sh -c 'aws eks tag-resource --tags owner=ml --resource-arn $$($arn)'", ""),
        ("aws eks describe-nodegroup $group --query nodegroup.tags.owner", "ml"),
        ("aws autoscaling describe-auto-scaling-groups --query AutoScalingGroups[].MaxSize", "3 3"),
    ],
    "what is not emulated": [
        ("aws eks describe-addon-versions", "sandbox does not emulate GET /addons/supported-versions", _FAILED),
        ("aws eks delete-cluster --name train", "sandbox does not emulate DELETE /clusters/train", _FAILED),
        ("aws ec2 describe-volumes", "sandbox does not emulate ec2 DescribeVolumes", _FAILED),
        ("aws s3 ls", "(501)", _FAILED),
    ],
}


@pytest.mark.turns(7)
@pytest.mark.parametrize("name", LISTS)
def test_aws_when_it_asks_then_answered_as_by_amazon(referee: Referee, name: str) -> None:
    place = Aws(referee.info).place()
    group = "--cluster-name train --nodegroup-name t4"
    referee.env = {**referee.env, "AWS_DEFAULT_OUTPUT": "text", "AWS_MAX_ATTEMPTS": "1"}
    referee.names |= {
        "cluster": "--cluster-name train",
        "group": group,
        "updated": "--name train --nodegroup-name t4",
        "template": "--launch-template-name gpu",
        "quota": "--service-code ec2 --quota-code L-DB2E81BA",
        "subnets": " ".join(place["subnets"]),
        "role": place["nodeRole"],
        "gpus": "InstanceTypes[].GpuInfo.Gpus[].[Name,Count]",
        "made": "LaunchTemplate.[LaunchTemplateName,LatestVersionNumber]",
        "arn": f"aws eks describe-nodegroup {group} --query nodegroup.nodegroupArn",
    }
    referee.asks(LISTS[name])


def test_token_when_aws_has_made_it_then_the_cluster_takes_it(referee: Referee) -> None:
    from gpukube_sandbox.eks.wire.identity import is_bearer_for  # noqa: PLC0415 - only where the command is

    code, token = referee.told("aws eks get-token --cluster-name train --query status.token --output text")
    assert code == 0
    assert is_bearer_for(token, NAME, ACCOUNT, referee.info.secret)
