"""What an autoscaler believes of pools, and what is said of it before they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.autoscaler_template import check_template, compare, devices_text, find_mismatch
from gpukube.core.cloud_check import Autoscaler
from gpukube.core.resolve import promise_of
from gpukube.core.values import Nodes, Ownership
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.testing.fakes import FakeProvider
from gpukube_aks.diagnose import DIAGNOSIS as AKS
from gpukube_eks import EksProvider
from gpukube_eks.diagnose import DIAGNOSIS as EKS
from gpukube_gke.diagnose import DIAGNOSIS as GKE
from tests.builders import make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.cloud_check import CloudView
    from gpukube.core.values import Desired, Observed

LABEL = "cloud.example/accelerator"
FROM_ZERO = Nodes(0, 0, 3, autoscaled=True)
FROM_ONE = Nodes(1, 1, 3, autoscaled=True)
FIXED = Nodes(2, 2, 2, autoscaled=False)
OWNED = Ownership("cloud", "chart", "c-1", {}, "test")
WHOLE = Sharing()
SINGLE = Sharing(MigCut("1g.5gb", "single"))
MIXED = Sharing(MigCut("1g.5gb", "mixed"))
LAYOUT = Sharing(MigCut("", "mixed", ("3g.20gb", "1g.5gb")))
SLICED = Sharing(None, Slicing("time-slicing", 4))
RENAMED = Sharing(None, Slicing("time-slicing", 4, rename=True))
MIXED_RENAMED = Sharing(MigCut("1g.5gb", "mixed"), Slicing("time-slicing", 2, rename=True))
SINGLE_RENAMED = Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2, rename=True))


def physical(pool: Observed) -> Mapping[str, int] | None:
    """Expect what the machine's type tells, as an autoscaler does that reads instance types."""
    machine = require_machine("aks", pool.instance_type)
    return {"nvidia.com/gpu": machine.devices}


def fix_command(view: CloudView, pool: Observed, devices: Mapping[str, int]) -> str:
    return f"{view.name_of(pool)} {devices}"


SCALER = Autoscaler(physical, fix_command, LABEL)


def pool(sharing: Sharing, nodes: Nodes = FROM_ZERO) -> Desired:
    target = make_target(sharing=sharing, nodes=nodes)
    made = FakeProvider().desired(target, OWNED, promise_of(target))
    return replace(made, labels={**made.labels, LABEL: "nvidia"})


BELIEFS: dict[str, tuple[Sharing, Nodes, dict[str, int] | None, bool]] = {
    "whole GPUs": (WHOLE, FROM_ZERO, None, False),
    "single": (SINGLE, FROM_ZERO, {"nvidia.com/gpu": 56}, False),
    "mixed": (MIXED, FROM_ZERO, {"nvidia.com/mig-1g.5gb": 56}, True),
    "a layout": (LAYOUT, FROM_ZERO, {"nvidia.com/mig-1g.5gb": 8, "nvidia.com/mig-3g.20gb": 8}, True),
    "sliced": (SLICED, FROM_ZERO, {"nvidia.com/gpu": 32}, False),
    "renamed": (RENAMED, FROM_ZERO, {"nvidia.com/gpu.shared": 32}, True),
    "never empty": (MIXED, FROM_ONE, None, False),
    "of a fixed size": (MIXED, FIXED, None, False),
}


@pytest.mark.parametrize("case", BELIEFS)
def test_believed_when_a_pool_may_be_empty_then_what_is_wrong_and_whether_it_ever_starts(case: str) -> None:
    sharing, nodes, wrong, blind = BELIEFS[case]
    mismatch = find_mismatch(pool(sharing, nodes), SCALER)
    assert (mismatch.wrong if mismatch else None) == wrong
    assert (mismatch is not None and mismatch.never_scales) is blind
    if mismatch:
        assert mismatch.expected == {"nvidia.com/gpu": 8}
        assert mismatch.real == pool(sharing).promise.per_node
        assert set(mismatch.unknown) == {name for name in mismatch.real if name != "nvidia.com/gpu"}


def test_believed_when_nobody_needs_teaching_or_nothing_is_known_then_nothing() -> None:
    assert find_mismatch(pool(MIXED), None) is None
    assert find_mismatch(pool(MIXED), Autoscaler(lambda _pool: None, fix_command, LABEL)) is None


