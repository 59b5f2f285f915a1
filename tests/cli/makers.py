"""Other clients of the clouds: how they make a published pool, and what its live object has.

In scope: requests by the clouds' own SDKs, and reading the members of a pool. Out of scope: which pools (`published`),
assertions (test_published).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.cloud import container_v1 as wire
from google.protobuf import json_format  # type: ignore[import-untyped] # ships no types

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import Arm
from sandbox_tests.eks.aws import Aws
from sandbox_tests.gke.clients import Gke
from tests.changes.world import ADDRESSES, World
from tests.cli.published import CLUSTER, ZONE_A, ZONE_B, ZONE_C

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.published import Json, Published

POOL: Final = "pool"
OTHER_ROLE: Final = "arn:aws:iam::111122223333:role/other"
_MARKS: Final = ("gpukube", "k8s.amazonaws.com/accelerator", "nvidia.com/gpu.deploy.operands")
"""Beginnings of labels and tags that gpukube adds to a pool that it adopts."""


class Maker(Protocol):
    """A client of one cluster."""

    def make(self, pool: Published) -> None:
        """Create the pool and wait for it."""

    def read(self, name: str = POOL) -> Json:
        """Read everything that the cloud has of the pool, without what gpukube adds when it adopts."""

    def members(self, name: str = POOL) -> dict[str, object]:
        """Read what a pool in its place must have too, by path."""

    def close(self) -> None:
        """Close the connections."""


def _unmarked(entries: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (entries or {}).items() if not key.startswith(_MARKS)}


def _leaves(tree: object, above: str) -> Iterator[tuple[str, object]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, f"{above}.{key}")
    elif tree not in (None, []):
        yield above.removeprefix("."), tree


def _sorted(items: object) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in (items if isinstance(items, list) else []))


class EksMaker:
    """Groups and launch templates by boto3.

    Args:
        info: The running sandbox, in which the cluster is made.
    """

    _OWN = (
        *("nodegroupName", "nodegroupArn", "createdAt", "modifiedAt", "resources", "launchTemplate", "diskSize"),
        *("status", "health", "version", "releaseVersion"),
    )

    def __init__(self, info: SandboxInfo, _version: str) -> None:
        World(info).make("eks", "train")
        self._info = info
        self._aws = Aws(info)
        self._ec2 = self._aws.client("ec2")
        private = [{"Name": "map-public-ip-on-launch", "Values": ["false"]}]
        subnets = self._ec2.describe_subnets(Filters=private)["Subnets"]
        self._zones = {one["SubnetId"]: one["AvailabilityZone"] for one in subnets}
        names = {zone[-1]: subnet for subnet, zone in self._zones.items()}
        cluster = self._aws.eks.describe_cluster(name="train")["cluster"]["resourcesVpcConfig"]
        self._names = {
            CLUSTER: cluster["clusterSecurityGroupId"],
            **{name: names[name[-1]] for name in (ZONE_A, ZONE_B, ZONE_C)},
        }

    def make(self, pool: Published) -> None:
        """Send CreateLaunchTemplate and CreateNodegroup."""
        body, template = self._named([{"subnets": [ZONE_A], **pool.body}, pool.template])
        request = {"nodegroup": body, "launchTemplate": {"LaunchTemplateData": template}}
        zones = [self._zones[subnet] for subnet in body["subnets"]]
        place = {key: ADDRESSES["eks"][key] for key in ("account", "region")}
        daemon.declare(self._info, "eks", **place, cluster="train", request=request, zones=zones)
        daemon.declare(self._info, "eks", **place, roles=[{"arn": OTHER_ROLE}])
        more: Json = {"instanceTypes": None}
        if template:
            made = self._ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData=template)
            more["launchTemplate"] = {"id": made["LaunchTemplate"]["LaunchTemplateId"], "version": "1"}
        group = self._aws.create(POOL, **more | body)
        assert (group["status"], group["health"]["issues"]) == ("ACTIVE", [])

    def read(self, name: str = POOL) -> Json:
        """Read the group and all versions of its template, the newest first."""
        group = json.loads(json.dumps(self._aws.group(name), default=str))
        del group["modifiedAt"]
        marks = {part: _unmarked(group.get(part)) for part in ("labels", "tags")}
        return {"group": group | marks, "templates": self._templates(group)}

    def members(self, name: str = POOL) -> dict[str, object]:
        """Read the group and the newest version of its template; disks, tags, and interfaces by what they are about."""
        live = self.read(name)
        group: Json = live["group"]
        data: Json = next(iter(live["templates"]), {})
        shaped = {key: value for key, value in data.items() if key not in ("BlockDeviceMappings", "NetworkInterfaces")}
        shaped["Disks"] = {disk["DeviceName"]: disk["Ebs"] for disk in data.get("BlockDeviceMappings", [])}
        if size := group.get("diskSize"):
            shaped["Disks"] = {"/dev/xvda": {"VolumeSize": size}}
        shaped["TagSpecifications"] = {
            one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]}
            for one in data.get("TagSpecifications", [])
        }
        interfaces = data.get("NetworkInterfaces", [])
        groups = [*data.get("SecurityGroupIds", []), *(group for one in interfaces for group in one.get("Groups", []))]
        shaped["SecurityGroupIds"] = sorted(set(groups))
        shaped["NetworkInterfaces"] = {
            "efa": sum(one["InterfaceType"].startswith("efa") for one in interfaces) or None,
            **{key: value for one in interfaces for key, value in one.items() if key == "Description"},
        }
        kept = {key: value for key, value in group.items() if key not in self._OWN}
        kept["taints"] = _sorted(group.get("taints"))
        low, high = (group["scalingConfig"][key] for key in ("minSize", "maxSize"))
        if low != high:
            del kept["scalingConfig"]["desiredSize"]  # the autoscaler's
        return dict(_leaves({"group": kept, "template": shaped}, ""))

    def close(self) -> None:
        """Do nothing: boto3 keeps its sessions."""

    def _named(self, data: list[Json]) -> list[Json]:
        text = json.dumps(data)
        for name, real in self._names.items():
            text = text.replace(f'"{name}"', f'"{real}"')
        found: list[Json] = json.loads(text)
        return found

    def _templates(self, group: Json) -> list[Json]:
        if not (template := group.get("launchTemplate")):
            return []
        found = self._ec2.describe_launch_template_versions(LaunchTemplateId=template["id"])["LaunchTemplateVersions"]
        return [one["LaunchTemplateData"] for one in sorted(found, key=lambda one: -one["VersionNumber"])]


class AksMaker:
    """Agent pools by azure-mgmt-containerservice.

    Args:
        info: The running sandbox, which has the cluster.
    """

    def __init__(self, info: SandboxInfo, _version: str) -> None:
        self._info = info
        self._arm = Arm(info)

    def make(self, pool: Published) -> None:
        """PUT."""
        daemon.declare(self._info, "aks", request={"body": {"properties": pool.body}})
        self._arm.create(POOL, pool.body)

    def read(self, name: str = POOL) -> Json:
        """Read the properties."""
        found: Json = dict(self._arm.get(name))
        found.pop("eTag", None)
        return {**found, **{part: _unmarked(found.get(part)) for part in ("nodeLabels", "tags")}}

    def members(self, name: str = POOL) -> dict[str, object]:
        """Read the properties; ARM compares ids without case."""
        found = self.read(name)
        found["nodeTaints"] = _sorted(found.get("nodeTaints"))
        if found.get("enableAutoScaling"):
            del found["count"]
        return {
            path: value.lower() if isinstance(value, str) and value.startswith("/subscriptions/") else value
            for path, value in _leaves(found, "")
        }

    def close(self) -> None:
        """Close both clients."""
        self._arm.sdk.close()
        self._arm.http.close()


class GkeMaker:
    """Node pools by google-cloud-container.

    Args:
        info: The running sandbox, in which the cluster is made.
        version: Of the control plane; "" for the sandbox's own.
    """

    _OWN = ("name", "selfLink", "instanceGroupUrls", "status", "version")
    _LOCATION = "projects/ml-prod/locations/us-central1"

    def __init__(self, info: SandboxInfo, version: str) -> None:
        World(info).make("gke", "train", version=version)
        self._info = info
        self._client = Gke(info, "grpc")
        self._parent = f"{self._LOCATION}/clusters/train"

    def make(self, pool: Published) -> None:
        """Send CreateNodePool."""
        body = {"name": POOL, **pool.body}
        daemon.declare(self._info, "gke", request={"parent": self._parent, "nodePool": body})
        message = wire.NodePool.from_json(json.dumps(body))
        made = self._client.sdk.create_node_pool(parent=self._parent, node_pool=message)
        ended = self._client.wait(made, self._LOCATION)
        assert not ended.error.code, ended

    def read(self, name: str = POOL) -> Json:
        """Read the pool in the API's JSON."""
        pool = self._client.sdk.get_node_pool(name=f"{self._parent}/nodePools/{name}")
        found: Json = json_format.MessageToDict(wire.NodePool.pb(pool))
        found.pop("etag", None)
        for part in ("labels", "resourceLabels"):
            found["config"][part] = _unmarked(found["config"].get(part))
        return found

    def members(self, name: str = POOL) -> dict[str, object]:
        """Read the pool without what names it."""
        found: Any = {key: value for key, value in self.read(name).items() if key not in self._OWN}
        found["config"]["taints"] = _sorted(found["config"].get("taints"))
        if found.get("autoscaling", {}).get("enabled"):
            found.pop("initialNodeCount", None)  # the autoscaler's
        return dict(_leaves(found, ""))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


MAKERS: Final[Mapping[str, type[EksMaker | AksMaker | GkeMaker]]] = {"eks": EksMaker, "aks": AksMaker, "gke": GkeMaker}
