"""What people and scripts see: documents on stdout, the rest on stderr, color where it is wanted."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, ROOT, Gpukube, Result, run_process
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SINGLE = EXAMPLES / "aks-mig-single.yaml"
SLICED = EXAMPLES / "aks-timeslicing.yaml"
PROGRESS = re.compile(r"\d\d:\d\d:\d\d train-aks(/\w+)? (check|release|create|delete|wait|verify|done|failed): \S.*")


COMMANDS = {
    "Validation": ("validate",),
    "Plan": ("pool", "plan"),
    "Diff": ("pool", "plan", "diff"),
    "Create": ("pool", "create"),
    "Verify": ("pool", "verify"),
    "PoolList": ("pool", "list"),
    "Pool": ("pool", "get", "t4shared"),
    "Delete": ("pool", "delete", "t4shared", "--yes"),
}
HINTED = ("Validation", "Plan", "Diff", "Create")
VERSIONS = {"Create": 2, "Verify": 2, "Delete": 2}
"""Reports rose when outcomes could be unknown."""


def test_documents_when_asked_for_then_json_alone_on_stdout_with_a_schema_version(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    for kind, words in COMMANDS.items():
        said = gpukube(*words, "-f", SLICED, "-o", "json")
        assert said.code == 0, said
        assert (said.json()["schemaVersion"], said.json()["kind"]) == (VERSIONS.get(kind, 1), kind)
        rest = [line for line in said.err.splitlines() if not PROGRESS.fullmatch(line)]
        assert [line.split(": ")[1] for line in rest if not line.startswith(" ")] == (
            ["hint[GPK322 sharing-isolation]"] if kind in HINTED else []
        )


def test_documents_when_asked_for_as_yaml_then_the_same_data(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    for words in (("pool", "plan"), ("pool", "list"), ("pool", "get", "t4shared"), ("pool", "verify")):
        as_json = gpukube(*words, "-f", SLICED, "-o", "json").json()
        assert yaml.safe_load(gpukube(*words, "-f", SLICED, "-o", "yaml").out) == as_json


def test_document_of_a_failure_when_asked_for_then_json_with_errors_and_the_exit_code(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "operation", code="QuotaExceeded")
    failed = gpukube("pool", "create", "-f", SLICED, "-o", "json")
    assert failed.code == failed.json()["exitCode"] == 6
    (pool,) = failed.pools()
    (error,) = pool["error"]
    assert (pool["outcome"], error["code"], error["where"]) == ("failed", "quota", "train-aks/t4shared")
    assert pool["resume"].startswith("gpukube --sandbox pool create -f ")


def test_document_of_a_missing_proof_when_asked_for_then_it_names_the_step(gpukube: Gpukube) -> None:
    failed = gpukube("pool", "verify", "-f", SLICED, "-o", "json")
    (pool,) = failed.pools()
    assert (failed.code, pool["proof"]["status"]) == (1, "broken")
    assert {finding["step"] for finding in pool["proof"]["findings"]} == {"placement", "config-entry", "node"}
    assert {error["code"] for error in pool["error"]} == {"step-placement", "step-config-entry", "step-node"}


def test_output_format_when_set_by_the_environment_then_used_and_the_flag_wins(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_OUTPUT", "json")
    assert json.loads(gpukube("validate", "-f", SLICED).out)["kind"] == "Validation"
    assert yaml.safe_load(gpukube("validate", "-f", SLICED, "-o", "yaml").out)["kind"] == "Validation"


def test_plan_when_shown_then_every_fact_that_costs_or_promises(gpukube: Gpukube) -> None:
    shown = gpukube("pool", "plan", "-f", SINGLE)
    assert (shown.code, gpukube.writes()) == (0, [])
    for fact in (
        "+ create   a100mig  Standard_ND96asr_v4  1 node",
        "devices nvidia.com/gpu: 56 per node, 56 in all (8 x A100-40GB)",
        "driver  cloud; device plugin: chart, entry c-",
        "why     the pool does not exist",
        "+ install  release gpukube-system/gpukube-nvidia-device-plugin",
        "plan: 1 to create, 1 release to install",
    ):
        assert fact in shown.out
    assert '"gpuInstanceProfile"' not in shown.out


@pytest.mark.parametrize("words", [("pool", "plan", "-v"), ("-v", "pool", "plan")])
def test_plan_when_verbose_then_the_exact_request(words: tuple[str, ...], gpukube: Gpukube) -> None:
    shown = gpukube(*words, "-f", SINGLE)
    assert '"gpuInstanceProfile": "MIG1g"' in shown.out
    assert "aks: agent_pools.begin_create_or_update" in shown.out


def test_list_when_pools_live_then_one_row_each_whoever_owns_them(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    daemon.tamper(gpukube.info, "train", "t4shared", nodeLabels=None, tags=None)
    gpukube.made("-f", SINGLE)
    rows = gpukube("pool", "list", "-f", SINGLE).out.splitlines()
    assert rows[0].split() == ["CLUSTER", "NAME", "OWNER", "STATUS", "NODES", "GPUS", "ALLOCATABLE", "USED", "SLICES"]
    table = {row.split()[1]: row.split() for row in rows[1:]}
    assert " ".join(table["a100mig"]) == "train-aks a100mig aks-mig-single Succeeded 1 8x A100-40GB 56 none 7"
    assert table["t4shared"][2:5] == ["-", "Succeeded", "2"]
    assert "nodepool1" not in table  # no GPUs


def test_get_when_the_pool_lives_then_its_fields_and_nodes(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    shown = gpukube("pool", "get", "t4shared", "-f", SLICED)
    assert shown.code == 0
    for fact in ("train-aks/t4shared", "owner        aks-timeslicing", "nodes.count: 2", 'labels[team]: "vision"'):
        assert fact in shown.out
    assert shown.out.count("ready  nvidia.com/gpu: 4") == 2


def test_get_when_there_is_no_such_pool_then_four(gpukube: Gpukube) -> None:
    missing = gpukube("pool", "get", "h100", "-f", SLICED)
    assert (missing.code, missing.out) == (4, "")
    assert 'h100: error[no-pool]: no pool "h100" is live on train-aks' in missing.err


def test_progress_when_piped_then_one_line_per_news_with_a_time(gpukube: Gpukube) -> None:
    made = gpukube.made("-f", SINGLE)
    *lines, last = made.err.splitlines()
    assert last.startswith("first pod: gpukube workload render pod ")
    assert all(PROGRESS.fullmatch(line) for line in lines), made.err
    news: dict[str, list[str]] = {}
    for line in lines:
        _, subject, told = line.split(" ", 2)
        news.setdefault(subject, []).append(told)
    for told_of_one in news.values():  # nothing is said twice on end: a state may come again on its way
        assert all(before != after for before, after in itertools.pairwise(told_of_one)), made.err
    phases = [match.group(2) for line in lines if (match := PROGRESS.fullmatch(line))]
    order = list(dict.fromkeys(phases))  # each phase where it is first seen
    assert order[:2] == ["check", "release"]
    assert order.index("release") < order.index("create")
    assert phases[-1] == "done"


def escapes(result: Result) -> list[str]:
    """List the terminal codes in what was said."""
    return re.findall(r"\x1b\[[0-9;?]*[A-Za-z]", result.out + result.err)


def test_output_when_piped_then_no_codes(sandbox: SandboxInfo) -> None:
    assert escapes(run_process(sandbox, "pool", "plan", "-f", SINGLE, NO_COLOR="", FORCE_COLOR="")) == []


def test_create_when_colour_is_forced_in_a_pipe_then_coloured_lines_not_redrawn_rows(sandbox: SandboxInfo) -> None:
    done = run_process(sandbox, "pool", "create", "-f", SINGLE, NO_COLOR="", FORCE_COLOR="1")
    assert done.code == 0
    assert "\x1b[32mdone" in done.out
    assert "\x1b[2K" not in done.err
    assert re.search(r"\d\d:\d\d:\d\d train-aks/a100mig done: created", done.err)


def test_create_when_on_a_terminal_then_live_rows_colour_and_80_columns(sandbox: SandboxInfo) -> None:
    with Terminal(sandbox, "pool", "create", "-f", SINGLE, NO_COLOR="") as terminal:
        assert terminal.end() == 0, terminal.text
    assert "\x1b[32mdone" in terminal.seen
    assert "\x1b[2K" in terminal.seen  # rows are redrawn in place
    assert "nvidia.com/gpu: 56 verified on 1 node" in terminal.text
    rows = re.split(r"\r|\n|\x1b\[2K", terminal.seen)
    texts = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", row) for row in rows]
    assert max(len(text) for text in texts if not text.startswith("first pod: ")) <= 80  # a command stays whole


def test_create_when_on_a_terminal_with_no_color_then_rows_without_colour(sandbox: SandboxInfo) -> None:
    with Terminal(sandbox, "pool", "create", "-f", SINGLE, NO_COLOR="1") as terminal:
        assert terminal.end() == 0, terminal.text
    assert not re.findall(r"\x1b\[(?:[0-9;]*3[0-7])m", terminal.seen)
    assert "nvidia.com/gpu: 56 verified on 1 node" in terminal.text


def test_create_when_on_a_terminal_in_ci_then_plain_lines(sandbox: SandboxInfo) -> None:
    with Terminal(sandbox, "pool", "create", "-f", SINGLE, CI="true", NO_COLOR="1") as terminal:
        assert terminal.end() == 0, terminal.text
    assert "\x1b[2K" not in terminal.seen
    assert re.search(r"\d\d:\d\d:\d\d train-aks/a100mig done: created", terminal.text)


def test_examples_when_named_in_the_readme_then_the_commands_there_are_real(gpukube: Gpukube) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block = readme.split("```console\n$ gpukube pool plan -f pools.yaml\n")[1].split("```")[0]
    shown = gpukube("pool", "plan", "-f", SINGLE)
    for line in block.splitlines():
        assert line in shown.out.splitlines()


MIXED = EXAMPLES / "aks-mig-mixed.yaml"
NEEDED = """\
             pods    need these in their spec; nothing adds them:
                     tolerations:
                     - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
