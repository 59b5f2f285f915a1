"""`gpukube doctor`: find known problems of live clusters, and fix those that are safe to fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from gpukube.cli.completion import one_of
from gpukube.cli.options import ADDRESSES, END, SPEC, Choices, option, takes

EXTRAS: Final = ("live-prices", "upgrade", "probe", "migrate-release", "catalog", "capacity", "alternatives")
"""Extras of core.permissions, repeated here so that help and completion do not import it."""

app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Options for printing permissions."""

    level: str = option(
        "--print-policy", default="", metavar="plan|apply", autocompletion=one_of("plan", "apply"),
        help="Print the permissions that the spec needs, as cloud policies and cluster roles; makes no API calls.",
    )  # fmt: skip
    extras: tuple[str, ...] = option(
        "--with", default=(), metavar="EXTRA", autocompletion=one_of(*EXTRAS),
        help=f"With --print-policy: also what this EXTRA needs: {', '.join(EXTRAS)}; may be repeated.",
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
        typer.Option("--fix", help="Apply safe fixes: labels, restarts, gpukube's release. Asks for confirmation."),
    ] = False,
) -> None:
    """Find problems on live clusters and show how to fix them. Works on clusters that gpukube never touched.

    Changes nothing without --fix. Exit codes: 0 healthy (warnings do not count), 1 errors found, 5 no access.
    """
    if policy != Policy():
        from gpukube.cli.bodies.policy import print_policies

        print_policies(choices, policy.level, policy.extras, policy.directory, fix=fix)
        return
    from gpukube.cli.bodies.doctor import visit

    visit(choices, fix=fix)
