"""The live half of EKS: reads and writes through AWS's SDK.

In scope: `EksCloud`. Out of scope: parsing responses (`pool.observe`, `facts.meanings`), sessions and the Kubernetes
API (`access`), the cluster's surroundings (`region`) and choosing among them (`pool.placement`), launch templates
(`templates`).

Nothing here waits for an operation: the SDK's waiters give up after 20 or 40 minutes, do not support updates, and
cannot resume after a kill. A write returns at once, and `poll` checks once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from botocore.exceptions import ClientError

from gpukube.core.jsontree import at, strings, text, texts, tree, trees
from gpukube.core.upgrades import NodeOffer
from gpukube.core.values import ClusterFacts, Operation, Progress
from gpukube.endpoint import choose_endpoint
from gpukube.errors import CloudError, WrongAccount
from gpukube.kubeconfig import file_access
from gpukube_eks.facts.capacity import read_reserved
from gpukube_eks.facts.meanings import exists, issue_error, quote, update_error
from gpukube_eks.live.access import cloud_access, connect_aws
from gpukube_eks.live.connectivity import connected
from gpukube_eks.live.failures import code_of, explained, unless
from gpukube_eks.live.launches import read_launches
from gpukube_eks.live.placement_groups import PlacementGroups
from gpukube_eks.live.quotas import read_quotas
from gpukube_eks.live.region import Region
from gpukube_eks.live.room import read_room
from gpukube_eks.live.templates import LaunchTemplates, Used
from gpukube_eks.pool.change import require_unmoved
from gpukube_eks.pool.connectivity import needs_account
from gpukube_eks.pool.fields import TAG, UNTAG, UPDATE_CONFIG, UPDATE_VERSION
from gpukube_eks.pool.marks import FORM, live_place
from gpukube_eks.pool.network import groups_of
from gpukube_eks.pool.observe import STATES, health_of, is_ours, observe_group
from gpukube_eks.pool.placement import check_version, choose_role, choose_subnets, reserved_zone
from gpukube_eks.pool.purchase import capacity_fields, capacity_type, read_capacity, reserved_id
from gpukube_eks.pool.refusals import unchangeable
from gpukube_eks.pool.renewing import release_parameter
from gpukube_eks.pool.template import template_name
from gpukube_eks.pool.translate import CREATE, DELETE, KEEP, group_of, with_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.core.fields import FieldPath
    from gpukube.core.launches import Launches
    from gpukube.core.quotas import CloudQuota, QuotaReading
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.values import ClusterRef, Desired, KubeAccess, Observed, Request, Settings, Target
    from gpukube.endpoint import Endpoint
    from gpukube.errors import Finding
    from gpukube.provider import Cloud
    from gpukube_eks.live.sdk import Answer, Aws

_READY: Final = frozenset({"ACTIVE", "UPDATING"})
_AT_ONCE: Final = 8
"""Maximum parallel reads: each group needs its own describe call."""
_WRITTEN: Final = "written"
"""Handle of an operation that ended with its call."""
_NO_GROUP: Final = frozenset({"ResourceNotFoundException"})
_DENIED: Final = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation")
_NO_MORE_TAGS: Final = "BadRequestException"
"""Error of TagResource if a group already has 50 tags, including other owners' (botocore eks TagResource)."""
_TAG_ACTION: Final = "eks:TagResource"
_In = TypeVar("_In")
_Out = TypeVar("_Out")


def connect_cluster(cluster: ClusterRef, settings: Settings) -> EksCloud:
    """Return the live half of one cluster; makes no call and reads no credentials yet.

    Raises:
        AccessError: Real credentials must not be sent to the endpoint of the settings.
    """
    endpoint = choose_endpoint("eks", settings, cluster.key, carries="a session token")
    return EksCloud(cluster, settings, endpoint, connect_aws(cluster, endpoint, settings))


