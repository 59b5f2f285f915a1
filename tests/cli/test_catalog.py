"""`gpukube catalog`: list, find, show, and refresh against the sandbox."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from gpukube.catalog.cache import read_cache, write_cache
from gpukube.catalog.place import cache_file
from gpukube.gpu.machines import machines
from gpukube.gpu.refreshed import Offer, Stock
from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.harness import run_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

AZURE = ("--subscription", SUBSCRIPTION)


def cached(*, sandbox: bool = True) -> Path:
    return cache_file(os.environ, sandbox=sandbox)


def names(document: dict[str, object]) -> list[str]:
    found = document["machines"]
    assert isinstance(found, list)
    return [machine["instanceType"] for machine in found]


def test_list_when_filtered_then_only_what_fits(gpukube: Gpukube) -> None:
    words = (
        "--provider",
        "gke",
        "--model",
        "A100",
        "--memory",
        "80GiB",
        "--mig",
        "--arch",
        "amd64",
        "--max-price",
        "12",
    )
    document = gpukube("catalog", "list", *words, "-o", "json", sandbox=False).json()
    assert (document["kind"], document["schemaVersion"]) == ("CatalogList", 1)
    assert names(document) == ["a2-ultragpu-1g", "a2-ultragpu-2g"]
    for machine in document["machines"]:
        assert machine["price"] == {
            "usdPerHour": machine["price"]["usdPerHour"], "region": "us-central1", "date": "2026-08-03",
        }  # fmt: skip


def test_list_when_all_are_shown_then_every_price_has_its_region_and_day(gpukube: Gpukube) -> None:
    shown = gpukube("catalog", "list", sandbox=False)
    assert shown.code == 0
    assert "eks  USD/h in us-east-1 on 2026-07-20" in shown.out
    assert "aks  USD/h in southcentralus on 2026-06-18" in shown.out
    assert shown.out.endswith("data: embedded table from 2026-11-21\n")
    living = [m for m in machines() if m.status != "retired"]
    assert f"{len(living)} types; omitted: {len(machines()) - len(living)} retired" in shown.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--memory", "much"), '--memory: error[memory]: "much" is not an amount of memory'),
        (("list", "--arch", "arm"), '"arm" is not a choice'),
        (("list", "--status", "old"), '"old" is not a choice'),
        (("list", "--provider", "azure"), '"azure" is not a choice'),
        (("list", "--model", "Z100"), '"Z100" is not a GPU model'),
        (("list", "--region", "eu-west-1"), 'no data for the region "eu-west-1"'),
        (("list", "-o", "markdown"), '"markdown" is not an output format of this command'),
        (("find",), "neither --gpu nor --slice-memory given"),
        (("find", "--gpu", "T4", "--slice-memory", "20"), "both --gpu and --slice-memory given"),
        (("find", "--gpu", "A100"), '"A100" matches 2 GPU models with different memory'),
        (("find", "--slice-memory", "1000"), "no GPU in the catalog has 1000 GB"),
        (("find", "--slice-memory", "0"), '"0" is not an amount of memory'),
        (("show", "p4d.24xl"), 'no GPU instance type "p4d.24xl"'),
        (("show", "g4ad.xlarge"), "it has AMD GPUs"),
        (("refresh", "--provider", "mars"), 'no catalog for "mars"'),
        (("refresh", "--region", "moon base"), '"moon base" is not a region of'),
    ],
)
def test_command_when_it_asks_for_what_is_not_then_four_and_what_to_write(
    words: tuple[str, ...], said: str, gpukube: Gpukube
) -> None:
    shown = gpukube("catalog", *words, sandbox=False)
    assert (shown.code, shown.out) == (4, "")
    assert said in shown.err
    assert "fix: " in shown.err


def test_find_when_every_cloud_has_it_then_side_by_side_as_a_spec_would_choose(gpukube: Gpukube) -> None:
    shown = gpukube("catalog", "find", "--gpu", "A100-40GB", "--count", "8", sandbox=False)
    assert shown.code == 0
    rows = [line.split() for line in shown.out.splitlines()]
    for row in (
        ["aks", "Standard_ND96asr_v4", "27.20", "eastus", "2026-06-18"],
        ["eks", "p4d.24xlarge", "21.96", "us-east-1", "2026-07-20"],
        ["gke", "a2-highgpu-8g", "29.39", "us-central1", "2026-08-03"],
    ):
        assert row in [words[:5] for words in rows]
    document = gpukube("catalog", "find", "--gpu", "a100 40gb", "--count", "8", "-o", "json", sandbox=False).json()
    assert [cloud["machine"]["instanceType"] for cloud in document["clouds"]] == [
        "Standard_ND96asr_v4", "p4d.24xlarge", "a2-highgpu-8g",
    ]  # fmt: skip


def test_find_when_a_cloud_has_none_then_its_candidates_and_zero_as_long_as_one_has_it(gpukube: Gpukube) -> None:
    found = gpukube("catalog", "find", "--gpu", "L4", "--count", "2", "-o", "json", sandbox=False).json()
    aks, eks, gke = found["clouds"]
    assert (aks["machine"], eks["machine"], gke["machine"]["instanceType"]) == (None, None, "g2-standard-24")
    assert [m["instanceType"] for m in aks["candidates"]] == ["Standard_NV72ads_A10_v5"]
    assert {m["gpu"]["model"] for m in eks["candidates"]} == {"L4-24GB", "T4G-16GB"}
    none = gpukube("catalog", "find", "--gpu", "L4", "--count", "3", sandbox=False)
    assert (none.code, none.out.count("near: ") > 3) == (4, True)


def test_find_when_a_slice_is_asked_for_then_smallest_first_with_resources_and_prices(gpukube: Gpukube) -> None:
    document = gpukube("catalog", "find", "--slice-memory", "20GiB", "-o", "json", sandbox=False).json()
    sizes = [found["memoryGB"] for found in document["slices"]]
    assert sizes == sorted(sizes)
    assert sizes[0] == 20
    gke = [found for found in document["slices"] if found["machine"]["provider"] == "gke" and found["kind"] == "mig"]
    assert {tuple(found["resources"]) for found in gke} == {("single",)}, "GKE shows no instances by name"
    shown = gpukube("catalog", "find", "--slice-memory", "20", "--limit", "3", sandbox=False)
    assert shown.out.count(" per node as ") == 3
    assert shown.err == f"{len(sizes) - 3} more: --limit 0 shows all\n"
    everything = gpukube("catalog", "find", "--slice-memory", "20", "--limit", "0", "--provider", "eks", sandbox=False)
    assert (everything.err, "aks" in everything.out) == ("", False)


def test_show_when_the_type_is_cut_here_then_profiles_slices_and_names(gpukube: Gpukube) -> None:
    document = gpukube("catalog", "show", "Standard_ND96asr_v4", "-o", "json", sandbox=False).json()
    profiles = {profile["name"]: profile for profile in document["profiles"]}
    assert profiles["1g.5gb"] == {
        "name": "1g.5gb", "memoryGB": 5, "perGpu": 7, "perNode": 56, "available": True, "confidence": "confirmed",
        "resources": {"single": "nvidia.com/gpu", "mixed": "nvidia.com/mig-1g.5gb"},
    }  # fmt: skip
    assert (profiles["1g.10gb"]["available"], profiles["1g.10gb"]["resources"]) == (False, {})
    assert document["resources"] == {"nvidia.com/gpu": 8}
    assert ["1g.5gb"] * 7 in document["mixes"]
    assert all(fact["source"] for fact in document["facts"])


@pytest.mark.parametrize("name", sorted({m.name for m in machines()})[::9])
def test_show_when_any_type_is_named_then_told(name: str, gpukube: Gpukube) -> None:
    for words in ((), ("-v",), ("-o", "json"), ("-o", "yaml")):
        shown = gpukube("catalog", "show", name, *words, sandbox=False)
        assert (shown.code, name in shown.out) == (0, True)


def test_refresh_when_the_clouds_answer_then_their_prices_are_shown_with_day_and_region(gpukube: Gpukube) -> None:
    done = gpukube("catalog", "refresh", *AZURE, "-o", "json").json()
    assert (done["kind"], done["exitCode"]) == ("CatalogRefresh", 0)
    assert [(c["provider"], c["region"], c["refreshed"]) for c in done["clouds"]] == [
        ("aks", "eastus", True), ("eks", "us-east-1", True), ("gke", "us-central1", True),
    ]  # fmt: skip
    aks, eks, gke = (stock.day for stock in read_cache(cached()).stocks)  # midnight may lie between them
    listed = gpukube("catalog", "list", "--model", "T4", "-o", "json").json()
    assert [(s["provider"], s["region"], s["date"]) for s in listed["refreshed"]] == [
        ("aks", "eastus", aks), ("eks", "us-east-1", eks), ("gke", "us-central1", gke),
    ]  # fmt: skip
    days = {"aks": aks, "eks": eks, "gke": gke}
    assert {(m["source"], m["price"]["date"] == days[m["provider"]]) for m in listed["machines"]} == {
        ("refreshed", True)
    }
    shown = gpukube("catalog", "list", "--model", "T4")
    assert f"refreshed: aks eastus from {aks}, eks us-east-1 from {eks}, gke us-central1 from {gke}" in shown.out


def test_refresh_when_in_the_sandbox_then_real_commands_do_not_see_it(gpukube: Gpukube) -> None:
    assert gpukube("catalog", "refresh", "--provider", "eks").code == 0
    assert cached().exists()
    assert not cached(sandbox=False).exists()
    assert gpukube("catalog", "list", "-o", "json", sandbox=False).json()["refreshed"] == []


def test_refresh_when_one_cloud_fails_then_three_the_others_new_and_its_own_kept(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    assert gpukube("catalog", "refresh", *AZURE).code == 0
    before = {s.provider: s for s in read_cache(cached()).stocks}
    daemon.add_fault(sandbox, "status", service="arm", status=403, code="AuthorizationFailed", times=0)
    shown = gpukube("catalog", "refresh", *AZURE)
    assert shown.code == 3
    day = before["aks"].day
    assert f"aks eastus  not refreshed; keeping the data from {day}" in shown.out
    assert "error[" in shown.out
    after = {s.provider: s for s in read_cache(cached()).stocks}
    assert after["aks"] == before["aks"]
    assert after.keys() == before.keys()


def test_refresh_when_no_subscription_is_named_then_only_azure_fails_and_says_what_to_add(gpukube: Gpukube) -> None:
    shown = gpukube("catalog", "refresh")
    assert shown.code == 3
    assert "--subscription: error[subscription]: no Azure subscription is given" in shown.out
    assert {s.provider for s in read_cache(cached()).stocks} == {"eks", "gke"}


def test_refresh_when_regions_are_named_then_those_and_the_list_can_be_asked_for_them(gpukube: Gpukube) -> None:
    assert gpukube("catalog", "refresh", "--region", "eu-west-1", "--region", "europe-west4").code == 0
    assert [(s.provider, s.region) for s in read_cache(cached()).stocks] == [
        ("eks", "eu-west-1"),
        ("gke", "europe-west4"),
    ]
    listed = gpukube("catalog", "list", "--provider", "gke", "--region", "europe-west4", "-o", "json").json()
    assert "a4-highgpu-8g" not in names(listed)
    assert listed["leftOut"]["not offered in europe-west4"] > 0
    assert {m["price"]["region"] for m in listed["machines"] if m["source"] == "refreshed" and m["price"]} >= {
        "europe-west4"
    }
    found = gpukube("catalog", "find", "--gpu", "B200", "--count", "8", "--region", "europe-west4", "-o", "json").json()
    (gke,) = found["clouds"]
    assert gke["machine"] is None
    assert {"instanceType": "a4-highgpu-8g", "why": "is not offered in europe-west4"} in gke["rejected"]
    refused = gpukube("catalog", "list", "--region", "eastus")
    assert "refreshed regions: eu-west-1, europe-west4" in refused.err
    everywhere = gpukube("catalog", "list", "--region", "eu-west-1", "-o", "json").json()
    assert {m["provider"] for m in everywhere["machines"]} == {"eks"}
    wrong = gpukube("catalog", "find", "--slice-memory", "20", "--region", "eu-west-1", "--provider", "aks")
    assert (wrong.code, "eu-west-1 is a region of eks, not of aks" in wrong.err) == (4, True)


def test_catalog_when_the_cache_is_broken_then_told_and_the_embedded_data_used(gpukube: Gpukube) -> None:
    cached(sandbox=False).parent.mkdir(parents=True, exist_ok=True)
    for text, why in (("{", "was not written by gpukube"), ('{"format": 9}', "has format 9")):
        cached(sandbox=False).write_text(text)
        shown = gpukube("catalog", "list", "--model", "T4", "-o", "json", sandbox=False)
        assert (shown.code, shown.json()["refreshed"]) == (0, [])
        assert f"warning[catalogue-cache]: using the embedded data: the file of refreshed data {why}" in shown.err
        assert "Traceback" not in shown.err


def test_refresh_when_the_cache_cannot_be_written_then_the_machine_is_to_blame(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUKUBE_CACHE_DIR", str(tmp_path / "file" / "below"))
    shown = gpukube("catalog", "refresh", "--provider", "eks")
    assert shown.code == 1
    assert "error[system]" in shown.err
    assert "Traceback" not in shown.err


def test_spec_when_prices_were_refreshed_then_it_means_the_same_machines(gpukube: Gpukube, tmp_path: Path) -> None:
    """A price that changed overnight must not plan the replacement of a pool."""
    spec = tmp_path / "pools.yaml"
    train = {"provider": "aks", "subscription": SUBSCRIPTION, "resourceGroup": "ml", "name": "train"}
    document = {
        "apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": {"name": "ml"},
        "clusters": {"train": train},
        "pools": [{"name": "t4", "clusters": ["train"], "gpu": {"model": "T4", "count": 1}, "nodes": {"count": 1}}],
    }  # fmt: skip
    spec.write_text(json.dumps(document))
    before = gpukube("pool", "plan", "-f", spec, "-o", "json").json()
    assert gpukube("catalog", "refresh", *AZURE, "--provider", "aks").code == 0
    text = cached().read_text().replace('"name": "Standard_NC4as_T4_v3"', '"name": "Standard_NC4as_T4_v9"')
    cached().write_text(text)
    assert gpukube("pool", "plan", "-f", spec, "-o", "json").json() == before


def test_spec_when_a_refresh_found_a_new_type_then_it_can_be_named_and_is_not_chosen_by_its_gpu(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    train = {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "train"}
    pool = {"name": "new", "clusters": ["train"], "instanceType": "g9.xlarge", "nodes": {"count": 1}}
    spec = tmp_path / "pools.yaml"
    document = {
        "apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": {"name": "ml"},
        "clusters": {"train": train}, "pools": [pool],
    }  # fmt: skip
    spec.write_text(json.dumps(document))
    refused = gpukube("validate", "-f", spec, sandbox=False)
    assert refused.code == 4
    assert '"g9.xlarge" is not a GPU instance type of eks in the catalog of 2026-11-21' in refused.err
    assert "why: for a newer type run gpukube catalog refresh" in refused.err

    new = Stock(
        "eks", "us-east-1", "2027-01-01T00:00:00Z", (Offer("g9.xlarge", "L4", 1, 4, 16, "amd64", price_usd_h=0.1),)
    )
    write_cache(cached(sandbox=False), [new])
    known = gpukube("validate", "-f", spec, sandbox=False)
    assert "is not a GPU instance type" not in known.err
    by_gpu = {key: value for key, value in pool.items() if key != "instanceType"} | {"gpu": {"model": "L4", "count": 1}}
    spec.write_text(json.dumps({**document, "pools": [by_gpu]}))
    found = gpukube("explain", "owner", "new", "-f", spec, "-o", "json", sandbox=False)
    assert "g9.xlarge" not in found.out
    cached(sandbox=False).unlink()
    spec.write_text(json.dumps(document))
    assert gpukube("validate", "-f", spec, sandbox=False).code == 4, "what was learnt is forgotten with its file"


def test_refresh_when_an_sdk_is_missing_then_its_extra_is_named_and_the_others_are_read(
    sandbox: SandboxInfo, without: Callable[..., str], tmp_path: Path
) -> None:
    clouds = ("--provider", "eks", "--provider", "aks")
    path = without("boto3", "botocore")
    done = run_process(sandbox, "catalog", "refresh", *clouds, *AZURE, PYTHONPATH=path, GPUKUBE_CACHE_DIR=str(tmp_path))
    assert done.code == 3, done.out + done.err
    assert "error[missing-extra]" in done.out
    assert "pip install 'gpukube[eks]'" in done.out
    assert [s.provider for s in read_cache(tmp_path / "catalog-sandbox.json").stocks] == ["aks"]
