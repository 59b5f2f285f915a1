"""Examples of fields stand in messages as they would in a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.spec.model import Pool
from gpukube.spec.reference.fields import lookup
from gpukube_eks.spec import EksCluster

if TYPE_CHECKING:
    from gpukube.spec.source.positions import Path

SHOWN: dict[str, tuple[Path, str | None]] = {
    "text": (("image",), "bottlerocket"),
    "text that looks like a number": (("kubernetesVersion",), '"1.34"'),
    "number": (("gpu", "count"), "1"),
    "list": (("zones",), "[us-east-1a, us-east-1b]"),
    "mapping of texts": (("tags",), "{cost-center: ml}"),
    "deep mapping with a boolean": (("gke",), "{config: {gvnic: {enabled: true}}}"),
    "item of a list": (("zones", 0), None),
    "field of an item": (("taints", 0, "key"), "dedicated"),
    "none": (("gpuTaint",), None),
}


@pytest.mark.parametrize(("path", "shown"), SHOWN.values(), ids=SHOWN)
def test_example_when_shown_then_is_one_line_of_yaml(path: Path, shown: str | None) -> None:
    _, field = lookup(Pool, path)
    assert field
    assert field.example == shown
    if shown is not None:
        assert yaml.safe_load(shown) in list(field.info.examples or ())


def test_example_when_digits_then_is_quoted() -> None:
    _, field = lookup(EksCluster, ("account",))
    assert field
    assert field.example == '"111122223333"'
