"""AWS's models, of which a run decodes what it looks up, are the same as botocore reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import botocore
import pytest
from botocore import xform_name
from botocore.loaders import JSONFileLoader
from botocore.model import OperationModel, ServiceModel, Shape

from gpukube_eks.live.access import EC2_OPERATIONS, Models
from gpukube_eks.live.sdk import Ec2Capacity, Ec2Sdk, Ec2Types, SpotPrices

DATA = Path(botocore.__file__).with_name("data")
FILES = ("sts/*/service-2", "eks/*/service-2", "eks/*/endpoint-rule-set-1", "endpoints", "partitions", "_retry")


def newest(pattern: str) -> str:
    """Find a file of botocore's data; its path without the ending, as loaders take it."""
    *_, found = sorted(DATA.glob(f"{pattern}.json*"))
    return str(found).partition(".json")[0]


def as_shipped(path: str) -> object:
    """Read a file as it is on disk: botocore fills in what its loaders gave before, in place."""
    packed = Path(f"{path}.json.gz")
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else Path(f"{path}.json").read_bytes()
    return json.loads(text)


def whole(value: object) -> object:
    """Look up everything."""
    if isinstance(value, dict):
        return {name: whole(value[name]) for name in value}
    return [whole(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pattern", FILES)
def test_model_when_all_of_it_is_looked_up_then_as_botocore_reads_it(pattern: str) -> None:
    path = newest(pattern)
    assert whole(Models().load_file(path)) == as_shipped(path)


def test_model_when_gone_through_then_nothing_undecoded_comes_out() -> None:
    model = Models().load_file(newest("eks/*/service-2"))
    assert model is not None
    shapes = model["shapes"]
    read = JSONFileLoader().load_file(newest("eks/*/service-2"))["shapes"]
    assert (dict(shapes.items()), shapes.values()) == (read, list(read.values()))
    assert (shapes.get("Cluster"), shapes.get("Missing"), shapes.get("Missing", 1)) == (read["Cluster"], None, 1)


def test_model_when_there_is_no_file_then_none() -> None:
    assert Models().load_file(str(DATA / "missing")) is None


def test_ec2_when_read_then_what_we_call_and_no_more() -> None:
    declared = {
        name for sdk in (Ec2Sdk, Ec2Types, SpotPrices, Ec2Capacity) for name in vars(sdk) if not name.startswith("_")
    }
    assert {xform_name(operation) for operation in EC2_OPERATIONS} == declared
    path = newest("ec2/*/service-2")
    part, model = Models().load_file(path), JSONFileLoader().load_file(path)
    assert part is not None
    assert list(part["operations"]) == list(EC2_OPERATIONS)
    assert part.keys() == model.keys()
    assert {**model, **{name: {**model[name], **part[name]} for name in ("operations", "shapes")}} == model
    service = ServiceModel(part, "ec2")
    for name in EC2_OPERATIONS:
        operation: OperationModel = service.operation_model(name)
        for shape in (operation.input_shape, operation.output_shape, *operation.error_shapes):
            visit(shape, set())


def visit(shape: Shape | None, seen: set[str]) -> None:
    """Resolve a shape and all below it."""
    if shape is not None and shape.name not in seen:
        seen.add(shape.name)
        below = [*getattr(shape, "members", {}).values(), getattr(shape, "member", None), getattr(shape, "value", None)]
        for one in below:
            visit(one, seen)
