"""Amazon EKS: the calls on clusters, node groups, updates, and tags.

In scope: the calls, as methods that return the response body or raise a `AwsError`. Out of scope: HTTP (`routes`),
rules, the work behind a state (`lifecycle`).
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.eks.clusters import Known
from gpukube_sandbox.eks.defaults import with_defaults
from gpukube_sandbox.eks.failures import planned_failure
from gpukube_sandbox.eks.groups import NodeGroup, Update, type_names
from gpukube_sandbox.eks.images import check_release, release_version
from gpukube_sandbox.eks.keys import check_tags, check_taints
from gpukube_sandbox.eks.launchrules import check_launch
from gpukube_sandbox.eks.lifecycle import Before, Job, Pace, run_config, run_create, run_delete, run_version, stop_work
from gpukube_sandbox.eks.quotas import QUOTAS, limit_of
from gpukube_sandbox.eks.references import check_references
from gpukube_sandbox.eks.rules import (
    check_group,
    check_labels_update,
    check_scaling,
    check_settings,
    check_settings_update,
    requested_template,
)
from gpukube_sandbox.eks.schema import CREATE, TAGS, UPDATE_CONFIG, UPDATE_VERSION, check_shape
from gpukube_sandbox.eks.templates import LaunchTemplate, TemplateStore, TemplateVersion
from gpukube_sandbox.eks.throttle import LIMITS
from gpukube_sandbox.eks.updates import apply_config, config_params
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter, bad_request, busy, missing, strings_in
from gpukube_sandbox.faults import no_lag
from gpukube_sandbox.pages import WrongToken, cut
from gpukube_sandbox.throttle import Buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.failures import Failure
    from gpukube_sandbox.eks.things import Reservation, Role
    from gpukube_sandbox.faults import Fault
    from gpukube_sandbox.stock import Stock

_LOG = logging.getLogger(__name__)
_STATUS_BUSY = "Nodegroup cannot be updated as it is currently not in Active State"
_ACTIONS = {
    "create": "CreateNodegroup",
    "delete": "DeleteNodegroup",
    "ConfigUpdate": "UpdateNodegroupConfig",
    "VersionUpdate": "UpdateNodegroupVersion",
}


@dataclass(slots=True)
class EksService:
    """All clusters of all accounts and regions, and their launch templates.

    Attributes:
        plan: Returns the fault of an operation, if any, from cluster, group, and kind, called at its start. Kinds:
            "create", "delete", "ConfigUpdate", "VersionUpdate".
        stock: The machines that groups can launch.
        lag: Returns the seconds for which lists omit a group, from cluster and group, called at creation.
        page_size: Maximum of names per page; the real service's is 100.
        things: Existing resources by account and region; `known` adds entries.
        secret: Secret of all access keys.
        sells_blocks: Whether PurchaseCapacityBlock buys; it is refused by a policy otherwise.
        configurations: Account -> configuration of a Spot placement score -> when it was last used.
        offered: Id of a Capacity Block offering -> the reservation that it would be.
        is_creating_busy: Whether a CREATING group cannot be deleted (unconfirmed).
        is_degraded_busy: Whether a DEGRADED group rejects updates; reports about the real service conflict
            (aws/containers-roadmap#2204, #2326).
    """

    clock: Clock
    plan: Callable[[str, str, str], Fault | None]
    stock: Stock
    pace: Pace = field(default_factory=Pace)
    page_size: int = 100
    is_degraded_busy: bool = False
    is_creating_busy: bool = True
    sells_blocks: bool = False
    configurations: dict[str, dict[tuple[object, ...], float]] = field(default_factory=dict)
    offered: dict[str, Reservation] = field(default_factory=dict)
    clusters: dict[str, EksCluster] = field(default_factory=dict)
    stores: dict[tuple[str, str], TemplateStore] = field(default_factory=dict)
    things: dict[tuple[str, str], Known] = field(default_factory=dict)
    lag: Callable[[str, str], float] = no_lag
    secret: str = field(default_factory=new_secret, repr=False)
    throttle: Buckets = field(init=False)

    def __post_init__(self) -> None:
        """Create the token buckets."""
        self.throttle = Buckets(self.clock, LIMITS)

    async def reset(self) -> None:
        """Cancel running work and delete all state."""
        for cluster in self.clusters.values():
            for group in cluster.groups.values():
                await stop_work(group)
        self.clusters.clear()
        self.stores.clear()
        self.things.clear()
        self.configurations.clear()
        self.offered.clear()
        self.throttle.reset()
        self.pace, self.page_size, self.is_degraded_busy, self.is_creating_busy = Pace(), 100, False, True
        self.sells_blocks = False

    def templates(self, account: str, region: str) -> TemplateStore:
        """Return the launch templates of an account in a region."""
        created_by = f"arn:aws:iam::{account}:user/sandbox"
        return self.stores.setdefault((account, region), TemplateStore(self.clock, created_by))

    def known(self, account: str, region: str) -> Known:
        """Return the existing resources of an account, seen from a region; roles are those of all regions."""
        if (account, region) not in self.things:
            self.things[account, region] = Known(self.roles(account))
        return self.things[account, region]

    def roles(self, account: str) -> dict[str, Role]:
        """Return the roles of an account by name."""
        return next((found.roles for (owner, _), found in self.things.items() if owner == account), {})

    # Clusters

    def in_region(self, account: str, region: str) -> list[EksCluster]:
        """Return the clusters of an account in a region."""
        return [entry for entry in self.clusters.values() if (entry.account, entry.region) == (account, region)]

    def list_clusters(self, account: str, region: str, limit: str, token: str) -> Json:
        """Return the names of the clusters."""
        names = sorted(cluster.name for cluster in self.in_region(account, region))
        return self._page("clusters", names, limit, token)

    def require_cluster(self, account: str, region: str, name: str) -> EksCluster:
        """Find a cluster of this account in this region."""
        found = self.clusters.get(eks_key(account, region, name))
        if found is None:
            raise missing(f"No cluster found for name: {name}.", clusterName=name)
        return found

    # Node groups

    def list_groups(self, cluster: EksCluster, limit: str, token: str) -> Json:
        """Return the names of the node groups."""
        now = self.clock.now()
        names = sorted(name for name, group in cluster.groups.items() if group.listed_from <= now)
        return self._page("nodegroups", names, limit, token)

    def require_group(self, cluster: EksCluster, name: str) -> NodeGroup:
        """Find a node group."""
        found = cluster.groups.get(name)
        if found is None:
            message = f"No node group found for name: {name}."
            raise missing(message, clusterName=cluster.name, nodegroupName=name)
        return found

    def describe_group(self, cluster: EksCluster, name: str) -> Json:
        """Return one node group."""
        return {"nodegroup": self.require_group(cluster, name).wire()}

    def create_group(self, cluster: EksCluster, body: object) -> Json:
        """Create a node group, CREATING; the same token with the same members returns the existing one."""
        sent = check_shape(body, CREATE)
        name = str(sent["nodegroupName"])
        known = cluster.groups.get(name)
        if known is not None:
            if sent.get("clientRequestToken") and known.sent == sent:
                return {"nodegroup": known.wire()}
            message = f"NodeGroup already exists with name {name} and cluster name {cluster.name}"
            raise busy(message, clusterName=cluster.name, nodegroupName=name)
        self._require_active(cluster)
        group = self._new_group(cluster, sent)
        failure = self._failure(cluster, group, "create")
        group.listed_from = group.created + self.lag(cluster.name, name)
        cluster.groups[name] = group
        self._start(Job(cluster, group, self.clock, self.pace, failure), run_create)
        return {"nodegroup": group.wire()}

    def _new_group(self, cluster: EksCluster, sent: Json) -> NodeGroup:
        template = self.find_template(cluster, *requested_template(sent))
        data = template[1].data if template else None
        check_group(sent, data, cluster)
        most = cluster.options.group_quota
        if most is None:
            most = int(limit_of(self.known(cluster.account, cluster.region), QUOTAS["L-6D54EA21"]))
        if len(cluster.groups) >= most:
            message = f"Maximum number of node groups ({most}) exceeded for cluster {cluster.name}"
            raise AwsError("ResourceLimitExceededException", message)
        return make_group(cluster, sent, template, self.clock.now())

    def find_template(
        self, cluster: EksCluster, identity: str, name: str, version: str
    ) -> tuple[LaunchTemplate, TemplateVersion] | None:
        """Return the template and version in a request (codes and messages unconfirmed)."""
        if not identity and not name:
            return None
        found = self.templates(cluster.account, cluster.region).find(identity, name)
        if found is None:
            raise bad_request(f"Launch template {identity or name} could not be found.")
        numbered_version = found.find(version)
        if numbered_version is None:
            raise bad_request(f"Launch template {identity or name} has no version {version}.")
        return found, numbered_version

    def delete_group(self, cluster: EksCluster, name: str) -> Json:
        """Delete a node group unless an operation is running (which states reject it is unconfirmed)."""
        group = self.require_group(cluster, name)
        if group.status in {"UPDATING", "DELETING"} or (group.status == "CREATING" and self.is_creating_busy):
            message = f"Nodegroup cannot be deleted as it is currently in {group.status} State"
            raise busy(message, clusterName=cluster.name, nodegroupName=name)
        failure = self._failure(cluster, group, "delete")
        for work in (group.task, group.growth):
            if work is not None:
                work.cancel()
        group.status, group.modified = "DELETING", self.clock.now()
        self._start(Job(cluster, group, self.clock, self.pace, failure), run_delete)
        return {"nodegroup": group.wire()}

    # Updates

    def update_config(self, cluster: EksCluster, name: str, body: object) -> Json:
        """Change labels, taints, sizes, and settings."""
        group, sent = self.require_group(cluster, name), check_shape(body, UPDATE_CONFIG)
        known = _known_update(group, sent)
        if known is not None:
            return {"update": known.wire()}
        params = config_params(sent)
        if not params:
            raise bad_parameter("No changes needed for the node group configuration provided")
        check_labels_update(sent)
        check_settings(sent)
        check_settings_update(sent)
        members = apply_config(group.members, sent)
        check_taints(members["taints"])
        if "scalingConfig" in sent:
            check_scaling(members["scalingConfig"], cluster, creating=False)
        self._require_settled(group)
        return self._begin_update(cluster, group, Update("ConfigUpdate", self.clock.now(), params), sent, members)

    def update_version(self, cluster: EksCluster, name: str, body: object) -> Json:
        """Update the instances to another release, Kubernetes version, or version of the launch template."""
        group, sent = self.require_group(cluster, name), check_shape(body, UPDATE_VERSION)
        known = _known_update(group, sent)
        if known is not None:
            return {"update": known.wire()}
        members, data, params = self._next_version(cluster, group, sent)
        self._require_settled(group)
        update = Update("VersionUpdate", self.clock.now(), params, is_forced=bool(sent.get("force")))
        answer = self._begin_update(cluster, group, update, sent, members)
        group.data = data
        return answer

    def _next_version(
        self, cluster: EksCluster, group: NodeGroup, sent: Json
    ) -> tuple[Json, Json | None, list[tuple[str, str]]]:
        members, data = copy.deepcopy(group.members), group.data
        params: list[tuple[str, str]] = []
        before = group.members.get("launchTemplate")
        template = self.find_template(cluster, *requested_template(sent))
        if template is not None:
            data = _updated_template(before, template, group)
            check_references({"template": data}, cluster)
            check_launch(data, group.types, strings_in(group.members["subnets"]), cluster)
            members["launchTemplate"] = _template_member(*template)
            params.append(("LaunchTemplateVersion", str(template[1].number)))
        custom = bool((data or {}).get("ImageId"))
        if custom and ("version" in sent or "releaseVersion" in sent):
            raise bad_parameter("You cannot specify version or releaseVersion with a custom AMI.")
        version = str(sent.get("version") or cluster.version)
        if version not in {cluster.version, str(group.members["version"])}:  # its own: unconfirmed, like the message
            raise bad_parameter(f"Requested Nodegroup version {version} is not the cluster's version {cluster.version}")
        if group.members["capacityType"] == "CAPACITY_BLOCK" and group.desired:  # docs: eks/capacity-blocks-mng
            raise bad_request("Set the desired size to 0 before updating a node group with a Capacity Block.")
        check_release(str(group.members["releaseVersion"]), str(sent.get("releaseVersion") or ""), version, group.image)
        latest = release_version(group.image, cluster.patched(version), cluster.image_date)
        release = str((data or {}).get("ImageId")) if custom else str(sent.get("releaseVersion") or latest)
        members |= {"version": version, "releaseVersion": release}
        params += [("Version", version), ("ReleaseVersion", release)]
        return members, data, params

    def _begin_update(self, cluster: EksCluster, group: NodeGroup, update: Update, sent: Json, members: Json) -> Json:
        update.token = str(sent.get("clientRequestToken") or "")
        failure = self._failure(cluster, group, update.type)
        before = Before.of(group)
        group.members, group.status, group.modified = members, "UPDATING", self.clock.now()
        group.updates[update.id] = update
        work = run_config if update.type == "ConfigUpdate" else run_version
        if group.growth is not None:
            group.growth.cancel()
        self._start(Job(cluster, group, self.clock, self.pace, failure, update, before), work)
        return {"update": update.wire()}

    def list_updates(self, cluster: EksCluster, group: str, limit: str, token: str) -> Json:
        """Return the ids of a node group's updates; the cluster itself has none here."""
        ids = list(self.require_group(cluster, group).updates) if group else []
        return self._page("updateIds", ids, limit, token)

    def describe_update(self, cluster: EksCluster, group: str, identity: str) -> Json:
        """Return one update; without the name of its node group it is not found."""
        found = self.require_group(cluster, group).updates.get(identity) if group else None
        if found is None:
            raise missing(f"No update found for ID: {identity}", clusterName=cluster.name)
        return {"update": found.wire()}

    # Tags

    def tags_of(self, account: str, region: str, arn: str) -> dict[str, str]:
        """Return the tags of a cluster or a node group, to read or to change.

        Raises:
            AwsError: 404 NotFoundException, 400 BadRequestException for anything but an ARN of EKS.
        """
        if not arn.startswith("arn:aws:eks:"):
            raise AwsError("BadRequestException", f"Invalid resource ARN: {arn}")
        for cluster in self.in_region(account, region):
            if cluster.arn == arn:
                return cluster.tags
            for group in cluster.groups.values():
                if group.arn == arn:
                    return group.tags
        raise AwsError("NotFoundException", f"Resource was not found for resource ARN: {arn}")

    def tag(self, account: str, region: str, arn: str, body: object) -> Json:
        """Add or change tags."""
        found = self.tags_of(account, region, arn)
        given = check_shape(body, TAGS)["tags"]
        changed = {**found, **given} if isinstance(given, dict) else found
        try:
            check_tags(changed)
        except AwsError as error:
            raise AwsError("BadRequestException", error.message) from None
        found.update(changed)
        return {}

    def untag(self, account: str, region: str, arn: str, keys: list[str]) -> Json:
        """Remove tags; absent ones are ignored."""
        found = self.tags_of(account, region, arn)
        if not keys:
            raise AwsError("BadRequestException", "tagKeys is required")
        for key in keys:
            found.pop(key, None)
        return {}

    # Shared by the calls

    def _page(self, key: str, names: list[str], limit: str, token: str) -> Json:
        """Return one page.

        Raises:
            AwsError: 400 InvalidParameterException for a size outside 1 to 100, or an invalid token.
        """
        if limit and not (limit.isdigit() and 1 <= int(limit) <= 100):  # noqa: PLR2004 - botocore: min 1, max 100
            raise bad_parameter(f"maxResults {limit} must be between 1 and 100")
        try:
            page, following = cut(key, names, token, min(int(limit or self.page_size), self.page_size))
        except WrongToken as error:
            raise bad_parameter("Invalid next token") from error
        return {key: list(page), **({"nextToken": following} if following else {})}

    def _require_active(self, cluster: EksCluster) -> None:
        if cluster.status != "ACTIVE":
            message = f"Cluster '{cluster.name}' is not in ACTIVE status"
            raise AwsError("InvalidRequestException", message, about={"clusterName": cluster.name})

    def _require_settled(self, group: NodeGroup) -> None:
        if group.status == "ACTIVE" or (group.status == "DEGRADED" and not self.is_degraded_busy):
            return
        raise busy(_STATUS_BUSY, clusterName=group.cluster, nodegroupName=group.name)

    def _failure(self, cluster: EksCluster, group: NodeGroup, kind: str) -> Failure | None:
        fault = self.plan(cluster.name, group.name, kind)
        spot = group.members["capacityType"] == "SPOT"
        return planned_failure(fault, cluster, type_names(group.members, group.data)[0], _ACTIONS[kind], spot=spot)

    def _start(self, job: Job, work: Callable[[Job], Coroutine[object, object, None]]) -> None:
        job.group.task = asyncio.create_task(work(job))
        job.group.task.add_done_callback(_log_if_broken)


def make_group(
    cluster: EksCluster, sent: Json, template: tuple[LaunchTemplate, TemplateVersion] | None, now: float
) -> NodeGroup:
    """Return a new node group in state CREATING, from checked members."""
    data = template[1].data if template else None
    name, identity = str(sent["nodegroupName"]), str(uuid.uuid4())
    tags = sent.get("tags")
    return NodeGroup(
        name=name,
        cluster=cluster.name,
        arn=f"arn:aws:eks:{cluster.region}:{cluster.account}:nodegroup/{cluster.name}/{name}/{identity}",
        asg=f"eks-{name}-{identity}",
        members=with_defaults(sent, data, _template_member(*template) if template else None, cluster),
        data=data,
        created=now,
        sent=json.loads(json.dumps(sent)),
        tags={str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {},
        asg_tags={
            "k8s.io/cluster-autoscaler/enabled": "true",
            f"k8s.io/cluster-autoscaler/{cluster.name}": "owned",
            f"kubernetes.io/cluster/{cluster.name}": "owned",
            "eks:cluster-name": cluster.name,
            "eks:nodegroup-name": name,
        },
    )


def eks_key(account: str, region: str, name: str) -> str:
    """Return a cluster's key in the service."""
    return f"{account}/{region}/{name}"


def _template_member(template: LaunchTemplate, version: TemplateVersion) -> Json:
    """Return a template as in a response: id, name, and the number of its version, even for $Latest and $Default."""
    return {"id": template.id, "name": template.name, "version": str(version.number)}


def _updated_template(before: object, template: tuple[LaunchTemplate, TemplateVersion], group: NodeGroup) -> Json:
    """Check that a group keeps its template, where its instance types are set, and whether the template has an image.

    Source:
        docs: eks/launch-templates; messages unconfirmed.
    """
    data, had = template[1].data, group.data or {}
    if not isinstance(before, dict):
        raise bad_parameter("Node group was created without a launch template: it cannot be given one.")
    if before["id"] != template[0].id:
        raise bad_parameter("Node group's launch template cannot be changed to another one, only its version.")
    if bool(data.get("ImageId")) != bool(had.get("ImageId")):
        raise bad_parameter("A node group cannot change between a custom AMI and an Amazon EKS optimized one.")
    if data.get("InstanceType") != had.get("InstanceType"):
        raise bad_parameter("The instance type of a node group's launch template cannot be changed.")
    return data


def _known_update(group: NodeGroup, sent: Json) -> Update | None:
    token = sent.get("clientRequestToken")
    return next((update for update in group.updates.values() if token and update.token == token), None)


def _log_if_broken(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("a node group's work broke", exc_info=error)
