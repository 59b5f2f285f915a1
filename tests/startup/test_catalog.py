"""What the catalog loads: no cloud's library, and nothing at all for help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.startup.test_imports import Loader

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"pydantic", "boto3", "botocore", "azure", "google", "grpc", "requests", "lightkube", "kubernetes"}


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    "words",
    [("list", "--model", "T4"), ("find", "--slice-memory", "20"), ("show", "Standard_ND96asr_v4")],
    ids=lambda words: words[0],
)
def test_catalog_when_it_reads_no_cloud_then_loads_no_sdk_and_no_spec(words: tuple[str, ...], tmp_path: Path) -> None:
    assert tops(Loader(tmp_path)("catalog", *words)) & HEAVY == set()


def test_capacity_when_it_reads_no_cloud_then_loads_no_sdk_no_spec_and_nothing_that_calls(tmp_path: Path) -> None:
    loaded = Loader(tmp_path)("capacity", "find", "--gpu", "H100-80GB", "--count", "8")
    assert tops(loaded) & HEAVY == set()
    assert loaded & {"gpukube.capacity.finding", "gpukube.engine.run.session", "gpukube.cli.stage"} == set()


@pytest.mark.parametrize(
    "words",
    [("--help",), ("catalog", "--help"), ("catalog", "refresh", "--help"), ("capacity", "find", "--help")],
)
def test_help_when_shown_then_the_catalog_is_not_loaded(words: tuple[str, ...], tmp_path: Path) -> None:
    loaded = Loader(tmp_path)(*words)
    assert not [
        name
        for name in loaded
        if name.startswith(("gpukube.catalog", "gpukube.capacity", "gpukube.gpu", "platformdirs", "msgspec"))
    ]
