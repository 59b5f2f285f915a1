"""`gpukube catalog mig`: what people read, what programs read, and how a question is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube


def test_mig_when_asked_for_a_gpu_then_its_profiles_and_full_mixes(gpukube: Gpukube) -> None:
    shown = gpukube("catalog", "mig", "H100-80GB", sandbox=False)
    assert shown.code == 0
    assert "1g.10gb      7 per GPU" in shown.out
    assert "full mixes of one GPU" in shown.out
    assert "7 x 1g.10gb" in shown.out


def test_mig_when_instances_are_wanted_then_gpus_and_the_layout_to_write(gpukube: Gpukube) -> None:
    wanted = ("--want", "1g.5gb=9", "--want", "3g.20gb=2")
    shown = gpukube("catalog", "mig", "A100-40GB", *wanted, sandbox=False)
    assert "9 x 1g.5gb, 2 x 3g.20gb: 3 GPUs, fewest" in shown.out
    alike = gpukube("catalog", "mig", "A100-40GB", *wanted, "--alike", sandbox=False)
    assert "write layout: [3g.20gb, 1g.5gb, 1g.5gb, 1g.5gb, 1g.5gb]" in alike.out
    document = gpukube("catalog", "mig", "A100-40GB", *wanted, "-o", "json", sandbox=False).json()
    assert (document["kind"], document["schemaVersion"], document["packing"]["gpus"]) == ("CatalogMig", 1, 3)


def test_mig_when_instances_are_there_then_what_still_fits(gpukube: Gpukube) -> None:
    shown = gpukube("catalog", "mig", "A100-40GB", "--live", "1g.5gb@0", "--live", "1g.5gb@4", sandbox=False)
    assert "would fit with another placement: 3g.20gb, 4g.20gb" in shown.out


REFUSED = {
    "no MIG": (("T4",), "GPU: error[GPK205 mig-capable]"),
    "no such GPU": (("A100",), "GPU: error[GPK201 gpu-model]"),
    "no such profile": (("H100-80GB", "--want", "1g.5gb=1"), "--want: error[GPK206 mig-profile]"),
    "no number": (("H100-80GB", "--want", "1g.10gb"), "--want: error[mig-question]"),
    "too many on one": (("H100-80GB", "--want", "7g.80gb=1", "--want", "1g.10gb=1", "--alike"), "--want: error[GPK209"),
    "no such place": (("H100-80GB", "--live", "3g.40gb@1"), "--live: error[GPK209 mig-layout]"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_mig_when_it_cannot_be_then_four_and_which_part(gpukube: Gpukube, words: tuple[str, ...], said: str) -> None:
    shown = gpukube("catalog", "mig", *words, sandbox=False)
    assert (shown.code, shown.out) == (4, "")
    assert said in shown.err
    assert "fix: " in shown.err
