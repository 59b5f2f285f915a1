"""AWS's models, of which a run decodes what it looks up, are the same as botocore reads them."""

from __future__ import annotations

from pathlib import Path

import botocore
import pytest
from botocore.loaders import JSONFileLoader

from gpukube_eks.live.access import Models

DATA = Path(botocore.__file__).with_name("data")
FILES = ("ec2/*/service-2", "eks/*/service-2", "eks/*/endpoint-rule-set-1", "endpoints", "partitions", "_retry")


def newest(pattern: str) -> str:
    """Find a file of botocore's data; its path without the ending, as loaders take it."""
    *_, found = sorted(DATA.glob(f"{pattern}.json*"))
    return str(found).partition(".json")[0]


def whole(value: object) -> object:
    """Look up everything."""
    if isinstance(value, dict):
        return {name: whole(value[name]) for name in value}
    return [whole(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pattern", FILES)
def test_model_when_all_of_it_is_looked_up_then_as_botocore_reads_it(pattern: str) -> None:
    path = newest(pattern)
    assert whole(Models().load_file(path)) == JSONFileLoader().load_file(path)


def test_model_when_gone_through_then_nothing_undecoded_comes_out() -> None:
    model = Models().load_file(newest("eks/*/service-2"))
    assert model is not None
    shapes = model["shapes"]
    read = JSONFileLoader().load_file(newest("eks/*/service-2"))["shapes"]
    assert (dict(shapes.items()), shapes.values()) == (read, list(read.values()))
    assert (shapes.get("Cluster"), shapes.get("Missing"), shapes.get("Missing", 1)) == (read["Cluster"], None, 1)


def test_model_when_there_is_no_file_then_none() -> None:
    assert Models().load_file(str(DATA / "missing")) is None
