"""`gpukube workload ...`: manifests for the pools of a spec: write them, check them, see where they fit."""

from __future__ import annotations

from typing import Annotated

import typer

from gpukube.cli.options import SPEC, Choices, option, takes

app = typer.Typer(help="Write, check and fit workloads of the pools: Pods, KubeRay.", no_args_is_help=True)

_FINDINGS = option(
    "--output", "-o", default="table", envvar="GPUKUBE_OUTPUT", metavar="FORMAT",
    help="text (default), json, yaml, sarif (code scanning), github (annotations of a workflow).",
)  # fmt: skip


@app.command()
@takes(*SPEC, "clusters", "strict", "output", output=_FINDINGS)
def lint(
    choices: Choices,
    manifests: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            show_default=False,
            help="Manifests: files, directories, quoted patterns, or - for stdin (helm template . | ...).",
        ),
    ] = None,
    *,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="List all rules.")] = False,
    explain: Annotated[
        str, typer.Option("--explain", metavar="RULE", show_default=False, help="Explain a rule: GPK705, or its name.")
    ] = "",
) -> None:
    """Check manifests of GPU workloads: Pods and what makes them, KubeRay, JobSet, ResourceQuota.

    With -f it also checks them against the pools of the spec. To accept a finding, write
    `# gpukube: ignore RULE - reason` on its line. Without any call.
    Exit codes: 0 no errors, 4 errors; with --strict also for warnings.
    """
    from gpukube.cli.bodies import workload_lint as body

    if list_rules or explain:
        body.show_rules(explain)
    else:
        body.lint(choices, manifests or ())
