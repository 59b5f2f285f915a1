"""Human-readable live pools: a table of all, one pool in full, or names only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import device_words, finding_lines, gpu_words, number, short, value_words
from gpukube.cli.rendering.text import Hung, Table, Text
from gpukube.gpu.capacity import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.listing import ListDocument, LivePool, PoolDetail, PoolDocument

    Column = tuple[str, Callable[[LivePool], str]]

NARROW: Final = 100
"""Columns below which cells are closer together."""
NARROW_TITLES: Final = {"ALLOCATABLE": "ALLOC"}
WIDE_TABLE: Final = 160
"""Columns from which the wide list fits as a table."""


def _nodes(pool: LivePool) -> str:
    count = "-" if pool["nodeCount"] is None else str(pool["nodeCount"])
    low, high = pool["autoscaling"]
    return count if low is None else f"{count} ({low}-{high})"


def _counts(devices: Mapping[str, int] | None) -> str:
    """Format devices; only the number if all are nvidia.com/gpu, as most are."""
    if devices is not None and list(devices) == [GPU_RESOURCE]:
        return str(devices[GPU_RESOURCE])
    return device_words(devices and {short(name): count for name, count in devices.items()})


def _gpus(pool: LivePool) -> str:
    return f"{number(pool['gpu']['count'])}x {pool['gpu']['model']}" if pool["gpu"] else "-"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else number(value)


def family_cell(pool: LivePool) -> str:
    """Return the family of a pool and its place there: "h100 (3 of 3)"; "" without alternatives."""
    if (family := pool.get("family")) is None:
        return ""
    place = f" ({family['rank']} of {family['of']})" if family["rank"] else ""
    note = {"leftover": ", without nodes", "second": ", second with nodes"}.get(family["role"] or "", "")
    return f"{family['name']}{place}{note}"


LIST_COLUMNS: Final[Sequence[Column]] = (
    ("CLUSTER", lambda pool: pool["cluster"]),
    ("NAME", lambda pool: pool["name"]),
    ("OWNER", lambda pool: pool["owner"] or "-"),
    ("STATUS", lambda pool: pool["status"]),
    ("NODES", _nodes),
    ("GPUS", _gpus),
    ("ALLOCATABLE", lambda pool: _counts(pool["allocatable"])),
    ("USED", lambda pool: _counts(pool["used"])),
    ("SLICES", lambda pool: _or_dash(pool["slicesPerGpu"])),
)
"""Title and cell of each column; SLICES is devices per physical GPU."""

FAMILY_COLUMN: Final[Column] = ("FAMILY", lambda pool: family_cell(pool) or "-")
"""Column of lists with pools that have alternatives."""

WIDE_COLUMNS: Final[Sequence[Column]] = (
    ("PROVIDER", lambda pool: pool["provider"]),
    ("POOL", lambda pool: pool["pool"] or "-"),
    ("TYPE", lambda pool: pool["instanceType"]),
    ("GPUS IN ALL", lambda pool: _or_dash(pool["gpus"])),
    ("PROTECTED", lambda pool: "yes" if pool["protected"] else "no"),
    ("FAILURE", lambda pool: pool["failure"] or "-"),
)


def list_columns(rows: Sequence[LivePool]) -> list[Column]:
    """Return the columns of a list; that of families only if a pool has alternatives."""
    return [*LIST_COLUMNS, *([FAMILY_COLUMN] if any("family" in pool for pool in rows) else [])]


def list_rows(document: ListDocument | PoolDocument) -> list[LivePool]:
    """Return the pools of a list, or of a document of one pool."""
    if document["kind"] == "Pool":
        return list(document["pools"])
    return [pool for cluster in document["clusters"] for pool in cluster["pools"]]


def render_list(document: ListDocument, view: View) -> Iterator[Line]:
    """Show the live GPU pools as a table."""
    yield from _table(document, view)
    for cluster in document["clusters"]:
        if cluster["error"]:
            yield from finding_lines(cluster["error"])
        elif cluster["unknown"] and (view.verbose or view.wide):
            yield Hung(Text(""), Text(f"{cluster['cluster']}: allocatable unknown: {cluster['unknown']}"))


def render_pool(document: PoolDocument, view: View) -> Iterator[Line]:
    """Show one pool on each cluster that has it; in wide mode as a table."""
    if view.wide:
        yield from _table(document, view)
    else:
        for pool in document["pools"]:
            yield from _detail(pool)
    for failure in document["errors"]:
        yield from finding_lines(failure)


def list_names(document: ListDocument | PoolDocument) -> Iterator[str]:
    """Name every pool as cluster/name, for xargs: the name that `get`, `scale` and `delete` accept."""
    for pool in list_rows(document):
        yield f"{pool['cluster']}/{pool['pool'] or pool['name']}"


def _table(document: ListDocument | PoolDocument, view: View) -> Iterator[Line]:
    rows = list_rows(document)
    columns = [*list_columns(rows), *(WIDE_COLUMNS if view.wide else ())]
    if not rows:
        yield "no GPU pools"
    elif view.wide and 0 < view.width < WIDE_TABLE:
        for pool in rows:
            yield from _record(pool, columns)
    else:
        narrow = 0 < view.width < NARROW
        titles = [NARROW_TITLES.get(title, title) if narrow else title for title, _ in columns]
        table = Table(titles, padding=1 if narrow else 2)
        for pool in rows:
            table.add_row(*(cell(pool) for _, cell in columns))
        yield table


def _record(pool: LivePool, columns: Sequence[Column]) -> Iterator[Line]:
    """Show a row with more columns than the terminal has room for."""
    yield Text(f"{pool['cluster']}/{pool['name']}", style="bold")
    for title, cell in columns[2:]:
        yield Hung(Text(f"  {title.lower():<13}"), Text(cell(pool)))


def _detail(pool: PoolDetail) -> Iterator[Line]:
    yield Text(f"{pool['cluster']}/{pool['pool'] or pool['name']}", style="bold")
    gpus = gpu_words(pool["gpu"])
    facts = {
        "name": pool["name"],
        "owner": f"{pool['owner'] or '-'}{' (protected)' if pool['protected'] else ''}",
        "status": pool["status"] + (f": {pool['failure']}" if pool["failure"] else ""),
        "type": pool["instanceType"] + (f" ({gpus})" if gpus else ""),
        "devices": f"{_counts(pool['used'])} used of {_counts(pool['allocatable'])}",
    }
    if family := family_cell(pool):
        facts["family"] = family
    for name, shown in facts.items():
        yield Hung(Text(f"  {name:<13}"), Text(shown))
    for name, value in pool["fields"].items():
        yield Hung(Text("  "), Text(f"{name}: {value_words(value)}"))
    for node in pool["nodes"]:
        state = "ready" if node["ready"] else "not ready"
        yield Hung(Text("  "), Text(f"node {node['name']}  {state}  {device_words(node['devices'])}"))
