"""The package's data files agree with themselves and with the tables in the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import gpukube.gpu
from gpukube.gpu.machines import machines
from gpukube.gpu.mig import fits, is_mig_model, maximal_mixes, profiles
from gpukube.gpu.models import MODELS, model_named
from gpukube.gpu.tables import instance_table, mig_table

PROVIDERS = {"aks", "eks", "gke"}
PURE_STDLIB = {"__future__", "collections", "dataclasses", "difflib", "functools", "hashlib", "importlib", "json"} | {
    "fractions",
    "itertools",
    "math",
    "re",
    "typing",
}


def test_instances_when_read_then_dated_and_every_source_tag_is_explained() -> None:
    table = instance_table()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["asOf"])
    used = {tag for row in table["machines"] for tag in row["source"].split("+")}
    assert used <= table["sources"].keys()


def test_prices_when_read_then_each_has_one_source_with_a_day() -> None:
    days = instance_table()["priceDates"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day in days.values())
    for tag, day in days.items():
        assert day in instance_table()["sources"][tag], tag
    for row in instance_table()["machines"]:
        if "priceUsdH" in row:
            assert len(days.keys() & set(row["source"].split("+"))) == 1, row["name"]


def test_mig_table_when_read_then_dated_and_sourced() -> None:
    assert re.fullmatch(r"\d{4}-\d\d", mig_table()["asOf"])
    assert mig_table()["sources"]


def test_machines_when_counted_then_none_is_lost() -> None:
    assert Counter(m.provider for m in machines()) == {"eks": 69, "aks": 47, "gke": 54}


def test_machines_when_named_then_names_are_unique_but_for_attached_gpus() -> None:
    names = Counter((m.provider, m.name) for m in machines())
    assert {name for (_, name), n in names.items() if n > 1} == {"n1-*"}
    attached = Counter((m.model.name, m.gpus) for m in machines("gke") if m.name == "n1-*")
    assert set(attached.values()) == {1}


@pytest.mark.parametrize("machine", machines(), ids=lambda m: f"{m.provider}-{m.name}-{m.model}-{m.gpus:g}")
def test_machine_when_read_then_its_fields_are_sane(machine: gpukube.gpu.machines.Machine) -> None:
    assert machine.provider in PROVIDERS
    assert machine.arch in {"amd64", "arm64"}
    assert machine.status in {"current", "legacy", "preview", "retired", "unknown", "no-image"}
    assert 0 < machine.gpus <= 16
    assert machine.is_fractional or float(machine.gpus).is_integer()
    share = machine.model.memory_gb * min(machine.gpus, 1)
    assert machine.gpu_memory_gib == pytest.approx(share, rel=0.01)
    assert (machine.price_usd_h is None) == (machine.price_region == "") == (machine.price_date == "")
    assert machine.price_usd_h is None or 0.1 < machine.price_usd_h < 200
    if machine.spot_usd_h is not None:
        assert machine.price_usd_h is not None
        assert 0 < machine.spot_usd_h < machine.price_usd_h
    assert bool(machine.accelerator) == (machine.provider == "gke")
    assert machine.status != "retired" or machine.notes
    if machine.successor:
        assert machine.status == "retired"
        assert machine.successor in {m.name for m in machines(machine.provider) if m.status == "current"}


@pytest.mark.parametrize("machine", [m for m in machines() if m.mig_capable], ids=lambda m: m.name)
def test_machine_when_mig_capable_then_its_model_has_a_table_and_it_holds_whole_gpus(
    machine: gpukube.gpu.machines.Machine,
) -> None:
    assert is_mig_model(machine.model)
    assert not machine.is_fractional


def test_models_when_called_sold_then_the_catalog_offers_them_and_no_others() -> None:
    assert {m.name for m in MODELS if m.sold} == {m.model.name for m in machines()}


def test_models_when_in_the_mig_table_then_the_compute_capability_agrees() -> None:
    for row in mig_table()["models"]:
        major, minor = model_named(row["name"]).compute_capability
        assert f"{major}.{minor}" == row["computeCapability"], row["name"]


@pytest.mark.parametrize("row", mig_table()["models"], ids=lambda row: row["name"])
def test_profiles_when_read_then_they_stay_on_the_grid_and_counts_fit(row: gpukube.gpu.tables.MigModelRow) -> None:
    model = model_named(row["name"])
    known = profiles(model)
    assert len({p.name for p in known}) == len(known)
    for profile in known:
        assert re.fullmatch(r"[12347]g\.\d+gb(\+me|\+gfx|\+me\.all|-me)?", profile.name)
        assert profile.name.startswith(f"{profile.slice_width}g.{profile.memory_gb}gb")
        assert profile.starts[-1] + profile.size <= row["gridUnits"]
        assert profile.max_instances <= len(profile.starts)
        assert fits(model, [profile.name] * profile.max_instances)
        assert not fits(model, [profile.name] * (profile.max_instances + 1))


@pytest.mark.parametrize("row", mig_table()["models"], ids=lambda row: row["name"])
def test_mixes_when_read_then_they_name_plain_profiles_and_use_each_at_full(
    row: gpukube.gpu.tables.MigModelRow,
) -> None:
    model = model_named(row["name"])
    known = {p.name: p for p in profiles(model)}
    mixes = maximal_mixes(model)
    for profile in known.values():
        if not profile.attribute:
            assert max(mix.count(profile.name) for mix in mixes) == profile.max_instances
    assert {name for mix in mixes for name in mix} <= known.keys()


def test_data_files_when_written_then_one_record_per_line() -> None:
    data = Path(gpukube.gpu.__file__).parent / "data"
    for name, count in (("instances.json", len(machines())), ("mig.json", len(mig_table()["profiles"]))):
        lines = (data / name).read_text(encoding="utf-8").splitlines()
        assert sum('"model":' in line for line in lines) == count


def test_room_when_imported_then_only_pure_standard_library_is_used() -> None:
    for source in Path(gpukube.gpu.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.partition(".")[0]
                ours = name.startswith(
                    ("gpukube.gpu", "gpukube.entry_points", "gpukube.installed")
                )  # what clouds know of machines
                assert top in PURE_STDLIB or ours, f"{source.name}: {name}"
