"""The exact requests for every example, and the bodies of gcloud for the like pools.

`requests/` holds what gpukube sends; a change of one is a change for users and is read in review.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.resolve import promise_of, resolve_targets
from gpukube.core.values import Capacity, Disk, Nodes, Ownership, Promise, Taint
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.spec.loading.load import load_specs
from tests.unit.gpukube_gke.targets import PROVIDER, ZONAL, desire, gke_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Request, Target

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("gke-*.yaml"))
REQUESTS = Path(__file__).parent / "requests"
PROMISES = {
    "gke-flex-start": 4,
    "gke-queued": 128,
    "gke-reserved": 112,
    "gke-a3mega": 32,
    "gke-mig": 7,
    "gke-timesharing": 8,
    "gke-mps": 16,
    "gke-t4-n1": 6,
    "gke-operator": 8,
    "gke-operator-driver": 1,
    "gke-dra": 4,
}
"""Devices of all pools of an example, under whatever names."""


NAMES = {
    "gke-dra": {"gpu.nvidia.com"},
    "gke-operator": {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb"},
}
"""Of those that GKE's own plugin does not advertise: it knows nvidia.com/gpu only."""


def targets_of(example: Path) -> tuple[Target, ...]:
    (spec,) = load_specs([str(example)], environ={})
    targets, problems = resolve_targets(spec)
    assert not problems
    return targets


def requests_of(example: Path) -> list[Request]:
    return [desire(target).create for target in targets_of(example)]


def test_examples_when_counted_are_all_here() -> None:
    assert {path.stem for path in EXAMPLES} == {path.stem for path in REQUESTS.glob("*.json")} == PROMISES.keys()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_request_when_made_from_an_example_is_the_recorded_one(example: Path, request: pytest.FixtureRequest) -> None:
    made = [{"operation": r.operation, **r.params} for r in requests_of(example)]
    record = REQUESTS / f"{example.stem}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_promise_when_made_from_an_example_is_the_one_it_speaks_of(example: Path) -> None:
    totals = [promise.total(promise.nodes.maximum) for promise in map(promise_of, targets_of(example))]

    assert sum(count for total in totals for count in total.values()) == PROMISES[example.stem]
    assert {name for total in totals for name in total} == NAMES.get(example.stem, {"nvidia.com/gpu"})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_body_when_read_by_the_protobufs_comes_out_unchanged(example: Path) -> None:
    for request in requests_of(example):
        read = wire.CreateNodePoolRequest.from_json(json.dumps(request.params))

        assert without_zeros(MessageToDict(wire.CreateNodePoolRequest.pb(read))) == without_zeros(request.params)


def without_zeros(value: object) -> object:
    """proto3 sends no zeros and no false."""
    if isinstance(value, dict):
        return {key: without_zeros(item) for key, item in value.items() if item != 0}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


# Bodies that gcloud 528.0.0 sent to a recording server, for the same pools; each had this parent as well.
PARENT = "projects/demo-proj/locations/us-central1-a/clusters/demo"
AUTH = "https://www.googleapis.com/auth/"
SCOPES6 = [
    AUTH + scope
    for scope in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
]
ALWAYS: dict[str, object] = {
    "management": {"autoRepair": True, "autoUpgrade": True},
    "upgradeSettings": {"maxSurge": 1},
}


def gpu(kind: str, driver: str = "", **more: object) -> list[dict[str, object]]:
    installation = {"gpuDriverInstallationConfig": {"gpuDriverVersion": driver}} if driver else {}
    return [{"acceleratorCount": "1", "acceleratorType": kind, **installation, **more}]


def shared(strategy: str, clients: str) -> dict[str, object]:
    return {"gpuSharingStrategy": strategy, "maxSharedClientsPerGpu": clients}


GCLOUD_MIG = ALWAYS | {
    "name": "p-a",
    "initialNodeCount": 1,
    "config": {
        "accelerators": gpu("nvidia-tesla-a100", "DEFAULT", gpuPartitionSize="1g.5gb"),
        "machineType": "a2-highgpu-1g",
        "oauthScopes": SCOPES6,
    },
}
GCLOUD_TIMESHARING = ALWAYS | {
    "name": "p-b",
    "initialNodeCount": 1,
    "config": {
        "accelerators": gpu("nvidia-tesla-t4", gpuSharingConfig=shared("TIME_SHARING", "4")),
        "machineType": "n1-standard-4",
        "oauthScopes": SCOPES6,
    },
}
GCLOUD_SPOT = ALWAYS | {
    "name": "p-c",
    "initialNodeCount": 0,
    "autoscaling": {"enabled": True, "locationPolicy": "ANY", "maxNodeCount": 5, "minNodeCount": 0},
    "config": {
        "accelerators": gpu("nvidia-l4", "LATEST"),
        "labels": {"team": "ml"},
        "machineType": "g2-standard-8",
        "oauthScopes": SCOPES6,
        "spot": True,
        "taints": [{"effect": "NO_SCHEDULE", "key": "dedicated", "value": "ml"}],
    },
}
GCLOUD_TOTAL = GCLOUD_SPOT | {
    "autoscaling": {"enabled": True, "locationPolicy": "ANY", "totalMaxNodeCount": 8, "totalMinNodeCount": 0},
}
GCLOUD_OWN_PLUGIN = ALWAYS | {
    "name": "p-d",
    "initialNodeCount": 1,
    "config": {
        "accelerators": gpu("nvidia-tesla-t4", "INSTALLATION_DISABLED"),
        "labels": {"gke-no-default-nvidia-gpu-device-plugin": "true"},
        "machineType": "n1-standard-4",
        "oauthScopes": SCOPES6,
    },
}
GCLOUD_MPS = ALWAYS | {
    "name": "p-e",
    "initialNodeCount": 2,
    "locations": ["us-central1-a"],
    "config": {
        "accelerators": gpu("nvidia-l4", "DEFAULT", gpuSharingConfig=shared("MPS", "8")),
        "diskSizeGb": 200,
        "diskType": "pd-ssd",
        "gvnic": {"enabled": True},
        "imageType": "COS_CONTAINERD",
        "machineType": "g2-standard-12",
        "oauthScopes": [f"{AUTH}cloud-platform", f"{AUTH}userinfo.email"],
        "resourceLabels": {"env": "dev"},
        "serviceAccount": "sa@demo-proj.iam.gserviceaccount.com",
    },
}

