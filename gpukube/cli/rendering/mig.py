"""Human-readable MIG geometry: profiles and their names on other GPUs, full mixes, packings, and free room."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from gpukube.cli.rendering.lines import plural
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.mig import CatalogMigDocument, MigProfilePart, PackingPart


def render_mig(document: CatalogMigDocument, view: View) -> Iterator[Line]:
    """Show the results for --want and --live; without them, the geometry itself."""
    yield Text(document["model"], style="bold")
    if document["packing"]:
        yield from _packing(document["packing"])
    if fragment := document["fragment"]:
        yield Hung(Text("  "), Text(f"with {', '.join(fragment['live'])}"))
        yield Hung(Text("    "), Text(f"still fits: {_each(fragment['left']) or 'nothing'}"))
        if fragment["stranded"]:
            yield Hung(Text("    "), Text(f"would fit with another placement: {', '.join(fragment['stranded'])}"))
    if not (document["packing"] or document["fragment"]):
        for profile in document["profiles"]:
            yield from _profile(profile)
    if view.verbose or not (document["packing"] or document["fragment"]):
        yield Text(f"full mixes of one GPU ({len(document['mixes'])})", style="bold")
        for mix in document["mixes"]:
            yield Hung(Text("  "), Text(_together(mix)))


def _profile(profile: MigProfilePart) -> Iterator[Line]:
    memory = f"{profile['memoryMiB']} MiB" if profile["memoryMiB"] else f"about {profile['memoryGB']} GB"
    head = f"{profile['name']:<12} {profile['perGpu']} per GPU, {memory}, mixed: {profile['resource']}"
    yield Hung(Text("  "), Text(head))
    if profile["elsewhere"]:
        yield Hung(Text("    "), Text(f"equal to {_by_name(profile['elsewhere'])}", style="dim"))


def _by_name(elsewhere: Mapping[str, str]) -> str:
    """Group GPUs by their name for a profile: A100-80GB, H100-80GB: 1g.10gb."""
    rows = sorted(elsewhere.items(), key=lambda item: item[1])
    grouped = groupby(rows, key=lambda item: item[1])
    return "; ".join(f"{', '.join(model for model, _ in models)}: {name}" for name, models in grouped)


def _packing(packing: PackingPart) -> Iterator[Line]:
    instances = ", ".join(f"{count} x {name}" for name, count in packing["wanted"].items())
    how = "fewest, with one layout" if packing["alike"] else "fewest"
    yield Hung(Text("  "), Text(f"{instances}: {plural(packing['gpus'], 'GPU')}, {how}"))
    for cut in packing["cuts"]:
        left = f"; free: {_each(cut['left'])}" if cut["left"] else ""
        yield Hung(Text("    "), Text(f"{plural(cut['gpus'], 'GPU')} of {_together(cut['layout'])}{left}"))
        if cut["mayBlock"]:
            yield Hung(
                Text("    "), Text("if created one by one, the last may not fit: the driver chooses the placement")
            )
        if packing["alike"]:
            yield Hung(Text("    "), Text(f"write layout: [{', '.join(cut['layout'])}]"))


def _each(left: Mapping[str, int]) -> str:
    return " or ".join(f"{count} x {name}" for name, count in left.items())


def _together(layout: Iterable[str]) -> str:
    return " + ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(layout).items())
