"""docs/device-plugin.md shows the very rows that decide. `--update` writes its tables anew."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gpukube.core.owners import DRIVER_ROWS, PLUGIN_ROWS, RELEASE_ROWS
from gpukube.core.owners.labels import LABEL_REASONS
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.provider import load_provider
from tests.builders import make_target
from tests.unit.gpukube_eks.samples import eks_target
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.owners import DriverRow, PluginRow
    from gpukube.core.values import Target

PAGE = Path(__file__).parents[3] / "docs" / "device-plugin.md"
CUT = Sharing(mig=MigCut("1g.5gb", "single"))
STACKS: Final[tuple[tuple[str, Target], ...]] = (
    ("", eks_target(sharing=CUT)),
    ("", eks_target(sharing=CUT, image="bottlerocket")),
    ("", make_target(sharing=CUT)),
    ("", make_target(sharing=CUT, image="AzureContainerLinux")),
    ("driver.owner: operator", make_target(sharing=CUT, driver_owner="operator")),
    ("devicePlugin.owner: cloud", make_target(plugin_owner="cloud")),
    ("", gke_target(sharing=CUT)),
    ("driver.owner: none", gke_target(sharing=CUT, driver_owner="none")),
    ("devicePlugin.owner: none", gke_target(sharing=CUT, plugin_owner="none")),
    ("devicePlugin.owner: operator", gke_target(sharing=CUT, plugin_owner="operator")),
    ("driver.owner: operator", gke_target(sharing=CUT, driver_owner="operator", image="UBUNTU_CONTAINERD")),
)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(titles), *(tuple(row) for row in rows)]
    lines.insert(1, ("---",) * len(lines[0]))
    return "\n".join("| " + " | ".join(cell or "" for cell in line) + " |" for line in lines)


def stacks() -> Iterator[tuple[str, ...]]:
    for requested, target in STACKS:
        stack = load_provider(target.cluster.provider).stack(target)
        uncut = not target.sharing.mig
        cut = "not possible" if uncut else stack.cut_by
        operable = stack.no_operator and "no"
        yield stack.image, requested, stack.driver, stack.advertiser, cut, operable or "yes", stack.source


def releases() -> Iterator[tuple[str, ...]]:
    for row in RELEASE_ROWS:
        yield f"`{row.name}`", row.release, row.message.format(pool="P"), row.source


def drivers() -> Iterator[tuple[str, ...]]:
    for row in DRIVER_ROWS:
        brings = ", ".join(
            part for part in (known(row.brings), "no driver of the operator's" * (row.operable == "no")) if part
        )
        yield f"`{row.name}`", ", ".join(row.requested), brings, answer(row), row.source


def plugins() -> Iterator[tuple[str, ...]]:
    for row in PLUGIN_ROWS:
        facts = [
            ("cloud's plugin", {"cloud": "yes", "none": "no"}.get(row.brings, "")),
            ("driver by", {"any": "", "none": "nobody"}.get(row.driver, row.driver)),
            ("release", known(row.release)),
            ("MIG by", " or ".join(row.cut)),
            ("operable", known(row.operable)),
            ("mixed", known(row.mixed)),
            ("its plugin", known(row.plugin)),
            ("DRA driver can serve", known(row.claimable)),
        ]
        said = ", ".join(f"{name}: {value}" for name, value in facts if value)
        yield f"`{row.name}`", ", ".join(row.requested), said, answer(row), row.source


def known(value: str) -> str:
    return "" if value == "any" else value


def answer(row: DriverRow | PluginRow) -> str:
    if row.answer is None:
        ways = "; or ".join(row.fixes or ()).replace("{without_plugin}", "get nodes without it")
        ways = ways.replace("{with_dra}", "get nodes that it can serve")
        return f"**refused**: {plain(ways)}"
    kept = ", labelled so that the operator stays off" if getattr(row, "kept_off", False) else ""
    operated = ", beside the operator without its plugin" if getattr(row, "operated", False) else ""
    return f"{row.answer}{kept}{operated}"


def plain(text: str) -> str:
    return re.sub(r"\{(\w+)\}", r"\1", text)


TABLES: Final = {
    "stacks": table(
        ("Nodes", "If the spec has", "Driver", "Plugin", "MIG by", "Operator can serve", "Source"), stacks()
    ),
    "release": table(("Row", "Release", "Reason", "Source"), releases()),
    "driver": table(("Row", "driver.owner", "Nodes bring", "Driver by", "Source"), drivers()),
    "plugin": table(("Row", "devicePlugin.owner", "If", "Advertised by", "Source"), plugins()),
    "labels": table(("Node label", "Purpose"), ((f"`{key}`", why) for key, why in LABEL_REASONS.items())),
}


def written(page: str) -> str:
    for name, text in TABLES.items():
        block = f"<!-- table: {name} -->\n\n{text}\n\n<!-- end -->"
        page = re.sub(rf"<!-- table: {name} -->.*?<!-- end -->", lambda _: block, page, flags=re.DOTALL)  # noqa: B023 - called at once
    return page


def test_page_when_rows_change_then_it_is_written_again(request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text("utf-8")
    if request.config.getoption("--update", default=False):
        PAGE.write_text(written(page), "utf-8")
        page = PAGE.read_text("utf-8")
    assert page == written(page)


@pytest.mark.parametrize("name", TABLES)
def test_page_when_read_then_every_table_is_there(name: str) -> None:
    assert TABLES[name] in PAGE.read_text("utf-8")


def test_stacks_when_nothing_is_cut_then_nobody_cuts_on_any_provider() -> None:
    providers = {target.cluster.provider: target for _, target in STACKS}
    assert providers.keys() == {"aks", "eks", "gke"}
    for name, target in providers.items():
        assert load_provider(name).stack(replace(target, sharing=Sharing())).cut_by == "none"
