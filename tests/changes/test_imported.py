"""Pools that other tools make, imported: the plan of the import adopts them, and changes nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import Arm
from sandbox_tests.eks.aws import Aws
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.changes.configurations import AKS, EKS, EKS_THINGS, GKE, GKE_THINGS, Configuration
from tests.changes.imports import require_import
from tests.changes.world import ADDRESSES, CLOUDS
from tests.golden.aks.test_requests import AZ_AUTOSCALED, AZ_MIG, AZ_SPOT
from tests.golden.gke.test_requests import GCLOUD_MIG, GCLOUD_MPS, GCLOUD_OWN_PLUGIN, GCLOUD_SPOT, GCLOUD_TIMESHARING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.changes.world import World

Json = dict[str, Any]
Pools = dict[str, Configuration]


def make_groups(world: World, pools: Mapping[str, Configuration]) -> None:
    """Make launch templates and groups as Terraform, eksctl's stacks and aws do."""
    aws = Aws(world.info, read_timeout_s=PATIENCE_S)
    subnets = aws.place()["subnets"]
    for name, pool in pools.items():
        kind = str(pool.template.get("InstanceType") or pool.body["instanceTypes"][0])
        zone = 1 if kind.startswith(("p4de", "p5e")) else 0  # where these machines, and the reservations of them, are
        more: Json = {"subnets": [subnets[zone]], "instanceTypes": None}
        if pool.template:
            made = aws.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=pool.template)
            more["launchTemplate"] = {"id": made["LaunchTemplate"]["LaunchTemplateId"], "version": "1"}
        aws.ask(name, **more | pool.body)
    for name in pools:
        assert aws.settled(name)["status"] == "ACTIVE", aws.group(name)["health"]


def make_agent_pools(world: World, pools: Mapping[str, Configuration]) -> None:
    """PUT each as az does."""
    with Arm(world.info) as arm:
        for name, pool in pools.items():
            arm.create(name, pool.body)


def make_node_pools(world: World, pools: Mapping[str, Configuration]) -> None:
    """POST each as gcloud does."""
    place = "/v1/projects/ml-prod/locations/us-central1"
    headers = signed(world.info)
    with httpx.Client(base_url=world.info.gke_url, headers=headers, timeout=PATIENCE_S) as client:

        def ended(operation: str) -> Json:
            found: Json = client.get(operation).json()
            return found if found["status"] == "DONE" else {}

        for name, pool in pools.items():
            body = {"nodePool": {**pool.body, "name": name}}
            answer = client.post(f"{place}/clusters/train/nodePools", json=body)
            assert answer.status_code == httpx.codes.OK, (name, answer.text)
            operation = f"{place}/operations/{answer.json()['name']}"
            found = wait_for(lambda at=operation: ended(at))  # type: ignore[misc] # what the loop has now
            assert "error" not in found, (name, found)


def _of_client(body: Json) -> Configuration:
    return Configuration("", body)


AWS: Pools = {
    "plain": _of_client({"instanceTypes": ["g4dn.xlarge"], "amiType": "AL2023_x86_64_NVIDIA"}),
    "rocket": _of_client({"instanceTypes": ["g5.xlarge"], "amiType": "BOTTLEROCKET_x86_64_NVIDIA", "diskSize": 50}),
    "spot": _of_client(
        {
            "instanceTypes": ["g6.xlarge"],
            "amiType": "AL2023_x86_64_NVIDIA",
            "capacityType": "SPOT",
            "tags": {"team": "a"},
        }
    ),
}
AZ: Pools = {"azmig": _of_client(AZ_MIG), "azauto": _of_client(AZ_AUTOSCALED), "azspot": _of_client(AZ_SPOT)}
GCLOUD: Pools = {
    f"gcloud{at}": _of_client({**body, "locations": ["us-central1-a"]})
    for at, body in enumerate((GCLOUD_MIG, GCLOUD_TIMESHARING, GCLOUD_SPOT, GCLOUD_OWN_PLUGIN, GCLOUD_MPS))
}


@dataclass(frozen=True)
class Case:
    """Pools of one cluster, and how they are made."""

    make: Callable[[World, Mapping[str, Configuration]], None]
    pools: Pools
    things: Json
    managers: Mapping[str, int]


CASES: Mapping[str, Case] = {
    "eks": Case(make_groups, {**EKS, **AWS}, EKS_THINGS, {"eksctl": 8, "Terraform (EKS Blueprints)": 4}),
    "aks": Case(make_agent_pools, {**AKS, **AZ}, {}, {}),
    "gke": Case(make_node_pools, {**GKE, **GCLOUD}, GKE_THINGS, {"Terraform (Cluster Toolkit)": 5}),
}


def test_configurations_when_counted_then_at_least_twenty_each_of_a_file_of_its_own() -> None:
    sources = [pool.source for pools in (EKS, AKS, GKE) for pool in pools.values()]
    assert (len(sources) >= 20, len(set(sources))) == (True, len(sources))


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_pools_when_other_tools_made_them_then_the_import_adopts_them_and_changes_nothing(
    cloud: str, world: World
) -> None:
    case = CASES[cloud]
    world.reset()
    world.make(cloud, "train")
    if case.things:
        where = {"eks": ("account", "region"), "gke": ("project",)}[cloud]
        daemon.declare(world.info, cloud, **{key: ADDRESSES[cloud][key] for key in where}, **case.things)
    case.make(world, case.pools)
    text = require_import(world, cloud, "train", len(case.pools)).replace("\n  # ", " ")
    named = {name: text.count(f" {name} manages it (") for name in case.managers}
    assert named == case.managers
    assert cloud != "gke" or "not in this spec" not in text
