"""Findings that a spec accepts, and silences that are wrong themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.errors import SpecError

if TYPE_CHECKING:
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.errors import Finding

HEAD = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
"""
LONG = "  - {{name: {name}, clusters: [train], instanceType: Standard_NC4as_T4_v3, nodes: {{count: 1}}{more}}}\n"
"""A name of 12 letters: a warning, because a replacement has no room for its suffix."""


def pool(name: str, *rules: str) -> str:
    silence = ", ".join(f"{{rule: {rule}, reason: because {rule}}}" for rule in rules)
    return LONG.format(name=name, more=f", silence: [{silence}]" if rules else "")


def prepared(
    tmp_path_factory: pytest.TempPathFactory, *pools: str, defaults: str = "", strict: bool = False
) -> Prepared:
    file = tmp_path_factory.mktemp("spec") / "pools.yaml"
    file.write_text(f"{HEAD}{f'defaults: {defaults}' if defaults else ''}\npools:\n{''.join(pools)}", "utf-8")
    return api.prepare(api.load([str(file)], environ={}), strict=strict)


def told(found: Prepared) -> list[tuple[str, str, int]]:
    return [(one.severity, one.code, one.where.line) for one in found.warnings]


def silenced(found: Prepared) -> list[tuple[str, str]]:
    return [(one.finding.code, one.reason) for one in found.silenced]


def refused(
    tmp_path_factory: pytest.TempPathFactory, *pools: str, defaults: str = "", strict: bool = False
) -> list[Finding]:
    with pytest.raises(SpecError) as caught:
        prepared(tmp_path_factory, *pools, defaults=defaults, strict=strict)
    return sorted(caught.value.diagnostics, key=lambda one: (one.where, one.code))


@pytest.mark.parametrize("rule", ["GPK502", "aks-name-length"])
def test_warning_when_silenced_by_number_or_name_then_is_counted_and_not_told(
    rule: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = prepared(tmp_path_factory, pool("abcdefghijkl", rule))
    assert (told(found), silenced(found)) == ([], [("aks-name-length", f"because {rule}")])


def test_warning_when_only_another_pool_silences_it_then_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = prepared(tmp_path_factory, pool("abcdefghijkl", "GPK502"), pool("lkjihgfedcba"))
    assert told(found) == [("warning", "aks-name-length", 9)]
    assert len(silenced(found)) == 1


def test_silence_when_under_defaults_then_is_of_every_pool_that_writes_none(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    defaults = "{silence: [{rule: GPK502, reason: short-lived}]}"
    pools = (pool("abcdefghijkl"), pool("lkjihgfedcba", "GPK302"), pool("fits"))
    found = prepared(tmp_path_factory, *pools, defaults=defaults)
    assert told(found) == [("warning", "aks-name-length", 9), ("hint", "silence-unused", 9)]
    assert silenced(found) == [("aks-name-length", "short-lived")]


def test_silence_when_under_defaults_meets_no_pool_then_is_told_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    defaults = "{silence: [{rule: GPK502, reason: short-lived}]}"
    found = prepared(tmp_path_factory, pool("a"), pool("b"), defaults=defaults)
    assert told(found) == [("hint", "silence-unused", 6)]


def test_yaml_warning_when_its_pool_silences_it_then_is_not_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    desired = pool("a", "yaml-ambiguous").replace("nodes:", "labels: {country: no}, nodes:")
    found = prepared(tmp_path_factory, desired, pool("b").replace("nodes:", "labels: {country: on}, nodes:"))
    assert told(found) == [("warning", "yaml-ambiguous", 9)]
    assert silenced(found) == [("yaml-ambiguous", "because yaml-ambiguous")]


def test_error_when_silenced_then_both_are_errors(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = refused(tmp_path_factory, pool("Upper", "aks-name"))
    assert [(one.code, one.severity) for one in found] == [("aks-name", "error"), ("silence-error", "error")]


def test_silence_when_it_names_no_rule_then_is_an_error_with_the_nearest(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (found,) = refused(tmp_path_factory, pool("a", "aks-nmae-length"))
    assert (found.code, found.fix) == ("silence-rule", "did you mean aks-name-length?")


def test_silence_when_errors_hide_what_it_may_meet_then_is_not_called_unused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    wrong = pool("abcdefghijkl", "GPK502").replace("Standard_NC4as_T4_v3", "Standard_NC4as_T4_v9")
    assert [one.code for one in refused(tmp_path_factory, wrong)] == ["instance-type"]


def test_strict_when_a_warning_is_left_then_is_an_error_and_hints_are_not(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found = refused(tmp_path_factory, pool("abcdefghijkl"), pool("b", "GPK502"), strict=True)
    assert [(one.severity, one.code) for one in found] == [("error", "aks-name-length"), ("hint", "silence-unused")]
    accepted = prepared(tmp_path_factory, pool("abcdefghijkl", "GPK502"), pool("b", "GPK502"), strict=True)
    assert told(accepted) == [("hint", "silence-unused", 9)]


def test_silenced_when_two_pools_accept_one_finding_of_the_defaults_then_each_reason_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    defaults = "{labels: {country: no}}"
    pools = (pool("a", "GPK143"), pool("b", "yaml-ambiguous"))
    found = prepared(tmp_path_factory, *pools, defaults=defaults)
    assert told(found) == []
    assert [one.reason for one in found.silenced] == ["because GPK143", "because yaml-ambiguous"]
