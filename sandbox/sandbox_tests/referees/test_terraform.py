"""`terraform` with HashiCorp's provider of AWS: it makes a node group, finds nothing left to do, sees drift, destroys.

The provider comes from Terraform's registry, or from a mirror on the machine:
`TF_CLI_ARGS_init=-plugin-dir=DIRECTORY pytest tests/referees/test_terraform.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox_tests.kube.clients import run_client

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("terraform", "aws")

CONFIGURATION = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

provider "aws" {}

variable "most" { default = 2 }

data "aws_eks_cluster" "train" { name = "train" }

data "aws_iam_role" "nodes" { name = "train-eksNodeRole" }

resource "aws_launch_template" "gpu" {
  name          = "gpu"
  instance_type = "g4dn.xlarge"
}

resource "aws_eks_node_group" "gpu" {
  cluster_name    = data.aws_eks_cluster.train.name
  node_group_name = "gpu"
  node_role_arn   = data.aws_iam_role.nodes.arn
  subnet_ids      = data.aws_eks_cluster.train.vpc_config[0].subnet_ids
  ami_type        = "AL2023_x86_64_NVIDIA"
  labels          = { team = "vision" }

  launch_template {
    id      = aws_launch_template.gpu.id
    version = aws_launch_template.gpu.latest_version
  }

  scaling_config {
    min_size     = 0
    max_size     = var.most
    desired_size = 1
  }

  taint {
    key    = "nvidia.com/gpu"
    value  = "present"
    effect = "NO_SCHEDULE"
  }
}
"""
_DIFFERS = 2
LIST: list[Row] = [
    ("terraform apply $quiet", "Apply complete! Resources: 2 added, 0 changed, 0 destroyed."),
    ("terraform plan -no-color -detailed-exitcode", "No changes. Your infrastructure matches the configuration."),
    ("terraform apply $quiet -var most=3", "~ max_size = 2 -> 3 ... Resources: 0 added, 1 changed, 0 destroyed."),
    ("aws eks update-nodegroup-config $group --labels addOrUpdateLabels={by=hand}", "ConfigUpdate"),
    ("terraform plan -no-color -detailed-exitcode -var most=3", '- "by" = "hand" -> null', _DIFFERS),
    ("terraform destroy $quiet", "Destroy complete! Resources: 2 destroyed."),
    ("aws eks list-nodegroups --cluster-name train --query nodegroups --output text", "system"),
]


def test_terraform_when_it_manages_a_node_group_then_plans_and_services_agree(referee: Referee) -> None:
    (referee.cwd / "main.tf").write_text(CONFIGURATION)
    begun = run_client(["terraform", "init", "-no-color"], os.environ, cwd=referee.cwd)
    if begun.returncode:
        pytest.skip(f"terraform found no hashicorp/aws (a mirror: TF_CLI_ARGS_init=-plugin-dir=DIR): {begun.stderr}")
    referee.names |= {
        "quiet": "-auto-approve -no-color",
        "group": "--cluster-name train --nodegroup-name gpu",
    }
    referee.asks(LIST)
