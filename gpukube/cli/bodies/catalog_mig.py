"""Body of `gpukube catalog mig`: read the options, query the catalog, show the document."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpukube.catalog.geometry import mig_document, read_live, read_requested
from gpukube.cli import output as out
from gpukube.cli.bodies.catalog import with_option_named
from gpukube.gpu.models import parse_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices


def show_geometry(choices: Choices, gpu: str, instances: Sequence[str], live: Sequence[str], *, alike: bool) -> None:
    """Show a GPU's MIG geometry, or the result for --want or --live."""
    out.require_format(choices.output, "CatalogMig")
    model = with_option_named("GPU", partial(parse_model, gpu))
    requested = with_option_named("--want", partial(read_requested, instances))
    there = with_option_named("--live", partial(read_live, model, live))
    document = with_option_named(
        "--want" if requested else "GPU", partial(mig_document, model, requested, there, alike=alike)
    )
    out.show(document, choices.output, verbose=choices.verbose)
