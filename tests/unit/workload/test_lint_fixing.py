"""What --fix writes: the least change, with comments, order and anchors as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint
from gpukube.workload.lint.repair import fix
from gpukube.workload.manifests import read_manifests
from tests.manifests import objects
from tests.unit.workload.specs import described, offers
from tools.message_cases import WORKLOADS, message_cases

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.workload.offers import PoolOffer
    from tools.message_cases import Case

HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"


def fixed(text: str) -> str:
    (source,) = fix([Source("m.yaml", text)])
    return source.text


FIXES = {
    "limit beside others in a block": (
        (
            "  containers:\n  - name: c\n    resources:\n      requests: {nvidia.com/gpu: 1}\n"
            "      limits: # as measured\n        # cores\n        cpu: 1\n        memory: 1Gi # most\n"
        ),
        (
            "  containers:\n  - name: c\n    resources:\n      requests: {nvidia.com/gpu: 1}\n"
            "      limits: # as measured\n        # cores\n        nvidia.com/gpu: 1\n        cpu: 1\n"
            "        memory: 1Gi # most\n"
        ),
    ),
    "limits that are not there, in a flow": (
        "  containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: '2'}}}] # one\n",
        (
            '  containers: [{name: c, resources: {limits: {nvidia.com/gpu: "2"}, '
            "requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: '2'}}}] # one\n"
        ),
    ),
    "request that differs": (
        (
            "  containers:\n  - resources:\n      requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1} # x\n"
            "      limits: {nvidia.com/gpu: 4}\n"
        ),
        (
            "  containers:\n  - resources:\n      requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 4} # x\n"
            "      limits: {nvidia.com/gpu: 4}\n"
        ),
    ),
    "resources without a level, in a flow": (
        "  containers: [{name: c, resources: {nvidia.com/gpu: 1, cpu: 1, memory: 1Gi}}]\n",
        "  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1, cpu: 1, memory: 1Gi}}}]\n",
    ),
    "resources without a level, beside limits": (
        "  containers:\n  - name: c\n    resources:\n      nvidia.com/gpu: 1\n      limits: {cpu: 1, memory: 1Gi}\n",
        "  containers:\n  - name: c\n    resources:\n      limits: {nvidia.com/gpu: 1, cpu: 1, memory: 1Gi}\n",
    ),
    "limits beside resources, before them": (
        (
            "  containers:\n  - name: c\n    limits:\n        nvidia.com/gpu: 1 # the GPU\n    resources:\n"
            "      requests:\n        cpu: 1\n        memory: 1Gi\n    # end\n    tty: true\n"
        ),
        (
            "  containers:\n  - name: c\n    resources:\n      requests:\n        cpu: 1\n        memory: 1Gi\n"
            "      limits:\n          nvidia.com/gpu: 1 # the GPU\n    # end\n    tty: true\n"
        ),
    ),
    "quoted strings": (
        "  nodeSelector:\n    a: yes # so\n    b: 010\n  tolerations:\n  - key: k\n    value: 1.30\n",
        '  nodeSelector:\n    a: "yes" # so\n    b: "010"\n  tolerations:\n  - key: k\n    value: "1.30"\n',
    ),
    "toleration with a value too many": (
        "  tolerations:\n  - key: k\n    operator: exists\n    value: x # no\n    effect: noschedule\n  - key: l\n",
        "  tolerations:\n  - key: k\n    operator: Exists\n    effect: NoSchedule\n  - key: l\n",
    ),
    "toleration of one value": (
        '  tolerations:\n  - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}\n',
        "  tolerations:\n  - {operator: Exists, key: nvidia.com/gpu, effect: NoSchedule}\n",
    ),
    "spot taint, into a list": (
        "  nodeSelector: {kubernetes.azure.com/priority: spot}\n  tolerations:\n    # mine\n    - key: k # a\n\n",
        (
            "  nodeSelector: {kubernetes.azure.com/priority: spot}\n  tolerations:\n    # mine\n    - key: k # a\n"
            '    - {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: "spot", effect: NoSchedule}\n\n'
        ),
    ),
    "anchored": (
        (
            "  containers:\n  - &c\n    name: c\n    resources: &r {cpu: 1, memory: 1Gi, nvidia.com/gpu: &n 1}\n"
            "  - {<<: *c, name: d}\n"
        ),
        (
            "  containers:\n  - &c\n    name: c\n    resources: &r {limits: {cpu: 1, memory: 1Gi, "
            "nvidia.com/gpu: &n 1}}\n"
            "  - {<<: *c, name: d}\n"
        ),
    ),
    "alias that is used twice": (
        (
            "  containers:\n  - {name: c, resources: {requests: &r {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}}\n"
            "  - {name: d, resources: {requests: *r}}\n"
        ),
        (
            "  containers:\n  - {name: c, resources: {limits: {nvidia.com/gpu: 1}, "
            "requests: &r {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}}\n"
            "  - {name: d, resources: {limits: {nvidia.com/gpu: 1}, requests: *r}}\n"
        ),
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("name", FIXES)
def test_text_when_fixed_then_only_what_is_wrong_changes(name: str, newline: str) -> None:
    before, after = (f"# top\n{HEAD}{part}".replace("\n", newline) for part in FIXES[name])
    assert fixed(before) == after
    assert fixed(after) == after


LEFT = {
    "fraction": "  containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 0.5}}}]\n",
    "ignored": "  nodeSelector: {a: yes} # gpukube: ignore GPK728 - a test\n",
    "value of an alias": "  nodeSelector: {a: &x yes, b: *x}\n",
    "block scalar": "  nodeSelector:\n    kubernetes.azure.com/priority: |\n      spot\n",
}


@pytest.mark.parametrize("name", LEFT)
def test_text_when_a_decision_is_needed_then_the_finding_stays(name: str) -> None:
    text = HEAD + LEFT[name]
    expected = text.replace("&x yes", '&x "yes"')
    assert fixed(text) == expected


def test_files_when_one_is_right_then_only_the_other_changes() -> None:
    right, wrong = HEAD + "  nodeSelector: {a: b}\n", HEAD + "  nodeSelector: {a: yes}\n"
    first, second = fix([Source("a.yaml", right), Source("b.yaml", wrong)])
    assert (first.text, second.text) == (right, wrong.replace("yes", '"yes"'))


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> tuple[PoolOffer, ...]:
    return tuple(offers(tmp_path_factory.mktemp("spec"), "mixed", "tainted").values())


CASES = message_cases(WORKLOADS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_page_when_fixed_then_nothing_that_can_be_fixed_is_left(case: Case, tmp_path: Path) -> None:
    spec = case.files.get("pools.yaml")
    pools = tuple(described(tmp_path, spec.decode()).values()) if spec else None
    before = Source("m.yaml", case.files["bad.yaml"].decode())
    (after,) = fix([before], offers=pools)
    assert not lint([after], offers=pools).edits
    assert bool(lint([before], offers=pools).edits) == (after != before)


@settings(max_examples=25)
@given(drawn=objects(), flow=st.booleans())
def test_anything_when_fixed_then_what_was_fixed_is_right_and_a_second_run_changes_nothing(
    pools: tuple[PoolOffer, ...], drawn: object, *, flow: bool
) -> None:
    text = yaml.safe_dump(drawn, default_flow_style=flow, allow_unicode=True)
    before = Source("m.yaml", text)
    (after,) = fix([before], offers=pools)
    assert fix([after], offers=pools) == (after,)
    assert [str(one) for one in read_manifests(text, "").manifests] == [
        str(one) for one in read_manifests(after.text, "").manifests
    ]
    assert len(lint([after], offers=pools).edits) <= len(lint([before], offers=pools).edits)