"""


def test_pods_when_nothing_lets_them_tolerate_a_taint_then_told_once_with_lines_to_paste(gpukube: Gpukube) -> None:
    planned = gpukube("pool", "plan", "-f", MIXED)
    assert (planned.code, planned.out.count(NEEDED)) == (0, 1), planned.out
    made = gpukube.made("-f", MIXED)
    told = made.out[made.out.index("tolerations:") :].splitlines()[:2]
    assert made.out.count("tolerations:") == 1
    (needed,) = gpukube("pool", "plan", "-f", MIXED, "-o", "json").pools()[0]["tolerations"]
    assert {key: value for key, value in needed.items() if value} == yaml.safe_load("\n".join(told))["tolerations"][0]
    assert "tolerations:" not in gpukube("pool", "plan", "-f", MIXED).out
    assert "tolerations:" not in gpukube("pool", "create", "-f", MIXED).out


def test_pods_when_their_tolerations_are_added_then_nothing_is_said(gpukube: Gpukube) -> None:
    assert "tolerations:" not in gpukube("pool", "plan", "-f", SINGLE).out
    assert "tolerations:" not in gpukube.made("-f", SINGLE).out


def test_hints_when_a_command_does_not_follow_the_spec_then_not_repeated(gpukube: Gpukube) -> None:
    assert "hint[GPK322 sharing-isolation]" in gpukube("pool", "plan", "-f", SLICED).err
    assert "hint[" not in gpukube("pool", "list", "-f", SLICED).err
