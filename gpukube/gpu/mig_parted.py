"""The config file of NVIDIA's MIG manager: which cut a node's label nvidia.com/mig.config names.

In scope: names of cuts and the file's entries as data. Out of scope: the values of the operator's chart, and
which node has which label.

Without a file of one's own the manager makes one from the node's hardware: all-disabled, all-enabled, all-balanced and
all-<profile>. With one it knows nothing else (NVIDIA/gpu-operator v26.7.0, controllers: CONFIG_FILE in place of
DEFAULT_CONFIG_FILE), so a file with layouts repeats those. An entry that changes under its name is not applied again
(NVIDIA/mig-parted#108): a layout is named by what it says.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.gpu.mig import pci_ids, profiles
from gpukube.gpu.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.sharing import MigCut

DISABLED: Final = "all-disabled"
_VENDOR: Final = "10DE"

Entry = list[dict[str, object]]


def cut_name(cut: MigCut) -> str:
    """Name a cut as the node's label does: "all-1g.5gb", "mix-1x3g.20gb_2x2g.10gb"; "+" in a profile is written "."."""
    if not cut.layout:
        return _plain(f"all-{cut.profile}")
    counts = Counter(cut.layout)
    return _plain("mix-" + "_".join(f"{counts[name]}x{name}" for name in sorted(counts, reverse=True)))


def read_cut(name: str, model: GpuModel) -> tuple[str, ...]:
    """Read what `cut_name` writes: one profile, or the instances of a layout; () for any other name.

    The manager's own entries all-1g.5gb and gpukube's are read alike.
    """
    known = {_plain(profile.name): profile.name for profile in profiles(model)}
    kind, _, rest = name.partition("-")
    if kind == "all":
        return (known[rest],) if rest in known else ()
    parts = [part.partition("x") for part in rest.split("_")] if kind == "mix" else []
    if not all(count.isdecimal() and profile in known for count, _, profile in parts):
        return ()
    return tuple(known[profile] for count, _, profile in parts for _ in range(int(count)))


def layout_entry(layout: Iterable[str]) -> Entry:
    """Write a layout: every GPU of the node is cut into these instances."""
    counts = Counter(layout)
    return [_cut({name: counts[name] for name in sorted(counts, reverse=True)})]


def standard_entries() -> dict[str, Entry]:
    """Write what the manager knows without a file: MIG off, MIG on and uncut, and each profile as often as it fits.

    A profile that fits a different number of times on different models has a line for each number, with the boards
    that it is for: 1g.10gb fits 4 times on A100-40GB and 7 times on A100-80GB.
    """
    found: dict[str, Entry] = {
        DISABLED: [{"devices": "all", "mig-enabled": False}],
        "all-enabled": [_cut({})],
    }
    for name, boards in sorted(_boards().items()):
        found[_plain(f"all-{name}")] = [
            (_cut({name: count}) if len(boards) == 1 else {"device-filter": ids, **_cut({name: count})})
            for count, ids in sorted(boards.items(), reverse=True)
            if ids or len(boards) == 1
        ]
    return found


def _boards() -> Mapping[str, Mapping[int, list[str]]]:
    """Map each profile to how often it fits, and that to the boards of which it is true."""
    found: dict[str, dict[int, list[str]]] = {}
    for model in MODELS:
        for profile in profiles(model):
            boards = found.setdefault(profile.name, {}).setdefault(profile.max_instances, [])
            boards += [f"0x{device}{_VENDOR}" for device in pci_ids(model)]
    return found


def _cut(instances: Mapping[str, int]) -> dict[str, object]:
    return {"devices": "all", "mig-enabled": True, "mig-devices": dict(instances)}


def _plain(name: str) -> str:
    return name.replace("+", ".")
