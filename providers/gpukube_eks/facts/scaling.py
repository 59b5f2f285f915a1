"""Names of the Auto Scaling groups of managed node groups, for the order of a family in the autoscaler.

Sources: docs: eks/managed-node-groups (eks-NAME-UUID); kubernetes-sigs/cluster-autoscaler pkg/expander/priority.
"""

from __future__ import annotations

import re
from typing import Final

from gpukube.core.scaling_order import GroupOrder

_DASH: Final = "\\-"
"""How Python escapes a dash, which needs no escape here."""


def _group(name: str) -> str:
    # EKS adds a new UUID whenever a node group is created. The anchors keep h100 from matching h100b.
    return rf"^eks-{re.escape(name).replace(_DASH, '-')}-[0-9a-f]{{8}}-[0-9a-f-]{{27}}$"


ORDER: Final = GroupOrder(group=_group)
