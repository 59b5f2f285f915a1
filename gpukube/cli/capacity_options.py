"""Options of `gpukube capacity find`."""

from __future__ import annotations

from dataclasses import dataclass

from gpukube.cli.catalog_options import (
    complete_model,
    count_option,
    project_option,
    provider_option,
    subscription_option,
)
from gpukube.cli.completion import complete_pool
from gpukube.cli.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Options of `capacity find`."""

    gpu: str = option(
        "--gpu", default="", metavar="GPU", autocompletion=complete_model, help="GPU model: H100-80GB."
    )  # fmt: skip
    count: float = count_option()
    nodes: int = option(
        "--nodes", default=0, metavar="N", min=0, help="Number of nodes (default: that of the pool, else 1)."
    )
    pool: str = option(
        "--pool", default="", metavar="NAME", autocompletion=complete_pool,
        help="With -f, instead of --gpu: what this pool of the spec needs, on its clusters.",
    )  # fmt: skip
    duration: str = option(
        "--for", default="", metavar="TIME",
        help="How long the nodes are needed: 12h, 7d, 2w. Capacity Blocks and calendar reservations need it.",
    )  # fmt: skip
    live: bool = option("--live", default=False, help="Query the clouds. Without it only prices are known.")
    providers: tuple[str, ...] = provider_option()
    regions: tuple[str, ...] = option(
        "--region", default=(), metavar="REGION",
        help="Look in this region (default: the clusters', else us-east-1, eastus, us-central1); may be repeated.",
    )  # fmt: skip
    subscription: str = subscription_option(", without a cluster")
    project: str = project_option(", without a cluster")
