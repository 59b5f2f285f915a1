"""The exact requests of typical edits of a live pool, and the bodies of gcloud for the like edits.

`updates/` holds what gpukube sends; a change of one is a change for users and is read in review.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.diff import diff_fields
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Disk, Nodes, Taint, Upgrade
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import Sharing, Slicing
from gpukube_gke.pool.marks import FORM
from tests.unit.gpukube_gke.edits import BASE, EDITS, live_of
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Request, Target

UPDATES = Path(__file__).parent / "updates"
NAME = "projects/ml-prod/locations/us-central1/clusters/train/nodePools/edited"
DEDICATED = Taint("dedicated", "ml", "NoSchedule")
SHARED = Sharing(None, Slicing("time-slicing", 4))


def blue_green(policy: dict[str, object]) -> dict[str, object]:
    return {"upgradeSettings": {"strategy": "BLUE_GREEN", "blueGreenSettings": {"standardRolloutPolicy": policy}}}


CASES: dict[str, tuple[Target, Target]] = {
    "labels": (BASE, replace(BASE, labels={"tier": "gold"})),
    "protect": (BASE, replace(BASE, protect=True)),
    "taints": (BASE, replace(BASE, taints=(GPU_TAINT, DEDICATED))),
    "time-slicing": (BASE, replace(BASE, sharing=SHARED)),
    "machine-and-disk": (BASE, replace(BASE, machine=require_machine("gke", "g2-standard-12"), disk=Disk(200, None))),
    "surge": (BASE, replace(BASE, upgrade=Upgrade("2", "1"))),
    "tags": (BASE, replace(BASE, tags={"env": "dev"})),
    "size": (BASE, replace(BASE, nodes=Nodes(3, 3, 3, autoscaled=False))),
    "autoscaler-on": (BASE, replace(BASE, nodes=Nodes(1, 0, 5, autoscaled=True))),
    "autoscaler-off": (replace(BASE, nodes=Nodes(1, 0, 5, autoscaled=True)), BASE),
    "zones": (EDITS["zones, one more"].base, EDITS["zones, one more"].target),
    "repair": (BASE, replace(BASE, native={"management": {"autoRepair": False}})),
    "version": (BASE, replace(BASE, kubernetes_version="1.35")),
    "driver-version": (BASE, replace(BASE, driver_version="latest")),
    "image": (BASE, replace(BASE, image="UBUNTU_CONTAINERD")),
    "kubelet": (
        replace(BASE, kubelet={"cpuManagerPolicy": "static"}),
        replace(BASE, kubelet={"cpuManagerPolicy": "static", "podPidsLimit": 4096}),
    ),
    "system": (
        replace(BASE, sysctls={"vm.max_map_count": "262144"}),
        replace(BASE, kubelet={"cpuCFSQuota": False}, sysctls={"fs.nr_open": "9999"}, hugepages={"2Mi": 512}),
    ),
    "disk-performance": (
        replace(BASE, disk=Disk(200, "hyperdisk-balanced", 6000, 500)),
        replace(BASE, disk=Disk(200, "hyperdisk-balanced", 9000, 500)),
    ),
    "blue-green": (
        replace(BASE, native=blue_green({"batchNodeCount": 1, "batchSoakDuration": "60s"})),
        replace(BASE, native=blue_green({"batchPercentage": 0.5, "batchSoakDuration": "60s"})),
    ),
    "registries": (
        replace(BASE, native={"config": {"containerdConfig": {"writableCgroups": {"enabled": True}}}}),
        replace(BASE, native={"config": {"containerdConfig": {"registryHosts": [{"server": "r.example.com"}]}}}),
    ),
    "maintenance": (
        BASE,
        replace(BASE, native={"maintenancePolicy": {"exclusionUntilEndOfSupport": {"enabled": True}}}),
    ),
    "all": (
        BASE,
        replace(
            BASE,
            labels={"tier": "gold"},
            taints=(GPU_TAINT, DEDICATED),
            nodes=Nodes(4, 4, 4, autoscaled=False),
            zones=("us-central1-a", "us-central1-b"),
            sharing=SHARED,
            disk=Disk(200, "pd-ssd"),
            upgrade=Upgrade("0", "1"),
        ),
    ),
}
MESSAGES = {
    "update_node_pool": wire.UpdateNodePoolRequest,
    "set_node_pool_size": wire.SetNodePoolSizeRequest,
    "set_node_pool_autoscaling": wire.SetNodePoolAutoscalingRequest,
    "set_node_pool_management": wire.SetNodePoolManagementRequest,
}


def requests_of(name: str) -> tuple[Request, ...]:
    base, target = CASES[name]
    live, edited = live_of(base), desire(target)
    return PROVIDER.requests.update(edited, live, diff_fields(edited.fields, live.fields))


def test_records_when_counted_are_those_of_the_cases() -> None:
    assert {path.stem for path in UPDATES.glob("*.json")} == {*CASES, "scale", "release"}


@pytest.mark.parametrize("name", [*CASES, "scale", "release"])
def test_request_when_made_of_an_edit_is_the_recorded_one(name: str, request: pytest.FixtureRequest) -> None:
    scaled = (PROVIDER.requests.scale(CLUSTER, live_of(BASE), Nodes(2, 2, 2, autoscaled=False)),)
    by_name = {"scale": scaled, "release": PROVIDER.requests.release(CLUSTER, live_of(BASE))}
    requests = by_name.get(name) or requests_of(name)
    made = [{"operation": one.operation, **one.params} for one in requests]
    record = UPDATES / f"{name}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


# Bodies that gcloud 528.0.0 sent to a recording server for the like edits of this pool.
GPU = {"acceleratorCount": "1", "acceleratorType": "nvidia-l4"}
GCLOUD: Mapping[str, Mapping[str, object]] = {
    "taints": {"taints": {"taints": [{"effect": "NO_SCHEDULE", "key": "dedicated", "value": "ml"}]}},
    "time-slicing": {
        "accelerators": [
            {**GPU, "gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "4"}}
        ]
    },
    "machine-and-disk": {"machineType": "g2-standard-12", "diskSizeGb": "200"},
    "surge": {"upgradeSettings": {"maxSurge": 2, "maxUnavailable": 1}},
    "tags": {"resourceLabels": {"labels": {"env": "dev"}}},
    "size": {"nodeCount": 3},
}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
DRIVER = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
COPY = {
    "gpukube_owner": "ml-platform",
    "gpukube_place": FORM.encode("ml-prod/us-central1/train/edited"),
    "gpukube_pool": "edited",
    "gpukube_tags": FORM.record(["env"]),
}
BEYOND_GCLOUD: Mapping[str, Mapping[str, object]] = {
    # The list is replaced as a whole: gcloud leaves it to the user to write the taint of GKE again.
    "taints": {"taints": {"taints": [TAINT, *GCLOUD["taints"]["taints"]["taints"]]}},  # type: ignore[index]  # a mapping
    # So is the accelerator; gcloud leaves it to the user to write the driver again.
    "time-slicing": {"accelerators": [{**GCLOUD["time-slicing"]["accelerators"][0], **DRIVER}]},  # type: ignore[index]  # as above
    # And the labels of the machines: with gcloud the copy of the marks would go.
    "tags": {"resourceLabels": {"labels": {**COPY, "env": "dev"}}},
}


@pytest.mark.parametrize("name", GCLOUD)
def test_body_when_compared_with_that_of_gcloud_differs_by_what_is_explained_only(name: str) -> None:
    (request,) = requests_of(name)

    assert request.params == {"name": NAME, "etag": "e1", **GCLOUD[name], **BEYOND_GCLOUD.get(name, {})}


@pytest.mark.parametrize("name", CASES)
def test_body_when_read_by_the_protobufs_comes_out_unchanged(name: str) -> None:
    for request in requests_of(name):
        params = dict(request.params)
        if request.operation != "update_node_pool":
            params.pop("etag")  # compared before the call, which takes none
        kind = MESSAGES[request.operation]
        read = MessageToDict(kind.pb(kind.from_json(json.dumps(params))))  # type: ignore[attr-defined]  # proto-plus
        assert without_defaults(read) == without_defaults(params)


def without_defaults(value: object) -> object:
    """proto3 sends no zeros and no false."""
    if isinstance(value, dict):
        return {key: without_defaults(item) for key, item in value.items() if item not in (0, False)}
    return [without_defaults(item) for item in value] if isinstance(value, list) else value
