"""What a change costs: only the nodes that go, where only some do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cli.rendering.words import cost_words
from gpukube.core.fields import COUNT, MOST, FieldPath
from gpukube.core.values import Change, ClassifiedChange, Nodes, PoolPlan, UpdateRow
from gpukube.engine.plan.losses import with_costs
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import desire

FIXED, BOUNDED = Nodes(1, 1, 1, autoscaled=False), Nodes(2, 1, 2, autoscaled=True)


def classified(field: FieldPath, old: object, new: object, kind: str = "disruptive") -> ClassifiedChange:
    return ClassifiedChange(Change(field, old, new), UpdateRow(field, kind, "", "", ""))  # type: ignore[arg-type]


FEWER = classified(COUNT, 2, 1)
LOWER = classified(MOST, 5, 2)
CASES: dict[str, tuple[Nodes, int, tuple[ClassifiedChange, ...], str]] = {
    "one of two goes": (FIXED, 2, (FEWER,), "1 of 2 nodes, 8 GPUs, pods unknown"),
    "a bound below what is there": (BOUNDED, 3, (LOWER,), "1 of 3 nodes, 8 GPUs, pods unknown"),
    "a bound above what is there": (BOUNDED, 1, (LOWER,), "0 of 1 node, 0 GPUs, pods unknown"),
    "all are disturbed besides": (
        FIXED,
        2,
        (FEWER, classified(FieldPath("image"), "a", "b")),
        "2 nodes, 16 GPUs, pods unknown",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("declared", [True, False])
def test_cost_when_a_pool_gets_smaller_then_the_nodes_that_go(case: str, declared: bool) -> None:  # noqa: FBT001
    nodes, live, changes, words = CASES[case]
    desired = desire(nodes=nodes)
    observed = replace(make_observed(desired), nodes=live)
    plan = PoolPlan(
        CLUSTER, "a", "a", "update", "", desired if declared else None, observed, changes, (), ()
    )  # fmt: skip
    (costed,) = with_costs([plan], None, None)
    assert costed.loss is not None
    loss = {"nodes": costed.loss.nodes, "of": costed.loss.of, "gpus": costed.loss.gpus, "pods": None}
    assert cost_words(loss) == words  # type: ignore[arg-type]  # as in the document
