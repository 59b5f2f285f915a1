"""The solver: exactly one advertiser, or a refusal with two ways out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from gpukube.core.owners import (
    DRIVER_ROWS,
    PLUGIN_ROWS,
    RELEASE_ROWS,
    ReleaseChoice,
    check_kubernetes,
    choose_release,
    decide_owner,
    needs_operator,
    solve_ownership,
    with_live,
)
from gpukube.core.owners.labels import LABEL_REASONS
from gpukube.core.values import NodeStack, Ownership
from gpukube.errors import Finding
from gpukube.gpu.plugin_config import config_key, plugin_config
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Sequence

BRINGS = ("cloud", "none")
CUTS = ("cloud", "operator", "none")
ASKED = ("auto", "helm", "operator", "cloud", "dra", "none")
DRIVERS = ("auto", "cloud", "operator", "none")
SHARINGS = (
    Sharing(),
    Sharing(slicing=Slicing("time-slicing", 4)),
    Sharing(slicing=Slicing("mps", 4)),
    Sharing(mig=MigCut("1g.5gb", "single")),
    Sharing(mig=MigCut("1g.5gb", "mixed"), slicing=Slicing("time-slicing", 2)),
)
CUT = SHARINGS[3]
OPERATED = ReleaseChoice("operator", "operator-live", "it is there")
CHART = ReleaseChoice()
DRIVEN = NodeStack("cloud", "none", "cloud", "test")
UNDRIVEN = replace(DRIVEN, driver="none")
CUT_BY_OPERATOR = replace(DRIVEN, cut_by="operator")


def stack(driver: str, advertiser: str, cut_by: str = "cloud", *, unable: bool = False) -> NodeStack:
    made = NodeStack(driver, advertiser, cut_by, "test")  # type: ignore[arg-type]  # table data
    why = "it is another system" if unable else ""
    return replace(made, no_operator=why, no_driver=why)


@pytest.mark.parametrize("operator_live", [False, True])
@pytest.mark.parametrize(("driver", "advertiser", "cut_by"), list(product(BRINGS, BRINGS, CUTS)))
def test_solve_when_any_combination_then_one_advertiser_or_a_refusal(
    driver: str, advertiser: str, cut_by: str, *, operator_live: bool
) -> None:
    for requested, owner, sharing, unable, unclaimable in product(
        ASKED, DRIVERS, SHARINGS, (False, True), (False, True)
    ):
        target = make_target(plugin_owner=requested, driver_owner=owner, sharing=sharing)
        brought = replace(
            stack(driver, advertiser, cut_by, unable=unable), no_dra="it is another system" if unclaimable else ""
        )
        choice = choose_release([(target, brought)], operator_live=operator_live)
        answer = decide_owner(target, brought, choice).outcome
        if isinstance(answer, Finding):
            first, second = answer.fix.split("; or ")
            assert first != second
            continue
        ours = answer.advertiser in ("chart", "operator")
        claims = answer.advertiser == "dra"
        assert claims == (requested == "dra")
        assert not (claims and unclaimable), "a driver that cannot serve the nodes"
        assert not claims or not sharing.mig or cut_by == "cloud" or answer.operated, "nothing does MIG"
        assert not (answer.operated and answer.labels.get("nvidia.com/gpu.deploy.operands") == "false")
        assert answer.operated or not choice.operator or "nvidia.com/gpu.deploy.operands" in answer.labels
        assert not (claims and answer.operated) or choice.claimed_by == target.pool, "the operator's plugin is on"
        assert not (advertiser == "cloud" and answer.advertiser != "cloud"), "two plugins on one node, or one unsaid"
        assert not ours or answer.advertiser == choice.release, "two releases on one cluster"
        assert (answer.advertiser == "none") == (requested == "none"), "nobody advertises although the spec wants GPUs"
        assert not ours or answer.driver in ("cloud", "operator"), "a plugin without a driver"
        assert answer.driver != "operator" or (answer.operated and choice.operator), "nobody to bring it"
        brought_by = answer.operator_values if claims else answer.values
        assert answer.driver != "operator" or (brought_by and brought_by["driver.enabled"] is True)
        assert not (answer.advertiser == "operator" and (unable or (sharing.mig and cut_by != "operator")))
        assert not (answer.advertiser == "chart" and sharing.mig and cut_by != "cloud"), "nothing does MIG"
        assert (answer.driver == "cloud") == (driver == "cloud")
        assert owner in ("auto", answer.driver)
        assert answer.labels.keys() <= LABEL_REASONS.keys()


@pytest.mark.parametrize("row", [*DRIVER_ROWS, *PLUGIN_ROWS], ids=lambda row: row.name)
def test_rows_when_refusing_then_two_ways_out_and_a_source(row: object) -> None:
    assert isinstance(row, (type(DRIVER_ROWS[0]), type(PLUGIN_ROWS[0])))
    assert row.source
    assert (row.answer is None) == (row.fixes is not None)


def test_rows_when_everything_is_asked_then_each_row_answers_something() -> None:
    used = set()
    for driver, advertiser, cut_by, live, unable in product(BRINGS, BRINGS, CUTS, (False, True), (False, True)):
        brought = stack(driver, advertiser, cut_by, unable=unable)
        neighbours = [
            (make_target(plugin_owner="operator"), DRIVEN),
            (make_target(driver_owner="operator"), UNDRIVEN),
            (make_target(pool="claimed", plugin_owner="dra", sharing=CUT), CUT_BY_OPERATOR),
        ]
        for requested, owner, sharing in product(ASKED, DRIVERS, SHARINGS):
            target = make_target(plugin_owner=requested, driver_owner=owner, sharing=sharing)
            for beside in ([[neighbour] for neighbour in neighbours]) if live else [[]]:
                for made in (brought, replace(brought, no_dra="it is another system")):
                    decision = decide_owner(target, made, choose_release([(target, made), *beside]))
                    used |= {decision.driver.name, decision.plugin.name}
    assert used == {row.name for row in (*DRIVER_ROWS, *PLUGIN_ROWS)}


def test_solve_when_chart_advertises_then_labels_choose_entry_and_release() -> None:
    sharing = Sharing(mig=MigCut("1g.5gb", "mixed"))
    answer = solve_ownership(make_target(sharing=sharing), DRIVEN)
    assert isinstance(answer, Ownership)
    assert answer.row == "chart"
    assert answer.labels == {
        "gpukube.io/advertiser": "chart",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/device-plugin.config": config_key(plugin_config(sharing)),
    }


@pytest.mark.parametrize(("advertiser", "requested"), [("cloud", "auto"), ("none", "none")])
def test_solve_when_release_does_not_advertise_then_no_label_invites_a_plugin(advertiser: str, requested: str) -> None:
    answer = solve_ownership(make_target(plugin_owner=requested), stack("cloud", advertiser))
    assert isinstance(answer, Ownership)
    assert answer.labels == {}


@pytest.mark.parametrize(("advertiser", "requested"), [("cloud", "auto"), ("cloud", "cloud"), ("none", "none")])
def test_solve_when_the_operator_must_not_take_nodes_then_a_label_keeps_it_off(advertiser: str, requested: str) -> None:
    answer = decide_owner(make_target(plugin_owner=requested), stack("cloud", advertiser), OPERATED).outcome
    assert isinstance(answer, Ownership)
    assert answer.labels == {"nvidia.com/gpu.deploy.operands": "false"}
    assert "it is there" in answer.reason


def test_solve_when_the_operator_cuts_then_the_mig_label_is_there_at_birth() -> None:
    target = make_target(sharing=Sharing(mig=MigCut("1g.5gb+me", "single")))
    answer = solve_ownership(target, CUT_BY_OPERATOR)
    assert isinstance(answer, Ownership)
    assert answer.advertiser == "operator"
    assert answer.row == "operator-cuts"
    assert answer.labels["nvidia.com/mig.config"] == "all-1g.5gb.me"
    assert answer.labels["gpukube.io/advertiser"] == "operator"


@pytest.mark.parametrize(
    ("requested", "sharing", "needed"),
    [
        ("auto", CUT, True),
        ("helm", CUT, True),
        ("none", CUT, False),
        ("cloud", CUT, False),
        ("auto", Sharing(), False),
        ("dra", CUT, True),
        ("dra", Sharing(), False),
    ],
)
def test_needs_operator_when_our_release_has_to_cut_then_only(
    requested: str, sharing: Sharing, *, needed: bool
) -> None:
    assert needs_operator(make_target(plugin_owner=requested, sharing=sharing), CUT_BY_OPERATOR) is needed


def test_solve_when_dra_publishes_then_labels_choose_its_release_and_the_cloud_adds_its_own() -> None:
    brought = replace(DRIVEN, dra_labels={"cloud/dra": "true"}, dra_values={"nvidiaDriverRoot": "/opt"})
    answer = solve_ownership(make_target(plugin_owner="dra"), brought)
    assert isinstance(answer, Ownership)
    assert (answer.advertiser, answer.config_key, answer.operated) == ("dra", "", False)
    assert answer.labels == {"gpukube.io/advertiser": "dra", "nvidia.com/gpu.present": "true", "cloud/dra": "true"}
    assert answer.values == {"nvidiaDriverRoot": "/opt"}


def test_solve_when_dra_publishes_mig_of_the_operator_then_it_serves_the_nodes_without_its_plugin() -> None:
    target = make_target(pool="cut", plugin_owner="dra", sharing=CUT)
    choice = choose_release([(target, CUT_BY_OPERATOR)])
    answer = decide_owner(target, CUT_BY_OPERATOR, choice).outcome
    assert isinstance(answer, Ownership)
    assert (choice.row, choice.claimed_by) == ("cut-by-operator", "cut")
    assert (answer.row, answer.operated, answer.operator_values) == ("dra-cuts", True, {})
    assert answer.labels["nvidia.com/mig.config"] == "all-1g.5gb"
    assert "nvidia.com/gpu.deploy.operands" not in answer.labels


def test_solve_when_dra_publishes_on_the_operator_s_driver_then_each_chart_has_its_values() -> None:
    target = make_target(plugin_owner="dra", driver_owner="operator", driver_version="580.173.02")
    brought = replace(UNDRIVEN, dra_values={"nvidiaDriverRoot": "/run/nvidia/driver"})
    answer = solve_ownership(target, brought)
    assert isinstance(answer, Ownership)
    assert (answer.row, answer.driver, answer.advertiser) == ("dra-brings", "operator", "dra")
    assert answer.values == {"nvidiaDriverRoot": "/run/nvidia/driver"}
    assert answer.operator_values
    assert answer.operator_values["driver.version"] == "580.173.02"


def test_solve_when_the_operator_serves_others_then_it_is_kept_off_whole_gpus_of_dra() -> None:
    answer = decide_owner(make_target(plugin_owner="dra"), DRIVEN, OPERATED).outcome
    assert isinstance(answer, Ownership)
    assert answer.row == "dra-kept-off"
    assert answer.labels == {"gpukube.io/advertiser": "dra", "nvidia.com/gpu.deploy.operands": "false"}


def test_solve_when_the_operator_is_asked_for_then_it_serves_uncut_nodes() -> None:
    answer = solve_ownership(make_target(plugin_owner="operator"), DRIVEN)
    assert isinstance(answer, Ownership)
    assert answer.advertiser == "operator"
    assert "requests the GPU Operator" in answer.reason
    assert "nvidia.com/mig.config" not in answer.labels


@pytest.mark.parametrize(
    ("runtime", "values"),
    [("nvidia", {}), ("nvidia-container-runtime", {"operator.runtimeClass": "nvidia-container-runtime"})],
)
def test_solve_when_the_runtime_has_another_name_then_the_operator_is_told(
    runtime: str, values: dict[str, str]
) -> None:
    answer = solve_ownership(make_target(plugin_owner="operator"), replace(DRIVEN, runtime=runtime))
    assert isinstance(answer, Ownership)
    assert answer.values == values


def test_solve_when_the_operator_brings_the_driver_then_toolkit_and_plugin_are_its_too() -> None:
    target = make_target(driver_owner="operator", sharing=CUT, driver_version="580.173.02")
    undriven = replace(UNDRIVEN, cut_by="operator")
    decision = decide_owner(target, undriven, choose_release([(target, undriven)]))
    answer = decision.outcome
    assert isinstance(answer, Ownership)
    assert (decision.choice.row, answer.driver, answer.advertiser) == ("driver-by-operator", "operator", "operator")
    assert answer.labels["nvidia.com/mig.config"] == "all-1g.5gb"
    assert answer.values == {
        "driver.enabled": True,
        "toolkit.enabled": True,
        "toolkit.env": [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}],
        "driver.version": "580.173.02",
    }


@pytest.mark.parametrize("reverse", [False, True])
def test_choose_when_one_pool_has_the_operator_s_driver_and_one_the_cloud_s_then_the_latter_is_refused(
    *, reverse: bool
) -> None:
    driven = make_target(pool="driven", driver_owner="operator")
    plain = make_target(pool="plain", plugin_owner="operator")
    pools = [(driven, UNDRIVEN), (plain, DRIVEN)]
    choice = choose_release(pools[::-1] if reverse else pools)
    assert isinstance(decide_owner(driven, UNDRIVEN, choice).outcome, Ownership)
    refused = decide_owner(plain, DRIVEN, choice)
    assert refused.plugin.name == "operator-mixed"
    assert isinstance(refused.outcome, Finding)
    assert "pool driven gets its driver from the GPU Operator" in refused.outcome.seen


REFUSED: dict[str, tuple[dict[str, object], NodeStack, ReleaseChoice, str, str]] = {
    "the operator would undo the cloud's cut": ({"sharing": CUT}, DRIVEN, OPERATED, "operator-uncuts", "undo"),
    "nothing does MIG": ({"sharing": CUT}, stack("cloud", "none", "none"), CHART, "nobody-cuts", "nothing does MIG"),
    "helm beside the operator": ({"plugin_owner": "helm"}, DRIVEN, OPERATED, "helm-beside-operator", "it is there"),
    "an image that the operator cannot serve": (
        {}, stack("cloud", "none", unable=True), OPERATED, "operator-unable", "it is another system",
    ),
    "nodes that the DRA driver cannot serve": (
        {"plugin_owner": "dra"}, replace(DRIVEN, no_dra="it is another system"), CHART, "dra-unable",
        "it is another system",
    ),
    "dra beside the cloud's plugin": (
        {"plugin_owner": "dra"}, stack("cloud", "cloud"), CHART, "dra-second", "the same GPU",
    ),
    "dra, and nothing does MIG": (
        {"plugin_owner": "dra", "sharing": CUT}, stack("cloud", "none", "none"), CHART, "nobody-cuts", "does MIG",
    ),
    "a plugin of the operator beside dra": (
        {}, DRIVEN, replace(OPERATED, claimed_by="cut"), "operator-without-plugin", "because pool cut needs",
    ),
    "none where the cloud's plugin always runs": (
        {"plugin_owner": "none"}, stack("cloud", "cloud"), CHART, "cloud-always", "always runs",
    ),
    "a chart beside the cloud's plugin": (
        {"plugin_owner": "helm"}, stack("cloud", "cloud"), CHART, "second-plugin", "second one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_solve_when_refused_then_the_row_names_the_conflict(name: str) -> None:
    changes, brought, choice, row, words = REFUSED[name]
    decision = decide_owner(make_target(**changes), brought, choice)  # type: ignore[arg-type]  # test data
    assert decision.plugin.name == row
    assert isinstance(decision.outcome, Finding)
    assert words in decision.outcome.seen
    assert decision.outcome.where.source == "spec.devicePlugin.owner"


@pytest.mark.parametrize("owner", ["operator", "none"])
def test_solve_when_the_driver_cannot_have_that_owner_then_refused_at_its_field(owner: str) -> None:
    answer = solve_ownership(make_target(driver_owner=owner), DRIVEN)
    assert isinstance(answer, Finding)
    assert answer.where.source == "spec.driver.owner"


CHOICES: dict[str, tuple[Sequence[tuple[str, Sharing, NodeStack]], bool, str]] = {
    "nothing in particular": ([("auto", Sharing(), DRIVEN)], False, "chart"),
    "a cut that only the operator makes": ([("auto", Sharing(), DRIVEN), ("auto", CUT, CUT_BY_OPERATOR)], False,
                                           "cut-by-operator"),
    "a cut is stronger than a wish": ([("helm", Sharing(), DRIVEN), ("auto", CUT, CUT_BY_OPERATOR)], False,
                                      "cut-by-operator"),
    "the operator is asked for": ([("auto", Sharing(), DRIVEN), ("operator", Sharing(), DRIVEN)], False,
                                  "operator-asked"),
    "asked for where the cloud has its own": ([("operator", Sharing(), stack("cloud", "cloud"))], False, "chart"),
    "an operator that is there stays": ([("auto", Sharing(), DRIVEN)], True, "operator-live"),
    "the chart is asked for beside one that is there": ([("helm", Sharing(), DRIVEN)], True, "helm-asked"),
    "somebody else's operator cuts": ([("none", CUT, CUT_BY_OPERATOR)], False, "chart"),
    "no pools": ([], True, "operator-live"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_choose_release_when_pools_need_or_ask_then_the_strongest_reason(name: str) -> None:
    pools, live, row = CHOICES[name]
    facts = [(make_target(plugin_owner=requested, sharing=sharing), brought) for requested, sharing, brought in pools]
    choice = choose_release(facts, operator_live=live)
    assert choice.row == row
    assert choice.release == next(r.release for r in RELEASE_ROWS if r.name == row)
    assert "{" not in choice.because


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.32.9", True), ("1.33", False), ("1.34.2", False), ("v1.36.0-gke.100", False), ("1.37.0", True),
        ("2.0", True), ("unknown", False), ("", False),
    ],
)  # fmt: skip
def test_check_kubernetes_when_the_operator_is_not_supported_there_then_warned(version: str, *, said: bool) -> None:
    found = check_kubernetes(CLUSTER, version)
    assert [(item.severity, item.where.source) for item in found] == ([("warning", "train-aks")] if said else [])
    assert all("; or " in item.fix and version in item.seen for item in found)


def test_with_live_when_chosen_already_then_the_reason_stays() -> None:
    requested = choose_release([(make_target(plugin_owner="operator"), DRIVEN)])
    assert with_live(requested, operator_live=True) is requested
    assert with_live(CHART, operator_live=False) is CHART
