"""EKS keeps the contract: the real SDK over a socket, against the sandbox."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import botocore.session
import pytest
from botocore.validate import ParamValidator

from gpukube.core.values import Disk, Nodes, Operation, Settings, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_eks import EksProvider
from gpukube_eks.live.access import AwsClients, Identity
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION, eks_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Desired, Ownership, Promise, Request, Target
    from gpukube.provider import Cloud
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 4000.0
GROUPS = "/clusters/train/node-groups$"
TEMPLATES = "Action=CreateLaunchTemplate$"

COMMON: Mapping[Fault, dict[str, object]] = {
    "throttle": {"action": "status", "method": "POST", "path": GROUPS, "status": 429},
    "drop-before": {"action": "drop-before", "method": "POST", "path": GROUPS},
    "drop-after": {"action": "drop-after", "method": "POST", "path": GROUPS},
    "busy": {"action": "operation", "code": "RequestLimitExceeded"},
    "permission": {"action": "operation", "code": "AccessDeniedException"},
}
LATE: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "capacity": {"action": "operation", "code": "InsufficientInstanceCapacity"},
    "quota": {"action": "operation", "code": "VcpuLimitExceeded"},
}
OTHER: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "throttle": {"action": "status", "method": "POST", "path": TEMPLATES, "status": 503},
    "drop-before": {"action": "drop-before", "method": "POST", "path": TEMPLATES},
    "drop-after": {"action": "drop-after", "method": "POST", "path": TEMPLATES},
    "capacity": {"action": "operation", "code": "Unsupported"},
    "quota": {"action": "operation", "code": "InstanceLimitExceeded"},
    "busy": {"action": "operation", "code": "ResourcePropagationDelayException"},
}
"""Faults of the node group's call, and of the launch template's before it."""


CALLS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "create_nodegroup": (
        ("eks", "CreateNodegroup", "nodegroup"),
        ("ec2", "CreateLaunchTemplate", "launchTemplate"),
    ),
    "update_nodegroup_config": (("eks", "UpdateNodegroupConfig", "nodegroup"),),
    "update_nodegroup_version": (
        ("eks", "UpdateNodegroupVersion", "nodegroup"),
        ("ec2", "CreateLaunchTemplateVersion", "launchTemplate"),
    ),
    "tag_resource": (("eks", "TagResource", "resource"),),
    "untag_resource": (("eks", "UntagResource", "resource"),),
}
"""Operation of a request -> the API's operation for each of its parts."""


def plain_edits(plain: Target) -> dict[str, Target]:
    """Every kind of change in place: by each call, alone and together."""
    sliced = Sharing(None, Slicing("time-slicing", 4))
    return {
        "a label is changed": replace(plain, labels={"team": "speech"}),
        "a label is added": replace(plain, labels={"team": "vision", "tier": "gold"}),
        "a label is removed": replace(plain, labels={}),
        "protection": replace(plain, protect=True),
        "a taint is added": replace(plain, taints=(*plain.taints, Taint("dedicated", "vision", "NoSchedule"))),
        "a taint is removed": replace(plain, taints=()),
        "a taint evicts": replace(plain, taints=(Taint("dedicated", "vision", "NoExecute"),)),
        "more nodes": replace(plain, nodes=Nodes(2, 2, 2, autoscaled=False)),
        "no nodes": replace(plain, nodes=Nodes(0, 0, 0, autoscaled=False)),
        "bounds": replace(plain, nodes=Nodes(2, 2, 4, autoscaled=True)),
        "a tag": replace(plain, tags={"cost": "7"}),
        "disk size": replace(plain, disk=Disk(200, None)),
        "disk type": replace(plain, disk=Disk(100, "gp2")),
        "sharing": replace(plain, sharing=sliced),
        "settings": replace(plain, native={"updateConfig": {"maxUnavailable": 2, "updateStrategy": "DEFAULT"}}),
        "upgrade": replace(plain, upgrade=Upgrade("1", "20%")),
        "pods": replace(plain, max_pods=60),
        "version": replace(plain, kubernetes_version="1.34", labels={"team": "speech"}),
        "all at once": replace(
            plain,
            labels={"tier": "gold"},
            taints=(Taint("dedicated", "vision", "NoSchedule"),),
            nodes=Nodes(2, 2, 2, autoscaled=False),
            disk=Disk(300, "gp3"),
            max_pods=80,
            upgrade=Upgrade("0", "2"),
            tags={"cost": "8"},
        ),
    }


