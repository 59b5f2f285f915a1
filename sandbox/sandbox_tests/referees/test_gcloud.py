"""The `gcloud` command: what it asks of GKE and Compute Engine for node pools, and what the sandbox answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import NAME, PROJECT, ZONE

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("gcloud")

H100 = {"name": "h100", "zone": ZONE, "machineType": "a3-highgpu-8g", "count": 2}
LISTS: dict[str, list[Row]] = {
    "what is there": [
        ("gcloud container clusters list --format value(name,location,status)", "train us-central1-a RUNNING"),
        ("gcloud container clusters describe train $zone --format value(status)", "RUNNING"),
        ("gcloud container clusters describe nobody $zone", "code=404, message=Not found: ... clusters/nobody", 1),
        ("gcloud container node-pools list $at --format value(name,status)", "default-pool RUNNING"),
        ("gcloud container get-server-config $zone --format value(defaultClusterVersion)", "1.34.1-gke.1829001"),
        ("gcloud container clusters get-credentials train $zone", "kubeconfig entry generated for train."),
    ],
    "what Compute Engine has": [
        ("gcloud compute machine-types describe a2-highgpu-1g --zone us-central1-a --format value(guestCpus)", "12"),
        ("gcloud compute regions describe us-central1 --format value(quotas[0].metric)", "NVIDIA_K80_GPUS"),
        ("gcloud compute accelerator-types list --filter name=nvidia-tesla-t4 --format value(zone)", "us-central1-a"),
        (
            "gcloud compute zones list --filter region:us-central1 --format value(name)",
            "us-central1-a us-central1-b us-central1-c",
        ),
        ("gcloud compute regions list --format value(name,status)", "europe-west4 UP us-central1 UP"),
        ("gcloud compute reservations list", "h100 0 2 us-central1-a LOCAL"),
        ("gcloud compute reservations describe h100 --zone us-central1-a --format value(status)", "READY"),
    ],
    "a pool of shared GPUs": [
        (
            (
                "gcloud container node-pools create shared $at --machine-type n1-standard-4 --num-nodes 0 --spot"
                " --accelerator type=nvidia-tesla-t4,count=1,gpu-sharing-strategy=time-sharing,"
                "max-shared-clients-per-gpu=4 --enable-autoscaling --min-nodes 0 --max-nodes 3"
                " --node-labels team=vision --node-taints dedicated=ml:NoSchedule"
            ),
            "Created",
        ),
        (
            (
                "gcloud container node-pools describe shared $at --format"
                " value(config.spot,autoscaling.maxNodeCount,config.accelerators[0].gpuSharingConfig)"
            ),
            "True 3 ... TIME_SHARING",
        ),
        ("gcloud container node-pools update shared $at --node-labels a=b --format value(config.labels)", "a=b"),
        (
            "gcloud container node-pools update shared $at --node-taints a=b:NoExecute --format value(config.taints)",
            "{'effect': 'NO_EXECUTE', 'key': 'a', 'value': 'b'}",
        ),
        ("gcloud container node-pools update shared $at --no-enable-autoscaling --format value(name)", "Updated ["),
    ],
    "a pool of GPU slices": [
        (
            (
                "gcloud container node-pools create mig $at --machine-type a2-highgpu-1g --num-nodes 1 --accelerator"
                " type=nvidia-tesla-a100,count=1,gpu-partition-size=1g.5gb,gpu-driver-version=default"
            ),
            "mig a2-highgpu-1g 100 1.34.1-gke.1829001 ... Created [",
        ),
        (
            (
                "gcloud container node-pools describe mig $at"
                " --format value(status,config.accelerators[0].gpuPartitionSize,config.taints[0].key)"
            ),
            "RUNNING 1g.5gb nvidia.com/gpu",
        ),
        ("gcloud container node-pools delete mig $at --quiet", "Deleted ["),
        ("gcloud container node-pools describe mig $at", "code=404, message=Not found: ... nodePools/mig", 1),
    ],
    "numbers of nodes": [
        (
            "gcloud container clusters resize train $zone --node-pool default-pool --num-nodes 2 --quiet",
            "Resizing train... ... done.",
        ),
        ("gcloud container clusters upgrade train $zone --node-pool default-pool --quiet", "Updated ["),
        ("gcloud container node-pools create later $at --num-nodes 0 --async", "CREATE_NODE_POOL"),
        (
            "gcloud container operations list $zone --filter status=DONE --format value(operationType)",
            "SET_NODE_POOL_SIZE UPGRADE_NODES",
        ),
    ],
    "what is not emulated": [
        (  # gcloud tries for half a minute
            "gcloud container node-pools rollback default-pool $at --quiet",
            "code=501, message=The gpukube sandbox does not emulate POST ... default-pool:rollback",
            1,
        ),
    ],
}


SLOW = {"what is not emulated": pytest.mark.slow}


@pytest.mark.turns(5)  # the slow list, being the sixth, has its turn with the first
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in LISTS])
def test_gcloud_when_it_asks_then_answered_as_by_google(referee: Referee, name: str) -> None:
    referee.names |= {"zone": f"--location {ZONE}", "at": f"--cluster {NAME} --location {ZONE}"}
    daemon.declare(referee.info, "gke", project=PROJECT, reservations=[H100])
    referee.asks(LISTS[name])
