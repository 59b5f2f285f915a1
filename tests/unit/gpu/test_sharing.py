"""The rules of sharing that hold on every cloud."""

from __future__ import annotations

import pytest

from gpukube.gpu.catalog import GpuModel, Machine, parse_model, require_machine
from gpukube.gpu.sharing import (
    MigCut,
    Sharing,
    Slicing,
    check_sharing,
    cut_instances,
    layout_text,
    max_mps_replicas,
)

A100 = parse_model("A100-40GB")
T4 = parse_model("T4")
V100 = parse_model("V100-16GB")
ND96 = require_machine("aks", "Standard_ND96asr_v4")
CUT = MigCut("1g.5gb", "single")


def case(provider: str, name: str) -> Machine:
    return require_machine(provider, name)


def mix(*layout: str) -> MigCut:
    return MigCut("", "mixed", layout)


V100_GKE = require_machine("gke", "n1-standard-8", (V100, 1))

ALLOWED: list[tuple[str, Machine | GpuModel, Sharing]] = [
    ("whole GPUs", ND96, Sharing()),
    ("single", ND96, Sharing(CUT)),
    ("mixed on the bare model", A100, Sharing(MigCut("1g.5gb+me", "mixed"))),
    ("time-slicing of MIG", ND96, Sharing(CUT, Slicing("time-slicing", 2))),
    ("time-slicing has no upper limit", T4, Sharing(None, Slicing("time-slicing", 100))),
    ("mps 2", T4, Sharing(None, Slicing("mps", 2))),
    ("mps 48 from Turing on", T4, Sharing(None, Slicing("mps", 48))),
    ("mps 16 before", V100, Sharing(None, Slicing("mps", 16))),
    ("a layout", ND96, Sharing(mix("3g.20gb", "2g.10gb", "2g.10gb"))),
    ("a layout that leaves room", ND96, Sharing(mix("3g.20gb"))),
    ("a layout of one profile, single", ND96, Sharing(MigCut("", "single", ("2g.10gb", "2g.10gb")))),
    ("time-slicing of a layout", ND96, Sharing(mix("3g.20gb", "4g.20gb"), Slicing("time-slicing", 3))),
    # docs: kubernetes-engine/how-to/nvidia-mps-gpus: MPS on partitions, 2 to 48 clients on any GPU
    ("mps on MIG by GKE's plugin", case("gke", "a2-highgpu-1g"), Sharing(CUT, Slicing("mps", 48))),
    ("mps 48 on V100 by GKE's plugin", V100_GKE, Sharing(None, Slicing("mps", 48))),
]


@pytest.mark.parametrize(("carrier", "sharing"), [c[1:] for c in ALLOWED], ids=[c[0] for c in ALLOWED])
def test_check_when_it_goes_together_then_nothing(carrier: Machine | GpuModel, sharing: Sharing) -> None:
    assert check_sharing(carrier, sharing) == []