class Completing(EksProvider):
    """Completes what it translates, as the engine does: the contract asks the provider alone."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        return self._cloud.complete(super().desired(target, ownership, promise))


@dataclass
class EksHarness:
    info: SandboxInfo
    provider: EksProvider
    cloud: Cloud
    faults: Mapping[Fault, dict[str, object]]
    package: str = "gpukube_eks"
    sdk: str = "botocore"

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        if kind == "mig":
            return eks_target(name="pmig", pool="p-mig", sharing=Sharing(mig=MigCut("1g.5gb", "single")))
        plain = eks_target("g4dn.xlarge", name=f"p{kind}", pool=f"p-{kind}", labels={"team": "vision"})
        return plain if kind == "plain" else replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True))

    def add_foreign_pool(self, name: str) -> None:
        aws = AwsClients(Identity(dummy=ACCOUNT, secret=self.info.secret), REGION, self.info.aws_url, Settings())
        system = aws.eks.describe_nodegroup(clusterName="train", nodegroupName="system")
        group = cast("Mapping[str, object]", system["nodegroup"])
        sizes = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
        same = {"subnets": group["subnets"], "nodeRole": group["nodeRole"], "scalingConfig": sizes}
        aws.eks.create_nodegroup(clusterName="train", nodegroupName=name, instanceTypes=["t3.large"], **same)
        wait_for(lambda: next(o for o in self.cloud.pools() if o.name == name).state == "ready")
        aws.close()

    def move_count(self, name: str) -> None:
        sizes = {"minSize": 1, "maxSize": 3, "desiredSize": 3}
        daemon.tamper(self.info, "train", name, scalingConfig=sizes)

    def inject(self, fault: Fault, pool: str) -> None:
        parts = dict(self.faults[fault])
        action = str(parts.pop("action"))
        if action == "operation":
            parts["pool"] = f"^{pool}$"
        daemon.add_fault(self.info, action, **parts)

    def edits(self) -> Mapping[str, Target]:
        return plain_edits(self.target("plain"))

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        gone = cast("Mapping[str, str]", self.read(name)["labels"]).keys() - labels.keys()
        gone = {key for key in gone if not key.startswith("eks.amazonaws.com/")}
        self.relabel(name, {"removeLabels": sorted(gone), "addOrUpdateLabels": dict(labels)})

    def without_copy(self, request: Request) -> Request:
        group = cast("Mapping[str, object]", request.params["nodegroup"])
        tags = cast("Mapping[str, str]", group["tags"])
        kept = {key: value for key, value in tags.items() if not key.startswith("gpukube.io/")}
        return replace(request, params={**request.params, "nodegroup": {**group, "tags": kept}})

    def clone(self, name: str, to: str) -> None:
        with self.client() as aws:
            same = {key: self.read(name)[key] for key in ("subnets", "nodeRole", "scalingConfig", "tags")}
            aws.eks.create_nodegroup(clusterName="train", nodegroupName=to, instanceTypes=["t3.large"], **same)
        wait_for(lambda: next(o for o in self.cloud.pools() if o.name == to).state == "ready")

    def add_tag(self, name: str, key: str, value: str) -> None:
        with self.client() as aws:
            aws.eks.tag_resource(resourceArn=self.read(name)["nodegroupArn"], tags={key: value})

    def touch(self, name: str) -> str:
        self.relabel(name, {"addOrUpdateLabels": {"team": "robots"}})
        return "team"

    def read(self, name: str) -> Mapping[str, object]:
        """A node group, as another client reads it."""
        with self.client() as aws:
            found = aws.eks.describe_nodegroup(clusterName="train", nodegroupName=name)["nodegroup"]
        return cast("Mapping[str, object]", found)

    def relabel(self, name: str, change: Mapping[str, object]) -> None:
        """Change labels as another client does, and wait for it."""
        with self.client() as aws:
            update = aws.eks.update_nodegroup_config(clusterName="train", nodegroupName=name, labels=change)["update"]
        identity = str(cast("Mapping[str, object]", update)["id"])
        wait_for(lambda: self.cloud.poll(Operation(name, "update", identity)).done)

    def client(self) -> closing[AwsClients]:
        keys = Identity(dummy=ACCOUNT, secret=self.info.secret)
        return closing(AwsClients(keys, REGION, self.info.aws_url, Settings()))

    def accepts(self, request: Request) -> bool:
        session = botocore.session.get_session()
        for service, operation, part in CALLS[request.operation]:
            shape = session.get_service_model(service).operation_model(operation).input_shape
            given = cast("Mapping[str, object]", request.params.get(part) or {})
            if part in request.params and (shape is None or ParamValidator().validate(given, shape).has_errors()):
                return False
        return bool(request.params)

    def pause(self) -> None:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def running(running_sandbox: SandboxInfo) -> SandboxInfo:
    return emptied(running_sandbox, SPEED)


class TestEks(ProviderContract):
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test of faults with both kinds of them, and any other once."""
        kinds = {"group": LATE, "template": OTHER} if "fault" in metafunc.fixturenames else {"group": LATE}
        if "harness" in metafunc.fixturenames:
            metafunc.parametrize("harness", kinds.values(), ids=kinds, indirect=True)

    @pytest.fixture
    def harness(self, running: SandboxInfo, request: pytest.FixtureRequest) -> Iterator[Harness]:
        daemon.reset(running)
        daemon.add_eks_cluster(running, ACCOUNT, REGION, "train")
        cloud = EksProvider().connect(CLUSTER, Settings({"eks": running.aws_url}, sandbox=True, secret=running.secret))
        yield EksHarness(running, Completing(cloud), cloud, request.param)
        cloud.close()
