"""Reads the launches of a node group: from the activities of its Auto Scaling group, or from its health.

In scope: the call, and reading its response. Out of scope: the meaning of errors (`facts.meanings`).

EC2's refusal of a launch is in an activity at once and in each retry's, in the group's health minutes later, and the
node group's creation fails only after that (kubernetes/autoscaler cloudprovider/aws/auto_scaling_groups.go uses the
activities for the same purpose).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text, trees
from gpukube.core.launches import Launches
from gpukube_eks.facts.meanings import issue_error, launch_error
from gpukube_eks.live.failures import explained, unless
from gpukube_eks.pool.observe import health_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Observed
    from gpukube_eks.live.sdk import Aws

_NEWEST: Final = 100
"""Activities of one page, the maximum (botocore autoscaling DescribeScalingActivitiesType); the newest are first."""
_LAUNCHING: Final = "Launching"
"""First word of the description of an activity that starts machines, not one that terminates them."""


def read_launches(aws: Aws, observed: Observed, where: str, denied: Collection[str]) -> Launches:
    """Read the activities; the health if they cannot be read.

    Args:
        aws: The clients.
        observed: The node group as just read.
        where: The pool, for messages.
        denied: Error codes of a missing permission.
    """
    name = text(observed.native, "resources", "autoScalingGroups", 0, "name")  # none while EKS has not made it
    call = partial(aws.autoscaling.describe_scaling_activities, AutoScalingGroupName=name, MaxRecords=_NEWEST)
    with explained(where):
        answer = unless(denied, call) if name else None
    if answer is not None:
        return _activities(answer, where)
    issues = health_of(observed.native)
    return Launches(issue_error(issues, where) if issues else None)


def _activities(answer: Mapping[str, object], where: str) -> Launches:
    """Return the newest failed and the newest successful launch."""
    failed: tuple[float, str] | None = None
    launched: float | None = None
    for activity in trees(answer, "Activities"):
        started = activity.get("StartTime")
        if not isinstance(started, datetime) or not text(activity, "Description").startswith(_LAUNCHING):
            continue
        when, status = started.timestamp(), activity.get("StatusCode")
        if status == "Failed" and failed is None:
            failed = when, text(activity, "StatusMessage")
        elif status == "Successful" and launched is None:
            launched = when
    if failed is None:
        return Launches(launched_at=launched)
    return Launches(launch_error(failed[1], where), failed[0], launched)
