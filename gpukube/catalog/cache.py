"""The file of refreshed data on this machine.

In scope: reading and writing it. Out of scope: its path (place), its content (gpukube.gpu.refreshed).

The sandbox has a separate file, so that invented prices never mix with real ones. An unusable file is reported and
ignored: the embedded data is always available.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gpukube.errors import Finding, Where
from gpukube.gpu.refreshed import Stock  # noqa: TC001 - msgspec reads the file into these

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT: Final = 1
_LARGEST: Final = 16 * 1024 * 1024
_REFRESH: Final = "gpukube catalog refresh"


class _Version(msgspec.Struct):
    format: int


class _File(msgspec.Struct):
    format: Literal[1]
    stocks: tuple[Stock, ...]


@dataclass(frozen=True, slots=True)
class Cached:
    """Content of the file, and its problems.

    Attributes:
        stocks: One per provider and region.
        findings: Why the file, or part of it, is ignored.
    """

    stocks: tuple[Stock, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_cache(path: Path) -> Cached:
    """Read the file; empty if it does not exist."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return Cached()
    except OSError as error:
        return _unusable(path, f"cannot be read ({(error.strerror or str(error)).lower()})")
    if len(raw) > _LARGEST:
        return _unusable(path, f"is larger than {_LARGEST // 1024**2} MiB")
    try:
        version = msgspec.json.decode(raw, type=_Version).format
        if version != FORMAT:
            return _unusable(path, f"has format {version}, but this gpukube reads format {FORMAT}")
        return _without_outdated(path, msgspec.json.decode(raw, type=_File).stocks)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _unusable(path, "was not written by gpukube")


def write_cache(path: Path, stocks: Iterable[Stock]) -> None:
    """Replace the whole file, readable by its owner only.

    Raises:
        OSError: The directory or file is not writable.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ordered = tuple(sorted(stocks, key=lambda s: (s.provider, s.region)))
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600 from the start
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(_File(FORMAT, ordered)), indent=1) + b"\n")
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _without_outdated(path: Path, stocks: tuple[Stock, ...]) -> Cached:
    """Remove data older than the embedded table of a newer gpukube."""
    outdated = [stock for stock in stocks if stock.is_outdated]
    findings = tuple(
        Finding(
            "catalogue-outdated",
            Where(str(path)),
            f"using the embedded data: the data for {stock.provider} {stock.region} is older, from {stock.day}",
            fix=f"{_REFRESH} --provider {stock.provider} --region {stock.region}",
            severity="warning",
        )
        for stock in outdated
    )
    return Cached(tuple(stock for stock in stocks if not stock.is_outdated), findings)


def _unusable(path: Path, why: str) -> Cached:
    found = Finding(
        "catalogue-cache",
        Where(str(path)),
        f"using the embedded data: the file of refreshed data {why}",
        fix=f"{_REFRESH}, or remove the file",
        severity="warning",
    )
    return Cached(findings=(found,))