REFUSED: list[tuple[str, Machine | GpuModel, Sharing, list[str], str]] = [
    ("chip without MIG", T4, Sharing(CUT), ["mig-capable"], "T4-16GB does not support MIG"),
    ("unknown profile", ND96, Sharing(MigCut("1g.6gb", "mixed")), ["mig-profile"], '"1g.6gb" is not a MIG profile'),
    (
        "a cloud without MIG for it",
        case("aks", "Standard_ND128isr_NDR_GB200_v6"),
        Sharing(MigCut("1g.23gb", "single")),
        ["mig-capable"],
        "Standard_ND128isr_NDR_GB200_v6 does not support MIG, although GB200-186GB does",
    ),
    (
        "unconfirmed",
        case("aks", "Standard_NCC40ads_H100_v5"),
        Sharing(MigCut("1g.12gb", "single")),
        ["mig-capable"],
        "MIG on Standard_NCC40ads_H100_v5 is not confirmed",
    ),
    (
        "a share of a GPU",
        case("gke", "g4-standard-6"),
        Sharing(MigCut("1g.24gb", "single")),
        ["mig-capable"],
        "g4-standard-6 does not support MIG",
    ),
    ("mps on MIG", ND96, Sharing(CUT, Slicing("mps", 2)), ["mps-with-mig"], "mps cannot be combined with mig"),
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
        "a layout that is too much",
        ND96,
        Sharing(mix("3g.20gb", "1g.5gb", "3g.20gb")),
        ["mig-layout"],
        "2 x 3g.20gb + 1g.5gb does not fit on one A100-40GB",
    ),
    (
        "unknown profiles of a layout, each once",
        ND96,
        Sharing(mix("3g.40gb", "1g.5gb", "3g.40gb", "9g.5gb")),
        ["mig-profile", "mig-profile"],
        '"3g.40gb" is not a MIG profile of A100-40GB',
    ),
    ("a layout without MIG", T4, Sharing(mix("3g.40gb", "1g.5gb")), ["mig-capable"], "T4-16GB does not support MIG"),
    (
        "a layout on a share",
        case("gke", "g4-standard-6"),
        Sharing(mix("4g.96gb", "1g.24gb")),
        ["mig-capable", "mig-layout"],
        "g4-standard-6 does not support MIG",
    ),
    (
        "a layout of several profiles, single",
        ND96,
        Sharing(MigCut("", "single", ("3g.20gb", "1g.5gb"))),
        ["mig-layout"],
        "strategy single advertises one kind of instance, but the layout has 2",
    ),
    ("mps on a layout", ND96, Sharing(mix("3g.20gb"), Slicing("mps", 2)), ["mps-with-mig"], "mps cannot be combined"),
    (
        "one replica by GKE's plugin",
        case("gke", "a2-highgpu-1g"),
        Sharing(CUT, Slicing("mps", 1)),
        ["sharing-replicas"],
        "mps with 1 replicas shares nothing",
    ),
    (
        "everything at once",
        T4,
        Sharing(CUT, Slicing("mps", 1)),
        ["mig-capable", "mps-with-mig", "sharing-replicas"],
        "T4-16GB does not support MIG",
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


def test_check_when_a_layout_does_not_fit_then_says_why_and_what_would() -> None:
    [error] = check_sharing(ND96, Sharing(mix("3g.20gb", "1g.5gb", "3g.20gb")))
    assert error.why == "together they need 9 units of memory, but one A100-40GB has 8"
    assert error.fix == "use fewer or smaller ones: 2 x 3g.20gb fits"
    [error] = check_sharing(ND96, Sharing(MigCut("", "single", ("3g.20gb", "1g.5gb"))))
    assert error.fix == "write strategy: mixed, or one profile"
    assert "exits" in error.why


def test_check_when_something_is_refused_then_says_the_rule_and_the_way_out() -> None:
    [mig, replicas] = check_sharing(ND96, Sharing(CUT, Slicing("mps", 1)))
    assert mig.why == "NVIDIA's device plugin refuses MPS on MIG devices"
    assert mig.fix == "remove one of them, or write timeSlicing instead of mps"
    assert replicas.why == "the device plugin needs 2 replicas or more"
    assert replicas.fix == "write replicas: 2 or more, or remove the block"
    [many] = check_sharing(V100, Sharing(None, Slicing("mps", 17)))
    assert many.why == "the device plugin allows 48 from compute capability 7.5 on, else 16"
    assert many.fix == "write replicas: 16 or fewer"
    [share] = check_sharing(case("gke", "g4-standard-6"), Sharing(MigCut("1g.24gb", "single")))
    assert share.fix == "remove sharing.mig, or choose another instance type"
    assert share.why == case("gke", "g4-standard-6").notes


@pytest.mark.parametrize(
    ("cut", "text", "profiles"),
    [
        (CUT, "1g.5gb", ("1g.5gb",)),
        (mix("2g.10gb", "3g.20gb", "2g.10gb"), "2 x 2g.10gb + 3g.20gb", ("2g.10gb", "3g.20gb")),
        (mix("3g.20gb"), "3g.20gb", ("3g.20gb",)),
    ],
)
def test_cut_when_written_then_how_a_gpu_is_cut(cut: MigCut, text: str, profiles: tuple[str, ...]) -> None:
    assert str(cut) == text
    assert cut.profiles == profiles
    assert layout_text(()) == ""


@pytest.mark.parametrize(
    ("cut", "counts"),
    [
        (CUT, [("1g.5gb", 7)]),
        (MigCut("2g.10gb", "mixed"), [("2g.10gb", 3)]),
        (mix("3g.20gb", "2g.10gb", "2g.10gb"), [("2g.10gb", 2), ("3g.20gb", 1)]),
        (mix("1g.5gb", "1g.10gb", "1g.5gb+me"), [("1g.5gb", 1), ("1g.5gb+me", 1), ("1g.10gb", 1)]),
    ],
)
def test_cut_instances_when_counted_then_per_gpu_and_the_smallest_first(
    cut: MigCut, counts: list[tuple[str, int]]
) -> None:
    assert [(profile.name, count) for profile, count in cut_instances(A100, cut).items()] == counts


@pytest.mark.parametrize("value", [CUT, mix("3g.20gb"), Slicing("mps", 2), Sharing(CUT)], ids=str)
def test_values_when_made_then_keys_of_a_dict_and_closed(value: object) -> None:
    assert {value: 1}[value] == 1
    assert not hasattr(value, "__dict__")


def test_values_when_little_is_said_then_the_plugins_own_defaults() -> None:
    assert Slicing("mps", 2) == Slicing("mps", 2, fail_requests_greater_than_one=None, rename=False)
    assert Sharing() == Sharing(mig=None, slicing=None)
    assert MigCut("1g.5gb", "single").layout == ()
