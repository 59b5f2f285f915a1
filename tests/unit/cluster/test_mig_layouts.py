"""The file of the MIG manager among the operator's values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from gpukube.cluster.proof.counts import count_findings
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.core.jsontree import at, text, tree
from gpukube.gpu.sharing import MigCut, Sharing
from tests.unit.cluster.builders import SINGLE, operated, operated_node

MIX = Sharing(mig=MigCut("", "mixed", ("3g.20gb", "2g.10gb", "2g.10gb")))
OTHER = Sharing(mig=MigCut("", "mixed", ("4g.20gb", "3g.20gb")))
CONFIG = ("migManager", "config")
ALONE = ReleaseContext()


COUNTS: dict[str, tuple[dict[str, int], list[str]]] = {
    "as promised": ({"nvidia.com/mig-2g.10gb": 16, "nvidia.com/mig-3g.20gb": 8}, []),
    "one kind is missing": (
        {"nvidia.com/mig-2g.10gb": 16},
        ["nvidia.com/mig-3g.20gb is 0, not 8; nvidia.com/mig-2g.10gb is 16"],
    ),
    "cut by a profile": (
        {"nvidia.com/mig-1g.5gb": 56},
        [
            "nvidia.com/mig-2g.10gb is 0, not 16; nvidia.com/mig-1g.5gb is 56",
            "nvidia.com/mig-3g.20gb is 0, not 8; nvidia.com/mig-1g.5gb is 56",
        ],
    ),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts_when_a_node_is_cut_by_a_layout_then_each_kind_is_compared(case: str) -> None:
    shown, seen = COUNTS[case]
    pool = operated(sharing=MIX)
    allocatable = {name: str(count) for name, count in shown.items()}
    node = replace(operated_node(pool), capacity=allocatable, allocatable=allocatable)
    found = count_findings(pool, node)
    assert [finding.seen for finding in found] == seen
    assert {step_of(finding) for finding in found} <= {"geometry"}


def entries(values: dict[str, object]) -> dict[str, object]:
    content = yaml.safe_load(text(values, *CONFIG, "data", "config.yaml"))
    assert content["version"] == "v1"
    return tree(content, "mig-configs")


def test_values_when_no_pool_has_a_layout_then_the_manager_makes_its_own_entries() -> None:
    assert at(operator_values([operated(sharing=SINGLE)], ALONE), *CONFIG) is None


def test_values_when_a_pool_has_a_layout_then_its_entry_and_all_that_labels_may_name_already() -> None:
    pool = operated(sharing=MIX)
    values = operator_values([operated(sharing=SINGLE, pool="plain"), pool], ALONE)
    made = entries(values)
    assert made[pool.ownership.labels["nvidia.com/mig.config"]] == [
        {"devices": "all", "mig-enabled": True, "mig-devices": {"3g.20gb": 1, "2g.10gb": 2}}
    ]
    assert {"all-disabled", "all-enabled", "all-1g.5gb", "all-7g.40gb"} <= set(made)
    assert (at(values, *CONFIG, "create"), at(values, *CONFIG, "default")) == (True, "all-disabled")


def test_values_when_made_again_then_the_same_and_another_name_when_the_content_changes() -> None:
    one = operator_values([operated(sharing=MIX)], ALONE)
    assert operator_values([operated(sharing=MIX)], ReleaseContext(live=one)) == one
    two = operator_values([operated(sharing=OTHER)], ReleaseContext(live=one))
    assert at(two, *CONFIG, "name") != at(one, *CONFIG, "name")
    assert text(one, *CONFIG, "name").startswith("gpukube-mig-")


@pytest.mark.parametrize("where", ["live", "missed"])
def test_values_when_others_have_layouts_then_these_stay(where: str) -> None:
    theirs = operator_values([operated(sharing=OTHER)], ALONE)
    context = ReleaseContext(live=theirs) if where == "live" else ReleaseContext(missed=(theirs,))
    made = entries(operator_values([operated(sharing=MIX)], context))
    assert {"mix-1x4g.20gb_1x3g.20gb", "mix-1x3g.20gb_2x2g.10gb"} <= set(made)
    kept = operator_values([operated(sharing=SINGLE)], context)
    assert "mix-1x4g.20gb_1x3g.20gb" in entries(kept)


def test_values_when_an_entry_was_edited_then_ours_is_written_and_what_cannot_be_read_is_replaced() -> None:
    broken: dict[str, object] = {"migManager": {"config": {"data": {"config.yaml": "a: [b"}}}}
    assert "mix-1x3g.20gb_2x2g.10gb" in entries(operator_values([operated(sharing=MIX)], ReleaseContext(live=broken)))
    edited = {"mig-configs": {"mix-1x3g.20gb_2x2g.10gb": [], "all-1g.5gb": [], "mine": [{"devices": [0]}]}}
    live: dict[str, object] = {"migManager": {"config": {"data": {"config.yaml": yaml.safe_dump(edited)}}}}
    made = entries(operator_values([operated(sharing=MIX)], ReleaseContext(live=live)))
    assert made["mine"] == [{"devices": [0]}]
    assert made["mix-1x3g.20gb_2x2g.10gb"]
    assert made["all-1g.5gb"]
