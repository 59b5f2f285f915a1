"""Messages in detail: what is said of one wrong value of one field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import Field, ValidationError

from gpukube.spec.loading.messages import explain
from gpukube.spec.model import SpecModel
from gpukube.spec.source.positions import Origin, Positions
from tests.unit.spec.samples import POOL, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

# what the pool writes -> message, fix
CASES = {
    "boolean for a number": (
        "disk: {sizeGiB: true}",
        "pools[0].disk.sizeGiB is the boolean true; expected a whole number",
        "write for example sizeGiB: 256",
    ),
    "fraction for a whole number": (
        "disk: {sizeGiB: 2.5}",
        "pools[0].disk.sizeGiB is the number 2.5; expected a whole number",
        "write for example sizeGiB: 256",
    ),
    "list for a type": (
        "instanceType: [x]",
        "pools[0].instanceType is a list; a pool has one type",
        "write instanceType: x, and a separate pool for each other type",
    ),
    "null in a map of texts": (
        "labels: {aks: null}",
        "pools[0].labels.aks is empty",
        "write a value, or remove the key",
    ),
    "null for one provider": (
        "instanceType: {aks: null}",
        "pools[0].instanceType.aks is empty",
        "write a value, or remove the key",
    ),
    "number for a choice": (
        "driver: {owner: 3}",
        "pools[0].driver.owner is the number 3; it can be auto, cloud, operator or none",
        "write auto, cloud, operator or none",
    ),
    "text for a mapping": (
        "gpu: T4",
        'pools[0].gpu is "T4"; expected a mapping',
        "write gpu: {model: ..., count: ...}",
    ),
    "text for a free mapping": ("aks: x", 'pools[0].aks is "x"; expected a mapping', "write aks: {key: value}"),
    "word for a list": ("zones: one", 'pools[0].zones is "one"; expected a list', "write zones: [one]"),
    "sentence for a list": ('zones: "1, 2"', 'pools[0].zones is "1, 2"; expected a list', "write zones: [...]"),
    "number in a list": ("zones: [01]", "pools[0].zones[0] is the number 1; expected a string", 'write "01"'),
    "infinite price": (
        "capacity: {type: spot, maxPrice: .nan}",
        "pools[0].capacity.maxPrice is the number nan; expected a finite number",
        "write a number with digits",
    ),
    "infinity in a native field": (
        "aks: {a: [.inf]}",
        "pools[0].aks.a[0] is the number inf; expected a finite number",
        "write a number with digits",
    ),
    "key of another place": (
        "replicas: 4",
        'pools[0] has no "replicas"',
        "move it to sharing.timeSlicing or sharing.mps",
    ),
    "key of the pool inside": (
        "sharing: {gpuTaint: true}",
        'pools[0].sharing has no "gpuTaint"',
        "move it to the pool",
    ),
    "long text": (
        f"driver: {{owner: {'x' * 99}}}",
        f'pools[0].driver.owner is "{"x" * 57}..."; it can be auto, cloud, operator or none',
        "write auto, cloud, operator or none",
    ),
    "a label key with dots": (
        "labels: {example.com/a: 1}",
        "pools[0].labels.example.com/a is the number 1; expected a string",
        'write example.com/a: "1"',
    ),
}


@pytest.mark.parametrize(("extra", "message", "fix"), CASES.values(), ids=CASES)
def test_wrong_value_when_explained_then_says_what_it_is_and_what_to_write(
    extra: str, message: str, fix: str, tmp_path: Path
) -> None:
    pool = POOL.replace("gpu: {model: T4-16GB, count: 1}, ", "") if extra.startswith("gpu:") else POOL
    found = problems_of(tmp_path, spec_of(pool.replace("nodes:", f"{extra}, nodes:")))
    assert [(one.seen.replace('["', ".").replace('"]', ""), one.fix) for one in found] == [(message, fix)]


def test_empty_text_when_a_form_is_needed_then_is_an_empty_value(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, spec_of(POOL).replace("ml-platform", '""'))
    assert (found.code, found.fix) == ("empty-value", "write name: ml-platform")


class Strange(SpecModel):
    """A model with a check that no row of the table knows."""

    field: int = Field(multiple_of=3)


def test_error_type_when_unknown_then_still_gives_path_and_value_without_pydantics_words() -> None:
    with pytest.raises(ValidationError) as caught:
        Strange.model_validate({"field": 4})
    ((found, path),) = explain(caught.value, Strange, Positions(None, Origin(["a.yaml"]), 1 << 20 | 1))
    assert path == ()
    assert found.code == "type"
    assert "the number 4" in found.seen
    assert "multiple" not in found.render()
