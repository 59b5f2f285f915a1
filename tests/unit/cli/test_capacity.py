"""`gpukube capacity find` as it is called, without a cloud: queries, refusals, and what is shown of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from gpukube.cli.app import run
from gpukube.engine.documents.schema import document_schema

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
SPEC: Final = str(EXAMPLES / "three-clouds.yaml")


@pytest.fixture
def find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Call the command; no refreshed prices are there."""
    monkeypatch.setenv("GPUKUBE_CACHE_DIR", str(tmp_path))

    def call(*words: str) -> tuple[int, str, str]:
        code = run(["capacity", "find", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def read(found: tuple[int, str, str]) -> dict[str, Any]:
    code, out, _ = found
    assert code == 0
    document: dict[str, Any] = json.loads(out)
    Draft202012Validator(document_schema("capacity")).validate(document)
    return document


def test_find_when_offline_then_every_cloud_by_price_and_nothing_is_asked(find: Callable[..., Any]) -> None:
    document = read(find("--gpu", "H100-80GB", "--count", "8", "--nodes", "2", "-o", "json"))
    assert (document["schemaVersion"], document["live"], document["asked"]) == (
        0, False, {"gpu": {"model": "H100-80GB", "count": 8}, "nodes": 2, "seconds": None, "pool": ""},
    )  # fmt: skip
    assert {(way["provider"], way["region"]) for way in document["ways"]} == {
        ("aks", "eastus"), ("eks", "us-east-1"), ("gke", "us-central1"),
    }  # fmt: skip
    prices = [way["price"]["usdPerGpuHour"] for way in document["ways"]]
    known = [price for price in prices if price is not None]
    assert prices == [*sorted(known), *(None for _ in prices[len(known) :])]
    assert {way["known"] for way in document["ways"]} == {"not asked"}
    assert {way["quotaNotAsked"] for way in document["ways"]} == {"add --live"}
    assert document["sources"] == []


def test_find_when_a_region_is_named_then_its_cloud_alone(find: Callable[..., Any]) -> None:
    document = read(find("--gpu", "A100-80GB", "--count", "8", "--region", "eu-west-1", "-o", "json"))
    assert {(way["provider"], way["region"]) for way in document["ways"]} == {("eks", "eu-west-1")}
    assert {way["price"]["rough"] for way in document["ways"] if way["kind"] == "on-demand"} == {True}


def test_find_when_a_pool_is_named_then_its_machines_and_nodes_and_the_command_that_creates_it(
    find: Callable[..., Any],
) -> None:
    spec = str(EXAMPLES / "eks-spot-types.yaml")
    document = read(find("-f", spec, "--pool", "l4spot", "--for", "7d", "-o", "json"))
    assert document["asked"]["nodes"] == 10
    assert document["asked"]["seconds"] == 604_800
    assert {way["instanceType"] for way in document["ways"]} == {"g6.2xlarge", "g6.4xlarge", "gr6.4xlarge"}
    assert document["create"] == f"gpukube pool create -f {spec} --pool l4spot"
    assert read(find("-f", spec, "--pool", "l4spot", "--nodes", "3", "-o", "json"))["asked"]["nodes"] == 3


def test_find_when_clusters_of_a_spec_are_chosen_then_their_regions(find: Callable[..., Any]) -> None:
    words = ("-f", SPEC, "--cluster", "*-eks", "--gpu", "H100-80GB", "--count", "8", "-o", "json")
    assert {way["cluster"] for way in read(find(*words))["ways"]} == {"train-eks"}
    both = read(find(*words, "--region", "us-central1"))
    assert {(way["cluster"], way["provider"]) for way in both["ways"]} == {("train-eks", "eks"), ("", "gke")}


def test_find_when_a_cluster_has_an_address_then_no_spec_is_needed(find: Callable[..., Any]) -> None:
    words = ("--cluster", "eks:111122223333/eu-west-1/train", "--gpu", "H100-80GB", "--count", "8", "-o", "json")
    assert {way["region"] for way in read(find(*words))["ways"]} == {"eu-west-1"}


def test_find_when_a_cloud_lacks_the_machine_then_a_note(find: Callable[..., Any]) -> None:
    code, out, _ = find("--gpu", "A10G-24GB")
    assert code == 0
    assert "note: aks has no instance type with 1 x A10G-24GB in the catalog" in out
    assert "catalog prices only; stock, reservations, and quotas are not asked: add --live" in out


@pytest.mark.parametrize(
    ("words", "code", "fix"),
    [
        ((), "nothing-to-find", "write --gpu H100-80GB --count 8, or -f pools.yaml --pool NAME"),
        (("--gpu", "H100-80GB", "--pool", "x"), "nothing-to-find", "write --gpu"),
        (("--pool", "x"), "no-file", "add -f pools.yaml"),
        (("-f", SPEC, "--pool", "x"), "no-match", "choose from: "),
        (("--gpu", "H1000"), "gpu-model", "did you mean H100-80GB"),
        (("--gpu", "H100-80GB", "--count", "5"), "no-machine", "aks: write count 8; eks: write count 1 or 8; gke"),
        (("--gpu", "H100-80GB", "--count", "8", "--for", "soon"), "duration", "write hours, days or weeks: 12h, 7d"),
        (("--gpu", "H100-80GB", "--region", "us east"), "region", "use a name such as"),
        (("--gpu", "H100-80GB", "--provider", "nimbus"), "no-catalogue", "choose"),
        (("--gpu", "H100-80GB", "-o", "sarif"), "output-format", "choose one of table, json, yaml, markdown, comment"),
    ],
)
def test_find_when_the_query_is_wrong_then_what_is_and_what_to_write(
    words: tuple[str, ...], code: str, fix: str, find: Callable[..., Any]
) -> None:
    exit_code, out, err = find(*words)
    assert (exit_code, out) == (4, "")
    assert code in err
    assert fix in err


@pytest.mark.parametrize(
    ("gpu", "count", "kinds"),
    [
        ("GB200-186GB", "4", {"eks": {"block"}, "gke": {"block"}, "aks": {"on-demand", "spot"}}),
        ("H200-141GB", "8", {"eks": {"on-demand", "spot"}, "gke": {"spot"}, "aks": {"on-demand", "spot"}}),
    ],
)
def test_find_when_offline_then_no_way_that_a_cloud_never_sells(
    gpu: str, count: str, kinds: dict[str, set[str]], find: Callable[..., Any]
) -> None:
    found: dict[str, set[str]] = {}
    for way in read(find("--gpu", gpu, "--count", count, "-o", "json"))["ways"]:
        found.setdefault(way["provider"], set()).add(way["kind"])
    assert found == kinds
