"""Prices that are known on this machine without a call.

In scope: reading them from the file of refreshed data. Out of scope: querying clouds (live_prices), and which price
applies where (gpukube.core.prices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.catalog.place import cache_file
from gpukube.core.prices import EMBEDDED, PriceBook

if TYPE_CHECKING:
    from collections.abc import Mapping


def known_prices(environ: Mapping[str, str], *, sandbox: bool) -> PriceBook:
    """Return the prices from refreshes of the catalog; an unusable file has none."""
    file = cache_file(environ, sandbox=sandbox)
    if not file.exists():
        return EMBEDDED
    from gpukube.catalog.cache import read_cache  # noqa: PLC0415 - most runs have no such file

    return PriceBook(read_cache(file).stocks)
