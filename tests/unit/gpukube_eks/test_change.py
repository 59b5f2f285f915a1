"""Changes become deltas that lead from the live group to the declared one, whatever both hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.diff import diff_fields
from gpukube.core.values import Capacity, Nodes, Reservation, Taint
from gpukube.errors import Conflict, Moved, SpecError
from gpukube_eks.pool.change import require_unmoved, translate_changes, translate_scale
from gpukube_eks.pool.fields import native_taint
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.translate import group_of, with_place
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Request, TaintEffect

T4 = eks_target("g4dn.xlarge", gpu_taint=False, taints=())
KEYS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["1", "2", "3"])
EFFECTS: list[TaintEffect] = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
IDENTITIES = st.tuples(KEYS, st.sampled_from(EFFECTS))
SIZES = st.integers(0, 5)


def live_group(**changes: object) -> dict[str, object]:
    """The group that a creation leads to."""
    body = group_of(with_place(desired_of(T4), "arn:role", ("subnet-a",)))
    return {**body, "status": "ACTIVE", "nodegroupArn": "arn:x", **changes}


def calls(live: Mapping[str, object], **changes: object) -> tuple[Request, ...]:
    desired, observed = desired_of(replace(T4, **changes)), observe_group(live, {}, {})  # type: ignore[arg-type]  # test data
    return translate_changes(desired, observed, diff_fields(desired.fields, observed.fields))


def body_of(request: Request) -> Mapping[str, Mapping[str, object]]:
    return cast("Mapping[str, Mapping[str, object]]", request.params["nodegroup"])


@given(st.dictionaries(KEYS, TEXTS), st.dictionaries(KEYS, TEXTS))
def test_labels_when_changed_lead_from_one_to_the_other(old: dict[str, str], new: dict[str, str]) -> None:
    ours = cast("dict[str, str]", live_group()["labels"])
    sent = calls(live_group(labels={**ours, **old}), labels=new)
    delta = body_of(sent[0])["labels"] if sent else {}
    added = cast("dict[str, str]", delta.get("addOrUpdateLabels", {}))
    removed = cast("list[str]", delta.get("removeLabels", []))

    assert {key: value for key, value in {**old, **added}.items() if key not in removed} == new
    assert all(old.get(key) != value for key, value in added.items())
    assert set(removed) == old.keys() - new.keys()
    assert bool(sent) == (old != new)


@given(st.dictionaries(IDENTITIES, TEXTS), st.dictionaries(IDENTITIES, TEXTS))
def test_taints_when_changed_lead_from_one_to_the_other(
    old: dict[tuple[str, TaintEffect], str], new: dict[tuple[str, TaintEffect], str]
) -> None:
    def taints(of: dict[tuple[str, TaintEffect], str]) -> tuple[Taint, ...]:
        return tuple(Taint(key, value, effect) for (key, effect), value in of.items())

    sent = calls(live_group(taints=[native_taint(taint) for taint in taints(old)]), taints=taints(new))
    delta = cast("Mapping[str, list[dict[str, str]]]", body_of(sent[0])["taints"] if sent else {})
    found = {(one["key"], one["effect"]): one for one in map(native_taint, taints(old))}
    for one in delta.get("removeTaints", []):
        assert found.pop((one["key"], one["effect"])) == one
    found |= {(one["key"], one["effect"]): one for one in delta.get("addOrUpdateTaints", [])}

    assert {tuple(one.values()) for one in found.values()} == {tuple(native_taint(t).values()) for t in taints(new)}
    assert bool(sent) == (old != new)


@given(st.tuples(SIZES, SIZES, SIZES), st.tuples(SIZES, SIZES, SIZES), st.booleans())
def test_scale_when_asked_leads_to_sizes_that_eks_takes_and_ends_no_node_needlessly(
    old: tuple[int, int, int], new: tuple[int, int, int], autoscaled: bool  # noqa: FBT001 - drawn
) -> None:  # fmt: skip
    least, count, most = sorted(new)
    nodes = Nodes(count, least, most, autoscaled=True) if autoscaled else Nodes(count, count, count, autoscaled=False)
    low, size, high = sorted(old)
    live = {"minSize": low, "maxSize": max(1, high), "desiredSize": size}

    request = translate_scale(CLUSTER, observe_group(live_group(scalingConfig=live), {}, {}), nodes)

    sizes = {**live, **cast("dict[str, int]", body_of(request)["scalingConfig"])}
    assert (sizes["minSize"], sizes["maxSize"]) == (nodes.minimum, max(1, nodes.maximum))
    assert sizes["minSize"] <= sizes["desiredSize"] <= sizes["maxSize"]
    if autoscaled and nodes.minimum <= size <= max(1, nodes.maximum):
        assert sizes["desiredSize"] == size
    if not autoscaled:
        assert sizes["desiredSize"] == count


def test_change_when_nothing_moved_is_let_through_and_when_gone_is_not() -> None:
    (request,) = calls(live_group(), labels={"team": "x"})

    require_unmoved(request, live_group(), "train-eks/a100mig")
    with pytest.raises(Conflict, match="it is gone") as caught:
        require_unmoved(request, None, "train-eks/a100mig")

    assert isinstance(caught.value, Moved)


def test_tags_when_the_group_is_busy_are_let_through() -> None:
    (request,) = calls(live_group(), tags={"cost": "a"})

    require_unmoved(request, live_group(status="UPDATING"), "train-eks/a100mig")


def version_call(live: dict[str, object], **changes: object) -> Mapping[str, object]:
    (request,) = calls({**live, "version": "1.33", "releaseVersion": "1.33.1-20260714"}, **changes)
    assert request.operation == "update_nodegroup_version"
    return body_of(request)


def test_version_when_newer_brings_its_own_newest_release() -> None:
    body = version_call(live_group(), kubernetes_version="1.34")

    assert (body["version"], "releaseVersion" in body) == ("1.34", False)


def test_version_when_newer_with_a_release_brings_that_one() -> None:
    body = version_call(live_group(), kubernetes_version="1.34", native={"releaseVersion": "1.34.2-20260714"})

    assert (body["version"], body["releaseVersion"]) == ("1.34", "1.34.2-20260714")


def test_version_when_it_stays_is_sent_with_the_live_release() -> None:
    body = version_call(live_group(), max_pods=60)

    assert (body["version"], body["releaseVersion"]) == ("1.33", "1.33.1-20260714")


BLOCK = {"capacityType": "CAPACITY_BLOCK", "instanceTypes": None}
RESERVED = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-1"))


@pytest.mark.parametrize(
    ("nodes", "size"),
    [(Nodes(1, 1, 1, autoscaled=False), 1), (Nodes(0, 0, 5, autoscaled=True), 2)],
    ids=["fixed", "autoscaled"],
)
def test_version_when_a_block_is_in_use_is_refused(nodes: Nodes, size: int) -> None:
    sizes = {"minSize": nodes.minimum, "maxSize": nodes.maximum, "desiredSize": size}

    with pytest.raises(SpecError, match="nodes of a Capacity Block in use") as caught:
        calls(live_group(**BLOCK, scalingConfig=sizes), nodes=nodes, capacity=RESERVED, max_pods=60)

    assert caught.value.diagnostics[0].code == "block-in-use"


def test_version_when_a_block_shrinks_to_nothing_first_is_let_through() -> None:
    sizes = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
    nodes = Nodes(0, 0, 0, autoscaled=False)

    sent = calls(live_group(**BLOCK, scalingConfig=sizes), nodes=nodes, capacity=RESERVED, max_pods=60)

    assert [request.operation for request in sent] == ["update_nodegroup_config", "update_nodegroup_version"]
