"""`gpukube doctor`: find the known faults of live clusters, and heal those that are safe to heal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from gpukube.cli.completion import one_of
from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, option, takes

EXTRAS: Final = ("live-prices", "upgrade", "probe", "migrate-release", "catalog")
"""Those of core.permissions, without importing it: help and completion need the words alone."""

app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What of permissions is printed, and where."""

    level: str = option(
        "--print-policy", default="", metavar="plan|apply", autocompletion=one_of("plan", "apply"),
        help="Print the permissions that the spec needs, as policies of its clouds and clusters; makes no call.",
    )  # fmt: skip
    extras: tuple[str, ...] = option(
        "--with", default=(), metavar="EXTRA", autocompletion=one_of(*EXTRAS),
        help=f"With --print-policy: also what one of {', '.join(EXTRAS)} needs; may be repeated.",
    )  # fmt: skip
    directory: str = option(
        "--out", default="", metavar="DIR", help="With --print-policy: write each policy to a file in this directory."
    )


@app.command()
@takes(*SPEC, "clusters", "shard", "fix", "yes", "output", "chart", *END, clusters=ADDRESSES)
def doctor(
    choices: Choices,
    policy: Policy,
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Apply safe fixes: labels, restarts, gpukube's release. Asks first."),
    ] = False,
) -> None:
    """Examine live clusters, also ones that gpukube never touched: what is wrong, what follows, what to run.

    Changes nothing without --fix. Exit codes: 0 healthy (warnings do not count), 1 ill, 5 no access.
    """
    if policy != Policy():
        from gpukube.cli.bodies.policy import print_policies

        print_policies(choices, policy.level, policy.extras, policy.directory, fix=fix)
        return
    from gpukube.cli.bodies.doctor import visit

    visit(choices, fix=fix)
