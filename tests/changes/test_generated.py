"""Sixty drawn specs per cloud, twenty a day of all: once created there is nothing left to do, whoever asks."""

from __future__ import annotations

import pytest

from gpukube.spec.model import Pool as PoolModel
from tests.changes.generator import LACKS, NATIVE_OF, SKIPPED, SKIPPED_NATIVE, draw_specs, paths_of
from tests.changes.imports import disown, require_import
from tests.changes.world import CLOUDS, Document, Pool, World, address, differences, spec

BATCHES, SIZE = 6, 10
KEY = "here"
FIELDS = {field.alias or name for name, field in PoolModel.model_fields.items()} - set(CLOUDS)


def batch(cloud: str, number: int) -> list[Document]:
    """Draw the specs of one cluster. EKS clusters by turns have the operator, which has one strategy for all pools."""
    operated, strategy = cloud == "eks" and number % 2 == 0, "mixed" if number % 4 == 0 else "single"
    cluster = {KEY: address(cloud, f"batch{number}")}

    def allowed(pool: Pool) -> bool:
        by_hand = "none" in (pool.get(field, {}).get("owner") for field in ("driver", "devicePlugin"))
        if by_hand and pool["nodes"].get("count") != 0:  # nobody here would do it, and nodes would never show GPUs
            return False
        is_cut = "mig" in pool.get("sharing", {}) and pool.get("image") != "bottlerocket"
        if cloud != "eks" or pool.get("image") == "bottlerocket":
            return True
        if not operated:
            return not is_cut
        fits = not is_cut or pool["sharing"]["mig"].get("strategy", "single") == strategy
        fits &= strategy == "single" or "mps" not in pool.get("sharing", {})  # the operator serves only one of them
        return fits and pool.get("devicePlugin", {}).get("owner") != "helm"

    found = draw_specs(cloud, f"{cloud} {number}", cluster, SIZE, allowed)
    if operated:
        cut = {
            "sharing": {"mig": {"profile": ("1g.10gb", "2g.20gb", "3g.40gb")[number // 2 % 3], "strategy": strategy}},
            "nodes": {"count": 1},
        }
        found[0] = spec("cut", cluster, [{"name": "cut", "gpu": {"model": "H100-80GB", "count": 1}, **cut}])
    return found


@pytest.mark.parametrize("cloud", CLOUDS)
def test_specs_when_drawn_then_all_differ_and_every_field_is_in_some(cloud: str) -> None:
    documents = [document for number in range(BATCHES) for document in batch(cloud, number)]
    paths = paths_of(documents)
    portable = {path.partition(".")[0] for path in paths if not path.startswith(f"{cloud}.")}
    native = {path.removeprefix(f"{cloud}.") for path in paths if path.startswith(f"{cloud}.")}
    expected = FIELDS - LACKS[cloud] - SKIPPED.keys()
    assert len({str(document["pools"]) for document in documents}) == BATCHES * SIZE
    assert portable - expected == set(), f"the model has no such fields: {portable - expected}"
    assert expected - portable == set(), f"draw these fields in tests/changes/generator.py: {expected - portable}"
    assert native == NATIVE_OF[cloud].keys() - SKIPPED_NATIVE[cloud].keys()


@pytest.mark.turns(9)
@pytest.mark.parametrize(("cloud", "number"), [(cloud, number) for number in range(BATCHES) for cloud in CLOUDS])
def test_spec_when_created_then_its_plan_is_empty_and_so_is_that_of_its_import(
    cloud: str, number: int, world: World
) -> None:
    documents = batch(cloud, number)
    world.reset()
    world.make(cloud, f"batch{number}")
    created = world.create(*documents)
    assert [f"{name}: {report.error}" for name, report in created.items() if report.error is not None] == []
    together, alone = world.plan(*documents), world.plan(documents[0])

    assert differences(together) == []
    assert differences(alone) == []
    assert len(created) == sum(len(document["pools"]) for document in documents)

    disown(world, cloud, f"batch{number}")
    require_import(world, cloud, f"batch{number}", len(created))
