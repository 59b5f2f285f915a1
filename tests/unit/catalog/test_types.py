"""One type by its name, on whatever cloud."""

from __future__ import annotations

import pytest

from gpukube.catalog.types import find_type
from gpukube.gpu.machines import machines
from gpukube.gpu.refreshed import lay_over
from gpukube.gpu.refusal import CatalogError

ENTRIES = lay_over(())


def test_types_when_in_the_catalog_then_found_retired_or_not() -> None:
    for name in sorted({m.name for m in machines()}):
        assert {e.machine.name for e in find_type(ENTRIES, name)} == {name}


def test_type_when_gpus_are_attached_then_those_that_fit_on_the_machine() -> None:
    small, large = find_type(ENTRIES, "n1-standard-8"), find_type(ENTRIES, "n1-highmem-96")
    assert {(str(e.machine.model), e.machine.gpus) for e in large} == {("T4-16GB", 4), ("V100-16GB", 8), ("P4-8GB", 4)}
    assert len(small) > len(large)
    assert {(e.machine.name, e.machine.vcpus, e.machine.memory_gib) for e in large} == {("n1-highmem-96", 96, 624)}


@pytest.mark.parametrize(
    ("name", "code", "said", "fix"),
    [
        ("standard_nd96asr_v4", "instance-type", "no GPU instance type", "did you mean Standard_ND96asr_v4"),
        ("p4d.24xl", "instance-type", "in the catalog of 2026", "did you mean p4d.24xlarge"),
        ("g4ad.xlarge", "instance-type-refused", "is not in the catalog", "did you mean g4dn.xlarge"),
        ("Standard_NV6", "instance-type-refused", "is not in the catalog", "did you mean Standard_"),
        ("n1-custom-128-65536", "instance-type", "no GPU instance type", "did you mean "),
        (
            "p6e-gb300.36xlarge",
            "instance-type",
            "no source for it",
            "run gpukube catalog refresh --provider eks",
        ),
        (
            "A100",
            "instance-type",
            "no GPU instance type",
            "give an instance type; to list those with this GPU: gpukube catalog list --model",
        ),
    ],
)
def test_type_when_not_there_then_refused_with_the_nearest(name: str, code: str, said: str, fix: str) -> None:
    with pytest.raises(CatalogError, match=said) as refused:
        find_type(ENTRIES, name)
    assert (refused.value.code, refused.value.fix.startswith(fix)) == (code, True)
    assert "Standard_NC128" not in refused.value.fix, "a retired type is no advice"
