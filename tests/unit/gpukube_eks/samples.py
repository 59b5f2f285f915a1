"""Targets and clusters of EKS for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace

from gpukube.core.owners import needs_operator, solve_ownership
from gpukube.core.resolve import promise_of
from gpukube.core.values import ClusterRef, Desired, Ownership, Target
from gpukube.gpu.catalog import require_machine
from gpukube_eks import EksProvider
from tests.builders import make_target

ACCOUNT, REGION = "111122223333", "us-east-1"
CLUSTER = ClusterRef("train-eks", "eks", "train", {"account": ACCOUNT, "region": REGION})


def eks_target(machine: str = "p4d.24xlarge", **changes: object) -> Target:
    """Make a target on the EKS cluster of the examples; `changes` are fields of Target."""
    target = replace(make_target(), cluster=CLUSTER, machine=require_machine("eks", machine))
    return replace(target, **changes)  # type: ignore[arg-type]  # test data


def desired_of(target: Target) -> Desired:
    """Translate a target as the engine does."""
    provider = EksProvider()
    stack = provider.stack(target)
    ownership = solve_ownership(target, stack, operator=needs_operator(target, stack))
    assert isinstance(ownership, Ownership), ownership
    return provider.desired(target, ownership, promise_of(target))
