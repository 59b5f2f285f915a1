"""`gpukube init`: a commented spec to begin with, by flags or by questions on a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["init"]


def _pools_yaml() -> str:
    return "pools.yaml"


def _complete_cloud(incomplete: str) -> list[str]:
    return [cloud for cloud in ("eks", "aks", "gke") if cloud.startswith(incomplete)]


def _complete_gpu(incomplete: str) -> list[str]:
    from gpukube.gpu.models import MODELS

    return [model.name for model in MODELS if model.sold and model.name.startswith(incomplete)]


ProviderOption = Annotated[
    list[str],
    typer.Option(
        "--provider", default_factory=list, show_default=False, metavar="CLOUD", autocompletion=_complete_cloud,
        help="eks, aks or gke; may be repeated: one cluster on each.",
    ),
]  # fmt: skip
NameOption = Annotated[
    str,
    typer.Option(
        "--name", default_factory=str, show_default=False, metavar="NAME", help="Name of the cluster, on each cloud."
    ),
]
OwnerNameOption = Annotated[
    str,
    typer.Option(
        "--owner", default_factory=str, show_default=False, metavar="NAME",
        help="Whose pools these are, metadata.name (default: the cluster's name).",
    ),
]  # fmt: skip
AccountOption = Annotated[
    str,
    typer.Option("--account", default_factory=str, show_default=False, metavar="ID", help="EKS: AWS account."),
]
RegionOption = Annotated[
    str,
    typer.Option("--region", default_factory=str, show_default=False, metavar="REGION", help="EKS: AWS region."),
]
SubscriptionOption = Annotated[
    str,
    typer.Option(
        "--subscription", default_factory=str, show_default=False, metavar="ID", help="AKS: Azure subscription."
    ),
]
ResourceGroupOption = Annotated[
    str,
    typer.Option(
        "--resource-group", default_factory=str, show_default=False, metavar="NAME", help="AKS: resource group."
    ),
]
ProjectOption = Annotated[
    str,
    typer.Option("--project", default_factory=str, show_default=False, metavar="ID", help="GKE: Google project."),
]
LocationOption = Annotated[
    str,
    typer.Option("--location", default_factory=str, show_default=False, metavar="PLACE", help="GKE: region or zone."),
]
GpuOption = Annotated[
    str,
    typer.Option(
        "--gpu", default_factory=str, show_default=False, metavar="MODEL", autocompletion=_complete_gpu,
        help="GPU model, as T4-16GB.",
    ),
]  # fmt: skip
CountOption = Annotated[
    int | None,
    typer.Option("--count", show_default=False, metavar="N", min=1, help="GPUs per node (default: the fewest sold)."),
]
NodesOption = Annotated[
    int | None, typer.Option("--nodes", show_default=False, metavar="N", min=0, help="Nodes of the pool (default 1).")
]
MigOption = Annotated[
    str,
    typer.Option("--mig", default_factory=str, show_default=False, metavar="PROFILE", help="Cut the GPUs, as 1g.5gb."),
]
ReplicasOption = Annotated[
    int | None,
    typer.Option(
        "--replicas", show_default=False, metavar="N", min=2,
        help="Share each GPU, or each MIG instance, by time-slicing.",
    ),
]  # fmt: skip
SpotOption = Annotated[
    bool, typer.Option("--spot", default_factory=bool, show_default=False, help="Buy Spot machines.")
]
StarterOption = Annotated[
    str,
    typer.Option(
        "--out", default_factory=_pools_yaml, show_default=False, metavar="FILE",
        help="Where to write it (default pools.yaml); - for stdout.",
    ),
]  # fmt: skip
ForceOption = Annotated[
    bool, typer.Option("--force", default_factory=bool, show_default=False, help="Overwrite the file.")
]


def init(
    *,
    providers: ProviderOption,
    name: NameOption,
    owner: OwnerNameOption,
    account: AccountOption,
    region: RegionOption,
    subscription: SubscriptionOption,
    resource_group: ResourceGroupOption,
    project: ProjectOption,
    location: LocationOption,
    gpu: GpuOption,
    count: CountOption = None,
    nodes: NodesOption = None,
    mig: MigOption,
    replicas: ReplicasOption = None,
    spot: SpotOption,
    out: StarterOption,
    force: ForceOption,
) -> None:
    """Write a commented spec to begin with, checked by the rules of `validate`. No cloud is called.

    On a terminal what is not given is asked for. Exit codes: 0 written, 4 something is wrong or missing.
    """
    from gpukube.cli import starting
    from gpukube.engine.starter import Answers

    identity = {
        "account": account,
        "region": region,
        "subscription": subscription,
        "resourceGroup": resource_group,
        "project": project,
        "location": location,
    }
    clouds = tuple(dict.fromkeys(providers))
    answers = Answers(
        providers=clouds,
        names=dict.fromkeys(clouds, name) if name else {},
        identity={key: value for key, value in identity.items() if value},
        owner=owner,
        gpu=gpu,
        count=count or 0,
        nodes=1 if nodes is None else nodes,
        mig=mig,
        replicas=replicas or 0,
        spot=spot,
    )
    starting.start(answers, name=name, ask_nodes=nodes is None, out=out, force=force)
