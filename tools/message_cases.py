"""The cases of tests/messages and tests/workloads: what is wrong, the message, what is right, on a page each.

A page is named by the code that it shows, or `code.case` for one more way to get there. Its blocks are files:

    ```yaml bad.yaml
    ```

with the encoding behind the name where it is not UTF-8. `bad.yaml` and `good.yaml` are the specs, in tests/workloads
the manifests, with `pools.yaml` as the spec where there is one; others are next to them. Blocks that are no files:
`said`, the exact text; `bad.json` and `good.json`, what the command line adds. Words between the blocks are for whoever
reads the page.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGES: Final = Path(__file__).parent.parent / "tests" / "messages"
WORKLOADS: Final = Path(__file__).parent.parent / "tests" / "workloads"
_BLOCK: Final = re.compile(
    r"^```\w+ (?P<name>\S+)(?: (?P<encoding>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NO_FILES: Final = frozenset({"said", "bad.json", "good.json"})


class Arguments(TypedDict, total=False):
    """What the command line adds to a case; `loads` is for the library, which may load more than once."""

    paths: list[str]
    loads: list[list[str]]
    sets: list[str]
    environ: dict[str, str]
    clusters: list[str]
    pools: list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """One way to a message."""

    page: Path
    files: Mapping[str, bytes]
    said: str
    more: Mapping[str, Arguments]

    @property
    def name(self) -> str:
        """Of the page."""
        return self.page.name.removesuffix(".md")

    @property
    def code(self) -> str:
        """The code that it shows."""
        return self.name.partition(".")[0]

    def arguments(self, side: Literal["bad", "good"]) -> Arguments:
        """Return the command line; without anything it is the file."""
        given = self.more.get(side, {})
        return given if "paths" in given or "loads" in given else {**given, "paths": [f"{side}.yaml"]}

    def text(self, name: str) -> list[str]:
        """Return the lines of a file, as far as they can be read."""
        return self.files[name].decode("utf-8", "replace").splitlines()

    def lay_out(self, directory: Path) -> None:
        """Write its files."""
        for name, content in self.files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)

    def update(self, said: str) -> None:
        """Write another text into the page."""
        page = self.page.read_text("utf-8")
        found = next(block for block in _BLOCK.finditer(page) if block["name"] == "said")
        self.page.write_text(page[: found.start("text")] + said + page[found.end("text") :], "utf-8")


@cache
def message_cases(folder: Path = PAGES) -> tuple[Case, ...]:
    """Read all of a folder, by name."""
    return tuple(sorted(map(_case, folder.glob("*.md")), key=lambda case: case.name))


def _case(page: Path) -> Case:
    blocks = {block["name"]: block for block in _BLOCK.finditer(page.read_text("utf-8"))}
    files = {
        name: block["text"].encode(block["encoding"] or "utf-8")
        for name, block in blocks.items()
        if name not in _NO_FILES
    }
    more = {
        side: cast("Arguments", json.loads(blocks[f"{side}.json"]["text"]))
        for side in ("bad", "good")
        if f"{side}.json" in blocks
    }
    if "said" not in blocks:
        raise ValueError(f"{page.name}: add an empty block `text said`; pytest --update fills it")
    return Case(page, files, blocks["said"]["text"], more)
