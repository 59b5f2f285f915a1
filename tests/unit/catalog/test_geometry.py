"""`catalog mig`: the document, and what questions are refused."""

from __future__ import annotations

import pytest

from gpukube.catalog.geometry import mig_document, read_live, read_requested
from gpukube.gpu.models import parse_model
from gpukube.gpu.refusal import CatalogError

A100 = parse_model("A100-40GB")


def test_document_when_nothing_is_asked_then_profiles_with_their_names_elsewhere() -> None:
    document = mig_document(A100, {}, (), alike=False)
    assert (document["packing"], document["fragment"], len(document["mixes"])) == (None, None, 28)
    first = document["profiles"][0]
    assert (first["name"], first["perGpu"], first["memoryMiB"], first["resource"]) == (
        "1g.5gb", 7, 4864, "nvidia.com/mig-1g.5gb",
    )  # fmt: skip
    assert first["elsewhere"]["A100-80GB"] == "1g.10gb"
    assert "A100-40GB" not in first["elsewhere"]


def test_packing_when_wanted_then_the_fewest_gpus_and_what_is_left_of_them() -> None:
    packing = mig_document(A100, {"1g.5gb": 9, "3g.20gb": 2}, (), alike=False)["packing"]
    assert packing is not None
    assert (packing["gpus"], packing["alike"]) == (3, False)
    full, rest = packing["cuts"]
    assert (full["gpus"], full["layout"], full["left"]) == (2, ["3g.20gb", *["1g.5gb"] * 4], {})
    assert (rest["gpus"], rest["layout"], rest["left"]["1g.5gb"], rest["mayBlock"]) == (1, ["1g.5gb"], 6, False)
    assert full["mayBlock"]


def test_packing_when_all_gpus_are_cut_alike_then_one_layout() -> None:
    packing = mig_document(A100, {"1g.5gb": 3, "3g.20gb": 2}, (), alike=True)["packing"]
    assert packing is not None
    assert [(cut["gpus"], cut["layout"]) for cut in packing["cuts"]] == [(2, ["3g.20gb", *["1g.5gb"] * 4])]


def test_fragment_when_instances_stand_apart_then_what_they_keep_away_is_named() -> None:
    fragment = mig_document(A100, {}, read_live(A100, ["1g.5gb@0", "1g.5gb@4"]), alike=False)["fragment"]
    assert fragment is not None
    assert (fragment["live"], fragment["stranded"]) == (["1g.5gb@0", "1g.5gb@4"], ["3g.20gb", "4g.20gb"])
    assert fragment["left"]["1g.5gb"] == 5


def test_wanted_when_a_profile_is_named_twice_then_adds_up() -> None:
    assert read_requested(["1g.5gb=2", "1g.5gb=3", "1g.5gb+me=1"]) == {"1g.5gb": 5, "1g.5gb+me": 1}


@pytest.mark.parametrize("word", ["1g.5gb", "=3", "1g.5gb=", "1g.5gb=-1", "1g.5gb=x"])
def test_wanted_when_written_otherwise_then_refused(word: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_requested([word])
    assert caught.value.code == "mig-question"


LIVE: dict[str, tuple[list[str], str, str]] = {
    "no place": (["1g.5gb"], "mig-question", '"1g.5gb" has the wrong form'),
    "no number": (["1g.5gb@a"], "mig-question", '"1g.5gb@a" has the wrong form'),
    "no profile": (["1g.6gb@0"], "mig-profile", '"1g.6gb" is not a MIG profile of A100-40GB'),
    "a place where none begins": (["3g.20gb@1"], "mig-layout", "3g.20gb cannot start at 1 on A100-40GB"),
    "a place that is taken": (["3g.20gb@0", "1g.5gb@2"], "mig-layout", "1g.5gb@2 overlaps 3g.20gb@0"),
}


@pytest.mark.parametrize(("words", "code", "message"), LIVE.values(), ids=LIVE)
def test_live_when_it_cannot_be_then_refused(words: list[str], code: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_live(A100, words)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_document_when_the_gpu_has_no_mig_then_refused() -> None:
    with pytest.raises(CatalogError) as caught:
        mig_document(parse_model("T4"), {}, (), alike=False)
    assert caught.value.code == "mig-capable"
