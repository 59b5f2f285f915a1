"""Creates, reads, and deletes placement groups.

In scope: the calls to EC2. Out of scope: which group a pool needs (`pool.placement_groups`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from gpukube.core.jsontree import trees
from gpukube.errors import Conflict
from gpukube_eks.live.failures import code_of, unless
from gpukube_eks.pool.template import CLUSTER_TAG, GROUP_TAG, tags_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_eks.live.sdk import Answer, Aws

_GONE: Final = frozenset({"InvalidPlacementGroup.Unknown"})
_EXISTS: Final = frozenset({"InvalidPlacementGroup.Duplicate"})
_IN_USE: Final = "InvalidPlacementGroup.InUse"
_RUNNING: Final = ("pending", "running", "stopping", "stopped")


class PlacementGroups:
    """The placement groups of an account in a region.

    Args:
        aws: The clients.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def find(self, name: str) -> Answer | None:
        """Return a group by name or id; None if it does not exist."""
        which = {"GroupIds": [name]} if name.startswith("pg-") else {"GroupNames": [name]}
        answer = unless(_GONE, partial(self._aws.ec2.describe_placement_groups, **which))
        found = trees(answer, "PlacementGroups") if answer else []
        return found[0] if found else None

    def ensure(self, desired: Mapping[str, object], where: str) -> None:
        """Create the pool's own group, or reuse it.

        Args:
            desired: Arguments of CreatePlacementGroup.
            where: The pool, for errors.

        Raises:
            Conflict: Another owner's group has the name.
        """
        if unless(_EXISTS, partial(self._aws.ec2.create_placement_group, **desired)) is not None:
            return
        name, marks = str(desired["GroupName"]), tags_of({"Tags": trees(desired, "TagSpecifications")[0].get("Tags")})
        ours = {key: value for key, value in marks.items() if key.startswith("gpukube.io/")}
        if not ours.items() <= tags_of(self.find(name) or {}).items():
            raise Conflict(
                f'the placement group "{name}" already exists without the gpukube.io tags of this pool',
                where=where,
                fix="delete it, or give the pool another name",
                code="foreign-placement-group",
            )

    def delete(self, name: str, cluster: str, pool: str) -> bool:
        """Delete a deleted pool's own group; return whether to look again, because its last machines still stop.

        A group without gpukube's tags of this pool stays, as does one with machines of others.
        """
        found = self.find(name)
        marks = {CLUSTER_TAG: cluster, GROUP_TAG: pool}
        if found is None or not marks.items() <= tags_of(found).items():
            return False
        try:
            unless(_GONE, partial(self._aws.ec2.delete_placement_group, GroupName=name))
        except ClientError as error:
            if code_of(error) != _IN_USE:
                raise
            return not self._has_machines(name)
        return False

    def _has_machines(self, name: str) -> bool:
        """Return whether machines that are not about to end are in a group."""
        filters = [
            {"Name": "placement-group-name", "Values": [name]},
            {"Name": "instance-state-name", "Values": list(_RUNNING)},
        ]
        found = trees(self._aws.ec2.describe_instances(Filters=filters), "Reservations")
        return any(trees(reservation, "Instances") for reservation in found)
