"""`gpukube workload ...`: write and check manifests for the pools of a spec, and see where they fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from gpukube.cli.completion import complete_cluster, complete_lint_rule, complete_pool, one_of
from gpukube.cli.options import SPEC, Choices, option, takes

app = typer.Typer(help="Write, check and place workloads for the pools.", no_args_is_help=True)

Manifests = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...",
        show_default=False,
        help="Manifests: files, directories, quoted patterns, or - for stdin (helm template . | ...).",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """Options of `workload lint` only."""

    fix: bool = option("--fix", default=False, help="Apply safe fixes in place; for stdin, write the result to stdout.")
    diff: bool = option("--diff", default=False, help="Show what --fix would change; change nothing.")
    list_rules: bool = option("--list-rules", default=False, help="List all rules.")
    explain: str = option(
        "--explain", default="", metavar="RULE", autocompletion=complete_lint_rule,
        help="Explain a rule: GPK705, or its name.",
    )  # fmt: skip


@app.command()
@takes(*SPEC, "clusters", "strict", "output")
def lint(
    choices: Choices,
    manifests: Manifests = None,
    *,
    options: LintOptions,
) -> None:
    """Check manifests of GPU workloads. Covers Pods and what creates them, KubeRay, JobSet, ResourceQuota.

    With -f it also checks them against the pools of the spec. To accept a finding, write
    `# gpukube: ignore RULE - reason` on its line. Makes no API calls.
    Exit codes: 0 no errors, 4 errors; with --strict also for warnings.
    """
    from gpukube.cli.bodies import workload_lint as body

    if options.list_rules or options.explain:
        body.show_rules(options.explain)
    else:
        body.lint(choices, manifests or (), fix=options.fix, diff=options.diff)


@app.command()
@takes(*SPEC, "clusters", "live_prices", "output", "parallelism", "sandbox")
def fit(
    choices: Choices,
    manifests: Manifests = None,
    *,
    live: Annotated[bool, typer.Option("--live", help="Read the clusters' nodes and the pods on them.")] = False,
) -> None:
    """Show where the pods of manifests fit on the spec's pools. Each fits now, after a scale-up, or never.

    For a pod that fits nowhere it shows the reason and the single change that would place it.
    Exit codes: 0 every pod fits, 1 some do not, 4 a file is wrong.
    """
    from gpukube.cli.bodies import workload_fit as body

    body.fit(choices, manifests or (), live=live)


_KINDS = ("pod", "job", "deployment", "statefulset", "jobset", "raycluster", "rayjob", "rayservice", "kueue")
_CLUSTER = option(
    "--cluster", default=(), metavar="KEY", autocompletion=complete_cluster,
    help="Which cluster, if the pool is on several.",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """Options of `workload render` only."""

    pool: str = option(
        "--pool", default="", metavar="NAME", autocompletion=complete_pool, help="Name of the pool in the spec."
    )
    gpus: int = option("--gpus", default=1, min=1, help="GPUs, MIG instances or shares per pod (default 1).")
    same_gpu: bool = option("--same-gpu", default=False, help="Claim all MIG devices of a pod on one GPU.")
    resource: str = option(
        "--resource", default="", metavar="NAME", help="Which device resource, if nodes have several."
    )
    image: str = option("--image", default="", help="Image of the pods (default: a pinned CUDA or Ray image).")
    name: str = option("--name", default="", help="Name of the object (default: the pool's name).")
    namespace: str = option("--namespace", "-n", default="", help="Namespace (default: kubectl's current one).")
    replicas: int | None = option("--replicas", default=None, min=1, help="Pods, or Ray workers (default 1).")
    least: int | None = option("--min", default=None, min=0, help="Minimum Ray workers (default: no autoscaling).")
    most: int | None = option(
        "--max", default=None, min=1, help="Maximum Ray workers (default: what fits on the pool)."
    )
    cpu: str = option("--cpu", default="", metavar="AMOUNT", help="CPU per pod (default: a fair share of the node).")
    memory: str = option(
        "--memory", default="", metavar="AMOUNT", help="Memory per pod (default: a fair share of the node)."
    )
    runtime_env: str = option(
        "--runtime-env", default="", metavar="FILE",
        help="Ray runtime environment (YAML or JSON) of a rayjob or rayservice.",
    )  # fmt: skip
    working_dir: str = option(
        "--working-dir", default="", metavar="URI",
        help="Code of a rayjob or rayservice: URL of a .zip that the pods can download.",
    )  # fmt: skip


@app.command()
@takes(*SPEC, "clusters", "sandbox", clusters=_CLUSTER)
def render(
    choices: Choices,
    options: RenderOptions,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            autocompletion=one_of(*_KINDS),
            help=", ".join(_KINDS) + ".",
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", show_default=False, help="Command that the pods run."),
    ] = None,
) -> None:
    """Write a manifest for a pool. Uses the spec only, and prints YAML for `kubectl apply -f -`.

    Resource names, tolerations, selectors, and sizes match the pool on its cloud; comments explain them. For a
    rayservice, COMMAND is the import path of the Serve application.
    """
    from gpukube.cli.bodies import workload_render as body
    from gpukube.workload.render.intent import Intent

    chosen = asdict(options)
    pool, path = chosen.pop("pool"), chosen.pop("runtime_env")
    body.render(choices, pool, Intent(kind=kind, command=tuple(command or ()), **chosen), runtime_env=path)
