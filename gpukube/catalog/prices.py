"""The prices that are known on this machine without a call.

In scope: taking them from the file of refreshed data. Out of scope: asking clouds (live_prices), and which
price holds where (gpukube.core.prices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.catalog.place import cache_file
from gpukube.core.prices import EMBEDDED, PriceBook

if TYPE_CHECKING:
    from collections.abc import Mapping


def known_prices(environ: Mapping[str, str], *, sandbox: bool) -> PriceBook:
    """Read the prices that refreshes of the catalog have left; a file that cannot be used has none."""
    file = cache_file(environ, sandbox=sandbox)
    if not file.exists():
        return EMBEDDED
    from gpukube.catalog.cache import read_cache  # noqa: PLC0415 - most runs have no such file

    return PriceBook(read_cache(file).stocks)
