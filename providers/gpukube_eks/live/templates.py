"""Finds, reads, creates, updates, and deletes launch templates.

In scope: the calls to EC2 for templates. Out of scope: a template's content (`pool.template`), node groups (`client`).
A version never changes, so it is cached once read.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.core.jsontree import at, strings, tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import CloudError, Conflict
from gpukube.gpu.catalog import find_machine
from gpukube_eks.live.failures import unless
from gpukube_eks.pool.launch import writable
from gpukube_eks.pool.observe import observe_leftover
from gpukube_eks.pool.placement_groups import group_in
from gpukube_eks.pool.refusals import moved
from gpukube_eks.pool.settings import TEMPLATE_DATA
from gpukube_eks.pool.template import CLUSTER_TAG, contains, tags_of, template_name
from gpukube_eks.pool.translate import KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Observed
    from gpukube_eks.live.sdk import Answer, Aws

_GONE: Final = frozenset(
    {
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateId.VersionNotFound",
    }
)
_EXISTS: Final = frozenset({"InvalidLaunchTemplateName.AlreadyExistsException"})
_FIRST_VERSION: Final = "1"
_NEWEST: Final = "$Latest"
Used: TypeAlias = tuple[str, str]
"""Id and version of a launch template that a group uses."""


class LaunchTemplates:
    """The launch templates of one cluster's node groups.

    Args:
        aws: The clients.
        cluster: Name of the cluster.
    """

    def __init__(self, aws: Aws, cluster: str) -> None:
        self._aws = aws
        self._cluster = cluster
        self._read: dict[tuple[str, str], Mapping[str, object]] = {}
        self._newest: dict[str, int] = {}
        """Id of a template -> its newest version when one of its versions was read."""

    def listed(self) -> list[Answer]:
        """Return the templates with gpukube's tag for this cluster."""
        desired = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [self._cluster]}]
        answer = self._aws.ec2.describe_launch_templates(Filters=desired)
        found: list[Answer] = [*trees(answer, "LaunchTemplates")]
        while token := str(answer.get("NextToken") or ""):
            answer = self._aws.ec2.describe_launch_templates(Filters=desired, NextToken=token)
            found += trees(answer, "LaunchTemplates")
        return found

    def leftover(self, template: Answer) -> Observed | None:
        """Read a template as a pool without its group; None if gpukube did not create it for a group."""
        observed = observe_leftover(template)
        own = template_name(self._cluster, observed.name)
        return observed if observed.owner and template.get("LaunchTemplateName") == own else None

    def leftover_of(self, pool: str) -> Observed | None:
        """Return the template of a pool without a group, with its data."""
        found = next((one for one in map(self.leftover, self.listed()) if one is not None and one.name == pool), None)
        return self.with_data(found) if found else None

    def with_data(self, leftover: Observed) -> Observed:
        """Add the data of its newest version to a template without a group: its group may take over some of it."""
        name = str(leftover.native.get("LaunchTemplateName"))
        newest = self._versions(LaunchTemplateName=name, Versions=[_NEWEST])
        data = tree(newest[0], "LaunchTemplateData") if newest else {}
        return replace(leftover, native={**leftover.native, TEMPLATE_DATA: data})

    def data_of(self, group: Answer) -> Mapping[str, object]:
        """Return the data of a group's template version, the only place for disk, node settings, and reservation.

        Read only for groups with GPUs: gpukube's, and those that may be adopted.
        """
        template = tree(group, "launchTemplate")
        identity, version = str(template.get("id") or ""), str(template.get("version") or "")
        types = strings(group, "instanceTypes")
        if not identity or (types and not any(find_machine("eks", name) for name in types)):
            return {}
        key = (identity, version)
        if key not in self._read:
            found = self._versions(LaunchTemplateId=identity, Versions=[version, _NEWEST])
            numbered = {str(one.get("VersionNumber")): tree(one, "LaunchTemplateData") for one in found}
            self._newest[identity] = max(map(int, numbered), default=0)
            self._read[key] = numbered.get(version, {})
        return self._read[key]

    def ensure(self, desired: Mapping[str, object], where: str) -> str:
        """Create the template, or reuse gpukube's existing one, in a new version if its content differs.

        Every attempt has a new token: for an old one, EC2 would return a deleted template.

        Args:
            desired: Arguments of CreateLaunchTemplate.
            where: The pool, for errors.

        Returns:
            The number of the version.
        """
        token = uuid.uuid4().hex
        made = unless(_EXISTS, partial(self._aws.ec2.create_launch_template, **desired, ClientToken=token))
        return self._reuse(desired, where) if made is None else _FIRST_VERSION

    def follow(self, desired: Mapping[str, object], where: str) -> str:
        """Return the version that changes some members of a live one; create it only if there is none yet.

        An unused version of a killed run is found by its content, so neither retries nor going back and forth pile up
        versions.

        Args:
            desired: Arguments of CreateLaunchTemplateVersion: the template's id, SourceVersion, the changed members;
                None removes a member.
            where: The pool, for errors.

        Raises:
            CloudError: The group has no template, or its version was deleted.
            Moved: Somebody else has added a version since the group was read, and may be about to use it.
        """
        identity, source = desired.get("LaunchTemplateId"), desired.get("SourceVersion")
        versions = self._versions(LaunchTemplateId=identity) if identity else []
        numbered = {str(one.get("VersionNumber")): tree(one, "LaunchTemplateData") for one in versions}
        if str(source) not in numbered:
            raise CloudError(
                "the node group has no launch template, so this cannot be changed",
                where=where,
                fix="write the live value again, or give the pool a new name",
                why="a group that was created without a launch template can never get one",
                code="launch-template",
            )
        changes = tree(desired, "LaunchTemplateData")
        target = {name: one for name, one in {**numbered[str(source)], **changes}.items() if one is not None}
        same = [number for number, data in numbered.items() if data.keys() == target.keys() and contains(data, target)]
        if same:
            return max(same, key=int)
        newest = max(map(int, numbered))
        known = self._newest.get(str(identity), newest)
        self._newest[str(identity)] = newest
        if newest > known:
            raise moved((f"launchTemplate (version {newest} is new)",), where)
        if None in changes.values():
            # A version inherits what it does not set, so one that removes a member must have all others itself.
            desired = {"LaunchTemplateId": identity, "LaunchTemplateData": writable(target)}
        made = int(self._add_version(desired))
        self._newest[str(identity)] = made
        if made > newest + 1:  # somebody was faster: gpukube's version lacks what theirs has, so it is not used
            raise moved((f"launchTemplate (version {made - 1} is new)",), where)
        return str(made)

    def names_own_placement_group(self, pool: str) -> bool:
        """Return whether a version of a pool's template names the pool's own placement group, which has its name."""
        name = template_name(self._cluster, pool)
        if not self._is_ours(name, {CLUSTER_TAG: self._cluster}):
            return False
        versions = self._versions(LaunchTemplateName=name)
        return any(group_in(tree(version, "LaunchTemplateData")) == name for version in versions)

    def delete(self, pool: str, used: Used | None = None) -> None:
        """Delete the template of a deleted group; another owner's template of that name stays.

        Args:
            pool: Name of the group.
            used: The template and version that the group used; None if there was no group. If its newest version is
                another one that is kept for the next group, it stays too.
        """
        name = template_name(self._cluster, pool)
        if used is not None and self._is_kept(name, used):
            return
        if self._is_ours(name, {CLUSTER_TAG: self._cluster}):
            unless(_GONE, partial(self._aws.ec2.delete_launch_template, LaunchTemplateName=name))

    def release(self, name: str) -> None:
        """Remove gpukube's tags from a group's template, so that it is not a leftover once the group is deleted."""
        for template in self.listed():
            if template.get("LaunchTemplateName") == name:
                tags = [{"Key": OWNER_LABEL}, {"Key": POOL_LABEL}]
                self._aws.ec2.delete_tags(Resources=[str(template["LaunchTemplateId"])], Tags=tags)

    def _is_kept(self, name: str, used: Used) -> bool:
        newest = self._versions(LaunchTemplateName=name, Versions=[_NEWEST])
        return any(
            one.get("VersionDescription") == KEPT
            and (one.get("LaunchTemplateId"), str(one.get("VersionNumber"))) != used
            for one in newest
        )

    def _reuse(self, desired: Mapping[str, object], where: str) -> str:
        name = str(desired["LaunchTemplateName"])
        marks = tags_of({"Tags": trees(desired, "TagSpecifications")[0].get("Tags")})
        if not self._is_ours(name, marks):
            raise Conflict(
                f'the launch template "{name}" already exists without the gpukube.io tags of this pool',
                where=where,
                fix="delete it, or give the pool another name",
                code="foreign-template",
            )
        described = {key: desired[key] for key in ("VersionDescription",) if key in desired}
        newest = self._versions(LaunchTemplateName=name, Versions=[_NEWEST])
        if newest and contains(newest[0], {"LaunchTemplateData": desired["LaunchTemplateData"], **described}):
            return str(newest[0].get("VersionNumber"))
        data = desired["LaunchTemplateData"]
        return self._add_version({"LaunchTemplateName": name, "LaunchTemplateData": data, **described})

    def _add_version(self, desired: Mapping[str, object]) -> str:
        answer = self._aws.ec2.create_launch_template_version(**desired, ClientToken=uuid.uuid4().hex)
        return str(at(answer, "LaunchTemplateVersion", "VersionNumber"))

    def _versions(self, **which: object) -> list[dict[str, object]]:
        answer = unless(_GONE, partial(self._aws.ec2.describe_launch_template_versions, **which))
        found = trees(answer, "LaunchTemplateVersions") if answer else []
        while token := str((answer or {}).get("NextToken") or ""):
            answer = self._aws.ec2.describe_launch_template_versions(**which, NextToken=token)
            found += trees(answer, "LaunchTemplateVersions")
        return found

    def _is_ours(self, name: str, marks: Mapping[str, str]) -> bool:
        found = [one for one in self.listed() if one.get("LaunchTemplateName") == name]
        ours = {key: value for key, value in marks.items() if key.startswith("gpukube.io/")}
        return bool(found) and ours.items() <= tags_of(found[0]).items()
