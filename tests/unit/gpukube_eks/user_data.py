"""User data of others, as the clusters of issue reports and examples have it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from gpukube.gpu.models import model_named
from gpukube.gpu.sharing import Sharing
from gpukube_eks.userdata.merging import Ours

A100: Final = model_named("A100-40GB")

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fields import FieldPath

SCRIPT: Final = """Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
export TOKEN=hunter2
"""
RAID: Final = """Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      cpuManagerPolicy: static
    flags:
      - --node-labels=secret=hunter2
"""
"""As awsome-distributed-training and terraform-aws-modules/terraform-aws-eks write it."""
ROCKET: Final = """# kept
[settings.kubernetes.node-labels]
x="y"

[settings.host-containers.admin]
enabled=true
"""


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decode(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def mime(*parts: str, boundary: str = "//", closed: bool = True) -> str:
    body = "".join(f"--{boundary}\n{part}" for part in parts)
    end = f"--{boundary}--\n" if closed else ""
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n\n{body}{end}'


def ours(settings: Mapping[FieldPath, object] | None = None, sharing: Sharing | None = None) -> Ours:
    return Ours(settings or {}, A100, sharing or Sharing())