def test_compare_when_more_is_expected_than_shown_then_only_what_is_shown_counts() -> None:
    assert compare({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 1}) is None
    mismatch = compare({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 0})
    assert mismatch is not None
    assert (mismatch.never_scales, mismatch.unknown) == (True, ())


UNREADY_FIX = {
    "mixed": (MIXED, FROM_ONE, "write strategy: single, or a fixed nodes.count"),
    "renamed": (RENAMED, FROM_ONE, "write renameByDefault: false, or a fixed nodes.count"),
    "both": (MIXED_RENAMED, FROM_ONE, "write strategy: single and renameByDefault: false, or a fixed nodes.count"),
    "single and renamed": (SINGLE_RENAMED, FROM_ONE, "write renameByDefault: false, or a fixed nodes.count"),
    "a layout": (LAYOUT, FROM_ONE, "write a fixed nodes.count"),
    "single": (SINGLE, FROM_ONE, None),
    "of a fixed size": (MIXED, FIXED, None),
}


@pytest.mark.parametrize("case", UNREADY_FIX)
def test_check_when_nodes_never_show_gpus_by_that_name_then_warns(case: str) -> None:
    sharing, nodes, fix = UNREADY_FIX[case]
    found = check_template(pool(sharing, nodes), SCALER)
    assert [(d.code, d.severity, d.fix) for d in found] == ([("autoscaler-unready", "warning", fix)] if fix else [])
    assert all("and no nvidia.com/gpu" in d.seen for d in found)


def test_check_when_no_node_has_the_label_then_none_is_taken_for_unready() -> None:
    without = replace(pool(MIXED, FROM_ONE), labels={})
    assert check_template(without, SCALER) == []


MISLED = {
    "fewer than there are": (SINGLE, "warning", "write min: 1 or more, or keep max low (now 3)", "the wrong number"),
    "names it does not know": (MIXED, "error", "write min: 1 or more", "start no node"),
}


@pytest.mark.parametrize("case", MISLED)
def test_check_when_the_pool_starts_from_zero_then_both_numbers_and_the_remedy(case: str) -> None:
    sharing, severity, fix, why = MISLED[case]
    wanted = pool(sharing)
    found = check_template(wanted, SCALER)[0]
    assert (found.code, found.severity, found.fix) == ("autoscaler-misled", severity, fix)
    assert devices_text(wanted.promise.per_node) in found.seen
    assert "expects nvidia.com/gpu: 8" in found.seen
    assert why in found.why


def test_check_when_the_providers_rules_speak_of_it_or_nothing_scales_then_silent() -> None:
    assert check_template(pool(MIXED), replace(SCALER, judged_by_rules=True)) == []
    assert check_template(pool(MIXED, FIXED), SCALER) == []
    assert check_template(pool(MIXED), None) == []


def test_devices_when_written_then_by_name_and_none_is_said() -> None:
    assert devices_text({"nvidia.com/mig-3g.20gb": 8, "nvidia.com/mig-1g.5gb": 16}) == (
        "nvidia.com/mig-1g.5gb: 16, nvidia.com/mig-3g.20gb: 8"
    )
    assert devices_text({}) == "no devices"


@pytest.mark.parametrize("sharing", [WHOLE, SINGLE, MIXED, LAYOUT, SLICED, RENAMED], ids=str)
def test_believed_when_eks_tells_its_autoscaler_by_tags_then_it_is_right(sharing: Sharing) -> None:
    target = replace(make_target(sharing=sharing, nodes=FROM_ZERO), machine=require_machine("eks", "p4d.24xlarge"))
    made = EksProvider().desired(target, OWNED, promise_of(target))
    assert find_mismatch(made, EKS.autoscaler) is None
    untold = replace(
        made, fields={k: v for k, v in made.fields.items() if not k.is_below("nodes", "autoscaling", "resources")}
    )
    assert (find_mismatch(untold, EKS.autoscaler) is None) is (sharing == WHOLE)


def test_clouds_when_asked_then_aks_speaks_by_its_own_rules_and_gke_needs_no_teaching() -> None:
    assert AKS.autoscaler is not None
    assert AKS.autoscaler.judged_by_rules
    assert EKS.autoscaler is not None
    assert not EKS.autoscaler.judged_by_rules
    assert GKE.autoscaler is None
