"""The rules of sharing that hold on every cloud."""

from __future__ import annotations

import pytest

from gpukube.gpu.catalogue import GpuModel, Machine, parse_model, require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing, check_sharing, max_mps_replicas

A100 = parse_model("A100-40GB")
T4 = parse_model("T4")
V100 = parse_model("V100-16GB")
ND96 = require_machine("aks", "Standard_ND96asr_v4")
CUT = MigCut("1g.5gb", "single")

ALLOWED: list[tuple[str, Machine | GpuModel, Sharing]] = [
    ("whole GPUs", ND96, Sharing()),
    ("single", ND96, Sharing(CUT)),
    ("mixed on the bare model", A100, Sharing(MigCut("1g.5gb+me", "mixed"))),
    ("time-slicing of MIG", ND96, Sharing(CUT, Slicing("time-slicing", 2))),
    ("time-slicing has no upper limit", T4, Sharing(None, Slicing("time-slicing", 100))),
    ("mps 2", T4, Sharing(None, Slicing("mps", 2))),
    ("mps 48 from Turing on", T4, Sharing(None, Slicing("mps", 48))),
    ("mps 16 before", V100, Sharing(None, Slicing("mps", 16))),
]


@pytest.mark.parametrize(("carrier", "sharing"), [c[1:] for c in ALLOWED], ids=[c[0] for c in ALLOWED])
def test_check_when_it_goes_together_then_nothing(carrier: Machine | GpuModel, sharing: Sharing) -> None:
    assert check_sharing(carrier, sharing) == []


def case(provider: str, name: str) -> Machine:
    return require_machine(provider, name)


REFUSED: list[tuple[str, Machine | GpuModel, Sharing, list[str], str]] = [
    ("chip without MIG", T4, Sharing(CUT), ["mig-capable"], "T4-16GB cannot be cut with MIG"),
    ("unknown profile", ND96, Sharing(MigCut("1g.6gb", "mixed")), ["mig-profile"], '"1g.6gb" is no MIG profile'),
    (
        "a cloud without MIG for it",
        case("aks", "Standard_ND128isr_NDR_GB200_v6"),
        Sharing(MigCut("1g.23gb", "single")),
        ["mig-capable"],
        "Standard_ND128isr_NDR_GB200_v6 cannot be cut with MIG, although GB200-186GB can",
    ),
    (
        "unconfirmed",
        case("aks", "Standard_NCC40ads_H100_v5"),
        Sharing(MigCut("1g.12gb", "single")),
        ["mig-capable"],
        "whether Standard_NCC40ads_H100_v5 can be cut with MIG is not confirmed",
    ),
    (
        "a share of a GPU",
        case("gke", "g4-standard-6"),
        Sharing(MigCut("1g.24gb", "single")),
        ["mig-capable"],
        "g4-standard-6 cannot be cut",
    ),
    ("mps on MIG", ND96, Sharing(CUT, Slicing("mps", 2)), ["mps-with-mig"], "mps does not go together with mig"),
    ("one replica", T4, Sharing(None, Slicing("time-slicing", 1)), ["sharing-replicas"], "with 1 replicas"),
    ("no replica", T4, Sharing(None, Slicing("mps", 0)), ["sharing-replicas"], "mps with 0 replicas"),
    (
        "mps 49",
        T4,
        Sharing(None, Slicing("mps", 49)),
        ["sharing-replicas"],
        "mps with 49 replicas is more than T4-16GB",
    ),
    ("mps 17 on V100", V100, Sharing(None, Slicing("mps", 17)), ["sharing-replicas"], "more than V100-16GB allows"),
    (
        "everything at once",
        T4,
        Sharing(CUT, Slicing("mps", 1)),
        ["mig-capable", "mps-with-mig", "sharing-replicas"],
        "T4-16GB cannot be cut",
    ),
]


@pytest.mark.parametrize(
    ("carrier", "sharing", "codes", "words"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_check_when_it_does_not_go_together_then_says_all(
    carrier: Machine | GpuModel, sharing: Sharing, codes: list[str], words: str
) -> None:
    found = check_sharing(carrier, sharing)
    assert [error.code for error in found] == codes
    assert words in found[0].message
    for error in found:
        assert error.fix
        assert not error.message.endswith(".")


@pytest.mark.parametrize(
    ("model", "most"), [("K80", 16), ("P4", 16), ("P100", 16), ("V100-32GB", 16), ("T4", 48), ("A10", 48), ("H200", 48)]
)
def test_max_mps_when_before_turing_then_16(model: str, most: int) -> None:
    assert max_mps_replicas(parse_model(model)) == most
