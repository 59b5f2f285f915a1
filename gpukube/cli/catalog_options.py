"""Options that several `gpukube catalog` commands share, and option groups."""

from __future__ import annotations

from dataclasses import dataclass

from gpukube.cli.options import option


def complete_model(incomplete: str) -> list[str]:
    """Complete GPU models."""
    from gpukube.gpu.models import MODELS

    return [str(m) for m in MODELS if m.sold and str(m).casefold().startswith(incomplete.casefold())]


def provider_option() -> tuple[str, ...]:
    """Declare --provider."""
    return option("--provider", default=(), metavar="CLOUD", help="Only this cloud: aks, eks or gke; may be repeated.")


def count_option() -> float:
    """Declare --count."""
    return option("--count", default=1.0, metavar="N", min=0, help="N GPUs per node (default 1); 0.5 for a share.")


def subscription_option(details: str = "") -> str:
    """Declare --subscription; `details` end its help."""
    return option(
        "--subscription", default="", envvar="AZURE_SUBSCRIPTION_ID", metavar="ID",
        help=f"Azure subscription for the API requests{details}.",
    )  # fmt: skip


def project_option(details: str) -> str:
    """Declare --project; `details` end its help."""
    return option(
        "--project", default="", envvar="GOOGLE_CLOUD_PROJECT", metavar="ID",
        help=f"Google Cloud project for the API requests{details}.",
    )  # fmt: skip


def region_option() -> str:
    """Declare --region, which selects refreshed data."""
    return option(
        "--region", default="", metavar="REGION",
        help="Show prices of this region and only the types it offers; needs `catalog refresh --region`.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypeFilters:
    """Filters of `catalog list`."""

    providers: tuple[str, ...] = provider_option()
    models: tuple[str, ...] = option(
        "--model", default=(), metavar="GPU", autocompletion=complete_model,
        help="With this GPU: A100-80GB, or A100 for all sizes; may be repeated.",
    )  # fmt: skip
    memory: str = option(
        "--memory", default="", metavar="GIB",
        help="Minimum memory per GPU or share: 40, 40GiB.",
    )  # fmt: skip
    mig: bool | None = option(
        "--mig/--no-mig", default=None, help="Only types that support MIG, or only types that do not."
    )
    arch: str = option("--arch", default="", metavar="ARCH", help="CPU architecture: amd64 or arm64.")
    max_price: float | None = option(
        "--max-price", default=None, metavar="USD", min=0,
        help="Maximum on-demand price in US dollars per node and hour; omits unknown prices.",
    )  # fmt: skip
    statuses: tuple[str, ...] = option(
        "--status", default=(), metavar="STATUS",
        help="current, legacy, preview, unknown or retired (default: all but retired); may be repeated.",
    )  # fmt: skip
    region: str = region_option()


@dataclass(frozen=True, slots=True)
class Search:
    """What `catalog find` searches for."""

    gpu: str = option(
        "--gpu", default="", metavar="GPU", autocompletion=complete_model,
        help="Find the instance type of each cloud with this GPU: A100-80GB.",
    )  # fmt: skip
    count: float = count_option()
    slice_memory: str = option(
        "--slice-memory", default="", metavar="GIB",
        help="Find the smallest MIG instances and GPUs with at least this memory: 20GiB.",
    )  # fmt: skip
    limit: int = option(
        "--limit", default=12, show_default=True, min=0, metavar="N",
        help="With --slice-memory: show at most N; 0 for all.",
    )  # fmt: skip
    providers: tuple[str, ...] = provider_option()
    region: str = region_option()
