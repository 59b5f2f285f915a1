"""Pools that the clouds' own clients make: gpukube imports them, and adopts them without any other change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.eks.aws import Aws
from tests.changes.imports import require_import
from tests.changes.world import World

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee

_EKS = "--cluster-name train --query nodegroup.status --output text"
_AKS = "-g ml --cluster-name train --query provisioningState --output tsv"
_GKE = "--cluster train --project ml-prod --location us-central1 --node-locations us-central1-a"
LINES = {
    "eks": (
        (
            "aws eks create-nodegroup $eks --nodegroup-name plain $place --instance-types g4dn.xlarge --ami-type "
            "AL2023_x86_64_NVIDIA --scaling-config minSize=0,maxSize=2,desiredSize=1 --labels team=ml"
        ),
        (
            "aws eks create-nodegroup $eks --nodegroup-name spot $place --instance-types g6.xlarge "
            "--capacity-type SPOT --ami-type BOTTLEROCKET_x86_64_NVIDIA --disk-size 60 "
            "--taints key=sku,value=gpu,effect=NO_SCHEDULE --scaling-config minSize=1,maxSize=1,desiredSize=1 "
            "--update-config maxUnavailablePercentage=50 --tags a=b"
        ),
    ),
    "aks": (
        (
            "az aks nodepool add $aks -n gpunp -c 1 -s Standard_NC4as_T4_v3 --node-taints sku=gpu:NoSchedule "
            "--enable-cluster-autoscaler --min-count 1 --max-count 3 --labels team=ml --tags a=b"
        ),
        (
            "az aks nodepool add $aks -n mig -c 1 -s Standard_ND96asr_v4 --gpu-instance-profile MIG1g --zones 1 "
            "--max-pods 60 --node-osdisk-size 256 --max-surge 1"
        ),
    ),
    "gke": (
        (
            "gcloud container node-pools create plain $gke --machine-type n1-standard-8 --num-nodes 1 "
            "--accelerator type=nvidia-tesla-t4,count=1,gpu-driver-version=default --node-labels team=ml"
        ),
        (
            "gcloud container node-pools create shared $gke --machine-type g2-standard-8 --spot --num-nodes 0 "
            "--accelerator type=nvidia-l4,count=1,gpu-sharing-strategy=time-sharing,max-shared-clients-per-gpu=4 "
            "--enable-autoscaling --total-min-nodes 0 --total-max-nodes 4 --node-taints dedicated=ml:NoSchedule "
            "--disk-size 200 --disk-type pd-ssd --enable-gvnic --max-surge-upgrade 2 --max-unavailable-upgrade 0"
        ),
    ),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "cloud",
    [
        pytest.param(cloud, marks=pytest.mark.clients(name))
        for cloud, name in (("eks", "aws"), ("aks", "az"), ("gke", "gcloud"))
    ],
)
def test_pools_when_the_clouds_own_client_made_them_then_adopting_changes_nothing_else(
    cloud: str, referee: Referee
) -> None:
    world = World(referee.info)
    world.make(cloud, "train")  # on GKE another one than the referee's, where imports look
    aws = Aws(world.info)
    if cloud == "eks":
        place = aws.place()
        referee.names["place"] = f"--subnets {' '.join(place['subnets'])} --node-role {place['nodeRole']}"
    referee.names |= {"eks": _EKS, "aks": _AKS, "gke": _GKE}
    for line in LINES[cloud]:
        code, printed = referee.told(line)
        assert code == 0, printed
    if cloud == "eks":
        assert {aws.settled(name)["status"] for name in ("plain", "spot")} == {"ACTIVE"}
    require_import(world, cloud, "train", len(LINES[cloud]))
