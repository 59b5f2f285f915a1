"""EKS keeps the contract against moto too, as far as moto 5.2.5 imitates the service.

moto is a referee: others wrote it, from the same API. What it lacks, and so is tested against the sandbox only:

* Every state but ACTIVE, health issues and late failures: groups are there at once and never fail.
* DescribeUpdate, ListUpdates, UpdateNodegroupVersion and tags of node groups.
* Refusals: of amiType, effects, labels, tags, subnets, sizes and of types both in the template and in the request.
* updateConfig, nodeRepairConfig and warmPoolConfig of a creation are dropped without a word.
* Idempotency tokens, faults and throttling; a Kubernetes API behind the cluster.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import boto3
import pytest

from gpukube.core.values import ClusterRef, Nodes, Operation, Settings
from gpukube.endpoint import choose_endpoint
from gpukube.errors import AccessError
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_eks import EksProvider
from gpukube_eks.live.access import connect_aws
from gpukube_eks.live.client import EksCloud
from tests.contract.test_eks import Completing, EksHarness, plain_edits
from tests.unit.gpukube_eks.samples import REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Request, Target
    from gpukube.provider import Cloud

server = pytest.importorskip("moto.server")

ACCOUNT = "123456789012"
"""moto's account, whoever asks."""
ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
CLUSTER = ClusterRef("moto", "eks", "train", {"account": ACCOUNT, "region": REGION})


BEYOND: Mapping[str, str] = {
    "a tag": "no tags of node groups: ResourceNotFoundException",
    "protection": "it changes the copy of the marks, which is a tag",
    "sharing": "it changes a tag for the cluster autoscaler",
    "disk size": "no UpdateNodegroupVersion",
    "disk type": "no UpdateNodegroupVersion",
    "pods": "no UpdateNodegroupVersion",
    "version": "its groups have Kubernetes 1.19, whatever the cluster has",
    "all at once": "it has a tag and a disk",
}
"""Edits of the contract that moto cannot follow -> what it lacks."""


class WithoutUpdates(EksCloud):
    """Follows the group itself, as after a lost answer: moto has no DescribeUpdate."""

    def send(self, request: Request) -> Operation:
        return replace(super().send(request), handle="")


NO_TAGS = "moto tags clusters only"


