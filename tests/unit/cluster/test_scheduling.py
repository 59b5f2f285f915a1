"""Selector, affinity and taints: does a pod go to a node, and if not, why."""

from __future__ import annotations

import pytest

from gpukube.cluster.kube.views import Toleration, placement_of
from gpukube.cluster.state.scheduling import daemon_misfits, misfits, tolerates
from gpukube.core.values import Taint

LABELS = {"pool": "gpu", "zone": "1", "count": "8"}


def term(*expressions: dict[str, object]) -> dict[str, object]:
    return {"matchExpressions": list(expressions)}


def wants(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def required(*terms: object) -> dict[str, object]:
    path = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {path: {"nodeSelectorTerms": list(terms)}}}}


AFFINITIES = {
    "no affinity": ({}, True),
    "in": (required(term(wants("pool", "In", "cpu", "gpu"))), True),
    "in another": (required(term(wants("pool", "In", "cpu"))), False),
    "in without the label": (required(term(wants("team", "In", "x"))), False),
    "not in": (required(term(wants("pool", "NotIn", "cpu"))), True),
    "not in without the label": (required(term(wants("team", "NotIn", "x"))), True),
    "not in but is": (required(term(wants("pool", "NotIn", "gpu"))), False),
    "exists": (required(term(wants("pool", "Exists"))), True),
    "exists without the label": (required(term(wants("team", "Exists"))), False),
    "does not exist": (required(term(wants("team", "DoesNotExist"))), True),
    "does not exist but does": (required(term(wants("pool", "DoesNotExist"))), False),
    "greater": (required(term(wants("count", "Gt", "4"))), True),
    "not greater": (required(term(wants("count", "Gt", "8"))), False),
    "less": (required(term(wants("count", "Lt", "9"))), True),
    "less of no number": (required(term(wants("pool", "Lt", "9"))), False),
    "unknown operator": (required(term(wants("pool", "Like", "g"))), False),
    "terms are alternatives": (required(term(wants("pool", "In", "cpu")), term(wants("zone", "In", "1"))), True),
    "expressions are all needed": (required(term(wants("pool", "In", "gpu"), wants("zone", "In", "2"))), False),
    "an empty term matches nothing": (required({}), False),
    "no terms match nothing": (required(), False),
    "the node's name": (required({"matchFields": [wants("metadata.name", "In", "n1")]}), True),
    "another node's name": (required({"matchFields": [wants("metadata.name", "In", "n2")]}), False),
    "preferred is no demand": ({"affinity": {"nodeAffinity": {"preferredDuringScheduling": []}}}, True),
    "selector": ({"nodeSelector": {"pool": "gpu"}}, True),
    "selector of another value": ({"nodeSelector": {"pool": "cpu"}}, False),
    "selector without the label": ({"nodeSelector": {"team": "x"}}, False),
}


@pytest.mark.parametrize("case", AFFINITIES)
def test_misfits_when_labels_are_judged_then_as_the_scheduler(case: str) -> None:
    spec, fits = AFFINITIES[case]
    assert (not misfits(placement_of(spec), LABELS, (), name="n1")) is fits


TOLERATIONS = {
    "none": ((), False),
    "equal": ((Toleration("sku", "Equal", "gpu", "NoSchedule"),), True),
    "equal to another value": ((Toleration("sku", "Equal", "cpu", "NoSchedule"),), False),
    "exists": ((Toleration("sku", "Exists", "", "NoSchedule"),), True),
    "exists of any effect": ((Toleration("sku", "Exists"),), True),
    "another effect": ((Toleration("sku", "Exists", "", "NoExecute"),), False),
    "everything": ((Toleration("", "Exists"),), True),
    "another key": ((Toleration("nvidia.com/gpu", "Exists"),), False),
}


@pytest.mark.parametrize("case", TOLERATIONS)
def test_tolerates_when_a_taint_is_hard_then_as_the_scheduler(case: str) -> None:
    tolerations, fits = TOLERATIONS[case]
    assert tolerates(tolerations, Taint("sku", "gpu", "NoSchedule")) is fits


