"""The exact requests for every example, and the bodies of az for the like pools.

`REQUESTS` holds what gpukube sends; a change of one is a change for users and is read in review. `requests/fields` has
a request for each pool of `fields.yaml`.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import yaml
from azure.mgmt.containerservice.models import AgentPool

from gpukube.core.owners import solve_ownership
from gpukube.core.resolve import promise_of, resolve_targets
from gpukube.core.values import Capacity, Disk, Nodes, Ownership, Promise, Reservation, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.spec.loading.load import load_specs
from gpukube_aks import AksProvider
from tests.builders import SUBSCRIPTION, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Request, Target

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("aks-*.yaml"))
REQUESTS = Path(__file__).parent / "requests"


def requests_of(example: Path) -> list[Request]:
    (spec,) = load_specs([str(example)], environ={})
    targets, problems = resolve_targets(spec)
    assert not problems
    return [create_request(target) for target in targets]


def create_request(target: Target) -> Request:
    provider = AksProvider()
    assert not [found for found in provider.check(target) if found.severity == "error"]
    ownership = solve_ownership(target, provider.stack(target))
    assert isinstance(ownership, Ownership)
    return provider.desired(target, ownership, promise_of(target)).create


def body_of(request: Request) -> Mapping[str, object]:
    return cast("Mapping[str, object]", request.params["body"])


def test_examples_when_counted_are_all_here() -> None:
    assert {path.stem for path in EXAMPLES} == {path.stem for path in REQUESTS.glob("*.json")}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_request_when_made_from_an_example_is_the_recorded_one(example: Path, request: pytest.FixtureRequest) -> None:
    made = [{"operation": r.operation, **r.params} for r in requests_of(example)]
    record = REQUESTS / f"{example.stem}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_body_when_read_by_the_sdk_comes_out_unchanged(example: Path) -> None:
    for request in requests_of(example):
        body = body_of(request)
        pool = AgentPool(body)

        assert pool.as_dict() == body
        assert pool.properties is not None
        assert pool.properties.vm_size
        assert pool.properties.count is not None


FIELDS: dict[str, dict[str, object]] = yaml.safe_load((Path(__file__).parent / "fields.yaml").read_text())


def request_of_fields(name: str) -> Request:
    """Return the create request of a pool of `fields.yaml`; without a machine it is a T4."""
    pool = {"instanceType": "Standard_NC4as_T4_v3", **cast("dict[str, object]", FIELDS[name]["pool"])}
    place = {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": "train"}
    document = {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "large"},
        "clusters": {"train-aks": place},
        "pools": [{"name": "gpu", "clusters": ["train-aks"], **pool}],
    }
    (spec,) = load_specs(["-"], stdin=io.StringIO(yaml.safe_dump(document)), environ={})
    (target,), problems = resolve_targets(spec)
    assert [problem for problem in problems if problem.severity == "error"] == []
    return create_request(target)


def test_fields_when_counted_are_all_here() -> None:
    assert FIELDS.keys() == {path.stem for path in (REQUESTS / "fields").glob("*.json")}
    assert len(FIELDS) >= 25


@pytest.mark.parametrize("name", FIELDS)
def test_request_when_made_from_fields_is_the_recorded_one(name: str, request: pytest.FixtureRequest) -> None:
    made = body_of(request_of_fields(name))
    record = REQUESTS / "fields" / f"{name}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())
    assert AgentPool(made).as_dict() == made


# Bodies that az 2.91.0 sent to a recording server, for the same pools.
AZ_ALWAYS: dict[str, object] = {
    "osType": "Linux",
    "enableNodePublicIP": False,
    "count": 1,
    "enableAutoScaling": False,
    "scaleSetPriority": "Regular",
    "nodeTaints": [],
    "upgradeSettings": {"undrainableNodeBehavior": "Schedule"},
    "type": "VirtualMachineScaleSets",
    "enableEncryptionAtHost": False,
    "enableUltraSSD": False,
    "enableFIPS": False,
    "mode": "User",
    "scaleDownMode": "Delete",
}
T4 = "Standard_NC4as_T4_v3"
GROUP = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/capacityReservationGroups/c"
AZ_MIG = AZ_ALWAYS | {"vmSize": "Standard_ND96asr_v4", "gpuInstanceProfile": "MIG1g"}
AZ_AUTOSCALED = AZ_ALWAYS | {
    "vmSize": T4,
    "enableAutoScaling": True,
    "minCount": 0,
    "maxCount": 5,
    "nodeLabels": {"workload": "gpu"},
    "nodeTaints": ["sku=gpu:NoSchedule"],
}
AZ_SPOT = AZ_ALWAYS | {
    "vmSize": T4,
    "scaleSetPriority": "Spot",
    "scaleSetEvictionPolicy": "Delete",
    "spotMaxPrice": -1.0,
}
AZ_OPTIONS = AZ_ALWAYS | {
    "vmSize": "Standard_ND96isr_H100_v5",
    "osSKU": "Ubuntu2404",
    "tags": {"cost": "research"},
    "osDiskSizeGB": 256,
    "osDiskType": "Ephemeral",
    "upgradeSettings": {"maxSurge": "1", "undrainableNodeBehavior": "Schedule"},
    "availabilityZones": ["1", "2"],
    "maxPods": 60,
    "capacityReservationGroupID": GROUP,
}

LEFT_TO_THE_SERVICE = {
    "enableNodePublicIP": "false is the service's default",
    "enableAutoScaling": "false is the service's default",
    "scaleSetPriority": "Regular is the service's default",
    "scaleSetEvictionPolicy": "Delete is the service's default on Spot pools",
    "spotMaxPrice": "-1 is the service's default on Spot pools",
    "nodeTaints": "no taints need no empty list",
    "upgradeSettings": "how nodes are upgraded is not gpukube's business unless the spec says so",
    "enableEncryptionAtHost": "false is the service's default",
    "enableUltraSSD": "false is the service's default",
    "enableFIPS": "false is the service's default",
    "scaleDownMode": "Delete is the service's default",
}
"""What az sends and gpukube does not, and why: a default sent today is drift when the service changes it."""

PLAIN: dict[str, object] = {"taints": (), "gpu_taint": False}
LIKE_POOLS: dict[str, tuple[dict[str, object], Target]] = {
    "MIG": (
        AZ_MIG,
        make_target("Standard_ND96asr_v4", sharing=Sharing(MigCut("1g.5gb", "single")), **PLAIN),
    ),
    "autoscaling": (
        AZ_AUTOSCALED,
        make_target(
            T4,
            nodes=Nodes(1, 0, 5, autoscaled=True),
            labels={"workload": "gpu"},
            taints=(Taint("sku", "gpu", "NoSchedule"),),
            gpu_taint=False,
        ),
    ),
    "Spot": (AZ_SPOT, make_target(T4, capacity=Capacity("spot", -1), **PLAIN)),
    "no driver": (
        AZ_ALWAYS | {"vmSize": T4, "gpuProfile": {"driver": "None"}},
        make_target(T4, driver_owner="none", plugin_owner="none", **PLAIN),
    ),
    "options": (
        AZ_OPTIONS,
        make_target(
            "Standard_ND96isr_H100_v5",
            tags={"cost": "research"},
            disk=Disk(256, "Ephemeral"),
            zones=("2", "1"),
            image="Ubuntu2404",
            max_pods=60,
            upgrade=Upgrade(max_surge="1"),
            capacity=Capacity("reserved", reservation=Reservation("capacityReservationGroup", GROUP)),
            native={"upgradeSettings": {"undrainableNodeBehavior": "Schedule"}},
            **PLAIN,
        ),
    ),
}


@pytest.mark.parametrize("name", LIKE_POOLS)
def test_body_when_compared_with_that_of_az_differs_by_defaults_and_marks_only(name: str) -> None:
    recorded, target = LIKE_POOLS[name]
    bare = Ownership("cloud", "none", "", {}, "")
    desired = AksProvider().desired(target, bare, Promise({}, target.nodes))
    sent = dict(cast("Mapping[str, object]", body_of(desired.create)["properties"]))
    labels = cast("dict[str, str]", sent.pop("nodeLabels"))

    tags = cast("dict[str, str]", sent.pop("tags"))

    # Ours alone: the two marks, and their copy: without them the pool would not be found again.
    marks = {"gpukube.io/owner": "ml-platform", "gpukube.io/pool": "a100mig"}
    assert labels == {**cast("dict[str, str]", recorded.get("nodeLabels", {})), **marks}
    assert {key: tags[key] for key in tags if not key.startswith("gpukube_")} == recorded.get("tags", {})
    assert {"gpukube_owner", "gpukube_pool", "gpukube_place"} <= tags.keys()
    # Ours and theirs say the same of everything that both say.
    assert sent == {key: recorded[key] for key in sent}
    # What az says beyond that is a default, each with its reason.
    assert (recorded.keys() - sent.keys() - {"nodeLabels", "tags"}) <= LEFT_TO_THE_SERVICE.keys()
