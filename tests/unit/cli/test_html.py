"""Pages: one file that loads nothing, in which all text of others is text, and every device is drawn once."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpukube.cli import output
from gpukube.cli.formats.html.cells import MOST_CELLS
from gpukube.cli.formats.html.page import NAME, Markup, cut, joined, tag
from tests.documents import DOCUMENTS
from tests.map_scene import big_map, rich_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[3]
VOID: Final = ("br", "input", "link", "meta")
MARKS: Final = "</script></style><script>alert(1)</script>\"'>"
EVIL: Final = f"{MARKS}<img src=x onerror=alert(1)>&amp;\u202e\x1b]0;x\x07{'n' * 10_000}"
PAGES: Final[Mapping[str, dict[str, Any]]] = {
    "Map": json.loads(json.dumps(rich_map())),
    "Plan": DOCUMENTS["Plan"],
}


class Read(HTMLParser):
    """What a parser of HTML sees: elements with attributes, and text; it fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.texts.append(data)

    def named(self, kind: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == kind)


def written(document: object, capsys: pytest.CaptureFixture[str]) -> str:
    output.show(document, "html")  # type: ignore[arg-type]  # a document
    return capsys.readouterr().out


def every_text(node: Any, change: str) -> Any:  # noqa: ANN401 - any part of a document
    """Replace all free text of a document; words that a schema lists stay."""
    fixed = {
        "step",
        "fidelity",
        "weight",
        "source",
        "kind",
        "state",
        "attribution",
        "provider",
        "by",
        "readAt",
        "severity",
        "action",
        "role",
        "status",
        "code",
    }
    if isinstance(node, dict):
        return {key: value if key in fixed else every_text(value, change) for key, value in node.items()}
    if isinstance(node, list):
        return [every_text(item, change) for item in node]
    return change + node if isinstance(node, str) else node


