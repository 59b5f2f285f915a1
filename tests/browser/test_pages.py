"""Pages in a real browser: accessible by axe-core, operated by keyboard, and on paper; nothing is loaded or run."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpukube.cli.formats.html import html_lines
from gpukube.visible import visible_tree
from tests.documents import DOCUMENTS
from tests.map_scene import big_map, rich_map
from tools.browser import Browser, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AXE: Final = find_spec("axe_playwright_python")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="chromium is not on PATH"),
]
EVIL: Final = "</style></script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
PAGES: Final[Mapping[str, Any]] = {"map": rich_map(), "plan": DOCUMENTS["Plan"]}
CHECK: Final = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.map(
  (one) => one.id + ": " + one.nodes.map((node) => node.target + " " + node.failureSummary).join("; ")))"""
BROKEN: Final = """[...document.querySelectorAll("th, td")].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/[A-Za-z0-9]+/g)) {
    const range = document.createRange();
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (range.getClientRects().length > 1) found.push(word[0]);
  }
  return found;
})"""
"""Words of tables that are on two lines."""
LETTER: Final = 740
"""Width of a page of paper between its margins."""
SHOWN: Final = "document.querySelectorAll('.item:not([hidden])').length"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


def saved(directory: Path, document: Any) -> Path:  # noqa: ANN401 - a document of any kind
    file = directory / "page.html"
    file.write_text("\n".join(html_lines(visible_tree(document))), "ascii")
    return file


@pytest.mark.skipif(_AXE is None, reason="no axe-core: pip install --no-deps axe-playwright-python")
@pytest.mark.parametrize("kind", PAGES)
def test_page_when_checked_by_axe_then_no_violations_in_light_dark_and_narrow(
    kind: str, tmp_path: Path, browser: Browser
) -> None:
    assert _AXE is not None
    assert _AXE.origin
    axe = Path(_AXE.origin).with_name("axe.min.js").read_text("utf-8")
    file = saved(tmp_path, PAGES[kind])
    for width, dark in ((1280, False), (1280, True), (360, False)):
        browser.show(file, width=width, dark=dark)
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        browser.run(axe)
        assert browser.run(CHECK) == [], (width, dark)


@pytest.mark.parametrize("kind", PAGES)
def test_page_when_opened_then_nothing_is_loaded_or_refused_and_it_fits_a_telephone(
    kind: str, tmp_path: Path, browser: Browser
) -> None:
    file = saved(tmp_path, PAGES[kind])
    browser.show(file, width=360, height=740)
    loaded = [event["request"]["url"] for name, event in browser.events if name == "Network.requestWillBeSent"]
    assert loaded == [file.as_uri()]
    assert not [name for name, _ in browser.events if name in ("Log.entryAdded", "Runtime.exceptionThrown")]
    assert browser.run("document.documentElement.scrollWidth") == 360
    assert browser.run("document.querySelector('form.tools').hidden") is False


def test_map_when_names_are_hostile_then_they_are_text(tmp_path: Path, browser: Browser) -> None:
    document = copy.deepcopy(rich_map())
    for cluster in document["clusters"]:
        cluster["cluster"] += EVIL
        for pool in cluster["pools"]:
            pool["pool"] = EVIL
            for node in pool["nodes"]:
                node["name"] += EVIL
                for pod in node["pods"]:
                    pod["name"] += EVIL
    browser.show(saved(tmp_path, document))
    assert browser.run("document.title") == "73 GPUs on 10 nodes and 2 starting of 5 clusters"
    assert browser.run("document.images.length + document.scripts.length") == 1
    assert EVIL[:60] in browser.run("document.querySelector('.node .name').textContent")


def test_map_when_filtered_then_only_what_fits_is_shown(tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, rich_map()))
    everything = browser.run(SHOWN)
    assert everything == 11  # ten nodes, and those that start

    def choose(field: str, value: str) -> int:
        browser.run(
            f"(() => {{ const field = document.forms[0].elements.{field}; field.value = '{value}';"
            "field.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        shown: int = browser.run(SHOWN)
        return shown

    assert choose("text", "llm-pretrain") == 2
    assert browser.run("document.forms[0].elements.shown.value") == "2 of 11 shown"
    assert browser.run("document.querySelectorAll('.cluster.group:not([hidden])').length") == 1
    assert choose("text", "TRAIN-AKS") == 3  # the name of their cluster
    assert choose("text", "") == everything
    assert choose("state", "free") == 4
    assert choose("state", "blocked") == 5


def test_page_when_no_script_runs_then_everything_is_there_without_filters(tmp_path: Path, browser: Browser) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(saved(tmp_path, rich_map()))
        assert browser.run("document.querySelector('form.tools').hidden") is True
        assert browser.run(SHOWN) == 11
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_page_when_used_by_keyboard_then_skips_to_the_content_and_folds_pools(tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, rich_map()))
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    browser.press("Enter")
    assert browser.run("location.hash + document.activeElement.id") == "#contentcontent"
    browser.run("document.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('details.pool').open") is False


def test_page_when_printed_then_what_is_folded_is_on_paper(tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, rich_map()))
    seen = "document.querySelector('.fold:not([open]) ul').checkVisibility()"
    assert browser.run(seen) is False
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run(seen) is True
        assert browser.paper().startswith(b"%PDF")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("kind", PAGES)
def test_page_when_printed_then_no_word_of_a_table_is_broken(kind: str, tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, PAGES[kind]), width=LETTER)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run(BROKEN) == []
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_map_when_on_a_telephone_then_what_is_free_is_seen_without_scrolling(tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, rich_map()), width=360, height=740)
    free = "document.querySelectorAll('.sums tbody tr td:nth-of-type(3)')"
    assert browser.run(f"Math.max(...[...{free}].map((one) => one.getBoundingClientRect().right))") < 346
    assert browser.run(f"[...{free}].map((one) => one.textContent).join(' ')") == "1 4 12 0 25"


def test_map_when_of_400_nodes_then_every_gpu_is_drawn(tmp_path: Path, browser: Browser) -> None:
    browser.show(saved(tmp_path, big_map(400)))
    assert browser.run("document.querySelectorAll('.node i').length") == 3200
