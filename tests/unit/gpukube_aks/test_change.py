"""What a PUT of a changed pool holds: everything that was read, the changes, and nothing of the service's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.diff import diff_fields
from gpukube.core.fields import COUNT, INSTANCE_TYPE
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Change, Nodes, Ownership, Promise, Taint, Upgrade
from gpukube.errors import SpecError
from gpukube_aks import AksProvider
from gpukube_aks.pool.change import NOT_SENT
from gpukube_aks.pool.observe import observe_pool
from gpukube_aks.pool.translate import SPOT_KEY, SPOT_TAINT
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Observed, Request, Target

PROVIDER = AksProvider()
T4 = "Standard_NC4as_T4_v3"
PLAIN = make_target(T4, labels={"team": "vision"}, tags={"cost": "1"})
AUTOSCALED = replace(PLAIN, nodes=Nodes(1, 1, 3, autoscaled=True))
SPOT = replace(PLAIN, capacity=Capacity("spot"))
SUBNET = "/subscriptions/S/resourceGroups/Net/providers/Microsoft.Network/virtualNetworks/V/subnets/N"

SERVICE: dict[str, object] = {
    "eTag": "e7",
    "currentOrchestratorVersion": "1.34.2",
    "provisioningState": "Succeeded",
    "status": {"provisioningError": None},
    "virtualMachineNodesStatus": [],
    "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202608.07.0",
}
FILLED_IN: dict[str, object] = {
    "orchestratorVersion": "1.34.2",
    "osSKU": "Ubuntu",
    "powerState": {"code": "Running"},
    "upgradeSettings": {"maxSurge": "10%", "maxUnavailable": "0"},
    "madeByANewerVersion": {"x": [1]},
}


def desire(target: Target) -> Desired:
    return PROVIDER.desired(target, Ownership("cloud", "chart", "c-1", {}, ""), Promise({}, target.nodes))


def sent(request: Request) -> dict[str, object]:
    body = cast("Mapping[str, Mapping[str, object]]", request.params["body"])
    return dict(body["properties"])


def live(target: Target, **properties: object) -> Observed:
    made = sent(desire(target).create)
    if target.capacity.type == "spot":
        labels = cast("dict[str, str]", made["nodeLabels"])
        made["nodeLabels"] = {**labels, SPOT_KEY: "spot"}
        made["nodeTaints"] = [*cast("list[str]", made["nodeTaints"]), str(SPOT_TAINT)]
    return observe_pool({"name": target.name, "properties": {**made, **FILLED_IN, **SERVICE, **properties}})


def update(before: Observed, after: Target) -> tuple[Request, ...]:
    desired = desire(after)
    return PROVIDER.requests.update(desired, before, diff_fields(desired.fields, before.fields))


def moved(before: Observed, request: Request) -> dict[str, object]:
    """Properties that the body says differently from what was read; None for one left out."""
    read = cast("Mapping[str, object]", before.native["properties"])
    body = sent(request)
    names = {*body, *read} - NOT_SENT.keys()
    return {name: body.get(name) for name in sorted(names) if body.get(name) != read.get(name)}


MARKS = {"gpukube.io/owner": "ml-platform", "gpukube.io/pool": "a100mig"}
COPY = {
    "gpukube_owner": "ml-platform",
    "gpukube_place": "11111111-2222-3333-4444-555555555555/ml/train/a100mig",
    "gpukube_pool": "a100mig",
}
PLAIN_COPY = {**COPY, "cost": "1", "gpukube_tags": "cost"}
GPU = str(GPU_TAINT)
EDITS: dict[str, tuple[Observed, Target, dict[str, object]]] = {
    "count": (live(PLAIN), replace(PLAIN, nodes=Nodes(4, 4, 4, autoscaled=False)), {"count": 4}),
    "autoscaler on": (
        live(PLAIN, count=2),
        AUTOSCALED,
        {"enableAutoScaling": True, "minCount": 1, "maxCount": 3},
    ),
    "autoscaler off": (
        live(AUTOSCALED, count=3),
        PLAIN,
        {"count": 1, "enableAutoScaling": False, "minCount": None, "maxCount": None},
    ),
    "one bound": (
        live(AUTOSCALED, count=3),
        replace(AUTOSCALED, nodes=Nodes(1, 1, 9, autoscaled=True)),
        {"maxCount": 9},
    ),
    "label": (live(PLAIN), replace(PLAIN, labels={"team": "audio"}), {"nodeLabels": {**MARKS, "team": "audio"}}),
    "last label": (live(PLAIN), replace(PLAIN, labels={}), {"nodeLabels": MARKS}),
    "label of Spot": (
        live(SPOT),
        replace(SPOT, labels={}),
        {"nodeLabels": {**MARKS, SPOT_KEY: "spot"}},
    ),
    "protection": (
        live(PLAIN),
        replace(PLAIN, protect=True),
        {
            "nodeLabels": {**MARKS, "team": "vision", "gpukube.io/protect": "true"},
            "tags": {**PLAIN_COPY, "gpukube_protect": "true"},
        },
    ),
    "no protection": (
        live(replace(PLAIN, protect=True)),
        PLAIN,
        {"nodeLabels": {**MARKS, "team": "vision"}, "tags": PLAIN_COPY},
    ),
    "taint": (
        live(PLAIN),
        replace(PLAIN, taints=(GPU_TAINT, Taint("a", "b", "NoSchedule"))),
        {"nodeTaints": ["a=b:NoSchedule", GPU]},
    ),
    "last taint": (live(PLAIN), replace(PLAIN, taints=()), {"nodeTaints": []}),
    "last taint of Spot": (live(SPOT), replace(SPOT, taints=()), {"nodeTaints": [str(SPOT_TAINT)]}),
    "tag": (
        live(PLAIN, tags={"cost": "1", "policy": "p"}),
        replace(PLAIN, tags={"cost": "2"}),
        {"tags": {**COPY, "cost": "2", "policy": "p", "gpukube_tags": "cost"}},
    ),
    "tag in another case": (
        live(PLAIN, tags={"Cost": "1", "policy": "p"}),
        replace(PLAIN, tags={"cost": "1"}),
        {"tags": {**COPY, "cost": "1", "policy": "p", "gpukube_tags": "cost"}},
    ),
    "one upgrade setting": (
        live(PLAIN),
        replace(PLAIN, upgrade=Upgrade(max_surge="1")),
        {"upgradeSettings": {"maxSurge": "1", "maxUnavailable": "0"}},
    ),
    "version": (
        live(PLAIN, orchestratorVersion="1.33.5", currentOrchestratorVersion="1.33.5"),
        replace(PLAIN, kubernetes_version="1.34.2"),
        {"orchestratorVersion": "1.34.2"},
    ),
    "native upgrade setting beside ours": (
        live(PLAIN),
        replace(PLAIN, upgrade=Upgrade("1"), native={"upgradeSettings": {"drainTimeoutInMinutes": 60}}),
        {"upgradeSettings": {"maxSurge": "1", "maxUnavailable": "0", "drainTimeoutInMinutes": 60}},
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_update_when_one_thing_changes_then_the_rest_goes_back_as_read(name: str) -> None:
    before, after, change = EDITS[name]
    (request,) = update(before, after)

    assert request.operation == "agent_pools.begin_create_or_update"
    assert (request.params["etag"], request.params["match_condition"]) == ("e7", "if-not-modified")
    assert not sent(request).keys() & NOT_SENT.keys()
    assert moved(before, request) == change


def test_update_when_the_count_alone_is_asked_for_then_no_bounds_stay_beside_a_pool_without_autoscaler() -> None:
    before = live(AUTOSCALED, count=3)
    (request,) = PROVIDER.requests.update(desire(PLAIN), before, (Change(COUNT, None, 1),))

    assert moved(before, request) == EDITS["autoscaler off"][2]


def test_update_when_aks_answers_nulls_then_they_are_left_out() -> None:
    (request,) = update(live(PLAIN, gpuInstanceProfile=None), replace(PLAIN, labels={}))

    assert None not in sent(request).values()


def test_update_when_made_then_the_pool_as_read_is_left_alone() -> None:
    before = live(PLAIN)
    update(before, replace(PLAIN, labels={}, upgrade=Upgrade(max_surge="1")))

    assert before == live(PLAIN)


def test_update_when_nodes_roll_then_each_roll_comes_alone_after_everything_else() -> None:
    old = {"orchestratorVersion": "1.33.5", "currentOrchestratorVersion": "1.33.5"}
    before = live(PLAIN, osSKU="Ubuntu2204", **old)
    after = replace(PLAIN, kubernetes_version="1.34", image="Ubuntu2404", upgrade=Upgrade(max_surge="1"))
    first, second, third = update(before, replace(after, nodes=Nodes(2, 2, 2, autoscaled=False)))

    assert moved(before, first) == {"count": 2, "upgradeSettings": {"maxSurge": "1", "maxUnavailable": "0"}}
    assert moved(before, second) == {**moved(before, first), "osSKU": "Ubuntu2404"}
    assert moved(before, third) == {**moved(before, second), "orchestratorVersion": "1.34"}


def test_update_when_the_system_becomes_another_family_sends_the_count_as_read() -> None:
    before = live(PLAIN, nodeImageVersion="AKSUbuntu-2404gen2containerd-1")
    first, second = update(before, replace(PLAIN, image="AzureLinux", nodes=Nodes(3, 3, 3, autoscaled=False)))

    assert moved(before, first) == {"count": 3}
    assert moved(before, second) == {"count": 3, "osSKU": "AzureLinux"}


def test_update_when_the_system_becomes_container_linux_sends_its_secure_boot_with_it() -> None:
    secure = {"securityProfile": {"enableSecureBoot": True, "enableVTPM": True}}
    (request,) = update(live(PLAIN), replace(PLAIN, image="AzureContainerLinux", native=secure))

    assert moved(live(PLAIN), request) == {"osSKU": "AzureContainerLinux", **secure}


def test_update_when_the_value_is_an_arm_id_or_a_list_then_sent_as_written() -> None:
    """`Change` holds ids in lower case and lists as tuples; neither may reach the wire."""
    native = {"vnetSubnetID": SUBNET, "networkProfile": {"applicationSecurityGroups": [SUBNET, "/Other"]}}
    (request,) = update(live(PLAIN), replace(PLAIN, native=native))

    assert moved(live(PLAIN), request) == native


def test_update_when_a_field_has_no_call_then_nothing_is_sent_silently() -> None:
    with pytest.raises(LookupError, match="instanceType"):
        PROVIDER.requests.update(desire(PLAIN), live(PLAIN), (Change(INSTANCE_TYPE, "a", "b"),))


def test_update_when_aks_gives_no_etag_then_no_empty_guard() -> None:
    (request,) = update(live(PLAIN, eTag=None), replace(PLAIN, labels={}))

    assert not request.params.keys() & {"etag", "match_condition"}


@pytest.mark.parametrize(
    ("before", "nodes", "change"),
    [
        (live(PLAIN), Nodes(5, 5, 5, autoscaled=False), {"count": 5}),
        (live(AUTOSCALED, count=2), Nodes(9, 2, 6, autoscaled=True), {"minCount": 2, "maxCount": 6}),
    ],
    ids=["fixed", "autoscaled"],
)
def test_scale_when_asked_then_only_the_size_differs(before: Observed, nodes: Nodes, change: dict[str, object]) -> None:
    request = PROVIDER.requests.scale(CLUSTER, before, nodes)

    assert moved(before, request) == change
    assert request.params["etag"] == "e7"


@pytest.mark.parametrize("nodes", [Nodes(1001, 1001, 1001, autoscaled=False), Nodes(1, 1, 1001, autoscaled=True)])
def test_scale_when_a_pool_cannot_have_so_many_then_refused(nodes: Nodes) -> None:
    with pytest.raises(SpecError) as caught:
        PROVIDER.requests.scale(CLUSTER, live(PLAIN), nodes)

    (problem,) = caught.value.diagnostics
    assert (problem.code, str(problem.where)) == ("aks-node-count", "train-aks/a100mig")


def test_scale_when_a_pool_can_just_have_so_many_then_asked_for() -> None:
    request = PROVIDER.requests.scale(CLUSTER, live(PLAIN), Nodes(1000, 1000, 1000, autoscaled=False))

    assert sent(request)["count"] == 1000


def test_recreate_when_the_pool_matches_then_it_is_put_again_as_read() -> None:
    failed = live(SPOT, provisioningState="Failed")
    request = PROVIDER.requests.recreate(desire(SPOT), failed)

    assert request is not None
    assert moved(failed, request) == {}
    assert request.params["etag"] == "e7"


def test_recreate_when_a_label_differs_too_then_in_one_call() -> None:
    failed = live(PLAIN, provisioningState="Failed")
    request = PROVIDER.requests.recreate(desire(replace(PLAIN, labels={})), failed)

    assert request is not None
    assert moved(failed, request) == {"nodeLabels": MARKS}


def test_recreate_when_autoscaled_then_the_autoscalers_count_stays() -> None:
    request = PROVIDER.requests.recreate(desire(AUTOSCALED), live(AUTOSCALED, count=3, provisioningState="Failed"))

    assert request is not None
    assert sent(request)["count"] == 3


@pytest.mark.parametrize(
    "after",
    [
        replace(PLAIN, nodes=Nodes(0, 0, 0, autoscaled=False)),
        replace(PLAIN, zones=("1",)),
        replace(PLAIN, taints=(GPU_TAINT, Taint("a", "b", "NoExecute"))),
    ],
    ids=["fewer nodes", "another zone", "NoExecute"],
)
def test_recreate_when_pods_would_suffer_or_no_put_can_then_not_repaired_in_passing(after: Target) -> None:
    assert PROVIDER.requests.recreate(desire(after), live(PLAIN, provisioningState="Failed")) is None


names = st.text("abcdefgh", min_size=1, max_size=3)
targets = st.builds(
    lambda labels, tags, count, bounds, protect: replace(
        PLAIN,
        labels=labels,
        tags=tags,
        protect=protect,
        nodes=Nodes(bounds[0], min(bounds), max(bounds), autoscaled=True)
        if bounds
        else Nodes(count, count, count, autoscaled=False),
    ),
    st.dictionaries(names, names, max_size=3),
    st.dictionaries(names, names, max_size=3),
    st.integers(0, 9),
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.booleans(),
)


@given(targets, targets)
def test_update_when_its_body_is_read_back_then_no_difference_is_left(before: Target, after: Target) -> None:
    found = live(before)
    body = found
    for request in update(found, after):
        body = observe_pool({"name": after.name, "properties": {**sent(request), **SERVICE}})

    assert diff_fields(desire(after).fields, body.fields) == ()