def test_misfits_when_a_taint_is_soft_then_it_hinders_nothing() -> None:
    assert not misfits(placement_of({}), {}, (Taint("sku", "gpu", "PreferNoSchedule"),))


def test_misfits_when_a_taint_stands_in_the_way_then_it_is_named() -> None:
    taint = Taint("sku", "gpu", "NoSchedule")
    (found,) = misfits(placement_of({}), {}, (taint,))
    assert (found.kind, found.taint, found.message) == ("taint", taint, "taint sku=gpu:NoSchedule is not tolerated")


def test_misfits_when_a_selector_fails_then_wanted_and_seen_are_said() -> None:
    (found,) = misfits(placement_of({"nodeSelector": {"pool": "cpu"}}), LABELS, ())
    assert found.message == "nodeSelector needs pool=cpu, the node has pool=gpu"


def test_misfits_when_a_key_may_still_come_then_it_is_taken_to_match() -> None:
    spec = placement_of({"nodeSelector": {"cloud/os": "x"}, **required(term(wants("cloud/size", "In", "l")))})
    assert not misfits(spec, {}, (), unknown=lambda key: key.startswith("cloud/"))


def test_misfits_when_a_key_that_may_come_is_there_then_its_value_counts() -> None:
    spec = placement_of({"nodeSelector": {"cloud/os": "x"}})
    assert misfits(spec, {"cloud/os": "y"}, (), unknown=lambda _key: True)


@pytest.mark.parametrize("key", ["node.kubernetes.io/unschedulable", "node.kubernetes.io/memory-pressure"])
def test_daemon_misfits_when_the_node_has_troubles_then_daemons_go_there(key: str) -> None:
    taint = Taint(key, "", "NoSchedule")
    assert misfits(placement_of({}), {}, (taint,))
    assert not daemon_misfits(placement_of({}), {}, (taint,))


MORE = {
    "numbers only": (required(term(wants("count", "Gt", "4x"))), LABELS, False),
    "a number with an underscore": (required(term(wants("count", "Lt", "1_0"))), LABELS, False),
    "two numbers to compare with": (required(term(wants("count", "Gt", "4", "5"))), LABELS, False),
    "a negative number": (required(term(wants("count", "Gt", "-1"))), LABELS, True),
    "greater without the label": (required(term(wants("size", "Gt", "1"))), LABELS, False),
    "fields and expressions are both needed": (
        required({**term(wants("pool", "In", "gpu")), "matchFields": [wants("metadata.name", "In", "n2")]}),
        LABELS,
        False,
    ),
    "not that node": (required({"matchFields": [wants("metadata.name", "NotIn", "n2")]}), LABELS, True),
    "selector and affinity are both needed": (
        {"nodeSelector": {"pool": "gpu"}, **required(term(wants("zone", "In", "2")))},
        LABELS,
        False,
    ),
}


@pytest.mark.parametrize("case", MORE)
def test_misfits_when_a_demand_is_unusual_then_as_the_scheduler(case: str) -> None:
    spec, labels, fits = MORE[case]
    assert (not misfits(placement_of(spec), labels, (), name="n1")) is fits


def test_misfits_when_the_node_is_to_come_then_it_may_have_any_name() -> None:
    spec = placement_of(required({"matchFields": [wants("metadata.name", "In", "n2")]}))
    assert not misfits(spec, {}, ())


def test_misfits_when_all_terms_fail_then_their_keys_are_given_once() -> None:
    spec = placement_of(
        required(term(wants("pool", "In", "cpu"), wants("zone", "In", "1")), term(wants("pool", "In", "tpu")))
    )
    (found,) = misfits(spec, LABELS, ())
    assert (found.kind, found.keys) == ("affinity", ("pool",))


def test_tolerates_when_no_operator_is_written_then_equal() -> None:
    read = placement_of({"tolerations": [{"key": "sku", "value": "gpu"}]}).tolerations
    assert tolerates(read, Taint("sku", "gpu", "NoExecute"))
    assert not tolerates(read, Taint("sku", "cpu", "NoExecute"))
