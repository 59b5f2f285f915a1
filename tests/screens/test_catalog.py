"""What the catalog looks like, to the letter: at 80 and at 200 columns, and in a pipe.

`pytest tests/screens --update` writes the screens anew; the review reads the difference.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from rich.console import Console

from gpukube.catalog.documents import find_document, list_document, slices_document, type_document
from gpukube.catalog.filters import Filters, choose_entries
from gpukube.catalog.refreshing import Outcome, refresh_document
from gpukube.catalog.types import find_type
from gpukube.cli import output
from gpukube.cli.console import PIPE_WIDTH, write_lines
from gpukube.cli.rendering.view import View
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.errors import AccessError
from gpukube.gpu.models import parse_model
from gpukube.gpu.refreshed import Offer, Stock, lay_over

if TYPE_CHECKING:
    from collections.abc import Mapping

SCREENS = Path(__file__).parent / "catalog"
WIDTHS = (80, 200)

BARRED = "NotAvailableForSubscription"
STOCKS = (
    Stock("aks", "eastus", "2026-12-24T08:00:00Z", (
        Offer("Standard_NC24ads_A100_v4", price_usd_h=3.5, spot_usd_h=1.25, price_date="2026-12-24"),
        Offer("Standard_ND96amsr_A100_v4", price_usd_h=31.0, price_date="2026-12-24", restricted=BARRED),
    )),
    Stock("eks", "eu-west-1", "2026-12-24T08:00:00Z", (
        Offer("p4de.24xlarge", price_usd_h=30.0, spot_usd_h=12.5, price_date="2026-12-20"),
        Offer("p9.48xlarge", "A100-80GB", 16, 192, 2048, "amd64", price_usd_h=61.0, price_date="2026-12-24"),
    ), ("spot prices could not be read",)),
)  # fmt: skip
ENTRIES = lay_over(STOCKS)
A100 = (parse_model("A100-40GB"), parse_model("A100-80GB"))
FOUND = choose_entries(ENTRIES, Filters(models=A100))
SLICES = slices_document(ENTRIES, STOCKS, 20)


def _outcomes() -> tuple[Outcome, ...]:
    aks, eks, gke = (
        Inquiry(name, region, Account(), Settings())
        for name, region in (("aks", "eastus"), ("eks", "eu-west-1"), ("gke", "us-central1"))
    )
    refused = AccessError(
        "no Google Cloud credentials were found", where=gke.where, fix="log in", code="no-credentials"
    )
    denied = AccessError("Azure could not log in", where=aks.where, fix="log in", why="a long reason of Azure's own")
    return Outcome(aks, STOCKS[0], denied), Outcome(eks, STOCKS[1]), Outcome(gke, None, refused)


DOCUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "list": list_document(FOUND, STOCKS, ""),
    "nothing": list_document(replace(FOUND, entries=()), (), ""),
    "find": find_document(ENTRIES, STOCKS, (A100[1], 8), ("aks", "eks", "gke")),
    "missing": find_document(ENTRIES, (), (parse_model("L4"), 3), ("aks", "eks", "gke")),
    "slices": {**SLICES, "slices": SLICES["slices"][:8]},
    "type": type_document(find_type(ENTRIES, "Standard_NC24ads_A100_v4"), STOCKS),
    "share": type_document(find_type(ENTRIES, "g6f.large"), ()),
    "attached": type_document(find_type(ENTRIES, "n1-highmem-96"), ()),
    "refresh": refresh_document(_outcomes(), "/home/me/.cache/gpukube/catalog.json"),
}
"""Name of the screen -> document."""

SHOWN: Final = [
    *((name, f"{width}", View(width=width)) for name in DOCUMENTS for width in WIDTHS),
    *((name, "pipe", View()) for name in DOCUMENTS),
    *((name, "verbose-80", View(verbose=True, width=80)) for name in ("find", "missing", "type")),
    ("list", "wide-200", View(width=200, wide=True)),
]


def drawn(name: str, view: View) -> str:
    document = DOCUMENTS[name]
    stream = io.StringIO()
    console = Console(file=stream, width=view.width or PIPE_WIDTH, highlight=False, emoji=False)
    write_lines(output.renderer(document["kind"])(document, view), console, wrap=bool(view.width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize(("name", "how", "view"), SHOWN, ids=[f"{name}-{how}" for name, how, _ in SHOWN])
def test_screen_when_drawn_then_the_recorded_one(
    name: str, how: str, view: View, request: pytest.FixtureRequest
) -> None:
    record, shown = SCREENS / f"{name}.{how}.txt", drawn(name, view)
    if request.config.getoption("--update", default=False):
        record.write_text(shown, "utf-8")
    assert shown == record.read_text("utf-8")


@pytest.mark.parametrize("width", [40, 60, *WIDTHS])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_screen_when_narrow_or_wide_then_no_line_is_longer_and_nothing_is_cut(name: str, width: int) -> None:
    for verbose in (False, True):
        shown = drawn(name, View(verbose, width))
        assert max(map(len, shown.splitlines())) <= width
        assert "…" not in shown


def test_list_when_at_80_columns_then_no_cell_is_broken() -> None:
    whole = list_document(choose_entries(lay_over(()), Filters(statuses=("current", "retired"))), (), "")
    stream = io.StringIO()
    console = Console(file=stream, width=80, highlight=False, emoji=False)
    write_lines(output.renderer("CatalogList")(whole, View(width=80)), console, wrap=True)
    lines = stream.getvalue().splitlines()
    for machine in whole["machines"]:
        assert any(line.startswith(f"{machine['instanceType']} ") for line in lines), machine["instanceType"]
    assert len([line for line in lines if " yes " in line or " no " in line or " ? " in line]) == len(whole["machines"])


def test_screens_when_counted_then_all_belong_to_a_case() -> None:
    assert {path.name for path in SCREENS.iterdir()} == {f"{name}.{how}.txt" for name, how, _ in SHOWN}
