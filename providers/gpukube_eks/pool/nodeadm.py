"""User data of Amazon Linux 2023: settings for nodeadm, which starts the kubelet, in addition to EKS's own.

In scope: converting settings to user data and back. Out of scope: the launch template that contains them.

EKS adds its own part, and nodeadm merges all parts (docs: eks/launch-templates, MIME multi-part; eks/al2023;
awslabs/amazon-eks-ami nodeadm/doc/examples.md; eksctl-io/eksctl#8037, pkg/nodebootstrap/al2023.go).
"""

from __future__ import annotations

import base64
import email
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.core.jsontree import at

if TYPE_CHECKING:
    from collections.abc import Iterator

_KIND: Final = "application/node.eks.aws"
_PATH: Final = ("spec", "kubelet", "config", "maxPods")
_TEXT: Final = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="gpukube"

--gpukube
Content-Type: {kind}

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: {pods}

--gpukube--
"""


def max_pods_data(pods: int) -> str:
    """Return user data that limits the pods of a node, in base64 as in a launch template."""
    return base64.b64encode(_TEXT.format(kind=_KIND, pods=pods).encode()).decode()


def read_max_pods(encoded: str) -> int | None:
    """Return the maximum pods of a node from the last part that sets them; None if no part does."""
    found = [text for config in _configs(encoded) if (text := str(at(config, *_PATH))).isdecimal()]
    return int(found[-1]) if found else None


def _configs(encoded: str) -> Iterator[object]:
    """Yield the node configurations of user data, whoever wrote it; unreadable ones are skipped."""
    try:
        message = email.message_from_bytes(base64.b64decode(encoded, validate=True))
    except ValueError:
        return
    for part in message.walk():
        content = part.get_payload(decode=True)
        if part.get_content_type() == _KIND and isinstance(content, bytes):
            with suppress(yaml.YAMLError, UnicodeDecodeError, RecursionError):
                yield from list(yaml.load_all(content, yaml.BaseLoader))
