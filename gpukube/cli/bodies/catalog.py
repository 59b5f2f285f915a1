"""Bodies of the catalog commands: read the cache, query the catalog, show the document, choose the exit code."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, get_args

import typer

from gpukube.catalog.cache import Cached, read_cache, write_cache
from gpukube.catalog.documents import find_document, list_document, slices_document, type_document
from gpukube.catalog.filters import Filters, choose_entries
from gpukube.catalog.place import cache_file
from gpukube.catalog.refreshing import choose_inquiries, joined, refresh, refresh_document, refresh_exit_code
from gpukube.catalog.types import find_type
from gpukube.cli import output as out
from gpukube.cli.endpoints import emulated_secret, endpoints
from gpukube.cli.stderr import write_stderr
from gpukube.core.cloud_catalog import Account
from gpukube.core.values import Settings
from gpukube.endpoint import is_loopback
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.gpu.catalog import CatalogError, machines, parse_model
from gpukube.gpu.machines import Status
from gpukube.gpu.models import Arch, find_models
from gpukube.gpu.refreshed import lay_over
from gpukube.gpu.refusal import nearest, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeVar

    from gpukube.cli.catalog_options import Search, TypeFilters
    from gpukube.cli.options import Choices
    from gpukube.gpu.refreshed import Stock

    T = TypeVar("T")

_MEMORY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:g|gb|gi|gib)?", re.IGNORECASE)


def show_list(choices: Choices, requested: TypeFilters) -> None:
    """List types."""
    out.require_format(choices.output, "CatalogList")
    stocks = _stocks(choices, requested.region)
    filters = Filters(
        providers=_clouds(requested.providers, stocks, requested.region),
        models=tuple(
            model for text in requested.models for model in with_option_named("--model", partial(find_models, text))
        ),
        gpu_memory_gib=_gib("--memory", requested.memory) if requested.memory else None,
        mig=requested.mig,
        arch=_one_word("--arch", requested.arch, get_args(Arch)),
        max_price=requested.max_price,
        statuses=tuple(_one_word("--status", status, get_args(Status)) for status in requested.statuses),
        region=requested.region,
    )
    shown = choose_entries(lay_over(stocks, requested.region), filters)
    out.show(list_document(shown, stocks, requested.region), choices.output, verbose=choices.verbose)


def find_machines(choices: Choices, search: Search) -> None:
    """Find an instance type per cloud, or a slice."""
    out.require_format(choices.output, "CatalogFind")
    if bool(search.gpu) == bool(search.slice_memory):
        message = "both --gpu and --slice-memory given" if search.gpu else "neither --gpu nor --slice-memory given"
        fix = "write --gpu A100-80GB --count 8, or --slice-memory 20GiB"
        raise SpecError(message, where=Where("--gpu"), fix=fix, code="nothing-to-find")
    if search.slice_memory:
        _find_slices(choices, search)
        return
    model = with_option_named("--gpu", partial(parse_model, search.gpu))
    stocks = _stocks(choices, search.region)
    providers = _clouds(search.providers, stocks, search.region) or tuple(sorted({m.provider for m in machines()}))
    document = find_document(lay_over(stocks, search.region), stocks, (model, search.count), providers, search.region)
    out.show(document, choices.output, verbose=choices.verbose)
    found = any(cloud["machine"] for cloud in document["clouds"])
    raise typer.Exit(ExitCode.DONE if found else ExitCode.BAD_INPUT)


def _find_slices(choices: Choices, search: Search) -> None:
    at_least = _gib("--slice-memory", search.slice_memory)
    stocks = _stocks(choices, search.region)
    clouds = _clouds(search.providers, stocks, search.region)
    entries = [e for e in lay_over(stocks, search.region) if not clouds or e.machine.provider in clouds]
    document = slices_document(entries, stocks, at_least, search.region)
    if not document["slices"]:
        raise SpecError(
            f"no GPU in the catalog has {at_least:g} GB",
            where=Where("--slice-memory"),
            fix=f"write at most {max(e.machine.gpu_memory_gib for e in entries):g}",
            code="no-slice",
        )
    total = len(document["slices"])
    if search.limit and choices.output in ("table", "wide"):
        document = {**document, "slices": document["slices"][: search.limit]}
    out.show(document, choices.output, verbose=choices.verbose)
    if len(document["slices"]) < total:
        write_stderr(f"{total - len(document['slices'])} more: --limit 0 shows all")


def show_type(choices: Choices, name: str, region: str) -> None:
    """Show one type."""
    out.require_format(choices.output, "CatalogType")
    stocks = _stocks(choices, region)
    entries = with_option_named("TYPE", partial(find_type, lay_over(stocks, region), name))
    out.show(type_document(entries, stocks), choices.output, verbose=choices.verbose)


def refresh_catalog(
    choices: Choices, providers: Sequence[str], regions: Sequence[str], account: tuple[str, str]
) -> None:
    """Read types and prices from the clouds, and store them."""
    out.require_format(choices.output, "CatalogRefresh")
    subscription, project = account
    settings = Settings(endpoints=endpoints(), secret=emulated_secret())
    inquiries = choose_inquiries(providers, regions, Account(subscription, project), settings)
    if choices.sandbox:
        from gpukube.cli import sandbox

        emulated = sandbox.enter().settings
        inquiries = tuple(replace(inquiry, settings=emulated) for inquiry in inquiries)
    file = _file(choices)
    if sys.stderr.isatty():  # real price lists take a while
        write_stderr(f"reading {', '.join(f'{i.provider} {i.region}' for i in inquiries)}")
    outcomes = refresh(inquiries, _read(file).stocks, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    if any(outcome.error is None for outcome in outcomes):
        write_cache(file, joined(read_cache(file).stocks, outcomes))  # re-read: another run may have finished meanwhile
    out.show(refresh_document(outcomes, str(file)), choices.output, verbose=choices.verbose)
    raise typer.Exit(refresh_exit_code(outcomes))


def _file(choices: Choices) -> Path:
    """Return the file of refreshed data; emulated clouds, however they were reached, have a separate one."""
    emulated = choices.sandbox or any(is_loopback(url) for url in endpoints().values())
    return cache_file(os.environ, sandbox=emulated)


def _read(file: Path) -> Cached:
    cached = read_cache(file)
    out.warn(cached.findings)
    return cached


def _stocks(choices: Choices, region: str) -> tuple[Stock, ...]:
    """Read the refreshed data.

    Raises:
        SpecError: The data does not include the requested region.
    """
    stocks = _read(_file(choices)).stocks
    known = sorted({stock.region for stock in stocks})
    if region and region not in known:
        raise SpecError(
            f'no data for the region "{region}"',
            where=Where("--region"),
            fix=f"gpukube catalog refresh --region {region}",
            why=f"refreshed regions: {', '.join(known)}" if known else "nothing has been refreshed yet",
            code="region",
        )
    return stocks


def _clouds(providers: Sequence[str], stocks: Sequence[Stock], region: str) -> tuple[str, ...]:
    """Return the clouds to search: the named ones, else the cloud that the region belongs to; () for all.

    Raises:
        SpecError: A cloud does not exist or does not have the region.
    """
    known = sorted({m.provider for m in machines()})
    named = tuple(_one_word("--provider", name, known) for name in providers)
    own = tuple(sorted({stock.provider for stock in stocks if stock.region == region}))
    for name in named:
        if region and name not in own:
            raise SpecError(
                f"{region} is a region of {one_of(own)}, not of {name}",
                where=Where("--region"),
                fix=f"remove --provider {name}, or use one of its regions",
                code="region",
            )
    return named or own


def _one_word(option: str, word: str, known: Sequence[str]) -> str:
    if word and word not in known:
        ordered = nearest(word, known)
        raise SpecError(f'"{word}" is not a choice', where=Where(option), fix=f"write {one_of(ordered)}", code="choice")
    return word


def _gib(option: str, text: str) -> float:
    """Parse an amount of GPU memory; GB and GiB mean the same here, as in NVIDIA's names."""
    found = _MEMORY.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise SpecError(
            f'"{text}" is not an amount of memory', where=Where(option), fix="write GiB as 20 or 20GiB", code="memory"
        )
    return float(found[1])


def with_option_named(option: str, find: Callable[[], T]) -> T:
    """Call a catalog function; add the name of the option to its errors."""
    try:
        return find()
    except CatalogError as error:
        raise SpecError(error.message, where=Where(option), fix=error.fix, why=error.why, code=error.code) from error
