"""Which of several groups the autoscaler chooses, and how long it avoids one that failed; without a cluster.

`CASES` are those of cluster-autoscaler's own tests of the priority expander (pkg/expander/priority/priority_test.go),
in words of this project.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from gpukube_sandbox.kube.autoscaler.backoff import BackOff
from gpukube_sandbox.kube.autoscaler.estimating import Option, Template
from gpukube_sandbox.kube.autoscaler.expanding import FILTERS, chain_error, pick
from gpukube_sandbox.kube.autoscaler.gopatterns import PatternError, compile_pattern
from gpukube_sandbox.kube.autoscaler.groups import Group, duration_s
from gpukube_sandbox.kube.autoscaler.priorities import CONFIG_MAP, prefer

MICRO, LARGE, LARGE3, BIG = "group.t2.micro", "group.t2.large", "group.t3.large", "group.m4.4xlarge"
RANKS = r"""
5: ['.*t2\.micro.*']
10: ['.*t2\.large.*', '.*t3\.large.*']
50: ['.*m4\.4xlarge.*']
"""
ONE = r"10: ['.*t2\.large.*']"
CATCH_ALL = r"{5: ['.*'], 10: ['.t2\.large.*']}"


def config(text: str | None) -> dict[str, object]:
    return {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": {"priorities": text}}


def unmatched(group: str) -> tuple[str, str]:
    message = f"Priority expander: node group {group} not found in priority expander configuration."
    return "PriorityConfigMapNotMatchedGroup", f"{message} The group won't be used."


CASES = [
    pytest.param(RANKS, [LARGE], {LARGE}, [], id="one-option-that-matches"),
    pytest.param(RANKS, [LARGE, BIG], {BIG}, [], id="the-higher-of-two"),
    pytest.param(CATCH_ALL, [LARGE, MICRO], {LARGE}, [], id="a-group-of-two-numbers-takes-the-higher"),
    pytest.param(RANKS, [LARGE, LARGE3, MICRO], {LARGE, LARGE3}, [], id="two-of-the-highest-number"),
    pytest.param(RANKS, [LARGE, LARGE3], {LARGE, LARGE3}, [], id="all-of-one-number"),
    pytest.param(ONE, [LARGE, LARGE3, BIG], {LARGE}, [LARGE3, BIG], id="others-are-not-in-the-map"),
]


@pytest.mark.parametrize(("text", "groups", "chosen", "strangers"), CASES)
def test_priorities_when_groups_could_grow_then_the_highest_are_left(
    text: str, groups: list[str], chosen: set[str], strangers: list[str]
) -> None:
    found = prefer(config(text), groups)
    assert (found.chosen, list(found.warnings)) == (chosen, [unmatched(group) for group in strangers])


def test_priorities_when_the_map_changes_then_the_next_choice_follows_it() -> None:
    groups = [LARGE, LARGE3, BIG]
    assert [prefer(config(text), groups).chosen for text in (ONE, RANKS)] == [{LARGE}, {BIG}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is empty; please provide valid configuration. Ignoring update.", id="empty"),
        pytest.param(None, "doesn't contain priorities key. Ignoring update.", id="no-key"),
        pytest.param("a: b: c", "Can't parse YAML with priorities in the configmap", id="no-yaml"),
        pytest.param("[a]", "Can't parse YAML with priorities", id="no-map"),
        pytest.param("'10': [a]", "cannot unmarshal '10' into int", id="number-in-quotes"),
        pytest.param("true: [a]", "cannot unmarshal True into int", id="no-number"),
        pytest.param("10: a", "cannot unmarshal 'a' into []string", id="no-list"),
        pytest.param("10: [{a: b}]", "into []string", id="no-pattern"),
        pytest.param("10: ['a(?=b)']", "Can't compile regexp rule for priority 10 and rule a(?=b)", id="pattern"),
    ],
)
def test_priorities_when_the_map_is_wrong_then_nothing_is_filtered_and_it_says_so(
    text: str | None, message: str
) -> None:
    found = prefer(config(text), [LARGE, LARGE3, BIG])
    ((reason, written),) = found.warnings
    assert (found.chosen, found.is_unusable, reason) == (None, True, "PriorityConfigMapInvalid")
    assert message in written


def test_priorities_when_there_is_no_map_then_nothing_is_filtered_and_nothing_said() -> None:
    found = prefer(None, [LARGE])
    assert (found.chosen, found.warnings, found.is_unusable) == (None, (), True)


@pytest.mark.parametrize("text", ["10: ['other']", "# nothing", "-5: ['large']", "10:"])
def test_priorities_when_no_group_is_in_the_map_then_nothing_is_filtered(text: str) -> None:
    found = prefer(config(text), [LARGE])
    assert (found.chosen, found.is_unusable) == (None, False)
    assert found.warnings[-1][0] == "PriorityConfigMapNoGroupMatched"


def test_priorities_when_patterns_are_unanchored_then_they_match_within_a_name() -> None:
    asgs = [f"eks-{name}-0a1b2c3d-1111-2222-3333-444455556666" for name in ("h100", "h100b")]
    anchored = "^eks-h100-[0-9a-f]{8}-[0-9a-f-]{27}$"
    assert prefer(config("10: [h100]"), asgs).chosen == set(asgs)
    assert prefer(config(f"10: ['{anchored}']"), asgs).chosen == {asgs[0]}
    assert prefer(config("10: ['^aks-h100-[0-9]+-vmss$']"), ["aks-h100-12345678-vmss"]).chosen


def test_priorities_when_a_number_is_written_twice_then_the_first_list_is_lost() -> None:
    assert prefer(config("{10: [micro], 10: [large]}"), [MICRO, LARGE]).chosen == {LARGE}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^a\.b$", "a.b"),
        ("a{2}b{1,}?", "aab"),
        ("(?i)H100|(?:x)", "h100"),
        (r"(?P<pool>h100)-\d+\z", "h100-12"),
        ("[]a]", "]"),
        (r"[\[]", "["),
        ("[[]", "["),
        (r"[\d&&||~~+--]", "&"),
        ("a{", "a{"),
        ("", "x"),
        (r"\\\(\_", r"\(_"),
    ],
)
def test_pattern_when_go_and_python_read_it_alike_then_it_is_searched(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).search(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=b`"),
        ("a(?!b)", "invalid or unsupported Perl syntax"),
        ("(?<=a)b", "invalid or unsupported Perl syntax"),
        ("(?<!a)b", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?P<a>b)(?P=a)", "invalid or unsupported Perl syntax"),
        ("(?x)a", "invalid or unsupported Perl syntax"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\pL", r"invalid escape sequence: `\p`"),
        ("[[:alpha:]]", "invalid character class range"),
        ("a*+", "invalid nested repetition operator: `*+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a\\", "trailing backslash"),
        ("*a", "nothing to repeat"),
        ("a(", "missing )"),
        ("[a", "unterminated character set"),
    ],
)
def test_pattern_when_go_refuses_it_or_reads_it_otherwise_then_refused(pattern: str, message: str) -> None:
    with pytest.raises(PatternError, match=re.escape(message)):
        compile_pattern(pattern)


# The other expanders


def option(  # noqa: PLR0913 -- what expanders compare
    name: str, *, cpu: str = "4", memory: str = "8Gi", pods: int = 1, count: int = 1, gpus: int = 0
) -> Option:
    node = {"metadata": {"name": name}, "status": {"capacity": {"cpu": cpu, "memory": memory}}}
    requests = {"cpu": "1", "memory": "2Gi"}
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
    return Option(Group(name, name, (), 0, 0, 9), Template(node), count, [pod] * pods, gpus)


@pytest.mark.parametrize(
    ("expander", "options", "left"),
    [
        pytest.param("least-waste", [option("a"), option("b", cpu="1000")], ["a"], id="less-idle-cpu"),
        pytest.param("least-waste", [option("a", memory="1Ti"), option("b")], ["b"], id="less-idle-memory"),
        pytest.param("least-waste", [option("a", count=2, pods=2), option("b")], ["a", "b"], id="equal-shares"),
        pytest.param("most-pods", [option("a"), option("b", pods=2), option("c", pods=2)], ["b", "c"], id="pods"),
        pytest.param("least-nodes", [option("a", count=2), option("b"), option("c")], ["b", "c"], id="nodes"),
        pytest.param("price", [option("a", gpus=8), option("b", gpus=1)], ["b"], id="gke-fewest-gpus"),
    ],
)
def test_expander_when_options_differ_then_the_best_are_left(
    expander: str, options: list[Option], left: list[str]
) -> None:
    assert [one.group.name for one in FILTERS[expander](options)] == left


def test_options_when_equal_then_each_is_picked_sometimes() -> None:
    options = [option("a"), option("b")]
    chance = Random(1)  # noqa: S311 -- no secret
    assert {pick(options, chance).group.name for _ in range(20)} == {"a", "b"}


@pytest.mark.parametrize(
    ("chain", "error"),
    [
        ("priority,least-waste", ""),
        ("random", ""),
        ("random,priority", "Expander priority came after an expander random"),
        ("priority,priority", "Expander priority was specified multiple times"),
        ("priorty,least-waste", "Expander priorty not supported"),
    ],
)
def test_chain_when_it_makes_no_sense_then_the_autoscaler_does_not_start(chain: str, error: str) -> None:
    found = chain_error(chain.split(","))
    assert found.startswith(error)
    assert bool(found) == bool(error)


# Back-off


def test_back_off_when_failures_repeat_then_it_doubles_up_to_half_an_hour() -> None:
    held, now, lengths = BackOff(), 0.0, []
    for _ in range(5):
        held.begin("g", now)
        (until,) = held.ends_after(now)
        lengths.append((until - now) / 60)
        assert held.holds("g", until - 1)
        assert not held.holds("g", until)
        assert not held.holds("other", now)
        now = until + 60
    assert lengths == [5, 10, 20, 30, 30]


def test_back_off_when_a_second_scale_up_fails_within_it_then_it_begins_again_as_long() -> None:
    held = BackOff()
    held.begin("g", 0)
    held.begin("g", 100)
    assert held.ends_after(100) == [400]


@pytest.mark.parametrize(("hours", "minutes"), [(2.99, 10), (3.01, 5)])
def test_back_off_when_three_hours_have_passed_since_the_last_failure_then_it_is_forgotten(
    hours: float, minutes: float
) -> None:
    held, now = BackOff(), hours * 3600
    held.begin("g", 0)
    held.begin("g", now)
    assert held.ends_after(now) == [now + minutes * 60]


def test_back_off_when_a_scale_up_succeeds_then_it_is_forgotten() -> None:
    held = BackOff()
    held.begin("g", 0)
    held.end("g")
    assert not held.holds("g", 1)


def test_duration_when_written_as_in_go_then_seconds() -> None:
    assert [duration_s(text) for text in ("90s", "15m", "1h30m")] == [90, 900, 5400]