@pytest.mark.parametrize("kind", PAGES)
def test_page_when_parsed_then_its_policy_names_its_own_style_and_script_and_nothing_is_loaded(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = written(PAGES[kind], capsys)
    assert text.isascii()
    page = Read(text)
    (policy,) = [one["content"] for one in page.named("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    hashes = {
        part: f"'sha256-{base64.b64encode(hashlib.sha256(page.raw[part].encode()).digest()).decode()}'"
        for part in ("script", "style")
    }
    assert rules == {
        "default-src": "'none'",
        "style-src": hashes["style"],
        "script-src": hashes["script"],
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert Counter(name for name, _ in page.elements if name in ("script", "style")) == {"script": 1, "style": 1}
    assert not {name for name, _ in page.elements} & {"link", "img", "iframe", "object", "embed", "base", "svg"}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name in ("src", "srcset", "style") or name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|fetch\(|https?:", page.raw["style"] + page.raw["script"])


@pytest.mark.parametrize("kind", PAGES)
def test_page_when_all_text_is_hostile_then_it_is_text_and_cut(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    fair = Read(written(PAGES[kind], capsys))
    page = Read(written(every_text(PAGES[kind], EVIL), capsys))
    # No text adds an element or an attribute to those that a page is made of.
    assert {kind for kind, _ in page.elements} <= {kind for kind, _ in fair.elements}
    assert {name for _, found in page.elements for name in found} <= {
        name for _, found in fair.elements for name in found
    }
    assert page.raw == fair.raw
    seen = "".join(page.texts) + "".join(value or "" for _, found in page.elements for value in found.values())
    assert MARKS in seen
    assert not [char for char in ("\u202e", "\x1b", "\x07") if char in seen]
    assert "n" * 1000 not in seen
    assert "more characters)" in seen


def test_map_when_drawn_then_every_device_is_one_cell_and_every_count_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = rich_map()
    page = Read(written(document, capsys))
    classes = Counter(str(one.get("class")) for one in page.named("i") if " w" not in str(one.get("class")))
    nodes = [node for cluster in document["clusters"] for pool in cluster["pools"] for node in pool["nodes"]]
    expected = Counter(dict.fromkeys("hfuxas", 1))  # the legend
    for node in nodes:
        claimed = {device["resource"] for device in node["devices"]}
        starting = node["state"] == "starting"
        for stock in node["stocks"]:
            assert stock["resource"] in claimed or not claimed
            expected.update(h=stock["held"], f=stock["free"], x=stock["unhealthy"])
            expected["s" if starting else "u"] += stock["unusable"]
            expected["s" if starting else "a"] += stock["notAdvertised"]
    expected["s"] += document["summary"]["starting"]
    assert classes == expected
    text = "".join(page.texts)
    for node in nodes:
        assert text.count(node["name"]) >= 1
        for pod in node["pods"]:
            assert f"{pod['namespace']}/{pod['name']}" in text
        for device in node["devices"]:
            assert text.count(device["name"]) >= 1


def test_map_when_claims_name_no_device_then_no_cell_has_a_holder(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(rich_map(), capsys)
    cells = [one for kind, one in Read(text).elements if kind == "i" and "title" in one]
    known = [
        device
        for cluster in rich_map()["clusters"]
        for pool in cluster["pools"]
        for node in pool["nodes"]
        for device in node["devices"]
    ]
    assert len(cells) == len(known) == 10
    assert cells[0]["title"] == "gpu-0: held by research/train-0 (claim train-0-gpu)"
    assert cells[-1]["title"] == "gpu-3: unhealthy: taint xid=79"
    assert "nothing publishes which pod has which device" in text
    assert "claims publish which pod has it" in text


def test_map_when_only_free_then_nodes_without_are_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(rich_map(free=True), capsys)
    assert "ip-10-0-1-19.ec2.internal" in text
    assert "ip-10-0-1-17.ec2.internal" not in text
    assert "4 nodes without free devices left out." in text


def test_map_when_a_node_has_very_many_devices_then_a_number_stands_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = copy.deepcopy(big_map(1))
    node = document["clusters"][0]["pools"][0]["nodes"][0]
    node["stocks"][0] |= {"held": MOST_CELLS, "free": 10**9, "total": 10**9 + MOST_CELLS}
    text = written(document, capsys)
    assert len(text) < 30_000
    assert "1,000,000,000" in text
    assert text.count('<i class="h">') == MOST_CELLS + 1


def test_map_when_of_400_nodes_and_3200_gpus_then_small(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(big_map(400), capsys)
    assert len(text) <= 2_000_000
    assert text.count('<i class="h">') + text.count('<i class="f">') == 3200 + 2


def sides(text: str, pool: str) -> list[Counter[str]]:
    """Return the GPU cells of a pool, by state, now and after."""
    part = text.partition(f"<h3>{pool}</h3>")[2].partition("</details>")[0].partition('class="sides"')[2]
    now, _, after = part.partition("<h4>After</h4>")
    return [Counter(re.findall(r'<i class="(\w+)">', side.partition("<dl>")[0])) for side in (now, after)]


def test_plan_when_drawn_then_each_gpu_comes_stays_or_goes(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(PAGES["Plan"], capsys)
    assert sides(text, "a100mig") == [{}, {"new": 8}]
    assert sides(text, "t4label") == [{"h": 1}, {"h": 1}]
    assert sides(text, "t4new") == [{"changed": 2}, {"changed": 2}]
    assert sides(text, "a100cut") == [{"gone": 16}, {"new": 8}]
    assert sides(text, "t4old") == [{"gone": 3}, {}]
    assert sides(text, "found") == [{"h": 1}, {"h": 1}]
    assert sides(text, "t4elastic") == [{"h": 1}, {"h": 1, "s": 4}]
    assert "2 nodes go: 8 x A100-40GB on each" in text
    assert "To apply all of it, add: --allow-disruption --replace surge --prune --adopt." in text
    assert text.index("What is lost") < text.index("<h3>")


@pytest.mark.parametrize(
    ("nodes", "live", "expected"),
    [
        ((3, 3, 3, False), 1, [{"h": 1}, {"h": 1, "new": 2}]),
        ((1, 1, 1, False), 3, [{"h": 1, "gone": 2}, {"h": 1}]),
        ((1, 2, 6, True), 0, [{}, {"new": 2, "s": 4}]),
        ((1, 0, 2, True), 3, [{"h": 2, "gone": 1}, {"h": 2}]),
        ((400, 400, 400, False), 0, [{}, {"new": 1}]),
        ((1, 1, 1, False), None, [{}, {}]),
    ],
)
def test_plan_when_a_size_changes_then_drawn_from_the_live_nodes(
    nodes: tuple[int, int, int, bool],
    live: int | None,
    expected: list[dict[str, int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = copy.deepcopy(PAGES["Plan"])
    pool = next(one for one in document["clusters"][0]["pools"] if one["pool"] == "t4label")
    pool["nodes"] = dict(zip(("count", "min", "max", "autoscaled"), nodes, strict=True))
    pool["live"]["nodes"] = live
    assert sides(written(document, capsys), "t4label") == expected


def test_plan_when_an_alternative_stands_by_then_its_nodes_only_may_appear(capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(PAGES["Plan"])
    pool = next(one for one in document["clusters"][0]["pools"] if one["pool"] == "a100mig")
    family = {"name": "train", "rank": 2, "of": 3, "role": "standby", "differs": ["spot"], "mostWaitSeconds": None}
    pool |= {"action": "standby", "family": family}
    text = written(document, capsys)
    assert sides(text, "a100mig") == [{}, {"s": 8}]
    assert "alternative 2 of 3: spot" in text
    assert 'aria-label="Family train"' in text


def test_plan_when_the_spec_has_findings_then_hints_are_folded_and_warnings_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = copy.deepcopy(PAGES["Plan"])
    (warning,) = document["warnings"]
    document["warnings"].append({**warning, "severity": "hint", "message": "this costs more"})
    shown, _, after = written(document, capsys).partition("<summary>1 hint</summary>")
    assert warning["message"].split()[-1] in shown
    assert "this costs more" not in shown
    assert "this costs more" in after


def test_plan_when_shown_then_requests_are_folded_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(PAGES["Plan"], capsys)
    requests = [
        request for cluster in PAGES["Plan"]["clusters"] for pool in cluster["pools"] for request in pool["requests"]
    ]
    assert requests
    assert text.count("<pre>") >= len(requests)
    assert "a `tick` | a pipe" in text
    assert not re.search(r'<details class="fold"[^>]*open', text)


def test_page_when_written_to_a_file_then_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "map.html"
    source = tmp_path / "map.json"
    source.write_text(json.dumps(rich_map()))
    with file.open("w") as out:
        file.chmod(0o644)
        command = [sys.executable, "-m", "gpukube", "report", "show", str(source), "-o", "html"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "providers")))}
        subprocess.run(command, stdout=out, env=environ, check=True, timeout=120)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text("ascii").endswith("</html>\n")


def test_tag_when_given_text_then_escaped_and_markup_is_not() -> None:
    made = tag("p", "<b>&", tag("b", "x"), class_='a"b', aria_label="y", hidden="")
    assert made == '<p class="a&quot;b" aria-label="y" hidden="">&lt;b&gt;&amp;<b>x</b></p>'
    assert joined(("<", Markup("<br>")), " ") == "&lt; <br>"


def test_name_when_long_then_what_is_missing_is_said() -> None:
    assert cut("x" * NAME) == "x" * NAME
    assert cut("x" * 10_000) == "x" * NAME + "… (9,900 more characters)"