@dataclass
class MotoHarness:
    """One cluster in moto's server."""

    provider: EksProvider
    cloud: Cloud
    eks: Any
    ec2: Any
    place: dict[str, Any]
    package: str = "gpukube_eks"
    sdk: str = "botocore"

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        if kind == "mig":
            return eks_target(
                cluster=CLUSTER, name="pmig", pool="p-mig", sharing=Sharing(mig=MigCut("1g.5gb", "single"))
            )
        plain = eks_target("g4dn.xlarge", cluster=CLUSTER, name=f"p{kind}", pool=f"p-{kind}", labels={"team": "vision"})
        return plain if kind == "plain" else replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True))

    def add_foreign_pool(self, name: str) -> None:
        self.eks.create_nodegroup(clusterName="train", nodegroupName=name, **self.place)

    def move_count(self, name: str) -> None:
        sizes = {"desiredSize": 3}
        self.eks.update_nodegroup_config(clusterName="train", nodegroupName=name, scalingConfig=sizes)

    def inject(self, fault: Fault, pool: str) -> None:
        pytest.skip(f"moto cannot make {pool} meet {fault}")

    def edits(self) -> Mapping[str, Target]:
        edits = plain_edits(self.target("plain"))
        return {name: target for name, target in edits.items() if name not in BEYOND}

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        pytest.skip(f"{NO_TAGS}: {name} could get no copy of the marks beside the labels {labels}")

    def without_copy(self, request: Request) -> Request:
        pytest.skip(f"{NO_TAGS}: no copy of the marks comes after {request.operation}")

    def clone(self, name: str, to: str) -> None:
        tags = self.eks.describe_nodegroup(clusterName="train", nodegroupName=name)["nodegroup"]["tags"]
        self.eks.create_nodegroup(clusterName="train", nodegroupName=to, **self.place, tags=tags)

    def add_tag(self, name: str, key: str, value: str) -> None:
        pytest.skip(f"{NO_TAGS}: {name} cannot get {key}={value}")

    def touch(self, name: str) -> str:
        change = {"addOrUpdateLabels": {"team": "robots"}}
        self.eks.update_nodegroup_config(clusterName="train", nodegroupName=name, labels=change)
        return "team"

    def accepts(self, request: Request) -> bool:
        return EksHarness.accepts(self, request)  # type: ignore[arg-type]  # it looks at the request only

    def pause(self) -> None:
        time.sleep(0.01)

    def templates(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ec2.describe_launch_templates()["LaunchTemplates"]
        return found


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """Start moto's server; it stops with the module."""
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.mark.turns(4)  # a quarter of the tests, each of one case; the sandbox has them all in each run
class TestMoto(ProviderContract):
    @pytest.fixture(params=["moto"])
    def harness(self, moto: str) -> Iterator[Harness]:
        session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="y", region_name=REGION)
        made = [session.client(name, endpoint_url=moto) for name in ("ec2", "eks")]
        ec2, eks = made
        for group in self._groups(eks):
            eks.delete_nodegroup(clusterName="train", nodegroupName=group)
        for template in ec2.describe_launch_templates()["LaunchTemplates"]:
            ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
        subnets = [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]]
        if not eks.list_clusters()["clusters"]:
            eks.create_cluster(name="train", roleArn=f"{ROLE}-cluster", resourcesVpcConfig={"subnetIds": subnets})
        sizes = {"minSize": 1, "maxSize": 2, "desiredSize": 1}
        place = {"subnets": subnets, "nodeRole": ROLE, "scalingConfig": sizes}
        eks.create_nodegroup(clusterName="train", nodegroupName="system", **place)
        settings = Settings({"eks": moto})
        endpoint = choose_endpoint("eks", settings, CLUSTER.key)
        cloud = WithoutUpdates(CLUSTER, settings, endpoint, connect_aws(CLUSTER, endpoint, settings))
        yield MotoHarness(Completing(cloud), cloud, eks, ec2, place)
        for client in (cloud, *made):
            client.close()

    def _groups(self, eks: Any) -> list[str]:  # noqa: ANN401 - boto3
        if not eks.list_clusters()["clusters"]:
            return []
        names: list[str] = eks.list_nodegroups(clusterName="train")["nodegroups"]
        return names

    def test_identify_when_the_account_is_motos_is_let_in(self, harness: Harness) -> None:
        assert harness.cloud.identify().status == "ACTIVE"

    def test_identify_when_the_account_is_another_is_refused(self, moto: str) -> None:
        other = replace(CLUSTER, identity={**CLUSTER.identity, "account": "111122223333"})

        with pytest.raises(AccessError, match=f"to account {ACCOUNT}, not 111122223333"):
            EksProvider().connect(other, Settings({"eks": moto})).identify()

    def test_release_when_done_then_a_stranger_that_anybody_may_adopt(self, harness: Harness) -> None:
        pytest.skip(f"{NO_TAGS}: the marks of {harness.target('plain').name} cannot be taken off")

    def test_delete_when_done_leaves_no_template(self, harness: MotoHarness) -> None:
        desired = harness.cloud.complete(desired_of(harness.target("plain")))
        harness.cloud.send(desired.create)
        assert [one["LaunchTemplateName"] for one in harness.templates()] == ["gpukube/train/pplain"]
        observed = next(pool for pool in harness.cloud.pools() if pool.name == "pplain")

        operation = harness.cloud.send(harness.provider.requests.delete(CLUSTER, observed))

        assert harness.cloud.poll(operation).done
        assert harness.templates() == []
