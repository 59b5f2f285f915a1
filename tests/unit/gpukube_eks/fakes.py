# ruff: noqa: ARG002 - a fake takes what the real one takes
"""A fake of AWS: twenty lines per service, answers as the real ones give them, every call recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError

from tests.unit.gpukube_eks.samples import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_eks.live.sdk import Answer

Json = dict[str, object]


def refusal(code: str, text: str = "", operation: str = "Operation") -> ClientError:
    """Make the exception of a refused call."""
    return ClientError({"Error": {"Code": code, "Message": text}}, operation)


class FakeAws:
    """All services as one object.

    Attributes:
        groups: Node groups by name.
        templates: Launch templates by name: tags and the data of each version.
        calls: Operations in order.
        raises: Operation -> what it raises next, once.
        limits: Quotas by code; one that is not here has its default of 64.
        instances: What runs in the region.
        release: The newest AMI release, whatever is asked for.
        rules: Rules of all security groups.
        tables: Route tables of the VPC.
        placements: Placement groups by name.
        activities: What the Auto Scaling groups did, newest first.
    """

    def __init__(self, cluster: Json | None = None) -> None:
        self.cluster: Json = {"name": "train", "status": "ACTIVE", "version": "1.34", **(cluster or {})}
        self.groups: dict[str, Json] = {}
        self.templates: dict[str, tuple[dict[str, str], list[Json]]] = {}
        self.updates: dict[str, Json] = {}
        self.roles: list[Json] = []
        self.subnets: list[Json] = []
        self.offered: list[str] = []
        self.reservations: list[Json] = []
        self.rules: list[Json] = []
        self.tables: list[Json] = []
        self.placements: dict[str, Json] = {}
        self.activities: list[Json] = []
        self.limits: dict[str, float] = {}
        self.instances: list[Json] = []
        self.account = ACCOUNT
        self.release = "1.34.2-20260714"
        self.calls: list[str] = []
        self.raises: dict[str, Exception] = {}

    @property
    def eks(self) -> FakeAws:
        return self

    ec2 = sts = iam = ssm = quotas = autoscaling = eks

    def hosts(self) -> dict[str, str]:
        return dict.fromkeys(("eks", "ec2", "sts"), "aws.example.com")

    def cluster_token(self, cluster: str) -> str:
        return f"token-of-{cluster}"

    def close(self) -> None:
        self.calls.append("close")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if error := self.raises.pop(name, None):
            raise error

    def get_caller_identity(self) -> Answer:
        self._called("get_caller_identity")
        return {"Account": self.account}

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - the API's names
        self._called("get_service_quota")
        if QuotaCode not in self.limits:
            raise refusal("NoSuchResourceException", ServiceCode, "GetServiceQuota")
        return {"Quota": {"Value": self.limits[QuotaCode]}}

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - as above
        self._called(f"get_aws_default_service_quota {ServiceCode} {QuotaCode}")
        return {"Quota": {"Value": 64.0}}

    def describe_instances(self, **arguments: object) -> Answer:
        """Pages of two."""
        self._called("describe_instances")
        start = int(str(arguments.get("NextToken") or 0))
        more = {"NextToken": str(start + 2)} if len(self.instances) > start + 2 else {}
        return {"Reservations": [{"Instances": self.instances[start : start + 2]}], **more}

    def describe_cluster(self, *, name: str) -> Answer:
        self._called("describe_cluster")
        return {"cluster": self.cluster}

    def list_nodegroups(self, *, clusterName: str, nextToken: str = "") -> Answer:  # noqa: N803 - the API's names
        """Pages of two."""
        self._called("list_nodegroups")
        start, names = int(nextToken or 0), sorted(self.groups)
        more = {"nextToken": str(start + 2)} if len(names) > start + 2 else {}
        return {"nodegroups": names[start : start + 2], **more}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Answer:  # noqa: N803 - the API's names
        self._called("describe_nodegroup")
        if nodegroupName not in self.groups:
            raise refusal("ResourceNotFoundException")
        return {"nodegroup": self.groups[nodegroupName]}

    def create_nodegroup(self, **arguments: object) -> Answer:
        self._called("create_nodegroup")
        name = str(arguments["nodegroupName"])
        self.groups[name] = {"status": "CREATING", **arguments}
        return {"nodegroup": self.groups[name]}

    def delete_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Answer:  # noqa: N803 - the API's names
        self._called("delete_nodegroup")
        if self.groups.pop(nodegroupName, None) is None:
            raise refusal("ResourceNotFoundException")
        return {}

    def update_nodegroup_config(self, **arguments: object) -> Answer:
        self._called("update_nodegroup_config")
        return {"update": {"id": "u-config"}}

    def update_nodegroup_version(self, **arguments: object) -> Answer:
        self._called("update_nodegroup_version")
        return {"update": {"id": "u-version"}}

    def tag_resource(self, **arguments: object) -> Answer:
        self._called("tag_resource")
        return {}

    def untag_resource(self, **arguments: object) -> Answer:
        self._called("untag_resource")
        return {}

    def describe_update(self, *, name: str, nodegroupName: str, updateId: str) -> Answer:  # noqa: N803 - the API's names
        self._called("describe_update")
        return {"update": self.updates[updateId]}

    def create_launch_template(self, **arguments: object) -> Answer:
        self._called("create_launch_template")
        name = str(arguments["LaunchTemplateName"])
        if name in self.templates:
            raise refusal("InvalidLaunchTemplateName.AlreadyExistsException")
        (given,) = cast("list[dict[str, list[dict[str, str]]]]", arguments["TagSpecifications"])
        self.templates[name] = {tag["Key"]: tag["Value"] for tag in given["Tags"]}, [_json(arguments)]
        return {}

    def create_launch_template_version(self, **arguments: object) -> Answer:
        self._called("create_launch_template_version")
        versions = self.templates[str(arguments.get("LaunchTemplateName") or arguments["LaunchTemplateId"])][1]
        source = versions[int(str(arguments["SourceVersion"])) - 1] if "SourceVersion" in arguments else {}
        versions.append({**source, **_json(arguments)})
        return {"LaunchTemplateVersion": {"VersionNumber": len(versions)}}

    def describe_launch_templates(self, **arguments: object) -> Answer:
        self._called("describe_launch_templates")
        found = [
            {
                "LaunchTemplateName": name,
                "LaunchTemplateId": name,
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
            for name, (tags, _) in sorted(self.templates.items())
        ]
        start = int(str(arguments.get("NextToken") or 0))
        more = {"NextToken": str(start + 2)} if len(found) > start + 2 else {}
        return {"LaunchTemplates": found[start : start + 2], **more}

    def describe_launch_template_versions(self, **arguments: object) -> Answer:
        self._called("describe_launch_template_versions")
        name = str(arguments.get("LaunchTemplateName") or arguments.get("LaunchTemplateId"))
        if name not in self.templates:
            raise refusal("InvalidLaunchTemplateId.NotFound")
        versions = self.templates[name][1]
        found: list[Json] = [{"VersionNumber": at, "LaunchTemplateData": data} for at, data in enumerate(versions, 1)]
        asked = cast("list[str]", arguments.get("Versions", []))
        if asked:
            found = [one for one in found if str(one["VersionNumber"]) in asked] or found[-1:]
        return {"LaunchTemplateVersions": found}

    def delete_launch_template(self, *, LaunchTemplateName: str) -> Answer:  # noqa: N803 - the API's names
        self._called("delete_launch_template")
        del self.templates[LaunchTemplateName]
        return {}

    def delete_tags(self, *, Resources: Sequence[str], Tags: Sequence[Answer]) -> Answer:  # noqa: N803 - as above
        self._called("delete_tags")
        del Resources, Tags
        return {}

    def describe_subnets(self, **arguments: object) -> Answer:
        self._called("describe_subnets")
        return {"Subnets": self.subnets}

    def describe_instance_type_offerings(self, **arguments: object) -> Answer:
        self._called("describe_instance_type_offerings")
        return {"InstanceTypeOfferings": [{"Location": zone} for zone in self.offered]}

    def describe_capacity_reservations(self, **arguments: object) -> Answer:
        self._called("describe_capacity_reservations")
        return {"CapacityReservations": self.reservations}

    def describe_security_group_rules(self, **arguments: object) -> Answer:
        """Pages of one."""
        self._called("describe_security_group_rules")
        at = int(str(arguments.get("NextToken") or 0))
        more = {"NextToken": str(at + 1)} if at + 1 < len(self.rules) else {}
        return {"SecurityGroupRules": self.rules[at : at + 1], **more}

    def describe_route_tables(self, **arguments: object) -> Answer:
        self._called("describe_route_tables")
        return {"RouteTables": self.tables}

    def create_placement_group(self, **arguments: object) -> Answer:
        self._called("create_placement_group")
        name = str(arguments["GroupName"])
        if name in self.placements:
            raise refusal("InvalidPlacementGroup.Duplicate")
        (given,) = cast("list[Json]", arguments["TagSpecifications"])
        shown = {"GroupName": name, "Strategy": arguments["Strategy"], "State": "available", "Tags": given["Tags"]}
        self.placements[name] = shown
        return {"PlacementGroup": shown}

    def describe_placement_groups(self, **arguments: object) -> Answer:
        self._called("describe_placement_groups")
        (name,) = cast("list[str]", arguments.get("GroupNames") or arguments["GroupIds"])
        if name not in self.placements:
            raise refusal("InvalidPlacementGroup.Unknown")
        return {"PlacementGroups": [self.placements[name]]}

    def delete_placement_group(self, *, GroupName: str) -> Answer:  # noqa: N803 - the API's name
        self._called("delete_placement_group")
        del self.placements[GroupName]
        return {}

    def describe_scaling_activities(self, **arguments: object) -> Answer:
        self._called(f"describe_scaling_activities {arguments['AutoScalingGroupName']}")
        return {"Activities": self.activities}

    def get_parameter(self, *, Name: str) -> Answer:  # noqa: N803 - the API's name
        """One release for every version and image."""
        self._called("get_parameter")
        return {"Parameter": {"Name": Name, "Value": self.release}}

    def list_roles(self, **arguments: object) -> Answer:
        """Pages of one."""
        self._called("list_roles")
        at = int(str(arguments.get("Marker") or 0))
        return {"Roles": self.roles[at : at + 1], "IsTruncated": at + 1 < len(self.roles), "Marker": str(at + 1)}


def _json(arguments: Json) -> Json:
    data = arguments["LaunchTemplateData"]
    assert isinstance(data, dict)
    return data