class EksCloud:
    """One live cluster.

    Args:
        cluster: The cluster.
        settings: The settings of this run.
        endpoint: The clients' endpoint.
        aws: The clients.
    """

    def __init__(self, cluster: ClusterRef, settings: Settings, endpoint: Endpoint, aws: Aws) -> None:
        self._cluster = cluster
        self._settings = settings
        self._endpoint = endpoint
        self._aws = aws
        self._templates = LaunchTemplates(aws, cluster.name)
        self._region = Region(aws)
        self._placements = PlacementGroups(aws)
        self._native: Mapping[str, object] = {}
        self._groups: tuple[Answer, ...] | None = None
        self._used: dict[str, Used] = {}
        """Group -> the template and version that it used when it was last read."""

    def identify(self) -> ClusterFacts:
        """Check the account, and that the cluster exists."""
        with explained(self._cluster.key):
            self._check_account(str(self._aws.sts.get_caller_identity().get("Account") or ""))
        native = self._read_cluster()
        status = str(native.get("status") or "Unknown")
        version = str(native.get("version") or "")
        hosts = {} if self._endpoint.is_emulated else self._aws.hosts()
        region = self._cluster.identity["region"]
        return ClusterFacts(region, version, ready=status in _READY, status=status, endpoints=hosts)

    def pools(self) -> tuple[Observed, ...]:
        """Return the cluster's node groups, and gpukube's launch templates without a node group."""
        with explained(self._cluster.key):
            templates, groups = self._spread([self._templates.listed, self._list_groups])
            self._groups = tuple(groups)
            data = self._map(self._templates.data_of, groups)
            zones = self._zones_of(group for group in groups if is_ours(group))
            cluster_group = self._cluster_group(data)
        names = {str(group.get("nodegroupName")) for group in groups}
        found = [observe_group(group, inside, zones, cluster_group) for group, inside in zip(groups, data, strict=True)]
        lost = (self._templates.leftover(template) for template in templates)
        left = [one for one in lost if one is not None and one.name not in names]
        with explained(self._cluster.key):
            return (*found, *self._map(self._templates.with_data, left))

    def pool(self, name: str) -> Observed | None:
        """Read one node group, and its template's version unless already read; or a template without its group."""
        with explained(self._where(name)):
            group = self._find_group(name)
            if group is None:
                return self._templates.leftover_of(name)
            zones = self._zones_of([group] if is_ours(group) else [])
            data = self._templates.data_of(group)
            return observe_group(group, data, zones, self._cluster_group([data]))

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """Read the newest release of the group's image from Systems Manager, once per version and image."""
        version = kubernetes or str((self._native or self._read_cluster()).get("version") or "")
        parameter = release_parameter(observed, version)
        if not parameter:
            return NodeOffer(version)
        with explained(self._where(observed.name)):
            release = self._region.parameter(parameter)
        if release is None:
            fix = "allow ssm:GetParameter on arn:aws:ssm:*::parameter/aws/service/*"
            return NodeOffer(version, unknown="no permission to read the newest AMI release", fix=fix)
        return NodeOffer(version, release or None)

    def complete(self, desired: Desired) -> Desired:
        """Set the nodes' role, subnets, and security groups that the spec omits; check version, reservation, network.

        Raises:
            SpecError: No role or subnets, or several, are possible; the version, reservation, network, or placement
                group does not match.
            ReservationFull: The reservation has ended.
        """
        group, target = group_of(desired), desired.target
        is_placed = "nodeRole" in group and "subnets" in group
        is_reserved = target.capacity.reservation is not None
        if is_placed and not (target.kubernetes_version or is_reserved or needs_account(target)):
            return desired
        with explained(self._cluster.key):
            # Use the groups that the plan read, if it did: the chosen values must match what it shows.
            groups = self._groups if self._groups is not None else tuple(self._list_groups())
            same = next((g for g in groups if g.get("nodegroupName") == target.name), {})
            if target.kubernetes_version:
                cluster = self._native or self._read_cluster()
                check_version(target, str(cluster.get("version") or ""), str(same.get("version") or ""))
            # The reservation first: it decides the zone of the subnets.
            target = self._reserved(target, same, strings(group, "subnets"))
            if not is_placed:
                role, subnets = self._choose_place(target, group, groups, same)
                desired = with_place(desired, role, subnets)
            if not (is_reserved or needs_account(target)):
                return desired
            cluster = self._native or self._read_cluster()
            return connected(desired, self._region, cluster, self._live_fields(same))

    def _live_fields(self, same: Answer) -> Mapping[FieldPath, object]:
        """Return the fields of a live group that works; none if it is created, again or for the first time."""
        if not same or STATES.get(str(same.get("status")), "busy") not in ("ready", "busy"):
            return {}
        data = self._templates.data_of(same)
        return observe_group(same, data, {}, self._cluster_group([data])).fields

    def _cluster_group(self, data: Iterable[Answer]) -> str:
        """Return the cluster's own security group, if these launch templates name any; it is no one's choice."""
        if not any(map(groups_of, data)):
            return ""
        return text(self._native or self._read_cluster(), "resourcesVpcConfig", "clusterSecurityGroupId")

    def _choose_place(
        self, target: Target, group: Answer, groups: Sequence[Answer], same: Answer
    ) -> tuple[str, tuple[str, ...]]:
        """Choose role and subnets from the spec, the live group, or the other groups, in this order."""
        # A group whose creation failed does not prove that its role and subnets work.
        others = [one for one in groups if one.get("status") != "CREATE_FAILED"]
        role = str(group.get("nodeRole") or same.get("nodeRole") or "") or self._choose_role(target, others)
        subnets = strings(group, "subnets") or self._kept_subnets(target, same)
        return role, subnets or self._choose_subnets(target, [one for one in others if one is not same] or others)

    def send(self, request: Request) -> Operation:
        """Start a change; deleting a missing group is an operation that `poll` reports as done."""
        if request.operation == CREATE:
            return self._create(request)
        if request.operation == KEEP:
            return self._keep(
                tree(request.params, "launchTemplate"), text(request.params, "nodegroup", "nodegroupName")
            )
        if request.operation == DELETE:
            return self._delete(str(tree(request.params, "nodegroup")["nodegroupName"]))
        if request.operation in (UPDATE_CONFIG, UPDATE_VERSION, TAG, UNTAG):
            return self._change(request)
        raise CloudError(f"EKS has no operation {request.operation}", where=self._cluster.key)

    def poll(self, operation: Operation) -> Progress:
        """Check once: the update if its id is known, else the group.

        A failed update leaves its group ACTIVE with the old configuration, so only the update itself shows the failure
        (crossplane-contrib/provider-aws#1475).
        """
        where = self._where(operation.pool)
        if operation.handle == _WRITTEN:
            return Progress(done=True, status="WRITTEN")
        with explained(where):
            if operation.verb == "update" and operation.handle:
                return self._follow_update(operation, where)
            native = self._find_group(operation.pool)
            if native is None and operation.verb == "delete":
                return self._delete_rest(operation.pool)
        return _progress(operation, native, where)

    def kube_access(self) -> KubeAccess:
        """Return a complete kubeconfig: the spec's file, or else the cluster's endpoint with a token."""
        if self._cluster.kubeconfig or self._cluster.context:
            return file_access(self._cluster, sandbox=self._settings.sandbox)
        native = self._native if self._native.get("endpoint") else self._read_cluster()
        return cloud_access(self._cluster, native, self._aws, emulated=self._endpoint.is_emulated)

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """Read the account's quotas in the region; unreadable ones contain the reason."""
        return read_quotas(self._aws, asked, self._cluster.key)

    def check_limits(self, successor: Desired, pools: int) -> list[Finding]:
        """Check free addresses of the subnets, and the limit of node groups per cluster."""
        return read_room(self._aws, self._cluster, successor, pools)

    def launches(self, observed: Observed) -> Launches:
        """Read the activities of the group's Auto Scaling group; its health if they cannot be read."""
        return read_launches(self._aws, observed, self._where(observed.name), _DENIED)

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """Read the reservation or Capacity Block by its id."""
        identity = reserved_id(pool.fields)
        with explained(self._cluster.key):
            found = self._region.reservation_now(identity) if identity else {}
        return read_reserved(found) if found else None

    def close(self) -> None:
        """Close idle connections; other clusters of the account that share them open new ones."""
        self._aws.close()

    def _where(self, pool: str) -> str:
        return f"{self._cluster.key}/{pool}"

    def _check_account(self, found: str) -> None:
        requested = self._cluster.identity["account"]
        if found != requested:
            raise WrongAccount(
                f"the credentials belong to account {found}, not {requested}",
                where=self._cluster.key,
                fix=f"check clusters.{self._cluster.key}.account, or write its profile or roleArn",
                code="account",
            )

    def _read_cluster(self) -> Mapping[str, object]:
        with explained(self._cluster.key):
            self._native = tree(self._aws.eks.describe_cluster(name=self._cluster.name), "cluster")
        return self._native

    # Reading groups

    def _list_groups(self) -> list[Answer]:
        names: list[str] = []
        answer = self._aws.eks.list_nodegroups(clusterName=self._cluster.name)
        names += strings(answer, "nodegroups")
        while token := str(answer.get("nextToken") or ""):
            answer = self._aws.eks.list_nodegroups(clusterName=self._cluster.name, nextToken=token)
            names += strings(answer, "nodegroups")
        return [group for group in self._map(self._find_group, names) if group is not None]

    def _find_group(self, name: str) -> Answer | None:
        """Read one group; None if it does not exist. A missing cluster shows up when groups are listed."""
        describe = partial(self._aws.eks.describe_nodegroup, clusterName=self._cluster.name, nodegroupName=name)
        answer = unless(_NO_GROUP, describe)
        if answer is None:
            return None
        group = tree(answer, "nodegroup")
        template = tree(group, "launchTemplate")
        self._used[name] = (str(template.get("id")), str(template.get("version")))
        return group

    # Role, subnets and zones

    def _choose_role(self, target: Target, groups: Sequence[Answer]) -> str:
        cluster = self._native or self._read_cluster()
        forbidden = (str(cluster.get("roleArn") or ""), str(at(cluster, "computeConfig", "nodeRoleArn")))
        used = {str(group.get("nodeRole") or "") for group in groups}
        documented = () if used - {*forbidden, ""} else self._region.node_roles()
        return choose_role(target, used, documented, forbidden)

    def _kept_subnets(self, target: Target, same: Answer) -> tuple[str, ...]:
        """Return the subnets of an existing group; () if it is recreated and they are not suitable."""
        kept, zones = strings(same, "subnets"), set(target.zones)
        types = {machine.name for machine in target.all_machines}
        stays = types <= {*strings(same, "instanceTypes")} and same.get("status") != "CREATE_FAILED"
        if not kept or (stays and not zones):
            return kept
        there = set(self._region.zones(kept).values())
        if zones:
            return kept if there == zones else ()
        return kept if there <= self._offering_zones(target) else ()

    def _choose_subnets(self, target: Target, groups: Sequence[Answer]) -> tuple[str, ...]:
        network = tree((self._native or self._read_cluster()), "resourcesVpcConfig")
        sets, listed = [strings(group, "subnets") for group in groups], strings(network, "subnetIds")
        known = self._region.subnets([*listed, *(name for one in sets for name in one)])
        return choose_subnets(target, sets, listed, known, self._offering_zones(target))

    def _offering_zones(self, target: Target) -> set[str]:
        """Return the zones that offer one of the types: EC2 skips the others there."""
        return {zone for machine in target.all_machines for zone in self._region.offering_zones(machine.name)}

    def _reserved(self, target: Target, same: Answer, native: Sequence[str]) -> Target:
        """Set the pool's zone to that of its reservation; check the reservation before machines use it.

        A live group that already has it is not checked: otherwise a block that has ended would fail every plan. A group
        that changes to it keeps its subnets, so the reservation must be in their zone.
        """
        reservation = target.capacity.reservation
        lives = bool(same) and STATES.get(str(same.get("status")), "busy") in ("ready", "busy")
        if reservation is None or not reservation.id.startswith("cr-"):
            return target
        if lives and capacity_fields(target.capacity) == self._capacity_of(same):
            return target
        if not (live := self._region.reservation(reservation.id)):
            return target
        stays = lives and capacity_type(target.capacity) == same.get("capacityType")
        subnets = native or (strings(same, "subnets") if stays else ())
        return replace(target, zones=(reserved_zone(target, live, set(self._region.zones(subnets).values())),))

    def _capacity_of(self, group: Answer) -> dict[FieldPath, object]:
        return read_capacity(group.get("capacityType"), self._templates.data_of(group))

    def _zones_of(self, groups: Iterable[Answer]) -> dict[str, str]:
        return self._region.zones(name for group in groups for name in strings(group, "subnets"))

    # Writing

    def _create(self, request: Request) -> Operation:
        """Create or reuse template and placement group, then create the group; an existing group is not changed."""
        template, group = tree(request.params, "launchTemplate"), tree(request.params, "nodegroup")
        name = str(group["nodegroupName"])
        with explained(self._where(name)):
            if self._find_group(name) is not None:
                raise exists(self._where(name))
            # The template first: if the run is killed in between, the next run reuses it.
            version = self._templates.ensure(template, self._where(name))
            self._ensure_placement(request, self._where(name))
            own = {"name": template["LaunchTemplateName"], "version": version}
            return Operation(name, "create", warning=self._create_group({**group, "launchTemplate": own}))

    def _ensure_placement(self, request: Request, where: str) -> None:
        """Create or reuse the pool's own placement group; after the template, by which a deletion finds it."""
        if desired := tree(request.params, "placementGroup"):
            self._placements.ensure(desired, where)

    def _delete_rest(self, pool: str) -> Progress:
        """Delete what belongs to a deleted group: first its own placement group, which its template names."""
        name = template_name(self._cluster.name, pool)
        if self._templates.names_own_placement_group(pool) and self._placements.delete(name, self._cluster.name, pool):
            return Progress(done=False, status="DELETED, its placement group still has machines that stop")
        self._templates.delete(pool, self._used.get(pool))
        return Progress(done=True, status="DELETED")

    def _create_group(self, group: Mapping[str, object]) -> str:
        """Create the group; if AWS denies tags, without the copy of gpukube's labels, which is a warning."""
        try:
            self._aws.eks.create_nodegroup(**group)
        except ClientError as error:
            # Tags in a creation need a separate permission (aws/karpenter-provider-aws#4434).
            if code_of(error) not in _DENIED or _TAG_ACTION not in str(error):
                raise
            tags = {key: value for key, value in tree(group, "tags").items() if not FORM.is_own(key)}
            bare = {key: value for key, value in group.items() if key != "tags"} | ({"tags": tags} if tags else {})
            self._aws.eks.create_nodegroup(**bare)
            return _untagged(error)
        return ""

    def _keep(self, template: Mapping[str, object], name: str) -> Operation:
        """Write a launch template that outlives the group of its name."""
        with explained(self._where(name)):
            self._templates.ensure(template, self._where(name))
        return Operation(name, "update", _WRITTEN)

    def _change(self, request: Request) -> Operation:
        """Change a group after checking that it still matches the request's base: EKS has no etag."""
        body = tree(request.params, "nodegroup")
        pool = str(body["nodegroupName"])
        where = self._where(pool)
        with explained(where):
            # Read and write in direct succession: only a change in between goes unnoticed.
            group = self._find_group(pool)
            require_unmoved(request, group, where)
            if request.operation in (TAG, UNTAG):
                call = self._aws.eks.tag_resource if request.operation == TAG else self._aws.eks.untag_resource
                call(**tree(request.params, "resource"))
                return Operation(pool, "update", warning=self._write_copy(request, group))
            # Before the labels: labels and copy of an adopted pool must never name different owners.
            warning = self._write_copy(request, group) or self._release_template(request)
            if (template := tree(request.params, "launchTemplate")) != {}:
                own = {"id": template.get("LaunchTemplateId"), "version": self._templates.follow(template, where)}
                self._ensure_placement(request, where)
                body["launchTemplate"] = own
            config, version = self._aws.eks.update_nodegroup_config, self._aws.eks.update_nodegroup_version
            try:
                answer = (config if request.operation == UPDATE_CONFIG else version)(**body)
            except ClientError as error:
                if group and group.get("status") == "DEGRADED" and code_of(error) == "ResourceInUseException":
                    raise unchangeable("DEGRADED", health_of(group), where) from error
                raise
        return Operation(pool, "update", str(at(answer, "update", "id") or ""), warning)

    def _write_copy(self, request: Request, group: Answer | None) -> str:
        """Write a change's copy of gpukube's labels; if AWS denies tags, that is a warning.

        It is an error if the live copy names another owner, who would take the pool back once the labels are replaced.
        """
        copy = tree(request.params, "copy")
        if not copy or group is None:
            return ""
        tags, gone = texts(copy, "tags"), copy.get("tagKeys")
        live = FORM.read(texts(group, "tags"), live_place(group))
        try:
            if tags:
                self._aws.eks.tag_resource(resourceArn=copy["resourceArn"], tags=tags)
            if gone:
                self._aws.eks.untag_resource(resourceArn=copy["resourceArn"], tagKeys=gone)
        except ClientError as error:
            is_another = live is not None and FORM.is_another(tags, live)
            if is_another or code_of(error) not in (*_DENIED, _NO_MORE_TAGS):
                raise
            return _untagged(error)
        return ""

    def _release_template(self, request: Request) -> str:
        """Remove gpukube's tags from a released group's template; if AWS denies it, that is a warning."""
        template = tree(request.params, "releasedTemplate")
        try:
            if template:
                self._templates.release(str(template["LaunchTemplateName"]))
        except ClientError as error:
            if code_of(error) not in _DENIED:
                raise
            reason = quote(str(error.response.get("Error", {}).get("Message", "")))
            kept = f"the launch template {template['LaunchTemplateName']} keeps gpukube's tags"
            return f"{kept}; delete it after its node group is deleted: {reason}"
        return ""

    def _delete(self, pool: str) -> Operation:
        """Delete a group; EKS rejects a second deletion while one is running."""
        delete = partial(self._aws.eks.delete_nodegroup, clusterName=self._cluster.name, nodegroupName=pool)
        with explained(self._where(pool)):
            try:
                unless(_NO_GROUP, delete)
            except ClientError as error:
                group = self._find_group(pool) if code_of(error) == "ResourceInUseException" else {}
                if group is not None and group.get("status") != "DELETING":
                    raise
        return Operation(pool, "delete")

    def _follow_update(self, operation: Operation, where: str) -> Progress:
        answer = self._aws.eks.describe_update(
            name=self._cluster.name, nodegroupName=operation.pool, updateId=operation.handle
        )
        update = tree(answer, "update")
        status = str(update.get("status") or "InProgress")
        if status in ("Failed", "Cancelled"):
            errors = [(str(e.get("errorCode")), str(e.get("errorMessage"))) for e in trees(update, "errors")]
            return Progress(done=False, status=status, error=update_error(status, errors, where))
        return Progress(done=status == "Successful", status=status)

    # Parallel calls

    def _map(self, call: Callable[[_In], _Out], items: Sequence[_In]) -> list[_Out]:
        if len(items) <= 1:
            return [call(item) for item in items]
        with ThreadPoolExecutor(min(_AT_ONCE, len(items))) as threads:
            return list(threads.map(call, items))

    def _spread(self, calls: Sequence[Callable[[], list[Answer]]]) -> list[list[Answer]]:
        return self._map(lambda call: call(), calls)


def _progress(operation: Operation, native: Answer | None, where: str) -> Progress:
    if native is None:
        fix = "run the same command again: it reads the live state first"
        error = CloudError("the node group no longer exists", where=where, fix=fix, code="pool-gone")
        return Progress(done=False, status="NOT_FOUND", error=error)
    status = str(native.get("status") or "Unknown")
    is_bad = STATES.get(status) == "failed" or (status == "DEGRADED" and operation.verb == "create")
    if is_bad and not (operation.verb == "delete" and status != "DELETE_FAILED"):
        return Progress(done=False, status=status, error=issue_error(health_of(native), where))
    done = STATES.get(status) == "ready" and operation.verb != "delete"
    issues = [] if done else [code for code, _ in health_of(native)]
    return Progress(done=done, status=", ".join([status, *issues]))


def _untagged(error: ClientError) -> str:
    reason = quote(str(error.response.get("Error", {}).get("Message", "")))
    return f"EKS rejected the tag copy of gpukube's labels; without it, lost labels cannot be restored: {reason}"


if TYPE_CHECKING:
    _: type[Cloud] = EksCloud
