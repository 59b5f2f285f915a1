"""Names of new instance types for the commands that read specs.

In scope: reading them from the file of refreshed data. Out of scope: prices, and the meaning of model and count; for
those commands both stay as embedded (gpukube.gpu.machines.learn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.catalog.place import cache_file
from gpukube.gpu.machines import learn

if TYPE_CHECKING:
    from collections.abc import Mapping


def learn_refreshed(environ: Mapping[str, str], *, sandbox: bool) -> None:
    """Register the instance types that a refresh found beyond the embedded table.

    An unusable file is ignored; the catalog commands report it.
    """
    file = cache_file(environ, sandbox=sandbox)
    if not file.exists():
        learn(())
        return
    from gpukube.catalog.cache import read_cache  # noqa: PLC0415 - most runs have no such file
    from gpukube.gpu.refreshed import lay_over  # noqa: PLC0415 - as above

    learn(entry.machine for entry in lay_over(read_cache(file).stocks) if entry.source == "refreshed")
