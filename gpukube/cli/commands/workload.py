"""`gpukube workload ...`: manifests for the pools of a spec: write them, check them, see where they fit."""

from __future__ import annotations

import typer

app = typer.Typer(help="Write, check and fit workloads of the pools: Pods, KubeRay.", no_args_is_help=True)
