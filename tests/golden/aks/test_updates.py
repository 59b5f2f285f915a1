"""The exact requests of typical edits of one live pool, and what az changes in the same cases.

`updates/live.json` is the pool as a GET answers it; `updates/NAME.json` what gpukube sends for the edit of that name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from azure.mgmt.containerservice.models import AgentPool

from gpukube.core.diff import diff_fields
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Nodes, Ownership, Promise, Taint, Upgrade
from gpukube_aks import AksProvider
from gpukube_aks.pool.observe import observe_pool
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Observed, Request, Target

PROVIDER = AksProvider()
UPDATES = Path(__file__).parent / "updates"
LIVE: Mapping[str, object] = json.loads((UPDATES / "live.json").read_text())
OWN = {"gpukube.io/advertiser": "chart", "nvidia.com/device-plugin.config": "c-1"}

SAME = make_target(
    "Standard_NC4as_T4_v3",
    name="t4shared",
    pool="t4shared",
    nodes=Nodes(1, 0, 5, autoscaled=True),
    capacity=Capacity("spot"),
    labels={"team": "vision"},
    tags={"cost": "research"},
)
EDITS: Mapping[str, Target] = {
    "bounds": replace(SAME, nodes=Nodes(1, 1, 8, autoscaled=True)),
    "autoscaler-off": replace(SAME, nodes=Nodes(2, 2, 2, autoscaled=False)),
    "label": replace(SAME, labels={"team": "audio"}),
    "taint": replace(SAME, taints=(GPU_TAINT, Taint("dedicated", "audio", "NoSchedule"))),
    "no-taints": replace(SAME, taints=(), gpu_taint=False),
    "protect": replace(SAME, protect=True),
    "profiles": replace(
        SAME,
        native={
            "networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 80, "protocol": "TCP"}]},
            "localDNSProfile": {"mode": "Required", "kubeDNSOverrides": {"cluster.local": {"protocol": "ForceTCP"}}},
            "artifactStreamingProfile": {"enabled": True},
        },
    ),
    "upgrade-with-settings": replace(
        SAME,
        kubernetes_version="1.34.2",
        upgrade=Upgrade("0", "1"),
    ),
}


def desire(target: Target) -> Desired:
    return PROVIDER.desired(target, Ownership("cloud", "chart", "c-1", OWN, ""), Promise({}, target.nodes))


def observed(wire: Mapping[str, object] = LIVE) -> Observed:
    return observe_pool(wire)


def requests_of(target: Target) -> tuple[Request, ...]:
    desired = desire(target)
    return PROVIDER.requests.update(desired, observed(), diff_fields(desired.fields, observed().fields))


def scale() -> tuple[Request, ...]:
    return (PROVIDER.requests.scale(CLUSTER, observed(), Nodes(9, 2, 9, autoscaled=True)),)


def properties_of(request: Request) -> dict[str, object]:
    return dict(cast("Mapping[str, Mapping[str, object]]", request.params["body"])["properties"])


def test_live_pool_when_compared_with_the_spec_it_came_from_has_no_difference() -> None:
    assert diff_fields(desire(SAME).fields, observed().fields) == ()


def test_records_when_counted_are_those_of_the_edits() -> None:
    assert {path.stem for path in UPDATES.glob("*.json")} == {*EDITS, "scale", "release", "live"}


@pytest.mark.parametrize("name", [*EDITS, "scale", "release"])
def test_request_when_made_of_an_edit_is_the_recorded_one(name: str, request: pytest.FixtureRequest) -> None:
    by_name = {"scale": scale(), "release": PROVIDER.requests.release(CLUSTER, observed())}
    requests = by_name.get(name) or requests_of(EDITS[name])
    made = [{"operation": one.operation, **one.params} for one in requests]
    record = UPDATES / f"{name}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())
    for one in requests:
        body = cast("Mapping[str, object]", one.params["body"])
        assert AgentPool(body).as_dict() == body


# What az 2.91.0 changes in the body that it has read, as a recording server saw it; None: left out.
AZ: Mapping[str, Mapping[str, object]] = {
    "bounds": {"minCount": 1, "maxCount": 8},  # nodepool update --update-cluster-autoscaler
    "autoscaler-off": {"enableAutoScaling": False, "minCount": None, "maxCount": None},  # --disable-cluster-autoscaler
    "no-taints": {"nodeTaints": []},  # --node-taints ""
}
BEYOND_AZ: Mapping[str, Mapping[str, object]] = {
    "autoscaler-off": {"count": 2},  # az keeps the count and changes it by a second command; the spec says both
    "no-taints": {
        "nodeTaints": ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]
    },  # az wipes it: Azure/AKS#3152
}


@pytest.mark.parametrize("name", AZ)
def test_body_when_compared_with_that_of_az_changes_the_same_properties(name: str) -> None:
    (request,) = requests_of(EDITS[name])
    read, sent = cast("Mapping[str, object]", LIVE["properties"]), properties_of(request)
    service = {"eTag", "provisioningState", "currentOrchestratorVersion", "nodeImageVersion"}
    changed = {key: sent.get(key) for key in {*read, *sent} - service if sent.get(key) != read.get(key)}

    assert changed == {**AZ[name], **BEYOND_AZ.get(name, {})}
    assert request.params["match_condition"] == "if-not-modified"  # az: --if-match
