"""The solver: exactly one advertiser, or a refusal."""

from __future__ import annotations

from itertools import product

import pytest

from gpukube.core.owners import needs_operator, solve_ownership
from gpukube.core.values import NodeStack, Ownership
from gpukube.errors import Diagnostic
from gpukube.gpu.plugin_config import config_key, plugin_config
from gpukube.gpu.sharing import MigCut, Sharing
from tests.builders import make_target

DRIVERS = ("cloud", "none")
ASKED = ("auto", "helm", "operator", "cloud", "dra", "none")


def stack(driver: str, advertiser: str) -> NodeStack:
    return NodeStack(driver, advertiser, "cloud", "test")  # type: ignore[arg-type]  # table data


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize(("driver", "advertiser", "asked"), list(product(DRIVERS, ("cloud", "none"), ASKED)))
def test_solve_when_any_combination_then_one_advertiser_or_a_refusal(
    driver: str, advertiser: str, asked: str, *, operator: bool
) -> None:
    answer = solve_ownership(make_target(plugin_owner=asked), stack(driver, advertiser), operator=operator)
    if isinstance(answer, Diagnostic):
        assert answer.fix
        return
    cloud_runs_one = advertiser == "cloud"
    ours = answer.advertiser in ("chart", "operator")
    assert not (cloud_runs_one and ours), "two plugins on one node"
    assert not (operator and answer.advertiser == "chart"), "two releases on one cluster"
    assert operator or answer.advertiser != "operator", "an operator that nothing needs"
    assert answer.advertiser != "none" or asked == "none", "nobody advertises although the spec wants GPUs"
    assert answer.advertiser != "chart" or answer.driver == "cloud", "a plugin without a driver"


def test_solve_when_chart_advertises_then_labels_choose_entry_and_release() -> None:
    sharing = Sharing(mig=MigCut("1g.5gb", "mixed"))
    answer = solve_ownership(make_target(sharing=sharing), stack("cloud", "none"))
    assert isinstance(answer, Ownership)
    assert answer.labels == {
        "gpukube.io/advertiser": "chart",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/device-plugin.config": config_key(plugin_config(sharing)),
    }


@pytest.mark.parametrize(("advertiser", "asked"), [("cloud", "auto"), ("none", "none")])
def test_solve_when_release_does_not_advertise_then_no_label_invites_a_plugin(advertiser: str, asked: str) -> None:
    answer = solve_ownership(make_target(plugin_owner=asked), stack("cloud", advertiser))
    assert isinstance(answer, Ownership)
    assert answer.labels == {}


def test_solve_when_the_operator_cuts_then_the_mig_label_is_there_at_birth() -> None:
    target = make_target(sharing=Sharing(mig=MigCut("1g.5gb", "single")))
    cut_by_operator = NodeStack("cloud", "none", "operator", "test")
    assert needs_operator(target, cut_by_operator)
    assert not needs_operator(make_target(), cut_by_operator)
    answer = solve_ownership(target, cut_by_operator, operator=True)
    assert isinstance(answer, Ownership)
    assert answer.advertiser == "operator"
    assert answer.labels["nvidia.com/mig.config"] == "all-1g.5gb"