T4 = ("T4", 1)
SPOT = gke_target(
    "g2-standard-8",
    name="p-c",
    nodes=Nodes(0, 0, 8, autoscaled=True),
    capacity=Capacity("spot"),
    labels={"team": "ml"},
    taints=(Taint("dedicated", "ml", "NoSchedule"),),
    native={"autoscaling": {"locationPolicy": "ANY"}},
    driver_version="latest",
)
LIKE_POOLS: dict[str, tuple[dict[str, object], Target]] = {
    "a: MIG": (GCLOUD_MIG, gke_target(name="p-a", sharing=Sharing(MigCut("1g.5gb", "single")))),
    "b: time-sharing": (
        GCLOUD_TIMESHARING,
        gke_target("n1-standard-4", T4, name="p-b", sharing=Sharing(None, Slicing("time-slicing", 4))),
    ),
    "c: Spot from zero": (GCLOUD_SPOT, replace(SPOT, nodes=Nodes(0, 0, 5, autoscaled=True, scope="zone"))),
    "c: Spot from zero, in total": (GCLOUD_TOTAL, SPOT),
    "d: another plugin": (
        GCLOUD_OWN_PLUGIN,
        gke_target("n1-standard-4", T4, name="p-d", plugin_owner="none", driver_owner="none"),
    ),
    "e: MPS with options": (
        GCLOUD_MPS,
        gke_target(
            "g2-standard-12",
            name="p-e",
            nodes=Nodes(2, 2, 2, autoscaled=False),
            zones=("us-central1-a",),
            sharing=Sharing(None, Slicing("mps", 8)),
            disk=Disk(200, "pd-ssd"),
            image="COS_CONTAINERD",
            tags={"env": "dev"},
            native={
                "config": {"serviceAccount": "sa@demo-proj.iam.gserviceaccount.com", "gvnic": {"enabled": True}},
            },
        ),
    ),
}
SAID_BY_US_ALONE = {
    "locations": "silence means every zone of the cluster, also those without the GPU",
    "labels": "the two marks, without which the pool would not be found again",
    "gpuDriverInstallationConfig": "silence means no driver at all on old control planes",
}
"""What gpukube sends and gcloud does not, and why."""


@pytest.mark.parametrize("name", LIKE_POOLS)
def test_body_when_compared_with_that_of_gcloud_differs_by_what_is_explained_only(name: str) -> None:
    recorded, target = LIKE_POOLS[name]
    demo = replace(ZONAL, name="demo", identity={"project": "demo-proj", "location": "us-central1-a"})
    bare = Ownership("cloud", "none", "", {}, "")
    request = PROVIDER.desired(replace(target, cluster=demo), bare, Promise({}, target.nodes)).create
    sent = dict(cast("Mapping[str, object]", request.params["nodePool"]))
    config, wanted = (dict(cast("Mapping[str, object]", pool.pop("config"))) for pool in (sent, dict(recorded)))
    theirs = {key: value for key, value in recorded.items() if key != "config"}
    labels = cast("dict[str, str]", config.pop("labels"))
    ((ours,), (gcloud,)) = (cast("list[dict[str, object]]", one.pop("accelerators")) for one in (config, wanted))

    assert request.params["parent"] == PARENT
    assert sent.pop("locations") == ["us-central1-a"]
    assert sent == {key: value for key, value in theirs.items() if key != "locations"}
    marks = {"gpukube.io/owner": "ml-platform", "gpukube.io/pool": "a100mig"}
    assert labels == {**cast("dict[str, str]", wanted.pop("labels", {})), **marks}
    copy = cast("dict[str, str]", config.pop("resourceLabels"))
    assert {key: value for key, value in copy.items() if not key.startswith("gpukube_")} == wanted.pop(
        "resourceLabels", {}
    )
    assert {"gpukube_owner", "gpukube_pool", "gpukube_place"} <= copy.keys()
    assert config == wanted
    assert ours == {"gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}} | gcloud
    alone = (theirs.keys() ^ request.params["nodePool"].keys()) | (ours.keys() ^ gcloud.keys())  # type: ignore[attr-defined]  # a mapping
    assert alone - {"config"} <= SAID_BY_US_ALONE.keys()
