"""Reads the package's data files once, on first use.

In scope: reading data/*.json. Out of scope: their meaning (machines.py, mig.py).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NotRequired, TypedDict, cast


class MachineRow(TypedDict):
    """One instance type; an absent key means unknown, never zero."""

    provider: str
    name: str
    model: str
    gpus: float
    gpuMemoryGiB: float
    vcpus: NotRequired[int]
    memoryGiB: NotRequired[float]
    arch: str
    mig: NotRequired[bool]
    accelerator: NotRequired[str]
    localSsdGiB: NotRequired[float]
    priceUsdH: NotRequired[float]
    spotUsdH: NotRequired[float]
    priceRegion: NotRequired[str]
    status: str
    successor: NotRequired[str]
    source: str
    notes: NotRequired[str]


class InstanceTable(TypedDict):
    """instances.json: date, dates of the sources with prices, source tags, and machines."""

    asOf: str
    priceDates: dict[str, str]
    sources: dict[str, str]
    machines: list[MachineRow]


class MigModelRow(TypedDict):
    """One MIG-capable GPU.

    `mixes` are its maximal mixes of plain profiles, such as "1x3g.20gb,1x4g.20gb"; `pciIds` its PCI device ids, "20B0".
    """

    name: str
    computeCapability: str
    gridUnits: int
    pciIds: list[str]
    mixes: list[str]


class ProfileRow(TypedDict):
    """One MIG profile of one model; `engines` are [nvdec, nvenc, jpeg, ofa]."""

    model: str
    name: str
    computeSlices: int
    memorySlices: int
    memoryGB: int
    memoryMiB: NotRequired[int]
    max: int
    starts: list[int]
    size: int
    confidence: str
    engines: NotRequired[list[int]]


class MigTable(TypedDict):
    """mig.json: date, sources, models and profiles."""

    asOf: str
    sources: list[str]
    models: list[MigModelRow]
    profiles: list[ProfileRow]


@cache
def instance_table() -> InstanceTable:
    """Read instances.json; tests check its shape, not the program at run time."""
    return cast("InstanceTable", _read("instances.json"))


@cache
def mig_table() -> MigTable:
    """Read mig.json; tests check its shape, not the program at run time."""
    return cast("MigTable", _read("mig.json"))


def _read(name: str) -> object:
    return json.loads(files("gpukube.gpu").joinpath("data", name).read_text(encoding="utf-8"))
