"""The config file of NVIDIA's MIG manager, whose entries a node's label nvidia.com/mig.config names.

In scope: entry names, and the file's entries as data. Out of scope: the values of the operator's chart, and which node
has which label.

Without a custom file the manager generates one from the node's hardware: all-disabled, all-enabled, all-balanced, and
all-<profile>. A custom file replaces that one (NVIDIA/gpu-operator v26.7.0, controllers: CONFIG_FILE in place of
DEFAULT_CONFIG_FILE), so a file with layouts repeats these entries. An entry that changes under the same name is not
applied again (NVIDIA/mig-parted#108), so a layout's name is derived from its content.
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
    """Return the entry name for the node label: "all-1g.5gb", "mix-1x3g.20gb_2x2g.10gb"; "+" becomes "."."""
    if not cut.layout:
        return _plain(f"all-{cut.profile}")
    counts = Counter(cut.layout)
    return _plain("mix-" + "_".join(f"{counts[name]}x{name}" for name in sorted(counts, reverse=True)))


def read_cut(name: str, model: GpuModel) -> tuple[str, ...]:
    """Parse a name from `cut_name`: one profile, or the instances of a layout; () for any other name.

    The manager's own entries such as all-1g.5gb are parsed too.
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
    """Return the entry of a layout, in which every GPU of the node has these instances."""
    counts = Counter(layout)
    return [_cut({name: counts[name] for name in sorted(counts, reverse=True)})]


def standard_entries() -> dict[str, Entry]:
    """Return the manager's generated entries: MIG off, MIG on without instances, and each profile as often as it fits.

    If the number depends on the model, the entry has one item per number, with its boards: 1g.10gb fits 4 times on
    A100-40GB and 7 times on A100-80GB.
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
    """Map each profile to the number that fits, and each number to its boards."""
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
