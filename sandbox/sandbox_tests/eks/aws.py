"""How tests talk to the emulated AWS: real boto3 clients, and what most requests have in common."""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from gpukube_sandbox.eks.wire.identity import access_key
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    import httpx

    from gpukube_sandbox.daemon import SandboxInfo

ACCOUNT = "111122223333"
REGION = "us-east-1"
NAME = "train"

Json = dict[str, Any]
T4: Json = {"instanceTypes": ["g4dn.xlarge"], "amiType": "AL2023_x86_64_NVIDIA"}
ONE: Json = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
DISK: Json = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}


class Aws:
    """The clients of one account in one region.

    Args:
        info: The running sandbox.
        account: Whose keys to use.
        attempts: How often a call is tried.
        read_timeout_s: How long an answer may take.
    """

    def __init__(
        self,
        info: SandboxInfo,
        account: str = ACCOUNT,
        region: str = REGION,
        attempts: int = 1,
        read_timeout_s: float = PATIENCE_S,
    ) -> None:
        self.info = info
        self._config = Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            read_timeout=read_timeout_s,
            connect_timeout=PATIENCE_S,
        )
        self._session = _session(account, region, info.secret)
        self.eks = self.client("eks")

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes clients when it runs
        """A client of another service; without stubs of it, its calls are untyped."""
        return self._session.client(service, endpoint_url=self.info.aws_url, config=self._config)  # type: ignore[call-overload] # by name

    def place(self) -> Json:
        """Subnets and role of the group that was there from the start."""
        group = self.eks.describe_nodegroup(clusterName=NAME, nodegroupName="system")["nodegroup"]
        return {"subnets": group["subnets"], "nodeRole": group["nodeRole"]}

    def ask(self, name: str, **members: object) -> Json:
        """Send CreateNodegroup; members of None are left out."""
        body = {**self.place(), "scalingConfig": ONE, **T4, **members}
        given = {key: value for key, value in body.items() if value is not None}
        group: Json = self.eks.create_nodegroup(clusterName=NAME, nodegroupName=name, **given)["nodegroup"]
        return group

    def create(self, name: str, **members: object) -> Json:
        """Make a group and wait until it settles."""
        self.ask(name, **members)
        return self.settled(name)

    def group(self, name: str) -> Json:
        """One group."""
        found: Json = self.eks.describe_nodegroup(clusterName=NAME, nodegroupName=name)["nodegroup"]
        return found

    def settled(self, name: str) -> Json:
        """One group, once nothing works on it."""
        wait_for(lambda: self.group(name)["status"] not in {"CREATING", "UPDATING"})
        return self.group(name)

    def update(self, name: str, **changes: object) -> Json:
        """UpdateNodegroupConfig, and its update once it has ended."""
        sent = self.eks.update_nodegroup_config(clusterName=NAME, nodegroupName=name, **changes)["update"]
        return self.ended(name, sent["id"])

    def ended(self, name: str, identity: str) -> Json:
        """An update once it has ended."""

        def look() -> Json:
            found: Json = self.eks.describe_update(name=NAME, nodegroupName=name, updateId=identity)["update"]
            return found

        wait_for(lambda: look()["status"] != "InProgress")
        return look()

    def delete(self, name: str) -> None:
        """Delete a group and wait until it is gone."""
        self.eks.delete_nodegroup(clusterName=NAME, nodegroupName=name)
        wait_for(lambda: name not in self.eks.list_nodegroups(clusterName=NAME)["nodegroups"])

    def template(self, name: str = "gpukube-a", user_data: str = "", **data: Any) -> Json:  # noqa: ANN401 - data of a template
        """Make a launch template with a disk of its own."""
        given = {"BlockDeviceMappings": [DISK], **data}
        if user_data:
            given["UserData"] = base64.b64encode(user_data.encode()).decode()
        made: Json = self.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=given)
        return {"id": made["LaunchTemplate"]["LaunchTemplateId"], "version": "1"}


@functools.cache
def _session(account: str, region: str, secret: str) -> boto3.Session:
    """One session for all tests: it reads the models of the services but once."""
    return boto3.Session(aws_access_key_id=access_key(account), aws_secret_access_key=secret, region_name=region)


def nodes(kube: httpx.Client, name: str) -> list[Json]:
    """Nodes of a group, by the label that EKS gives them."""
    query = {"labelSelector": f"eks.amazonaws.com/nodegroup={name}"}
    return list(kube.get("/api/v1/nodes", params=query).json()["items"])
