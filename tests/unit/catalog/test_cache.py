"""The file of refreshed data: written whole, readable by its owner only, and never in the way."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from gpukube.catalog import cache
from gpukube.catalog.cache import Cached, read_cache, write_cache
from gpukube.catalog.place import cache_file
from gpukube.gpu.machines import catalog_date
from gpukube.gpu.refreshed import Offer, Stock

if TYPE_CHECKING:
    from pathlib import Path

STOCKS = (
    Stock(
        "aks", "eastus", "2026-12-01T08:00:00Z", (Offer("Standard_NC4as_T4_v3", "T4-16GB", 1, price_usd_h=0.5),), ("a",)
    ),
    Stock(
        "eks", "us-east-1", "2026-12-01T08:00:00Z", (Offer("g6f.large", "L4", 0.125, 2, 8.0, "amd64", status="legacy"),)
    ),
)


def test_cache_when_written_then_read_back_equal_and_private(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "catalog.json"
    write_cache(file, reversed(STOCKS))
    assert read_cache(file) == Cached(STOCKS)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["catalog.json"]


def test_cache_when_written_again_then_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text("old")
    file.chmod(0o644)
    write_cache(file, STOCKS[:1])
    assert read_cache(file).stocks == STOCKS[:1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_cache_when_it_cannot_be_written_then_the_old_one_stays_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    write_cache(file, STOCKS)
    with pytest.raises(TypeError):
        write_cache(file, [Stock("eks", "x", "now", (object(),))])  # type: ignore[arg-type]  # what cannot be written
    assert read_cache(file).stocks == STOCKS
    assert [path.name for path in tmp_path.iterdir()] == ["catalog.json"]


def test_cache_when_there_is_none_then_nothing_and_no_word(tmp_path: Path) -> None:
    assert read_cache(tmp_path / "catalog.json") == Cached()


def whole(**changes: object) -> str:
    offer: dict[str, object] = {"name": "g6.xlarge"}
    stock = {"provider": "eks", "region": "us-east-1", "fetched": "2026-12-01T08:00:00Z", "offers": [offer | changes]}
    return json.dumps({"format": 1, "stocks": [stock]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "was not written by gpukube"),
        ("\x00\xff", "was not written by gpukube"),
        ("[]", "was not written by gpukube"),
        ("{}", "was not written by gpukube"),
        ('{"format": 1}', "was not written by gpukube"),
        ('{"format": "1", "stocks": []}', "was not written by gpukube"),
        ('{"format": 0, "stocks": []}', "has format 0, but this gpukube reads format 1"),
        ('{"format": 2, "other": []}', "has format 2, but this gpukube reads format 1"),
        (whole()[:-9], "was not written by gpukube"),
        (whole(price_usd_h="cheap"), "was not written by gpukube"),
        (whole(arch="mips"), "was not written by gpukube"),
        (whole(status="gone"), "was not written by gpukube"),
        (whole(name=None), "was not written by gpukube"),
    ],
)
def test_cache_when_broken_or_of_another_version_then_told_once_and_passed_over(
    text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(text, "latin-1")
    cached = read_cache(file)
    (found,) = cached.findings
    assert (cached.stocks, found.code, found.severity) == ((), "catalogue-cache", "warning")
    assert found.seen == f"using the embedded data: the file of refreshed data {why}"
    assert found.fix == "gpukube catalog refresh, or remove the file"


def test_cache_when_a_newer_gpukube_added_keys_then_read_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(whole(tomorrow=1))
    assert [offer.name for offer in read_cache(file).stocks[0].offers] == ["g6.xlarge"]


@pytest.mark.parametrize(
    ("fetched", "table", "is_kept"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01", False),
        ("2026-01-01T00:00:00Z", "", False),
        ("2026-01-01T00:00:00Z", catalog_date(), True),  # a clock that is wrong
        (f"{catalog_date()}T00:00:00Z", "2026-01-01", True),
        ("2100-01-01T00:00:00Z", "2026-01-01", True),
    ],
)
def test_cache_when_a_later_gpukube_has_a_newer_table_then_told_and_passed_over(
    fetched: str,
    table: str,
    is_kept: bool,  # noqa: FBT001 - a table
    tmp_path: Path,
) -> None:
    file = tmp_path / "catalog.json"
    old = Stock("eks", "us-east-1", fetched, (), (), table)
    write_cache(file, [old, STOCKS[0]])
    cached = read_cache(file)
    assert cached.stocks == ((STOCKS[0], old) if is_kept else STOCKS[:1])
    assert [found.code for found in cached.findings] == ([] if is_kept else ["catalogue-outdated"])
    if not is_kept:
        assert cached.findings[0].seen == (
            "using the embedded data: the data for eks us-east-1 is older, from 2026-01-01"
        )
        assert cached.findings[0].fix == "gpukube catalog refresh --provider eks --region us-east-1"


def test_cache_when_it_is_a_directory_or_huge_then_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read_cache(tmp_path).findings
    assert "cannot be read (is a directory)" in found.seen
    monkeypatch.setattr(cache, "_LARGEST", 10)
    (tmp_path / "large").write_text(whole())
    (large,) = read_cache(tmp_path / "large").findings
    assert "is larger than" in large.seen


def test_file_when_named_then_the_users_cache_or_the_directory_given_and_another_in_the_sandbox(tmp_path: Path) -> None:
    usual = cache_file({}, sandbox=False)
    assert (usual.name, usual.parent.name) == ("catalog.json", "gpukube")
    given = {"GPUKUBE_CACHE_DIR": str(tmp_path)}
    assert cache_file(given, sandbox=False) == tmp_path / "catalog.json"
    assert cache_file(given, sandbox=True) == tmp_path / "catalog-sandbox.json"
